"""The overview of a vault that starts a conversation."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from obsidian_agent.bootstrap import Wiring, build_session, proposals_folder
from obsidian_agent.services.overview import Overview, overview
from obsidian_agent.services.session import Session
from obsidian_agent.services.waiting_plans import ProposedResult, WaitingPlans
from support import MakeVault

NOTES = {
    "Inbox.md": "#idea\n",
    "Projects/Garden.md": "#idea #later\n",
    "Projects/Roof.md": "Nothing yet.\n",
    'Odd "names"/Note.md': "",
}
PLAN = {
    "version": "1.0",
    "goal": "Add a line",
    "riskLevel": "writes",
    "steps": [
        {
            "id": "add",
            "tool": "vault.addLines",
            "args": {"path": "Inbox.md", "content": "x"},
            "preview": "Add it",
        }
    ],
}


def opened(make_vault: MakeVault, folder: Path, notes: dict[str, str]) -> tuple[Session, Overview]:
    wiring = Wiring(make_vault(notes), folder / "state")
    session = build_session(wiring)
    return session, overview(session, WaitingPlans(proposals_folder(wiring)))


def test_the_examples_are_made_of_the_most_used_tag_and_folder(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    _, start = opened(make_vault, tmp_path, NOTES)
    assert [(example.sentence, example.remark) for example in start.examples] == [
        ("Which notes are tagged #idea?", "2 notes"),
        ('Create an index of Projects in "Projects index"', "2 notes"),
        ("Find broken links", ""),
    ]
    assert start.note_count == 4


@pytest.mark.parametrize("name", ["Projects", "Délais", "A folder with a long name", "delete"])
def test_every_example_is_read_completely(make_vault: MakeVault, tmp_path: Path, name: str) -> None:
    session, start = opened(make_vault, tmp_path, {f"{name}/One.md": "#some/tag\n"})
    assert len(start.examples) == 3
    for example in start.examples:
        first, *_ = session.suggest(example.sentence)
        assert not first.missing
        assert not first.doubt


def test_an_empty_vault_has_no_examples(make_vault: MakeVault, tmp_path: Path) -> None:
    _, start = opened(make_vault, tmp_path, {})
    assert start.examples == ()
    assert start.last_run is None


def test_it_names_what_waits_and_the_last_run_that_changed_something(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    wiring = Wiring(make_vault(NOTES), tmp_path / "state")
    session = build_session(wiring)
    waiting = WaitingPlans(proposals_folder(wiring))
    preview = session.plans.dry_run(PLAN)
    now = datetime(2026, 11, 23, tzinfo=UTC)
    waiting.add(PLAN, source="Claude", now=now, result=ProposedResult(preview.plan_hash, 1))
    session.plans.apply(preview, lambda event: None, threading.Event())
    start = overview(session, waiting)
    assert [plan.source for plan in start.waiting] == ["Claude"]
    assert start.last_run is not None
    assert start.last_run.goal == "Add a line"
    assert start.recent_notes[0] == "Inbox.md"
