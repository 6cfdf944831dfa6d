"""The wire formats of model services for the test service: streams, errors and refusals."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, assert_never

Protocol = Literal["openai", "anthropic", "ollama"]
Ending = Literal["complete", "no-done", "clean-cut", "reset", "error-event", "stall"]

KEY = "sk-test-0123456789abcdefKEYKEYKEY"
"""The only key that the server takes."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function; `arguments` is sent unchanged. Ollama needs an object."""

    name: str
    arguments: str = "{}"
    id: str = "call_1"


@dataclass(frozen=True, slots=True)
class Reply:
    """A streamed answer. `piece` is characters per delta, `write_size` bytes per HTTP chunk.

    `ending`: complete; no-done (finish reason, then no closing event); clean-cut (the body ends
    early but properly); reset (RST); error-event (an error object inside the stream); stall
    (silence until the client goes). The early ends come after `cut_after` deltas of text or
    arguments. `mixed`: the pieces of several calls alternate, where a protocol allows that
    (OpenAI's).
    """

    text: str = ""
    thinking: str = ""
    piece: int = 7
    write_size: int = 0
    finish: Literal["stop", "length", "content_filter"] = "stop"
    usage: tuple[int, int] | None = (11, 7)
    ending: Ending = "complete"
    cut_after: int = 2
    delay: float = 0.0
    keepalives: int = 0
    calls: tuple[Call, ...] = ()
    mixed: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """An answer with an error status. Without `body` it is the service's shape with `message`."""

    status: int
    message: str = "Something is wrong"
    kind: str = "error"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Recorded:
    """A received request."""

    path: str
    protocol: Protocol | None
    headers: dict[str, str]
    body: Any


def protocol_of(path: str) -> Protocol | None:
    """Return the protocol of a path."""
    plain = path.partition("?")[0]
    if plain.endswith("/chat/completions"):
        return "openai"
    if plain.endswith("/messages"):
        return "anthropic"
    if plain.endswith("/api/chat"):
        return "ollama"
    return None


def refusal(protocol: Protocol, request: Recorded, *, keyless: bool = False) -> Failure | None:
    """Return the real service's reason to refuse; a `keyless` one accepts any key, or no key."""
    headers, body = request.headers, request.body
    if not isinstance(body.get("stream", False), bool):
        return Failure(400, "stream: Input should be a valid boolean", "invalid_request_error")
    match protocol:
        case "openai":
            bearer = headers.get("authorization")
            if bearer != f"Bearer {KEY}" and not keyless:
                return Failure(
                    401,
                    f"Incorrect API key provided: {(bearer or 'none').removeprefix('Bearer ')}.",
                    "invalid_api_key",
                )
            if not body.get("messages"):
                return Failure(400, "[] is too short - 'messages'", "invalid_request_error")
            if (
                body.get("response_format", {}).get("type") == "json_object"
                and "json" not in json.dumps(body["messages"]).lower()
            ):
                return Failure(
                    400,
                    "'messages' must contain the word 'json' in some form",
                    "invalid_request_error",
                )
            return _schema_flaw(body.get("response_format")) or _openai_flaw(body)
        case "anthropic":
            if headers.get("x-api-key") != KEY:
                return Failure(401, "invalid x-api-key", "authentication_error")
            if not headers.get("anthropic-version"):
                return Failure(
                    400, "anthropic-version: header is required", "invalid_request_error"
                )
            if not body.get("max_tokens"):
                return Failure(400, "max_tokens: Field required", "invalid_request_error")
            if any(message["role"] not in ("user", "assistant") for message in body["messages"]):
                return Failure(400, "messages: Unexpected role", "invalid_request_error")
            return _anthropic_flaw(body)
        case "ollama":
            wanted = body.get("format", "json")
            flawed = wanted != "json" and not (
                isinstance(wanted, dict) and wanted.get("type") == "object"
            )
            return (
                Failure(400, 'invalid format: expected "json" or a valid JSON schema object')
                if flawed
                else None
            )
        case _:
            assert_never(protocol)
    return None


def _schema_flaw(wanted: Any) -> Failure | None:
    """Return OpenAI's objection to `response_format`: a schema needs a name and is of an object."""
    if not isinstance(wanted, dict) or wanted.get("type") != "json_schema":
        return None
    described = wanted.get("json_schema")
    if not isinstance(described, dict) or not _FUNCTION_NAME.fullmatch(
        str(described.get("name", ""))
    ):
        return Failure(
            400,
            "Missing required parameter: 'response_format.json_schema.name'.",
            "invalid_request_error",
        )
    if described.get("schema", {}).get("type") != "object":
        return Failure(
            400,
            "Invalid schema for response_format: schema must be a JSON Schema of 'type: \"object\"'",
            "invalid_request_error",
        )
    return None


