"""The read side of a vault's journal: runs, their plans and changes, and integrity problems."""

from __future__ import annotations

import json
import sqlite3
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self, get_args

from obsidian_agent.errors import JournalError, Problem
from obsidian_agent.journal import db, integrity, state_folder
from obsidian_agent.journal.blobs import ImageSource, StoredPart, damaged
from obsidian_agent.journal.integrity import Register, RegisterEntry
from obsidian_agent.journal.lock import is_locked
from obsidian_agent.journal.records import (
    Effects,
    HistoryEntry,
    Kind,
    Record,
    StepOutcome,
    StoredAction,
    StoredPlan,
    numbers,
    step_outcomes,
    unpack_effects,
    unpack_undo_points,
)
from obsidian_agent.plan.step_title import step_title
from obsidian_agent.vault.filesystem.store import VaultStore

_KINDS: Final = frozenset(get_args(Kind))
_COLUMNS: Final = (
    "seq, run_id, kind, time, goal, plan_hash, status, token, source, run, count, "
    "applied, reversed, undone, bytes > 0 OR count = 0, boot"
)


class JournalReader:
    """The journal of a vault, for reading.

    Opening it reads and creates nothing; a vault without runs has no journal. It may be used from
    any thread and process. Every method raises JournalError if the journal cannot be read.
    """

    def __init__(self, folder: Path, store: VaultStore) -> None:
        self.folder = folder
        self.file = folder / state_folder.JOURNAL_FILE
        self.vault = store.real_path
        self._store = store
        self._register = Register(folder)
        self._reader: sqlite3.Connection | None = None
        self._reading = threading.RLock()

    @classmethod
    def open(cls, state_dir: Path, store: VaultStore) -> Self:
        """Open the journal of a vault below the user's state folder."""
        return cls(state_folder.find(state_dir, store), store)

    def close(self) -> None:
        """Close the connections."""
        with self._reading:
            if self._reader is not None:
                self._reader.close()
                self._reader = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def locked(self) -> bool:
        """True while a process is writing."""
        return is_locked(self.folder / "lock")

    def history(self, limit: int = 50) -> list[HistoryEntry]:
        """Return the runs with their effects, newest first."""
        with self._query(
            f"SELECT effects, {_COLUMNS} FROM record WHERE kind = 'run' ORDER BY seq DESC LIMIT ?",
            limit,
        ) as rows:
            return [_history_entry(effects, read_record(row)) for effects, *row in rows]

    def run(self, run_id: str) -> Record | None:
        """Return the record with this id, or None. Raise JournalError if it was lost."""
        record = next(iter(self._records("run_id = ?", run_id)), None)
        if record is None and any(entry.run_id == run_id for entry in self._registered().values()):
            raise JournalError(
                f"Run {run_id} is missing from the journal, so it cannot be undone.",
                code="JOURNAL_DAMAGED",
            )
        return record

    def record(self, seq: int) -> Record | None:
        """Return the record with this number, or None."""
        return next(iter(self._records("seq = ?", seq)), None)

    def unfinished(self) -> list[Record]:
        """Return the records without an end, oldest first.

        They were interrupted, or are still running while the journal is `locked`.
        """
        return self._records("status = 'applying' ORDER BY seq")

    def last_undoable(self) -> Record | None:
        """Return the newest run with an action in effect, or None.

        Raise JournalError if a later record is lost.
        """
        return self._newest(
            "kind = 'run' AND undone = 0 AND bytes > 0 AND status != 'applying' ORDER BY seq DESC"
        )

    def last_redoable(self) -> Record | None:
        """Return the newest undo that was not redone completely, or None.

        A later run that changed the vault ends the possibility to redo. Raise JournalError as
        `last_undoable` does.
        """
        changed = "applied IS NOT NULL AND applied != zeroblob(length(applied))"
        newest_run = f"SELECT COALESCE(MAX(seq), 0) FROM record WHERE kind = 'run' AND {changed}"
        return self._newest(
            f"kind = 'undo' AND undone = 0 AND status != 'applying' AND seq > ({newest_run}) "
            "ORDER BY seq DESC"
        )

    def has_reversals(self) -> bool:
        """Return whether the journal holds a finished undo or redo."""
        with self._query(
            "SELECT 1 FROM record WHERE kind != 'run' AND status != 'applying' LIMIT 1"
        ) as rows:
            return next(iter(rows), None) is not None

    def _newest(self, condition: str) -> Record | None:
        """Return the first record with an action in effect, or None.

        Raise JournalError if a newer record is lost, which may have been the one.
        """
        newest = next((record for record in self._records(condition) if record.in_effect), None)
        with self._query("SELECT seq FROM record NOT INDEXED") as rows:
            existing = {seq for (seq,) in rows}
        register = self._registered()
        lost = integrity.missing_numbers(existing, register)
        if lost and (newest is None or lost[-1] > newest.seq):
            raise JournalError(
                f"{integrity.description(lost[-1], register)} is missing from the journal, "
                "so the last change is unknown.",
                code="JOURNAL_DAMAGED",
                hint="Name the run to undo: `obsidian-agent history` lists the remaining ones.",
            )
        return newest

    def plan_of(self, run_id: str) -> StoredPlan:
        """Return the plan of a run. Raise JournalError if the run or its plan does not exist."""
        with self._query("SELECT plan, cuts, kept FROM record WHERE run_id = ?", run_id) as rows:
            row = next(iter(rows), None)
        if row is None:
            self.run(run_id)
        if row is None or (row[0] is None and row[2]):
            raise run_not_found(run_id)
        plan, undo_points, has_contents = row
        try:
            document: dict[str, Any] = {} if plan is None else json.loads(zlib.decompress(plan))
            left_out = tuple(map(str, document.pop("leftOut", ())))
            return StoredPlan(
                document, unpack_undo_points(undo_points), bool(has_contents), left_out
            )
        except (zlib.error, ValueError, TypeError) as error:
            raise damaged() from error

    def step_outcomes(self, run_id: str) -> list[StepOutcome]:
        """Return the outcome of each step of a run, taking later undos into account.

        Raise JournalError as `plan_of` does.
        """
        with self._query(
            f"SELECT effects, {_COLUMNS} FROM record WHERE run_id = ?", run_id
        ) as rows:
            row = next(iter(rows), None)
        if row is None:
            raise run_not_found(run_id)
        stored_effects, *columns = row
        record = read_record(columns)
        effects = Effects() if stored_effects is None else unpack_effects(stored_effects)
        plan = self.plan_of(run_id)
        texts = {
            str(step.get("id")): step_title(
                str(step.get("tool") or step.get("id")), step.get("args") or {}, step.get("preview")
            )
            for step in plan.document.get("steps", ())
        }
        return step_outcomes(
            plan.undo_points, record.applied, record.reversed, effects.commands, texts
        )

    def load(self, record: Record) -> tuple[list[StoredAction], ImageSource]:
        """Return the actions of a record in order, and the stored contents.

        These include the contents of the records that it reverses. Raise JournalError if the
        record was modified.
        """
        images = ImageSource(self._load_part)
        actions: list[StoredAction] = []
        source: Record | None = record
        while source is not None:
            with self._query(
                "SELECT rowid, actions, first FROM part WHERE record = ? ORDER BY number",
                source.seq,
            ) as rows:
                parts = list(rows)
            for part, blob, first in parts:
                stored = StoredPart(blob)
                images.add(part, stored)
                if source is record:
                    actions += stored.actions(first)
            source = None if source.source is None else self.record(source.source)
        with self._reading, db.journal_errors(self.file):
            connection = self._read_connection()
            if connection is None or not integrity.is_intact(connection, record.seq):
                raise damaged()
        if [action.number for action in actions] != list(range(record.count)):
            raise damaged()
        return actions, images

    def _load_part(self, part: int) -> tuple[bytes, bytes, int] | None:
        with self._query(
            "SELECT actions, images, checksum FROM part WHERE rowid = ? AND images IS NOT NULL",
            part,
        ) as rows:
            return next(iter(rows), None)

    def examine(self, *, contents: bool = False) -> list[Problem]:
        """Return the lost and damaged records, found by the chain and the register.

        With `contents` the stored contents are checked too. Raise JournalError if the journal
        cannot be read at all.
        """
        with self._reading, db.journal_errors(self.file):
            return integrity.examine(
                self._read_connection(), self._register.read(), contents=contents
            )

    def _registered(self) -> Mapping[int, RegisterEntry]:
        with db.journal_errors(self.file):
            return self._register.read().entries

    def _records(self, condition: str, *values: object) -> list[Record]:
        with self._query(f"SELECT {_COLUMNS} FROM record WHERE {condition}", *values) as rows:
            return [read_record(row) for row in rows]

    @contextmanager
    def _query(self, sql: str, *values: object) -> Iterator[Iterable[Any]]:
        with self._reading, db.journal_errors(self.file):
            connection = self._read_connection()
            yield connection.execute(sql, values) if connection is not None else ()

    def _read_connection(self) -> sqlite3.Connection | None:
        if self._reader is None and self.file.exists():
            self._reader = db.open_reader(self.file, self.vault)
        elif self._reader is None:
            self._check_moved()
        return self._reader

    def _check_moved(self) -> None:
        """Raise VAULT_MOVED if the history of this vault is stored for another path.

        The user decides first whether it is continued.
        """
        moved = None if self.file.exists() else state_folder.find_moved(self.folder, self._store)
        if moved is not None:
            raise vault_moved(moved)


