"""The agent: a planner whose model reads notes by calls, then answers or proposes a plan.

A turn is a loop of rounds. In each the model streams an answer; the calls in it are carried out and
their results are sent with the next request; an answer without calls ends the turn. A model that
may not or cannot call tools answers with a plan as JSON, or with text. Wherever a turn is
interrupted, the conversation stays valid for services.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, assert_never

from msgspec import Struct, field
from msgspec.structs import replace

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
    PlanningResult,
    PlanningRetry,
    PlanReady,
    RoundsUsedUp,
    TurnFailed,
)
from obsidian_agent.agent.planner import PlanRequest
from obsidian_agent.agent.privacy.consent import ApproveShare, Gate
from obsidian_agent.agent.privacy.ledger import Ledger, Sending
from obsidian_agent.agent.privacy.untrusted_text import new_mark
from obsidian_agent.agent.replies import Reply, Sampling, receive
from obsidian_agent.agent.summaries import omit_old_results
from obsidian_agent.agent.token_budget import estimate_messages
from obsidian_agent.agent.turn.calls import ProposalCall, understand, written_calls
from obsidian_agent.agent.turn.citations import SharedFiles
from obsidian_agent.agent.turn.model_tools import READ_TOOLS
from obsidian_agent.agent.turn.preparation import Preparation, TurnConfig
from obsidian_agent.agent.turn.prompts import (
    MessageParts,
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
    judge_json_answer,
    plan_in,
)
from obsidian_agent.agent.turn.read_calls import Asker
from obsidian_agent.agent.turn.tool_round import Scrubber, ToolRound
from obsidian_agent.agent.usage import Meter
from obsidian_agent.errors import ConfigError, ObsidianError, Problem, ProviderError
from obsidian_agent.plan.policy import NamesOf, Policy, SharingRules
from obsidian_agent.providers.base import ChatMessage, ChatRequest, Provider, ToolCall
from obsidian_agent.providers.other_agent import is_agent
from obsidian_agent.providers.prices import ModelFacts
from obsidian_agent.tools.core.tool import AppCommand, RunContext, Tool
from obsidian_agent.vault.views.filtered import FilteredView
from obsidian_agent.vault.views.view import VaultView

MAX_ROUNDS: Final = 25
MAX_REQUESTS: Final = 3
"""Requests in one turn of a model that plans in JSON."""
ASSUMED_LIMIT: Final = 4096
"""Tokens of a truncated answer whose limit is unknown."""
TOOLS_UNSUPPORTED: Final = "API_TOOLS_UNSUPPORTED"
TOO_LONG: Final = "CONTEXT_TOO_LONG"
TRUNCATED: Final = "TRUNCATED"


class Vault(Struct, frozen=True):
    """The vault for the agent: a current view, the names of files, the scrubber of messages."""

    open_view: Callable[[], VaultView]
    names: NamesOf
    scrubber: Scrubber


class Agent(Struct, frozen=True, kw_only=True):
    """A `Planner` whose model reads notes. Without `dry_run` it only answers."""

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
        """The name of the provider."""
        return self.provider.name

    @property
    def plain(self) -> bool:
        """True if the model may not or cannot call tools."""
        return not is_agent(self.provider) and (
            not self.config.tools or self.provider.name in self.conversation.plain
        )

    @property
    def callable_tools(self) -> Mapping[str, Tool]:
        """The tools without those read tools that are not on offer.

        They are removed because models also call tools that are not offered.
        """
        only = self.config.only
        if only is None:
            return self.tools
        return {
            name: tool
            for name, tool in self.tools.items()
            if name in only or name not in READ_TOOLS
        }

    def open_view(self) -> VaultView:
        """Return a view of the vault without the files that rules hide from the model."""
        view = self.vault.open_view()
        if not self.rules.deny:
            return view
        return FilteredView(view, self.rules.deny.cover)

    def prefix(self, facts: ModelFacts) -> RequestPrefix:
        """Return the beginning of every request. May block."""
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
        """Return the preparation of a turn, which must still `run`."""
        facts = await asyncio.to_thread(self.config.facts, self.provider.name)
        prefix = await asyncio.to_thread(self.prefix, facts)
        sampling = self.sampling
        if self.config.temperature is not None:
            sampling = replace(sampling, temperature=self.config.temperature)
        asker = Asker(
            Gate(self.rules, self.conversation.grants, self.provider.local, self.vault.names),
            self.approve,
            self.ledger.record,
            self.provider.name,
        )
        commands = await asyncio.to_thread(self._commands, context)
        return Preparation(
            provider=self.provider,
            config=self.config,
            conversation=self.conversation,
            asker=asker,
            open_view=self.open_view,
            prefix=prefix,
            sampling=sampling,
            mark=self.new_mark(),
            facts=facts,
            context=context,
            commands=commands,
        )

    def _commands(self, context: RunContext) -> tuple[AppCommand, ...]:
        """Return the commands of Obsidian that a plan may run; () if Obsidian does not answer.

        Their names are not content of notes, so they need no permission.
        """
        if self.dry_run is None or not (context.runs_commands and self.policy.allow_commands):
            return ()
        try:
            return tuple(
                command
                for command in context.commands()
                if self.policy.on_command(command.id).decision != "deny"
            )
        except ObsidianError:
            return ()

    def message(self, request: PlanRequest, prepared: Preparation) -> ChatMessage:
        """Return the user's message as the model gets it."""
        context = prepared.context
        return request_message(
            request.message,
            context,
            {**context.params, **request.params},
            self.turn_policy,
            prepared.mark,
            parts=MessageParts(
                show_selection=prepared.show_selection,
                extra=prepared.extra,
                tools=prepared.prefix.more(request.message),
                commands=prepared.commands,
            ),
        )

    @property
    def turn_policy(self) -> Policy:
        """The policy for plans of this turn.

        Without proposals, a model that answers in JSON may only write plans that read.
        """
        if self.plain and self.dry_run is None:
            return replace(self.policy, allow_writes=False)
        return self.policy

    async def plan(self, request: PlanRequest, emit: Emit) -> PlanningResult:
        """Run a turn of the model and return its result."""
        turn = _Turn(self, request, emit)
        try:
            verdict = await turn.run()
            if isinstance(verdict, PlanReady):
                verdict = replace(verdict, agent=self.policy.agent)
            return verdict
        except ConfigError as error:
            return TurnFailed(error.problem())
        finally:
            turn.close()


