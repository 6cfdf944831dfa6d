"""Tasks and plans of a conversation."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from obsidian_agent.journal.records import StepOutcome, StepState
from obsidian_agent.threads.state import ThreadState, thread_of
from obsidian_agent.threads.tasks import OutcomesOf, plans_of, tasks_in, tasks_of

HEAD = {"k": "thread", "format": 1, "id": "00112233aabbccdd", "created": "t"}
PLAN = {
    "version": "1.0",
    "goal": "Tidy up",
    "riskLevel": "writes",
    "steps": [
        {"id": name, "tool": "vault.createFile", "args": {}, "preview": f"Do {name}"}
        for name in ("one", "two", "three")
    ],
}


def thread(*records: dict[str, Any]) -> ThreadState:
    state = thread_of([HEAD, *records])
    assert state is not None
    return state


def asked(text: str) -> dict[str, Any]:
    return {"k": "asked", "text": text}


def model(text: str) -> dict[str, Any]:
    return {"k": "message", "role": "assistant", "text": text}


def run(**data: Any) -> dict[str, Any]:
    return {"k": "said", "role": "run", "text": "Tidy up", "data": data}


@pytest.mark.parametrize(
    ("text", "tasks"),
    [
        (
            "- [ ] Buy soil\n* [x] Call Ada\n1. [X] Sow",
            [("Buy soil", False), ("Call Ada", True), ("Sow", True)],
        ),
        (
            "TODO: water\n> todo: weed\n- TODO: rake",
            [("water", False), ("weed", False), ("rake", False)],
        ),
        ("Tasks:\n1. dig\n2) plant\n\nThen rest.\n3. no", [("dig", False), ("plant", False)]),
        ("Next steps for the garden:\n\n1. dig", [("dig", False)]),
        ("Reasons:\n1. it rains", []),
        ("```\n- [ ] code\n```\n~~~\nTODO: x\n~~~\n- [ ] real", [("real", False)]),
        ("- [] x\n- [ ]\nTODOs are fine", []),
        ("Die Aufgaben:\n1. graben", [("graben", False)]),
    ],
)
def test_what_is_a_task(text: str, tasks: list[tuple[str, bool]]) -> None:
    assert list(tasks_in(text)) == tasks


def test_tasks_of_both_sides_each_once_in_order() -> None:
    state = thread(asked("- [ ] Buy soil\nTODO: sow"), model("- [x] buy  SOIL\n- [ ] rake"))
    assert [(task.text, task.done, task.from_user) for task in tasks_of(state)] == [
        ("buy SOIL", True, True),
        ("sow", False, True),
        ("rake", False, False),
    ]


def test_a_tick_stays() -> None:
    state = thread(asked("- [ ] Buy soil"))
    (task,) = tasks_of(state)
    again = thread(
        asked("- [ ] Buy soil"),
        {"k": "done", "index": task.id, "on": True},
        model("- [ ] Buy soil"),
    )
    assert [each.done for each in tasks_of(again)] == [True]
    undone = thread(asked("- [x] Buy soil"), {"k": "done", "index": task.id, "on": False})
    assert [each.done for each in tasks_of(undone)] == [False]


CHANGES: dict[StepState, StepOutcome] = {
    outcome.state: outcome
    for outcome in (
        StepOutcome(step="", state="applied", in_effect=1, changes=1),
        StepOutcome(step="", state="partly applied", in_effect=1, changes=2),
        StepOutcome(step="", state="undone", undone=1, changes=1),
        StepOutcome(step="", state="not applied", changes=1),
        StepOutcome(step="", state="no changes"),
    )
}


def outcomes(*states: StepState) -> OutcomesOf:
    """Return the same outcomes of the steps for every run."""
    names = ("one", "two", "three")
    found = [
        replace(CHANGES[state], step=name, state=state)
        for name, state in zip(names, states, strict=False)
    ]
    return lambda _: found


PROPOSED = {"k": "said", "role": "plan", "text": "Tidy up", "data": {"plan": PLAN}}


def test_a_plan_is_a_list_of_tasks_too() -> None:
    (plan,) = plans_of(thread(PROPOSED), outcomes())
    assert plan.steps == (("Do one", "open"), ("Do two", "open"), ("Do three", "open"))
    assert (plan.completed, plan.run_id) == (0, None)


@pytest.mark.parametrize(
    ("status", "states", "completed", "now"),
    [
        ("done", ("applied", "no changes", "applied"), 3, "done"),
        ("cancelled", ("not applied", "partly applied", "not applied"), 0, "cancelled"),
        ("done", ("undone", "no changes", "undone"), 1, "undone"),
        ("cancelled", ("undone", "not applied", "not applied"), 0, "undone"),
        ("done", ("applied", "undone", "undone"), 1, "partly undone"),
        ("done", (), 0, "done"),
    ],
)
def test_the_steps_of_a_plan_are_as_the_journal_has_them(
    status: str, states: tuple[StepState, ...], completed: int, now: str
) -> None:
    ran = run(runId="r1", status=status, success=status == "done", problems=[])
    (plan,) = plans_of(thread(PROPOSED, ran), outcomes(*states))
    assert [state for _, state in plan.steps] == [*(states or ["unknown"] * 3)]
    assert (plan.completed, plan.run_id, plan.status) == (completed, "r1", now)


def test_a_plan_that_ran_in_stages_has_the_outcomes_of_all_of_them() -> None:
    stages = {
        "r1": [StepOutcome(step="one", state="applied", in_effect=1, changes=1)],
        "r2": [
            StepOutcome(step="one", state="no changes"),
            StepOutcome(step="two", state="applied", in_effect=1, changes=1),
        ],
    }
    runs = [run(runId=name, status="done", success=True, problems=[]) for name in stages]
    (plan,) = plans_of(thread(PROPOSED, *runs), lambda name: stages[name])
    assert [state for _, state in plan.steps] == ["applied", "applied", "not applied"]
    assert plan.run_id == "r2"


@pytest.mark.parametrize("status", ["done", "cancelled", "failed"])
def test_a_step_that_is_undone_in_part_leaves_the_run_partly_undone(status: str) -> None:
    step = StepOutcome(step="one", state="partly applied", in_effect=3, undone=2, changes=9)
    ran = run(runId="r1", status=status, success=False, problems=[])
    (plan,) = plans_of(thread(PROPOSED, ran), lambda _: [step])
    assert plan.status == "partly undone"


def test_odd_records_do_no_harm() -> None:
    state = thread(
        run(success=1),
        {"k": "said", "role": "plan", "text": "x", "data": {"plan": {"steps": "no"}}},
        run(problems=3),
    )
    assert [plan.steps for plan in plans_of(state, outcomes())] == [()]
