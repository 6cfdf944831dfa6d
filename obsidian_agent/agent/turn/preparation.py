"""Before the first request of a turn: find what goes along, ask about it, fit it into the model's window, make room where it is full."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field, replace

from obsidian_agent.agent.context.budget import UNKNOWN_WINDOW, Use, divide, fitting
from obsidian_agent.agent.context.compaction import old_part, summarise
from obsidian_agent.agent.context.gathering import ASKED_FOR, ContextItem, Gathered, Missed
from obsidian_agent.agent.context.tokens import estimate, estimate_messages
from obsidian_agent.agent.conversation import Conversation
from obsidian_agent.agent.events import Notice, TurnEvent
from obsidian_agent.agent.planner import Sampling
from obsidian_agent.agent.privacy.consent import AllowedBy, Level, Part, ShareRequest
from obsidian_agent.agent.privacy.questions import Permission
from obsidian_agent.agent.turn.config import TurnConfig
from obsidian_agent.agent.turn.opening import Opening
from obsidian_agent.agent.turn.request_prefix import RequestPrefix
from obsidian_agent.errors import Problem
from obsidian_agent.providers.base import Provider, Usage
from obsidian_agent.providers.prices import ModelFacts
from obsidian_agent.vault.views.view import VaultView


@dataclass(slots=True)
class Preparation:
    """Read `extra` (what goes along, as text), `parts` (of which files) and `use` after `run`."""

    provider: Provider
    brief: TurnConfig
    conversation: Conversation
    frame: RequestPrefix
    sampling: Sampling
    mark: str
    facts: ModelFacts
    extra: str = ""
    parts: list[tuple[Part, AllowedBy]] = field(default_factory=list)
    wanted: frozenset[str] = frozenset()
    """The files in `parts` that the person asked for, by a mention for example."""
    usage: Usage | None = None
    """What a summary took, if one was made."""
    may_summarise: bool = True

    @property
    def window(self) -> int:
        """The model's window, as far as anybody knows."""
        return self.brief.window or self.facts.window or UNKNOWN_WINDOW

    def use(self, extra: str = "", message: str = "") -> Use:
        """What a request with this message, and `extra` along with it, takes (`extra` is not counted again where the message holds it)."""
        known = self.brief.window is not None or self.facts.window is not None
        budget = divide(self.window, 0, reply=self.sampling.max_tokens)
        history = estimate_messages(self.conversation.messages) + estimate(message)
        return Use(self.window, self.frame.tokens, self.frame.instruction_tokens, estimate(extra), history, budget.reply, known)

    async def run(self, message: str, opening: Opening, view: Callable[[], VaultView]) -> AsyncGenerator[TurnEvent, None]:
        """Everything, with what is to be shown and asked."""
        for problem in (*self.brief.notices, *self._trim()):
            yield Notice(problem)
        gathering, context = self.brief.gathering, opening.context
        if not opening.asker.gate.may_allow:
            gathering = replace(gathering, found=0)  # what is merely found is never asked about
        gathered = Gathered()
        if gathering.wants(message, context):
            gathered = await asyncio.to_thread(lambda: gathering.gather(message, context, view()))
        for missed in gathered.missed:
            yield Notice(_not_found(missed))
        permission = Permission()
        async with contextlib.aclosing(self._ask(gathered, opening, permission)) as events:
            async for event in events:
                yield event
        async with contextlib.aclosing(self._make_room(message)) as events:
            async for event in events:
                yield event
        allowed = [item for item in gathered.items if item.path.text in permission.allowed and self._is_news(item)]
        used = self.use(message=message)
        budget = divide(self.window, used.system, instructions=used.instructions, reply=self.sampling.max_tokens)
        room = max(budget.context, self.window - used.prompt - budget.reply)
        kept, left_out = fitting(allowed, min(room, max(0, self.window - used.prompt - budget.reply)))
        if left_out or gathered.more:
            total = left_out + gathered.more
            yield Notice(Problem("CONTEXT_FULL", f"{total} {'note does' if total == 1 else 'notes do'} not fit and will not go along."))
        self.extra = self.brief.fusion.fuse(kept, self.mark)
        self.parts = [(Part(item.path.text, Level.TEXT, len(item.text)), permission.allowed[item.path.text]) for item in kept]
        self.wanted = frozenset(item.path.text for item in kept if item.why in ASKED_FOR)
        told = [path for path in self.brief.sources if path not in self.conversation.shared]
        self.parts += [(Part(path, Level.TEXT, 0), "trusted") for path in told]

    def _trim(self) -> list[Problem]:
        """Cut instructions that would take more than their share of the window."""
        frame = self.frame
        budget = divide(self.window, frame.tokens, instructions=frame.instruction_tokens, reply=self.sampling.max_tokens)
        self.frame = frame.within(budget.instructions)
        if self.frame is frame:
            return []
        message = f"The instructions take {frame.instruction_tokens:,} tokens; this model gets the first {budget.instructions:,} of them."
        return [Problem("INSTRUCTIONS_CUT", message)]

    async def _ask(self, gathered: Gathered, opening: Opening, permission: Permission) -> AsyncGenerator[TurnEvent, None]:
        """One question for everything that the person wants to go along; what was merely found needs a rule or an earlier answer."""
        asked = tuple(item.share_item() for item in gathered.items if item.why in ASKED_FOR)
        found = tuple(item.share_item() for item in gathered.items if item.why not in ASKED_FOR)
        provider, purpose = self.provider, "Send these notes along with your message"
        if asked:
            request = ShareRequest("", "files", "", purpose, {}, asked, provider.name, provider.address)
            async with contextlib.aclosing(opening.asker.ask(request, permission)) as events:
                async for event in events:
                    yield event
        if found:
            request = ShareRequest("", "files", "", purpose, {}, found, provider.name, provider.address)
            permission.allowed = {**opening.asker.settled(request), **permission.allowed}

    async def _make_room(self, message: str) -> AsyncGenerator[TurnEvent, None]:
        """Summarise older turns when the window is nearly full."""
        count = old_part(self.conversation.messages)
        if not self.may_summarise or not count or not self.use(message=message).full:
            return
        summary = await summarise(self.provider, self.conversation.messages, count, self.mark)
        self.usage = summary.usage
        self.conversation.compact(summary.count, summary.message)
        yield Notice(Problem("COMPACTED", "The older part of this conversation was summarised to make room; all of it is kept here."))

    def _is_news(self, item: ContextItem) -> bool:
        """Whether the model does not have it already: what was merely found is not sent twice."""
        known = self.conversation.shared.get(item.path.text)
        return item.why in ASKED_FOR or known is None or known.level < Level.TEXT


def _not_found(missed: Missed) -> Problem:
    hint = f" Did you mean {missed.nearest}?" if missed.nearest else ""
    return Problem("MENTION_NOT_FOUND", f"@{missed.text} is no note, folder or tag here.{hint}")
