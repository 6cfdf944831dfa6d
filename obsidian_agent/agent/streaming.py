"""Events as an asynchronous iterator.

Functions below `stream` are no iterators: they accept `emit`, await it for each event and return
their result. `stream` runs them in the task that iterates, up to the next requested event.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import types
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import Any

from obsidian_agent.agent.events import AgentEvent, Emit


class _Emitted:
    """An awaitable event.

    Awaiting it yields it to `_next`, past all coroutines in between.
    """

    __slots__ = ("event",)

    def __init__(self, event: AgentEvent) -> None:
        self.event = event

    def __await__(self) -> Generator[Any, None, None]:
        yield self


async def stream(
    work: Callable[[Emit], Coroutine[Any, Any, object]],
) -> AsyncGenerator[AgentEvent, None]:
    """Yield the events that `work(emit)` emits, and raise its exception in their place.

    Closing the iterator cancels `work` where it waits. Only `work` and the coroutines that it
    awaits may await `emit`, not other tasks.
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
                await _next(running, error)  # events emitted during cleanup are dropped
            except asyncio.CancelledError as raised:
                if raised is not cancelled:
                    raise
            error = None


@types.coroutine
def _next(
    running: Coroutine[Any, Any, object], error: BaseException | None
) -> Generator[Any, Any, _Emitted | None]:
    """Run a coroutine up to its next event and return that; return None at its end.

    An `error` is thrown into it first.
    """
    value: Any = None
    while True:
        try:
            waits_for = running.send(value) if error is None else running.throw(error)
        except StopIteration:
            return None
        if isinstance(waits_for, _Emitted):
            return waits_for
        try:
            value, error = (yield waits_for), None
        except BaseException as thrown:
            error = thrown


async def in_thread(
    work: Callable[[Callable[[AgentEvent], None]], None],
    emit: Emit,
    abandoned: threading.Event | None = None,
) -> None:
    """Run `work(report)` in a thread and emit the reported events in order.

    Its exception is raised at the end. Cancelling does not stop the thread, because work that
    writes must finish; it sets `abandoned` for work that only reads.
    """
    loop = asyncio.get_running_loop()
    events: asyncio.Queue[AgentEvent | None] = asyncio.Queue()

    def report(event: AgentEvent | None) -> None:
        loop.call_soon_threadsafe(events.put_nowait, event)

    def run() -> None:
        try:
            work(report)
        finally:
            report(None)

    task = asyncio.ensure_future(asyncio.to_thread(run))
    try:
        while (event := await events.get()) is not None:
            await emit(event)
    finally:
        if abandoned is not None:
            abandoned.set()
        await asyncio.shield(task)
