from __future__ import annotations

import asyncio
import gc
import logging
import traceback
from collections.abc import AsyncGenerator, Callable
from typing import cast

import pytest
from pydantic import SecretStr

from llm_server import KEY, Call, Failure, HangUp, LlmServer, Raw, Reply, Silence
from obsidian_agent.errors import ProviderError
from obsidian_agent.providers.base import (
    ChatDelta,
    ChatMessage,
    ChatRequest,
    Finished,
    TextChunk,
    ToolCallChunk,
    ToolOffer,
    Usage,
)
from obsidian_agent.providers.http_guard import ConnectionFailed, GuardedClient
from obsidian_agent.providers.litellm_client import LiteLLMProvider
from obsidian_agent.providers.middleware import LimitedProvider, RetryingProvider
from obsidian_agent.providers.registry import open_provider

TEXT = "Añadir «notas» 日本語 😀👩‍👩‍👧 done. " * 8
MESSAGES = (ChatMessage("system", "Answer in JSON."), ChatMessage("user", "Hello"))
VENDORS = ("openai", "anthropic", "ollama")
Open = Callable[..., LiteLLMProvider]


async def answer(provider: LiteLLMProvider, **options: object) -> list[ChatDelta]:
    return [delta async for delta in provider.stream(ChatRequest(MESSAGES, **options))]  # type: ignore[arg-type]


async def failure(provider: LiteLLMProvider, **options: object) -> tuple[str, ProviderError]:
    """Return the text before the failure, and the failure."""
    deltas: list[ChatDelta] = []
    try:
        async for delta in provider.stream(ChatRequest(MESSAGES, **options)):  # type: ignore[arg-type]
            deltas.append(delta)
    except ProviderError as error:
        return said(deltas), error
    pytest.fail("the request did not fail")


def said(deltas: list[ChatDelta], thinking: bool = False) -> str:
    return "".join(
        delta.text
        for delta in deltas
        if isinstance(delta, TextChunk) and delta.thinking is thinking
    )


@pytest.mark.parametrize("vendor", VENDORS)
async def test_streams_text_thinking_usage_and_reason(
    vendor: str, connect: Open, llm_server: LlmServer
) -> None:
    llm_server.play(
        Reply(TEXT, thinking="first\nthink", piece=5, write_size=3, usage=(21, 34), delay=0.004)
    )
    deltas = await answer(connect(vendor))
    assert said(deltas) == TEXT
    assert said(deltas, thinking=True) == "first\nthink"
    assert deltas[-1] == Finished("stop", Usage(21, 34))
    assert sum(isinstance(delta, Finished) for delta in deltas) == 1
    assert sum(isinstance(delta, TextChunk) and not delta.thinking for delta in deltas) > 1, (
        "it arrives in pieces"
    )
    assert len(llm_server.requests) == 1


@pytest.mark.parametrize("vendor", VENDORS)
async def test_an_answer_in_one_piece_is_the_same_answer(
    vendor: str, connect: Open, llm_server: LlmServer
) -> None:
    offers = (ToolOffer("look", "Look.", {"type": "object", "properties": {}}),)
    calls = (Call("look", '{"at": "A"}', "call_1"), Call("look", '{"at": "B"}', "call_2"))
    for reply in (
        Reply(TEXT, thinking="think", usage=(21, 34)),
        Reply("half", finish="length"),
        Reply("Hm.", calls=calls),
    ):
        llm_server.play(reply)
        seen = []
        for streaming in (True, False):
            deltas = await answer(connect(vendor, streaming=streaming), tools=offers)
            asked = [
                (each.number, each.name)
                for each in deltas
                if isinstance(each, ToolCallChunk) and each.name
            ]
            arguments = "".join(
                each.arguments for each in deltas if isinstance(each, ToolCallChunk)
            ).replace(" ", "")
            seen.append((said(deltas), said(deltas, thinking=True), asked, arguments, deltas[-1]))
        assert seen[0] == seen[1]
        assert [request.body.get("stream", False) for request in llm_server.requests[-2:]] == [
            True,
            False,
        ]
        assert "stream_options" not in llm_server.requests[-1].body


