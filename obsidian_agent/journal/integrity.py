"""Detection of lost or damaged records: the hash chain and the register.

Each record stores a hash of its fixed columns and of the previous record's hash (`previous`), so a
lost or replaced record breaks the chain. The mutable columns (status, marks, plan) have a separate
seal, which is updated with every change.

The register is a file beside the database with one line per record: `NUMBER ID KIND HASH CHECKSUM`.
A line is written and flushed when the record is durable, before the vault is touched. So a database
that lost its last pages or its log is detected, and the lost runs can be named. After a crash the
register may lag behind the database, but it is never ahead of it.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from obsidian_agent.errors import JournalError, Problem
from obsidian_agent.journal.blobs import StoredPart
from obsidian_agent.state_files import open_append, replace_file, write_all
from obsidian_agent.vault.filesystem import system_calls

FIXED_COLUMNS: Final = (
    "seq",
    "run_id",
    "kind",
    "time",
    "unix",
    "goal",
    "plan_hash",
    "token",
    "source",
    "run",
    "count",
)
MUTABLE_COLUMNS: Final = (
    "status",
    "applied",
    "reversed",
    "undone",
    "effects",
    "bytes",
    "kept",
    "plan",
    "cuts",
    "boot",
)
# Another column changes every digest, and so the format (`db.VERSION`).
START: Final = b""
"""`previous` of the first record."""
REGISTER_FILE: Final = "journal.register"
MISSING, DAMAGED = "RUN_MISSING", "JOURNAL_DAMAGED"

_FIXED: Final = ", ".join(FIXED_COLUMNS)
_TITLE: Final = b"obsidian-agent register 1\n"
_LINE: Final = re.compile(
    rb"(?P<entry>(\d{1,18}) ([0-9a-f-]{1,64}) (run|undo|redo) ([0-9a-f]{64})) (?P<sum>[0-9a-f]{8})"
)
_ALL: Final = f"previous, hash, seal, {_FIXED}, {', '.join(MUTABLE_COLUMNS)}"


def append_to_chain(connection: sqlite3.Connection, seq: int, previous: bytes) -> None:
    """Append a new record to the chain, after the record with the hash `previous`."""
    row = connection.execute(f"SELECT {_FIXED} FROM record WHERE seq = ?", (seq,)).fetchone()
    connection.execute(
        "UPDATE record SET previous = ?, hash = ? WHERE seq = ?",
        (previous, _digest((previous, *row)), seq),
    )
    seal(connection, [seq])


def seal(connection: sqlite3.Connection, records: Iterable[int | None]) -> None:
    """Seal the current values of records, in the transaction that changed them.

    Numbers that are None or do not exist are ignored.
    """
    for seq in {seq for seq in records if seq is not None}:
        row = connection.execute(
            f"SELECT hash, {', '.join(MUTABLE_COLUMNS)} FROM record WHERE seq = ?", (seq,)
        ).fetchone()
        if row is not None:
            connection.execute("UPDATE record SET seal = ? WHERE seq = ?", (_digest(row), seq))


def is_intact(connection: sqlite3.Connection, seq: int) -> bool:
    """Return True if a record is unmodified."""
    row = connection.execute(f"SELECT {_ALL} FROM record WHERE seq = ?", (seq,)).fetchone()
    return row is not None and _is_intact(row)


def chain(connection: sqlite3.Connection) -> list[tuple[int, str, bytes, bytes, bool]]:
    """Return number, id, `previous`, hash and `is_intact` of every record, in order."""
    rows = connection.execute(f"SELECT {_ALL} FROM record ORDER BY seq")
    return [(row[3], row[4], row[0], row[1], _is_intact(row)) for row in rows]


def _is_intact(row: Sequence[Any]) -> bool:
    previous, hash, seal, *values = row
    fixed, mutable = values[: len(FIXED_COLUMNS)], values[len(FIXED_COLUMNS) :]
    return bool(hash == _digest((previous, *fixed)) and seal == _digest((hash, *mutable)))


def _digest(values: Iterable[Any]) -> bytes:
    digest = hashlib.sha256()
    for value in values:
        data = value if isinstance(value, bytes) else repr(value).encode("utf-8", "surrogatepass")
        digest.update(f"{type(value).__name__} {len(data)} ".encode())
        digest.update(data)
    return digest.digest()


class RegisterEntry(Struct, frozen=True):
    """A record as the register lists it."""

    seq: int
    run_id: str
    kind: str
    hash: bytes

    def line(self) -> bytes:
        """Return the line of this entry in the file."""
        text = f"{self.seq} {self.run_id} {self.kind} {self.hash.hex()}".encode()
        return b"%s %08x\n" % (text, zlib.crc32(text))


class RegisterContents(Struct, frozen=True):
    """The entries of the register.

    `is_complete` is False if the file is missing or a line of it could not be read.
    """

    entries: dict[int, RegisterEntry]
    is_complete: bool

    @property
    def last(self) -> int:
        """The highest number, 0 if there are no entries."""
        return max(self.entries, default=0)


def entries(connection: sqlite3.Connection, after: int = 0) -> list[RegisterEntry]:
    """Return the entries for the records after number `after`."""
    rows = connection.execute(
        "SELECT seq, run_id, kind, hash FROM record "
        "WHERE seq > ? AND typeof(hash) = 'blob' ORDER BY seq",
        (after,),
    )
    return [RegisterEntry(*row) for row in rows]


class Register:
    """The register file. Its methods raise OSError."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / REGISTER_FILE

    def read(self) -> RegisterContents:
        """Read all entries, skipping damaged lines."""
        try:
            text = self.file.read_bytes()
        except FileNotFoundError:
            return RegisterContents({}, False)
        lines = text.removeprefix(_TITLE).split(b"\n")
        parsed = [_entry(line) for line in lines[:-1]]
        entries = {entry.seq: entry for entry in parsed if entry is not None}
        is_complete = text.startswith(_TITLE) and not lines[-1] and len(entries) == len(lines) - 1
        return RegisterContents(entries, is_complete)

    def add(self, entries: Iterable[RegisterEntry]) -> None:
        """Append lines and flush them. If that fails, the file is truncated again.

        Errors after the flush are ignored, because the lines are durable then.
        """
        fd = open_append(self.file, create=False)
        try:
            size = os.fstat(fd).st_size
            try:
                write_all(fd, b"".join(entry.line() for entry in entries))
                os.fsync(fd)
                system_calls.flush_disk(fd)
            except OSError:
                with suppress(OSError):
                    os.ftruncate(fd, size)
                raise
        finally:
            with suppress(OSError):
                os.close(fd)

    def write(self, entries: Iterable[RegisterEntry]) -> None:
        """Replace the file atomically, without entries that could not be read back.

        A power loss may restore the old file, which is allowed to lag behind.
        """
        lines = [
            entry.line()
            for entry in sorted(entries, key=lambda entry: entry.seq)
            if _entry(entry.line()[:-1]) == entry
        ]
        replace_file(self.file, _TITLE + b"".join(lines))
        if system_calls.CAN_OPEN_FOLDERS:
            with suppress(OSError):
                folder = os.open(self.file.parent, os.O_RDONLY)
                try:
                    system_calls.flush_folder(folder)
                finally:
                    os.close(folder)


