"""The delay of a key while a model streams 1,000 tokens a second into 500 messages.

The app runs in a process of its own, without a terminal (Textual's headless driver), on a stored
conversation. A token is four characters.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from bench.table import Row

if TYPE_CHECKING:
    from obsidian_agent.agent.events import AgentEvent

MESSAGES = 500
TOKENS_A_SECOND = 1_000
SECONDS = 10.0
KEY_EVERY = 0.1
PROSE = "The **garden** needs water, see [[Garden]] and `beans`. "
BLOCK = (
    PROSE * 6
    + "\n\n- first point of a list\n- second point, with *words*\n\n"
    + "| what | when |\n|---|---|\n| beans | May |\n\n"
)


def measure(place: Path) -> list[Row]:
    """Rows for a long conversation and a new one."""
    rows: list[Row] = []
    for messages in (0, MESSAGES):
        folder = place / f"answers-{messages}"
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "bench.answers", os.fspath(folder), str(messages)]
        found: dict[str, float] = json.loads(
            subprocess.run(command, capture_output=True, check=True, text=True, timeout=120).stdout
        )
        what = f"{found['rate']:,.0f} tokens/s into {messages} messages"
        rows.append(
            Row(
                what,
                "a key in the message, median",
                f"{found['median'] * 1000:.0f} ms",
                "",
                "",
                None,
                "",
            )
        )
        rows.append(
            Row(
                what,
                "a key in the message, longest",
                f"{found['longest'] * 1000:.0f} ms",
                "",
                "",
                None,
                "<= 100 ms",
            )
        )
        rows.append(
            Row(
                what,
                "conversation on the screen",
                f"{found['open'] * 1000:.0f} ms",
                "",
                "",
                None,
                "",
            )
        )
    return rows


# --- in the app's process ---


class Turns:
    """A session without models that says the same at a steady pace."""

    models = None

    def __init__(self) -> None:
        self.tokens = 0

    async def turn(self, text: str) -> AsyncIterator[AgentEvent]:
        from obsidian_agent.agent.events import Answer, TextDelta, TurnStarted

        yield TurnStarted(text)
        started, said = time.perf_counter(), []
        while (elapsed := time.perf_counter() - started) < SECONDS:
            while self.tokens < elapsed * TOKENS_A_SECOND:
                at = self.tokens * 4 % len(BLOCK)
                said.append(BLOCK[at : at + 4])
                self.tokens += 1
                yield TextDelta(said[-1])
            await asyncio.sleep(0.001)
        yield Answer("".join(said))


async def _run(folder: Path, messages: int) -> dict[str, float]:
    from obsidian_agent.bootstrap import Wiring
    from obsidian_agent.cli.app import opened
    from obsidian_agent.threads.log_store import ThreadStore
    from obsidian_agent.threads.manager import ThreadManager
    from obsidian_agent.tui.app import ObsidianAgentApp
    from obsidian_agent.tui.backend import Backend
    from obsidian_agent.tui.screens.main import MainScreen
    from obsidian_agent.vault.filesystem.store import VaultStore

    turns = Turns()
    chats = ThreadManager(ThreadStore(folder / "threads", lambda: datetime.now(UTC)), turns)  # type: ignore[arg-type]
    thread = chats.create()
    for number in range(messages // 2):
        thread.recorder.begin(f"Question {number}")
        thread.recorder.add_entry("model", BLOCK)
    vault = folder / "vault"
    vault.mkdir(exist_ok=True)
    with VaultStore.open(vault) as store:
        parts = opened(Wiring(store, folder / "state"))
        parts = replace(parts, threads=chats, services=replace(parts.services, threads=chats))
        app = ObsidianAgentApp(Backend(store.name, lambda: parts))
        async with app.run_test(size=(120, 40)) as pilot:
            main = app.screen
            assert isinstance(main, MainScreen)
            began = time.perf_counter()
            await main.open_thread(thread.id).wait()
            await pilot.pause()
            to_open = time.perf_counter() - began
            prompt = main.panes.chat.prompt
            prompt.text = "Go on"
            await pilot.press("enter")
            await asyncio.sleep(1.0)
            before = turns.tokens, time.perf_counter()
            waits = []
            while time.perf_counter() - before[1] < SECONDS - 4.5:
                waits.append(await _key(prompt))
                await asyncio.sleep(KEY_EVERY)
            rate = (turns.tokens - before[0]) / (time.perf_counter() - before[1])
            main.action_cancel()
            await pilot.pause()
    return {
        "rate": rate,
        "median": statistics.median(waits),
        "longest": max(waits),
        "open": to_open,
        "keys": len(waits),
    }


async def _key(prompt: Any) -> float:
    """Seconds from a key to the frame that shows it."""
    from textual import events

    drawn, began = asyncio.Event(), time.perf_counter()
    length = len(prompt.text)
    prompt.app.post_message(events.Key("x", "x"))
    while len(prompt.text) == length and time.perf_counter() - began < 5:
        await asyncio.sleep(0.001)
    prompt.call_after_refresh(drawn.set)
    await asyncio.wait_for(drawn.wait(), 5)
    return time.perf_counter() - began


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_run(Path(sys.argv[1]), int(sys.argv[2])))))
