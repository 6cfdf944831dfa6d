"""Which conversation is on the screen. Turns begin in it and go on in the background when another one is shown; nothing of them mixes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from obsidian_agent.agent.events import AgentEvent, ExecutionResult
    from obsidian_agent.agent.privacy.consent import ShareDecision, ShareRequest
    from obsidian_agent.agent.threads.bus import How, ThreadEvent
    from obsidian_agent.agent.threads.manager import ActiveThread, ThreadManager
    from obsidian_agent.errors import Problem
    from obsidian_agent.plan.model import ActionPlan
    from obsidian_agent.plan.result import Preview
    from obsidian_agent.tui.bridge import Bridge

Ask = Callable[["ShareRequest", str], Awaitable["ShareDecision"]]
"""Asks the person about sharing; the text names the conversation when it is not the one on the screen."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Something happened in a conversation that is not on the screen: its turn ended, or a plan waits there."""

    thread_id: str
    title: str
    how: How | None = None
    preview: Preview | None = None
    plan: ActionPlan | None = None


class Talk:
    """The current conversation; without `chats` there is only the session's one, which is not kept."""

    def __init__(self, bridge: Bridge, chats: ThreadManager | None, ask: Ask) -> None:
        self._bridge = bridge
        self.chats = chats
        self._ask = ask
        self.current: str | None = None
        """The id of the conversation on the screen; None before its first message."""
        self.model: str | None = None
        """The model that new conversations begin with; None: the one of the settings."""

    @property
    def chat(self) -> ActiveThread | None:
        """The conversation on the screen, when there is one. May read its file."""
        return self.chats.open(self.current) if self.chats is not None and self.current is not None else None

    @property
    def model_here(self) -> str | None:
        """The model that the conversation on the screen asks; None: the one of the settings. May read its file."""
        chat = self.chat
        return chat.state.model if chat is not None else self.model

    @property
    def title(self) -> str:
        """Its title; "" for a new one."""
        chat = self.chat
        return chat.state.title if chat is not None and chat.state.titled_by != "time" else ""

    async def turn(self, message: str) -> AsyncIterator[AgentEvent]:
        """A message of the person in the current conversation; a new one begins with the first message."""
        chats = self.chats
        if chats is None:
            events = cast("AsyncGenerator[AgentEvent, None]", self._bridge.session.turn(message, self._ask_here))
            async with aclosing(events):
                async for event in events:
                    yield event
            return
        thread_id = self.current
        if thread_id is None:
            thread_id = self.current = (await self._bridge.call(chats.create, self.model)).id
        else:
            await self._bridge.call(chats.open, thread_id)
        with chats.bus.listen(thread_id) as happenings:
            chats.start(thread_id, message, self._ask_in)
            async for event in _events(happenings):
                yield event

    async def follow(self) -> AsyncIterator[AgentEvent]:
        """The rest of the turn that goes on in the current conversation."""
        chat, chats = self.chat, self.chats
        if chat is None or chats is None:
            return
        with chats.bus.listen(chat.id) as happenings:
            if chat.running:
                async for event in _events(happenings):
                    yield event

    def cancel(self) -> None:
        """Stop the turn of the current conversation; what was said so far is kept, marked."""
        if self.chats is not None and self.current is not None:
            self.chats.cancel(self.current)

    async def elsewhere(self) -> AsyncIterator[Elsewhere]:
        """What happens in the other conversations, for as long as the app runs."""
        from obsidian_agent.agent.events import PlanReady, PreviewReady
        from obsidian_agent.agent.threads.bus import Ended, Happened

        chats = self.chats
        if chats is None:
            return
        plans: dict[str, ActionPlan] = {}
        with chats.bus.listen() as happenings:
            async for happening in happenings:
                thread_id = happening.thread_id
                match happening:
                    case Happened(event=PlanReady(plan)):
                        plans[thread_id] = plan
                    case Happened(event=PreviewReady(preview)) if thread_id != self.current:
                        yield Elsewhere(thread_id, self._title(thread_id), preview=preview, plan=plans.pop(thread_id, None))
                    case Ended(how=how) if thread_id != self.current:
                        yield Elsewhere(thread_id, self._title(thread_id), how)
                    case _:
                        continue

    def ran(self, goal: str, result: ExecutionResult, unlike: Sequence[Problem]) -> bool:
        """Keep what came of the conversation's plan with it; says whether a repair may be asked for. May block."""
        from obsidian_agent.agent.turn.state_machine import TurnState

        if self.chats is None or self.current is None:
            return False
        return self.chats.note_run(self.current, goal, result, unlike) is TurnState.RETRYING

    async def close(self) -> None:
        """Stop every turn, and wait until it is saved."""
        if self.chats is not None:
            await self.chats.close()

    def _title(self, thread_id: str) -> str:
        assert self.chats is not None
        return self.chats.open(thread_id).state.title

    async def _ask_here(self, request: ShareRequest) -> ShareDecision:
        return await self._ask(request, "")

    async def _ask_in(self, thread_id: str, request: ShareRequest) -> ShareDecision:
        return await self._ask(request, "" if thread_id == self.current else self._title(thread_id))


async def _events(happenings: AsyncIterator[ThreadEvent]) -> AsyncIterator[AgentEvent]:
    """The events of one turn."""
    from obsidian_agent.agent.threads.bus import Ended, Happened

    async for happening in happenings:
        match happening:
            case Happened(event=event):
                yield event
            case Ended():
                return
            case _:
                continue
