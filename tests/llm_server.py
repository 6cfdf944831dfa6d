"""A language-model service on loopback for tests: real sockets, real wire formats, all failures.

It speaks OpenAI chat completions (`/v1/chat/completions`), Anthropic messages (`/v1/messages`) and
Ollama chat (`/api/chat`). It refuses what the real services refuse: a missing key, no `max_tokens`
for Anthropic, JSON mode without the word JSON, a schema that is not of an object, calls of tools
without exactly one result each. Every request is recorded.

    with LlmServer([Reply("Hello")]) as server:
        ...  # point a client at server.openai_url
        assert server.requests[0].body["messages"]
"""

from __future__ import annotations

import contextlib
import json
import selectors
import socket
import struct
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, assert_never

from llm_wire import (
    KEY,
    Call,
    Ending,
    Failure,
    Protocol,
    Recorded,
    Reply,
    error_body,
    error_event,
    events,
    protocol_of,
    refusal,
    whole,
)

__all__ = ["KEY", "Call", "Failure", "HangUp", "LlmServer", "Raw", "Recorded", "Reply", "Silence"]


@dataclass(frozen=True, slots=True)
class Raw:
    """A 200 answer with these bytes, `repeat` times over."""

    body: bytes
    content_type: str = "text/event-stream"
    repeat: int = 1
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Silence:
    """No answer at all until the client goes."""


@dataclass(frozen=True, slots=True)
class HangUp:
    """The connection is closed before a byte of an answer."""


Behaviour = Reply | Failure | Raw | Silence | HangUp


@dataclass(slots=True)
class _State:
    behaviours: list[Behaviour]
    models: tuple[str, ...]
    keyless: bool
    requests: list[Recorded] = field(default_factory=list)
    connects: list[str] = field(default_factory=list)
    asked: threading.Event = field(default_factory=threading.Event)
    client_gone: threading.Event = field(default_factory=threading.Event)
    stopping: threading.Event = field(default_factory=threading.Event)
    bytes_written: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def next(self) -> Behaviour:
        with self.lock:
            return self.behaviours.pop(0) if len(self.behaviours) > 1 else self.behaviours[0]


