"""Measurements: `python -m bench [PART ...] [--rounds N] [--place FOLDER] [--notes N ...]`.

`python -m bench full` also measures vaults of 100,000 notes.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from bench import answers, app, changes, index, runs, scan, stream, understanding, waits
from bench.table import markdown

PARTS = ("waits", "app", "runs", "scan", "index", "changes", "answers", "stream", "understanding")
SIZES = 1_000, 10_000, 100_000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="bench", description="Measure against named baselines in the same run."
    )
    parser.add_argument(
        "parts", nargs="*", choices=[*PARTS, "full", []], default=[], help="all when none is named"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--place",
        type=Path,
        default=Path(".bench"),
        help="new folder to work in; its file system is what is measured",
    )
    parser.add_argument(
        "--notes",
        type=int,
        nargs="+",
        help="sizes of the vaults (1,000 and 10,000; of full also 100,000)",
    )
    options = parser.parse_args()
    parts = [part for part in options.parts if part != "full"] or PARTS
    sizes = tuple(options.notes or SIZES[: 3 if "full" in options.parts else 2])
    options.place.mkdir(parents=True, exist_ok=True)
    rows = []
    if "waits" in parts:
        measured = waits.measure(options.place, sizes, options.rounds)
        rows += measured + index.growth(
            [row for row in measured if not row.what.startswith(f"{waits.SMALL} ")]
        )
    rows += app.measure(options.place, sizes, options.rounds) if "app" in parts else []
    rows += runs.measure(options.place, options.rounds) if "runs" in parts else []
    rows += scan.measure(options.rounds) if "scan" in parts else []
    if "index" in parts:
        measured = index.measure(options.place, sizes, max(options.rounds, 5))
        rows += measured + index.growth(measured)
    if "changes" in parts:
        rows += changes.measure(options.place, sizes, options.rounds)
    rows += answers.measure(options.place) if "answers" in parts else []
    rows += stream.measure(options.place) if "stream" in parts else []
    rows += understanding.measure() if "understanding" in parts else []
    shutil.rmtree(options.place, ignore_errors=True)
    print(markdown(rows))


if __name__ == "__main__":
    main()
