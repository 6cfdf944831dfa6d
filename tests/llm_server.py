"""A language-model service on loopback for tests: real sockets, the real wire formats, and every way such a service can fail.

Speaks OpenAI chat completions (`/v1/chat/completions`), Anthropic messages (`/v1/messages`) and Ollama chat (`/api/chat`). It refuses
what the real services refuse (a missing key, no `max_tokens` for Anthropic, JSON mode without the word JSON), so a client that passes
here sends what they expect. Every request is recorded.

    with LlmServer([Reply("Hello")]) as server:
        ...  # point a client at server.openai_url
        assert server.requests[0].body["messages"]
"""

from __future__ import annotations

import json
import select
import socket
import struct
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, assert_never

Protocol = Literal["openai", "anthropic", "ollama"]
Ending = Literal["complete", "no-done", "clean-cut", "reset", "error-event", "stall"]


@dataclass(frozen=True, slots=True)
class Reply:
    """A streamed answer. `piece` is characters in a delta; `write_size` cuts the bytes into HTTP chunks without regard for characters.

    `ending`: complete; no-done (finish reason, then no closing event); clean-cut (the body ends early but properly); reset (RST);
    error-event (an error object inside the stream); stall (silence until the client goes). The early ends come after `cut_after` deltas.
    """

    text: str
    thinking: str = ""
    piece: int = 7
    write_size: int = 0
    finish: Literal["stop", "length", "content_filter"] = "stop"
    usage: tuple[int, int] | None = (11, 7)
    ending: Ending = "complete"
    cut_after: int = 2
    delay: float = 0.0
    keepalives: int = 0


