from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from obsidian_agent.obsidian import watcher
from obsidian_agent.obsidian.companion_client import LiveContext
from obsidian_agent.obsidian.live import Obsidian
from obsidian_agent.obsidian.watcher import Watcher
from obsidian_stand_in import StandIn


def until(true: Callable[[], object]) -> None:
    end = time.monotonic() + 15
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture
def seen() -> list[LiveContext | None]:
    return []


@pytest.fixture
def watching(
    obsidian: Obsidian, seen: list[LiveContext | None], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Watcher]:
    monkeypatch.setattr(watcher, "RETRY_SECONDS", 0.05)
    started = Watcher(lambda: obsidian, seen.append)
    yield started
    started.stop()


def test_what_happens_is_told_and_that_obsidian_went_and_came(
    running: StandIn, watching: Watcher, seen: list[LiveContext | None], folder: Path
) -> None:
    watching.set_active(True)
    until(lambda: seen)
    (folder / "A.md").write_text("a")
    running.open_note("A.md")
    running.bump()
    until(lambda: seen[-1] is not None and seen[-1].active == "A.md")
    running.companion = False
    running.bump()
    until(lambda: seen[-1] is None)
    running.companion = True
    until(lambda: seen[-1] is not None)


def test_an_obsidian_that_serves_one_request_at_a_time_is_asked_now_and_then(
    running: StandIn,
    watching: Watcher,
    seen: list[LiveContext | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watcher, "POLL_SECONDS", 0.05)
    one = threading.Lock()

    def answer(argv: list[str]) -> bytes:
        with one:
            return running.answer(argv).encode()

    running.raw = answer
    watching.set_active(True)
    until(lambda: running.asked.count("context") > 5)
    assert running.asked.count("watch") == 1
    running.active = "B.md"
    until(lambda: seen[-1] is not None and seen[-1].active == "B.md")


def test_nothing_is_asked_before_somebody_looks(running: StandIn, watching: Watcher) -> None:
    time.sleep(0.2)
    watching.set_active(False)
    assert running.asked == []
