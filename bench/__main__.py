"""`python -m bench [startup] [runs] [scan] [index] [changes] [screen] [answers] [stream] [understanding] [peers] [--rounds N] [--place FOLDER] [--notes N ...]`."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from bench import answers, changes, index, peers, runs, scan, screen, startup, stream, understanding
from bench.table import markdown

PARTS = ("startup", "runs", "scan", "index", "changes", "screen", "answers", "stream", "understanding", "peers")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench", description="Measure against named baselines in the same run.")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[], help="all when none is named")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--place", type=Path, default=Path(".bench"), help="new folder to work in; its file system is what is measured")
    parser.add_argument("--notes", type=int, nargs="+", default=[1_000, 10_000], help="sizes of the vaults for the index")
    options = parser.parse_args()
    parts = options.parts or PARTS
    options.place.mkdir(parents=True, exist_ok=True)
    rows = startup.measure() if "startup" in parts else []
    rows += runs.measure(options.place, options.rounds) if "runs" in parts else []
    rows += scan.measure(options.rounds) if "scan" in parts else []
    if "index" in parts:
        measured = index.measure(options.place, tuple(options.notes), max(options.rounds, 5))
        rows += measured + index.growth(measured)
    if "changes" in parts:
        rows += changes.measure(options.place, tuple(options.notes), options.rounds)
    if "screen" in parts:
        rows += screen.measure(options.place, tuple(options.notes[-1:]))
    rows += answers.measure(options.place) if "answers" in parts else []
    rows += stream.measure(options.place) if "stream" in parts else []
    rows += understanding.measure() if "understanding" in parts else []
    if "peers" in parts:
        rows += peers.measure(options.place, tuple(options.notes), options.rounds)
    shutil.rmtree(options.place, ignore_errors=True)
    print(markdown(rows))


if __name__ == "__main__":
    main()
