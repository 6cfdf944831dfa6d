"""Events as an asynchronous iterator.

Functions below `stream` are not iterators: they accept `emit`, await it for each event and return
their result. `stream` runs them in the task that iterates, up to the next requested event.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
import time
import types
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import Any, Final

from obsidian_agent.agent.events import AgentEvent, Emit

BATCH_SECONDS: Final = 0.05
"""Seconds between two batches of the events of a thread."""
ASK_SECONDS: Final = 0.005
"""Seconds after which a thread asks again whether the event loop is busy."""
LONGEST_WAY: Final = 0.1
"""Seconds that a thread waits at most for a busy event loop, at each event."""


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
    reports = _Reports()

    def run() -> None:
        try:
            work(reports.add)
        finally:
            reports.end()

    task = asyncio.ensure_future(asyncio.to_thread(run))
    try:
        while batch := await reports.next():
            for event in batch:
                await emit(event)
    finally:
        if abandoned is not None:
            abandoned.set()
        await asyncio.shield(task)


class _Reports:
    """The events of a thread, which the event loop takes in batches.

    A thread that woke the loop for each event would leave it no time for keys: after each wait the
    loop needs Python's lock, which a busy thread keeps for several milliseconds.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._events: deque[AgentEvent] = deque()
        self._arrived = asyncio.Event()
        self._ended = asyncio.Event()
        self._is_waking = False
        self._answered = threading.Event()
        self._answered.set()
        self._asked_at = 0.0
        """When the thread asked the loop last whether it is busy."""
        self._due = 0.0
        """The time of the loop at which the next batch may be taken."""

    def add(self, event: AgentEvent) -> None:
        """Add an event, from the thread."""
        self._events.append(event)
        if not self._is_waking:
            self._is_waking = True
            self._loop.call_soon_threadsafe(self._arrived.set)
        self._give_way()

    def _give_way(self) -> None:
        """Wait, in the thread, while the loop is busy.

        Otherwise each of them has Python's lock half of the time, and a key takes twice as long.
        """
        if not self._answered.is_set():
            self._answered.wait(LONGEST_WAY)
        elif time.monotonic() - self._asked_at > ASK_SECONDS:
            self._answered.clear()
            self._asked_at = time.monotonic()
            self._loop.call_soon_threadsafe(self._answered.set)

    def end(self) -> None:
        """Note, from the thread, that no other event follows."""
        self._loop.call_soon_threadsafe(self._ended.set)
        self._loop.call_soon_threadsafe(self._arrived.set)

    async def next(self) -> list[AgentEvent]:
        """Return the next events, in order; none at the end."""
        while not self._events and not self._ended.is_set():
            await self._arrived.wait()
            self._arrived.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(self._due):
                await self._ended.wait()
        self._due = self._loop.time() + BATCH_SECONDS
        self._is_waking = False  # before the events are taken: later ones wake the loop again
        return [self._events.popleft() for _ in range(len(self._events))]
