"""Reading the journal of one vault: its runs, their plans, what they changed, and what is wrong with it."""

from __future__ import annotations

import json
import sqlite3
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, get_args

from obsidian_agent.errors import JournalError, Problem
from obsidian_agent.journal import db, integrity, state_folder
from obsidian_agent.journal.blobs import ImageSource, StoredPart, damaged
from obsidian_agent.journal.integrity import Register, RegisterEntry
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
from obsidian_agent.journal.state_folder import is_locked
from obsidian_agent.vault.filesystem.store import VaultStore

_KINDS: Final = frozenset(get_args(Kind))
_COLUMNS: Final = "seq, run_id, kind, time, goal, plan_hash, status, token, source, run, count, applied, reversed, undone, bytes > 0 OR count = 0, boot"


class JournalReader:
    """What the journal of a vault knows. Opening reads nothing and makes nothing; a vault without runs has no journal.

    Safe in any thread and process. Every method raises JournalError when the journal cannot be read.
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
        """The journal of a vault below the user's state folder."""
        return cls(state_folder.find(state_dir, store), store)

    def close(self) -> None:
        """Close what is open. Whatever was committed stays."""
        with self._reading:
            if self._reader is not None:
                self._reader.close()
                self._reader = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def locked(self) -> bool:
        """Whether a process is writing just now."""
        return is_locked(self.folder / "lock")

    def history(self, limit: int = 50) -> list[HistoryEntry]:
        """The runs, newest first, with what they did."""
        with self._query(
            f"SELECT effects, {_COLUMNS} FROM record WHERE kind = 'run' ORDER BY seq DESC LIMIT ?",
            limit,
        ) as rows:
            return [_listed(effects, read_record(row)) for effects, *row in rows]

    def run(self, run_id: str) -> Record | None:
        """The record with this id, or None. JournalError for one that was there and is lost."""
        found = next(iter(self._records("run_id = ?", run_id)), None)
        if found is None and any(entry.run_id == run_id for entry in self._registered().values()):
            raise JournalError(
                f"Run {run_id} is missing from the journal, so it cannot be undone.",
                code="JOURNAL_DAMAGED",
            )
        return found

    def record(self, seq: int) -> Record | None:
        """The record with this number, or None."""
        return next(iter(self._records("seq = ?", seq)), None)

    def unfinished(self) -> list[Record]:
        """Records that never reached their end, oldest first: interrupted, or still at work while `locked`."""
        return self._records("status = 'applying' ORDER BY seq")

    def last_undoable(self) -> Record | None:
        """The newest run of which something is left in effect, or None. JournalError when a later record is lost."""
        return self._newest(
            "kind = 'run' AND undone = 0 AND bytes > 0 AND status != 'applying' ORDER BY seq DESC"
        )

    def last_redoable(self) -> Record | None:
        """The newest undo of which something was not redone, with no later run that changed the vault; or None.

        JournalError as for `last_undoable`.
        """
        changed = "applied IS NOT NULL AND applied != zeroblob(length(applied))"
        newest_run = f"SELECT COALESCE(MAX(seq), 0) FROM record WHERE kind = 'run' AND {changed}"
        return self._newest(
            f"kind = 'undo' AND undone = 0 AND status != 'applying' AND seq > ({newest_run}) ORDER BY seq DESC"
        )

    def has_reversals(self) -> bool:
        """Return whether the journal holds a finished undo or redo."""
        with self._query(
            "SELECT 1 FROM record WHERE kind != 'run' AND status != 'applying' LIMIT 1"
        ) as rows:
            return next(iter(rows), None) is not None

    def _newest(self, condition: str) -> Record | None:
        """The first record with something in effect, if it is the last one: a record that is lost since may have been it."""
        found = next((record for record in self._records(condition) if record.in_effect), None)
        with self._query("SELECT seq FROM record NOT INDEXED") as rows:
            there = {seq for (seq,) in rows}
        lost = integrity.lost(there, self._registered())
        if lost and (found is None or lost[-1] > found.seq):
            raise JournalError(
                f"{integrity.named(lost[-1], self._registered())} is missing from the journal, so nobody can say what was done last.",
                code="JOURNAL_DAMAGED",
                hint="Name the run to undo: `obsidian-agent history` lists those that are left.",
            )
        return found

    def plan_of(self, run_id: str) -> StoredPlan:
        """The plan of a run. JournalError when there is no such run or it had none."""
        with self._query("SELECT plan, cuts, kept FROM record WHERE run_id = ?", run_id) as rows:
            row = next(iter(rows), None)
        if row is None:
            self.run(run_id)
        if row is None or (row[0] is None and row[2]):
            raise run_not_found(run_id)
        plan, undo_points, kept = row
        try:
            document: dict[str, Any] = {} if plan is None else json.loads(zlib.decompress(plan))
            return StoredPlan(document, unpack_undo_points(undo_points), bool(kept))
        except (zlib.error, ValueError, TypeError) as error:
            raise damaged() from error

    def step_outcomes(self, run_id: str) -> list[StepOutcome]:
        """Return the outcome of each step of a run, as the vault stands after all undos of it. JournalError as for `plan_of`."""
        with self._query(
            f"SELECT effects, {_COLUMNS} FROM record WHERE run_id = ?", run_id
        ) as rows:
            found = next(iter(rows), None)
        if found is None:
            raise run_not_found(run_id)
        record = read_record(found[1:])
        effects = Effects() if found[0] is None else unpack_effects(found[0])
        plan = self.plan_of(run_id)
        texts = {
            str(step.get("id")): str(step.get("preview") or step.get("tool") or step.get("id"))
            for step in plan.document.get("steps", ())
        }
        return step_outcomes(
            plan.undo_points, record.applied, record.reversed, effects.commands, texts
        )

    def load(self, record: Record) -> tuple[list[StoredAction], ImageSource]:
        """The actions of a record in order, and the contents kept with it and with the records that it takes back.

        JournalError when it is not as it was written.
        """
        images = ImageSource(self._load_part)
        actions: list[StoredAction] = []
        following: Record | None = record
        while following is not None:
            with self._query(
                "SELECT rowid, actions, first FROM part WHERE record = ? ORDER BY number",
                following.seq,
            ) as rows:
                parts = list(rows)
            for part, blob, first in parts:
                stored = StoredPart(blob)
                images.add(part, stored)
                if following is record:
                    actions += stored.actions(first)
            following = self.record(following.source) if following.source is not None else None
        with self._reading, db.journal_errors(self.file):
            connection = self._read_connection()
            if connection is None or not integrity.is_whole(
                connection, record.seq, self._register.read().last
            ):
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
        """What is wrong with the journal: records that are lost or damaged, by the chain and the register. [] when it is whole.

        With `contents` what is kept of the files is read too. JournalError when it cannot be read at all.
        """
        with self._reading, db.journal_errors(self.file):
            return integrity.examine(
                self._read_connection(), self._register.read(), contents=contents
            )

    # --- the connection --------------------------------------------------------------------------------------------------------

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
            if db.is_older(self._reader):
                self._reader.close()
                self._reader = None
                with closing(db.open_writer(self.file, self.vault)) as writer:
                    self._bring_up_to_date(writer)
                self._reader = db.open_reader(self.file, self.vault)
        elif self._reader is None:
            self._check_moved()
        return self._reader

    def _bring_up_to_date(self, connection: sqlite3.Connection) -> None:
        db.migrate(connection, lambda migrated: self._register.write(integrity.entries(migrated)))
        db.checkpoint(connection)

    def _check_moved(self) -> None:
        """A vault that was moved, its history kept for the old place: nothing is begun here before the person has said what shall be."""
        moved = None if self.file.exists() else state_folder.find_moved(self.folder, self._store)
        if moved is not None:
            raise JournalError(
                f"This vault was at {moved.path}, and its history is kept for that place.",
                code="VAULT_MOVED",
                hint="`obsidian-agent doctor --adopt` takes it along; `obsidian-agent doctor --start-anew` leaves it there.",
            )


