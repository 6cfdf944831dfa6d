from __future__ import annotations

import json
from pathlib import Path

import pytest

from obsidian_agent.errors import ConfigError, ProviderError
from obsidian_agent.providers.base import (
    ChatDelta,
    ChatMessage,
    ChatRequest,
    Finished,
    TextChunk,
    ToolCallChunk,
    Usage,
)
from obsidian_agent.providers.scripted import PIECE, ScriptedProvider

REQUEST = ChatRequest((ChatMessage("user", "hi"),))


def script(tmp_path: Path, *answers: object, as_list: bool = False) -> ScriptedProvider:
    path = tmp_path / "answers.jsonl"
    text = json.dumps(answers) if as_list else "\n".join(json.dumps(answer) for answer in answers)
    path.write_text(text, encoding="utf-8")
    return ScriptedProvider.load(path)


async def play(provider: ScriptedProvider) -> list[ChatDelta]:
    return [delta async for delta in provider.stream(REQUEST)]


def said(deltas: list[ChatDelta], thinking: bool = False) -> str:
    return "".join(
        delta.text
        for delta in deltas
        if isinstance(delta, TextChunk) and delta.thinking is thinking
    )


@pytest.mark.parametrize("as_list", [False, True])
async def test_one_answer_a_request(tmp_path: Path, as_list: bool) -> None:
    provider = script(tmp_path, {"text": "first"}, {"text": "second"}, as_list=as_list)
    assert [said(await play(provider)), said(await play(provider))] == ["first", "second"]
    assert len(provider.requests) == 2


async def test_text_comes_in_small_pieces(tmp_path: Path) -> None:
    deltas = await play(script(tmp_path, {"text": "x" * 100, "usage": [5, 6]}))
    assert said(deltas) == "x" * 100
    assert all(len(delta.text) <= PIECE for delta in deltas if isinstance(delta, TextChunk))
    assert deltas[-1] == Finished("stop", Usage(5, 6))


async def test_a_plan_is_streamed_as_json(tmp_path: Path) -> None:
    plan = {"version": "1.0", "goal": "Über", "riskLevel": "read-only", "steps": []}
    assert json.loads(said(await play(script(tmp_path, {"plan": plan})))) == plan


async def test_chunks_thinking_and_a_cut(tmp_path: Path) -> None:
    deltas = await play(
        script(
            tmp_path, {"chunks": ["a", "bc"], "thinking": "hmm", "finish": "length", "delayMs": 1}
        )
    )
    assert [
        delta.text for delta in deltas if isinstance(delta, TextChunk) and not delta.thinking
    ] == ["a", "bc"]
    assert said(deltas, thinking=True) == "hmm"
    assert deltas[-1] == Finished("length")


async def test_an_error_is_raised_also_in_mid_answer(tmp_path: Path) -> None:
    error = {"code": "API_RATE_LIMIT", "message": "slow down", "retryable": True, "retryAfter": 3}
    provider = script(tmp_path, {"error": error}, {"text": "begun", "error": error})
    with pytest.raises(ProviderError) as caught:
        await play(provider)
    assert (caught.value.code, caught.value.retryable, caught.value.retry_after) == (
        "API_RATE_LIMIT",
        True,
        3.0,
    )
    deltas = provider.stream(REQUEST)
    assert await anext(deltas) == TextChunk("begun")
    with pytest.raises(ProviderError):
        await anext(deltas)


async def test_running_out_of_answers_says_so(tmp_path: Path) -> None:
    provider = script(tmp_path, {"text": "only"})
    await play(provider)
    with pytest.raises(ProviderError, match="1 answers, and this is request 2") as caught:
        await play(provider)
    assert caught.value.code == "SCRIPT_EXHAUSTED"
    assert not caught.value.retryable


def test_blank_lines_and_comments_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('\ufeff# a comment\n\n{"text": "one"}\r\n', encoding="utf-8")
    assert len(ScriptedProvider.load(path).answers) == 1


@pytest.mark.parametrize(
    ("content", "contains"),
    [
        ("{nope", "line 1: not JSON"),
        ('{"text": "a"}\n{"txt": "b"}', "line 2"),
        ('{"text": "a", "plan": {}}', "one of text, plan, chunks"),
        ('{"thinking": "a"}', "one of text, plan, chunks"),
        ('[{"text": 1}]', "answer 1: text"),
        ("7", "line 1"),
    ],
)
def test_a_bad_script_names_the_place(tmp_path: Path, content: str, contains: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        ScriptedProvider.load(path)
    assert "bad.jsonl" in caught.value.message
    assert contains in caught.value.message


def test_a_missing_script_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="none.jsonl"):
        ScriptedProvider.load(tmp_path / "none.jsonl")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no /dev/zero")
def test_a_script_without_end_is_refused() -> None:
    with pytest.raises(ConfigError, match="larger than 64 MB"):
        ScriptedProvider.load(Path("/dev/zero"))


async def test_calls_come_in_fragments_beside_text(tmp_path: Path) -> None:
    calls = [
        {"name": "vault__searchText", "arguments": {"query": "a garden in the north"}},
        {"name": "x", "arguments": '{"cut', "id": "mine"},
    ]
    deltas = await play(script(tmp_path, {"text": "Let me look.", "calls": calls}))
    assert said(deltas) == "Let me look."
    pieces = [delta for delta in deltas if isinstance(delta, ToolCallChunk)]
    assert len(pieces) > 3
    first, second = (
        "".join(piece.arguments for piece in pieces if piece.number == number) for number in (0, 1)
    )
    assert json.loads(first) == {"query": "a garden in the north"}
    assert second == '{"cut'
    assert [(piece.id, piece.name) for piece in pieces if piece.name] == [
        ("call_1_0", "vault__searchText"),
        ("mine", "x"),
    ]
    assert deltas[-1] == Finished("stop")
