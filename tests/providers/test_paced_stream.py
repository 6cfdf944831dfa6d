"""Joining events: the text is the same, and so is everything that is not text."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.providers.paced_stream import EventMerger


def chunk(delta: dict[str, Any], **choice: Any) -> bytes:
    document = {
        "id": "c",
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": None, **choice}],
    }
    return b"data: " + json.dumps(document).encode() + b"\n\n"


def anthropic(kind: str, text: str, index: int = 0) -> bytes:
    name = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}[
        kind
    ]
    document = {"type": "content_block_delta", "index": index, "delta": {"type": kind, name: text}}
    return b"event: content_block_delta\ndata: " + json.dumps(document).encode() + b"\n\n"


def events(data: bytes) -> list[bytes]:
    return [event + b"\n\n" for event in data.split(b"\n\n") if event]


def content(data: bytes) -> str:
    documents = [json.loads(event[6:]) for event in events(data) if event.startswith(b"data: {")]
    return "".join(document["choices"][0]["delta"].get("content") or "" for document in documents)


TOOL = chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{"}}]})
END = chunk({}, finish_reason="stop")
USAGE = b'data: {"id": "c", "choices": [], "usage": {"prompt_tokens": 1}}\n\n'
DONE = b"data: [DONE]\n\n"


def test_neighbours_become_one() -> None:
    data = (
        chunk({"role": "assistant", "content": "He"})
        + chunk({"content": "llo "})
        + chunk({"content": "Größe 📏"})
    )
    merged = EventMerger().feed(data)
    assert len(events(merged)) == 1
    assert content(merged) == "Hello Größe 📏"
    assert json.loads(merged[6:])["choices"][0]["delta"]["role"] == "assistant"


@pytest.mark.parametrize(
    "between",
    [
        TOOL,
        END,
        USAGE,
        DONE,
        b": keep-alive\n\n",
        b"data: not json\n\n",
        b'data: {"error": {"message": "x"}}\n\n',
        chunk({"reasoning_content": "hm"}),
        chunk({"content": "x"}, logprobs={"a": 1}),
        chunk({"content": "x"}, index=1),
    ],
    ids=[
        "tool",
        "end",
        "usage",
        "done",
        "comment",
        "broken",
        "error",
        "thinking",
        "logprobs",
        "other",
    ],
)
def test_everything_else_passes_as_it_is_and_in_its_place(between: bytes) -> None:
    one = chunk({"content": "a"})
    merged = EventMerger().feed(one + one + between + one + one)
    assert events(merged)[1] == between
    assert [content(event) for event in (events(merged)[0], events(merged)[2])] == ["aa", "aa"]


def test_other_services_pieces() -> None:
    data = (
        anthropic("thinking_delta", "a")
        + anthropic("thinking_delta", "b")
        + anthropic("text_delta", "c")
        + anthropic("text_delta", "d")
    )
    more = (
        anthropic("text_delta", "e", 1)
        + anthropic("input_json_delta", "{")
        + anthropic("input_json_delta", "}")
    )
    merged = events(EventMerger().feed(data + more))
    assert merged == [
        anthropic("thinking_delta", "ab"),
        anthropic("text_delta", "cd"),
        *events(more),
    ]


@given(
    st.lists(st.integers(1, 40), max_size=40),
    st.lists(st.text(max_size=9), min_size=1, max_size=20),
)
def test_however_it_is_cut_nothing_is_lost(cuts: list[int], texts: list[str]) -> None:
    data = b"".join(chunk({"content": text}) for text in texts) + TOOL + END + DONE + b"data: {tail"
    merger, out, start = EventMerger(), b"", 0
    for cut in cuts:
        out += merger.feed(data[start : start + cut])
        start += cut
    out += merger.feed(data[start:]) + merger.end()
    assert content(out.removesuffix(b"data: {tail")) == "".join(texts)
    assert out.endswith(TOOL + END + DONE + b"data: {tail")


def test_a_line_without_an_end_is_looked_at_once() -> None:
    merger, piece = EventMerger(), b"x" * 65_536
    began = time.process_time()
    for _ in range(128):
        assert merger.feed(piece) == b""
    assert time.process_time() - began < 2.0, (
        "it took six seconds when all of it was looked at again for every piece"
    )
    assert len(merger.end()) == 128 * len(piece)