_FUNCTION_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def _openai_flaw(body: Any) -> Failure | None:
    """Return OpenAI's objection to tools and calls: names, arguments, one answer per call."""
    for tool in body.get("tools", ()):
        if (
            not _FUNCTION_NAME.fullmatch(tool["function"]["name"])
            or tool["function"]["parameters"].get("type") != "object"
        ):
            return Failure(
                400, f"Invalid 'tools': {tool['function']['name']}", "invalid_request_error"
            )
    waiting: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return Failure(
                    400,
                    "'tool' must be a response to a preceding message with 'tool_calls'",
                    "invalid_request_error",
                )
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            return Failure(
                400,
                f"tool_call_ids did not have response messages: {', '.join(waiting)}",
                "invalid_request_error",
            )
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
        if len(waiting) != len(set(waiting)):
            return Failure(400, "Duplicate tool_call ids", "invalid_request_error")
        for call in message.get("tool_calls") or ():
            json.loads(call["function"]["arguments"])
    return (
        Failure(
            400,
            f"tool_call_ids did not have response messages: {', '.join(waiting)}",
            "invalid_request_error",
        )
        if waiting
        else None
    )


def _anthropic_flaw(body: Any) -> Failure | None:
    """Return Anthropic's objection; answers are blocks of the user's message, roles alternate."""
    for tool in body.get("tools", ()):
        if (
            not _FUNCTION_NAME.fullmatch(tool["name"])
            or tool["input_schema"].get("type") != "object"
        ):
            return Failure(400, f"tools: Invalid tool {tool['name']}", "invalid_request_error")
    waiting: list[str] = []
    for message in body["messages"]:
        blocks = message["content"] if isinstance(message["content"], list) else []
        answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if sorted(answered) != sorted(waiting):
            return Failure(
                400,
                "tool_use ids were found without tool_result blocks immediately after",
                "invalid_request_error",
            )
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if any(
            not isinstance(block["input"], dict) for block in blocks if block["type"] == "tool_use"
        ):
            return Failure(
                400, "tool_use.input: Input should be a valid dictionary", "invalid_request_error"
            )
    return (
        Failure(400, "tool_use ids were found without tool_result blocks", "invalid_request_error")
        if waiting
        else None
    )


def error_body(protocol: Protocol, failure: Failure) -> dict[str, Any]:
    """Return an error answer in the service's own shape."""
    match protocol:
        case "openai":
            return {
                "error": {
                    "message": failure.message,
                    "type": failure.kind,
                    "param": None,
                    "code": failure.kind,
                }
            }
        case "anthropic":
            return {"type": "error", "error": {"type": failure.kind, "message": failure.message}}
        case "ollama":
            return {"error": failure.message}
        case _:
            assert_never(protocol)


def error_event(protocol: Protocol) -> bytes:
    """Return an error in the middle of a stream."""
    if protocol == "anthropic":
        body = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
        return b"event: error\n" + _data(body)
    if protocol == "ollama":
        return (
            json.dumps({"error": "llama runner process no longer running: server_error"}).encode()
            + b"\n"
        )
    return _data(
        {
            "error": {
                "message": "The server had an error while processing your request",
                "type": "server_error",
                "code": None,
            }
        }
    )


def _data(document: dict[str, Any]) -> bytes:
    """One event. Not ASCII-escaped: UTF-8 goes over the wire as the services send it."""
    return b"data: " + json.dumps(document, ensure_ascii=False).encode() + b"\n\n"


def _pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def events(protocol: Protocol, reply: Reply, model: str) -> Iterator[tuple[bool, bytes]]:
    """Yield the stream as pairs: is it a delta of text or arguments, and the bytes."""
    match protocol:
        case "openai":
            yield from _openai_events(reply)
        case "anthropic":
            yield from _anthropic_events(reply)
        case "ollama":
            yield from _ollama_events(reply, model)
        case _:
            assert_never(protocol)


def whole(protocol: Protocol, reply: Reply, model: str) -> dict[str, Any]:
    """Return the answer in one piece."""
    calls: list[dict[str, Any]]
    match protocol:
        case "openai":
            calls = [
                {
                    "id": each.id,
                    "type": "function",
                    "function": {"name": each.name, "arguments": each.arguments},
                }
                for each in reply.calls
            ]
            message = {"role": "assistant", "content": reply.text or None} | (
                {"reasoning_content": reply.thinking} if reply.thinking else {}
            )
            choice = {
                "index": 0,
                "message": message | ({"tool_calls": calls} if calls else {}),
                "finish_reason": reply.finish,
            }
            usage = {"usage": _openai_usage(reply.usage)} if reply.usage else {}
            return {**_OPENAI_HEAD, "object": "chat.completion", "choices": [choice], **usage}
        case "anthropic":
            blocks: list[dict[str, Any]] = (
                [{"type": "thinking", "thinking": reply.thinking, "signature": ""}]
                if reply.thinking
                else []
            )
            blocks += [{"type": "text", "text": reply.text}] if reply.text else []
            blocks += [
                {
                    "type": "tool_use",
                    "id": each.id,
                    "name": each.name,
                    "input": json.loads(each.arguments),
                }
                for each in reply.calls
            ]
            prompt, completion = reply.usage or (0, 0)
            stop = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}[
                reply.finish
            ]
            head = {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": model,
                "content": blocks,
                "stop_reason": stop,
            }
            return {
                **head,
                "stop_sequence": None,
                "usage": {"input_tokens": prompt, "output_tokens": completion},
            }
        case "ollama":
            calls = [
                {"function": {"name": each.name, "arguments": json.loads(each.arguments)}}
                for each in reply.calls
            ]
            answer: dict[str, Any] = {
                "role": "assistant",
                "content": reply.text,
                "thinking": reply.thinking,
                "tool_calls": calls,
            }
            counts = (
                {"prompt_eval_count": reply.usage[0], "eval_count": reply.usage[1]}
                if reply.usage
                else {}
            )
            return {
                "model": model,
                "created_at": "2026-01-01T00:00:00Z",
                "message": answer,
                "done": True,
                "done_reason": reply.finish,
                **counts,
            }
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
    for call in _openai_calls(reply):
        yield True, chunk({"tool_calls": [call]})
    yield False, chunk({}, "tool_calls" if reply.calls and reply.finish == "stop" else reply.finish)
    if reply.usage:
        yield False, _data({**_OPENAI_HEAD, "choices": [], "usage": _openai_usage(reply.usage)})
    if reply.ending != "no-done":
        yield False, b"data: [DONE]\n\n"


