"""The journal of one vault: every run with all it needs to be undone, kept outside the vault, durable before the vault is touched."""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import threading
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, get_args

from obsidian_agent.errors import JournalError, Problem
from obsidian_agent.journal import db, integrity, state_folder
from obsidian_agent.journal.blobs import ImageSource, StoredPart, damaged
from obsidian_agent.journal.effects import Effects, pack_effects, unpack_effects
from obsidian_agent.journal.integrity import FILE as REGISTER_FILE
from obsidian_agent.journal.integrity import Entry, Register
from obsidian_agent.journal.lock import is_locked, vault_lock
from obsidian_agent.journal.records import HistoryEntry, Kind, NewRecord, Record, Status, StoredAction, bits, numbers
from obsidian_agent.journal.retention import prune
from obsidian_agent.journal.state_folder import JOURNAL_FILE as FILE
from obsidian_agent.journal.state_folder import vault_key as vault_key
from obsidian_agent.journal.step_boundaries import Cut, unpack_cuts
from obsidian_agent.journal.writer import RecordWriter
from obsidian_agent.state_files import make_private
from obsidian_agent.vault.filesystem import system_calls
from obsidian_agent.vault.filesystem.store import VaultStore

_KINDS: Final[dict[str, Kind]] = {kind: kind for kind in get_args(Kind)}

_COLUMNS: Final = (
    "seq, run_id, kind, time, goal, plan_hash, status, token, source, run, count, applied, reversed, undone, bytes > 0 OR count = 0, boot"
)


