"""What starting costs, against the bare interpreter."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from bench.table import Row


def measure(rounds: int = 15) -> list[Row]:
    """`--version` against `python -c pass`, as whole processes, in turn."""
    ours, bare = [], []
    for _ in range(rounds):
        bare.append(_seconds(["-c", "pass"]))
        ours.append(_seconds(["-m", "obsidian_agent", "--version"]))
    ratio = statistics.median(ours) / statistics.median(bare)
    return [Row("start", "--version", _ms(ours), "python -c pass", _ms(bare), ratio, "<= 3")]


def _seconds(arguments: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def _ms(values: list[float]) -> str:
    return f"{statistics.median(values) * 1000:.0f} ms"