async def test_an_answer_in_one_piece_has_no_more_time(
    connect: Open, llm_server: LlmServer
) -> None:
    llm_server.play(Reply("late", delay=1.0))
    assert said(await answer(connect("openai", streaming=False), timeout=20.0)) == "late"
    _, error = await failure(connect("openai", streaming=False), timeout=0.5)
    assert error.code == "API_TIMEOUT"
    for behaviour, code in (
        (Reply(finish="content_filter"), "API_CONTENT_BLOCKED"),
        (Raw(b"{}", "application/json"), "API_"),
    ):
        llm_server.play(behaviour)
        _, error = await failure(connect("openai", streaming=False))
        assert error.code.startswith(code)


@pytest.mark.parametrize("vendor", VENDORS)
async def test_sends_messages_and_parameters(
    vendor: str, connect: Open, llm_server: LlmServer
) -> None:
    await answer(connect(vendor), temperature=0.7, max_tokens=321, json_only=True)
    (request,) = llm_server.requests
    body, options = request.body, request.body.get("options", request.body)
    assert body["model"] == "test-model"
    assert body["stream"] is True
    assert options["temperature"] == 0.7
    assert 321 in (options.get("max_tokens"), options.get("num_predict"))
    assert "Answer in JSON." in str(body.get("system", body["messages"]))
    assert "Hello" in str(body["messages"][-1])
    match vendor:
        case "openai":
            assert body["response_format"] == {"type": "json_object"}
            assert body["stream_options"] == {"include_usage": True}
        case "anthropic":
            assert "tools" not in body
            assert body["system"] == [
                {"type": "text", "text": "Answer in JSON.", "cache_control": {"type": "ephemeral"}}
            ]
        case _:
            assert body["format"] == "json"
            assert options["num_ctx"] >= 16_000


SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    "spec", ["openai/gpt-5", "custom/qwen15.gguf", "lm_studio/qwen/qwen3-4b", "ollama/qwen3:4b"]
)
async def test_an_answer_of_a_schema_is_asked_for_in_the_words_of_the_service(
    spec: str, llm_server: LlmServer
) -> None:
    llm_server.play(Reply('{"n": 3}'))
    url = llm_server.url if spec.startswith("ollama") else llm_server.openai_url
    provider = open_provider(spec, base_url=url, find_key=lambda _: SecretStr(KEY))
    deltas = [
        delta
        async for delta in provider.stream(ChatRequest(MESSAGES, json_only=True, schema=SCHEMA))
    ]
    assert said(deltas) == '{"n": 3}'
    (request,) = llm_server.requests
    if spec.startswith("ollama"):
        assert request.body["format"] == SCHEMA
        assert request.body["think"] is False
    else:
        assert request.body["response_format"] == {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": SCHEMA},
        }


async def test_a_service_that_knows_no_schemas_is_asked_without(
    connect: Open, llm_server: LlmServer
) -> None:
    llm_server.play(
        Failure(400, "This response_format type is unavailable now", "invalid_request_error"),
        Reply('{"n": 3}'),
    )
    assert said(await answer(connect("custom"), schema=SCHEMA)) == '{"n": 3}'
    assert ["response_format" in request.body for request in llm_server.requests] == [True, False]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ("openai/gpt-5", "/v1/chat/completions"),
        ("openai/gpt-5-codex", "/v1/chat/completions"),
        ("openrouter/openai/o1-pro", "/v1/chat/completions"),
        ("gemini/gemini-2.5-pro", "/v1/chat/completions"),
        ("zenmux/anthropic/claude-opus-4-1", "/v1/chat/completions"),
        ("lm_studio/qwen/qwen3-4b", "/v1/chat/completions"),
        ("custom/azure/gpt-4", "/v1/chat/completions"),
        ("anthropic/claude-sonnet-4-5", "/v1/messages"),
        ("ollama/gpt-oss:20b", "/api/chat"),
    ],
)
async def test_each_vendor_is_asked_where_it_listens(
    spec: str, path: str, llm_server: LlmServer
) -> None:
    """Also for names of which the client library has ideas of its own."""
    url = llm_server.openai_url if path.endswith("completions") else llm_server.url
    provider = open_provider(spec, base_url=url, find_key=lambda _: SecretStr(KEY))
    deltas = [
        delta
        async for delta in provider.stream(ChatRequest(MESSAGES, max_tokens=50, json_only=True))
    ]
    assert said(deltas) == "ok"
    assert [request.path for request in llm_server.requests] == [path]
    assert llm_server.requests[0].body["model"] == spec.partition("/")[2]


