"""Other programs that index a vault, in the same run: headless-vault-kit (`hvk`) and obsidiantools. Both are optional.

They belong into an environment of their own: `python -m venv peers && peers/bin/pip install headless-vault-kit obsidiantools`, and then
`BENCH_PEERS=peers/bin make bench`. What is not there is skipped, and the table says so.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench.table import Row
from bench.vaultgen import COMMON, generate

FOLDER = "BENCH_PEERS"
SLOW = 2_000
"""obsidiantools takes minutes for more notes than this."""

_GATHER = "import pathlib, sys, obsidiantools.api as o; o.Vault(pathlib.Path(sys.argv[1])).connect().gather()"


def measure(place: Path, sizes: tuple[int, ...], rounds: int) -> list[Row]:
    """Whole processes in turn, ours and theirs."""
    kit, tools = _program("hvk"), _program("python")
    rows: list[Row] = []
    if kit is None:
        rows.append(Row("peers", "headless-vault-kit", "skipped: not installed", f"set {FOLDER}", "", None, ""))
    if tools is None:
        rows.append(Row("peers", "obsidiantools", "skipped: not installed", f"set {FOLDER}", "", None, ""))
    for notes in sizes:
        vault = generate(place / f"peers-{notes}", notes).folder
        state, theirs = place / "state-peers", place / "index-peers"
        ours = [sys.executable, "-m", "obsidian_agent"]
        own = ["--vault", os.fspath(vault), "--state-dir", os.fspath(state), "--json"]
        other = ["--vault", os.fspath(vault), "--index", os.fspath(theirs), "--json"]
        what = f"{notes:,} notes"
        if kit is not None:
            pairs = (
                ("index from nothing, whole process", ["index", "--rebuild"], ["rebuild"], "<= 0.06"),
                ("index again, nothing changed", ["index"], ["scan"], "<= 0.1"),
                ("search for a common word", ["search", COMMON, "--mode", "content"], ["search", COMMON], ""),
            )
            for figure, mine, its, goal in pairs:
                rows.append(_row(what, figure, [*ours, *mine, *own], "headless-vault-kit", [kit, *its, *other], goal, rounds))
        if tools is not None and notes <= SLOW:
            command = [tools, "-c", _GATHER, os.fspath(vault)]
            rows.append(
                _row(
                    what, "index from nothing, whole process", [*ours, "index", "--rebuild", *own], "obsidiantools", command, "<= 0.006", 1
                )
            )
        shutil.rmtree(vault)
        shutil.rmtree(theirs, ignore_errors=True)
    return rows


def _program(name: str) -> str | None:
    folder = os.environ.get(FOLDER)
    if folder is None:
        return None
    program = Path(folder) / name
    return os.fspath(program) if program.exists() else None


def _row(what: str, figure: str, ours: list[str], peer: str, theirs: list[str], goal: str, rounds: int) -> Row:
    times = [(_seconds(ours), _seconds(theirs)) for _ in range(rounds)]
    mine, its = (statistics.median(each) for each in zip(*times, strict=True))
    ratio = statistics.median(a / b for a, b in times)
    return Row(what, figure, f"{mine:.2f} s", peer, f"{its:.2f} s", ratio, goal)


def _seconds(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - started
