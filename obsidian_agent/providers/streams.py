"""Streams of a model's answer on their way to a screen: joined, moved into a thread of their own, or made one piece.

Events that come faster than a screen is drawn are joined, since client libraries take most of a millisecond for each: only neighbours that
say nothing but a piece of text, of the same kind and place; everything else passes byte for byte. Client libraries that block their event
loop get one of their own, in a thread; the loop that draws only ever receives finished items.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from obsidian_agent.providers.base import AroundProvider, ChatDelta, ChatRequest, TextChunk, Waiting
from obsidian_agent.providers.retry import closing

Item = TypeVar("Item")

LONGEST_GOODBYE = 1.0
"""Seconds that closing waits for the generator's own clean-up; a thread in the middle of an import is not waited for any longer."""


@dataclass(frozen=True, slots=True)
class _Ended:
    failure: Exception | None


@dataclass(slots=True)
class _Worker(Generic[Item]):
    """The thread's side. `deliver` may be called from it at any time."""

    make: Callable[[], AsyncGenerator[Item, None]]
    deliver: Callable[[Item | _Ended], None]
    closing: threading.Event = field(default_factory=threading.Event)
    loop: asyncio.AbstractEventLoop | None = None
    task: asyncio.Task[None] | None = None

    def run(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(self._pump())

    async def _pump(self) -> None:
        self.loop, self.task = asyncio.get_running_loop(), asyncio.current_task()
        failure: Exception | None = None
        try:
            # Set first, looked at second; `cancel` does it the other way round, so one of both sees the other.
            if not self.closing.is_set():
                async with contextlib.aclosing(self.make()) as items:
                    async for item in items:
                        self.deliver(item)
        except Exception as error:
            failure = error
        finally:
            self.deliver(_Ended(failure))

    def cancel(self) -> None:
        self.closing.set()
        if self.loop is not None and self.task is not None:
            with contextlib.suppress(RuntimeError):  # the loop closed in the meantime
                self.loop.call_soon_threadsafe(self.task.cancel)


async def in_own_loop(make: Callable[[], AsyncGenerator[Item, None]]) -> AsyncGenerator[Item, None]:
    """Yield what the generator made by `make` yields. Its exception is raised here; closing this one cancels and closes that one."""
    home = asyncio.get_running_loop()
    items: asyncio.Queue[Item | _Ended] = asyncio.Queue()
    ended = asyncio.Event()

    def receive(item: Item | _Ended) -> None:
        if isinstance(item, _Ended):
            ended.set()
        items.put_nowait(item)

    def deliver(item: Item | _Ended) -> None:
        with contextlib.suppress(RuntimeError):  # nobody is listening any more
            home.call_soon_threadsafe(receive, item)

    worker = _Worker(make, deliver)
    threading.Thread(target=worker.run, name="model", daemon=True).start()
    try:
        while not isinstance(item := await items.get(), _Ended):
            yield item
        if item.failure is not None:
            raise item.failure
    finally:
        if not ended.is_set():
            worker.cancel()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LONGEST_GOODBYE):
                    await ended.wait()


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


@dataclass(frozen=True, slots=True)
class WholeProvider(AroundProvider):
    """A provider whose text comes when all of it is there. The connection is a stream all the same, so that silence can be noticed."""

    async def stream(self, request: ChatRequest) -> AsyncIterator[ChatDelta]:
        """As the inner provider's, with at most one piece of thinking and one of text; what had come when it failed comes first."""
        texts: dict[bool, list[str]] = {True: [], False: []}
        held: list[ChatDelta] = []
        try:
            async with contextlib.aclosing(closing(self.inner.stream(request))) as deltas:
                async for delta in deltas:
                    match delta:
                        case TextChunk(text, thinking):
                            texts[thinking].append(text)
                        case Waiting():
                            yield delta
                        case _:
                            held.append(delta)
        except Exception:
            for chunk in _joined_by_kind(texts):
                yield chunk
            raise
        for chunk in _joined_by_kind(texts):
            yield chunk
        for delta in held:
            yield delta


def _joined_by_kind(texts: dict[bool, list[str]]) -> list[TextChunk]:
    return [TextChunk("".join(pieces), thinking) for thinking, pieces in texts.items() if pieces]