class Journal:
    """The journal of one vault. Opening reads nothing and makes nothing; a vault without runs has none.

    Reading is safe from any thread and process. Writing is done under `lock()`, by one thread. Every method raises JournalError when the
    journal cannot be read or written; then nothing in the vault was touched.
    """

    def __init__(self, folder: Path, store: VaultStore) -> None:
        self.folder = folder
        self.file = folder / FILE
        self.vault = store.real_path
        self._store = store
        self._vault_fd = store.root_fd
        self._register = Register(folder)
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self._reading = threading.RLock()
        self._fresh = self._new_log = False

    @classmethod
    def open(cls, state_dir: Path, store: VaultStore) -> Self:
        """The journal of a vault below the user's state folder."""
        return cls(state_folder.find(state_dir, store), store)

    def close(self) -> None:
        """Close the connections. Whatever was committed stays."""
        with self._reading:
            if self._writer is not None:
                # The reader goes last, so that closing neither checkpoints nor flushes.
                with suppress(JournalError, sqlite3.Error):
                    self._read_connection()
                self._writer.close()
                self._writer = None
            if self._reader is not None:
                self._reader.close()
                self._reader = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # --- writing ---------------------------------------------------------------------------------------------------------------

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Be the one writer of this vault. JournalError: VAULT_BUSY naming the process that is, VAULT_MOVED."""
        with ExitStack() as held:
            with db.journal_errors(self.file):
                self._check_place()
                self._check_moved()
                make_private(self.folder)
                held.enter_context(vault_lock(self.folder / "lock", self._vault_fd))
            yield

    def _check_place(self) -> None:
        """The vault's folder must still be where it was opened: its journal is found by that path."""
        if self._vault_fd < 0:
            return
        try:
            moved = not os.path.samestat(os.stat(self.vault), os.fstat(self._vault_fd))
        except FileNotFoundError:
            moved = True
        if moved:
            raise JournalError(
                f"The vault is no longer at {self.vault}: its folder was moved or replaced.",
                code="VAULT_MOVED",
                hint="Open it again where it is now.",
            )

    def _check_moved(self) -> None:
        """A vault that was moved, its history kept for the old place: nothing is begun here before the person has said what shall be."""
        moved = None if self.file.exists() else state_folder.moved(self.folder, self._store)
        if moved is not None:
            raise JournalError(
                f"This vault was at {moved.path}, and its history is kept for that place.",
                code="VAULT_MOVED",
                hint="`obsidian-agent doctor --adopt` takes it along; `obsidian-agent doctor --start-anew` leaves it there.",
            )

    @property
    def locked(self) -> bool:
        """Whether a process is writing just now."""
        return is_locked(self.folder / "lock")

    @contextmanager
    def begin(self, new: NewRecord) -> Iterator[RecordWriter]:
        """Start a record; add its actions, then commit, all within the block. Left without a commit, nothing was recorded."""
        with db.journal_errors(self.file):
            connection = self._write_connection()
            connection.execute("BEGIN IMMEDIATE")
        try:
            with db.journal_errors(self.file):
                if new.kind == "run":
                    prune(connection, time.time())
                writer = RecordWriter(connection, self.file, new, self._last(connection), self._flush)
            with writer:
                yield writer
        finally:
            if connection.in_transaction:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")

    def finish(
        self,
        record: Record,
        status: Status,
        applied: Iterable[int],
        *,
        effects: Effects | None = None,
        origins: Iterable[int] | None = None,
    ) -> None:
        """Mark a record as ended. `applied` are the numbers of its actions that are in effect, `effects` what a run did.

        For an undo or redo `origins` are the run's actions that it took back or brought back, and the run's own marks change with it.
        A mark that a power loss takes away is found again by recovery. The log is brought into the database where nobody is reading it.
        """
        with db.journal_errors(self.file):
            connection = self._write_connection()
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.execute(
                    "UPDATE record SET status = ?, applied = ?, effects = ? WHERE seq = ?",
                    (status, bits(applied, record.count), None if effects is None else pack_effects(effects), record.seq),
                )
                if record.kind != "run" and origins is not None:
                    self._mark_run(connection, record, frozenset(origins))
                integrity.seal(connection, (record.seq, record.run, record.source))
                connection.execute("COMMIT")
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            # It ended, whatever becomes of this: the next run tries again.
            with suppress(sqlite3.Error, OSError):
                if db.checkpoint(connection):
                    self._note(connection)

    def _mark_run(self, connection: sqlite3.Connection, record: Record, origins: frozenset[int]) -> None:
        row = connection.execute("SELECT reversed, applied, count FROM record WHERE seq = ?", (record.run,)).fetchone()
        if row is None:
            return
        before, applied = numbers(row[0] or b""), numbers(row[1] or b"")
        after = before | origins if record.kind == "undo" else before - origins
        marks = (bits(after, row[2]), applied <= after, record.run)
        connection.execute("UPDATE record SET reversed = ?, undone = ? WHERE seq = ?", marks)
        source = self.record(record.source) if record.kind == "redo" and record.source is not None else None
        if source is not None:
            left = any(one.origin in after for one in self.actions_of(source) if one.number in source.in_effect)
            connection.execute("UPDATE record SET undone = ? WHERE seq = ?", (not left, source.seq))

    def make_durable(self) -> None:
        """Flush whatever was committed, here or by a process that ended before it came to that."""
        with db.journal_errors(self.file):
            flush_all_of(self.folder)

    def set_aside(self) -> Path:
        """Move a damaged journal out of the way; answers where its database is now. A new one starts with the next run."""
        self.close()
        aside = self.folder / f"damaged-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        with db.journal_errors(self.file):
            aside.mkdir(mode=0o700)
            for name in (FILE, f"{FILE}-wal", f"{FILE}-shm", REGISTER_FILE):
                with suppress(FileNotFoundError):
                    (self.folder / name).rename(aside / name)
        return aside / FILE

    # --- reading ---------------------------------------------------------------------------------------------------------------

    def history(self, limit: int = 50) -> list[HistoryEntry]:
        """The runs, newest first, with what they did."""
        with self._query(f"SELECT effects, {_COLUMNS} FROM record WHERE kind = 'run' ORDER BY seq DESC LIMIT ?", limit) as rows:
            return [_listed(effects, _record(record)) for effects, *record in rows]

    def run(self, run_id: str) -> Record | None:
        """The record with this id, or None. JournalError for one that was there and is lost."""
        found = next(iter(self._records("run_id = ?", run_id)), None)
        if found is None and any(entry.run_id == run_id for entry in self._listed().values()):
            raise JournalError(f"Run {run_id} is missing from the journal, so it cannot be undone.", code="JOURNAL_DAMAGED")
        return found

    def record(self, seq: int) -> Record | None:
        """The record with this number, or None."""
        return next(iter(self._records("seq = ?", seq)), None)

    def last_undoable(self) -> Record | None:
        """The newest run of which something is left in effect, or None. JournalError when a later record is lost."""
        found = self._records("kind = 'run' AND undone = 0 AND bytes > 0 AND status != 'applying' ORDER BY seq DESC")
        return self._newest(next((record for record in found if record.in_effect), None))

    def last_redoable(self) -> Record | None:
        """The newest undo of which something was not redone, with no later run that changed the vault; or None.

        JournalError as for `last_undoable`.
        """
        changed = "applied IS NOT NULL AND applied != zeroblob(length(applied))"
        newest_run = f"SELECT COALESCE(MAX(seq), 0) FROM record WHERE kind = 'run' AND {changed}"
        wanted = f"kind = 'undo' AND undone = 0 AND status != 'applying' AND seq > ({newest_run}) ORDER BY seq DESC"
        return self._newest(next((record for record in self._records(wanted) if record.in_effect), None))

    def _newest(self, found: Record | None) -> Record | None:
        """What was found as the last one, if it is: a record that is lost since may have been it."""
        with self._query("SELECT seq FROM record NOT INDEXED") as rows:
            there = {seq for (seq,) in rows}
        lost = integrity.lost(there, self._listed())
        if lost and (found is None or lost[-1] > found.seq):
            raise JournalError(
                f"{integrity.named(lost[-1], self._listed())} is missing from the journal, so nobody can say what was done last.",
                code="JOURNAL_DAMAGED",
                hint="Name the run to undo: `obsidian-agent history` lists those that are left.",
            )
        return found

    def examine(self, *, contents: bool = False) -> list[Problem]:
        """What is wrong with the journal: records that are lost or damaged, by the chain and the register. [] when it is whole.

        With `contents` what is kept of the files is read too. JournalError when it cannot be read at all.
        """
        with self._reading, db.journal_errors(self.file):
            return integrity.examine(self._read_connection(), self._register.read(), contents=contents)

    def _listed(self) -> Mapping[int, Entry]:
        with db.journal_errors(self.file):
            return self._register.read().entries

    def unfinished(self) -> list[Record]:
        """Records that never reached their end, oldest first: interrupted, or still at work while `locked`."""
        return self._records("status = 'applying' ORDER BY seq")

    def plan_of(self, run_id: str) -> dict[str, Any]:
        """The plan of a run as its JSON document. JournalError when there is no such run or it had none."""
        return self._plan_and_cuts(run_id)[0]

    def cuts_of(self, run_id: str) -> list[Cut]:
        """Where a run can be cut in two, in the order of its steps. JournalError as for `plan_of`."""
        return self._plan_and_cuts(run_id)[1]

    def keeps_texts(self, run_id: str) -> bool:
        """Whether the plan of a run is still as it was run; after a while only its outline is kept."""
        with self._query("SELECT kept FROM record WHERE run_id = ?", run_id) as rows:
            return any(kept for (kept,) in rows)

    def _plan_and_cuts(self, run_id: str) -> tuple[dict[str, Any], list[Cut]]:
        with self._query("SELECT plan, cuts FROM record WHERE run_id = ?", run_id) as rows:
            row = next(iter(rows), None)
        if row is None or row[0] is None:
            raise no_run(run_id)
        try:
            plan: dict[str, Any] = json.loads(zlib.decompress(row[0]))
            return plan, unpack_cuts(row[1])
        except (zlib.error, ValueError, TypeError) as error:
            raise damaged() from error

    def actions_of(self, record: Record) -> list[StoredAction]:
        """The actions of a record, in order. JournalError when they are damaged."""
        actions = [action for _, blob, first in self._parts(record.seq) for action in StoredPart(blob).actions(first)]
        return self._sound(record, actions)

    def _sound(self, record: Record, actions: list[StoredAction]) -> list[StoredAction]:
        """The actions, if they are all there and the record is as it was written."""
        with self._reading, db.journal_errors(self.file):
            connection = self._read_connection()
            if connection is None or not integrity.is_whole(connection, record.seq, self._register.read().last):
                raise damaged()
        if [action.number for action in actions] != list(range(record.count)):
            raise damaged()
        return actions

    def load(self, record: Record) -> tuple[list[StoredAction], ImageSource]:
        """The actions of a record, and the contents kept with it and with the records that it takes back."""
        images = ImageSource(self._load_part)
        actions: list[StoredAction] = []
        following: Record | None = record
        while following is not None:
            for part, blob, first in self._parts(following.seq):
                stored = StoredPart(blob)
                images.add(part, stored)
                if following is record:
                    actions += stored.actions(first)
            following = self.record(following.source) if following.source is not None else None
        return self._sound(record, actions), images

    # --- connections -----------------------------------------------------------------------------------------------------------

    @property
    def _log(self) -> Path:
        return self.folder / f"{FILE}-wal"

    def _parts(self, seq: int) -> list[tuple[int, bytes, int]]:
        with self._query("SELECT rowid, actions, first FROM part WHERE record = ? ORDER BY number", seq) as rows:
            return list(rows)

    def _load_part(self, part: int) -> tuple[bytes, bytes, int] | None:
        with self._query("SELECT actions, images, checksum FROM part WHERE rowid = ?", part) as rows:
            row: tuple[bytes, bytes | None, int] | None = next(iter(rows), None)
        return None if row is None or row[1] is None else (row[0], row[1], row[2])

    def _records(self, condition: str, *values: object) -> list[Record]:
        with self._query(f"SELECT {_COLUMNS} FROM record WHERE {condition}", *values) as rows:
            return [_record(row) for row in rows]

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
        db.migrate(connection, lambda migrated: self._register.write(_entries(migrated, 0)))
        db.checkpoint(connection)

    def _write_connection(self) -> sqlite3.Connection:
        if self._writer is None:
            if not self.file.exists():
                self._register.write(self._register.read().entries.values())
                db.create(self.file, self.vault)
            # Nothing of a database or log made just now is on the disk for sure, not even their names.
            self._new_log = not _size(self._log)
            self._fresh = not (self._log.exists() and self._register.read().entries)
            self._writer = db.open_writer(self.file, self.vault)
            if db.is_older(self._writer):
                self._bring_up_to_date(self._writer)
            self._chain_late_records(self._writer)
        return self._writer

    def _chain_late_records(self, connection: sqlite3.Connection) -> None:
        """What an older version of the program, open all the while, wrote since the journal was brought up to date."""
        after = self._register.read().last
        if connection.execute("SELECT 1 FROM record WHERE hash IS NULL AND seq > ? LIMIT 1", (after,)).fetchone() is not None:
            connection.execute("BEGIN IMMEDIATE")
            integrity.close_all(connection, after)
            connection.execute("COMMIT")

    def _last(self, connection: sqlite3.Connection) -> tuple[int, bytes]:
        """Number and hash of the last record there ever was, in the database or only in the register."""
        there = connection.execute("SELECT seq, hash FROM record ORDER BY seq DESC LIMIT 1").fetchone() or (0, integrity.START)
        listed = self._register.read()
        return (listed.last, listed.entries[listed.last].hash) if listed.last and listed.last >= there[0] else there

    def _flush(self) -> None:
        """Make the last commit survive a power loss, and note in the register that it did. OSError when that cannot be."""
        assert self._writer is not None
        if self._fresh:
            flush_all_of(self.folder)
        else:
            _fsync(self._log, os.O_RDWR)
            if self._new_log and system_calls.FOLDERS_OPEN:
                _fsync(self.folder, os.O_RDONLY)
        self._fresh = self._new_log = False
        self._note(self._writer)
        state_folder.label(self.folder, self._store)

    def _note(self, connection: sqlite3.Connection) -> None:
        """Enter what is durable into the register."""
        listed = self._register.read()
        if not listed.whole:
            entries = {entry.seq: entry for entry in _entries(connection, 0)}
            self._register.write((entries | listed.entries).values())
        elif entries_since := _entries(connection, listed.last):
            self._register.add(entries_since)


