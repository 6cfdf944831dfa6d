"""The events of a turn or a run: one sink that everything below reports to, and what front ends iterate over.

Below `stream` there are no iterators: a function that takes `emit` awaits it for each event and returns what it came to. `stream` runs it only
as far as the next event that somebody asks for, in the task that asks.
"""

from __future__ import annotations

import asyncio
import inspect
import types
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from typing import Any

from obsidian_agent.agent.events import AgentEvent

Emit = Callable[[AgentEvent], Awaitable[None]]
"""Tells of an event; returns when it was taken."""


class _Emitted:
    """An event on its way up. Awaited, it hands itself to `_next`, through every function between them at once."""

    __slots__ = ("event",)

    def __init__(self, event: AgentEvent) -> None:
        self.event = event

    def __await__(self) -> Generator[Any, None, None]:
        yield self


async def stream(work: Callable[[Emit], Coroutine[Any, Any, object]]) -> AsyncGenerator[AgentEvent, None]:
    """The events that `work(emit)` emits; its exception is raised where it came. Closing the iterator cancels it, at the event it waits at.

    `emit` may only be awaited by `work` itself and what it awaits, not by other tasks.
    """
    running = work(_Emitted)
    try:
        while (emitted := await _next(running, None)) is not None:
            yield emitted.event
    finally:
        cancelled = asyncio.CancelledError()
        error: BaseException | None = cancelled
        while inspect.getcoroutinestate(running) != inspect.CORO_CLOSED:
            try:
                await _next(running, error)  # what it emits while it ends, nobody hears
            except asyncio.CancelledError as raised:
                if raised is not cancelled:
                    raise
            error = None


@types.coroutine
def _next(running: Coroutine[Any, Any, object], error: BaseException | None) -> Generator[Any, Any, _Emitted | None]:
    """Run a coroutine, from an exception thrown into it if there is one, up to its next event; None at its end."""
    given: Any = None
    while True:
        try:
            waits_for = running.send(given) if error is None else running.throw(error)
        except StopIteration:
            return None
        if isinstance(waits_for, _Emitted):
            return waits_for
        try:
            given, error = (yield waits_for), None
        except BaseException as thrown:
            error = thrown


async def in_thread(work: Callable[[Callable[[AgentEvent], None]], None], emit: Emit) -> None:
    """Run `work(tell)` in a thread and emit what it tells, in order. Its exception is raised at the end.

    Who goes away does not stop the thread: work that writes is always let finish.
    """
    loop = asyncio.get_running_loop()
    told: asyncio.Queue[AgentEvent | None] = asyncio.Queue()

    def tell(event: AgentEvent | None) -> None:
        loop.call_soon_threadsafe(told.put_nowait, event)

    def run() -> None:
        try:
            work(tell)
        finally:
            tell(None)

    task = asyncio.ensure_future(asyncio.to_thread(run))
    try:
        while (event := await told.get()) is not None:
            await emit(event)
    finally:
        await asyncio.shield(task)
