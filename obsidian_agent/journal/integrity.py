"""How records that are lost or damaged are noticed: the chain of records, the register beside the database, and what both tell.

Each record has a hash of what never changes in it and of the hash before it (`previous`): a chain, in which a record that was lost or
replaced leaves a gap. What does change (marks, the plan, what is kept) has a seal of its own, written anew with each change.

The register is a file of its own beside the database, with one short line for each record: `NUMBER ID KIND HASH CHECKSUM`. It is written,
and flushed, when a record is durable and before the vault is touched. So a database that has lost its last pages, or its log, is noticed,
and the runs that are gone can be named. It may lag behind the database after a crash, never run ahead of it.
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

from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import JournalError, Problem
from obsidian_agent.journal.blobs import StoredPart
from obsidian_agent.state_files import replace_file
from obsidian_agent.vault.filesystem import system_calls

LASTING: Final = (
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
CHANGING: Final = (
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
# A column that is added to one of these changes every digest: the migration that adds it has to close or seal all records anew.
START: Final = b""
"""What stands as `previous` in the first record."""

_LASTING: Final = ", ".join(LASTING)
_ALL: Final = f"previous, hash, seal, {_LASTING}, {', '.join(CHANGING)}"


def close(connection: sqlite3.Connection, seq: int, previous: bytes) -> None:
    """Put a record that was just written into the chain, behind the one with the hash `previous`."""
    row = connection.execute(f"SELECT {_LASTING} FROM record WHERE seq = ?", (seq,)).fetchone()
    connection.execute(
        "UPDATE record SET previous = ?, hash = ? WHERE seq = ?",
        (previous, _digest((previous, *row)), seq),
    )
    seal(connection, [seq])


def seal(connection: sqlite3.Connection, records: Iterable[int | None]) -> None:
    """Seal records as they are now: after every change, within the same transaction. Numbers that are None or not there are passed over."""
    for seq in {seq for seq in records if seq is not None}:
        row = connection.execute(
            f"SELECT hash, {', '.join(CHANGING)} FROM record WHERE seq = ?", (seq,)
        ).fetchone()
        if row is not None:
            connection.execute("UPDATE record SET seal = ? WHERE seq = ?", (_digest(row), seq))


def close_all(connection: sqlite3.Connection, after: int = 0) -> None:
    """Take the records behind a number into the chain that a version of the program wrote which knew none."""
    for (seq,) in connection.execute(
        "SELECT seq FROM record WHERE hash IS NULL AND seq > ? ORDER BY seq", (after,)
    ).fetchall():
        last = connection.execute(
            "SELECT hash FROM record WHERE seq < ? ORDER BY seq DESC LIMIT 1", (seq,)
        ).fetchone()
        close(connection, seq, START if last is None else last[0])


def close_late(connection: sqlite3.Connection, after: int) -> None:
    """Take in what an older version of the program, open all the while, wrote since the journal was brought up to date."""
    if (
        connection.execute(
            "SELECT 1 FROM record WHERE hash IS NULL AND seq > ? LIMIT 1", (after,)
        ).fetchone()
        is not None
    ):
        connection.execute("BEGIN IMMEDIATE")
        close_all(connection, after)
        connection.execute("COMMIT")


def is_whole(connection: sqlite3.Connection, seq: int, late_after: int) -> bool:
    """Whether a record is as it was written. One behind the number `late_after` may not be in the chain yet."""
    row = connection.execute(f"SELECT {_ALL} FROM record WHERE seq = ?", (seq,)).fetchone()
    return row is not None and _vouched(row, late_after)


def chain(
    connection: sqlite3.Connection, late_after: int
) -> list[tuple[int, str, bytes | None, bytes | None, bool]]:
    """Number, id, `previous`, hash of every record in order, and whether it is as it was written (see `is_whole`)."""
    rows = connection.execute(f"SELECT {_ALL} FROM record ORDER BY seq")
    return [(row[3], row[4], row[0], row[1], _vouched(row, late_after)) for row in rows]


def _vouched(row: Sequence[Any], late_after: int) -> bool:
    previous, hash, seal, *values = row
    if hash is None:
        return bool(values[0] > late_after)
    lasting, changing = values[: len(LASTING)], values[len(LASTING) :]
    return bool(hash == _digest((previous, *lasting)) and seal == _digest((hash, *changing)))


def _digest(values: Iterable[Any]) -> bytes:
    digest = hashlib.sha256()
    for value in values:
        data = value if isinstance(value, bytes) else repr(value).encode("utf-8", "surrogatepass")
        digest.update(f"{type(value).__name__} {len(data)} ".encode())
        digest.update(data)
    return digest.digest()


REGISTER_FILE: Final = "journal.register"
_TITLE: Final = b"obsidian-agent register 1\n"
_LINE: Final = re.compile(
    rb"(?P<entry>(\d{1,18}) ([0-9a-f-]{1,64}) (run|undo|redo) ([0-9a-f]{64})) (?P<sum>[0-9a-f]{8})"
)


@dataclass(frozen=True, slots=True)
class RegisterEntry:
    """A record that was made at some time."""

    seq: int
    run_id: str
    kind: str
    hash: bytes

    def line(self) -> bytes:
        """As it is written."""
        text = f"{self.seq} {self.run_id} {self.kind} {self.hash.hex()}".encode()
        return b"%s %08x\n" % (text, zlib.crc32(text))


@dataclass(frozen=True, slots=True)
class RegisterContents:
    """What the file says. `whole`: every line could be read; False also where the file is missing."""

    entries: dict[int, RegisterEntry]
    whole: bool

    @property
    def last(self) -> int:
        """The highest number in it, 0 when there is none."""
        return max(self.entries, default=0)


def entries(connection: sqlite3.Connection, after: int = 0) -> list[RegisterEntry]:
    """The records behind a number as the register lists them."""
    rows = connection.execute(
        "SELECT seq, run_id, kind, hash FROM record WHERE seq > ? AND typeof(hash) = 'blob' ORDER BY seq",
        (after,),
    )
    return [RegisterEntry(*row) for row in rows]


class Register:
    """The file. Its methods raise OSError."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / REGISTER_FILE

    def read(self) -> RegisterContents:
        """Everything that can be read of it."""
        try:
            text = self.file.read_bytes()
        except FileNotFoundError:
            return RegisterContents({}, False)
        lines = text.removeprefix(_TITLE).split(b"\n")
        found = [entry for entry in map(_entry, lines[:-1]) if entry is not None]
        entries = {entry.seq: entry for entry in found}
        return RegisterContents(
            entries, text.startswith(_TITLE) and not lines[-1] and len(entries) == len(lines) - 1
        )

    def add(self, entries: Iterable[RegisterEntry]) -> None:
        """Add lines and flush them; when that fails, they are not there. What goes wrong after the flush is no failure: they are there."""
        fd = os.open(self.file, os.O_WRONLY | os.O_APPEND | getattr(os, "O_CLOEXEC", 0))
        try:
            size = os.fstat(fd).st_size
            try:
                os.write(fd, b"".join(entry.line() for entry in entries))
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
        """Write the file anew, whole or not at all; without entries that could not be read again.

        A power loss may bring the old one back: a register may lag behind.
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


MISSING, DAMAGED = "RUN_MISSING", "JOURNAL_DAMAGED"


def examine(
    connection: sqlite3.Connection | None, listed: RegisterContents, *, contents: bool
) -> list[Problem]:
    """What is wrong, in the order of the records. With `contents` what is kept of the files is read too. sqlite3.Error."""
    records = chain(connection, listed.last) if connection is not None else []
    there = {seq for seq, *_ in records}
    found = {seq: _missing(seq, listed.entries) for seq in lost(there, listed.entries)}
    hashes = {seq: entry.hash for seq, entry in listed.entries.items()}
    hashes[0] = START
    for seq, run_id, previous, hash, whole in records:
        linked = hash is None or previous == hashes.get(seq - 1, previous)
        if not (whole and linked and hash in (None, hashes.get(seq, hash))):
            found[seq] = _damaged(run_id, "it is not as it was written")
        elif hash is not None:
            hashes[seq] = hash
    if contents and connection is not None:
        for seq, run_id, count in connection.execute(
            "SELECT seq, run_id, count FROM record ORDER BY seq"
        ).fetchall():
            if seq not in found and (wrong := _wrong_with_parts(connection, seq, count)):
                found[seq] = _damaged(run_id, wrong)
    problems = [problem for _, problem in sorted(found.items())]
    if contents and connection is not None and not problems:
        flaws = [
            text for (text,) in connection.execute("PRAGMA integrity_check(1)") if text != "ok"
        ]
        problems += [
            Problem(DAMAGED, f"The journal's database is damaged: {text}.") for text in flaws
        ]
    if records and not listed.whole:
        told = "The list of runs beside the journal is damaged or gone, so runs that are missing at its end may not be noticed."
        problems.append(Problem(DAMAGED, f"{told} The next run writes it anew."))
    return problems


def lost(there: Collection[int], listed: Mapping[int, RegisterEntry]) -> list[int]:
    """The numbers of records that were made and are no longer there, in order. Numbers are given without a gap."""
    return sorted(set(range(1, max([0, *there, *listed]) + 1)) - set(there))


def named(seq: int, listed: Mapping[int, RegisterEntry]) -> str:
    """A record that is lost, in words."""
    entry = listed.get(seq)
    if entry is None:
        return f"Record {seq}"
    return f"Run {entry.run_id}" if entry.kind == "run" else f"The {entry.kind} {entry.run_id}"


def _missing(seq: int, listed: Mapping[int, RegisterEntry]) -> Problem:
    entry = listed.get(seq)
    after = (
        "what it changed can no longer be undone"
        if entry is None or entry.kind == "run"
        else "it cannot be taken back"
    )
    return Problem(MISSING, f"{named(seq, listed)} is missing from the journal: {after}.")


def _damaged(run_id: str, why: str) -> Problem:
    return Problem(
        DAMAGED, f"Run {run_id} is damaged in the journal ({why}), so it cannot be undone."
    )


def _wrong_with_parts(connection: sqlite3.Connection, seq: int, count: object) -> str | None:
    """What is wrong with the actions and contents kept with a record."""
    numbers: list[int] = []
    for first, actions, images, checksum in connection.execute(
        "SELECT first, actions, images, checksum FROM part WHERE record = ? ORDER BY number", (seq,)
    ):
        try:
            numbers += [action.number for action in StoredPart(actions).actions(first)]
        except JournalError:
            return "its list of changes cannot be read"
        if images is not None and zlib.crc32(images, zlib.crc32(actions)) != checksum:
            return "contents that it keeps are not as they were"
    return (
        None
        if numbers == list(range(len(numbers))) and count == len(numbers)
        else "changes are missing from its list"
    )
