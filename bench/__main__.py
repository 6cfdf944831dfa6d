"""`python -m bench [--rounds N] [--place FOLDER]`."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from bench import runs, startup
from bench.table import markdown


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench", description="Measure against named baselines in the same run.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--place", type=Path, default=Path(".bench"), help="folder to work in; its file system is what is measured")
    options = parser.parse_args()
    options.place.mkdir(parents=True, exist_ok=True)
    rows = startup.measure() + runs.measure(options.place, options.rounds)
    shutil.rmtree(options.place, ignore_errors=True)
    print(markdown(rows))


main()