def vault_moved(moved: state_folder.MovedVault) -> JournalError:
    """Return the VAULT_MOVED error."""
    return JournalError(
        f"This vault was moved from {moved.path}, and its history belongs to that path.",
        code="VAULT_MOVED",
        hint="`obsidian-agent doctor --adopt` continues the history here; "
        "`obsidian-agent doctor --start-anew` starts a new one.",
    )


def run_not_found(run_id: str) -> JournalError:
    """Return the RUN_NOT_FOUND error for an id."""
    return JournalError(
        f"The journal has no run {run_id}.",
        code="RUN_NOT_FOUND",
        hint="`obsidian-agent history` lists the runs.",
    )


def record_at(connection: sqlite3.Connection, seq: int) -> Record:
    """Return the record `seq`. The caller guarantees that it exists."""
    return read_record(
        connection.execute(f"SELECT {_COLUMNS} FROM record WHERE seq = ?", (seq,)).fetchone()
    )


def read_record(row: Sequence[Any]) -> Record:
    """Return a row as a record. Raise `db.RecordUnreadable` for values that are never written."""
    *plain, applied, reversed, undone, has_images, boot = row
    try:
        if plain[2] not in _KINDS:
            raise TypeError

        seq, run_id, kind, time, goal, plan_hash, status, token, source, run, count = plain
        return Record(
            seq=seq,
            run_id=run_id,
            kind=kind,
            time=time,
            goal=goal,
            plan_hash=plan_hash,
            status=status,
            token=token,
            source=source,
            run=run,
            count=count,
            applied=None if applied is None else numbers(applied),
            reversed=numbers(reversed or b""),
            undone=bool(undone),
            has_images=bool(has_images),
            boot=boot,
        )
    except TypeError as error:
        raise db.RecordUnreadable(f"record {plain[0]} cannot be read") from error


def _history_entry(effects: bytes | None, record: Record) -> HistoryEntry:
    is_in_effect = record.applied is None or bool(record.in_effect)
    known = Effects() if effects is None else unpack_effects(effects)
    return HistoryEntry(
        run_id=record.run_id,
        time=record.time,
        goal=record.goal,
        status=record.status,
        effects=known,
        undone=not is_in_effect and (bool(record.reversed) or not known.commands),
        undoable=bool(record.in_effect) and record.has_images,
        partly_undone=bool(record.in_effect and record.reversed),
    )