def run_not_found(run_id: str) -> JournalError:
    """RUN_NOT_FOUND for an id."""
    return JournalError(
        f"The journal has no run {run_id}.",
        code="RUN_NOT_FOUND",
        hint="`obsidian-agent history` lists the runs.",
    )


def record_at(connection: sqlite3.Connection, seq: int) -> Record:
    """The record with a number, which is there."""
    return read_record(
        connection.execute(f"SELECT {_COLUMNS} FROM record WHERE seq = ?", (seq,)).fetchone()
    )


def read_record(row: Sequence[Any]) -> Record:
    """A row as a value. `db.RecordUnreadable` for what was never written to it."""
    *plain, applied, taken_back, undone, has_images, boot = row
    try:
        if plain[2] not in _KINDS:
            raise TypeError
        done = None if applied is None else numbers(applied)
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
            applied=done,
            reversed=numbers(taken_back or b""),
            undone=bool(undone),
            has_images=bool(has_images),
            boot=boot,
        )
    except TypeError as error:
        raise db.RecordUnreadable(f"record {plain[0]} cannot be read") from error


def _listed(effects: bytes | None, record: Record) -> HistoryEntry:
    left = record.applied is None or bool(record.in_effect)
    known = Effects() if effects is None else unpack_effects(effects)
    return HistoryEntry(
        run_id=record.run_id,
        time=record.time,
        goal=record.goal,
        status=record.status,
        effects=known,
        undone=not left and (bool(record.reversed) or not known.commands),
        undoable=bool(record.in_effect) and record.has_images,
        partly_undone=bool(record.in_effect and record.reversed),
    )
