"""Work in an event loop of its own, in a thread: client libraries block theirs, and the loop that draws only receives finished items."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Generic, TypeVar

from obsidian_agent.dataclass import dataclass, field

Item = TypeVar("Item")

LONGEST_GOODBYE = 1.0
"""Seconds that closing waits for the generator's own clean-up; a thread in the middle of an import is not waited for any longer."""


@dataclass(frozen=True, slots=True)
class _Ended:
    failure: Exception | None


@dataclass(slots=True)
class _Worker(Generic[Item]):
    """The thread's side. `deliver` may be called from it at any time."""

    make: Callable[[], AsyncGenerator[Item, None]]
    deliver: Callable[[Item | _Ended], None]
    closing: threading.Event = field(default_factory=threading.Event)
    loop: asyncio.AbstractEventLoop | None = None
    task: asyncio.Task[None] | None = None

    def run(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(self._pump())

    async def _pump(self) -> None:
        self.loop, self.task = asyncio.get_running_loop(), asyncio.current_task()
        failure: Exception | None = None
        try:
            # Set first, looked at second; `cancel` does it the other way round, so one of both sees the other.
            if not self.closing.is_set():
                async with contextlib.aclosing(self.make()) as items:
                    async for item in items:
                        self.deliver(item)
        except Exception as error:
            failure = error
        finally:
            self.deliver(_Ended(failure))

    def cancel(self) -> None:
        self.closing.set()
        if self.loop is not None and self.task is not None:
            with contextlib.suppress(RuntimeError):  # the loop closed in the meantime
                self.loop.call_soon_threadsafe(self.task.cancel)


async def value_in_own_loop(make: Callable[[], Awaitable[Item]]) -> Item:
    """What the awaitable made by `make` comes to, worked on in a loop of its own."""

    async def once() -> AsyncGenerator[Item, None]:
        yield await make()

    async with contextlib.aclosing(in_own_loop(once)) as values:
        return await anext(values)


async def in_own_loop(make: Callable[[], AsyncGenerator[Item, None]]) -> AsyncGenerator[Item, None]:
    """Yield what the generator made by `make` yields. Its exception is raised here; closing this one cancels and closes that one."""
    home = asyncio.get_running_loop()
    items: asyncio.Queue[Item | _Ended] = asyncio.Queue()
    ended = asyncio.Event()

    def receive(item: Item | _Ended) -> None:
        if isinstance(item, _Ended):
            ended.set()
        items.put_nowait(item)

    def deliver(item: Item | _Ended) -> None:
        with contextlib.suppress(RuntimeError):  # nobody is listening any more
            home.call_soon_threadsafe(receive, item)

    worker = _Worker(make, deliver)
    threading.Thread(target=worker.run, name="model", daemon=True).start()
    try:
        while not isinstance(item := await items.get(), _Ended):
            yield item
        if item.failure is not None:
            raise item.failure
    finally:
        if not ended.is_set():
            worker.cancel()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LONGEST_GOODBYE):
                    await ended.wait()
