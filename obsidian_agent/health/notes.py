"""Findings about single notes: empty, untouched for long, unreadable properties, overdue tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from obsidian_agent.errors import VaultError
from obsidian_agent.health.digests import Digests, OverdueTask
from obsidian_agent.health.finding import HealthFinding, Repair, RepairChoice, RepairStep
from obsidian_agent.health.survey import VaultSurvey
from obsidian_agent.vault.paths.path import VaultPath

_MAX_TEXT: Final = 80


def empty_notes(survey: VaultSurvey, digests: Digests) -> Iterator[HealthFinding]:
    """Yield the notes without text and properties."""
    for note, digest in digests.of.items():
        if digest.is_empty:
            links = survey.backlinks.get(note, 0)
            yield HealthFinding(
                kind="empty-note",
                path=note.text,
                subject="",
                text="The note is empty.",
                evidence=_linked_from(links),
                repair=Repair((delete(note),)),
            )


def _linked_from(count: int) -> str:
    if not count:
        return ""
    return "one note links to it" if count == 1 else f"{count} notes link to it"


def delete(note: VaultPath) -> RepairChoice:
    """Return the choice to delete a file."""
    step = RepairStep("vault.delete", {"path": note.text})
    return RepairChoice(f"Delete {note.text}", (step,))


def invalid_properties(digests: Digests) -> Iterator[HealthFinding]:
    """Yield the notes whose properties are no valid YAML."""
    for note, digest in digests.of.items():
        if digest.broken:
            yield HealthFinding(
                kind="invalid-properties",
                path=note.text,
                line=1,
                subject="",
                text=digest.broken,
                evidence="Obsidian ignores properties that it cannot read",
            )


def stale_notes(survey: VaultSurvey) -> Iterator[HealthFinding]:
    """Yield the notes that were not changed for long."""
    days = survey.settings.stale_days
    limit = (survey.settings.now - timedelta(days=days)).timestamp() * 1000
    for note in survey.notes:
        try:
            changed = survey.view.stat(note).mtime_ms
        except VaultError:
            continue
        if changed < limit:
            day = datetime.fromtimestamp(changed / 1000, UTC).date()
            yield HealthFinding(
                kind="stale-note",
                path=note.text,
                subject="",
                text=f"The note was last changed on {day}.",
                evidence=f"more than {days} days ago",
            )


def overdue_tasks(survey: VaultSurvey, digests: Digests) -> Iterator[HealthFinding]:
    """Yield the open tasks that are past their due dates."""
    today = survey.settings.now.date().isoformat()
    for note, digest in digests.of.items():
        counts: Counter[str] = Counter()
        for task in digest.overdue:
            counts[task.text] += 1
            number = counts[task.text]
            yield HealthFinding(
                kind="overdue-task",
                path=note.text,
                line=task.line,
                # Equal tasks of a note are different findings.
                subject=task.text if number == 1 else f"{task.text}\n{number}",
                text=f"Due {task.due}: {_excerpt(task.text)}",
                evidence=f"due {task.due}, still open",
                repair=_task_repair(note, task, today),
            )


def _task_repair(note: VaultPath, task: OverdueTask, today: str) -> Repair:
    words = {"path": note.text, "text": task.text, "line": task.line}
    return Repair(
        (
            RepairChoice("Due today", (RepairStep("vault.setTaskDue", words | {"due": today}),)),
            RepairChoice("Mark as done", (RepairStep("vault.markTasks", words),)),
        )
    )


def _excerpt(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 1]}…"
