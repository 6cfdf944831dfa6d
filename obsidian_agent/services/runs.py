"""The runs of a vault: history, undo, redo and recovery.

The journal holds what is needed for undo; the audit record only notes that something happened.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from obsidian_agent.agent.privacy.record import AuditRecord, Kind, Verified
from obsidian_agent.errors import JournalError, Problem
from obsidian_agent.journal import state_folder
from obsidian_agent.journal.adoption import adopt
from obsidian_agent.journal.changes import (
    RunChange,
    diffs,
    net_changes,
    paths_outside,
    touched_paths,
)
from obsidian_agent.journal.reader import run_not_found
from obsidian_agent.journal.records import HistoryEntry, StepOutcome, UndoPoint
from obsidian_agent.journal.recovery import InterruptedRun, RecoveryResult, interrupted, recover
from obsidian_agent.journal.state_folder import MovedVault
from obsidian_agent.journal.undo import UndoResult, redo, undo, undo_content, undo_preview
from obsidian_agent.journal.writer import Journal
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.paths.path import PathUse, parse
from obsidian_agent.vault.views.diff import unified_diff

ALL: Final = 1_000_000


class ShownRun(Struct, frozen=True, kw_only=True):
    """A past run with the net changes and diffs of its files, and the risk of its plan.

    `steps` is the number of steps that the journal still knows. `undone` are the paths of changes
    that were undone since.
    """

    entry: HistoryEntry
    changes: tuple[tuple[RunChange, str], ...]
    plan_hash: str | None
    risk: str
    steps: int
    undone: frozenset[str]
    left_out: tuple[str, ...] = ()
    """The changes of the plan that the user left out, as texts."""


class Runs:
    """History, undo, redo and recovery of a vault.

    Every method may block, and opens the journal for itself.
    """

    def __init__(
        self,
        store: VaultStore,
        state: Path,
        clock: Callable[[], datetime] = lambda: datetime.now().astimezone(),
    ) -> None:
        self._store = store
        self._state = state
        self._clock = clock

    def note(self, kind: Kind, **details: Any) -> tuple[Problem, ...]:
        """Add an entry to the audit record of this vault, as `AuditRecord.note`."""
        return self._record.note(kind, **details)

    @property
    def _record(self) -> AuditRecord:
        return AuditRecord(state_folder.find(self._state, self._store), self._clock)

    @contextmanager
    def journal(self) -> Iterator[Journal]:
        """Open the journal for the block."""
        with Journal.open(self._state, self._store) as journal:
            yield journal

    def verify_record(self) -> Verified:
        """Check the audit record of this vault, also against the runs in the journal."""
        finished = [entry.run_id for entry in self.history(ALL) if entry.status != "applying"]
        return self._record.verify(finished[::-1])

    def history(self, limit: int = 50) -> list[HistoryEntry]:
        with self.journal() as journal:
            return journal.history(limit)

    def examine(self, *, contents: bool = False) -> list[Problem]:
        """Return the problems of the journal: runs that are missing or damaged.

        With `contents` the stored contents of files are checked too.
        """
        with self.journal() as journal:
            return journal.examine(contents=contents)

    def moved(self) -> MovedVault | None:
        """Return where the vault was, if it was moved and its history is still stored there."""
        folder = state_folder.find(self._state, self._store)
        if (folder / state_folder.JOURNAL_FILE).exists():
            return None
        return state_folder.find_moved(folder, self._store)

    def adopt(self) -> MovedVault | None:
        """Move the history of a moved vault to its new location. Return `None` if there is none."""
        if self.moved() is None:
            return None
        record = self._record
        entries = record.set_aside()
        try:
            return adopt(self._state, self._store)
        finally:
            if entries:
                record.append(entries)

    def start_new_history(self) -> None:
        """Start a new history for a moved vault, and leave the old one where it is."""
        state_folder.assign_new_id(self._store)

    def plan_of(self, run_id: str) -> ActionPlan:
        """Return the plan of a run.

        Raise `JournalError` if there is none, or if only its outline is stored.
        """
        with self.journal() as journal:
            stored = journal.plan_of(run_id)
        if not stored.is_complete:
            raise JournalError(
                f"Run {run_id} is too old: the texts of its plan are no longer stored.",
                code="PLAN_NOT_KEPT",
            )
        return ActionPlan.model_validate(stored.document)

    def undo(
        self,
        run_id: str | None,
        force: Collection[str] = (),
        skip: Collection[str] = (),
        to_step: str | None = None,
        only: Collection[str] = (),
    ) -> UndoResult:
        """Undo a run, or with `run_id` None the last one that has anything in effect.

        With `to_step` only the steps after that one are undone, with `only` only the changes to
        these paths: the rest stays in effect, and a later undo continues with it. Files that
        changed since the run are not overwritten, except the paths in `force`.
        """
        with self.journal() as journal:
            if run_id is not None and only:
                skip = {*skip, *_paths_outside(journal, run_id, only)}
            result = undo(journal, self._store, run_id, force=force, skip=skip, to_step=to_step)
            return self._recorded("undo", result)

    def _recorded(self, kind: Literal["undo", "redo"], result: UndoResult) -> UndoResult:
        """Note an undo or redo in the audit record. Return the result with the warnings of that."""
        counts = {
            "restored": len(result.restored),
            "conflicts": len(result.conflicts),
            "errors": len(result.errors),
        }
        return replace(
            result, warnings=(*result.warnings, *self.note(kind, runId=result.run_id, **counts))
        )

    def undo_preview(
        self,
        run_id: str | None,
        *,
        redoing: bool = False,
        to_step: str | None = None,
        only: Collection[str] = (),
    ) -> UndoResult:
        """Return what undo (or redo) would do now. `to_step` and `only` as in `undo`."""
        with self.journal() as journal:
            skip: Collection[str] = ()
            if run_id is not None and only:
                skip = _paths_outside(journal, run_id, only)
            return undo_preview(
                journal, self._store, run_id, redoing=redoing, skip=skip, to_step=to_step
            )

    def undo_points(self, run_id: str) -> list[UndoPoint]:
        """Return the steps of a run in order, each with whether undo can go back to its end."""
        with self.journal() as journal:
            return journal.plan_of(run_id).undo_points

    def step_outcomes(self, run_id: str) -> list[StepOutcome]:
        """Return the outcome of each step of a run, including the effect of later undos."""
        with self.journal() as journal:
            return journal.step_outcomes(run_id)

    def redo(self, force: Collection[str] = (), skip: Collection[str] = ()) -> UndoResult:
        """Redo what was undone last, or the rest of it. `force` and `skip` as in `undo`.

        A redo is not possible after a later run changed the vault.
        """
        with self.journal() as journal:
            return self._recorded("redo", redo(journal, self._store, force=force, skip=skip))

    def show(self, run_id: str, is_cancelled: Callable[[], bool] = lambda: False) -> ShownRun:
        """Return a run with the diffs of its files, or with some of them if it is cancelled.

        Raise JournalError RUN_NOT_FOUND, or JOURNAL_DAMAGED.
        """
        with self.journal() as journal:
            record = journal.run(run_id)
            entry = next((one for one in journal.history(ALL) if one.run_id == run_id), None)
            if record is None or entry is None:
                raise run_not_found(run_id)
            actions, images = journal.load(record)
            applied = record.applied or frozenset()
            changes = net_changes(one.action for one in actions if one.number in applied)
            in_effect = touched_paths(
                one.action for one in actions if one.number in record.in_effect
            )
            stored = journal.plan_of(run_id)
            return ShownRun(
                entry=entry,
                changes=tuple(takewhile(lambda _: not is_cancelled(), diffs(changes, images))),
                plan_hash=record.plan_hash,
                risk=str(stored.document.get("riskLevel", "writes")),
                steps=len(stored.document.get("steps", ())),
                left_out=stored.left_out,
                undone=frozenset(
                    change.path
                    for change in changes
                    if in_effect.isdisjoint((change.path, change.new_path))
                ),
            )

    def conflict_diff(self, run_id: str | None, path: str, *, redoing: bool = False) -> str:
        """Return the unified diff from a file to its content after undo (or redo) of the run.

        The diff of binary content is "".
        """
        with self.journal() as journal:
            current_path, target = undo_content(journal, run_id, path, redoing=redoing)
        file = parse(current_path, PathUse.READ)
        current = self._store.read(file) if self._store.lstat(file) is not None else None
        return unified_diff(current, target, file.text, file.text)

    def undo_texts(
        self, run_id: str | None, path: str, *, redoing: bool = False
    ) -> tuple[bytes | None, bytes | None] | None:
        """Return the content of a file now and after undo (or redo) of the run.

        None stands for a file that does not exist. Return None if the run only moved the file.
        """
        with self.journal() as journal:
            try:
                current_path, target = undo_content(journal, run_id, path, redoing=redoing)
            except JournalError:
                return None
        file = parse(current_path, PathUse.READ)
        current = self._store.read(file) if self._store.lstat(file) is not None else None
        return current, target

    def interrupted(self) -> list[InterruptedRun]:
        """Return the runs that a crash interrupted, oldest first."""
        with self.journal() as journal:
            return interrupted(journal, self._store)

    def recover(self, run_id: str | None, finish: bool) -> list[RecoveryResult]:
        """Finish an interrupted run or roll it back; with `run_id` None all of them."""
        with self.journal() as journal:
            recoveries = recover(journal, self._store, finish=finish, run_id=run_id)
        for recovery in recoveries:
            self.note(
                "recover",
                runId=recovery.run_id,
                finished=finish,
                problems=len(recovery.problems),
            )
        return recoveries


def _paths_outside(journal: Journal, run_id: str, chosen: Collection[str]) -> set[str]:
    """Return the paths of a run that an undo of the chosen ones skips.

    Raise JournalError RUN_NOT_FOUND.
    """
    record = journal.run(run_id)
    if record is None:
        raise run_not_found(run_id)
    actions, _ = journal.load(record)
    return paths_outside([one.action for one in actions], chosen)
