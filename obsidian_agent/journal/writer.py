"""The write side of a vault's journal, which is stored outside the vault.

A record is written part by part, and becomes durable all at once, before the vault is touched.
Contents (of files, and the texts in the plan of a run) are stored for 90 days or up to 2 GB, and
always for the last 20 runs. Goals and paths are never deleted.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from obsidian_agent.errors import JournalError
from obsidian_agent.journal import db, integrity, state_folder
from obsidian_agent.journal.blobs import Part, PartBuilder
from obsidian_agent.journal.lock import vault_lock
from obsidian_agent.journal.reader import JournalReader, record_at
from obsidian_agent.journal.records import (
    Effects,
    NewRecord,
    Record,
    Status,
    UndoPoint,
    bits,
    numbers,
    pack_effects,
    pack_undo_points,
)
from obsidian_agent.state_files import make_private
from obsidian_agent.vault.filesystem import system_calls
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.filesystem.system_calls import boot_id
from obsidian_agent.vault.transaction.actions import Action

_WORKERS: Final = 2
_WAITING_BYTES: Final = 16 << 20
"""Limit of the contents that wait to be written, to bound memory."""
KEEP_RUNS: Final = 20
KEEP_SECONDS: Final = 90 * 86_400.0
KEEP_BYTES: Final = 2 << 30
AT_MOST: Final = 50
"""Records whose contents are deleted at once, so that no run waits long for the cleanup."""
_OUTLINE_OF_PLAN: Final = ("version", "goal", "riskLevel", "leftOut")
_OUTLINE_OF_STEP: Final = ("id", "tool", "dependsOn")


class Journal(JournalReader):
    """The journal of a vault, for reading and writing.

    Write under `lock()`, from one thread. Every method raises JournalError if the journal cannot be
    read or written; nothing in the vault was touched then.
    """

    def __init__(self, folder: Path, store: VaultStore) -> None:
        super().__init__(folder, store)
        self._log = folder / f"{self.file.name}-wal"
        self._writer: sqlite3.Connection | None = None
        self._fresh = self._new_log = False

    def close(self) -> None:
        """Close the connections."""
        with self._reading:
            if self._writer is not None:
                # The reader goes last, so that closing neither checkpoints nor flushes.
                with suppress(JournalError, sqlite3.Error):
                    self._read_connection()
                self._writer.close()
                self._writer = None
            super().close()

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the writer lock of this vault.

        Raise JournalError: VAULT_BUSY, which names the process that holds it, or VAULT_MOVED.
        """
        with ExitStack() as locks:
            with db.journal_errors(self.file):
                self._check_location()
                self._check_moved()
                make_private(self.folder)
                locks.enter_context(vault_lock(self.folder / "lock", self._store.root_fd))
            yield

    def _check_location(self) -> None:
        """Raise VAULT_MOVED if the vault's folder is no longer at the path that was opened."""
        if self._store.root_fd < 0:
            return
        try:
            moved = not os.path.samestat(os.stat(self.vault), os.fstat(self._store.root_fd))
        except FileNotFoundError:
            moved = True
        if moved:
            raise JournalError(
                f"The vault is no longer at {self.vault}: its folder was moved or replaced.",
                code="VAULT_MOVED",
                hint="Open it again where it is now.",
            )

    @contextmanager
    def begin(self, new: NewRecord) -> Iterator[RecordWriter]:
        """Start a record. Add its actions and commit within the block.

        A block that ends without a commit records nothing.
        """
        with db.journal_errors(self.file):
            connection = self._write_connection()
            connection.execute("BEGIN IMMEDIATE")
        try:
            with db.journal_errors(self.file):
                if new.kind == "run":
                    prune(connection, time.time())
                last = self._last(connection)
            with ThreadPoolExecutor(_WORKERS, thread_name_prefix="journal") as pool:
                yield RecordWriter(connection, self.file, new, last, flush=self._flush, pool=pool)
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
        """Mark a record as ended, and checkpoint the log if no other process is reading it.

        `applied` are the numbers of its actions that are in effect, `effects` those of a run. For
        an undo or redo, `origins` are the run's actions that it reversed or restored; the marks of
        the run change too. Recovery restores marks that a power loss removed.
        """
        with db.journal_errors(self.file):
            connection = self._write_connection()
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.execute(
                    "UPDATE record SET status = ?, applied = ?, effects = ? WHERE seq = ?",
                    (
                        status,
                        bits(applied, record.count),
                        None if effects is None else pack_effects(effects),
                        record.seq,
                    ),
                )
                if record.kind != "run" and origins is not None:
                    self._mark_run(connection, record, frozenset(origins))
                integrity.seal(connection, (record.seq, record.run, record.source))
                connection.execute("COMMIT")
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            # The record has ended even if this fails: the next run tries again.
            with suppress(sqlite3.Error, OSError):
                if db.checkpoint(connection):
                    self._update_register(connection)

    def _mark_run(
        self, connection: sqlite3.Connection, record: Record, origins: frozenset[int]
    ) -> None:
        row = connection.execute(
            "SELECT reversed, applied, count FROM record WHERE seq = ?", (record.run,)
        ).fetchone()
        if row is None:
            return
        before, applied = numbers(row[0] or b""), numbers(row[1] or b"")
        after = before | origins if record.kind == "undo" else before - origins
        marks = (bits(after, row[2]), applied <= after, record.run)
        connection.execute("UPDATE record SET reversed = ?, undone = ? WHERE seq = ?", marks)
        if record.kind != "redo" or record.source is None:
            return
        source = self.record(record.source)
        if source is None:
            return
        actions, _ = self.load(source)
        is_in_effect = any(
            stored.origin in after for stored in actions if stored.number in source.in_effect
        )
        connection.execute(
            "UPDATE record SET undone = ? WHERE seq = ?", (not is_in_effect, source.seq)
        )

    def make_durable(self) -> None:
        """Flush all commits, also those of a process that ended before it could flush them."""
        with db.journal_errors(self.file):
            flush_all_of(self.folder)

    def _write_connection(self) -> sqlite3.Connection:
        if self._writer is None:
            if not self.file.exists():
                self._register.write(self._register.read().entries.values())
                db.create(self.file, self.vault)
            # A database or log that was just created may not be on disk, not even its name.
            self._new_log = not (self._log.exists() and self._log.stat().st_size)
            self._fresh = not (self._log.exists() and self._register.read().entries)
            self._writer = db.open_writer(self.file, self.vault)
        return self._writer

    def _last(self, connection: sqlite3.Connection) -> tuple[int, bytes]:
        """Return number and hash of the last record, which may be in the register only."""
        stored: tuple[int, bytes] = connection.execute(
            "SELECT seq, hash FROM record ORDER BY seq DESC LIMIT 1"
        ).fetchone() or (0, integrity.START)
        register = self._register.read()
        if register.last and register.last >= stored[0]:
            return register.last, register.entries[register.last].hash
        return stored

    def _flush(self) -> None:
        """Make the last commit durable and add it to the register. Raise OSError if that fails."""
        assert self._writer is not None
        if self._fresh:
            flush_all_of(self.folder)
        else:
            _flush_one(self._log, os.O_RDWR)
            if self._new_log and system_calls.CAN_OPEN_FOLDERS:
                _flush_one(self.folder, os.O_RDONLY)
        self._fresh = self._new_log = False
        self._update_register(self._writer)
        state_folder.label(self.folder, self._store)

    def _update_register(self, connection: sqlite3.Connection) -> None:
        """Add the durable records to the register."""
        register = self._register.read()
        if not register.is_complete:
            entries = {entry.seq: entry for entry in integrity.entries(connection)}
            self._register.write((entries | register.entries).values())
        elif new_entries := integrity.entries(connection, register.last):
            self._register.add(new_entries)


