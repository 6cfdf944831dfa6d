"""Which thread is on the screen. Turns begin in it and go on in the background when another one is shown; nothing of them mixes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from obsidian_agent.dataclass import dataclass

if TYPE_CHECKING:
    from obsidian_agent.agent.events import AgentEvent, ExecutionResult
    from obsidian_agent.agent.privacy.consent import ShareDecision, ShareRequest
    from obsidian_agent.errors import Problem
    from obsidian_agent.plan.model import ActionPlan
    from obsidian_agent.plan.result import Preview
    from obsidian_agent.threads.manager import ActiveThread, ThreadEvent, ThreadManager, TurnEnd
    from obsidian_agent.tui.backend import Backend

Ask = Callable[["ShareRequest", str], Awaitable["ShareDecision"]]
"""Asks the person about sharing; the text names the conversation when it is not the one on the screen."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Something happened in a thread that is not on the screen: its turn ended, or a plan waits there."""

    thread_id: str
    title: str
    how: TurnEnd | None = None
    preview: Preview | None = None
    plan: ActionPlan | None = None


class CurrentThread:
    """The thread on the screen, and what happens in the others."""

    def __init__(self, backend: Backend, ask: Ask) -> None:
        self._backend = backend
        self._ask = ask
        self.id: str | None = None
        """The id of the thread on the screen; None before its first message."""
        self.model: str | None = None
        """The model that new threads begin with; None: the one of the settings."""

    @property
    def _threads(self) -> ThreadManager:
        return self._backend.parts.threads

    @property
    def chat(self) -> ActiveThread | None:
        """The thread on the screen, when there is one. May read its file."""
        return self._threads.open(self.id) if self.id is not None else None

    @property
    def chosen_model(self) -> str | None:
        """The model that this thread asks; None: the one of the settings. May read its file."""
        chat = self.chat
        return chat.state.model if chat is not None else self.model

    @property
    def title(self) -> str:
        """Its title; "" for a new one."""
        chat = self.chat
        return chat.state.title if chat is not None and chat.state.titled_by != "time" else ""

    async def turn(self, message: str) -> AsyncIterator[AgentEvent]:
        """A message of the person in this thread; a new one begins with the first message."""
        thread_id = self.id
        if thread_id is None:
            thread_id = self.id = (await asyncio.to_thread(self._threads.create, self.model)).id
        else:
            await asyncio.to_thread(self._threads.open, thread_id)
        with self._threads.bus.subscribe(thread_id) as happenings:
            self._threads.start(thread_id, message, self._approve)
            async for event in _events(happenings):
                yield event

    async def follow(self) -> AsyncIterator[AgentEvent]:
        """The rest of the turn that goes on in this thread."""
        chat = self.chat
        if chat is None:
            return
        with self._threads.bus.subscribe(chat.id) as happenings:
            if chat.running:
                async for event in _events(happenings):
                    yield event

    def cancel(self) -> None:
        """Stop the turn of this thread; what was said so far is kept, marked."""
        if self.id is not None:
            self._threads.cancel(self.id)

    async def elsewhere(self) -> AsyncIterator[Elsewhere]:
        """What happens in the other threads, for as long as the app runs."""
        from obsidian_agent.agent.events import PlanReady, PreviewReady
        from obsidian_agent.threads.manager import ThreadTurnEnded, ThreadTurnEvent

        plans: dict[str, ActionPlan] = {}
        with self._threads.bus.subscribe() as happenings:
            async for happening in happenings:
                thread_id = happening.thread_id
                match happening:
                    case ThreadTurnEvent(event=PlanReady(plan)):
                        plans[thread_id] = plan
                    case ThreadTurnEvent(event=PreviewReady(preview)) if thread_id != self.id:
                        yield Elsewhere(
                            thread_id,
                            self._title(thread_id),
                            preview=preview,
                            plan=plans.pop(thread_id, None),
                        )
                    case ThreadTurnEnded(how=how) if thread_id != self.id:
                        yield Elsewhere(thread_id, self._title(thread_id), how)
                    case _:
                        continue

    def note_run(self, goal: str, result: ExecutionResult, unlike: Sequence[Problem]) -> bool:
        """Keep what came of the thread's plan with it; says whether a repair may be asked for. May block."""
        from obsidian_agent.threads.recorder import TurnState

        return (
            self.id is not None
            and self._threads.record_run(self.id, goal, result, unlike) is TurnState.RETRYING
        )

    def _title(self, thread_id: str) -> str:
        return self._threads.open(thread_id).state.title

    async def _approve(self, thread_id: str, request: ShareRequest) -> ShareDecision:
        return await self._ask(request, "" if thread_id == self.id else self._title(thread_id))


async def _events(happenings: AsyncIterator[ThreadEvent]) -> AsyncIterator[AgentEvent]:
    """The events of one turn."""
    from obsidian_agent.threads.manager import ThreadTurnEnded, ThreadTurnEvent

    async for happening in happenings:
        match happening:
            case ThreadTurnEvent(event=event):
                yield event
            case ThreadTurnEnded():
                return
            case _:
                continue
