"""Joining the events of a stream that come faster than a screen is drawn: client libraries take most of a millisecond for each.

Only neighbours are joined that say nothing but a piece of text, of the same kind and place; everything else passes byte for byte. What is
not a whole event yet waits for its end.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

_EVENT_END: Final = re.compile(rb"\r?\n\r?\n")
_OPENAI: Final = b'data: {"'
_ANTHROPIC: Final = b"event: content_block_delta\n"
_TEXTS: Final = ("content", "reasoning_content", "reasoning")
_EMPTY: Final[tuple[object, ...]] = (None, "", [], {})


@dataclass(frozen=True, slots=True)
class _Piece:
    """A text in an event: `place` is equal for those that can be joined; `document` is the event's."""

    place: tuple[object, ...]
    text: str
    document: dict[str, Any]


class Merger:
    """Takes a stream in any pieces and gives it back with fewer events."""

    def __init__(self) -> None:
        self._rest = b""

    def take(self, data: bytes) -> bytes:
        """What can be passed on by now."""
        data = self._rest + data
        out: list[bytes] = []
        held: list[tuple[bytes, _Piece]] = []
        start = 0
        for end in _EVENT_END.finditer(data):
            event = data[start : end.end()]
            start = end.end()
            piece = _piece(event)
            if held and (piece is None or piece.place != held[0][1].place):
                out.append(_joined(held))
                held.clear()
            if piece is None:
                out.append(event)
            else:
                held.append((event, piece))
        if held:
            out.append(_joined(held))
        self._rest = data[start:]
        return b"".join(out)

    def end(self) -> bytes:
        """What was no whole event when the stream ended."""
        rest, self._rest = self._rest, b""
        return rest


def _joined(held: list[tuple[bytes, _Piece]]) -> bytes:
    if len(held) == 1:
        return held[0][0]
    first, text = held[0][1], "".join(piece.text for _, piece in held)
    document = first.document
    if first.place[0] == "anthropic":
        document["delta"][first.place[2]] = text
        return _ANTHROPIC + b"data: " + json.dumps(document).encode() + b"\n\n"
    document["choices"][0]["delta"][first.place[2]] = text
    return b"data: " + json.dumps(document).encode() + b"\n\n"


def _piece(event: bytes) -> _Piece | None:
    if event.startswith(_ANTHROPIC):
        start = len(_ANTHROPIC) + len(b"data: ")
    elif event.startswith(_OPENAI):
        start = len(b"data: ")
    else:
        return None
    try:
        document = json.loads(event[start:])
    except (ValueError, RecursionError):
        return None
    match document:
        case {"type": "content_block_delta", "index": int(index), "delta": {"type": "text_delta", "text": str(text)}}:
            return _Piece(("anthropic", index, "text"), text, document)
        case {"type": "content_block_delta", "index": int(index), "delta": {"type": "thinking_delta", "thinking": str(text)}}:
            return _Piece(("anthropic", index, "thinking"), text, document)
        case {"choices": [{"delta": dict(delta), "index": int(index)} as choice], **rest} if rest.get("usage") in _EMPTY:
            return _openai_piece(document, choice, delta, index)
        case _:
            return None


def _openai_piece(document: dict[str, Any], choice: dict[str, Any], delta: dict[str, Any], index: int) -> _Piece | None:
    said = {name: value for name, value in delta.items() if name != "role" and value not in _EMPTY}
    others = [name for name, value in choice.items() if name not in ("delta", "index") and value not in _EMPTY]
    if len(said) != 1 or others or "error" in document:
        return None
    ((name, text),) = said.items()
    if name not in _TEXTS or not isinstance(text, str):
        return None
    return _Piece(("openai", index, name, document.get("id"), document.get("model")), text, document)
