from __future__ import annotations

from obsidian_agent.errors import Problem
from obsidian_agent.plan.result import Flag, Instance
from obsidian_agent.tui import plan_rows
from obsidian_agent.tui.plan_rows import ChangeRow, MoreRow, RemarkRow, SectionRow, StepRow
from tui.fakes import change, plan_of, preview_of

ALL = [
    change("create", "A.md", content=b"x"),
    change("delete", "Z.md"),
    change("modify", "B.md", content=b"y"),
    change("rename", "C.md", "D.md"),
]


def test_problems_come_first_and_deletions_lead_the_files() -> None:
    plan = plan_of()
    preview = preview_of(
        plan,
        ALL,
        errors=(Problem("X", "Wrong."),),
        flags=(Flag("shrink", "It loses text.", "B.md"),),
    )
    rows = plan_rows.build_rows(preview, plan, frozenset(), frozenset())
    assert [row.title for row in rows if isinstance(row, SectionRow)] == [
        "Errors (1)",
        "Warnings (1)",
        "Assumptions (2)",
        "Steps (3)",
        "Files (4)",
    ]
    assert [row.change.kind for row in rows if isinstance(row, ChangeRow)] == [
        "delete",
        "rename",
        "modify",
        "create",
    ]


def test_many_remarks_are_folded_until_asked_for() -> None:
    plan = plan_of(assumptions=[])
    preview = preview_of(
        plan, ALL, warnings=tuple(Problem("X", f"Warning {number}.") for number in range(50))
    )
    folded = plan_rows.build_rows(preview, plan, frozenset(), frozenset())
    assert [row.hidden for row in folded if isinstance(row, MoreRow)] == [45]
    unfolded = plan_rows.build_rows(preview, plan, frozenset(), frozenset({"Warnings"}))
    assert sum(isinstance(row, RemarkRow) for row in unfolded) == 50


def test_steps_know_their_calls_and_switches() -> None:
    plan = plan_of()
    instances = [
        Instance(
            f"notes_{number}",
            "notes",
            number,
            "vault.createFile",
            {},
            "failed" if number else "ready",
            reason="exists",
        )
        for number in range(3)
    ]
    rows = plan_rows.build_rows(
        preview_of(plan, ALL, instances=tuple(instances)), plan, frozenset({"links"}), frozenset()
    )
    steps = {row.step.id: row for row in rows if isinstance(row, StepRow)}
    assert (steps["notes"].calls, steps["notes"].failed, steps["notes"].is_on) == (3, 2, True)
    assert steps["links"].is_on is False


def test_counts_put_deletions_first() -> None:
    assert plan_rows.change_counts(ALL) == [
        ("delete", "1 deleted"),
        ("rename", "1 renamed"),
        ("modify", "1 edited"),
        ("create", "1 new"),
    ]
    assert plan_rows.deletions(ALL) == ["“Z.md”"]


def test_a_step_in_detail_says_why_calls_do_not_run() -> None:
    plan = plan_of()
    instances = tuple(
        Instance(f"notes_{number}", "notes", number, "t", {}, "skipped", reason="because")
        for number in range(30)
    )
    text = plan_rows.step_detail(plan.steps[1], preview_of(plan, ALL, instances=instances))
    assert "notes_0: because" in text
    assert "… 10 more" in text
    assert '"tool": "vault.createFile"' in text
