"""Edges come from dependsOn and from references; the order keeps what is written where nothing speaks against it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.errors import PlanError
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.plan.references import CompiledStep, compile_step
from obsidian_agent.plan.validate import edges, execution_order


def plan_of(*steps: Mapping[str, Any]) -> tuple[ActionPlan, dict[str, CompiledStep]]:
    document = {"version": "1.0", "goal": "g", "riskLevel": "writes", "steps": [{"tool": "t", "args": {}, **step} for step in steps]}
    plan = ActionPlan.model_validate(document)
    return plan, {step.id: compile_step(step) for step in plan.steps}


def order_of(*steps: Mapping[str, Any]) -> list[str]:
    plan, compiled = plan_of(*steps)
    return [step.id for step in execution_order(plan, edges(plan, compiled))]


def test_edges_come_from_everywhere_a_reference_may_stand() -> None:
    plan, compiled = plan_of(
        {"id": "a", "captureAs": "x"},
        {"id": "b"},
        {"id": "c"},
        {"id": "d"},
        {
            "id": "e",
            "args": {"deep": [{"text": "see ${steps.b.path|default:-}"}]},
            "when": "$steps.c.ok",
            "foreach": {"from": "$steps.d.items", "itemName": "i"},
            "dependsOn": ["a"],
        },
        {"id": "f", "args": {"v": "${$vars.x}", "w": "${$vars.nobody} ${$steps.nobody.x}"}},
    )
    assert edges(plan, compiled) == {"a": set(), "b": set(), "c": set(), "d": set(), "e": {"a", "b", "c", "d"}, "f": {"a"}}


def test_ties_stay_as_written() -> None:
    assert order_of({"id": "c"}, {"id": "a"}, {"id": "b"}) == ["c", "a", "b"]
    assert order_of({"id": "a", "dependsOn": ["z"]}, {"id": "m"}, {"id": "z"}) == ["m", "z", "a"]
    assert order_of({"id": "a", "dependsOn": ["z"]}, {"id": "z"}, {"id": "m"}) == ["z", "a", "m"]


@pytest.mark.parametrize(
    ("needs", "message"),
    [
        ({"a": ["a"]}, "a -> a"),
        ({"a": ["b"], "b": ["a"]}, "a -> b -> a"),
        ({"a": ["c"], "b": ["a"], "c": ["b"]}, "a -> c -> b -> a"),
        ({"x": ["b"], "a": ["c"], "b": ["a"], "c": ["b"]}, "a -> c -> b -> a"),
        ({"x": [], "a": ["x", "b"], "b": ["a"]}, "a -> b -> a"),
    ],
)
def test_a_cycle_is_named(needs: Mapping[str, list[str]], message: str) -> None:
    with pytest.raises(PlanError) as raised:
        order_of(*({"id": name, "dependsOn": below} for name, below in needs.items()))
    assert raised.value.code == "DEPENDENCY_CYCLE"
    assert raised.value.message == message
    assert raised.value.problems[0].message == message


@given(st.lists(st.sets(st.integers(0, 11)), min_size=1, max_size=12))
def test_every_step_comes_after_what_it_needs_or_there_is_a_cycle(needs: list[set[int]]) -> None:
    steps = [{"id": f"s{n}", "dependsOn": [f"s{each}" for each in sorted(below) if each < len(needs)]} for n, below in enumerate(needs)]
    try:
        order = order_of(*steps)
    except PlanError as error:
        cycle = error.message.split(" -> ")
        wanted = {step["id"]: step["dependsOn"] for step in steps}
        assert cycle[0] == cycle[-1]
        assert all(after in wanted[before] for before, after in zip(cycle, cycle[1:], strict=False))
    else:
        assert sorted(order) == sorted(f"s{n}" for n in range(len(needs)))
        for step in steps:
            assert all(order.index(each) < order.index(str(step["id"])) for each in step["dependsOn"])
