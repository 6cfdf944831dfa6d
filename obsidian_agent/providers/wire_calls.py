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
class _Begun:
    """What has come of one call."""

    number: int
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether its arguments are a whole document, so that nothing more can belong to it."""
        try:
            json.loads("".join(self.arguments))
        except (ValueError, RecursionError):
            return False
        return True


@dataclass(slots=True)
class CallReading:
    """Tells apart the calls of one answer. Services number them properly, or all as 0, or not at all, and some give no ids."""

    _by_index: dict[int, _Begun] = field(default_factory=dict)
    _last: _Begun | None = None
    _count: int = 0

    def take(self, pieces: Iterable[Any]) -> list[ToolCallChunk]:
        """The pieces in one chunk of a stream."""
        return [found for piece in pieces if (found := self._read(piece)) is not None]

    def _read(self, piece: Any) -> ToolCallChunk | None:
        function = getattr(piece, "function", None)
        name, arguments = _text(getattr(function, "name", None)), _text(getattr(function, "arguments", None))
        identity, index = _text(getattr(piece, "id", None)), getattr(piece, "index", None)
        if not (name or arguments or identity):
            return None
        known = self._by_index.get(index) if isinstance(index, int) else self._last
        if known is None or _another(known, identity, name, arguments):
            known = _Begun(self._count)
            self._count += 1
        if isinstance(index, int):
            self._by_index[index] = known
        self._last = known
        known.id, known.name = known.id or identity, known.name or name
        known.arguments.append(arguments)
        return ToolCallChunk(known.number, arguments, identity, name)


def _another(known: _Begun, identity: str, name: str, arguments: str) -> bool:
    """Whether a piece begins another call than the one that was last known under its index."""
    if not name or not known.name:
        return False
    return identity != known.id if identity and known.id else bool(arguments) and known.complete


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