class RecordWriter:
    """A writer of one record within an open transaction; `commit` ends both.

    Contents are compressed in other threads.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        file: Path,
        new: NewRecord,
        last: tuple[int, bytes],
        *,
        flush: Callable[[], None],
        pool: ThreadPoolExecutor,
    ) -> None:
        """Start a record after the one with the number and hash `last`."""
        self._connection = connection
        self._file = file
        self._flush = flush
        self._new = new
        self._seq, self._previous = last[0] + 1, last[1]
        self._count = self._packed = self._bytes = self._parts = 0
        self._builder = PartBuilder()
        self._pool = pool
        self._waiting: deque[tuple[int, int, Future[Part]]] = deque()

    def add(
        self, action: Action, images: Iterable[tuple[str, bytes]] = (), origin: int | None = None
    ) -> int:
        """Add an action with the contents that it refers to. Return its number."""
        number = self._count
        self._builder.add(action, number if origin is None else origin, images)
        self._count += 1
        if self._builder.is_full:
            self._waiting.append(
                (self._packed, self._builder.size, self._pool.submit(self._builder.pack))
            )
            self._packed, self._builder = self._count, PartBuilder()
            while sum(size for _, size, _ in self._waiting) > _WAITING_BYTES:
                self._write_oldest()
        return number

    def commit(self, *, durable: bool = True, undo_points: Sequence[UndoPoint] = ()) -> Record:
        """Commit the record and make it durable.

        Raise JournalError if that fails; the record does not exist then. Without `durable` a power
        loss may remove it, which is acceptable for a run that changes nothing.
        """
        while self._waiting:
            self._write_oldest()
        if not self._builder.is_empty:
            self._write(self._packed, self._builder.pack())
        new, moment = self._new, datetime.now(UTC)
        plan = None
        if new.plan is not None:
            plan = zlib.compress(json.dumps(dict(new.plan), ensure_ascii=False).encode(), 1)
        values = {
            "seq": self._seq,
            "run_id": f"{moment:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}",
            "kind": new.kind,
            "time": moment.isoformat(timespec="seconds"),
            "unix": moment.timestamp(),
            "goal": new.goal,
            "plan": plan,
            "plan_hash": new.plan_hash,
            "status": "applying",
            "token": f"oa{secrets.token_hex(4)}",
            "source": new.source,
            "run": new.run,
            "count": self._count,
            "bytes": self._bytes,
            "cuts": pack_undo_points(undo_points),
            "boot": boot_id(),
        }
        with db.journal_errors(self._file):
            columns = f"({', '.join(values)}) VALUES ({', '.join('?' * len(values))})"
            self._connection.execute(f"INSERT INTO record {columns}", tuple(values.values()))
            integrity.append_to_chain(self._connection, self._seq, self._previous)
            record = record_at(self._connection, self._seq)
            self._connection.execute("COMMIT")
            try:
                if durable:
                    self._flush()
            except OSError:
                # The run will not start, so its record must not look interrupted.
                with suppress(sqlite3.Error):
                    self._connection.execute("DELETE FROM part WHERE record = ?", (self._seq,))
                    self._connection.execute("DELETE FROM record WHERE seq = ?", (self._seq,))
                raise
        return record

    def _write_oldest(self) -> None:
        first, _, part = self._waiting.popleft()
        self._write(first, part.result())

    def _write(self, first: int, part: Part) -> None:
        with db.journal_errors(self._file):
            self._connection.execute(
                "INSERT INTO part (record, number, first, actions, images, checksum) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (self._seq, self._parts, first, part.actions, part.images, part.checksum),
            )
        self._parts += 1
        self._bytes += len(part.actions) + len(part.images)


def flush_all_of(folder: Path) -> None:
    """Flush the files and names of a folder, and the names of its parents."""
    if system_calls.CAN_OPEN_FOLDERS:
        fd = os.open(folder, os.O_RDONLY)
        try:
            if system_calls.flush_file_system(fd):
                return
        finally:
            os.close(fd)
    for entry in folder.iterdir():
        if entry.is_file():
            _flush_one(entry, os.O_RDWR)
    if not system_calls.CAN_OPEN_FOLDERS:
        return
    for parent in (folder, *folder.parents):
        with suppress(OSError):
            _flush_one(parent, os.O_RDONLY)


def _flush_one(path: Path, flags: int) -> None:
    fd = os.open(path, flags)
    try:
        os.fsync(fd)
        system_calls.flush_disk(fd)
    finally:
        os.close(fd)


def prune(connection: sqlite3.Connection, now: float) -> int:
    """Delete the contents of expired records within the open transaction.

    Return the number of these records.
    """
    rows = connection.execute(
        "SELECT seq, kind, unix, bytes FROM record "
        "WHERE kept = 1 AND status != 'applying' ORDER BY seq DESC"
    ).fetchall()
    runs = total = 0
    expired: list[int] = []
    for seq, kind, unix, size in rows:
        runs += kind == "run" and size > 0
        total += size
        if runs > KEEP_RUNS and (now - unix > KEEP_SECONDS or total > KEEP_BYTES):
            expired.append(seq)
    batch = expired[-AT_MOST:]
    for seq in batch:
        (plan,) = connection.execute("SELECT plan FROM record WHERE seq = ?", (seq,)).fetchone()
        connection.execute("UPDATE part SET images = NULL WHERE record = ?", (seq,))
        connection.execute(
            "UPDATE record SET bytes = 0, kept = 0, plan = ? WHERE seq = ?",
            (_outline(plan), seq),
        )
    integrity.seal(connection, batch)
    return len(batch)


def _outline(stored: bytes | None) -> bytes | None:
    """Return a stored plan without the arguments of its steps, or None if it is unreadable."""
    try:
        plan: dict[str, Any] = json.loads(zlib.decompress(stored or b""))
        steps = [
            {name: step[name] for name in _OUTLINE_OF_STEP if name in step} | {"args": {}}
            for step in plan["steps"]
        ]
        outline = {name: plan[name] for name in _OUTLINE_OF_PLAN if name in plan} | {"steps": steps}
    except (zlib.error, ValueError, KeyError, TypeError):
        return None
    return zlib.compress(json.dumps(outline, ensure_ascii=False).encode(), 1)
