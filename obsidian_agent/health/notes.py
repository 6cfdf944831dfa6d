"""Findings about single notes: empty, untouched for long, overdue tasks."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta

from obsidian_agent.errors import VaultError
from obsidian_agent.health.digests import Digests
from obsidian_agent.health.finding import (
    HealthFinding,
    Repair,
    RepairChoice,
    RepairStep,
    excerpt,
    note_count,
)
from obsidian_agent.health.names import has_date, has_placeholder
from obsidian_agent.health.survey import VaultSurvey
from obsidian_agent.vault.index.digest import DueTask
from obsidian_agent.vault.links.resolve import file_name
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.views.changes import content_hash


def empty_notes(survey: VaultSurvey, digests: Digests) -> Iterator[HealthFinding]:
    """Yield the notes that have neither text, apart from their name, nor properties."""
    for note, digest in digests.of.items():
        if digest.is_empty:
            links = survey.backlinks[note]
            evidence = ["its properties have no values"] if survey.facts[note].properties else []
            if links:
                evidence.append(f"{note_count(links)} {'links' if links == 1 else 'link'} to it")
            yield HealthFinding(
                kind="empty-note",
                path=note.text,
                subject="",
                text="The note is empty.",
                evidence="; ".join(evidence),
                # A note that others link to is one to be written, and deleting it breaks links.
                # One with names of properties may be a template.
                repair=None if evidence else Repair((delete(note),)),
            )


def delete(note: VaultPath) -> RepairChoice:
    """Return the choice to delete a file."""
    step = RepairStep("vault.delete", {"path": note.text})
    return RepairChoice(f"Delete {note.text}", (step,))


def moved_links(
    survey: VaultSurvey, file: VaultPath, to: VaultPath, deleted: Collection[VaultPath]
) -> tuple[RepairStep, ...]:
    """Return the step that points the links to a note to the one that stays, if any has to change.

    A link by a name that only the other note still has then leads there as it is.
    """
    if not survey.backlinks[file]:
        return ()
    if file_name(file) == file_name(to):
        others = [note for note in survey.resolver.candidates(file.stem) if note not in deleted]
        targets = (target for _, target in survey.links_to_namesakes.get(file, ()))
        if others == [to] and not any("/" in target for target in targets):
            return ()
    return (RepairStep("vault.retargetLinks", {"from": file.text, "to": to.text}),)


def writing(note: VaultPath, data: bytes, content: str, title: str) -> RepairChoice | None:
    """Return the choice to write a note that holds `data` now, or None if no plan can.

    In a plan, a placeholder in the text would be taken for a reference.
    """
    if has_placeholder(content):
        return None
    args = {"path": note.text, "content": content, "ifMatch": content_hash(data)}
    return RepairChoice(title, (RepairStep("vault.writeFile", args),))


def stale_notes(survey: VaultSurvey) -> Iterator[HealthFinding]:
    """Yield the notes that were not changed for long, and that no note changed since links to.

    Notes of a day, week or month are left out: they are not meant to change.
    """
    days = survey.settings.stale_days
    limit = (survey.settings.now - timedelta(days=days)).timestamp() * 1000
    changed: dict[VaultPath, float] = {}
    for note in survey.notes:
        with contextlib.suppress(VaultError):
            moment = survey.index.modified_ms(note)
            changed[note] = survey.view.stat(note).mtime_ms if moment is None else moment
    recent = (note for note, moment in changed.items() if moment >= limit)
    in_use = set[VaultPath]().union(*map(survey.linked_files.__getitem__, recent))
    for note, moment in changed.items():
        if moment < limit and note not in in_use and not has_date(note.stem):
            day = datetime.fromtimestamp(moment / 1000, UTC).date()
            yield HealthFinding(
                kind="stale-note",
                path=note.text,
                subject="",
                text=f"The note was last changed on {day}.",
                evidence=f"more than {days} days ago, and no note changed since links to it",
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
                text=f"Due {task.due}: {excerpt(task.text)}",
                evidence=f"due {task.due}, still open",
                repair=_task_repair(note, task, today),
            )


def _task_repair(note: VaultPath, task: DueTask, today: str) -> Repair:
    words = {"path": note.text, "text": task.text, "line": task.line}
    return Repair(
        (
            RepairChoice("Due today", (RepairStep("vault.setTaskDue", words | {"due": today}),)),
            RepairChoice("Mark as done", (RepairStep("vault.markTasks", words),)),
        )
    )
