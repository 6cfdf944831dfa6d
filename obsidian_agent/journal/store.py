"""The journal of one vault: every run with all it needs to be undone, kept outside the vault, durable before the vault is touched."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sqlite3
import threading
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, get_args

from obsidian_agent.errors import JournalError
from obsidian_agent.journal import schema
from obsidian_agent.journal.cuts import Cut, without_cuts
from obsidian_agent.journal.effects import Effects, pack_effects, unpack_effects
from obsidian_agent.journal.images import ImageSource, StoredPart, damaged
from obsidian_agent.journal.lock import is_locked, vault_lock
from obsidian_agent.journal.records import HistoryEntry, Kind, NewRecord, Record, Status, StoredAction, bits, numbers
from obsidian_agent.journal.retention import prune
from obsidian_agent.journal.writer import RecordWriter
from obsidian_agent.vault import durable
from obsidian_agent.vault.paths import clean_component
from obsidian_agent.vault.store import VaultStore

_KINDS: Final[dict[str, Kind]] = {kind: kind for kind in get_args(Kind)}

FILE: Final = "journal.db"
CHECKPOINT_BYTES: Final = 4 << 20
"""Size of the log from which it is brought into the database after a run."""

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
        self._vault_fd = store.root_fd
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self._reading = threading.RLock()
        self._fresh = False

    @classmethod
    def open(cls, state_dir: Path, store: VaultStore) -> Self:
        """The journal of a vault below the user's state folder, in a folder named after the vault's real path."""
        return cls(state_dir / "vaults" / vault_key(store.real_path), store)

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
            with schema.journal_errors(self.file):
                self._check_place()
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
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

    @property
    def locked(self) -> bool:
        """Whether a process is writing just now."""
        return is_locked(self.folder / "lock")

    @contextmanager
    def begin(self, new: NewRecord) -> Iterator[RecordWriter]:
        """Start a record; add its actions, then commit, all within the block. Left without a commit, nothing was recorded."""
        with schema.journal_errors(self.file):
            connection = self._write_connection()
            connection.execute("BEGIN IMMEDIATE")
        try:
            with schema.journal_errors(self.file):
                if new.kind == "run":
                    prune(connection, time.time())
                writer = RecordWriter(connection, self.file, new, self._flush)
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
        This needs no flush: a mark that a power loss takes away is found again by recovery.
        """
        with schema.journal_errors(self.file):
            connection = self._write_connection()
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.execute(
                    "UPDATE record SET status = ?, applied = ?, effects = ? WHERE seq = ?",
                    (status, bits(applied, record.count), None if effects is None else pack_effects(effects), record.seq),
                )
                if record.kind != "run" and origins is not None:
                    self._mark_run(connection, record, frozenset(origins))
                connection.execute("COMMIT")
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            if _size(self._log) > CHECKPOINT_BYTES:
                schema.checkpoint(connection)

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
        with schema.journal_errors(self.file):
            flush_all_of(self.folder)

    def set_aside(self) -> Path:
        """Move a damaged journal out of the way; answers where its database is now. A new one starts with the next run."""
        self.close()
        aside = self.folder / f"damaged-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        with schema.journal_errors(self.file):
            aside.mkdir(mode=0o700)
            for suffix in ("", "-wal", "-shm"):
                with suppress(FileNotFoundError):
                    (self.folder / (FILE + suffix)).rename(aside / (FILE + suffix))
        return aside / FILE

    # --- reading ---------------------------------------------------------------------------------------------------------------

    def history(self, limit: int = 50) -> list[HistoryEntry]:
        """The runs, newest first, with what they did."""
        with self._query(f"SELECT effects, {_COLUMNS} FROM record WHERE kind = 'run' ORDER BY seq DESC LIMIT ?", limit) as rows:
            return [_listed(effects, _record(record)) for effects, *record in rows]

    def run(self, run_id: str) -> Record | None:
        """The record with this id, or None."""
        return next(iter(self._records("run_id = ?", run_id)), None)

    def record(self, seq: int) -> Record | None:
        """The record with this number, or None."""
        return next(iter(self._records("seq = ?", seq)), None)

    def last_undoable(self) -> Record | None:
        """The newest run of which something is left in effect, or None."""
        found = self._records("kind = 'run' AND undone = 0 AND bytes > 0 AND status != 'applying' ORDER BY seq DESC")
        return next((record for record in found if record.in_effect), None)

    def last_redoable(self) -> Record | None:
        """The newest undo of which something was not redone, with no later run that changed the vault; or None."""
        changed = "applied IS NOT NULL AND applied != zeroblob(length(applied))"
        newest_run = f"SELECT COALESCE(MAX(seq), 0) FROM record WHERE kind = 'run' AND {changed}"
        wanted = f"kind = 'undo' AND undone = 0 AND status != 'applying' AND seq > ({newest_run}) ORDER BY seq DESC"
        return next((record for record in self._records(wanted) if record.in_effect), None)

    def unfinished(self) -> list[Record]:
        """Records that never reached their end, oldest first: interrupted, or still at work while `locked`."""
        return self._records("status = 'applying' ORDER BY seq")

    def plan_of(self, run_id: str) -> dict[str, Any]:
        """The plan of a run as its JSON document. JournalError when there is no such run or it had none."""
        return self._plan_and_cuts(run_id)[0]

    def cuts_of(self, run_id: str) -> list[Cut]:
        """Where a run can be cut in two, in the order of its steps. JournalError as for `plan_of`."""
        return self._plan_and_cuts(run_id)[1]

    def _plan_and_cuts(self, run_id: str) -> tuple[dict[str, Any], list[Cut]]:
        with self._query("SELECT plan FROM record WHERE run_id = ?", run_id) as rows:
            row = next(iter(rows), None)
        if row is None or row[0] is None:
            raise no_run(run_id)
        try:
            return without_cuts(json.loads(zlib.decompress(row[0])))
        except (zlib.error, ValueError, TypeError) as error:
            raise damaged() from error

    def actions_of(self, record: Record) -> list[StoredAction]:
        """The actions of a record, in order. JournalError when they are damaged."""
        return [action for _, blob, first in self._parts(record.seq) for action in StoredPart(blob).actions(first)]

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
        return actions, images

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
        with self._reading, schema.journal_errors(self.file):
            connection = self._read_connection()
            yield connection.execute(sql, values) if connection is not None else ()

    def _read_connection(self) -> sqlite3.Connection | None:
        if self._reader is None and self.file.exists():
            self._reader = schema.open_reader(self.file, self.vault)
        return self._reader

    def _write_connection(self) -> sqlite3.Connection:
        if self._writer is None:
            if not self.file.exists():
                schema.create(self.file, self.vault)
            self._writer = schema.open_writer(self.file, self.vault)
            # Nothing of a database or log made just now is on the disk for sure, not even their names.
            self._fresh = not _size(self._log)
        return self._writer

    def _flush(self) -> None:
        """Make the last commit survive a power loss."""
        fresh, self._fresh = self._fresh, False
        if fresh:
            flush_all_of(self.folder)
            return
        _fsync(self._log, os.O_RDWR)


