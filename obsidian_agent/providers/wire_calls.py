"""Tools and calls in the shape of OpenAI chat completions, which litellm takes for every service and gives back from every service."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from obsidian_agent.providers.base import ToolCall, ToolCallChunk, ToolOffer


def wire_tool(offer: ToolOffer) -> dict[str, Any]:
    """An offered function."""
    function = {"name": offer.name, "description": offer.description, "parameters": dict(offer.parameters)}
    return {"type": "function", "function": function}


def wire_call(call: ToolCall) -> dict[str, Any]:
    """A call in an assistant's earlier message.

    Arguments that are no JSON object go back as an empty one: some services refuse them otherwise, and the call's result tells the model
    what was wrong.
    """
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _object(call.arguments)}}


def _object(arguments: str) -> str:
    try:
        document = json.loads(arguments)
    except (ValueError, RecursionError):
        return "{}"
    return arguments if isinstance(document, dict) else "{}"


@dataclass(slots=True)
class CallReading:
    """Tells apart the calls of one answer. Services number them in different ways: properly, all as 0, or not at all."""

    _numbers: dict[int, int] = field(default_factory=dict)
    _ids: dict[int, str] = field(default_factory=dict)
    _last: int = -1

    def take(self, pieces: Iterable[Any]) -> list[ToolCallChunk]:
        """The pieces in one chunk of a stream."""
        return [found for piece in pieces if (found := self._read(piece)) is not None]

    def _read(self, piece: Any) -> ToolCallChunk | None:
        function = getattr(piece, "function", None)
        name, arguments = getattr(function, "name", None), getattr(function, "arguments", None)
        name = name if isinstance(name, str) else ""
        arguments = arguments if isinstance(arguments, str) else ""
        told = getattr(piece, "id", None)
        identity = told if isinstance(told, str) else ""
        index = getattr(piece, "index", None)
        number = self._number(index if isinstance(index, int) else None, identity, name)
        if not (name or arguments or identity):
            return None
        return ToolCallChunk(number, arguments, identity, name)

    def _number(self, index: int | None, identity: str, name: str) -> int:
        """Which call a piece belongs to: a new one when its index is new, or when it comes with another id and a name."""
        known = self._last if index is None else self._numbers.get(index, -1)
        another = bool(name and identity and identity != self._ids.get(known))
        if known < 0 or another or (index is None and name and not identity):
            known = self._last = self._last + 1
        if index is not None:
            self._numbers[index] = known
        if identity:
            self._ids.setdefault(known, identity)
        return known
