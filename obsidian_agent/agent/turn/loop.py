"""The agent: a planner whose model looks around first. It answers questions from what it was shown, or proposes a plan; it never writes.

A turn is a loop of rounds. In each the model streams an answer; the calls in it are carried out and their results go back with the next
request; an answer without calls ends the turn. A model that may not or cannot call tools has one round, whose answer is a plan as JSON, or
words. Wherever a turn is cut off, the conversation stays one that services accept.

A note that an answer names is a source. Where it names none, the notes are that somebody wanted to be read: the model by a call, the person
by a mention. What went along besides, or was only found, was sent and is told as that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, assert_never

from obsidian_agent.agent.conversation import (
    BROKEN_MARK,
    CUT_MARK,
    Conversation,
)
from obsidian_agent.agent.events import (
    AgentEvent,
    Answer,
    Emit,
    Notice,
    PlanningRetry,
    PlanReady,
    RoundsUsedUp,
    TurnFailed,
    Verdict,
)
from obsidian_agent.agent.planner import PlanRequest, Reply, Sampling, receive
from obsidian_agent.agent.privacy.consent import ApproveShare, Gate
from obsidian_agent.agent.privacy.record import Ledger, Sending
from obsidian_agent.agent.privacy.untrusted_text import new_mark
from obsidian_agent.agent.summaries import within
from obsidian_agent.agent.token_budget import estimate_messages
from obsidian_agent.agent.turn.calls import ProposalCall, understand, written_calls
from obsidian_agent.agent.turn.citations import SharedFiles
from obsidian_agent.agent.turn.model_tools import READ_TOOLS
from obsidian_agent.agent.turn.preparation import Preparation, TurnConfig
from obsidian_agent.agent.turn.prompts import (
    RequestPrefix,
    agent_prefix,
    bad_answer,
    correction,
    detail_for,
    other_agent_prefix,
    planner_prefix,
    request_message,
)
from obsidian_agent.agent.turn.proposals import (
    FAILED,
    DryRun,
    Rejected,
    TurnProposals,
    plan_in,
    planned,
)
from obsidian_agent.agent.turn.read_calls import Asker
from obsidian_agent.agent.turn.tool_round import Scrubber, ToolRound
from obsidian_agent.agent.usage import Meter
from obsidian_agent.dataclass import dataclass, field, replace
from obsidian_agent.errors import ConfigError, ObsidianError, Problem, ProviderError
from obsidian_agent.plan.policy import Policy, SharingRules
from obsidian_agent.providers.base import ChatMessage, ChatRequest, Provider, ToolCall
from obsidian_agent.providers.other_agent import is_agent
from obsidian_agent.providers.prices import ModelFacts
from obsidian_agent.tools.core.tool import AppCommand, RunContext, Tool
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.views.filtered import FilteredView
from obsidian_agent.vault.views.view import VaultView

MAX_ROUNDS: Final = 25
MAX_REQUESTS: Final = 3
"""Of a model that plans in JSON, in one turn."""
USUAL_ROOM: Final = 4096
"""Tokens that an answer was cut at when nobody said."""
TOOLS_UNSUPPORTED: Final = "API_TOOLS_UNSUPPORTED"
TOO_LONG: Final = "CONTEXT_TOO_LONG"
CUT_CODE: Final = "TRUNCATED"


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
    dry_run: DryRun | None = None
    sampling: Sampling = Sampling()
    new_mark: Callable[[], str] = new_mark
    config: TurnConfig = TurnConfig()

    @property
    def name(self) -> str:
        return self.provider.name

    @property
    def plain(self) -> bool:
        """Whether the model does not look around: it may not, or it cannot call tools."""
        return not is_agent(self.provider) and (
            not self.config.tools or self.provider.name in self.conversation.plain
        )

    @property
    def callable_tools(self) -> Mapping[str, Tool]:
        """All tools but those for looking around that are not on offer: a model may call them all the same."""
        only = self.config.only
        return (
            self.tools
            if only is None
            else {
                name: tool
                for name, tool in self.tools.items()
                if name in only or name not in READ_TOOLS
            }
        )

    def open_view(self) -> VaultView:
        """The vault as the model may know of it."""
        view = self.vault.open_view()
        return (
            FilteredView(view, self.rules.deny.cover, self.vault.real) if self.rules.deny else view
        )

    def prefix(self, facts: ModelFacts) -> RequestPrefix:
        """What every request begins with. May block."""
        config = self.config
        detail = detail_for(config.detail, self.provider, config.window or facts.window)
        if self.plain:
            return planner_prefix(self.tools, config.instructions, detail)
        propose = self.dry_run is not None
        if is_agent(self.provider):
            return other_agent_prefix(
                self.tools, propose=propose, instructions=config.instructions, detail=detail
            )
        return agent_prefix(
            self.tools,
            propose=propose,
            instructions=config.instructions,
            only=config.only,
            detail=detail,
        )

    async def prepare(self, context: RunContext) -> Preparation:
        """What goes out with a message, yet to be found and asked for."""
        facts = await asyncio.to_thread(self.config.facts, self.provider.name)
        prefix = await asyncio.to_thread(self.prefix, facts)
        sampling = (
            self.sampling
            if self.config.temperature is None
            else replace(self.sampling, temperature=self.config.temperature)
        )
        asker = Asker(
            Gate(self.rules, self.conversation.grants, self.provider.local, self.vault.real),
            self.approve,
            self.ledger.record,
            self.provider.name,
        )
        commands = await asyncio.to_thread(self._commands, context)
        return Preparation(
            self.provider,
            self.config,
            self.conversation,
            asker,
            self.open_view,
            prefix,
            sampling,
            self.new_mark(),
            facts,
            context,
            commands,
        )

    def _commands(self, context: RunContext) -> tuple[AppCommand, ...]:
        """The commands of Obsidian that a plan may run; none where it cannot be asked. Their names are not notes, so nobody is asked."""
        if self.dry_run is None or not (context.runs_commands and self.policy.allow_commands):
            return ()
        try:
            return tuple(
                each
                for each in context.commands()
                if self.policy.on_command(each.id).decision != "deny"
            )
        except ObsidianError:
            return ()

    def message(self, request: PlanRequest, prepared: Preparation) -> ChatMessage:
        """The person's message as the model gets it."""
        context = prepared.context
        return request_message(
            request.message,
            context,
            {**context.params, **request.params},
            self.turn_policy,
            prepared.mark,
            show_selection=prepared.show_selection,
            extra=prepared.extra,
            tools=prepared.prefix.more(request.message),
            commands=prepared.commands,
        )

    @property
    def turn_policy(self) -> Policy:
        """What a plan may do: who only writes JSON is held to reading by it where nothing may be proposed."""
        return (
            replace(self.policy, allow_writes=False)
            if self.plain and self.dry_run is None
            else self.policy
        )

    async def plan(self, request: PlanRequest, emit: Emit) -> Verdict:
        turn = _Turn(self, request, emit)
        try:
            verdict = await turn.run()
            return (
                replace(verdict, agent=self.policy.agent)
                if isinstance(verdict, PlanReady)
                else verdict
            )
        except ConfigError as error:
            return TurnFailed(error.problem())
        finally:
            turn.close()