async def test_no_parameter_is_sent_that_was_not_given(
    connect: Open, llm_server: LlmServer
) -> None:
    await answer(connect("openai"))
    assert "max_tokens" not in llm_server.requests[0].body
    assert "response_format" not in llm_server.requests[0].body


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize(("finish", "reason"), [("stop", "stop"), ("length", "length")])
async def test_a_cut_answer_is_told_from_a_whole_one(
    vendor: str, finish: str, reason: str, connect: Open, llm_server: LlmServer
) -> None:
    llm_server.play(Reply("half", finish=finish))  # type: ignore[arg-type]
    finished = (await answer(connect(vendor)))[-1]
    assert isinstance(finished, Finished)
    assert finished.reason == reason


async def test_usage_that_was_not_told_is_not_invented(
    connect: Open, llm_server: LlmServer
) -> None:
    llm_server.play(Reply("no figures", usage=None))
    assert (await answer(connect("openai")))[-1] == Finished("stop", None)


@pytest.mark.parametrize("vendor", VENDORS)
async def test_the_closing_event_may_be_missing_after_a_finish_reason(
    vendor: str, connect: Open, llm_server: LlmServer
) -> None:
    llm_server.play(Reply("whole answer", ending="no-done"))
    deltas = await answer(connect(vendor))
    assert said(deltas) == "whole answer"
    assert isinstance(deltas[-1], Finished)


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("clean-cut", "API_STREAM_CUT"),
        ("reset", "API_STREAM_CUT"),
        ("error-event", "API_SERVER"),
        ("stall", "API_TIMEOUT"),
    ],
)
async def test_a_stream_that_breaks_off_keeps_its_text_and_fails(
    vendor: str, ending: str, code: str, connect: Open, llm_server: LlmServer
) -> None:
    llm_server.play(Reply("abcdefghijklmnopqrstuvwxyz", piece=5, cut_after=3, ending=ending))  # type: ignore[arg-type]
    text, error = await failure(connect(vendor), timeout=1.0 if ending == "stall" else 60.0)
    assert text == "abcdefghijklmno"
    assert (error.code, error.retryable) == (code, True)
    assert len(llm_server.requests) == 1


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize(
    ("behaviour", "code", "retryable", "contains"),
    [
        (
            Failure(401, "invalid x-api-key", "authentication_error"),
            "API_KEY_INVALID",
            False,
            "refused the API key",
        ),
        (Failure(403, "not for you"), "API_FORBIDDEN", False, "not for you"),
        (Failure(404, "nothing here"), "API_MODEL_NOT_FOUND", False, "test-model"),
        (
            Failure(400, "prompt is too long: 210000 tokens > 200000 maximum"),
            "CONTEXT_TOO_LONG",
            False,
            "210000",
        ),
        (
            Failure(400, "This model's maximum context length is 8192 tokens."),
            "CONTEXT_TOO_LONG",
            False,
            "8192",
        ),
        (Failure(429, "slow down", headers=(("Retry-After", "7"),)), "API_RATE_LIMIT", True, "7 s"),
        (
            Failure(429, "You exceeded your current quota", "insufficient_quota"),
            "API_QUOTA",
            False,
            "quota",
        ),
        (
            Failure(
                500,
                body=b"<html><head><title>Oops</title></head><body><h1>Bad day</h1></body></html>",
            ),
            "API_SERVER",
            True,
            "Bad day",
        ),
        (Failure(529, "Overloaded", "overloaded_error"), "API_SERVER", True, "Overloaded"),
        (
            Failure(307, headers=(("location", "http://127.0.0.1:9/elsewhere"),)),
            "API_BAD_RESPONSE",
            False,
            "redirect",
        ),
        (Raw(b"<html>Please log in</html>", "text/html"), "API_BAD_RESPONSE", False, "web page"),
        (Raw(b""), "API_STREAM_CUT", True, "without an answer"),
        (HangUp(), "API_NETWORK", True, "closed the connection"),
        (Failure(500, body=b"x" * 50_000_000), "API_SERVER", True, "500"),
    ],
)
async def test_each_failure_is_named_for_what_it_was(
    vendor: str,
    behaviour: Failure | Raw | HangUp,
    code: str,
    retryable: bool,
    contains: str,
    connect: Open,
    llm_server: LlmServer,
) -> None:
    llm_server.play(behaviour)
    text, error = await failure(connect(vendor), timeout=60.0)
    assert (text, error.code, error.retryable) == ("", code, retryable)
    assert contains in error.problem().message
    assert len(error.message) < 600
    assert "\n" not in error.message
    assert "<" not in error.message
    assert len(llm_server.requests) == 1, "nothing repeats a request silently"


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize(
    "body",
    [
        b"\x00\xff garbage \xfe\n\n",
        b"data: {nope\n\n",
        b'data: {"choices": 7}\n\n',
        b"data: [1, 2]\n\n",
    ],
)
async def test_garbage_is_no_answer(
    vendor: str, body: bytes, connect: Open, llm_server: LlmServer
) -> None:
    llm_server.play(Raw(body))
    text, error = await failure(connect(vendor))
    assert text == ""
    assert error.code in ("API_BAD_RESPONSE", "API_STREAM_CUT")


