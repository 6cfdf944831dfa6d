"""The runs of a vault: what was done, and how to take it back. The journal is the proof; the record only tells that it happened."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

from obsidian_agent.agent.privacy.record import AuditRecord, Kind, Verified
from obsidian_agent.dataclass import replace
from obsidian_agent.errors import JournalError, Problem
from obsidian_agent.journal import state_folder
from obsidian_agent.journal.records import Cut, HistoryEntry, StepOutcome
from obsidian_agent.journal.recovery import InterruptedRun, Recovery, interrupted, recover
from obsidian_agent.journal.state_folder import MovedVault
from obsidian_agent.journal.undo import UndoResult, redo, undo, undo_content, undo_preview
from obsidian_agent.journal.writer import Journal
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.paths.path import PathUse, parse
from obsidian_agent.vault.views.diff import unified_diff

ALL: Final = 1_000_000


class Runs:
    """History, undo, redo and recovery of one vault. Every method may block; each opens the journal for itself."""

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
        """As `Record.note`, in the record of this vault."""
        return self._record.note(kind, **details)

    @property
    def _record(self) -> AuditRecord:
        return AuditRecord(state_folder.find(self._state, self._store), self._clock)

    @contextmanager
    def journal(self) -> Iterator[Journal]:
        """The journal, open for the block."""
        with Journal.open(self._state, self._store) as journal:
            yield journal

    def verify_record(self) -> Verified:
        """Check the record of this vault, also against the runs in the journal."""
        ended = [entry.run_id for entry in self.history(ALL) if entry.status != "applying"]
        return self._record.verify(ended[::-1])

    def history(self, limit: int = 50) -> list[HistoryEntry]:
        with self.journal() as journal:
            return journal.history(limit)

    def examine(self, *, contents: bool = False) -> list[Problem]:
        """What is wrong with the journal: runs that are missing from it or damaged; with `contents` also what it keeps of files."""
        with self.journal() as journal:
            return journal.examine(contents=contents)

    def moved(self) -> MovedVault | None:
        """Where the vault was, if it was moved and its history is kept for that place."""
        folder = state_folder.find(self._state, self._store)
        return (
            None
            if (folder / state_folder.JOURNAL_FILE).exists()
            else state_folder.moved(folder, self._store)
        )

    def adopt(self) -> MovedVault | None:
        """Take the history of a vault that was moved along to where it is now; None when there is none to take."""
        if self.moved() is None:
            return None
        record = self._record
        entries = record.set_aside()
        try:
            return state_folder.adopt(self._state, self._store)
        finally:
            if entries:
                record.append(entries)

    def start_new_history(self) -> None:
        """Leave the history of a vault that was moved where it is."""
        state_folder.start_anew(self._store)

    def plan_of(self, run_id: str) -> ActionPlan:
        """The plan of a run. JournalError when there is none, or only its outline is kept."""
        with self.journal() as journal:
            stored = journal.plan_of(run_id)
        if not stored.whole:
            raise JournalError(
                f"Run {run_id} is too old: the texts of its plan are no longer kept.",
                code="PLAN_NOT_KEPT",
            )
        return ActionPlan.model_validate(stored.document)

    def undo(
        self,
        run_id: str | None,
        force: Collection[str] = (),
        skip: Collection[str] = (),
        to_step: str | None = None,
    ) -> UndoResult:
        """Undo a run (None: the last one with anything in effect), with `to_step` only what came after that step.

        Nothing that changed since is overwritten, except the paths in `force`.
        """
        with self.journal() as journal:
            return self._taken_back(
                "undo", undo(journal, self._store, run_id, force=force, skip=skip, to_step=to_step)
            )

    def _taken_back(self, kind: Literal["undo", "redo"], result: UndoResult) -> UndoResult:
        counts = {
            "restored": len(result.restored),
            "conflicts": len(result.conflicts),
            "errors": len(result.errors),
        }
        return replace(
            result, warnings=(*result.warnings, *self.note(kind, runId=result.run_id, **counts))
        )

    def undo_preview(
        self, run_id: str | None, *, redoing: bool = False, to_step: str | None = None
    ) -> UndoResult:
        """What undo (or redo) would do just now."""
        with self.journal() as journal:
            return undo_preview(journal, self._store, run_id, redoing=redoing, to_step=to_step)

    def undo_points(self, run_id: str) -> list[Cut]:
        """The steps of a run, in order, each with whether the run can be taken back to its end."""
        with self.journal() as journal:
            return journal.plan_of(run_id).cuts

    def step_outcomes(self, run_id: str) -> list[StepOutcome]:
        """Return the outcome of each step of a run, as the vault stands after all undos of it."""
        with self.journal() as journal:
            return journal.step_outcomes(run_id)

    def redo(self, force: Collection[str] = (), skip: Collection[str] = ()) -> UndoResult:
        """Redo what was undone last, or what is left of it, unless a later run changed the vault. Otherwise as `undo`."""
        with self.journal() as journal:
            return self._taken_back("redo", redo(journal, self._store, force=force, skip=skip))

    def conflict_diff(self, run_id: str | None, path: str, *, redoing: bool = False) -> str:
        """Return the unified diff from a file as it is now to what undoing the run (or redoing) makes of it; "" for binary content."""
        with self.journal() as journal:
            present, wanted = undo_content(journal, run_id, path, redoing=redoing)
        where = parse(present, PathUse.READ)
        now = self._store.read(where) if self._store.lstat(where) is not None else None
        return unified_diff(now, wanted, where.text, where.text)

    def interrupted(self) -> list[InterruptedRun]:
        """Runs that a crash left half done, oldest first."""
        with self.journal() as journal:
            return interrupted(journal, self._store)

    def recover(self, run_id: str | None, finish: bool) -> list[Recovery]:
        """Finish interrupted runs, or roll them back; None: all of them."""
        with self.journal() as journal:
            ended = recover(journal, self._store, finish=finish, run_id=run_id)
        for one in ended:
            self.note("recover", runId=one.run_id, finished=finish, problems=len(one.problems))
        return ended
