"""The wire formats of model services for the local test service: what a stream looks like, what an error, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, assert_never

Protocol = Literal["openai", "anthropic", "ollama"]
Ending = Literal["complete", "no-done", "clean-cut", "reset", "error-event", "stall"]

KEY = "sk-test-0123456789abcdefKEYKEYKEY"
"""The only key that the server takes."""


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
class Recorded:
    """What a client sent."""

    path: str
    protocol: Protocol | None
    headers: dict[str, str]
    body: Any


def protocol_of(path: str) -> Protocol | None:
    """Which service's path this is."""
    plain = path.partition("?")[0]
    if plain.endswith("/chat/completions"):
        return "openai"
    if plain.endswith("/messages"):
        return "anthropic"
    if plain.endswith("/api/chat"):
        return "ollama"
    return None


def refusal(protocol: Protocol, request: Recorded) -> Failure | None:
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


def error_body(protocol: Protocol, failure: Failure) -> dict[str, Any]:
    """An error answer in the service's own shape."""
    match protocol:
        case "openai":
            return {"error": {"message": failure.message, "type": failure.kind, "param": None, "code": failure.kind}}
        case "anthropic":
            return {"type": "error", "error": {"type": failure.kind, "message": failure.message}}
        case "ollama":
            return {"error": failure.message}
        case _:
            assert_never(protocol)


def error_event(protocol: Protocol) -> bytes:
    """An error in the middle of a stream."""
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


def events(protocol: Protocol, reply: Reply, model: str) -> Iterator[tuple[bool, bytes]]:
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
