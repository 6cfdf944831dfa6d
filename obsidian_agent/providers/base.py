"""What a planner asks of a model, and what it gets back: one request, one stream of deltas, one way to fail (`ProviderError`)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Literal, Protocol

from obsidian_agent.errors import Problem

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of the conversation as it goes to the model."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One completion. `json_only` asks for a JSON object where the service can promise one. Timeout in seconds between chunks."""

    messages: tuple[ChatMessage, ...]
    temperature: float = 0.2
    max_tokens: int | None = None
    json_only: bool = False
    timeout: float = 60.0


@dataclass(frozen=True, slots=True)
class TextChunk:
    """Streamed text; `thinking` is the model's reasoning, shown apart."""

    text: str
    thinking: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request, as the service counts them."""

    prompt_tokens: int
    completion_tokens: int


FinishReason = Literal["stop", "length", "error"]


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of a stream. `length` means that the text was cut. `usage` is None when the service does not tell."""

    reason: FinishReason
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """The request failed before anything of the answer came, and goes out again by itself after a pause.

    `attempt` is the one that comes after the pause, of `attempts`.
    """

    seconds: float
    attempt: int
    attempts: int
    problem: Problem


ChatDelta = TextChunk | Waiting | Finished


class Provider(Protocol):
    """A source of completions."""

    @property
    def name(self) -> str:
        """How it is shown and chosen: `openai/gpt-5`, `scripted/answers.jsonl`."""
        ...

    def stream(self, request: ChatRequest) -> AsyncIterator[ChatDelta]:
        """One completion as deltas, ended by exactly one `Finished`. Raises `ProviderError`; closing the iterator cancels the request."""
        ...
