"""The bridge between the synchronous core and async front ends: run a function in a thread, receive what it emits as it happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

Event = TypeVar("Event")


async def events_of(work: Callable[[Callable[[Event], None]], None]) -> AsyncIterator[Event]:
    """Run `work(emit)` in a thread and yield what it emits, in order. Its exception is raised at the end.

    A consumer that goes away does not stop the thread: work that writes is always let finish.
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[Event | None] = asyncio.Queue()

    def emit(event: Event) -> None:
        loop.call_soon_threadsafe(queue.put_nowait, event)

    def run() -> None:
        try:
            work(emit)
        finally:
            loop.call_soon_threadsafe(queue.put_nowait, None)

    task = asyncio.ensure_future(asyncio.to_thread(run))
    try:
        while (event := await queue.get()) is not None:
            yield event
    finally:
        await asyncio.shield(task)
