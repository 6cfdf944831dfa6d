"""What an interrupted run has done so far, and how to end it: all of it, or none of it.

Nothing is noted per action while a run is at work, so the disk itself is asked (`judgement.py`). Recovery only repeats or reverses actions
that say what they expect, so it can be killed and run again at any point.
"""

from __future__ import annotations

from dataclasses import dataclass

from obsidian_agent.errors import JournalError, Problem, VaultError
from obsidian_agent.journal import litter
from obsidian_agent.journal.boot import started_since
from obsidian_agent.journal.effects import Effects, effects_of
from obsidian_agent.journal.images import ImageSource
from obsidian_agent.journal.judgement import Judged, PathState, judge, shown
from obsidian_agent.journal.records import Kind, Record
from obsidian_agent.journal.store import Journal, no_run
from obsidian_agent.vault.actions import PutFile
from obsidian_agent.vault.apply import Applier, HalfDone
from obsidian_agent.vault.handles import FolderHandles
from obsidian_agent.vault.store import VaultStore


@dataclass(frozen=True, slots=True)
class InterruptedPath:
    """The state of one path that an interrupted run is about."""

    path: str
    state: PathState
    reason: str = ""


@dataclass(frozen=True, slots=True)
class InterruptedRun:
    """A run, undo or redo that was cut off, with the state of everything that it is about, in the order of its actions."""

    run_id: str
    kind: Kind
    time: str
    goal: str
    paths: tuple[InterruptedPath, ...]
    leftovers: int
    """Temporary files in the vault."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """How an interrupted run was ended. `problems` name what was left alone, with the reason; `warnings` as for an undo."""

    run_id: str
    kind: Kind
    finished: bool
    effects: Effects = Effects()
    problems: tuple[Problem, ...] = ()
    undo_available: bool = False
    warnings: tuple[Problem, ...] = ()


def interrupted(journal: Journal, store: VaultStore) -> list[InterruptedRun]:
    """The runs that a crash left half done, oldest first. [] while another process is at work. Changes nothing."""
    records = journal.unfinished()
    if not records or journal.locked:
        return []
    # One that ended between the two questions is no longer unfinished.
    still = {record.seq for record in journal.unfinished()}
    records = [record for record in records if record.seq in still]
    found = []
    with FolderHandles(store) as handles:
        for record in records:
            actions, images = journal.load(record)
            judged = judge(handles, record, actions, images.find)
            left = sum(1 for _ in litter.leftovers(handles, record, actions))
            paths = tuple(InterruptedPath(shown(one), one.state, one.reason) for one in judged)
            found.append(InterruptedRun(record.run_id, record.kind, record.time, record.goal, paths, left))
    return found


def recover(journal: Journal, store: VaultStore, *, finish: bool, run_id: str | None = None) -> list[Recovery]:
    """End what a crash left half done (one run, or all): carry it out to its end, or take back what it did. JournalError, VaultError.

    Foreign content is left alone and reported. When this is interrupted too, or the disk fails, it is simply done again.
    """
    with journal.lock():
        records = journal.unfinished()
        if run_id is not None:
            records = [record for record in records if record.run_id == run_id]
            if not records:
                raise no_run(run_id)
        return [_end(journal, store, record, finish=finish) for record in (records if finish else reversed(records))]


def settle(journal: Journal, store: VaultStore) -> None:
    """Before anything new: end records of which the disk shows that nothing, or everything, was done. The lock must be held.

    JournalError (RECOVERY_NEEDED) for one that is half done.
    """
    for record in journal.unfinished():
        with FolderHandles(store) as handles:
            actions, images = journal.load(record)
            states = {one.state for one in judge(handles, record, actions, images.find)}
        if len(states) > 1 or not states <= {"before", "after"}:
            raise JournalError(
                f"Run {record.run_id} was interrupted and is half done.",
                code="RECOVERY_NEEDED",
                hint="Decide first: `obsidian-agent recover --finish` or `--roll-back`.",
            )
        _end(journal, store, record, finish="after" in states)


def _end(journal: Journal, store: VaultStore, record: Record, *, finish: bool) -> Recovery:
    journal.make_durable()
    actions, images = journal.load(record)
    problems: list[Problem] = []
    with FolderHandles(store) as handles, Applier(handles, record.token, recovering=True) as applier:
        for leftover in list(litter.leftovers(handles, record, actions)):
            told = litter.clear(handles, leftover, images.find, started_since(record.boot))
            if told is not None:
                problems.append(Problem("CONFLICT", told, path=leftover.action.path.text if leftover.action else None))
        in_effect = set[int]()
        judged = judge(handles, record, actions, images.find)
        for one in judged if finish else reversed(judged):
            if _carried(applier, one, images, finish, problems):
                in_effect.add(one.stored.number)
        applier.complete()
        warnings = tuple(applier.warnings)
    origins = [one.origin for one in actions if one.number in in_effect] if finish else None
    effects = effects_of(one.action for one in actions if one.number in in_effect)
    journal.finish(record, "recovered", in_effect, effects=effects, origins=origins)
    return Recovery(record.run_id, record.kind, finish, effects, tuple(problems), record.kind == "run" and bool(in_effect), warnings)


def _carried(applier: Applier, one: Judged, images: ImageSource, finish: bool, problems: list[Problem]) -> bool:
    """Bring one action to the end it should have; whether it is in effect afterwards."""
    stored = one.stored
    if one.state == "foreign":
        problems.append(Problem("CONFLICT", f"{shown(one)} was left alone: {one.reason}.", path=shown(one)))
        return False
    if one.state == ("after" if finish else "before"):
        return finish
    action = one.forward if finish else one.backward
    try:
        content = images.get(action.after) if isinstance(action, PutFile) and action.after is not None else b""
        done = applier.carry_out(action, stored.number, content)
    except HalfDone:
        raise
    except (VaultError, JournalError) as error:
        if error.code == "IO_ERROR":
            # Going on would leave holes that nobody could judge when it is done again.
            error.hint = error.hint or "Recover again when the disk works."
            raise
        problems.append(error.problem())
        return False
    return done if finish else False
