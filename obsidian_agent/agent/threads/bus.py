"""What happens in threads, each with the thread it belongs to, and the bus on which front ends hear of it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Literal

from obsidian_agent.agent.events import AgentEvent


@dataclass(frozen=True, slots=True)
class Happened:
    """An event of a thread's turn."""

    thread_id: str
    event: AgentEvent


@dataclass(frozen=True, slots=True)
class Retitled:
    """A thread has another title."""

    thread_id: str
    title: str


How = Literal["completed", "cancelled", "failed"]


@dataclass(frozen=True, slots=True)
class Ended:
    """A thread's turn is over, and everything of it is saved."""

    thread_id: str
    how: How


ThreadEvent = Happened | Retitled | Ended


@dataclass(slots=True)
class Bus:
    """Hands everything that happens to everybody who listens, in order. For one event loop."""

    _listeners: list[asyncio.Queue[ThreadEvent]] = field(default_factory=list)

    def publish(self, happening: ThreadEvent) -> None:
        """Tell all listeners."""
        for listener in self._listeners:
            listener.put_nowait(happening)

    @contextlib.contextmanager
    def listen(self, thread_id: str | None = None) -> Iterator[AsyncIterator[ThreadEvent]]:
        """Everything from now on (of one thread, or of all), until the block ends."""
        queue: asyncio.Queue[ThreadEvent] = asyncio.Queue()
        self._listeners.append(queue)
        try:
            yield _from(queue, thread_id)
        finally:
            self._listeners.remove(queue)


async def _from(queue: asyncio.Queue[ThreadEvent], thread_id: str | None) -> AsyncIterator[ThreadEvent]:
    while True:
        happening = await queue.get()
        if thread_id is None or happening.thread_id == thread_id:
            yield happening
