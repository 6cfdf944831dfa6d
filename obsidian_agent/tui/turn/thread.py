"""The thread on the screen, and the events of the others.

A turn belongs to the thread in which it started. It continues in the background when the user
switches to another thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from obsidian_agent.agent.events import AgentEvent, ExecutionResult
    from obsidian_agent.agent.privacy.consent import ShareDecision, ShareRequest
    from obsidian_agent.errors import Problem
    from obsidian_agent.plan.model import ActionPlan
    from obsidian_agent.plan.result import Preview
    from obsidian_agent.threads.manager import ActiveThread, ThreadEvent, ThreadManager, TurnEnd
    from obsidian_agent.tui.backend import Backend

Ask = Callable[["ShareRequest", str], Awaitable["ShareDecision"]]
"""Asks the user about sharing. The text is the title of the conversation; "": the current one."""


class OtherThreadEvent(Struct, frozen=True, kw_only=True):
    """The end of a turn, or a plan, in a thread that is not on the screen."""

    thread_id: str
    title: str
    how: TurnEnd | None = None
    preview: Preview | None = None
    plan: ActionPlan | None = None


class CurrentThread:
    """The thread on the screen. Without messages it has no id yet, and no file."""

    def __init__(self, backend: Backend, ask: Ask) -> None:
        self._backend = backend
        self._ask = ask
        self.id: str | None = None
        """The id of the thread on the screen; None before its first message."""
        self.model: str | None = None
        """The model of new threads; None: the one of the settings."""

    @property
    def _threads(self) -> ThreadManager:
        return self._backend.parts.threads

    @property
    def chat(self) -> ActiveThread | None:
        """The thread on the screen, if there is one. May read its file."""
        return self._threads.open(self.id) if self.id is not None else None

    @property
    def chosen_model(self) -> str | None:
        """The model of this thread; None: the one of the settings. May read its file."""
        chat = self.chat
        return chat.state.model if chat is not None else self.model

    @property
    def title(self) -> str:
        """The title of this thread; "" for a new one."""
        chat = self.chat
        if chat is None or chat.state.titled_by == "time":
            return ""
        return chat.state.title

    async def turn(self, message: str) -> AsyncIterator[AgentEvent]:
        """Start a turn with a message of the user, and yield its events. May create the thread."""
        thread_id = self.id
        if thread_id is None:
            thread_id = self.id = (await asyncio.to_thread(self._threads.create, self.model)).id
        else:
            await asyncio.to_thread(self._threads.open, thread_id)
        with self._threads.bus.subscribe(thread_id) as thread_events:
            self._threads.start(thread_id, message, self._approve)
            async for event in _turn_events(thread_events):
                yield event

    async def follow(self) -> AsyncIterator[AgentEvent]:
        """Yield the remaining events of the running turn of this thread."""
        chat = self.chat
        if chat is None:
            return
        with self._threads.bus.subscribe(chat.id) as thread_events:
            if chat.running:
                async for event in _turn_events(thread_events):
                    yield event

    def cancel(self) -> None:
        """Cancel the turn of this thread. The partial answer is stored, marked as such."""
        if self.id is not None:
            self._threads.cancel(self.id)

    async def other_events(self) -> AsyncIterator[OtherThreadEvent]:
        """Yield the events of the other threads, as long as the app runs."""
        from obsidian_agent.agent.events import PlanReady, PreviewReady
        from obsidian_agent.threads.manager import ThreadTurnEnded, ThreadTurnEvent

        plans: dict[str, ActionPlan] = {}
        with self._threads.bus.subscribe() as thread_events:
            async for thread_event in thread_events:
                thread_id = thread_event.thread_id
                match thread_event:
                    case ThreadTurnEvent(event=PlanReady(plan)):
                        plans[thread_id] = plan
                    case ThreadTurnEvent(event=PreviewReady(preview)) if thread_id != self.id:
                        yield OtherThreadEvent(
                            thread_id=thread_id,
                            title=self._title(thread_id),
                            preview=preview,
                            plan=plans.pop(thread_id, None),
                        )
                    case ThreadTurnEnded(how=how) if thread_id != self.id:
                        yield OtherThreadEvent(
                            thread_id=thread_id, title=self._title(thread_id), how=how
                        )
                    case _:
                        continue

    def record_run(
        self, goal: str, result: ExecutionResult, differences: Sequence[Problem]
    ) -> bool:
        """Record the run of the thread's plan, with its `differences` from the preview.

        Return True if the model can be asked for a repair. May block.
        """
        return self.id is not None and self._threads.record_run(self.id, goal, result, differences)

    def _title(self, thread_id: str) -> str:
        return self._threads.open(thread_id).state.title

    async def _approve(self, thread_id: str, request: ShareRequest) -> ShareDecision:
        return await self._ask(request, "" if thread_id == self.id else self._title(thread_id))


async def _turn_events(thread_events: AsyncIterator[ThreadEvent]) -> AsyncIterator[AgentEvent]:
    """Yield the events of the thread's turn until it ends."""
    from obsidian_agent.threads.manager import ThreadTurnEnded, ThreadTurnEvent

    async for thread_event in thread_events:
        match thread_event:
            case ThreadTurnEvent(event=event):
                yield event
            case ThreadTurnEnded():
                return
            case _:
                continue
