"""The only HTTP client for model services. It guards requests and answers, and records exchanges.

Client libraries retry on their own, follow redirects with the key in the headers, read bodies of
any size, and turn a refused connection into "server error 500". This client does none of that, and
records the exchange, so that an error can be reported as what it was.

This module imports httpx, so it is imported only when a model is called.
"""

from __future__ import annotations

import functools
import logging
import ssl
from collections.abc import AsyncIterator
from typing import Any

import httpx
from msgspec import Struct, field

from obsidian_agent.providers.paced_stream import PacedStream

MAX_STREAM_BYTES = 48 * 1024 * 1024
"""Limit of a streamed answer. Each delta comes in an envelope many times its size."""
MAX_LINE_BYTES = 8 * 1024 * 1024
"""Limit of one line, which stream readers hold in memory until it ends."""
MAX_ERROR_BYTES = 64 * 1024
"""Limit of an error body; the rest is not read."""
CONNECT_SECONDS = 10.0

for _chatty in ("httpcore", "httpx", "openai"):
    # Their debug messages contain headers with keys, and the text of notes.
    logging.getLogger(_chatty).setLevel(logging.CRITICAL + 1)


class ResponseTooLarge(httpx.TransportError):
    """An answer that exceeds the size limits."""


class NotAModelService(httpx.TransportError):
    """An answer that is not from a model service: a web page, or an encoding not requested."""


class ConnectionFailed(httpx.TransportError):
    """A connection that failed or was closed without an answer."""


class Exchange(Struct):
    """The HTTP exchange of one completion."""

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    error_body: bytes = b""
    failure: Exception | None = None
    """The first failure of the transport, before a library renamed it."""


@functools.lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    return httpx.create_ssl_context()


def prepare() -> None:
    """Load the certificates, which takes a tenth of a second the first time."""
    _tls()


class GuardedClient(httpx.AsyncClient):
    """An httpx client for one completion, which sends requests to `origin` only.

    `direct` ignores the proxies of the environment.
    """

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
        """Send a request without following redirects. Limit sizes, and record failures."""
        options.pop("follow_redirects", None)
        if _origin(request.url) != self._origin:
            reason = (
                f"A request to {request.url.host} was blocked: only {self._origin[1]} is allowed."
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
            # After ConnectError and RemoteProtocolError litellm would repeat the request through
            # a client of its own.
            raise ConnectionFailed(str(error), request=request) from error
        await self._inspect(response)
        if not stream:
            await response.aread()
        return response

    async def _inspect(self, response: httpx.Response) -> None:
        exchange = self.exchange
        exchange.status = response.status_code
        exchange.headers = {name.lower(): value for name, value in response.headers.items()}
        body: httpx.AsyncByteStream = _GuardedStream(response.stream, exchange)
        if response.status_code >= 300:
            exchange.error_body = await _first_bytes(body, MAX_ERROR_BYTES)
            await response.aclose()
            # The announced size and encoding no longer apply.
            for name in ("content-encoding", "content-length", "transfer-encoding"):
                response.headers.pop(name, None)
            response.stream = httpx.ByteStream(exchange.error_body)
            response.is_closed = response.is_stream_consumed = False
            return
        encoding = exchange.headers.get("content-encoding", "identity").lower()
        content_type = exchange.headers.get("content-type", "").lower()
        if encoding != "identity" or content_type.startswith("text/html"):
            await response.aclose()
            reason = f"encoding {encoding!r}" if encoding != "identity" else "a web page"
            exchange.failure = NotAModelService(
                f"The answer is {reason}.", request=response.request
            )
            raise exchange.failure
        response.stream = (
            PacedStream(body) if content_type.startswith("text/event-stream") else body
        )


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


class _GuardedStream(httpx.AsyncByteStream):
    """A body that fails when it grows too large, and whose failures are recorded."""

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
                        f"The answer is longer than {MAX_STREAM_BYTES >> 20} MB, "
                        f"or one of its lines than {MAX_LINE_BYTES >> 20} MB."
                    )
                yield chunk
        except httpx.TransportError as error:
            self._exchange.failure = self._exchange.failure or error
            raise

    async def aclose(self) -> None:
        await self._inner.aclose()


async def _first_bytes(stream: httpx.AsyncByteStream, limit: int) -> bytes:
    body = bytearray()
    try:
        async for chunk in stream:
            body += chunk
            if len(body) >= limit:
                break
    except httpx.TransportError:
        pass  # The status is enough to name the error.
    return bytes(body[:limit])
