"""The overview of a vault at the start: examples made from its own names, and where to go on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from obsidian_agent.services.reading import recently_modified
from obsidian_agent.services.run_context import note_settings
from obsidian_agent.terminal_text import counted
from obsidian_agent.vault.paths.path import ROOT, VaultPath

if TYPE_CHECKING:
    from obsidian_agent.journal.records import HistoryEntry
    from obsidian_agent.services.session import Session
    from obsidian_agent.services.waiting_plans import WaitingPlan, WaitingPlans
    from obsidian_agent.vault.views.view import VaultView

RECENT_NOTES = 3
MACROS = 3


class Example(Struct, frozen=True):
    """A sentence that works in this vault without a model, with a remark."""

    sentence: str
    remark: str = ""


class Overview(Struct, frozen=True, kw_only=True):
    """The facts about a vault that the introduction to a conversation shows."""

    note_count: int
    examples: tuple[Example, ...]
    waiting: tuple[WaitingPlan, ...]
    recent_notes: tuple[str, ...]
    """Paths, the note that was modified last first."""
    macros: tuple[str, ...]
    """Names of trusted macros, the one that was used most first."""
    last_run: HistoryEntry | None
    health: tuple[str, int] | None = None
    """The day and the number of findings of the last whole health report."""


def overview(
    session: Session, waiting: WaitingPlans, trend: Sequence[tuple[str, int]] = ()
) -> Overview:
    """Return the overview of a session's vault. May block for as long as the index is built.

    `trend` has the day and number of findings of earlier health reports.
    """
    view = session.vault.view()
    notes = list(view.index.notes(ROOT))
    macros = sorted(session.saved.trusted(), key=lambda macro: -session.saved.use_count(macro.name))
    templates = note_settings(session.vault.store.obsidian_config).templates
    changes = (run for run in session.runs.history(limit=20) if not run.effects.is_empty)
    return Overview(
        note_count=len(notes),
        examples=tuple(_examples(view, notes)),
        waiting=tuple(waiting.all()),
        recent_notes=tuple(recently_modified(view, RECENT_NOTES, templates)),
        macros=tuple(macro.name for macro in macros[:MACROS]),
        last_run=next(changes, None),
        health=trend[-1] if trend else None,
    )


def _examples(view: VaultView, notes: list[VaultPath]) -> Iterator[Example]:
    tags = Counter(tag for note in notes for tag in view.index.facts(note).tags)
    folders = Counter(
        note.text.partition("/")[0] for note in notes if "/" in note.text and '"' not in note.text
    )
    if tags:
        tag = max(tags, key=lambda tag: (tags[tag], tag))
        count = len(view.index.tagged(tag, ROOT))
        yield Example(f"Which notes are tagged #{tag}?", counted(count, "note"))
    if folders:
        folder = max(folders, key=lambda folder: (folders[folder], folder))
        yield Example(
            f'Create an index of {folder} in "{folder} index"',
            counted(folders[folder], "note"),
        )
    if notes:
        yield Example("Find broken links")
