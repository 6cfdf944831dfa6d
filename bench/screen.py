"""The app on a large vault: the first frame, the pauses of its event loop while it indexes and searches, and what it costs when idle.

The app runs in a process of its own, without a terminal (Textual's headless driver): what is measured is the program, not the terminal.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.table import Row
from bench.vaultgen import generate

TICK = 0.005
"""Seconds between two looks at the clock. What a look comes late is a pause of the loop: a key would have waited as long."""

IDLE_SECONDS = 10.0
ROUNDS = 5


def measure(place: Path, sizes: tuple[int, ...]) -> list[Row]:
    """Rows for vaults of these numbers of notes, against an empty one."""
    empty = place / "empty"
    (empty / ".obsidian").mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    for notes in sizes:
        vault = generate(place / f"screen-{notes}", notes)
        rows += _of(f"{notes:,} notes", vault.folder, place / "screen-state", empty)
    return rows


def _of(what: str, folder: Path, state: Path, empty: Path) -> list[Row]:
    shutil.rmtree(state, ignore_errors=True)
    cold = _app(folder, state, "index")
    warm = _app(folder, state, "search")
    idle = _app(folder, state, "idle")
    frames = [(_app(folder, state, "frame")["frame"], _app(empty, state, "frame")["frame"]) for _ in range(ROUNDS)]
    ratio = statistics.median(ours / theirs for ours, theirs in frames)
    ours, theirs = (statistics.median(each) for each in zip(*frames, strict=True))
    rows = [Row(what, "first frame", f"{ours * 1000:.0f} ms", "empty vault", f"{theirs * 1000:.0f} ms", ratio, "<= 1.1")]
    for figure, found in (("while indexing", cold), ("while searching names and contents", warm)):
        rows.append(Row(what, f"pauses {figure}, p95", f"{found['p95'] * 1000:.1f} ms", "", "", None, "<= 20 ms"))
        rows.append(Row(what, f"pauses {figure}, longest", f"{found['longest'] * 1000:.1f} ms", "", "", None, "<= 200 ms"))
        rows.append(Row(what, f"a key {figure}, p95", f"{found['key'] * 1000:.1f} ms", "", "", None, "<= 100 ms"))
    rows.append(Row(what, "idle, share of a core", f"{idle['idle'] * 100:.2f} %", "", "", None, "<= 0.5 %"))
    return rows


def _app(folder: Path, state: Path, what: str) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.screen", os.fspath(folder), os.fspath(state), what, str(time.time())]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


# --- in the app's process ---------------------------------------------------------------------------------------------------------


async def _run(folder: str, state: str, what: str, started: float) -> dict[str, float]:
    from obsidian_agent.bootstrap import Wiring
    from obsidian_agent.cli.app import app_over
    from obsidian_agent.vault.filesystem.store import VaultStore

    with VaultStore.open(folder) as store:
        app = app_over(store.name, lambda: Wiring(store, Path(state)))
        async with app.run_test(size=(120, 40)) as pilot:
            found = {"frame": time.time() - started}
            if what != "frame":
                await pilot.pause()
                session = app.backend.parts.session
                loop = _Loop()
                busy = _indexed(session) if what == "index" else _searched(session) if what == "search" else _idle(found, session)
                found |= await loop.watch(busy, pilot, keys=what != "idle")
        return found


class _Loop:
    """Notes how late it is woken, and how long keys take."""

    def __init__(self) -> None:
        self._late: list[float] = []
        self._keys: list[float] = []

    async def watch(self, busy: Any, pilot: Any, *, keys: bool) -> dict[str, float]:
        task = asyncio.ensure_future(busy)
        typing = asyncio.ensure_future(self._type(pilot)) if keys else None
        while not task.done():
            before = time.perf_counter()
            await asyncio.sleep(TICK if keys else 1.0)
            self._late.append(time.perf_counter() - before - TICK)
        if typing is not None:
            typing.cancel()
        await task
        return {"p95": _p95(self._late), "longest": max(self._late), "key": _p95(self._keys)}

    async def _type(self, pilot: Any) -> None:
        """Type letters one after the other; a key is done once the message shows it."""
        from textual import events

        from obsidian_agent.tui.widgets.prompt import Prompt

        prompt = pilot.app.screen.query_one(Prompt)
        while True:
            before, shown = time.perf_counter(), len(prompt.text)
            pilot.app.post_message(events.Key("x", "x"))
            while len(prompt.text) == shown:  # noqa: ASYNC110
                await asyncio.sleep(0)
            self._keys.append(time.perf_counter() - before)
            await asyncio.sleep(0.05)


def _p95(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.95)] if values else 0.0


async def _indexed(session: Any) -> None:
    """Until the app has built its index."""
    while session.vault.keeper is None or not session.vault.keeper.status.ready:  # noqa: ASYNC110
        await asyncio.sleep(0.02)


async def _searched(session: Any) -> None:
    """Names and contents, as the app's screens search them: in threads."""
    from obsidian_agent.tools.search.search import SearchRequest, search

    await _indexed(session)
    for query in ("re", "rese", "research", "quillfern", "bela no"):
        index = await asyncio.to_thread(session.vault.keeper.refresh)
        await asyncio.to_thread(search, index, SearchRequest(query, "name"))
        await asyncio.to_thread(search, index, SearchRequest(query, "content"))


async def _idle(found: dict[str, float], session: Any) -> None:
    await _indexed(session)
    await asyncio.sleep(2.0)
    before = time.process_time()
    await asyncio.sleep(IDLE_SECONDS)
    found["idle"] = (time.process_time() - before) / IDLE_SECONDS


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_run(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])))))
