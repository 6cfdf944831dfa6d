"""The agent: a planner whose model looks around first. It answers questions from what it was shown, or proposes a plan; it never writes.

A turn is a loop of rounds. In each the model streams an answer; the calls in it are carried out and their results go back with the next
request; an answer without calls ends the turn. Wherever a turn is cut off, the conversation stays one that services accept.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from obsidian_agent.agent.context.compaction import within
from obsidian_agent.agent.context.tokens import estimate_messages
from obsidian_agent.agent.conversation import BROKEN_MARK, CUT_MARK, Conversation
from obsidian_agent.agent.events import Answer, Notice, PlanReady, RoundsUsedUp, TurnEvent, TurnFailed
from obsidian_agent.agent.planner import ModelPlanner, PlanRequest, Sampling
from obsidian_agent.agent.privacy.consent import ApproveShare, Gate, SharingRules
from obsidian_agent.agent.privacy.ledger import Ledger, Sending
from obsidian_agent.agent.privacy.questions import Asker
from obsidian_agent.agent.privacy.untrusted_text import new_mark
from obsidian_agent.agent.turn.calls import ProposalCall, understand, written_calls
from obsidian_agent.agent.turn.citations import Shown
from obsidian_agent.agent.turn.config import TurnConfig
from obsidian_agent.agent.turn.model_tools import Detail
from obsidian_agent.agent.turn.opening import Opening
from obsidian_agent.agent.turn.plain import plain_turn
from obsidian_agent.agent.turn.preparation import Preparation
from obsidian_agent.agent.turn.prompts import correction, detail_for, request_message
from obsidian_agent.agent.turn.proposals import DryRun, Judging, Rejected, plan_in
from obsidian_agent.agent.turn.replies import Reply, listen
from obsidian_agent.agent.turn.request_prefix import RequestPrefix, agent_prefix, planner_prefix
from obsidian_agent.agent.turn.tool_round import Round, Scrubber, Surroundings
from obsidian_agent.agent.turn.usage import Meter
from obsidian_agent.errors import ConfigError, Problem, ProviderError
from obsidian_agent.plan.flags import Policy
from obsidian_agent.providers.base import ChatMessage, Provider, ToolCall
from obsidian_agent.providers.prices import ModelFacts
from obsidian_agent.tools.core.tool import Tool
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.views.filtered import FilteredView
from obsidian_agent.vault.views.view import VaultView

MAX_ROUNDS: Final = 25
TOOLS_UNSUPPORTED: Final = "API_TOOLS_UNSUPPORTED"
TOO_LONG: Final = "CONTEXT_TOO_LONG"


@dataclass(frozen=True, slots=True)
class Vault:
    """The vault as the agent needs it: a view of it as it is now, where a path leads, and what may not be told of this machine."""

    open_view: Callable[[], VaultView]
    real: Callable[[VaultPath], VaultPath]
    scrubber: Scrubber


@dataclass(frozen=True, slots=True)
class Agent:
    """A `Planner` that looks around. Without `dry_run` it answers only, and proposes nothing."""

    provider: Provider
    tools: Mapping[str, Tool]
    policy: Policy
    vault: Vault
    rules: SharingRules
    approve: ApproveShare
    ledger: Ledger
    conversation: Conversation
    dry_run: Callable[[Callable[[], VaultView]], DryRun] | None = None
    sampling: Sampling = Sampling()
    new_mark: Callable[[], str] = new_mark
    brief: TurnConfig = TurnConfig()

    @property
    def name(self) -> str:
        """The provider's name."""
        return self.provider.name

    @property
    def plain(self) -> bool:
        """Whether the model does not look around: it may not, or it cannot call tools."""
        return not self.brief.tools or self.provider.name in self.conversation.plain

    def detail(self, facts: ModelFacts) -> Detail:
        """How much the model is told of tools and plans."""
        return detail_for(self.brief.detail, self.provider, self.brief.window or facts.window)

    def frame(self, facts: ModelFacts) -> RequestPrefix:
        """What every request begins with. May block."""
        brief, propose = self.brief, self.dry_run is not None
        if self.plain:
            return planner_prefix(self.tools, brief.instructions, self.detail(facts))
        return agent_prefix(self.tools, propose=propose, instructions=brief.instructions, only=brief.only, detail=self.detail(facts))

    async def prepare(self, mark: str) -> Preparation:
        """What goes along with a message, yet to be found."""
        facts = await asyncio.to_thread(self.brief.facts, self.provider.name)
        frame = await asyncio.to_thread(self.frame, facts)
        sampling = self.sampling if self.brief.temperature is None else replace(self.sampling, temperature=self.brief.temperature)
        return Preparation(self.provider, self.brief, self.conversation, frame, sampling, mark, facts)

    async def plan(self, request: PlanRequest) -> AsyncIterator[TurnEvent]:
        """One turn of the conversation; ends with Answer, PlanReady, RoundsUsedUp or TurnFailed. Closing the iterator cancels."""
        turn = _Turn(self, request)
        try:
            async with contextlib.aclosing(turn.run()) as events:
                async for event in events:
                    yield event
        except ConfigError as error:
            yield TurnFailed(error.problem())
        finally:
            turn.close()


