"""Streams of server-sent events at the pace of a screen, with joined pieces of text.

Client libraries need most of a millisecond per event, and services may send events faster than a
screen is drawn. Neighbouring events with text of the same kind and position are joined; all other
events pass unchanged.

This module imports httpx, so it is imported only when a model is called.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator
from typing import Any, Final

import httpx
from msgspec import Struct

PACE: Final = 0.02
"""Seconds between two pieces of a stream after the first one; screens are drawn less often."""

_EVENT_END: Final = re.compile(rb"\r?\n\r?\n")
_OPENAI: Final = b'data: {"'
_ANTHROPIC: Final = b"event: content_block_delta\n"
_TEXTS: Final = ("content", "reasoning_content", "reasoning")
_EMPTY: Final[tuple[object, ...]] = (None, "", [], {})


class _Piece(Struct, frozen=True):
    """The text of an event. Events with equal `position` can be joined."""

    position: tuple[object, ...]
    text: str
    document: dict[str, Any]


class PacedStream(httpx.AsyncByteStream):
    """An event stream that yields at most every `PACE` seconds, with joined events."""

    def __init__(self, inner: httpx.AsyncByteStream) -> None:
        self._inner = inner
        self._arrived: list[bytes] = []
        self._ready = asyncio.Event()
        self._ended = False
        self._failure: Exception | None = None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        loop, merger, last = asyncio.get_running_loop(), EventMerger(), float("-inf")
        pump = asyncio.create_task(self._pump())
        try:
            while not self._ended or self._arrived:
                await self._ready.wait()
                self._ready.clear()
                if not self._ended and (wait := last + PACE - loop.time()) > 0:
                    await asyncio.sleep(wait)
                data = b"".join(self._arrived)
                self._arrived.clear()
                if joined := merger.feed(data):
                    last = loop.time()
                    yield joined
            if rest := merger.end():
                yield rest
            if self._failure is not None:
                raise self._failure
        finally:
            pump.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await pump

    async def _pump(self) -> None:
        try:
            async for chunk in self._inner:
                self._arrived.append(chunk)
                self._ready.set()
        except Exception as error:
            self._failure = error
        finally:
            self._ended = True
            self._ready.set()

    async def aclose(self) -> None:
        await self._inner.aclose()


class EventMerger:
    """A filter that joins the text events of a stream, which may arrive in any pieces."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> bytes:
        """Add data and return the complete events so far, joined."""
        # The rest contains no end of an event, at most the beginning of one.
        scanned = max(0, len(self._rest) - 3)
        data = self._rest + data
        joined: list[bytes] = []
        held: list[tuple[bytes, _Piece]] = []
        start = 0
        for end in _EVENT_END.finditer(data, scanned):
            event = data[start : end.end()]
            start = end.end()
            piece = _piece(event)
            if held and (piece is None or piece.position != held[0][1].position):
                joined.append(_join(held))
                held.clear()
            if piece is None:
                joined.append(event)
            else:
                held.append((event, piece))
        if held:
            joined.append(_join(held))
        self._rest = data[start:]
        return b"".join(joined)

    def end(self) -> bytes:
        """Return the incomplete event at the end of the stream."""
        rest, self._rest = self._rest, b""
        return rest


def _join(held: list[tuple[bytes, _Piece]]) -> bytes:
    if len(held) == 1:
        return held[0][0]
    first = held[0][1]
    text = "".join(piece.text for _, piece in held)
    document = first.document
    if first.position[0] == "anthropic":
        document["delta"][first.position[2]] = text
        return _ANTHROPIC + b"data: " + json.dumps(document).encode() + b"\n\n"
    document["choices"][0]["delta"][first.position[2]] = text
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
        case {
            "type": "content_block_delta",
            "index": int(index),
            "delta": {"type": "text_delta", "text": str(text)},
        }:
            return _Piece(("anthropic", index, "text"), text, document)
        case {
            "type": "content_block_delta",
            "index": int(index),
            "delta": {"type": "thinking_delta", "thinking": str(text)},
        }:
            return _Piece(("anthropic", index, "thinking"), text, document)
        case {"choices": [{"delta": dict(delta), "index": int(index)} as choice], **rest} if (
            rest.get("usage") in _EMPTY
        ):
            return _openai_piece(document, choice, delta, index)
        case _:
            return None


def _openai_piece(
    document: dict[str, Any], choice: dict[str, Any], delta: dict[str, Any], index: int
) -> _Piece | None:
    fields = {
        name: value for name, value in delta.items() if name != "role" and value not in _EMPTY
    }
    others = [
        name
        for name, value in choice.items()
        if name not in ("delta", "index") and value not in _EMPTY
    ]
    if len(fields) != 1 or others or "error" in document:
        return None
    ((name, text),) = fields.items()
    if name not in _TEXTS or not isinstance(text, str):
        return None
    return _Piece(
        ("openai", index, name, document.get("id"), document.get("model")), text, document
    )
