"""What a foreach runs over: a list, all of it, or an error."""

from __future__ import annotations

from typing import Any

import pytest

from obsidian_agent.errors import ToolError
from obsidian_agent.plan.model import Step
from obsidian_agent.plan.references import Scope, compile_step

SCOPE = Scope(
    context={"selection": "text"},
    steps={
        "all": {"files": [1, 2], "hasMore": False, "count": 2},
        "cut": {"files": [1], "hasMore": True, "total": 9},
        "loop": [{"items": ["a"], "hasMore": True}],
    },
    vars={"cut": {"files": [1], "hasMore": True}},
)


def items(source: Any) -> list[Any]:
    step = Step.model_validate({"id": "s", "tool": "t", "args": {}, "foreach": {"from": source, "itemName": "i"}})
    return compile_step(step).items(SCOPE)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("$steps.all.files", [1, 2]),
        ("${$steps.all.files}", [1, 2]),
        ("${steps.all.files}", [1, 2]),
        ("steps.all.files", [1, 2]),
        ("steps.all.files[0]|default:x", None),
        ([], []),
        (["${selection}", "${$steps.all.count}", {"a": "$steps.all.count"}], ["text", 2, {"a": 2}]),
        ("$steps.loop", [{"items": ["a"], "hasMore": True}]),
    ],
)
def test_lists(source: Any, expected: list[Any] | None) -> None:
    if expected is None:
        with pytest.raises(ToolError):
            items(source)
    else:
        assert items(source) == expected


@pytest.mark.parametrize(
    "source", ["$steps.all.count", "${selection}", "$steps.all", "a, b", "x ${$steps.all.files}", "${selection|default:a}"]
)
def test_what_is_no_list(source: str) -> None:
    with pytest.raises(ToolError) as raised:
        items(source)
    assert (raised.value.code, raised.value.message) == ("REFERENCE_ERROR", f"foreach.from is not an array: {source}")


@pytest.mark.parametrize("source", ["$steps.cut.files", "${$vars.cut.files}", "$steps.loop.0.items"])
def test_a_list_that_was_cut_short(source: str) -> None:
    with pytest.raises(ToolError) as raised:
        items(source)
    assert raised.value.code == "TRUNCATED_LIST"


def test_a_missing_list_is_a_missing_reference() -> None:
    with pytest.raises(ToolError) as raised:
        items("$steps.all.nothing")
    assert raised.value.code == "REFERENCE_ERROR"
    assert "$steps.all.nothing" in raised.value.message