@dataclass(slots=True)
class _Turn:
    """One message of the person, up to what comes of it."""

    agent: Agent
    request: PlanRequest
    reply: Reply = field(default_factory=Reply)
    shown: Shown = field(default_factory=Shown)
    refused: set[str] = field(default_factory=set)
    squeezed: bool = False
    """Whether the service found the conversation too long already."""
    _prepared: Preparation | None = None
    _meter: Meter | None = None

    @property
    def conversation(self) -> Conversation:
        return self.agent.conversation

    @property
    def prepared(self) -> Preparation:
        """What was found before the first request."""
        assert self._prepared is not None
        return self._prepared

    @property
    def meter(self) -> Meter:
        """What the turn uses."""
        if self._meter is None:
            self._meter = Meter(self.agent.provider.name, self.prepared.facts.price)
        return self._meter

    def close(self) -> None:
        """Leave the conversation whole, however the turn ended."""
        if not self.reply.settled:
            self.conversation.hear(f"{self.reply.text}{CUT_MARK}" if self.reply.text.strip() else "")
        self.conversation.cancel()

    async def run(self) -> AsyncGenerator[TurnEvent, None]:
        agent, mark = self.agent, self.agent.new_mark()
        self.reply.settled = True
        opening = Opening(agent.provider, agent.rules, agent.vault.real, agent.approve, self.conversation)
        async with contextlib.aclosing(opening.run(self.request.context)) as events:
            async for event in events:
                yield event
        prepared = self._prepared = await agent.prepare(mark)
        view = view_for(agent, opening.asker.gate)
        async with contextlib.aclosing(prepared.run(self.request.message, opening, view)) as events:
            async for event in events:
                yield event
        self.request = replace(self.request, context=opening.context, show_selection=opening.show_selection, extra=prepared.extra)
        if prepared.usage is not None:
            self.meter.answered(prepared.usage)
        history = self.conversation.plain_messages()
        opening.parts += prepared.parts
        self._open(opening, mark)
        if agent.plain:
            async with contextlib.aclosing(self._plainly(history)) as events:
                async for event in events:
                    yield event
            return
        around = self._surroundings(opening.asker, mark)
        async with contextlib.aclosing(self._rounds(around, history)) as events:
            async for event in events:
                yield event

    def _open(self, opening: Opening, mark: str) -> None:
        request, params = self.request, {**self.request.context.params, **self.request.params}
        shown = request.show_selection
        policy, extra = self.agent.policy, request.extra
        tools = self.prepared.frame.more(request.message)
        message = request_message(request.message, request.context, params, policy, mark, show_selection=shown, extra=extra, tools=tools)
        self.conversation.ask(message)
        self._share(replace(opening.sending(), text=message.text), self.prepared.wanted)

    def _surroundings(self, asker: Asker, mark: str) -> Surroundings:
        agent = self.agent
        return Surroundings(agent.provider, asker, view_for(agent, asker.gate), self.request.context, agent.vault.scrubber, mark)

    async def _rounds(self, around: Surroundings, history: tuple[ChatMessage, ...]) -> AsyncGenerator[TurnEvent, None]:
        agent = self.agent
        judging = Judging(agent.tools, agent.policy, agent.dry_run(around.open_view), around) if agent.dry_run is not None else None
        for _ in range(MAX_ROUNDS):
            try:
                async with contextlib.aclosing(self._ask()) as events:
                    async for event in events:
                        yield event
            except ProviderError as error:
                if error.code == TOO_LONG and not self.squeezed and not self.reply.text:
                    self.squeezed = self.reply.settled = True
                    yield Notice(Problem("CONTEXT_SQUEEZED", "The conversation is too long for this model; old results are left out."))
                    continue
                async with contextlib.aclosing(self._failed(error, history)) as events:
                    async for event in events:
                        yield event
                return
            made = self.reply.calls
            written = () if made else written_calls(self.reply.text, [offer.name for offer in self.prepared.frame.offers])
            calls = tuple(self.conversation.fresh(call) for call in made or written)
            self.conversation.hear("" if written else self.reply.text, calls)
            self.reply.settled = True
            async with contextlib.aclosing(self._carry_out(around, calls, judging) if calls else self._end(judging)) as events:
                async for event in events:
                    yield event
                    if isinstance(event, Answer | PlanReady | TurnFailed):
                        return
        yield RoundsUsedUp(MAX_ROUNDS)

    async def _ask(self) -> AsyncGenerator[TurnEvent, None]:
        """One request and its answer, which is then in `reply`."""
        agent, meter = self.agent, self.meter
        asked = self.prepared.frame.request((*self.request.history, *self._within_window()), self.prepared.sampling)
        self._write_down()
        self.reply = Reply()
        meter.asking()
        async with contextlib.aclosing(listen(agent.provider, asked, self.reply)) as events:
            async for event in events:
                meter.hear(event)
                yield event
        meter.answered(self.reply.usage)
        yield meter.total()

    def _within_window(self) -> Sequence[ChatMessage]:
        """The conversation as far as the model can hold it: old results are left out first."""
        prepared, messages = self.prepared, self.conversation.messages
        used = prepared.use()
        room = used.window - used.system - used.instructions - used.reply
        if self.squeezed:
            room = min(room, estimate_messages(messages) // 2)
        return messages if estimate_messages(messages) <= room else within(messages, room)

    def _share(self, sending: Sending, wanted: Collection[str] | None = None) -> None:
        self.conversation.share(sending)
        self.shown.add((part for part, _ in sending.parts), wanted)

    def _write_down(self) -> None:
        provider = self.agent.provider
        self.agent.ledger.write(
            self.conversation.unsent, provider=provider.name, address=provider.address, conversation=self.conversation.id
        )
        self.conversation.unsent.clear()
        self.conversation.sending()

    async def _failed(self, error: ProviderError, history: tuple[ChatMessage, ...]) -> AsyncGenerator[TurnEvent, None]:
        self.reply.settled = True
        if error.code == TOOLS_UNSUPPORTED:
            self.conversation.plain.add(self.agent.provider.name)
            message = "This model cannot look around in the vault; it plans from what you say. Choose another one to ask about notes."
            yield Notice(Problem(TOOLS_UNSUPPORTED, message))
            async with contextlib.aclosing(self._plainly(history)) as events:
                async for event in events:
                    yield event
            return
        if self.reply.text.strip():
            self.conversation.hear(f"{self.reply.text}{BROKEN_MARK}")
        yield TurnFailed(error.problem())

    async def _plainly(self, history: tuple[ChatMessage, ...]) -> AsyncGenerator[TurnEvent, None]:
        """The turn with a model that can only write."""
        agent = self.agent
        detail = agent.detail(self.prepared.facts)
        planner = ModelPlanner(
            agent.provider, agent.tools, agent.policy, agent.sampling, agent.new_mark, self.prepared.frame.instructions, detail
        )
        request = replace(self.request, history=(*self.request.history, *history))
        self._write_down()
        async with contextlib.aclosing(plain_turn(planner, request, self.conversation, propose=agent.dry_run is not None)) as events:
            async for event in events:
                yield event

    # --- what comes of an answer -------------------------------------------------------------------------------------------------

    async def _carry_out(self, around: Surroundings, calls: Sequence[ToolCall], judging: Judging | None) -> AsyncGenerator[TurnEvent, None]:
        understood = [understand(call, self.agent.tools, propose=judging is not None) for call in calls]
        work, meter = Round(around, self.refused), self.meter
        meter.look()
        async with contextlib.aclosing(work.carry_out(understood)) as events:
            async for event in events:
                meter.look(event)
                yield event
        meter.look(over=True)
        shown: PlanReady | TurnFailed | None = None
        for call in understood:
            if not isinstance(call, ProposalCall) or judging is None:
                continue
            if shown is not None:
                work.reject(call, (Problem("ONE_PLAN", "Propose one plan at a time; the first one was shown to the person."),))
            else:
                shown = await judging.propose(call, work)
            yield work.finished(call)
        for made in calls:
            result = work.results[made.id]
            self.conversation.answer(made, result.text)
            if result.sending is not None:
                self._share(result.sending)
        if shown is not None:
            yield shown

    async def _end(self, judging: Judging | None) -> AsyncGenerator[TurnEvent, None]:
        """An answer without calls: words, or a plan from a model that writes it down instead of calling."""
        text = self.reply.text
        written = plan_in(text) if judging is not None and self.reply.reason != "length" else None
        if judging is not None and written is not None:
            outcome = await judging.written(*written)
            if isinstance(outcome, Rejected):
                self.conversation.ask(correction(outcome.problems, outcome.usage))
                yield judging.again(outcome)
            else:
                yield outcome
            return
        if not text.strip():
            yield TurnFailed(Problem("EMPTY_ANSWER", "The model answered nothing. Ask again, or choose another model."))
            return
        if self.reply.reason == "length":
            yield Notice(Problem("TRUNCATED", "The answer was cut at the model's length limit. Ask it to go on."))
        credit = self.shown.credit(text)
        yield Answer(text, credit.sources, credit.besides)


def view_for(agent: Agent, gate: Gate) -> Callable[[], VaultView]:
    """Views of what a model may know of."""
    if not agent.rules.deny:
        return agent.vault.open_view
    return lambda: FilteredView(agent.vault.open_view(), agent.rules.deny.cover, agent.vault.real)
