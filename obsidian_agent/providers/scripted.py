"""A provider that replays answers from a file, one per request, for tests and demonstrations.

The file contains JSON lines, or one JSON list, of objects. Each has exactly one of

- `text`: the answer;
- `plan`: a document that is the answer;
- `chunks`: the answer in pieces;
- `calls`: tool calls as a list of `{name, arguments, id?}`; `arguments` is an object, or a text
  that is sent instead;
- `error`: `{code, message, retryable?, retryAfter?}`, raised instead of an answer.

`calls` and `error` may also follow `text` or `chunks`. Optional fields are `thinking`, `finish`
("stop" or "length"), `usage` ([prompt, completion, cached?]) and `delayMs` (before each piece).
Blank lines and lines that start with # are ignored.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from obsidian_agent.errors import ConfigError, ProviderError
from obsidian_agent.providers.base import (
    ChatDelta,
    ChatRequest,
    Finished,
    TextChunk,
    ToolCallChunk,
    Usage,
)

MAX_SCRIPT_BYTES: Final = 64 << 20

PIECE = 16
"""Characters per streamed piece."""


class _ScriptModel(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True
    )


class ScriptedError(_ScriptModel):
    """A failure of a script."""

    code: str = "API_ERROR"
    message: str
    retryable: bool = False
    retry_after: float | None = None


class ScriptedCall(_ScriptModel):
    """A call of a tool."""

    name: str
    arguments: dict[str, Any] | str = Field(default_factory=dict)
    id: str | None = None

    def text(self) -> str:
        """Return the arguments as text."""
        if isinstance(self.arguments, str):
            return self.arguments
        return json.dumps(self.arguments, ensure_ascii=False)


class ScriptedAnswer(_ScriptModel):
    """One answer of a script."""

    text: str | None = None
    plan: dict[str, Any] | None = None
    chunks: list[str] | None = None
    calls: list[ScriptedCall] = Field(default_factory=list)
    error: ScriptedError | None = None
    thinking: str = ""
    finish: Literal["stop", "length"] = "stop"
    usage: tuple[int, int] | tuple[int, int, int] | None = None
    delay_ms: Annotated[float, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _one_answer(self) -> ScriptedAnswer:
        fields = [name for name in ("text", "plan", "chunks") if getattr(self, name) is not None]
        if len(fields) > 1 or not (fields or self.calls or self.error):
            raise ValueError("give one of text, plan, chunks, calls or error")
        return self

    def pieces(self) -> list[str]:
        """Return the pieces of the answer."""
        if self.chunks is not None:
            return self.chunks
        if self.plan is not None:
            return _split(json.dumps(self.plan, ensure_ascii=False, indent=2))
        return _split(self.text or "")


class ScriptedProvider:
    """A `Provider` over a list of answers, which records its `requests`.

    It counts as a remote service, so that tests and demonstrations include every question of
    consent.
    """

    def __init__(
        self, name: str, answers: tuple[ScriptedAnswer, ...], *, local: bool = False
    ) -> None:
        self.name = name
        self.answers = answers
        self.requests: list[ChatRequest] = []
        self.address = ""
        self.local = local

    @classmethod
    def load(cls, path: Path) -> ScriptedProvider:
        """Load a script. Raise `ConfigError`, which names file and line."""
        try:
            with path.expanduser().open("rb") as file:
                data = file.read(MAX_SCRIPT_BYTES + 1)
            text = data[:MAX_SCRIPT_BYTES].decode("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"The script {path} cannot be read: {error}.",
                hint="Name a JSONL file: scripted/FILE.",
            ) from error
        if len(data) > MAX_SCRIPT_BYTES:
            raise ConfigError(f"The script {path} is larger than {MAX_SCRIPT_BYTES >> 20} MB.")
        return cls(f"scripted/{path}", _parse(text, path))

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """Stream the next answer. Raise `ProviderError` (SCRIPT_EXHAUSTED) if there is none."""
        self.requests.append(request)
        number = len(self.requests)
        if number > len(self.answers):
            raise ProviderError(
                f"{self.name} holds {len(self.answers)} answers, and this is request {number}.",
                code="SCRIPT_EXHAUSTED",
                hint="Add an answer to the script.",
            )
        answer = self.answers[number - 1]
        for thinking, pieces in ((True, _split(answer.thinking)), (False, answer.pieces())):
            for piece in pieces:
                await asyncio.sleep(answer.delay_ms / 1000)
                yield TextChunk(piece, thinking=thinking)
        for index, call in enumerate(answer.calls):
            yield ToolCallChunk(index, "", call.id or f"call_{number}_{index}", call.name)
            for piece in _split(call.text()):
                await asyncio.sleep(answer.delay_ms / 1000)
                yield ToolCallChunk(index, piece)
        if answer.error is not None:
            error = answer.error
            raise ProviderError(
                error.message,
                code=error.code,
                retryable=error.retryable,
                retry_after=error.retry_after,
            )
        yield Finished(answer.finish, Usage(*answer.usage) if answer.usage else None)


def _split(text: str) -> list[str]:
    return [text[start : start + PIECE] for start in range(0, len(text), PIECE)]


def _parse(text: str, path: Path) -> tuple[ScriptedAnswer, ...]:
    if text.lstrip().startswith("["):
        documents = [
            (f"{path}, answer {index}", document)
            for index, document in enumerate(_decode(text, str(path)), start=1)
        ]
    else:
        lines = [
            (f"{path}, line {number}", line.strip())
            for number, line in enumerate(text.split("\n"), start=1)
        ]
        documents = [
            (location, _decode(line, location))
            for location, line in lines
            if line and not line.startswith("#")
        ]
    return tuple(_answer(document, location) for location, document in documents)


def _decode(text: str, location: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{location}: not JSON: {error}.") from error


def _answer(document: Any, location: str) -> ScriptedAnswer:
    try:
        return ScriptedAnswer.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        field_name = ".".join(str(part) for part in first["loc"])
        raise ConfigError(
            f"{location}: {f'{field_name}: ' if field_name else ''}{first['msg']}."
        ) from error
