"""The time that our stack adds to a model's first token, and to the event loop while it streams."""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import httpx

from bench.table import Row
from obsidian_agent.agent.events import AgentEvent, TextDelta
from obsidian_agent.agent.privacy.consent import refuse_all
from obsidian_agent.bootstrap import Wiring, build_session, build_threads
from obsidian_agent.config.live import LiveSettings
from obsidian_agent.config.settings import Settings
from obsidian_agent.threads.manager import ThreadManager, ThreadTurnEnded, ThreadTurnEvent
from obsidian_agent.vault.filesystem.store import VaultStore

DELAY = 0.05
"""Seconds that the service takes before its first token."""
NOTES = 1_000
MESSAGES = 500
PER_SECOND = 1_000
WARM = 5


def measure(place: Path, rounds: int = 40) -> list[Row]:
    """Measure first tokens without and with 500 messages, and the loop's worst pause.

    The pause is at 1,000 tokens a second.
    """
    vault = place / "stream-vault"
    for number in range(NOTES):
        note = vault / f"Folder {number % 20}" / f"Note {number}.md"
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(
            f"# Note {number}\n\nWords about topic {number % 97} and the garden.\n" * 5,
            encoding="utf-8",
        )
    rows = []
    with _service(DELAY, 20, 10_000) as url:
        bare = _bare(url, rounds)
        for what, messages in (
            ("new conversation", 0),
            (f"conversation of {MESSAGES} messages", MESSAGES),
        ):
            ours = asyncio.run(_first_tokens(vault, place / "stream-state", url, messages, rounds))
            rows.append(
                Row(
                    f"first token, {what}",
                    "added to the service's own time",
                    _ms(ours),
                    "httpx alone",
                    _ms(bare),
                    None,
                    "< 30 ms at the median",
                )
            )
    with _service(DELAY, 3 * PER_SECOND, PER_SECOND) as url:
        pauses, rate = asyncio.run(_pauses(vault, place / "stream-state", url))
    rows.append(
        Row(
            f"{PER_SECOND:,} tokens/s",
            "worst pause of the event loop",
            f"{max(pauses) * 1000:.0f} ms",
            "",
            "",
            None,
            "< 100 ms",
        )
    )
    rows.append(
        Row(
            f"{PER_SECOND:,} tokens/s",
            "tokens that arrive a second",
            f"{rate:,.0f}",
            "",
            "",
            None,
            f">= {PER_SECOND * 0.95:,.0f}",
        )
    )
    return rows


def _chats(vault: Path, state: Path, url: str) -> ThreadManager:
    settings = LiveSettings(
        current=Settings(context_window=200_000, planning="plan", model="custom/m", base_url=url)
    )
    wiring = Wiring(VaultStore.open(vault), state, settings=settings)
    return build_threads(wiring, build_session(wiring))


async def _first_tokens(
    vault: Path, state: Path, url: str, messages: int, rounds: int
) -> list[float]:
    chats = _chats(vault, state, url)
    found = []
    for number in range(WARM + rounds):
        thread = _thread(chats, messages)
        chats.open(thread)
        begun = time.perf_counter()
        async with contextlib.aclosing(
            _asked(chats, thread, f"What about the garden and topic {number}?")
        ) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    found.append(time.perf_counter() - begun - DELAY)
                    break
    return found[WARM:]


async def _pauses(vault: Path, state: Path, url: str) -> tuple[list[float], float]:
    chats = _chats(vault, state, url)
    thread = _thread(chats, MESSAGES)
    pauses: list[float] = []

    async def tick() -> None:
        while True:
            begun = time.perf_counter()
            await asyncio.sleep(0.005)
            pauses.append(time.perf_counter() - begun - 0.005)

    ticking = asyncio.create_task(tick())
    begun, tokens = 0.0, 0
    async for event in _asked(chats, thread, "Talk"):
        if isinstance(event, TextDelta):
            if not tokens:
                pauses.clear()  # the first call of all imports a library
                begun = time.perf_counter()
            tokens += event.text.count(" ")
            ended = time.perf_counter()
    ticking.cancel()
    return pauses, tokens / (ended - begun)


async def _asked(chats: ThreadManager, thread: str, text: str) -> AsyncGenerator[AgentEvent, None]:
    with chats.bus.subscribe(thread) as heard:
        chats.start(thread, text, lambda _, request: refuse_all(request))
        async for each in heard:
            if isinstance(each, ThreadTurnEvent):
                yield each.event
            elif isinstance(each, ThreadTurnEnded):
                return


def _thread(chats: ThreadManager, messages: int) -> str:
    """Create a conversation with so many messages."""
    chat = chats.create()
    recorder = chat.recorder
    for number in range(messages // 2):
        recorder.add({"k": "asked", "text": f"Question {number}?", "time": "t"})
        recorder.add({"k": "message", "role": "user", "text": f"Question {number}?", "time": "t"})
        recorder.add(
            {"k": "message", "role": "assistant", "text": f"Answer {number}. " * 10, "time": "t"}
        )
    now, chats.clock = chats.clock, lambda: chat.used_at + 10_000
    chats.evict_idle()  # so that it is read back, as after a restart
    chats.clock = now
    return chat.id


def _bare(url: str, rounds: int) -> list[float]:
    found = []
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "What?"}]}
    for _ in range(WARM + rounds):
        with httpx.Client() as client:
            begun = time.perf_counter()
            with client.stream("POST", f"{url}/chat/completions", json=body) as response:
                next(line for line in response.iter_lines() if line)
            found.append(time.perf_counter() - begun - DELAY)
    return found[WARM:]


@contextlib.contextmanager
def _service(delay: float, tokens: int, per_second: float) -> Iterator[str]:
    arguments = [
        sys.executable,
        "-m",
        "bench.model_server",
        str(delay),
        str(tokens),
        str(per_second),
    ]
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
        process.kill()


def _ms(values: list[float]) -> str:
    ordered = sorted(values)
    slow = ordered[int(0.95 * len(ordered))]
    return f"{statistics.median(values) * 1000:.1f} ms (p95 {slow * 1000:.1f})"