def no_run(run_id: str) -> JournalError:
    """RUN_NOT_FOUND for an id."""
    return JournalError(f"The journal has no run {run_id}.", code="RUN_NOT_FOUND", hint="`obsidian-agent history` lists the runs.")


def vault_key(real_path: str) -> str:
    """The name of a vault's folder in the state folder: readable, and unlike that of every other path."""
    digest = hashlib.sha256(os.fsencode(real_path)).hexdigest()[:12]
    return f"{digest}-{clean_component(os.path.basename(real_path))[:40]}"


def flush_all_of(folder: Path) -> None:
    """Flush the files of a folder, its names, and the names of the folders above it."""
    if durable.FOLDERS_OPEN:
        fd = os.open(folder, os.O_RDONLY)
        try:
            if durable.flush_file_system(fd):
                return
        finally:
            os.close(fd)
    for entry in folder.iterdir():
        if entry.is_file():
            _fsync(entry, os.O_RDWR)
    for place in (folder, *folder.parents) if durable.FOLDERS_OPEN else ():
        with suppress(OSError):
            _fsync(place, os.O_RDONLY)


def _fsync(path: Path, flags: int) -> None:
    fd = os.open(path, flags)
    try:
        os.fsync(fd)
        durable.flush_disk(fd)
    finally:
        os.close(fd)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def _listed(effects: bytes | None, record: Record) -> HistoryEntry:
    undoable = bool(record.in_effect) and record.has_images
    known = Effects() if effects is None else unpack_effects(effects)
    return HistoryEntry(record.run_id, record.time, record.goal, record.status, known, record.undone, undoable)


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
        raise schema.RecordUnreadable(f"record {seq} cannot be read") from error
