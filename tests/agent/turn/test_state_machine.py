"""The states of a turn, and checking a run against its preview."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path
from typing import Any

import pytest

from agents import NOTES, ask, propose
from obsidian_agent.agent.events import (
    Answer,
    ExecutionResult,
    RunFinished,
    RunStarted,
    TurnFailed,
    TurnStarted,
)
from obsidian_agent.bootstrap import Wiring, build_session, build_threads
from obsidian_agent.errors import Problem
from obsidian_agent.plan.policy import Policy
from obsidian_agent.services.checks import repair_request, verify
from obsidian_agent.threads.manager import ThreadManager
from obsidian_agent.threads.recorder import (
    ENDS,
    FOLLOWING,
    REPAIRS,
    IllegalTransition,
    TurnMachine,
    TurnState,
)
from support import MakeVault, settings_with

S = TurnState
WRONG = (Problem("NOT_AS_PREVIEWED", "A.md has different content."),)


def result(status: Any) -> RunFinished:
    return RunFinished(
        ExecutionResult("r1", status, status == "done", "done" if status == "done" else "error")
    )


@pytest.mark.parametrize(("state", "following"), [*itertools.product(S, S)])
def test_only_what_may_follow_follows(state: TurnState, following: TurnState) -> None:
    machine = TurnMachine(state)
    if following in FOLLOWING[state]:
        assert machine.to(following) is following
    else:
        with pytest.raises(IllegalTransition):
            machine.to(following)
        assert machine.state is state


def test_every_state_can_be_reached_and_every_end_left() -> None:
    assert set(FOLLOWING) == set(S)
    assert set().union(*FOLLOWING.values()) == set(S) - {S.IDLE}
    assert all(FOLLOWING[end] for end in ENDS)


def test_questions_and_failures_end_a_turn() -> None:
    machine = TurnMachine()
    assert machine.handle(TurnStarted("x")) is S.PLANNING
    assert machine.handle(Answer("y")) is S.COMPLETED
    machine.handle(TurnStarted("x"))
    assert machine.handle(TurnFailed(WRONG[0])) is S.FAILED


def test_a_run_is_checked_and_repaired_twice_at_most() -> None:
    machine = TurnMachine(S.AWAITING_APPROVAL)
    for _ in range(REPAIRS):
        machine.to(S.AWAITING_APPROVAL)
        assert machine.handle(RunStarted("r1", 1)) is S.EXECUTING
        assert machine.handle(result("done")) is S.VALIDATING
        assert machine.verify(WRONG) is S.RETRYING
        machine.handle(TurnStarted("repair"))
    machine.to(S.AWAITING_APPROVAL)
    machine.handle(RunStarted("r1", 1))
    machine.handle(result("done"))
    assert machine.verify(WRONG) is S.FAILED
    machine.handle(TurnStarted("new"))
    assert machine.repairs == 0


@pytest.mark.parametrize(
    ("status", "state"), [("cancelled", S.CANCELLED), ("failed", S.FAILED), ("conflict", S.FAILED)]
)
def test_a_run_that_does_not_end_well_is_not_checked(status: str, state: TurnState) -> None:
    assert TurnMachine(S.EXECUTING).handle(result(status)) is state


STEPS = [
    {"id": "make", "tool": "vault.createFile", "args": {"path": "New.md", "content": "new"}},
    {
        "id": "move",
        "tool": "vault.rename",
        "args": {"from": "Projects/Log.md", "to": "Projects/Diary.md"},
    },
    {"id": "drop", "tool": "vault.delete", "args": {"path": "Finance/bank.md"}},
]


async def test_a_run_of_a_thread_is_compared_with_its_preview(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    wiring = Wiring(make_vault(NOTES), tmp_path / "state", policy=Policy(allow_deletes=True))
    session = build_session(wiring)
    chats: ThreadManager = build_threads(wiring, session)
    thread = chats.create().id
    plan = {"version": "1.0", "goal": "Tidy", "riskLevel": "writes", "steps": STEPS}
    approved = session.plans.dry_run(plan)
    assert approved.valid, approved.errors
    assert len(verify(approved, session.vault.view())) == len(approved.change_set.changes), (
        "nothing is done yet"
    )
    done = session.plans.apply(approved, lambda event: None, threading.Event())
    assert verify(approved, session.vault.view()) == ()
    chats.open(thread).machine.state = S.AWAITING_APPROVAL
    assert chats.record_run(thread, "Tidy", done) is S.COMPLETED
    root = Path(session.vault.store.real_path)
    (root / "New.md").write_text("other", encoding="utf-8")
    (root / "Projects" / "Diary.md").unlink()
    unlike = verify(approved, session.vault.view())
    assert sorted(str(problem.path) for problem in unlike) == ["New.md", "Projects/Diary.md"]
    assert "New.md has different content" in repair_request(unlike)
    chats.open(thread).machine.state = S.AWAITING_APPROVAL
    assert chats.record_run(thread, "Tidy", done, unlike) is S.RETRYING
    assert [said.data["unlike"] for said in chats.open(thread).state.entries if said.role == "run"][
        -1
    ]


async def test_a_threads_turn_is_somewhere_at_every_moment(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    import json

    plan = {"version": "1.0", "goal": "Make", "riskLevel": "writes", "steps": STEPS[:1]}
    (tmp_path / "a.jsonl").write_text(json.dumps(propose(plan)), encoding="utf-8")
    wiring = Wiring(
        make_vault(NOTES),
        tmp_path / "state",
        settings=settings_with(model=f"scripted/{tmp_path}/a.jsonl"),
    )
    chats = build_threads(wiring, build_session(wiring))
    thread = chats.create().id
    seen = []
    async for _ in ask(chats, thread, "Make a note"):
        seen.append(chats.open(thread).machine.state)
    assert (seen[0], seen[-1]) == (S.PLANNING, S.AWAITING_APPROVAL)