def _entry(line: bytes) -> RegisterEntry | None:
    match = _LINE.fullmatch(line)
    if match is None or int(match["sum"], 16) != zlib.crc32(match["entry"]):
        return None
    return RegisterEntry(
        int(match[2]), match[3].decode(), match[4].decode(), bytes.fromhex(match[5].decode())
    )


def examine(
    connection: sqlite3.Connection | None, register: RegisterContents, *, contents: bool
) -> list[Problem]:
    """Return the problems of the journal in record order. Raise sqlite3.Error.

    With `contents` the stored contents are checked too.
    """
    records = chain(connection) if connection is not None else []
    existing = {seq for seq, *_ in records}
    damage = {
        seq: _missing(seq, register.entries) for seq in missing_numbers(existing, register.entries)
    }
    hashes = {seq: entry.hash for seq, entry in register.entries.items()}
    hashes[0] = START
    for seq, run_id, previous, hash, intact in records:
        is_linked = previous == hashes.get(seq - 1, previous)
        if intact and is_linked and hash == hashes.get(seq, hash):
            hashes[seq] = hash
        else:
            damage[seq] = _damaged(run_id, "the record was modified")
    if contents and connection is not None:
        for seq, run_id, count in connection.execute(
            "SELECT seq, run_id, count FROM record ORDER BY seq"
        ).fetchall():
            if seq not in damage and (flaw := _flaw_of_parts(connection, seq, count)):
                damage[seq] = _damaged(run_id, flaw)
    problems = [problem for _, problem in sorted(damage.items())]
    if contents and connection is not None and not problems:
        problems += [
            Problem(DAMAGED, f"The journal's database is damaged: {text}.")
            for (text,) in connection.execute("PRAGMA integrity_check(1)")
            if text != "ok"
        ]
    if records and not register.is_complete:
        problems.append(
            Problem(
                DAMAGED,
                "The list of runs beside the journal is damaged or missing, so runs that are "
                "missing at its end may not be noticed. The next run writes it again.",
            )
        )
    return problems


def missing_numbers(existing: Collection[int], register: Mapping[int, RegisterEntry]) -> list[int]:
    """Return the numbers of lost records in order. Records are numbered without gaps."""
    last = max([0, *existing, *register])
    return sorted(set(range(1, last + 1)) - set(existing))


def description(seq: int, register: Mapping[int, RegisterEntry]) -> str:
    """Return the words that name a lost record in a message."""
    entry = register.get(seq)
    if entry is None:
        return f"Record {seq}"
    return f"Run {entry.run_id}" if entry.kind == "run" else f"The {entry.kind} {entry.run_id}"


def _missing(seq: int, register: Mapping[int, RegisterEntry]) -> Problem:
    entry = register.get(seq)
    consequence = "it cannot be reversed"
    if entry is None or entry.kind == "run":
        consequence = "its changes can no longer be undone"
    return Problem(
        MISSING, f"{description(seq, register)} is missing from the journal: {consequence}."
    )


def _damaged(run_id: str, flaw: str) -> Problem:
    return Problem(
        DAMAGED, f"Run {run_id} is damaged in the journal ({flaw}), so it cannot be undone."
    )


def _flaw_of_parts(connection: sqlite3.Connection, seq: int, count: object) -> str | None:
    """Return the flaw of the actions and contents stored with a record, or None."""
    numbers: list[int] = []
    for first, actions, images, checksum in connection.execute(
        "SELECT first, actions, images, checksum FROM part WHERE record = ? ORDER BY number", (seq,)
    ):
        try:
            numbers += [action.number for action in StoredPart(actions).actions(first)]
        except JournalError:
            return "its list of changes cannot be read"
        if images is not None and zlib.crc32(images, zlib.crc32(actions)) != checksum:
            return "its stored contents were modified"
    if numbers != list(range(len(numbers))) or count != len(numbers):
        return "changes are missing from its list"
    return None
