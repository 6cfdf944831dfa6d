"""The request to a model, and the reception of its answer.

An answer consists of its text and of its calls, which are assembled from fragments.
"""

from __future__ import annotations

import contextlib
from typing import assert_never

from msgspec import Struct, field

from obsidian_agent.agent.events import (
    AgentEvent,
    Emit,
    Notice,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
)
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


class Sampling(Struct, frozen=True):
    """The parameters of requests to a model.

    `max_tokens` None lets the service limit the answer. `timeout` is in seconds without data; None
    for the provider's default.
    """

    temperature: float = 0.2
    max_tokens: int | None = None
    timeout: float | None = None


class _Pieces(Struct):
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class Reply(Struct):
    """The answer received so far, without the thinking.

    `recorded`: it has been added to the conversation.
    """

    parts: list[str] = field(default_factory=list)
    pieces: dict[int, _Pieces] = field(default_factory=dict)
    reason: FinishReason = "error"
    usage: Usage | None = None
    recorded: bool = False

    @property
    def text(self) -> str:
        """The text."""
        return "".join(self.parts)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls, in order."""
        return tuple(
            ToolCall(piece.id, piece.name, "".join(piece.arguments))
            for _, piece in sorted(self.pieces.items())
        )

    def add_call(self, chunk: ToolCallChunk) -> None:
        """Add a fragment of a call."""
        call = self.pieces.setdefault(chunk.number, _Pieces())
        call.id = call.id or chunk.id
        call.name = call.name or chunk.name
        call.arguments.append(chunk.arguments)


async def receive(provider: Provider, request: ChatRequest, reply: Reply, emit: Emit) -> None:
    """Send a request, collect the answer in `reply`, and emit the events to display.

    Raises `ProviderError`.
    """
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
                        ToolCallFinished(call_id=identity, tool=tool, problem=problem)
                        if ended
                        else ToolCallStarted(
                            call_id=identity, tool=tool, purpose=purpose, args=args
                        )
                    )
                case Remark(problem, alarm):
                    await emit(Notice(problem, alarm))
                case Finished(reason, usage):
                    reply.reason, reply.usage = reason, usage
                case _:
                    assert_never(delta)


async def whole_reply(provider: Provider, request: ChatRequest) -> Reply:
    """Send a request without emitting events and return the answer. Raises `ProviderError`."""

    async def ignore(event: AgentEvent) -> None:
        pass

    reply = Reply()
    await receive(provider, request, reply, ignore)
    return reply
