"""Calls in the text of an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents import Desk, check_pairs, results, scripted
from obsidian_agent.agent.events import Answer
from obsidian_agent.agent.turn.calls import written_calls

NAMES = ("vault__readFile", "vault__query", "propose_plan")
CALL = {"name": "vault__readFile", "arguments": {"path": "Garden.md"}}
TEXT = json.dumps(CALL)


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        f"```json\n{TEXT}\n```",
        f"```\n{TEXT}\n```\n",
        f"<tool_call>\n{TEXT}\n</tool_call>",
        f"<tool_call>{TEXT}",
        json.dumps([CALL]),
        json.dumps({"function": CALL, "type": "function"}),
        json.dumps({"name": "vault__readFile", "parameters": {"path": "Garden.md"}}),
        json.dumps({"name": "vault__readFile", "arguments": '{"path": "Garden.md"}'}),
    ],
)
def test_the_shapes_in_use_are_understood(text: str) -> None:
    (call,) = written_calls(text, NAMES)
    assert (call.name, json.loads(call.arguments)) == ("vault__readFile", {"path": "Garden.md"})


def test_several_at_once() -> None:
    text = "".join(f"<tool_call>{json.dumps({'name': name, 'arguments': {}})}</tool_call>\n" for name in NAMES)
    assert [call.name for call in written_calls(text, NAMES)] == list(NAMES)


@pytest.mark.parametrize(
    "text",
    [
        "Hello.",
        f"I would call {TEXT}",
        f"{TEXT}\nDone.",
        f"<tool_call>{TEXT}</tool_call> and so on",
        json.dumps({"name": "rm", "arguments": {}}),
        json.dumps({"name": "Ada", "age": 3}),
        json.dumps([CALL, 3]),
        '{"version": "1.0", "goal": "x", "steps": []}',
        "[" * 100_000,
        "{",
        "",
    ],
    ids=lambda text: str(text)[:15],
)
def test_everything_else_is_words(text: str) -> None:
    assert written_calls(text, NAMES) == ()


@pytest.mark.parametrize("wrapped", ["{}", "```json\n{}\n```"])
async def test_a_written_call_is_carried_out_like_any_other(wrapped: str, desk: Desk) -> None:
    written: dict[str, Any] = {"text": wrapped.replace("{}", TEXT)}
    model = scripted(written, {"text": "Water."})
    events = await desk.turn(model)
    assert desk.person.paths() == [["Garden.md"]], "the person was asked"
    assert events[-1] == Answer("Water.", ("Garden.md",))
    assert "Tomatoes need water" in results(model.requests[1].messages)[0]
    check_pairs(desk.conversation.messages)
