"""The one HTTP client through which models are called: what goes where, how much comes back, and what really happened.

Client libraries retry on their own, follow redirects with the key in the headers, read bodies of any size, and turn a refused
connection into "server error 500". This client does none of that and keeps a record of the exchange, so that an error can be named for
what it was. Events that come faster than a screen is drawn are joined, since libraries take most of a millisecond for each: only neighbours
that say nothing but a piece of text, of the same kind and place; everything else passes byte for byte.

Imports httpx; loaded only when a model is called.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import logging
import re
import ssl
from collections.abc import AsyncIterator
from typing import Any, Final

import httpx

from obsidian_agent.dataclass import dataclass, field

MAX_STREAM_BYTES = 48 * 1024 * 1024
"""Of a streamed answer as sent. Each delta comes in an envelope many times its size."""
MAX_LINE_BYTES = 8 * 1024 * 1024
"""Of one line: stream readers hold a line in memory until it ends."""
MAX_ERROR_BYTES = 64 * 1024
"""Of an error body: the rest is not read."""
CONNECT_SECONDS = 10.0
PACE = 0.02
"""Seconds between two pieces of a stream, but for the first: nobody reads faster, and screens are drawn less often."""


for _chatty in ("httpcore", "httpx", "openai"):
    # What they write down for debugging holds headers, keys among them, and the text of notes.
    logging.getLogger(_chatty).setLevel(logging.CRITICAL + 1)


class ResponseTooLarge(httpx.TransportError):
    """The answer exceeds what is read."""


class NotAModelService(httpx.TransportError):
    """The answer is no answer of a model service: a web page, or an encoding that was not asked for."""


class ConnectionFailed(httpx.TransportError):
    """No connection, or it was closed without an answer."""


@dataclass(slots=True)
class Exchange:
    """What happened on the wire during one completion."""

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    error_body: bytes = b""
    failure: Exception | None = None
    """The first failure of the transport, before a library gave it another name."""


@functools.lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    return httpx.create_ssl_context()


def prepare() -> None:
    """Read the certificates, which takes a tenth of a second the first time."""
    _tls()


class GuardedClient(httpx.AsyncClient):
    """An httpx client for one completion. It talks to `origin` alone; `direct` ignores proxies of the environment."""

    def __init__(self, *, origin: str, timeout: float, direct: bool) -> None:
        super().__init__(
            verify=_tls(),
            timeout=httpx.Timeout(timeout, connect=min(CONNECT_SECONDS, timeout)),
            follow_redirects=False,
            trust_env=not direct,
        )
        self.exchange = Exchange()
        self._origin = _origin(httpx.URL(origin))

    async def send(
        self, request: httpx.Request, *, stream: bool = False, **options: Any
    ) -> httpx.Response:
        """As httpx does, but no redirect is followed, sizes are limited, and failures are kept in `exchange`."""
        options.pop("follow_redirects", None)
        if _origin(request.url) != self._origin:
            reason = (
                f"A request to {request.url.host} was stopped: only {self._origin[1]} was named."
            )
            self.exchange.failure = ConnectionFailed(reason, request=request)
            raise self.exchange.failure
        request.headers["accept-encoding"] = "identity"
        try:
            response = await super().send(request, stream=True, follow_redirects=False, **options)
        except httpx.TimeoutException as error:
            self.exchange.failure = error
            raise
        except httpx.TransportError as error:
            self.exchange.failure = error
            # litellm repeats the request through a client of its own after ConnectError and RemoteProtocolError.
            raise ConnectionFailed(str(error), request=request) from error
        await self._inspect(response)
        if not stream:
            await response.aread()
        return response

    async def _inspect(self, response: httpx.Response) -> None:
        exchange = self.exchange
        exchange.status, exchange.headers = (
            response.status_code,
            {name.lower(): value for name, value in response.headers.items()},
        )
        body: httpx.AsyncByteStream = _Guarded(response.stream, exchange)
        if response.status_code >= 300:
            exchange.error_body = await _first_bytes(body, MAX_ERROR_BYTES)
            await response.aclose()
            # What follows sees a body of this size, whatever was announced.
            for name in ("content-encoding", "content-length", "transfer-encoding"):
                response.headers.pop(name, None)
            response.stream = httpx.ByteStream(exchange.error_body)
            response.is_closed = response.is_stream_consumed = False
            return
        unasked = exchange.headers.get("content-encoding", "identity").lower()
        content_type = exchange.headers.get("content-type", "").lower()
        if unasked != "identity" or content_type.startswith("text/html"):
            await response.aclose()
            reason = f"encoding {unasked!r}" if unasked != "identity" else "a web page"
            exchange.failure = NotAModelService(
                f"The answer is {reason}.", request=response.request
            )
            raise exchange.failure
        response.stream = _Paced(body) if content_type.startswith("text/event-stream") else body


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


class _Guarded(httpx.AsyncByteStream):
    """A body that ends in an error where it grows too large, and whose failures are recorded."""

    def __init__(self, inner: Any, exchange: Exchange) -> None:
        self._inner = inner
        self._exchange = exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total = line = 0
        try:
            async for chunk in self._inner:
                total += len(chunk)
                newline = chunk.rfind(b"\n")
                line = line + len(chunk) if newline < 0 else len(chunk) - newline - 1
                if total > MAX_STREAM_BYTES or line > MAX_LINE_BYTES:
                    raise ResponseTooLarge(
                        f"The answer exceeds {MAX_STREAM_BYTES} bytes, or one line {MAX_LINE_BYTES}."
                    )
                yield chunk
        except httpx.TransportError as error:
            self._exchange.failure = self._exchange.failure or error
            raise

    async def aclose(self) -> None:
        await self._inner.aclose()


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
        seen = max(
            0, len(self._rest) - 3
        )  # in what was held back there is no event's end, at most the beginning of one
        data = self._rest + data
        out: list[bytes] = []
        held: list[tuple[bytes, _Piece]] = []
        start = 0
        for end in _EVENT_END.finditer(data, seen):
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
    said = {name: value for name, value in delta.items() if name != "role" and value not in _EMPTY}
    others = [
        name
        for name, value in choice.items()
        if name not in ("delta", "index") and value not in _EMPTY
    ]
    if len(said) != 1 or others or "error" in document:
        return None
    ((name, text),) = said.items()
    if name not in _TEXTS or not isinstance(text, str):
        return None
    return _Piece(
        ("openai", index, name, document.get("id"), document.get("model")), text, document
    )


class _Paced(httpx.AsyncByteStream):
    """An event stream that is handed on at most every `PACE` seconds, its events joined where they can be."""

    def __init__(self, inner: httpx.AsyncByteStream) -> None:
        self._inner = inner
        self._arrived: list[bytes] = []
        self._ready = asyncio.Event()
        self._ended = False
        self._failure: Exception | None = None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        loop, merger, last = asyncio.get_running_loop(), Merger(), float("-inf")
        pump = asyncio.create_task(self._pump())
        try:
            while not self._ended or self._arrived:
                await self._ready.wait()
                self._ready.clear()
                if not self._ended and (wait := last + PACE - loop.time()) > 0:
                    await asyncio.sleep(wait)
                data = b"".join(self._arrived)
                self._arrived.clear()
                if joined := merger.take(data):
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


async def _first_bytes(stream: httpx.AsyncByteStream, limit: int) -> bytes:
    found = bytearray()
    try:
        async for chunk in stream:
            found += chunk
            if len(found) >= limit:
                break
    except httpx.TransportError:
        pass  # The status says what is wrong; a body that breaks off adds nothing to that.
    return bytes(found[:limit])
