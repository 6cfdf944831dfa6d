"""The journal's database: its tables, and how its connections are opened, so that a commit costs one flush and closing none.

It is in WAL mode. Commits go through without SQLite's own flushes, and the caller flushes the log (`-wal`) once before the vault is
touched: frames carry checksums, so a log that was cut off by a power loss ends at the last whole commit. Checkpoints are made on purpose,
with SQLite's own flushes. A read-only connection is closed last, because then SQLite leaves the log as it is.

Sources: SQLite, "Write-Ahead Logging", "WAL-mode File Format", PRAGMA synchronous.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from obsidian_agent.errors import JournalError

VERSION: Final = 1
APPLICATION_ID: Final = 0x6F61_4A31
BUSY_SECONDS: Final = 5.0

_TABLES = """
CREATE TABLE vault (path TEXT NOT NULL);
CREATE TABLE record (
    seq INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    time TEXT NOT NULL,
    unix REAL NOT NULL,
    goal TEXT NOT NULL,
    plan BLOB,
    plan_hash TEXT,
    status TEXT NOT NULL,
    token TEXT NOT NULL,
    source INTEGER,
    run INTEGER,
    count INTEGER NOT NULL,
    applied BLOB,
    reversed BLOB,
    undone INTEGER NOT NULL DEFAULT 0,
    effects BLOB,
    bytes INTEGER NOT NULL,
    boot TEXT
);
CREATE TABLE part (
    record INTEGER NOT NULL,
    number INTEGER NOT NULL,
    first INTEGER NOT NULL,
    actions BLOB NOT NULL,
    images BLOB,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (record, number)
);
"""


_LAYOUT: Final = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name"


@cache
def _layout() -> list[tuple[str, ...]]:
    """What the tables look like in a journal just made."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_TABLES)
        return connection.execute(_LAYOUT).fetchall()


class RecordUnreadable(Exception):
    """A row holds what was never written to it."""


@contextlib.contextmanager
def journal_errors(file: Path) -> Iterator[None]:
    """Errors of SQLite and of the state folder as JournalError, with what to do."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise
    except (UnicodeDecodeError, RecordUnreadable) as error:
        raise damaged_file(file, str(error)) from error
    except sqlite3.DatabaseError as error:
        raise _translated(error, file) from error
    except OSError as error:
        raise JournalError(
            f"The journal {file} cannot be used: {error.strerror or error}.",
            path=str(file),
            hint="Check the folder's permissions and free space.",
        ) from error


def _translated(error: sqlite3.DatabaseError, file: Path) -> JournalError:
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")) or not isinstance(error, sqlite3.OperationalError):
        return damaged_file(file, str(error))
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return JournalError(f"The journal {file} is in use by another process.", path=str(file), hint="Try again.", retryable=True)
    if name == "SQLITE_ERROR":
        return damaged_file(file, str(error))
    return JournalError(f"The journal {file} cannot be used: {error}.", path=str(file), hint="Check the disk's free space and permissions.")


def damaged_file(file: Path, what: str) -> JournalError:
    """The error for a database that is not what it was."""
    return JournalError(
        f"The journal {file} is damaged ({what}), so nothing can be changed or undone.",
        code="JOURNAL_DAMAGED",
        path=str(file),
        hint="Restore it from a backup, or move the file away: a new one is started, and the runs in this one can no longer be undone.",
    )


def create(file: Path, vault: str) -> None:
    """Make an empty journal, whole or not at all. It is not durable yet."""
    log = file.with_name(f"{file.name}-wal")
    if log.exists():
        raise damaged_file(file, "it is missing, but its log is there")
    draft = file.with_name(f"{file.name}.new")
    draft.unlink(missing_ok=True)
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    connection = sqlite3.connect(draft, isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("PRAGMA journal_mode=MEMORY")
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version={VERSION}")
        connection.executescript(f"BEGIN; {_TABLES} COMMIT;")
        connection.execute("INSERT INTO vault VALUES (?)", (vault,))
        connection.execute("PRAGMA journal_mode=WAL")
    finally:
        connection.close()
    draft.rename(file)


def open_writer(file: Path, vault: str) -> sqlite3.Connection:
    """A connection that writes and never flushes by itself."""
    _look_at(file)
    connection = sqlite3.connect(file, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("PRAGMA wal_autocheckpoint=0")
        _check(connection, file, vault)
    except BaseException:
        connection.close()
        raise
    return connection


def open_reader(file: Path, vault: str) -> sqlite3.Connection:
    """A connection that only reads, from a database that exists."""
    _look_at(file)
    address = f"{file.absolute().as_uri()}?mode=ro"
    connection = sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        _check(connection, file, vault)
    except BaseException:
        connection.close()
        raise
    return connection


def checkpoint(connection: sqlite3.Connection) -> bool:
    """Bring the log into the database and empty it, with flushes. False when a reader is in the way; then another time will do."""
    connection.execute("PRAGMA busy_timeout=0")
    connection.execute("PRAGMA synchronous=NORMAL")
    try:
        busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not busy
    finally:
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute(f"PRAGMA busy_timeout={int(BUSY_SECONDS * 1000)}")


def _look_at(file: Path) -> None:
    # SQLite takes an empty file for a new database, and would throw its log away.
    if file.stat().st_size == 0:
        raise damaged_file(file, "it is empty")


def _check(connection: sqlite3.Connection, file: Path, vault: str) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION_ID:
        raise damaged_file(file, "it is another program's database")
    if version > VERSION:
        raise JournalError(f"The journal {file} was written by a newer version.", path=str(file), hint="Update obsidian-agent.")
    if connection.execute(_LAYOUT).fetchall() != _layout():
        raise damaged_file(file, "its tables are not as they were made")
    row = connection.execute("SELECT path FROM vault").fetchone()
    if row is None or row[0] != vault:
        raise damaged_file(file, "it belongs to another vault")
