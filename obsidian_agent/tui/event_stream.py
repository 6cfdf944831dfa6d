"""A stream of events from the core to the screen, in order and in batches."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, cast

from textual.message import Message

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from obsidian_agent.agent.events import AgentEvent
    from obsidian_agent.plan.result import Preview
    from obsidian_agent.services.plans import ApprovedBy, Plans

BATCH_SECONDS = 0.1
"""Seconds between two batches, each of which is drawn at once."""

EVENTS_PER_YIELD = 64
"""Number of events after which the event loop may run other tasks."""


class EventsArrived(Message):
    """A batch of events of the current turn or run.

    The screen ignores a batch whose `generation` is no longer that of the stream.
    """

    def __init__(self, events: Sequence[AgentEvent], generation: int) -> None:
        super().__init__()
        self.events = tuple(events)
        self.generation = generation


class WorkEnded(Message):
    """The end of the turn, preview or run with this `token`; `cancelled` if it was stopped."""

    def __init__(self, token: int, *, cancelled: bool) -> None:
        super().__init__()
        self.token = token
        self.cancelled = cancelled


def merge_text(events: Sequence[AgentEvent]) -> list[AgentEvent]:
    """Return the events with consecutive text deltas of the same kind joined."""
    from obsidian_agent.agent.events import TextDelta

    joined: list[AgentEvent] = []
    texts: list[str] = []
    for index, event in enumerate(events):
        if not isinstance(event, TextDelta):
            joined.append(event)
            continue
        texts.append(event.text)
        following = events[index + 1] if index + 1 < len(events) else None
        if not (isinstance(following, TextDelta) and following.thinking == event.thinking):
            joined.append(TextDelta("".join(texts), event.thinking))
            texts.clear()
    return joined


class EventStream:
    """Consumes events of the session and passes them to `deliver`, throttled and in order."""

    def __init__(self, deliver: Callable[[Sequence[AgentEvent]], object]) -> None:
        self._deliver = deliver
        self._pending: list[AgentEvent] = []
        self._last_delivery = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._cancel_run: threading.Event | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self._epoch = 0
        """Increased to drop the later events of the current source."""
        self.generation = 0
        """Number of calls of `discard`. Batches delivered before the last call are stale."""

    @property
    def is_writing(self) -> bool:
        """True while a plan is being applied."""
        return self._cancel_run is not None

    async def follow(self, events: AsyncIterator[AgentEvent]) -> None:
        """Deliver the events of a turn, preview or run until it ends.

        An `ObsidianAgentError` becomes a `TurnFailed`. A later call supersedes this one, whose
        remaining events are then dropped.
        """
        from obsidian_agent.agent.events import TurnFailed
        from obsidian_agent.errors import ObsidianAgentError

        self._epoch += 1
        epoch = self._epoch
        self._pending.clear()
        try:
            await self._drain(events, epoch)
        except ObsidianAgentError as error:
            self._collect(TurnFailed(error.problem()), epoch)
        except asyncio.CancelledError:
            self._pending.clear()
            raise
        finally:
            if epoch == self._epoch:
                self._flush()

    def keep_text_only(self) -> None:
        """Deliver the pending text and drop all later events of the turn.

        A plan that arrives after the turn was cancelled must not appear.
        """
        from obsidian_agent.agent.events import TextDelta

        self._pending = [event for event in self._pending if isinstance(event, TextDelta)]
        self._flush()
        self._epoch += 1

    def discard(self) -> None:
        """Drop the pending and all later events of the current turn."""
        self._pending.clear()
        self._epoch += 1
        self.generation += 1

    async def execute(self, plans: Plans, preview: Preview, by: ApprovedBy) -> None:
        """Apply a preview.

        Cancelling the worker that awaits this does not stop the run; `cancel_run` does, after the
        current file.
        """
        cancel = self._cancel_run = threading.Event()
        self._idle.clear()
        await asyncio.shield(self._apply(plans.execute(preview, cancel, by)))

    async def _apply(self, events: AsyncIterator[AgentEvent]) -> None:
        try:
            await self.follow(events)
        finally:
            self._cancel_run = None
            self._idle.set()

    async def wait_until_written(self) -> None:
        """Wait until no plan is being applied."""
        await self._idle.wait()

    def cancel_run(self) -> bool:
        """Ask the run to stop after the current file. Return False if there is nothing to stop."""
        if self._cancel_run is None or self._cancel_run.is_set():
            return False
        self._cancel_run.set()
        return True

    async def _drain(self, events: AsyncIterator[AgentEvent], epoch: int) -> None:
        count = 0
        async with aclosing(cast("AsyncGenerator[AgentEvent]", events)) as source:
            async for event in source:
                self._collect(event, epoch)
                count += 1
                if count % EVENTS_PER_YIELD == 0:
                    await asyncio.sleep(0)

    def _collect(self, event: AgentEvent, epoch: int) -> None:
        if epoch != self._epoch:
            return
        self._pending.append(event)
        wait = BATCH_SECONDS - (time.monotonic() - self._last_delivery)
        if wait <= 0:
            self._flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(wait, self._flush)

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._pending:
            batch, self._pending = self._pending, []
            self._last_delivery = time.monotonic()
            self._deliver(batch)
