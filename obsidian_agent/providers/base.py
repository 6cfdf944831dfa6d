"""What a planner asks of a model, and what it gets back: one request, one stream of deltas, one way to fail (`ProviderError`)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Literal, Protocol

from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import Problem

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """A function that the model may call. `name` holds letters, digits, _ and - only; `parameters` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the model made it. `arguments` is the text that it wrote: JSON when all went well."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of the conversation as it goes to the model.

    An assistant's message may hold `calls`; each is answered by one message of role "tool", before any other message, whose `call_id` is
    the call's.
    """

    role: Role
    text: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One completion. `json_only` asks for a JSON object where the service can promise one, `schema` (a JSON Schema of an object) for one
    of that shape. What comes need not keep to either: services without such a promise answer as they like. Timeout in seconds between chunks.

    A service that cannot call tools refuses a request with `tools` with the code API_TOOLS_UNSUPPORTED.
    """

    messages: tuple[ChatMessage, ...]
    temperature: float = 0.2
    max_tokens: int | None = None
    json_only: bool = False
    timeout: float = 60.0
    tools: tuple[ToolOffer, ...] = ()
    schema: Mapping[str, Any] | None = None
    conversation: str = ""
    """Whose request this is, for a provider that keeps conversations itself; "" for one that belongs to none."""


@dataclass(frozen=True, slots=True)
class TextChunk:
    """Streamed text; `thinking` is the model's reasoning, shown apart."""

    text: str
    thinking: bool = False


@dataclass(frozen=True, slots=True)
class ToolCallChunk:
    """A piece of a call; pieces of call `number` (from 0, in the order of the calls) join to one. `id` and `name` come with its first."""

    number: int
    arguments: str
    id: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request, as the service counts them. `cached_tokens` of the prompt's are what it remembered from an earlier one."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0


FinishReason = Literal["stop", "length", "error"]


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of a stream. `length` means that the text was cut. `usage` is None when the service does not tell."""

    reason: FinishReason
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """The request goes out by itself after a pause: again, when it failed before anything of the answer came, or for the first time
    (`attempt` 1), when too many went out before it.

    `attempt` is the one that comes after the pause, of `attempts`.
    """

    seconds: float
    attempt: int
    attempts: int
    problem: Problem


@dataclass(frozen=True, slots=True)
class OwnCall:
    """A call that a provider makes which looks around by itself; nobody here answers it. `ended`: it is over, with `problem` in vain."""

    id: str
    tool: str
    args: Mapping[str, Any]
    ended: bool = False
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that the person should know; `alarm`: that they must see."""

    problem: Problem
    alarm: bool = False


ChatDelta = TextChunk | ToolCallChunk | Waiting | OwnCall | Remark | Finished


class Provider(Protocol):
    """A source of completions."""

    @property
    def name(self) -> str:
        """How it is shown and chosen: `openai/gpt-5`, `scripted/answers.jsonl`."""
        ...

    @property
    def address(self) -> str:
        """Where requests go, as scheme and host; "" when they go nowhere."""
        ...

    @property
    def local(self) -> bool:
        """Whether requests stay on this machine (loopback)."""
        ...

    def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """One completion as deltas, ended by exactly one `Finished`. Raises `ProviderError`; closing the iterator cancels the request."""
        ...