@dataclass(frozen=True, slots=True)
class Failure:
    """An answer with an error status. `body` None means the service's own error shape with `message`."""

    status: int
    message: str = "Something is wrong"
    kind: str = "error"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    content_type: str = "application/json"


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


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a client sent."""

    path: str
    protocol: Protocol | None
    headers: dict[str, str]
    body: Any


@dataclass(slots=True)
class _State:
    behaviours: list[Behaviour]
    requests: list[Recorded] = field(default_factory=list)
    asked: threading.Event = field(default_factory=threading.Event)
    client_gone: threading.Event = field(default_factory=threading.Event)
    stopping: threading.Event = field(default_factory=threading.Event)
    bytes_written: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def next(self) -> Behaviour:
        with self.lock:
            return self.behaviours.pop(0) if len(self.behaviours) > 1 else self.behaviours[0]


KEY = "sk-test-0123456789abcdefKEYKEYKEY"
"""The only key that the server takes."""


class LlmServer:
    """The server as a context manager; `behaviours` are played one a request, the last one for ever after."""

    def __init__(self, behaviours: Iterable[Behaviour]) -> None:
        self._state = _State(list(behaviours))
        handler = type("Handler", (_Handler,), {"state": self._state})
        self._server = _Server(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> LlmServer:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
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

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", "0")))
        body = json.loads(raw) if raw else None
        protocol = _protocol_of(self.path)
        self.state.requests.append(Recorded(self.path, protocol, {name.lower(): value for name, value in self.headers.items()}, body))
        self.state.asked.set()
        if protocol is None:
            self._fail(Failure(404, "no such path"), "openai")
            return
        try:
            self._answer(_refusal(protocol, self.state.requests[-1]) or self.state.next(), protocol, body)
        except (_Gone, BrokenPipeError, ConnectionResetError):
            self.state.client_gone.set()
            self.close_connection = True

    def _answer(self, behaviour: Behaviour, protocol: Protocol, body: Any) -> None:
        match behaviour:
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
        self.send_header("content-type", "application/x-ndjson" if protocol == "ollama" else "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for _ in range(reply.keepalives):
            self._write(b": keep-alive\n\n", 0)
        early = reply.ending in ("clean-cut", "reset", "error-event", "stall")
        deltas = 0
        for is_text, event in _events(protocol, reply, model):
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
            self._write(_error_event(protocol), 0)
            self.wfile.write(b"0\r\n\r\n")
        else:
            time.sleep(0.05)  # a reset discards what the client has not read yet
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True

    def _write(self, data: bytes, size: int) -> None:
        pieces = [data[start : start + size] for start in range(0, len(data), size)] if size else [data]
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
            readable, _, _ = select.select([self.connection], [], [], left)
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                raise _Gone

    def _fail(self, failure: Failure, protocol: Protocol) -> None:
        body = failure.body
        if body is None:
            body = json.dumps(_error_body(protocol, failure)).encode()
        self._send(failure.status, failure.content_type, body, failure.headers)

    def _send(self, status: int, content_type: str, body: bytes, headers: tuple[tuple[str, str], ...] = ()) -> None:
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


def _protocol_of(path: str) -> Protocol | None:
    plain = path.partition("?")[0]
    if plain.endswith("/chat/completions"):
        return "openai"
    if plain.endswith("/messages"):
        return "anthropic"
    if plain.endswith("/api/chat"):
        return "ollama"
    return None


def _refusal(protocol: Protocol, request: Recorded) -> Failure | None:
    """What the real service would refuse."""
    headers, body = request.headers, request.body
    if body.get("stream") is not True:
        return Failure(400, "this service only streams", "invalid_request_error")
    match protocol:
        case "openai":
            bearer = headers.get("authorization")
            if bearer != f"Bearer {KEY}":
                return Failure(401, f"Incorrect API key provided: {(bearer or 'none').removeprefix('Bearer ')}.", "invalid_api_key")
            if not body.get("messages"):
                return Failure(400, "[] is too short - 'messages'", "invalid_request_error")
            if body.get("response_format", {}).get("type") == "json_object" and "json" not in json.dumps(body["messages"]).lower():
                return Failure(400, "'messages' must contain the word 'json' in some form", "invalid_request_error")
        case "anthropic":
            if headers.get("x-api-key") != KEY:
                return Failure(401, "invalid x-api-key", "authentication_error")
            if not headers.get("anthropic-version"):
                return Failure(400, "anthropic-version: header is required", "invalid_request_error")
            if not body.get("max_tokens"):
                return Failure(400, "max_tokens: Field required", "invalid_request_error")
            if any(message["role"] not in ("user", "assistant") for message in body["messages"]):
                return Failure(400, "messages: Unexpected role", "invalid_request_error")
        case "ollama":
            return None
        case _:
            assert_never(protocol)
    return None


def _error_body(protocol: Protocol, failure: Failure) -> dict[str, Any]:
    match protocol:
        case "openai":
            return {"error": {"message": failure.message, "type": failure.kind, "param": None, "code": failure.kind}}
        case "anthropic":
            return {"type": "error", "error": {"type": failure.kind, "message": failure.message}}
        case "ollama":
            return {"error": failure.message}
        case _:
            assert_never(protocol)


def _error_event(protocol: Protocol) -> bytes:
    if protocol == "anthropic":
        body = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
        return b"event: error\n" + _data(body)
    if protocol == "ollama":
        return json.dumps({"error": "llama runner process no longer running: server_error"}).encode() + b"\n"
    return _data({"error": {"message": "The server had an error while processing your request", "type": "server_error", "code": None}})


def _data(document: dict[str, Any]) -> bytes:
    """One event. Not ASCII-escaped: UTF-8 goes over the wire as the services send it."""
    return b"data: " + json.dumps(document, ensure_ascii=False).encode() + b"\n\n"


def _pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def _events(protocol: Protocol, reply: Reply, model: str) -> Iterator[tuple[bool, bytes]]:
    """The stream as (is it a text delta, bytes)."""
    match protocol:
        case "openai":
            yield from _openai_events(reply)
        case "anthropic":
            yield from _anthropic_events(reply)
        case "ollama":
            yield from _ollama_events(reply, model)
        case _:
            assert_never(protocol)


def _openai_events(reply: Reply) -> Iterator[tuple[bool, bytes]]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _data({**_OPENAI_HEAD, "choices": [choice]})

    yield False, chunk({"role": "assistant", "content": ""})
    for piece in _pieces(reply.thinking, reply.piece):
        yield False, chunk({"reasoning_content": piece})
    for piece in _pieces(reply.text, reply.piece):
        yield True, chunk({"content": piece})
    yield False, chunk({}, reply.finish)
    if reply.usage:
        yield False, _data({**_OPENAI_HEAD, "choices": [], "usage": _openai_usage(reply.usage)})
    if reply.ending != "no-done":
        yield False, b"data: [DONE]\n\n"


_OPENAI_HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "test-model"}


def _openai_usage(usage: tuple[int, int]) -> dict[str, int]:
    return {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}


def _anthropic_events(reply: Reply) -> Iterator[tuple[bool, bytes]]:
    def event(kind: str, **fields: Any) -> bytes:
        return f"event: {kind}\n".encode() + _data({"type": kind, **fields})

    prompt, completion = reply.usage or (0, 0)
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "test-model",
        "content": [],
        "stop_reason": None,
    }
    yield False, event("message_start", message={**message, "stop_sequence": None, "usage": {"input_tokens": prompt, "output_tokens": 1}})
    yield False, event("ping")
    index = 0
    if reply.thinking:
        yield False, event("content_block_start", index=0, content_block={"type": "thinking", "thinking": "", "signature": ""})
        for piece in _pieces(reply.thinking, reply.piece):
            yield False, event("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": piece})
        yield False, event("content_block_stop", index=0)
        index = 1
    yield False, event("content_block_start", index=index, content_block={"type": "text", "text": ""})
    for piece in _pieces(reply.text, reply.piece):
        yield True, event("content_block_delta", index=index, delta={"type": "text_delta", "text": piece})
    yield False, event("content_block_stop", index=index)
    stop = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}[reply.finish]
    yield False, event("message_delta", delta={"stop_reason": stop, "stop_sequence": None}, usage={"output_tokens": completion})
    if reply.ending != "no-done":
        yield False, event("message_stop")


def _ollama_events(reply: Reply, model: str) -> Iterator[tuple[bool, bytes]]:
    def line(message: dict[str, Any], **fields: Any) -> bytes:
        document = {"model": model, "created_at": "2026-01-01T00:00:00Z", "message": {"role": "assistant", **message}, "done": False}
        return json.dumps({**document, **fields}, ensure_ascii=False).encode() + b"\n"

    for piece in _pieces(reply.thinking, reply.piece):
        yield False, line({"content": "", "thinking": piece})
    for piece in _pieces(reply.text, reply.piece):
        yield True, line({"content": piece})
    counts = {"prompt_eval_count": reply.usage[0], "eval_count": reply.usage[1]} if reply.usage else {}
    yield False, line({"content": ""}, done=True, done_reason=reply.finish, **counts)
