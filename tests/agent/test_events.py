"""Events from the code that emits them to the code that iterates over them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from obsidian_agent.agent.events import (
    AgentEvent,
    Emit,
    TextDelta,
)
from obsidian_agent.agent.findings import MAX_LINES, findings
from obsidian_agent.agent.streaming import in_thread, stream
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.plan.result import Instance, Preview
from obsidian_agent.tools.core.tool import Risk, RunContext
from tui.samples import NOW


def texts(events: list[AgentEvent]) -> list[str]:
    return [event.text for event in events if isinstance(event, TextDelta)]


async def test_events_come_in_order_through_any_depth_and_across_waits() -> None:
    async def deep(emit: Emit, left: int) -> int:
        await emit(TextDelta(f"down {left}"))
        await asyncio.sleep(0)
        below = await deep(emit, left - 1) if left else 0
        await emit(TextDelta(f"up {left}"))
        return below + 1

    assert texts([event async for event in stream(lambda emit: deep(emit, 2))]) == [
        "down 2",
        "down 1",
        "down 0",
        "up 0",
        "up 1",
        "up 2",
    ]


async def test_it_runs_only_as_far_as_somebody_asks() -> None:
    done: list[int] = []

    async def work(emit: Emit) -> None:
        for number in range(3):
            done.append(number)
            await emit(TextDelta(str(number)))

    events = stream(work)
    assert not done
    await anext(events)
    assert done == [0]
    await events.aclose()
    assert done == [0]


@pytest.mark.parametrize("after", [0, 1, 2])
async def test_closing_cancels_it_where_it_is_and_lets_it_clean_up(after: int) -> None:
    ended: list[str] = []

    async def work(emit: Emit) -> None:
        try:
            await emit(TextDelta("one"))
            await emit(TextDelta("two"))
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            await emit(TextDelta("not received"))
            ended.append("clean")

    events = stream(work)
    for _ in range(after):
        await anext(events)
    await events.aclose()
    assert ended == (["clean"] if after else [])


async def test_who_waits_can_be_cancelled() -> None:
    ended = asyncio.Event()

    async def work(emit: Emit) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def listen() -> None:
        async for _ in stream(work):
            pass

    task = asyncio.ensure_future(listen())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


async def test_an_error_is_raised_after_what_came_before_it() -> None:
    async def work(emit: Emit) -> None:
        await emit(TextDelta("one"))
        raise ValueError("no")

    events = stream(work)
    assert texts([await anext(events)]) == ["one"]
    with pytest.raises(ValueError, match="no"):
        await anext(events)


async def test_a_thread_tells_what_happens_and_is_let_finish() -> None:
    finished = threading.Event()

    def work(tell: Callable[[AgentEvent], None]) -> None:
        tell(TextDelta("one"))
        time.sleep(0.05)
        tell(TextDelta("two"))
        finished.set()

    events = stream(lambda emit: in_thread(work, emit))
    assert texts([await anext(events)]) == ["one"]
    await events.aclose()
    assert finished.is_set(), "work that writes is not left half done"


# --- what the steps found ---


def told(outputs: dict[str, Any], risk: Risk = Risk.READ_ONLY) -> list[tuple[str, list[str]]]:
    steps = [{"id": name, "tool": "vault.query", "args": {}} for name in outputs]
    plan = ActionPlan.model_validate(
        {"version": "1.0", "goal": "Look", "riskLevel": "read-only", "steps": steps}
    )
    first = next(iter(outputs))
    instances = tuple(
        Instance(
            name=name,
            step_id=name,
            index=None,
            tool="vault.query",
            args={},
            state="ready",
            depends_on=frozenset({first} - {name}),
        )
        for name in outputs
    )
    return findings(
        Preview(plan=plan, context=RunContext("V", NOW), risk=risk, instances=instances), outputs
    )


def test_outputs_read_as_lists_and_fields() -> None:
    value = {
        "files": [{"path": "A.md", "tags": ["x", "y"]}, {"path": "B.md", "tags": []}],
        "total": 2,
        "more": False,
        "text": "one\ntwo",
    }
    lines = [
        "files:",
        "  - path: A.md",
        "    tags:",
        "      - x",
        "      - y",
        "  - path: B.md",
        "    tags: nothing",
        "total: 2",
        "more: no",
    ]
    assert told({"find": value}) == [("vault.query", [*lines, "text:", "  one", "  two"])]


def test_only_last_steps_of_plans_that_only_read_are_told_and_long_lists_counted() -> None:
    assert told({"first": ["a"], "last": []}) == [("vault.query", ["nothing"])]
    assert told({"find": ["a"]}, Risk.WRITES) == []
    (_, lines), *_ = told({"find": list(range(1000))})
    assert len(lines) == MAX_LINES + 1
    assert lines[-1] == "… and 800 more lines."
