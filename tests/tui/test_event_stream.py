from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from faults import held_before
from obsidian_agent.agent.events import AgentEvent, RunFinished, TextDelta, TurnFailed
from obsidian_agent.bootstrap import build_session
from obsidian_agent.errors import ProviderError
from obsidian_agent.tui.event_stream import EventStream
from tui.driving import Model, wired
from tui.samples import PROJECTS


class Screen:
    """Collects batches."""

    def __init__(self) -> None:
        self.batches: list[Sequence[AgentEvent]] = []

    @property
    def events(self) -> list[AgentEvent]:
        return [event for batch in self.batches for event in batch]


async def texts(
    count: int, *, pause: float | None = None, error: Exception | None = None
) -> AsyncIterator[AgentEvent]:
    for number in range(count):
        if pause is not None:
            await asyncio.sleep(pause)
        yield TextDelta(str(number))
    if error is not None:
        raise error


async def test_events_arrive_in_order_and_in_few_batches() -> None:
    screen = Screen()
    await EventStream(screen.batches.append).follow(texts(1000))
    assert [event.text for event in screen.events if isinstance(event, TextDelta)] == [
        str(number) for number in range(1000)
    ]
    assert len(screen.batches) < 50


async def test_a_fast_source_leaves_the_event_loop_time_to_breathe() -> None:
    screen = Screen()
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    ticker = asyncio.create_task(tick())
    await EventStream(screen.batches.append).follow(texts(1000))
    ticker.cancel()
    assert ticks >= 10


async def test_the_first_event_is_not_held_back() -> None:
    screen = Screen()
    await EventStream(screen.batches.append).follow(texts(20))
    assert len(screen.batches[0]) == 1


async def test_an_error_of_the_core_ends_the_turn_as_an_event() -> None:
    screen = Screen()
    await EventStream(screen.batches.append).follow(texts(1, error=ProviderError("No answer.")))
    assert isinstance(screen.events[-1], TurnFailed)


async def test_any_other_error_is_raised_after_what_came_before_is_shown() -> None:
    screen = Screen()
    with pytest.raises(ValueError, match="bug"):
        await EventStream(screen.batches.append).follow(texts(3, error=ValueError("bug")))
    assert len(screen.events) == 3


async def test_a_later_turn_silences_an_earlier_one() -> None:
    screen = Screen()
    stream = EventStream(screen.batches.append)
    earlier = asyncio.create_task(stream.follow(texts(50, pause=0.002)))
    await asyncio.sleep(0.01)
    before = len(screen.events)
    await stream.follow(texts(3))
    await earlier
    assert [event.text for event in screen.events[before:] if isinstance(event, TextDelta)][
        -3:
    ] == ["0", "1", "2"]
    assert len(screen.events) <= before + 3


async def test_nothing_that_comes_after_giving_up_is_shown() -> None:
    screen = Screen()
    stream = EventStream(screen.batches.append)
    go = asyncio.Event()

    async def slow() -> AsyncIterator[AgentEvent]:
        yield TextDelta("said")
        await go.wait()
        yield TextDelta("late")

    turn = asyncio.create_task(stream.follow(slow()))
    for _ in range(10):
        await asyncio.sleep(0)
    stream.keep_text_only()
    go.set()
    await turn
    assert screen.events == [TextDelta("said")]


async def test_cancelling_the_worker_does_not_stop_a_write_but_cancel_run_does(
    tmp_path: Path,
) -> None:
    screen = Screen()
    stream = EventStream(screen.batches.append)
    assert stream.cancel_run() is False
    with wired(tmp_path, Model()) as wiring, held_before("Projects/Kitchen.md") as held:
        plans = build_session(wiring).plans
        preview = plans.dry_run(PROJECTS)
        task = asyncio.create_task(stream.execute(plans, preview, "person"))
        await asyncio.to_thread(held.reached.wait)
        assert stream.is_writing
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert stream.is_writing
        assert stream.cancel_run() is True
        assert stream.cancel_run() is False
        held.go.set()
        await stream.wait_until_written()
    finished = screen.events[-1]
    assert isinstance(finished, RunFinished)
    assert finished.result.status == "cancelled"
    assert (tmp_path / "Vault/Projects/Kitchen.md").exists()
    assert not (tmp_path / "Vault/Projects/Sourdough.md").exists()
