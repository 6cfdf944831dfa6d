"""Tools on offer, calls in fragments and their results, through the real client over the wire."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from llm_server import Call, Failure, LlmServer, Raw, Reply
from obsidian_agent.errors import ProviderError
from obsidian_agent.providers.base import (
    ChatDelta,
    ChatMessage,
    ChatRequest,
    Finished,
    TextChunk,
    ToolCall,
    ToolCallChunk,
    ToolOffer,
)
from obsidian_agent.providers.litellm_client import CallReading, LiteLLMProvider

VENDORS = ("openai", "anthropic", "ollama")
OFFER = ToolOffer(
    "vault__searchText",
    "Find lines.",
    {
        "type": "object",
        "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["query"],
    },
)
ASKED = (ChatMessage("system", "Be brief."), ChatMessage("user", "Where is the garden?"))
Open = Callable[[str], LiteLLMProvider]


async def ask(provider: LiteLLMProvider, *more: ChatMessage) -> list[ChatDelta]:
    return [
        delta
        async for delta in provider.stream(
            ChatRequest((*ASKED, *more), tools=(OFFER,), timeout=60.0)
        )
    ]


def calls_in(deltas: list[ChatDelta]) -> list[tuple[str, str, str]]:
    """(id, name, arguments) of each call."""
    found: dict[int, list[str]] = {}
    for delta in deltas:
        if isinstance(delta, ToolCallChunk):
            parts = found.setdefault(delta.number, ["", "", ""])
            for at, part in enumerate((delta.id, delta.name, delta.arguments)):
                parts[at] += part if at == 2 or not parts[at] else ""
    assert list(found) == list(range(len(found)))
    return [(parts[0], parts[1], parts[2]) for parts in found.values()]


def offered(body: Any, vendor: str) -> list[tuple[str, str, Any]]:
    """Return the tools of a request as (name, description, schema)."""
    if vendor == "anthropic":
        return [(tool["name"], tool["description"], tool["input_schema"]) for tool in body["tools"]]
    return [
        (each["name"], each["description"], each["parameters"])
        for each in (tool["function"] for tool in body["tools"])
    ]


@pytest.mark.parametrize("vendor", VENDORS)
async def test_tools_are_offered(vendor: str, connect: Open, llm_server: LlmServer) -> None:
    await ask(connect(vendor))
    ((name, description, schema),) = offered(llm_server.requests[0].body, vendor)
    assert (name, description) == (OFFER.name, OFFER.description)
    assert schema["properties"]["query"] == {"type": "string"}
    assert schema["required"] == ["query"]


@pytest.mark.parametrize("vendor", VENDORS)
async def test_without_tools_nothing_is_said_of_them(
    vendor: str, connect: Open, llm_server: LlmServer
) -> None:
    async for _ in connect(vendor).stream(ChatRequest(ASKED)):
        pass
    assert "tools" not in llm_server.requests[0].body


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("text", ["", "Let me look."])
async def test_a_call_comes_in_fragments(
    vendor: str, text: str, connect: Open, llm_server: LlmServer
) -> None:
    arguments = json.dumps(
        {"query": "«garden» 日本語 😀 and more", "limit": 10}, ensure_ascii=False
    )
    llm_server.play(Reply(text, calls=(Call(OFFER.name, arguments),), piece=3, write_size=5))
    deltas = await ask(connect(vendor))
    ((identity, name, got),) = calls_in(deltas)
    assert name == OFFER.name
    assert json.loads(got) == json.loads(arguments)
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextChunk)) == text
    assert isinstance(deltas[-1], Finished)
    assert deltas[-1].reason == "stop"
    if vendor != "ollama":
        assert identity == "call_1"
        assert sum(isinstance(delta, ToolCallChunk) for delta in deltas) > 10


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("mixed", [False, True])
async def test_parallel_calls_are_told_apart(
    vendor: str, mixed: bool, connect: Open, llm_server: LlmServer
) -> None:
    wanted = [(f"call_{n}", OFFER.name, json.dumps({"query": f"word {n}"})) for n in range(5)]
    llm_server.play(
        Reply(
            "Five.",
            calls=tuple(Call(name, arguments, identity) for identity, name, arguments in wanted),
            mixed=mixed,
        )
    )
    got = calls_in(await ask(connect(vendor)))
    assert [json.loads(arguments) for _, _, arguments in got] == [
        json.loads(arguments) for _, _, arguments in wanted
    ]
    if vendor != "ollama":
        assert got == wanted


async def test_calls_that_share_an_index_are_told_apart_by_their_ids(
    connect: Open, llm_server: LlmServer
) -> None:
    chunks = []
    for identity in ("a", "b"):
        call = {
            "index": 0,
            "id": identity,
            "type": "function",
            "function": {"name": OFFER.name, "arguments": f'{{"query": "{identity}"}}'},
        }
        chunks.append(
            {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]}
        )
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    head = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    body = (
        b"".join(b"data: " + json.dumps(head | chunk).encode() + b"\n\n" for chunk in chunks)
        + b"data: [DONE]\n\n"
    )
    llm_server.play(Raw(body))
    assert calls_in(await ask(connect("openai"))) == [
        ("a", OFFER.name, '{"query": "a"}'),
        ("b", OFFER.name, '{"query": "b"}'),
    ]


async def test_calls_without_ids_and_numbers_are_told_apart(
    connect: Open, llm_server: LlmServer
) -> None:
    """Ollama numbers nothing, and the client gives no id to a call without arguments."""
    made = (
        Call(OFFER.name, '{"query": "a"}'),
        Call("vault__listFiles", "{}"),
        Call("vault__listFiles", "{}"),
    )
    llm_server.play(Reply("Three.", calls=made))
    assert [
        (name, json.loads(arguments))
        for _, name, arguments in calls_in(await ask(connect("ollama")))
    ] == [
        (OFFER.name, {"query": "a"}),
        ("vault__listFiles", {}),
        ("vault__listFiles", {}),
    ]


def test_pieces_that_repeat_the_name_are_one_call() -> None:
    reading = CallReading()

    def piece(
        name: str, arguments: str, identity: str = "", index: int | None = None
    ) -> SimpleNamespace:
        return SimpleNamespace(
            index=index, id=identity, function=SimpleNamespace(name=name, arguments=arguments)
        )

    chunks = [reading.read([piece("find", text)]) for text in ("", '{"query"', ': "a"}', "")]
    assert {chunk.number for found in chunks for chunk in found} == {0}
    (other,) = reading.read([piece("find", '{"query": "b"}')])
    assert other.number == 1
    assert reading.read([piece("", "")]) == []


@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
async def test_malformed_arguments_arrive_as_they_were_written(
    vendor: str, connect: Open, llm_server: LlmServer
) -> None:
    llm_server.play(Reply(calls=(Call(OFFER.name, '{"query": "gard'),)))
    assert calls_in(await ask(connect(vendor))) == [("call_1", OFFER.name, '{"query": "gard')]


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("arguments", ['{"query": "garden"}', '{"query": "gard', "", "[1]"])
async def test_results_go_back_paired(
    vendor: str, arguments: str, connect: Open, llm_server: LlmServer
) -> None:
    calls = (
        ToolCall("id_a", OFFER.name, arguments),
        ToolCall("id_b", OFFER.name, '{"query": "x"}'),
    )
    history = (
        ChatMessage("assistant", "I look.", calls),
        ChatMessage("tool", "line 3: garden", call_id="id_a"),
        ChatMessage("tool", "nothing", call_id="id_b"),
    )
    deltas = await ask(connect(vendor), *history)
    assert isinstance(deltas[-1], Finished), "the service has checked the pairs"
    sent = json.dumps(llm_server.requests[0].body["messages"])
    assert sent.index("I look.") < sent.index("line 3: garden") < sent.index("nothing")
    if arguments.startswith('{"query": "garden'):
        assert "garden" in sent[: sent.index("line 3")]


@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
async def test_calls_without_text_go_back_too(
    vendor: str, connect: Open, llm_server: LlmServer
) -> None:
    history = (
        ChatMessage("assistant", "", (ToolCall("id_a", OFFER.name, "{}"),)),
        ChatMessage("tool", "", call_id="id_a"),
    )
    assert isinstance((await ask(connect(vendor), *history))[-1], Finished)
    assert len(llm_server.requests) == 1


@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
async def test_a_stream_cut_in_a_call_fails(
    vendor: str, connect: Open, llm_server: LlmServer
) -> None:
    llm_server.play(
        Reply(
            calls=(Call(OFFER.name, '{"query": "a long enough text"}'),),
            ending="reset",
            cut_after=2,
        )
    )
    with pytest.raises(ProviderError) as caught:
        await ask(connect(vendor))
    assert (caught.value.code, caught.value.retryable) == ("API_STREAM_CUT", True)


@pytest.mark.parametrize(
    "message",
    [
        "registry.ollama.ai/library/gemma2:2b does not support tools",
        "No endpoints found that support tool use. To learn more about provider routing, visit the documentation.",
        "Function calling is not enabled for models/old-model",
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        "tools are not supported by this model",
        "This model does not support function calling.",
    ],
)
@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_service_without_tool_calling_says_so(
    vendor: str, message: str, connect: Open, llm_server: LlmServer
) -> None:
    llm_server.play(Failure(404 if "endpoints" in message else 400, message))
    with pytest.raises(ProviderError) as caught:
        await ask(connect(vendor))
    assert (caught.value.code, caught.value.retryable) == ("API_TOOLS_UNSUPPORTED", False)
    assert len(llm_server.requests) == 1


@pytest.mark.parametrize(
    "message",
    [
        "Invalid schema for function 'x'",
        "tools.0.name: String should match pattern",
        "model not found",
    ],
)
async def test_other_refusals_are_not_taken_for_that(
    message: str, connect: Open, llm_server: LlmServer
) -> None:
    llm_server.play(Failure(400, message))
    with pytest.raises(ProviderError) as caught:
        await ask(connect("openai"))
    assert caught.value.code != "API_TOOLS_UNSUPPORTED"
