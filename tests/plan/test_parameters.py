"""Parameters: from what people type to typed values, and what is still missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.plan.parameters import bind, with_implied_parameters
from obsidian_agent.plan.validate import validate
from obsidian_agent.tools.core.tool import Tool


def plan_of(parameters: Mapping[str, Any], *steps: Mapping[str, Any]) -> ActionPlan:
    return ActionPlan.model_validate(
        {
            "version": "1.0",
            "goal": "g",
            "riskLevel": "writes",
            "parameters": parameters,
            "steps": list(steps),
        }
    )


@pytest.mark.parametrize(
    ("kind", "given_value", "expected"),
    [
        ("text", "3", "3"),
        ("text", " x ", " x "),
        ("number", "3", 3),
        ("number", " 2.5 ", 2.5),
        ("number", -1, -1),
        ("boolean", "true", True),
        ("boolean", "No", False),
        ("boolean", False, False),
        ("date", "2026-03-14", "2026-03-14"),
        ("date", "2026-03-14T10:00", "2026-03-14"),
        ("path", "A/B/", "A/B"),
        ("path", "", ""),
        ("list", '["a", 1]', ["a", 1]),
        ("list", "a, b,c", ["a", "b", "c"]),
        ("list", "a, b\nc", ["a, b", "c"]),
        ("list", "[[Note]]", ["[[Note]]"]),
        ("list", ["x"], ["x"]),
        ("list", "", []),
    ],
)
def test_text_is_parsed_as_the_declared_type(kind: str, given_value: Any, expected: Any) -> None:
    bound = bind(plan_of({"p": {"type": kind}}), {"p": given_value})
    assert bound.problems == ()
    assert bound.values == {"p": expected}
    assert type(bound.values["p"]) is type(expected)


@pytest.mark.parametrize(
    ("kind", "given_value"),
    [
        ("number", "three"),
        ("number", "NaN"),
        ("number", "Infinity"),
        ("number", "1e999"),
        ("number", True),
        ("number", "[" * 100_000),
        ("boolean", "maybe"),
        ("boolean", 1),
        ("date", "14.3.2026"),
        ("date", 5),
        ("text", 5),
        ("path", ["a"]),
        ("list", 3),
    ],
)
def test_what_is_no_value_of_the_type_is_a_problem(kind: str, given_value: Any) -> None:
    bound = bind(plan_of({"p": {"type": kind}}), {"p": given_value})
    assert [problem.code for problem in bound.problems] == ["ARGUMENT_INVALID"]
    assert "'p'" in bound.problems[0].message


def test_defaults_missing_and_the_context() -> None:
    plan = plan_of({"a": {"default": "x"}, "b": {}, "selection": {}, "date": {}})
    bound = bind(plan, {})
    assert (dict(bound.values), bound.missing, bound.problems) == ({"a": "x"}, ("b",), ())
    given_all = bind(plan, {"b": "1", "selection": "s", "activeFile": "N.md"})
    assert (dict(given_all.values), given_all.missing) == (
        {"a": "x", "b": "1", "selection": "s", "activeFile": "N.md"},
        (),
    )


def test_a_name_that_the_plan_does_not_have_is_a_problem() -> None:
    bound = bind(plan_of({"folder": {}}), {"foldr": "A"})
    assert bound.missing == ("folder",)
    assert "Did you mean 'folder'?" in bound.problems[0].message


def test_undeclared_heads_of_a_macro_become_parameters(tools: Mapping[str, Tool]) -> None:
    step = {
        "id": "a",
        "tool": "vault.createFile",
        "args": {
            "path": "${folder}/${item.name}.md",
            "content": "${code} ${folder} ${selection} ${title}",
            "frontmatter": {"t": "${title}"},
        },
        "foreach": {"from": "${things}", "itemName": "item"},
    }
    plan = plan_of({"declared": {"default": "x"}}, step)
    full = with_implied_parameters(plan, tools)
    assert list(full.parameters) == ["declared", "things", "folder", "title"]
    assert (full.parameters["things"].type, full.parameters["title"].type) == ("list", "text")
    judged = validate(full, tools)
    assert judged.problems == ()
    assert judged.missing == ("things", "folder", "title")
    assert [warning.message for warning in judged.warnings] == [
        "${code} stays as text: nothing is called 'code'."
    ]
    assert with_implied_parameters(full, tools) is full


@given(st.sampled_from(["text", "number", "boolean", "date", "path", "list"]), st.text())
def test_any_text_binds_or_is_refused_and_binds_to_itself_again(kind: str, text: str) -> None:
    plan = plan_of({"p": {"type": kind}})
    bound = bind(plan, {"p": text})
    assert bool(bound.values) != bool(bound.problems)
    if bound.values and kind != "path":
        assert bind(plan, bound.values).values == bound.values