async def test_the_wait_that_the_service_asks_for_is_kept(
    connect: Open, llm_server: LlmServer
) -> None:
    llm_server.play(Failure(429, "slow down", headers=(("Retry-After", "7"),)))
    for vendor in VENDORS:
        assert (await failure(connect(vendor)))[1].retry_after == 7.0


@pytest.mark.parametrize("vendor", VENDORS)
async def test_silence_times_out(vendor: str, connect: Open, llm_server: LlmServer) -> None:
    llm_server.play(Silence())
    _, error = await failure(connect(vendor), timeout=0.3)
    assert (error.code, error.retryable) == ("API_TIMEOUT", True)


async def test_keep_alives_alone_are_no_answer(connect: Open, llm_server: LlmServer) -> None:
    llm_server.play(Reply("never", keepalives=3, ending="stall", cut_after=0))
    _, error = await failure(connect("openai"), timeout=0.3)
    assert error.code == "API_TIMEOUT"


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_refused_connection_is_a_network_error(
    vendor: str, connect: Open, llm_server: LlmServer
) -> None:
    provider = connect(vendor)
    llm_server.__exit__(None, None, None)
    _, error = await failure(provider)
    assert (error.code, error.retryable) == ("API_NETWORK", True)
    assert "127.0.0.1" in error.problem().message


@pytest.mark.parametrize("vendor", VENDORS)
async def test_an_endless_line_is_not_read_to_its_end(
    vendor: str, connect: Open, llm_server: LlmServer
) -> None:
    llm_server.play(Raw(b"x" * 1_000_000, repeat=50))
    _, error = await failure(connect(vendor), timeout=60.0)
    assert error.code == "API_RESPONSE_TOO_LARGE"
    assert llm_server.bytes_written < 30_000_000


async def test_a_huge_answer_is_not_read_to_its_end(connect: Open, llm_server: LlmServer) -> None:
    llm_server.play(Reply("y" * 12_000_000, piece=500_000))
    text, error = await failure(connect("openai"), timeout=60.0)
    assert error.code == "API_RESPONSE_TOO_LARGE"
    assert len(text) <= 8 * 1024 * 1024


async def test_an_error_body_is_not_read_to_its_end(connect: Open, llm_server: LlmServer) -> None:
    llm_server.play(Failure(500, body=b"x" * 50_000_000))
    await failure(connect("openai"), timeout=60.0)
    assert llm_server.bytes_written == 0, "the client closed before the body was out"


@pytest.mark.parametrize("vendor", VENDORS)
async def test_closing_the_iterator_closes_the_connection(
    vendor: str, connect: Open, llm_server: LlmServer
) -> None:
    llm_server.play(Reply("abc" * 40, ending="stall", cut_after=3))
    deltas = cast("AsyncGenerator[ChatDelta, None]", connect(vendor).stream(ChatRequest(MESSAGES)))
    first = await anext(deltas)
    assert isinstance(first, TextChunk)
    await deltas.aclose()
    assert await asyncio.to_thread(llm_server.client_gone.wait, 60.0)


