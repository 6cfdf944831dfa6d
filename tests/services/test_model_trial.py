"""Trial of a model over its sample vault."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from obsidian_agent.agent.events import Candidate, NeedsInput, PlanReady
from obsidian_agent.agent.planner import PlanRequest
from obsidian_agent.bootstrap import Wiring, build_session
from obsidian_agent.services.model_trial import judge, propose, sample_vault, tasks
from obsidian_agent.services.session import Session
from obsidian_agent.vault.filesystem.store import VaultStore


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with sample_vault() as folder:
        store = VaultStore.open(folder)
        yield build_session(Wiring(store, tmp_path_factory.mktemp("state")))
        store.close()
    assert not folder.exists()


def test_there_are_twenty_and_no_two_alike() -> None:
    assert len({task.sentence for task in tasks()}) == 20


@pytest.mark.parametrize("task", tasks(), ids=lambda task: task.sentence)
def test_each_can_be_done_and_needs_a_model(task, session: Session) -> None:  # type: ignore[no-untyped-def]
    done = propose(session, task.recipe, task.values)
    assert judge(session, task, done) == "right"
    assert isinstance(
        session.offline.decide(PlanRequest(task.sentence, session.plans.context())), NeedsInput
    )


def test_something_else_is_wrong_and_a_way_there_is_asked(session: Session) -> None:
    task = tasks()[0]
    elsewhere = propose(session, "move", {"notes": "note:Garden", "folder": "Archive"})
    assert judge(session, task, elsewhere) == "wrong"
    right = propose(session, task.recipe, task.values)
    assert isinstance(right, PlanReady)
    offers = [
        Candidate(title="t", plan=None, values=dict(task.values), missing=(), recipe=task.recipe),
        Candidate(title="t", plan=None, values={}, missing=("notes", "folder"), recipe=task.recipe),
        Candidate(title="t", plan=right.plan, values={}, missing=()),
    ]
    assert [judge(session, task, NeedsInput("?", (offer,))) for offer in offers] == ["asked"] * 3
    assert (
        judge(
            session,
            task,
            NeedsInput(
                "?",
                (Candidate(title="t", plan=None, values={}, missing=("path",), recipe="merge"),),
            ),
        )
        == "open"
    )


def test_the_vault_is_made_anew_each_time(tmp_path: Path) -> None:
    with sample_vault() as first, sample_vault() as second:
        assert first != second
        assert (first / "Home.md").read_bytes() == (second / "Home.md").read_bytes()
