"""Tasks and plans of a conversation."""

from __future__ import annotations

from typing import Any

import pytest

from obsidian_agent.threads.state import ThreadState, thread_of
from obsidian_agent.threads.tasks import plans_of, tasks_in, tasks_of

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
    assert [(task.text, task.done, task.from_person) for task in tasks_of(state)] == [
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


def test_a_plan_is_a_list_of_tasks_too() -> None:
    proposed = {"k": "said", "role": "plan", "text": "Tidy up", "data": {"plan": PLAN}}
    (plan,) = plans_of(thread(proposed))
    assert [text for text, _ in plan.steps] == ["Do one", "Do two", "Do three"]
    assert (plan.progress, plan.run_id) == (0.0, None)
    (done,) = plans_of(thread(proposed, run(runId="r1", status="done", success=True, problems=[])))
    assert (done.progress, done.run_id, done.status) == (1.0, "r1", "done")
    failed = run(
        runId="r2",
        status="failed",
        success=False,
        problems=[{"code": "X", "message": "x", "stepId": "two"}],
    )
    (half,) = plans_of(thread(proposed, failed))
    assert [state for _, state in half.steps] == ["done", "failed", "skipped"]
    assert 0 < half.progress < 1


def test_odd_records_do_no_harm() -> None:
    state = thread(
        run(success=1),
        {"k": "said", "role": "plan", "text": "x", "data": {"plan": {"steps": "no"}}},
        run(problems=3),
    )
    assert [plan.steps for plan in plans_of(state)] == [()]