@pytest.mark.parametrize("vendor", VENDORS)
async def test_cancelling_the_task_closes_the_connection(
    vendor: str, connect: Open, llm_server: LlmServer
) -> None:
    llm_server.play(Silence())
    task = asyncio.create_task(answer(connect(vendor)))
    assert await asyncio.to_thread(llm_server.asked.wait, 60.0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(llm_server.client_gone.wait, 60.0)


async def test_an_abandoned_iterator_closes_the_connection(
    connect: Open, llm_server: LlmServer
) -> None:
    llm_server.play(Reply("abc" * 40, ending="stall", cut_after=3))
    async for _ in connect("openai").stream(ChatRequest(MESSAGES)):
        break
    gc.collect()
    await asyncio.sleep(0)
    assert await asyncio.to_thread(llm_server.client_gone.wait, 60.0)


@pytest.mark.parametrize(
    "parameter", ["temperature", "response_format", "stream_options", "max_tokens"]
)
async def test_an_optional_parameter_that_is_refused_is_left_out(
    parameter: str, connect: Open, llm_server: LlmServer
) -> None:
    refusal = Failure(
        400,
        f"Unsupported parameter: '{parameter}' is not supported with this model.",
        "invalid_request_error",
    )
    llm_server.play(refusal, Reply("fine"), Reply("again"))
    provider = connect("openai")
    assert said(await answer(provider, max_tokens=5, json_only=True)) == "fine"
    assert said(await answer(provider, max_tokens=5, json_only=True)) == "again"
    assert [parameter in request.body for request in llm_server.requests] == [True, False, False]


async def test_a_refusal_that_does_not_pass_ends(connect: Open, llm_server: LlmServer) -> None:
    llm_server.play(Failure(400, "temperature must be 1", "invalid_request_error"))
    _, error = await failure(connect("openai"))
    assert error.code == "API_BAD_REQUEST"
    assert len(llm_server.requests) == 2


async def test_a_missing_key_sends_nothing(llm_server: LlmServer) -> None:
    provider = open_provider("openai/test-model", find_key=lambda _: None)
    with pytest.raises(ProviderError) as caught:
        async for _ in provider.stream(ChatRequest(MESSAGES)):
            pass
    assert caught.value.code == "API_KEY_MISSING"
    assert "OPENAI_API_KEY" in caught.value.problem().message
    assert llm_server.requests == []


LEAKY = (
    Failure(401, f"Incorrect API key provided: {KEY}. Header was Authorization: Bearer {KEY}"),
    Failure(500, body=f"<html>Traceback: headers = {{'x-api-key': '{KEY}'}}</html>".encode()),
    Failure(400, f"bad request from {KEY[:12]}*****{KEY[-4:]}"),
    Reply("partly", ending="reset", cut_after=0),
    Raw(b"data: {nope\n\n"),
    HangUp(),
)


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("behaviour", LEAKY, ids=lambda behaviour: type(behaviour).__name__)
async def test_the_key_is_in_nothing_that_comes_back(
    vendor: str,
    behaviour: Failure | Reply | Raw | HangUp,
    connect: Open,
    llm_server: LlmServer,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    llm_server.play(behaviour)
    provider = connect(vendor)
    _, error = await failure(provider, timeout=60.0)
    await asyncio.sleep(0.05)
    shown = "".join(
        traceback.TracebackException.from_exception(error, capture_locals=True).format()
    )
    out, err = capfd.readouterr()
    everything = "\n".join(
        [
            repr(error),
            str(error),
            str(error.problem()),
            repr(provider),
            shown,
            caplog.text,
            out,
            err,
        ]
    )
    assert KEY not in everything
    assert KEY[-8:] not in everything
    assert (out, err) == ("", "")
    assert error.__cause__ is None
    assert error.__context__ is None


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_service_on_this_machine_is_reached_past_proxies(
    vendor: str, connect: Open, llm_server: LlmServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert said(await answer(connect(vendor))) == "ok"


async def test_a_service_elsewhere_is_reached_through_proxies(
    llm_server: LlmServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", llm_server.url)
    provider = open_provider("custom/m", base_url="https://models.invalid/v1")
    assert isinstance(provider, RetryingProvider)
    assert isinstance(provider.inner, LimitedProvider)
    assert isinstance(provider.inner.inner, LiteLLMProvider)
    _, error = await failure(provider.inner.inner)
    assert error.code == "API_NETWORK"
    assert llm_server.connects == ["models.invalid:443"]


async def test_a_request_elsewhere_is_stopped(llm_server: LlmServer) -> None:
    """Only the named address gets key and notes, whatever the environment says."""
    client = GuardedClient(origin="http://127.0.0.1:9/v1", timeout=1.0, direct=True)
    try:
        with pytest.raises(ConnectionFailed, match="only 127.0.0.1"):
            await client.post(f"{llm_server.openai_url}/chat/completions", json={})
    finally:
        await client.aclose()
    assert llm_server.requests == []