class LlmServer:
    """The server as a context manager. It plays one of `behaviours` per request, the last one forever.

    `models` are Ollama's; with `keyless` also those of the OpenAI protocol, which then needs no
    key, as with local services.
    """

    def __init__(
        self,
        behaviours: Iterable[Behaviour],
        models: Sequence[str] = ("qwen3:8b", "llama3"),
        *,
        keyless: bool = False,
    ) -> None:
        self._state = _State(list(behaviours), tuple(models), keyless)
        handler = type("Handler", (_Handler,), {"state": self._state})
        self._server = _Server(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )

    def __enter__(self) -> LlmServer:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._state.stopping.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Origin: for Anthropic and Ollama clients."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def openai_url(self) -> str:
        """Base URL as OpenAI clients want it."""
        return f"{self.url}/v1"

    @property
    def requests(self) -> list[Recorded]:
        """Everything that was asked, in order."""
        return self._state.requests

    @property
    def connects(self) -> list[str]:
        """The destinations for which clients requested a tunnel, as from a proxy."""
        return self._state.connects

    @property
    def asked(self) -> threading.Event:
        """Set when the first request has arrived."""
        return self._state.asked

    @property
    def client_gone(self) -> threading.Event:
        """Set when a client closed its connection while an answer was still going on."""
        return self._state.client_gone

    @property
    def bytes_written(self) -> int:
        """Bytes of bodies that clients took (socket buffers included)."""
        return self._state.bytes_written

    def play(self, *behaviours: Behaviour) -> None:
        """Replace what is still to be played."""
        self._state.behaviours[:] = behaviours


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Silent: clients that reset a connection are what is tested."""


class _Gone(Exception):
    """The client closed the connection."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: _State

    def log_message(self, format: str, *args: object) -> None:
        """Silent: tests look at the recorded requests."""

    def do_CONNECT(self) -> None:
        self.state.connects.append(self.path)
        self.send_error(502)

    def do_GET(self) -> None:
        """Send the list of models, or the next failure, raw body or silence in its place."""
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.state.requests.append(Recorded(self.path, None, headers, None))
        self.state.asked.set()
        behaviour = self.state.behaviours[0]
        given = headers.get("authorization", f"Bearer {headers.get('x-api-key')}")
        if isinstance(behaviour, Failure):
            self._fail(behaviour, "openai")
        elif isinstance(behaviour, Raw):
            self._send(200, behaviour.content_type, behaviour.body * behaviour.repeat)
        elif isinstance(behaviour, Silence):
            with contextlib.suppress(_Gone, ConnectionResetError):
                self._wait_for_client()
            self.close_connection = True
        elif self.path.startswith("/api/tags"):
            self._send(
                200,
                "application/json",
                json.dumps({"models": [{"name": name} for name in self.state.models]}).encode(),
            )
        elif given != f"Bearer {KEY}" and not self.state.keyless:
            self._fail(Failure(401, f"Incorrect API key provided: {given}"), "openai")
        else:
            names = (
                self.state.models
                if self.state.keyless
                else ("b-model", "a-model", "models/c-model")
            )
            models = [{"id": name, "object": "model"} for name in names]
            self._send(
                200, "application/json", json.dumps({"object": "list", "data": models}).encode()
            )

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", "0")))
        body = json.loads(raw) if raw else None
        protocol = protocol_of(self.path)
        self.state.requests.append(
            Recorded(
                self.path,
                protocol,
                {name.lower(): value for name, value in self.headers.items()},
                body,
            )
        )
        self.state.asked.set()
        if protocol is None:
            self._fail(Failure(404, "no such path"), "openai")
            return
        try:
            flaw = refusal(protocol, self.state.requests[-1], keyless=self.state.keyless)
            self._answer(flaw or self.state.next(), protocol, body)
        except (_Gone, BrokenPipeError, ConnectionResetError):
            self.state.client_gone.set()
            self.close_connection = True

    def _answer(self, behaviour: Behaviour, protocol: Protocol, body: Any) -> None:
        match behaviour:
            case Reply() if not body.get("stream", protocol == "ollama"):
                if behaviour.delay:
                    self._wait_for_client(behaviour.delay)
                self._send(
                    200,
                    "application/json",
                    json.dumps(whole(protocol, behaviour, str(body.get("model")))).encode(),
                )
            case Reply():
                self._stream(behaviour, protocol, str(body.get("model")))
            case Failure():
                self._fail(behaviour, protocol)
            case Raw():
                self._send_repeated(behaviour)
            case Silence():
                self._wait_for_client()
            case HangUp():
                self.close_connection = True
            case _:
                assert_never(behaviour)

    def _stream(self, reply: Reply, protocol: Protocol, model: str) -> None:
        self.send_response(200)
        self.send_header(
            "content-type",
            "application/x-ndjson" if protocol == "ollama" else "text/event-stream; charset=utf-8",
        )
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for _ in range(reply.keepalives):
            self._write(b": keep-alive\n\n", 0)
        early = reply.ending in ("clean-cut", "reset", "error-event", "stall")
        deltas = 0
        for is_text, event in events(protocol, reply, model):
            if early and is_text and deltas == reply.cut_after:
                self._end_early(reply.ending, protocol)
                return
            self._write(event, reply.write_size)
            deltas += is_text
            if reply.delay and is_text:
                self._wait_for_client(reply.delay)
        if early:
            self._end_early(reply.ending, protocol)
            return
        self.wfile.write(b"0\r\n\r\n")

    def _end_early(self, ending: Ending, protocol: Protocol) -> None:
        if ending == "clean-cut":
            self.wfile.write(b"0\r\n\r\n")
        elif ending == "stall":
            self._wait_for_client()
        elif ending == "error-event":
            self._write(error_event(protocol), 0)
            self.wfile.write(b"0\r\n\r\n")
        else:
            time.sleep(0.05)  # a reset discards what the client has not read yet
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True

    def _write(self, data: bytes, size: int) -> None:
        pieces = (
            [data[start : start + size] for start in range(0, len(data), size)] if size else [data]
        )
        for piece in pieces:
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            self.state.bytes_written += len(piece)
            self.wfile.flush()

    def _wait_for_client(self, seconds: float | None = None) -> None:
        """Wait until the client closes (raises) or the time is over."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while not self.state.stopping.is_set():
            left = 0.05 if deadline is None else min(0.05, deadline - time.monotonic())
            if left <= 0:
                return
            with (
                selectors.DefaultSelector() as selector
            ):  # select() knows no file numbers above 1023
                selector.register(self.connection, selectors.EVENT_READ)
                readable = selector.select(left)
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                raise _Gone

    def _fail(self, failure: Failure, protocol: Protocol) -> None:
        body = failure.body
        if body is None:
            body = json.dumps(error_body(protocol, failure)).encode()
        self._send(failure.status, failure.content_type, body, failure.headers)

    def _send(
        self, status: int, content_type: str, body: bytes, headers: tuple[tuple[str, str], ...] = ()
    ) -> None:
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.state.bytes_written += len(body)

    def _send_repeated(self, raw: Raw) -> None:
        self.send_response(200)
        self.send_header("content-type", raw.content_type)
        self.send_header("transfer-encoding", "chunked")
        for name, value in raw.headers:
            self.send_header(name, value)
        self.end_headers()
        for _ in range(raw.repeat):
            self._write(raw.body, 0)
        self.wfile.write(b"0\r\n\r\n")