@dataclass(slots=True)
class _Turn:
    """One message of the person, up to what comes of it."""

    agent: Agent
    request: PlanRequest
    emit: Emit
    reply: Reply = field(default_factory=lambda: Reply(recorded=True))
    shown: SharedFiles = field(default_factory=SharedFiles)
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
        if self._meter is None:
            self._meter = Meter(self.agent.provider.name, self.prepared.facts.price)
        return self._meter

    def close(self) -> None:
        """Leave the conversation whole, however the turn ended."""
        if not self.reply.recorded:
            self.conversation.add_reply(
                f"{self.reply.text}{CUT_MARK}" if self.reply.text.strip() else ""
            )
        self.conversation.cancel()

    async def run(self) -> Verdict:
        agent = self.agent
        prepared = self._prepared = await agent.prepare(self.request.context)
        await prepared.run(self.request.message, self.emit)
        if prepared.usage is not None:
            self.meter.answered(prepared.usage)
        history = self.conversation.plain_messages()
        message = agent.message(self.request, prepared)
        self.conversation.add_request(message)
        self._share(prepared.sending(message.text), prepared.wanted)
        return await (self._plan_in_json(history) if agent.plain else self._rounds(history))

    # --- requests ------------------------------------------------------------------------------------------------------------------

    async def _listen(self, asked: ChatRequest) -> None:
        """One request and its answer, which is then in `reply`."""
        meter = self.meter

        async def emit(event: AgentEvent) -> None:
            meter.handle(event)
            await self.emit(event)

        self._write_down()
        meter.asking()
        await receive(
            self.agent.provider, replace(asked, conversation=self.conversation.id), self.reply, emit
        )
        meter.answered(self.reply.usage)
        await self.emit(meter.total())

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
            self.conversation.unsent,
            provider=provider.name,
            address=provider.address,
            conversation=self.conversation.id,
        )
        self.conversation.unsent.clear()
        self.conversation.sending()

    # --- a model that looks around -------------------------------------------------------------------------------------------------

    async def _rounds(self, history: tuple[ChatMessage, ...]) -> Verdict:
        agent, prepared = self.agent, self.prepared
        proposals = None
        if agent.dry_run is not None:
            whole = not agent.rules.deny
            proposals = TurnProposals(
                agent.tools, agent.policy, agent.dry_run, prepared, self.request.message, whole
            )
        for _ in range(MAX_ROUNDS):
            self.reply = Reply()
            try:
                await self._listen(
                    prepared.prefix.request(self._within_window(), prepared.sampling)
                )
            except ProviderError as error:
                self.reply.recorded = True
                if error.code == TOO_LONG and not self.squeezed and not self.reply.text:
                    self.squeezed = True
                    problem = Problem(
                        "CONTEXT_SQUEEZED",
                        "The conversation is too long for this model; old results are left out.",
                    )
                    await self.emit(Notice(problem))
                    continue
                return await self._failed(error, history)
            made = self.reply.calls
            written = (
                ()
                if made
                else written_calls(
                    self.reply.text, [offer.name for offer in prepared.prefix.offers]
                )
            )
            calls = tuple(self.conversation.with_unique_id(call) for call in made or written)
            self.conversation.add_reply("" if written else self.reply.text, calls)
            self.reply.recorded = True
            verdict = await (self._carry_out(calls, proposals) if calls else self._end(proposals))
            if verdict is not None:
                return verdict
        return RoundsUsedUp(MAX_ROUNDS)

    async def _failed(self, error: ProviderError, history: tuple[ChatMessage, ...]) -> Verdict:
        if error.code == TOOLS_UNSUPPORTED:
            self.conversation.plain.add(self.agent.provider.name)
            message = "This model cannot look around in the vault; it plans from what you say. Choose another one to ask about notes."
            await self.emit(Notice(Problem(TOOLS_UNSUPPORTED, message)))
            instructions = self.prepared.prefix.instructions  # cut to the window already
            self.prepared.prefix = replace(
                await asyncio.to_thread(self.agent.prefix, self.prepared.facts),
                instructions=instructions,
            )
            return await self._plan_in_json(history)
        if self.reply.text.strip():
            self.conversation.add_reply(f"{self.reply.text}{BROKEN_MARK}")
        return TurnFailed(error.problem())

    async def _carry_out(
        self, calls: Sequence[ToolCall], proposals: TurnProposals | None
    ) -> Verdict | None:
        tools = self.agent.callable_tools
        understood = [
            understand(call, tools, propose=proposals is not None, others=self.prepared.others)
            for call in calls
        ]
        meter = self.meter

        async def emit(event: AgentEvent) -> None:
            meter.look(event)
            await self.emit(event)

        work = ToolRound(self.prepared, self.agent.vault.scrubber, self.refused)
        meter.look()
        await work.carry_out(understood, emit)
        meter.look(over=True)
        shown: PlanReady | TurnFailed | None = None
        for call in understood:
            if not isinstance(call, ProposalCall) or proposals is None:
                continue
            if shown is not None:
                work.reject(
                    call,
                    (
                        Problem(
                            "ONE_PLAN",
                            "Propose one plan at a time; the first one was shown to the person.",
                        ),
                    ),
                )
            else:
                shown = await proposals.propose(call, work)
            await self.emit(work.finished(call))
        for made in calls:
            result = work.results[made.id]
            self.conversation.add_result(made, result.text)
            if result.sending is not None:
                self._share(result.sending)
        return shown

    async def _end(self, proposals: TurnProposals | None) -> Verdict | None:
        """An answer without calls: words, or a plan from a model that writes it down instead of calling. None: it may try again."""
        text = self.reply.text
        written = plan_in(text) if proposals is not None and self.reply.reason != "length" else None
        if proposals is not None and written is not None:
            outcome = await proposals.written(*written)
            if not isinstance(outcome, Rejected):
                return outcome
            self.conversation.add_request(correction(outcome.problems, outcome.usage))
            await self.emit(proposals.again(outcome))
            return None
        if not text.strip():
            return TurnFailed(
                Problem(
                    "EMPTY_ANSWER",
                    "The model answered nothing. Ask again, or choose another model.",
                )
            )
        if self.reply.reason == "length":
            await self.emit(
                Notice(
                    Problem(
                        CUT_CODE, "The answer was cut at the model's length limit. Ask it to go on."
                    )
                )
            )
        credit = self.shown.credit(text)
        return Answer(text, credit.sources, credit.also_sent)

    # --- a model that only writes --------------------------------------------------------------------------------------------------

    async def _plan_in_json(self, history: tuple[ChatMessage, ...]) -> Verdict:
        """An answer that is no valid plan goes back with everything that is wrong with it; one that was cut is asked for once more with
        twice the room.
        """
        agent, prepared = self.agent, self.prepared
        opening = (*history, await asyncio.to_thread(agent.message, self.request, prepared))
        sampling, rejected, answer = prepared.sampling, Rejected(()), ""
        for attempt in range(1, MAX_REQUESTS + 1):
            again = (
                (bad_answer(answer), correction(rejected.problems, rejected.usage))
                if answer
                else ()
            )
            # What comes is a plan's text, no answer to keep where it is cut off.
            self.reply = Reply(recorded=True)
            try:
                await self._listen(
                    prepared.prefix.request((*opening, *again), sampling, json_only=True)
                )
            except ProviderError as error:
                return TurnFailed(error.problem())
            reply, propose = self.reply, agent.dry_run is not None
            verdict = await asyncio.to_thread(
                planned, reply.text, reply.reason, agent.tools, agent.turn_policy, propose=propose
            )
            if not isinstance(verdict, Rejected):
                self._remember(verdict)
                return verdict
            rejected = verdict
            if self.reply.reason == "length":
                if sampling is not prepared.sampling:
                    return _cut_again(sampling.max_tokens or 0)
                used = self.reply.usage.completion_tokens if self.reply.usage is not None else 0
                sampling = replace(
                    sampling, max_tokens=2 * (sampling.max_tokens or used or USUAL_ROOM)
                )
            else:
                answer = self.reply.text or " "
            if attempt < MAX_REQUESTS:
                await self.emit(PlanningRetry(attempt + 1, MAX_REQUESTS, rejected.problems))
        return TurnFailed(FAILED, rejected.problems)

    def _remember(self, verdict: Answer | PlanReady | TurnFailed) -> None:
        match verdict:
            case Answer(text):
                self.conversation.add_reply(text)
            case PlanReady(plan):
                self.conversation.add_reply(plan.goal)
            case TurnFailed():
                pass
            case _:
                assert_never(verdict)


def _cut_again(room: int) -> TurnFailed:
    message = f"The model's answer was cut twice, the second time at {room} tokens. Ask for less at a time, or raise max_tokens."
    return TurnFailed(Problem(CUT_CODE, message))
