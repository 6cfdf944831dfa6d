"""Repairs as one plan: grouped by tool, links before deletes, no text read as a reference."""

from __future__ import annotations

from obsidian_agent.health.finding import RepairChoice, RepairStep
from obsidian_agent.health.repair_plan import repair_plan
from obsidian_agent.plan.model import ActionPlan


def choice(tool: str, **args: object) -> RepairChoice:
    return RepairChoice(tool, (RepairStep(tool, args),))


def test_equal_tools_become_one_step_and_deletes_come_last() -> None:
    plan = repair_plan(
        [
            choice("vault.delete", path="C.md"),
            choice("vault.retargetLinks", path="A.md", name="x", to="B.md"),
            choice("vault.retargetLinks", path="A.md", name="x", to="B.md"),
            choice("vault.retargetLinks", path="D.md", name="y", to="B.md"),
        ]
    )
    assert plan is not None
    parsed = ActionPlan.model_validate(plan)
    assert [step.tool for step in parsed.steps] == ["vault.retargetLinks", "vault.delete"]
    assert [len(step["foreach"]["from"]) for step in plan["steps"]] == [2, 1]


def test_text_that_a_plan_would_read_as_a_reference_is_left_out() -> None:
    assert repair_plan([choice("vault.removeLinks", path="A.md", name="${date}")]) is None


def test_no_repairs_are_no_plan() -> None:
    assert repair_plan([]) is None


def test_a_note_is_created_once_whatever_its_case() -> None:
    plan = repair_plan(
        [
            choice("vault.createFile", path="Ada.md", content=""),
            choice("vault.createFile", path="ada.md", content=""),
        ]
    )
    assert plan is not None
    assert [call["path"] for call in plan["steps"][0]["foreach"]["from"]] == ["Ada.md"]
