"""Conversations as notes."""

from __future__ import annotations

from pathlib import Path

from obsidian_agent.agent.threads.state import ThreadState, export_plan, note_of, thread_of
from obsidian_agent.bootstrap import Wiring, build_session
from support import MakeVault

HEAD = {"k": "thread", "format": 1, "id": "00112233aabbccdd", "created": "2026-03-14T09:30:00.000+00:00"}
TIME = "2026-03-14T09:31:00.000+00:00"
TEXT = "# Beds\n\nUse ${selection} and $${x} and `code`.\n```\n# no heading in code is lost\n```"


def thread() -> ThreadState:
    state = thread_of(
        [
            HEAD,
            {"k": "set", "title": 'Beds: ${a/b} "soil"', "titledBy": "person"},
            {"k": "asked", "text": "What about ${date}?", "time": TIME},
            {"k": "message", "role": "user", "text": "x", "time": TIME},
            {"k": "said", "role": "look", "text": "Read a file", "time": TIME},
            {"k": "message", "role": "assistant", "text": TEXT, "time": TIME},
            {"k": "sources", "paths": ["Garden.md"]},
            {"k": "said", "role": "run", "text": "Make beds", "time": TIME, "data": {"status": "done"}},
        ]
    )
    assert state is not None
    return state


def test_the_note_has_both_sides_with_their_headings() -> None:
    note = note_of(thread())
    assert note.startswith(
        "---\ncreated: '2026-03-14T09:30:00'\n---\n\n# Beds: ${a/b} \"soil\"\n\n## You, 2026-03-14 09:31\n\nWhat about ${date}?"
    )
    assert "## Agent, 2026-03-14 09:31\n\n### Beds" in note
    assert "Sources: [[Garden]]" in note
    assert "> Make beds" in note
    assert "Read a file" not in note


def test_the_plan_previews_to_exactly_that_note(make_vault: MakeVault, tmp_path: Path) -> None:
    session = build_session(Wiring(make_vault({"A.md": ""}), tmp_path / "state"))
    preview = session.plans.dry_run(export_plan(thread()))
    assert preview.valid, preview.errors
    *_, change = preview.change_set.changes
    assert change.content == note_of(thread()).encode()
    assert change.path.text.startswith("Conversations/Beds")
    assert not session.plans.dry_run(export_plan(thread(), "A.md")).valid, "what is there is never replaced"
