"""From a message of the person to a plan: the protocol that every planner follows, and the planner that asks a model.

One turn is at most `MAX_REQUESTS` requests to the model. An answer that is no valid plan goes back with everything that is wrong with
it; an answer that was cut is asked for once more with twice the room. Passing failures of the service are the provider's to repeat.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, assert_never, cast

from obsidian_agent.agent.events import Answer, PlanningRetry, PlanReady, TextDelta, TurnEvent, TurnFailed
from obsidian_agent.agent.privacy.untrusted_text import new_mark
from obsidian_agent.agent.turn.model_tools import Detail, usage_of
from obsidian_agent.agent.turn.prompts import bad_answer, correction, hint, request_message, system_prompt
from obsidian_agent.errors import Problem, ProviderError
from obsidian_agent.plan.flags import Policy
from obsidian_agent.plan.llm_output import ParsedPlan, ParsedProse, ParseFailed, parse_plan
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.plan.validate import validate
from obsidian_agent.providers.base import (
    ChatDelta,
    ChatMessage,
    ChatRequest,
    Finished,
    FinishReason,
    Provider,
    TextChunk,
    ToolCallChunk,
    Usage,
    Waiting,
)
from obsidian_agent.tools.core.tool import RunContext, Tool

MAX_REQUESTS = 3
FAILED_MESSAGE = "LLM failed to generate valid plan. Try rephrasing your request."
FAILED_CODE = "LLM_PLAN_INVALID"
CUT_CODE = "TRUNCATED"
USUAL_ROOM = 4096
"""Tokens that an answer was cut at when nobody said."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What a planner works on. `params` are values that a plan may use by name; `show_selection`: the model may see the selected text.

    `extra` is text that goes along with the message: notes, fenced and labelled. `pick`: the person chose this candidate, from 1.
    """

    message: str
    context: RunContext
    history: tuple[ChatMessage, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    show_selection: bool = True
    extra: str = ""
    pick: int | None = None


class Planner(Protocol):
    """A maker of plans."""

    @property
    def name(self) -> str:
        """How it is shown: the model's name, or what else plans."""
        ...

    def plan(self, request: PlanRequest) -> AsyncIterator[TurnEvent]:
        """The turn's events, the last of which is PlanReady, Answer, NeedsInput or TurnFailed. Closing the iterator cancels."""
        ...


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a model is asked. `max_tokens` None leaves the room for an answer to the service; `timeout` is seconds of silence."""

    temperature: float = 0.2
    max_tokens: int | None = None
    timeout: float = 60.0


@dataclass(slots=True)
class _Reply:
    """One answer as it came in, without the thinking."""

    parts: list[str] = field(default_factory=list)
    reason: FinishReason = "error"
    usage: Usage | None = None

    @property
    def text(self) -> str:
        return "".join(self.parts)


@dataclass(frozen=True, slots=True)
class _Rejected:
    """An answer to be given again; `usage` says how the tools are used that it uses wrongly."""

    problems: tuple[Problem, ...]
    usage: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelPlanner:
    """A planner over a provider. `new_mark` makes the mark of a request's data fences; `instructions` are the person's own; `detail`: how
    much the model is told of the plan language and the tools.
    """

    provider: Provider
    tools: Mapping[str, Tool]
    policy: Policy
    sampling: Sampling = Sampling()
    new_mark: Callable[[], str] = new_mark
    instructions: str = ""
    detail: Detail = "full"

    @property
    def name(self) -> str:
        """The provider's name."""
        return self.provider.name

    async def plan(self, request: PlanRequest) -> AsyncIterator[TurnEvent]:
        """Ask, judge, and ask again within the budget."""
        opening = await asyncio.to_thread(self._opening, request)
        room, rejected, answer = self.sampling.max_tokens, _Rejected(()), ""
        for attempt in range(1, MAX_REQUESTS + 1):
            messages = opening if not answer else (*opening, bad_answer(answer), correction(rejected.problems, rejected.usage))
            reply = _Reply()
            try:
                async with contextlib.aclosing(self._ask(messages, room, reply)) as events:
                    async for event in events:
                        yield event
            except ProviderError as error:
                yield TurnFailed(error.problem())
                return
            verdict = await asyncio.to_thread(self._judge, reply)
            if not isinstance(verdict, _Rejected):
                yield verdict
                return
            rejected = verdict
            if reply.reason == "length":
                if room is not None and room != self.sampling.max_tokens:
                    yield _cut_again(room)
                    return
                room = 2 * (room or (reply.usage.completion_tokens if reply.usage else 0) or USUAL_ROOM)
            else:
                answer = reply.text or " "
            if attempt < MAX_REQUESTS:
                yield PlanningRetry(attempt + 1, MAX_REQUESTS, rejected.problems)
        yield TurnFailed(Problem(FAILED_CODE, FAILED_MESSAGE), rejected.problems)

    def _opening(self, request: PlanRequest) -> tuple[ChatMessage, ...]:
        params = {**request.context.params, **request.params}
        shown = request.show_selection
        mark, extra = self.new_mark(), request.extra
        more = hint(request.message, self.tools.values(), self.detail)
        asked = request_message(request.message, request.context, params, self.policy, mark, show_selection=shown, extra=extra, tools=more)
        system = system_prompt(self.tools.values(), self.detail)
        if self.instructions:
            system = f"{system}\n{self.instructions}"
        return (ChatMessage("system", system), *request.history, asked)

    async def _ask(self, messages: tuple[ChatMessage, ...], room: int | None, reply: _Reply) -> AsyncGenerator[TurnEvent, None]:
        """One request; what comes is passed on and kept in `reply`."""
        sampling = self.sampling
        asked = ChatRequest(messages, sampling.temperature, room, json_only=True, timeout=sampling.timeout)
        # Every provider's stream is an async generator; the protocol only promises an iterator.
        deltas = cast("AsyncGenerator[ChatDelta, None]", self.provider.stream(asked))
        async with contextlib.aclosing(deltas):
            async for delta in deltas:
                match delta:
                    case TextChunk(text, thinking):
                        if not thinking:
                            reply.parts.append(text)
                        yield TextDelta(text, thinking)
                    case Waiting(seconds, attempt, attempts, problem):
                        told = Problem(problem.code, f"{problem.message} Asking{' again' if attempt > 1 else ''} in {seconds:.0f} s.")
                        yield PlanningRetry(attempt, attempts, (told,))
                    case ToolCallChunk():
                        pass  # no tools are offered here; who calls one all the same gets asked for a plan
                    case Finished(reason, usage):
                        reply.reason, reply.usage = reason, usage
                    case _:
                        assert_never(delta)

    def _judge(self, reply: _Reply) -> PlanReady | Answer | TurnFailed | _Rejected:
        """What an answer amounts to."""
        parsed = parse_plan(reply.text, reply.reason)
        match parsed:
            case ParsedProse(text):
                return Answer(text)
            case ParseFailed(code, message, retry):
                problem = Problem(code, message)
                return _Rejected((problem,)) if retry else TurnFailed(problem)
            case ParsedPlan(document, repairs):
                return self._judge_plan(document, tuple(repairs))
            case _:
                assert_never(parsed)

    def _judge_plan(self, document: object, repairs: tuple[str, ...]) -> PlanReady | Answer | TurnFailed | _Rejected:
        checked = validate(document, self.tools, self.policy)
        if checked.problems and not checked.final:
            return _Rejected(checked.problems, usage_of(checked.problems, document, self.tools))
        if checked.plan is not None:
            return PlanReady(checked.plan, repairs) if checked.plan.steps else Answer(_in_words(checked.plan))
        if checked.draft is not None:
            # What the person does not allow, or what lies out of reach, fails as a plan does: asking again would not change it.
            return PlanReady(checked.draft, repairs)
        return TurnFailed(checked.problems[0], checked.problems)


def _in_words(plan: ActionPlan) -> str:
    return "\n".join([plan.goal, *(f"- {assumption}" for assumption in plan.assumptions)])


def _cut_again(room: int) -> TurnFailed:
    message = f"The model's answer was cut twice, the second time at {room} tokens. Ask for less at a time, or raise max_tokens."
    return TurnFailed(Problem(CUT_CODE, message))