def _entries(connection: sqlite3.Connection, after: int) -> list[Entry]:
    """The records behind a number as the register lists them."""
    rows = connection.execute("SELECT seq, run_id, kind, hash FROM record WHERE seq > ? AND typeof(hash) = 'blob' ORDER BY seq", (after,))
    return [Entry(*row) for row in rows]


def no_run(run_id: str) -> JournalError:
    """RUN_NOT_FOUND for an id."""
    return JournalError(f"The journal has no run {run_id}.", code="RUN_NOT_FOUND", hint="`obsidian-agent history` lists the runs.")


def flush_all_of(folder: Path) -> None:
    """Flush the files of a folder, its names, and the names of the folders above it."""
    if system_calls.FOLDERS_OPEN:
        fd = os.open(folder, os.O_RDONLY)
        try:
            if system_calls.flush_file_system(fd):
                return
        finally:
            os.close(fd)
    for entry in folder.iterdir():
        if entry.is_file():
            _fsync(entry, os.O_RDWR)
    for place in (folder, *folder.parents) if system_calls.FOLDERS_OPEN else ():
        with suppress(OSError):
            _fsync(place, os.O_RDONLY)


def _fsync(path: Path, flags: int) -> None:
    fd = os.open(path, flags)
    try:
        os.fsync(fd)
        system_calls.flush_disk(fd)
    finally:
        os.close(fd)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def _listed(effects: bytes | None, record: Record) -> HistoryEntry:
    left = record.applied is None or bool(record.in_effect)
    known = Effects() if effects is None else unpack_effects(effects)
    return HistoryEntry(
        record.run_id, record.time, record.goal, record.status, known, not left, bool(record.in_effect) and record.has_images
    )


def _record(row: Sequence[Any]) -> Record:
    seq, run_id, kind, moment, goal, plan_hash, status, token, source, run, count, *marks = row
    applied, taken_back, undone, has_images, boot = marks
    try:
        return Record(
            seq,
            run_id,
            _KINDS[kind],
            moment,
            goal,
            plan_hash,
            status,
            token,
            source,
            run,
            count,
            None if applied is None else numbers(applied),
            numbers(taken_back or b""),
            bool(undone),
            bool(has_images),
            boot,
        )
    except (KeyError, TypeError) as error:
        raise db.RecordUnreadable(f"record {seq} cannot be read") from error
