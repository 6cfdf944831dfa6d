"""Comparing a run with its preview, and how often a model may be asked to repair the difference."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from agents import NOTES, ask
from obsidian_agent.agent.events import ExecutionResult
from obsidian_agent.bootstrap import Wiring, build_session, build_threads
from obsidian_agent.errors import Problem
from obsidian_agent.plan.policy import Policy
from obsidian_agent.services.checks import repair_request, verify
from obsidian_agent.threads.manager import REPAIRS, ThreadManager
from support import MakeVault, settings_with

DEVIATION = (Problem("NOT_AS_PREVIEWED", "A.md has different content."),)
DONE = ExecutionResult(run_id="r1", status="done", success=True, outcome="done")
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
    assert not chats.record_run(thread, "Tidy", done)
    root = Path(session.vault.store.real_path)
    (root / "New.md").write_text("other", encoding="utf-8")
    (root / "Projects" / "Diary.md").unlink()
    deviations = verify(approved, session.vault.view())
    assert sorted(str(problem.path) for problem in deviations) == ["New.md", "Projects/Diary.md"]
    assert "New.md has different content" in repair_request(deviations)
    assert chats.record_run(thread, "Tidy", done, deviations)
    runs = [entry for entry in chats.open(thread).state.entries if entry.role == "run"]
    assert runs[-1].data["unlike"]


async def test_two_repairs_in_a_row_are_offered_until_a_run_is_as_previewed_or_a_turn_answers(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    script = tmp_path / "a.jsonl"
    script.write_text(json.dumps({"text": "An answer."}) + "\n", encoding="utf-8")
    settings = settings_with(model=f"scripted/{script}")
    wiring = Wiring(make_vault(NOTES), tmp_path / "state", settings=settings)
    chats = build_threads(wiring, build_session(wiring))
    thread = chats.create().id

    def run(status: str = "done", deviations: tuple[Problem, ...] = DEVIATION) -> bool:
        result = ExecutionResult(
            run_id="r1",
            status=status,  # type: ignore[arg-type]
            success=status == "done",
            outcome=status,  # type: ignore[arg-type]
        )
        return chats.record_run(thread, "Tidy", result, deviations)

    assert [run() for _ in range(REPAIRS + 1)] == [True] * REPAIRS + [False]
    assert run()
    assert not run(deviations=())
    assert [run() for _ in range(REPAIRS)] == [True] * REPAIRS
    async for _ in ask(chats, thread, "What is a vault?"):
        pass
    assert [run() for _ in range(REPAIRS)] == [True] * REPAIRS
    assert not any(run(status) for status in ("cancelled", "failed", "conflict"))