class _Turn(Struct):
    """One turn, from the user's message to its result."""

    agent: Agent
    request: PlanRequest
    emit: Emit
    reply: Reply = field(default_factory=lambda: Reply(recorded=True))
    shared: SharedFiles = field(default_factory=SharedFiles)
    refused: set[str] = field(default_factory=set)
    is_squeezed: bool = False
    """True after the service has rejected the conversation as too long."""
    _prepared: Preparation | None = None
    _meter: Meter | None = None

    @property
    def conversation(self) -> Conversation:
        return self.agent.conversation

    @property
    def prepared(self) -> Preparation:
        """The preparation, after `run` has begun."""
        assert self._prepared is not None
        return self._prepared

    @property
    def meter(self) -> Meter:
        if self._meter is None:
            self._meter = Meter(self.agent.provider.name, self.prepared.facts.price)
        return self._meter

    def close(self) -> None:
        """Complete the messages of the conversation after an interrupted turn."""
        if not self.reply.recorded:
            self.conversation.add_reply(
                f"{self.reply.text}{CUT_MARK}" if self.reply.text.strip() else ""
            )
        self.conversation.cancel()

    async def run(self) -> PlanningResult:
        agent = self.agent
        prepared = self._prepared = await agent.prepare(self.request.context)
        await prepared.run(self.request.message, self.emit)
        if prepared.usage is not None:
            self.meter.add_usage(prepared.usage)
        history = self.conversation.plain_messages()
        message = agent.message(self.request, prepared)
        self.conversation.add_request(message)
        self._share(prepared.sending(message.text), prepared.requested)
        if agent.plain:
            return await self._plan_in_json(history)
        return await self._rounds(history)

    # --- requests ---

    async def _receive(self, request: ChatRequest) -> None:
        """Send a request and receive its answer in `reply`."""
        meter = self.meter

        async def emit(event: AgentEvent) -> None:
            meter.handle(event)
            await self.emit(event)

        self._record_sendings()
        meter.count_request()
        request = replace(request, conversation=self.conversation.id)
        await receive(self.agent.provider, request, self.reply, emit)
        meter.add_usage(self.reply.usage)
        await self.emit(meter.total())

    def _within_window(self) -> Sequence[ChatMessage]:
        """Return the messages; old results are omitted if they exceed the window."""
        prepared, messages = self.prepared, self.conversation.messages
        used = prepared.use()
        room = used.window - used.system - used.instructions - used.reply
        size = estimate_messages(messages)
        if self.is_squeezed:
            room = min(room, size // 2)
        return messages if size <= room else omit_old_results(messages, room)

    def _share(self, sending: Sending, requested: Collection[str] | None = None) -> None:
        self.conversation.share(sending)
        self.shared.add((part for part, _ in sending.parts), requested)

    def _record_sendings(self) -> None:
        provider = self.agent.provider
        self.agent.ledger.write(
            self.conversation.unsent,
            provider=provider.name,
            address=provider.address,
            conversation=self.conversation.id,
        )
        self.conversation.unsent.clear()
        self.conversation.sending()

    # --- a model with calls ---

    async def _rounds(self, history: tuple[ChatMessage, ...]) -> PlanningResult:
        agent, prepared = self.agent, self.prepared
        proposals = None
        if agent.dry_run is not None:
            proposals = TurnProposals(
                tools=agent.tools,
                policy=agent.policy,
                dry_run=agent.dry_run,
                prepared=prepared,
                message=self.request.message,
                unfiltered=not agent.rules.deny,
            )
        for _ in range(MAX_ROUNDS):
            self.reply = Reply()
            try:
                await self._receive(
                    prepared.prefix.request(self._within_window(), prepared.sampling)
                )
            except ProviderError as error:
                self.reply.recorded = True
                if error.code == TOO_LONG and not self.is_squeezed and not self.reply.text:
                    self.is_squeezed = True
                    problem = Problem(
                        "CONTEXT_SQUEEZED",
                        "The conversation is too long for this model; old results are omitted.",
                    )
                    await self.emit(Notice(problem))
                    continue
                return await self._after_error(error, history)
            calls = self._record_reply()
            if calls:
                verdict = await self._carry_out(calls, proposals)
            else:
                verdict = await self._end(proposals)
            if verdict is not None:
                return verdict
        return RoundsUsedUp(MAX_ROUNDS)

    def _record_reply(self) -> tuple[ToolCall, ...]:
        """Add the reply to the conversation and return its calls, also those written as text."""
        calls, text = self.reply.calls, self.reply.text
        if not calls:
            calls = written_calls(text, [offer.name for offer in self.prepared.prefix.offers])
            text = "" if calls else text
        calls = tuple(self.conversation.with_unique_id(call) for call in calls)
        self.conversation.add_reply(text, calls)
        self.reply.recorded = True
        return calls

    async def _after_error(
        self, error: ProviderError, history: tuple[ChatMessage, ...]
    ) -> PlanningResult:
        if error.code == TOOLS_UNSUPPORTED:
            self.conversation.plain.add(self.agent.provider.name)
            message = (
                "This model cannot read your notes; it plans from your message alone. "
                "Choose another model to ask about notes."
            )
            await self.emit(Notice(Problem(TOOLS_UNSUPPORTED, message)))
            instructions = self.prepared.prefix.instructions  # truncated to the window already
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
    ) -> PlanningResult | None:
        tools = self.agent.callable_tools
        parsed_calls = [
            understand(
                call, tools, propose=proposals is not None, server_tools=self.prepared.server_tools
            )
            for call in calls
        ]
        meter = self.meter

        async def emit(event: AgentEvent) -> None:
            meter.time_tools(event)
            await self.emit(event)

        work = ToolRound(self.prepared, self.agent.vault.scrubber, self.refused)
        meter.time_tools()
        await work.run(parsed_calls, emit)
        meter.time_tools(finished=True)
        verdict: PlanReady | TurnFailed | None = None
        for parsed in parsed_calls:
            if not isinstance(parsed, ProposalCall) or proposals is None:
                continue
            if verdict is None:
                verdict = await proposals.propose(parsed, work)
            else:
                message = "Propose one plan at a time; the first one was shown to the user."
                work.reject(parsed, (Problem("ONE_PLAN", message),))
            await self.emit(work.finished(parsed))
        for call in calls:
            result = work.results[call.id]
            self.conversation.add_result(call, result.text)
            if result.sending is not None:
                self._share(result.sending)
        return verdict

    async def _end(self, proposals: TurnProposals | None) -> PlanningResult | None:
        """Handle an answer without calls: text, or a plan that the model wrote instead of a call.

        Return None if the model must correct its plan.
        """
        text = self.reply.text
        is_truncated = self.reply.reason == "length"
        if proposals is not None and not is_truncated:
            written = plan_in(text)
            if written is not None:
                outcome = await proposals.propose_written(*written)
                if not isinstance(outcome, Rejected):
                    return outcome
                self.conversation.add_request(correction(outcome.problems, outcome.usage))
                await self.emit(proposals.retry_event(outcome))
                return None
        if not text.strip():
            message = "The model's answer is empty. Ask again, or choose another model."
            return TurnFailed(Problem("EMPTY_ANSWER", message))
        if is_truncated:
            message = "The answer reached the model's length limit. Ask the model to continue."
            await self.emit(Notice(Problem(TRUNCATED, message)))
        credit = self.shared.credit(text)
        return Answer(text, credit.sources, credit.also_sent)

    # --- a model without calls ---

    async def _plan_in_json(self, history: tuple[ChatMessage, ...]) -> PlanningResult:
        """Ask for a plan as JSON.

        An invalid plan is sent back with its problems. A truncated one is requested once more with
        twice the limit.
        """
        agent, prepared = self.agent, self.prepared
        opening = (*history, await asyncio.to_thread(agent.message, self.request, prepared))
        sampling, rejected, answer = prepared.sampling, Rejected(()), ""
        for attempt in range(1, MAX_REQUESTS + 1):
            messages = opening
            if answer:
                repair = correction(rejected.problems, rejected.usage)
                messages = (*opening, bad_answer(answer), repair)
            # An interrupted plan is not added to the conversation.
            self.reply = Reply(recorded=True)
            try:
                await self._receive(prepared.prefix.request(messages, sampling, json_only=True))
            except ProviderError as error:
                return TurnFailed(error.problem())
            reply, propose = self.reply, agent.dry_run is not None
            verdict = await asyncio.to_thread(
                judge_json_answer,
                reply.text,
                reply.reason,
                agent.tools,
                agent.turn_policy,
                propose=propose,
            )
            if not isinstance(verdict, Rejected):
                self._remember(verdict)
                return verdict
            rejected = verdict
            if self.reply.reason == "length":
                if sampling is not prepared.sampling:
                    return _truncated_again(sampling.max_tokens or 0)
                used = self.reply.usage.completion_tokens if self.reply.usage is not None else 0
                limit = sampling.max_tokens or used or ASSUMED_LIMIT
                sampling = replace(sampling, max_tokens=2 * limit)
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


def _truncated_again(limit: int) -> TurnFailed:
    message = (
        f"The model's answer was truncated twice, the second time at {limit} tokens. "
        "Ask for less at a time, or raise max_tokens."
    )
    return TurnFailed(Problem(TRUNCATED, message))
