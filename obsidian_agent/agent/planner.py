"""From a message of the person to a plan: what every planner works on, how it is asked, and a model's answer as it comes in.

An answer is its text, and its calls put together from their fragments.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, assert_never

from obsidian_agent.agent.events import (
    AgentEvent,
    Emit,
    Notice,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
)
from obsidian_agent.dataclass import dataclass, field
from obsidian_agent.errors import Problem
from obsidian_agent.providers.base import (
    ChatRequest,
    Finished,
    FinishReason,
    OwnCall,
    Provider,
    Remark,
    TextChunk,
    ToolCall,
    ToolCallChunk,
    Usage,
    Waiting,
)
from obsidian_agent.tools.core.tool import RunContext

if TYPE_CHECKING:
    from obsidian_agent.agent.events import Emit, Verdict


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What a planner works on. `params` are values that a plan may use by name. `pick`: the person chose this candidate, from 1."""

    message: str
    context: RunContext
    params: Mapping[str, Any] = field(default_factory=dict)
    pick: int | None = None


class Planner(Protocol):
    """A maker of plans."""

    @property
    def name(self) -> str:
        """How it is shown: the model's name, or what else plans."""
        ...

    async def plan(self, request: PlanRequest, emit: Emit) -> Verdict:
        """What the message comes to; everything that happens until then is emitted. Cancelling it ends the turn."""
        ...


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a model is asked. `max_tokens` None leaves the room for an answer to the service; `timeout` is seconds of silence, None: the provider's own."""

    temperature: float = 0.2
    max_tokens: int | None = None
    timeout: float | None = None


@dataclass(slots=True)
class _Pieces:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Reply:
    """An answer so far, without the thinking. `settled`: it has found its place in the conversation."""

    parts: list[str] = field(default_factory=list)
    pieces: dict[int, _Pieces] = field(default_factory=dict)
    reason: FinishReason = "error"
    usage: Usage | None = None
    recorded: bool = False

    @property
    def text(self) -> str:
        return "".join(self.parts)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls in it, in their order."""
        return tuple(
            ToolCall(each.id, each.name, "".join(each.arguments))
            for _, each in sorted(self.pieces.items())
        )

    def add_call(self, chunk: ToolCallChunk) -> None:
        call = self.pieces.setdefault(chunk.number, _Pieces())
        call.id = call.id or chunk.id
        call.name = call.name or chunk.name
        call.arguments.append(chunk.arguments)


async def receive(provider: Provider, request: ChatRequest, reply: Reply, emit: Emit) -> None:
    """Send a request, keep what comes in `reply`, and emit what is to be shown. Raises `ProviderError`."""
    from obsidian_agent.providers.thinking import thinking_apart

    async with (
        contextlib.aclosing(provider.stream(request)) as streamed,
        contextlib.aclosing(thinking_apart(streamed)) as deltas,
    ):
        async for delta in deltas:
            match delta:
                case TextChunk(text, thinking):
                    if not thinking:
                        reply.parts.append(text)
                    await emit(TextDelta(text, thinking))
                case ToolCallChunk():
                    reply.add_call(delta)
                case Waiting(seconds, attempt, attempts, problem):
                    again = f"Asking again ({attempt} of {attempts})" if attempt > 1 else "Asking"
                    await emit(
                        Notice(
                            Problem(problem.code, f"{problem.message} {again} in {seconds:.0f} s.")
                        )
                    )
                case OwnCall(identity, tool, args, ended, problem):
                    purpose = tool.replace("_", " ")
                    await emit(
                        ToolCallFinished(identity, tool, problem=problem)
                        if ended
                        else ToolCallStarted(identity, tool, purpose, args)
                    )
                case Remark(problem, alarm):
                    await emit(Notice(problem, alarm))
                case Finished(reason, usage):
                    reply.reason, reply.usage = reason, usage
                case _:
                    assert_never(delta)


async def whole_reply(provider: Provider, request: ChatRequest) -> Reply:
    """Send a request of which nothing is shown; the answer. Raises `ProviderError`."""

    async def unheard(event: AgentEvent) -> None:
        """Nobody is told."""

    reply = Reply()
    await receive(provider, request, reply, unheard)
    return reply
