from __future__ import annotations

from typing import Any

import pytest

from obsidian_agent.errors import Problem
from obsidian_agent.plan.left_out import LeftOut
from obsidian_agent.plan.result import Flag, Instance, Preview
from obsidian_agent.tools.core.tool import Risk
from obsidian_agent.tui import plan_rows
from obsidian_agent.tui.plan_rows import (
    ChangeRow,
    PlanRow,
    PlanState,
    PlanView,
    RemarkRow,
    RemarksRow,
    StepRow,
)
from obsidian_agent.vault.views.changes import ChangeSet, NetChange
from tui.samples import change, plan_of, preview_of

ALL = [
    change("create", "A.md", content=b"x"),
    change("delete", "Z.md"),
    change("modify", "B.md", content=b"y"),
    change("rename", "C.md", "D.md"),
]


def call(
    step: str, tool: str = "util.parseMarkdownBullets", state: Any = "ready", **fields: Any
) -> Instance:
    return Instance(name=step, step_id=step, index=None, tool=tool, args={}, state=state, **fields)


def rows_of(
    preview: Preview, disabled: frozenset[str] = frozenset(), **more: Any
) -> list[PlanRow | str]:
    state = PlanState(preview=preview, plan=preview.plan, disabled=disabled)
    return plan_rows.build_rows(PlanView(state=state, **more))


def test_problems_come_first_and_deletions_lead_the_files() -> None:
    preview = preview_of(
        plan_of(),
        ALL,
        errors=(Problem("X", "Wrong."),),
        flags=(Flag("shrink", "It loses text.", "B.md"),),
    )
    rows = rows_of(preview)
    assert [row for row in rows if isinstance(row, str)] == [
        "Errors (1)",
        "Warnings (1)",
        "Assumptions (2)",
        "Steps (3)",
        "Files (4)",
    ]
    assert [row.kind for row in rows if isinstance(row, ChangeRow)] == [
        "delete",
        "create",
        "modify",
        "rename",
    ]


def test_remarks_of_one_kind_are_one_line_until_it_is_opened() -> None:
    flags = tuple(
        Flag("notNamed", "Your message does not mention this file.", f"{n}.md") for n in range(5)
    )
    warnings = tuple(Problem("X", f"Warning {number}.") for number in range(50))
    preview = preview_of(plan_of(assumptions=[]), ALL, warnings=warnings, flags=flags)
    folds = [row for row in rows_of(preview) if isinstance(row, RemarksRow)]
    assert [row.text for row in folds] == [
        "5 files: not mentioned in your message",
        "Warning 0.  and 49 more like it",
    ]
    assert not [row for row in rows_of(preview) if isinstance(row, RemarkRow)]
    opened = rows_of(preview, toggled=frozenset({folds[1].key}))
    assert sum(isinstance(row, RemarkRow) for row in opened) == 50


def test_a_query_leaves_only_the_changes_whose_paths_have_its_words() -> None:
    rows = rows_of(preview_of(plan_of(), ALL), query="d.md")
    assert [row for row in rows if isinstance(row, str)] == ["Files that match “d.md” (1)"]
    assert [row.change.path.text for row in rows if isinstance(row, ChangeRow)] == ["C.md"]


def test_steps_know_their_calls_and_switches() -> None:
    plan = plan_of()
    instances = [
        Instance(
            name=f"notes_{number}",
            step_id="notes",
            index=number,
            tool="vault.createFile",
            args={},
            state="failed" if number else "ready",
            reason="exists",
        )
        for number in range(3)
    ]
    rows = rows_of(preview_of(plan, ALL, instances=tuple(instances)), disabled=frozenset({"links"}))
    steps = {row.step.id: row for row in rows if isinstance(row, StepRow)}
    assert (steps["notes"].problems, steps["notes"].is_on) == ("2 not possible", True)
    assert steps["links"].is_on is False


def test_counts_put_deletions_first() -> None:
    assert plan_rows.change_counts(ChangeSet((), tuple(ALL))) == [
        ("delete", "1 deleted"),
        ("create", "1 new"),
        ("modify", "1 edited"),
        ("rename", "1 renamed"),
    ]
    assert plan_rows.deletions(ALL) == ["“Z.md”"]


NO_CHANGE = "the files already match the plan"


@pytest.mark.parametrize(
    ("fields", "changes", "reason"),
    [
        ({}, ALL, ""),
        ({}, [], NO_CHANGE),
        ({"risk": Risk.READ_ONLY}, [], ""),
        ({"left_out": LeftOut(frozenset({"A.md"}))}, [], "all changes are left out"),
        ({"instances": (call("bullets"),)}, [], "its steps find nothing to work on"),
        ({"instances": (call("bullets", state="skipped"),)}, [], "all steps are off or skipped"),
        ({"instances": (call("bullets"),), "excluded": {"notes", "links"}}, [], NO_CHANGE),
        ({"instances": (call("bullets", tool="commands.run", opaque=True),)}, [], ""),
        ({"instances": (call("bullets", tool="workspace.openFile"),)}, [], ""),
    ],
)
def test_a_plan_without_effect_knows_why(
    fields: dict[str, Any], changes: list[NetChange], reason: str
) -> None:
    preview = preview_of(plan_of(), changes, **fields)
    assert plan_rows.reason_without_effect(preview) == reason


def test_a_step_in_detail_says_why_calls_do_not_run() -> None:
    plan = plan_of()
    instances = tuple(
        Instance(
            name=f"notes_{number}",
            step_id="notes",
            index=number,
            tool="t",
            args={},
            state="skipped",
            reason="because",
        )
        for number in range(30)
    )
    text = plan_rows.step_detail(plan.steps[1], preview_of(plan, ALL, instances=instances))
    assert "notes_0: because" in text
    assert "… 10 more" in text
    assert "Tool   vault.createFile" in text
    assert "path   Projects/${item.text}.md" in text