def _openai_calls(reply: Reply) -> Iterator[dict[str, Any]]:
    streams = [
        [
            {
                "index": index,
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": ""},
            },
            *(
                {"index": index, "function": {"arguments": piece}}
                for piece in _pieces(call.arguments, reply.piece)
            ),
        ]
        for index, call in enumerate(reply.calls)
    ]
    if not reply.mixed:
        yield from (piece for stream in streams for piece in stream)
        return
    while any(streams):
        yield from (stream.pop(0) for stream in streams if stream)


_OPENAI_HEAD = {
    "id": "chatcmpl-1",
    "object": "chat.completion.chunk",
    "created": 1_700_000_000,
    "model": "test-model",
}


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
    yield (
        False,
        event(
            "message_start",
            message={
                **message,
                "stop_sequence": None,
                "usage": {"input_tokens": prompt, "output_tokens": 1},
            },
        ),
    )
    yield False, event("ping")
    index = 0
    if reply.thinking:
        yield (
            False,
            event(
                "content_block_start",
                index=0,
                content_block={"type": "thinking", "thinking": "", "signature": ""},
            ),
        )
        for piece in _pieces(reply.thinking, reply.piece):
            yield (
                False,
                event(
                    "content_block_delta",
                    index=0,
                    delta={"type": "thinking_delta", "thinking": piece},
                ),
            )
        yield False, event("content_block_stop", index=0)
        index = 1
    if reply.text or not reply.calls:
        yield (
            False,
            event("content_block_start", index=index, content_block={"type": "text", "text": ""}),
        )
        for piece in _pieces(reply.text, reply.piece):
            yield (
                True,
                event(
                    "content_block_delta", index=index, delta={"type": "text_delta", "text": piece}
                ),
            )
        yield False, event("content_block_stop", index=index)
        index += 1
    for index, call in enumerate(reply.calls, start=index):  # noqa: B020  the blocks are numbered on
        block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        yield False, event("content_block_start", index=index, content_block=block)
        for piece in _pieces(call.arguments, reply.piece):
            yield (
                True,
                event(
                    "content_block_delta",
                    index=index,
                    delta={"type": "input_json_delta", "partial_json": piece},
                ),
            )
        yield False, event("content_block_stop", index=index)
    stop = {
        "stop": "tool_use" if reply.calls else "end_turn",
        "length": "max_tokens",
        "content_filter": "refusal",
    }[reply.finish]
    yield (
        False,
        event(
            "message_delta",
            delta={"stop_reason": stop, "stop_sequence": None},
            usage={"output_tokens": completion},
        ),
    )
    if reply.ending != "no-done":
        yield False, event("message_stop")


def _ollama_events(reply: Reply, model: str) -> Iterator[tuple[bool, bytes]]:
    def line(message: dict[str, Any], **fields: Any) -> bytes:
        document = {
            "model": model,
            "created_at": "2026-01-01T00:00:00Z",
            "message": {"role": "assistant", **message},
            "done": False,
        }
        return json.dumps({**document, **fields}, ensure_ascii=False).encode() + b"\n"

    for piece in _pieces(reply.thinking, reply.piece):
        yield False, line({"content": "", "thinking": piece})
    for piece in _pieces(reply.text, reply.piece):
        yield True, line({"content": piece})
    for call in reply.calls:
        yield (
            True,
            line(
                {
                    "content": "",
                    "tool_calls": [
                        {"function": {"name": call.name, "arguments": json.loads(call.arguments)}}
                    ],
                }
            ),
        )
    counts = (
        {"prompt_eval_count": reply.usage[0], "eval_count": reply.usage[1]} if reply.usage else {}
    )
    yield False, line({"content": ""}, done=True, done_reason=reply.finish, **counts)
