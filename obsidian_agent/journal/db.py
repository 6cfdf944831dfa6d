"""The journal's database: tables and connections.

The database is in WAL mode. Commits use no flushes of SQLite; instead the caller flushes the log
(`-wal`) once before it touches the vault, and closing flushes nothing. Frames carry checksums, so a
log that a power loss truncated ends at the last complete commit. Checkpoints are explicit and do
use SQLite's flushes. A read-only connection is closed last, so that SQLite does not checkpoint.

Sources: SQLite, "Write-Ahead Logging", "WAL-mode File Format", PRAGMA synchronous,
PRAGMA user_version, PRAGMA secure_delete.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from obsidian_agent.errors import JournalError

APPLICATION_ID: Final = 0x6F61_4A31
"""Marks a SQLite file as a journal of this program; other files are not touched."""
BUSY_SECONDS: Final = 5.0
"""Time to wait for another process that holds the database."""

_TABLES: Final = """
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
    previous BLOB,
    hash BLOB,
    seal BLOB,
    cuts BLOB,
    kept INTEGER NOT NULL DEFAULT 1,
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
"""`kept` is 0 once the contents of a record were deleted; `boot` is the `boot_id` at its run."""

VERSION: Final = 4
"""The format of the tables and of the values in them. Earlier formats were never released."""


class RecordUnreadable(Exception):
    """A row holds values that this program never writes."""


@contextlib.contextmanager
def journal_errors(file: Path) -> Iterator[None]:
    """Raise errors of SQLite and of the state folder as JournalError with a hint."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise
    except (UnicodeDecodeError, RecordUnreadable) as error:
        raise damaged_file(file, str(error)) from error
    except sqlite3.DatabaseError as error:
        raise _translate(error, file) from error
    except OSError as error:
        raise JournalError(
            f"The journal {file} cannot be used: {error.strerror or error}.",
            path=str(file),
            hint="Check the folder's permissions and free space.",
        ) from error


def _translate(error: sqlite3.DatabaseError, file: Path) -> JournalError:
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")) or not isinstance(
        error, sqlite3.OperationalError
    ):
        return damaged_file(file, str(error))
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return JournalError(
            f"The journal {file} is in use by another process.",
            path=str(file),
            hint="Try again.",
            retryable=True,
        )
    if name == "SQLITE_ERROR":
        return damaged_file(file, str(error))
    return JournalError(
        f"The journal {file} cannot be used: {error}.",
        path=str(file),
        hint="Check the disk's free space and permissions.",
    )


def damaged_file(file: Path, what: str) -> JournalError:
    """Return the error for a damaged database; `what` is the damage."""
    return JournalError(
        f"The journal {file} is damaged ({what}), so nothing can be changed or undone.",
        code="JOURNAL_DAMAGED",
        path=str(file),
        hint="Restore it from a backup, or move the file away: a new journal is started, and the "
        "runs in this one can no longer be undone.",
    )


def create(file: Path, vault: str) -> None:
    """Create an empty journal atomically. It is not durable yet."""
    log = file.with_name(f"{file.name}-wal")
    if log.exists():
        raise damaged_file(file, "it is missing, but its log exists")
    draft = file.with_name(f"{file.name}.new")
    draft.unlink(missing_ok=True)
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    connection = sqlite3.connect(draft, isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("PRAGMA journal_mode=MEMORY")
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.executescript(f"BEGIN; {_TABLES} PRAGMA user_version={VERSION}; COMMIT;")
        connection.execute("INSERT INTO vault VALUES (?)", (vault,))
        connection.execute("PRAGMA journal_mode=WAL")
    finally:
        connection.close()
    draft.rename(file)


def set_vault(file: Path, vault: str) -> None:
    """Store the new path of the vault durably, and checkpoint the log."""
    with contextlib.closing(
        sqlite3.connect(file, timeout=BUSY_SECONDS, isolation_level=None)
    ) as connection:
        connection.execute("UPDATE vault SET path = ?", (vault,))
        checkpoint(connection)


def open_writer(file: Path, vault: str) -> sqlite3.Connection:
    """Open a connection for writing, which never flushes by itself.

    Deleted contents are overwritten in the file.
    """
    pragmas = ("synchronous=OFF", "wal_autocheckpoint=0", "secure_delete=ON")
    return _connect(file, vault, mode="rw", pragmas=pragmas)


def open_reader(file: Path, vault: str) -> sqlite3.Connection:
    """Open an existing database for reading."""
    return _connect(file, vault, mode="ro")


def _connect(
    file: Path, vault: str, *, mode: str, pragmas: Sequence[str] = ()
) -> sqlite3.Connection:
    # SQLite takes an empty file for a new database and would discard its log.
    if file.stat().st_size == 0:
        raise damaged_file(file, "it is empty")
    name = f"{file.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(
        name, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")
        _check(connection, file, vault)
    except BaseException:
        connection.close()
        raise
    return connection


def checkpoint(connection: sqlite3.Connection) -> bool:
    """Move the log into the database and truncate it, with flushes.

    Return False if a reader prevents it; a later checkpoint will do.
    """
    connection.execute("PRAGMA busy_timeout=0")
    connection.execute("PRAGMA synchronous=NORMAL")
    try:
        busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not busy
    finally:
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute(f"PRAGMA busy_timeout={int(BUSY_SECONDS * 1000)}")


def _check(connection: sqlite3.Connection, file: Path, vault: str) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if application != APPLICATION_ID:
        raise damaged_file(file, "it is another program's database")
    if version < 1:
        raise damaged_file(file, "its version is missing")
    if version != VERSION:
        age, hint = "newer", "Update obsidian-agent; nothing was changed."
        if version < VERSION:
            age, hint = "test", "Move the file away; the runs in it can no longer be undone."
        raise JournalError(
            f"The journal {file} was written by a {age} version of obsidian-agent "
            f"(format {version}; this version reads format {VERSION}).",
            path=str(file),
            hint=hint,
        )
    row = connection.execute("SELECT path FROM vault").fetchone()
    if row is None or row[0] != vault:
        raise damaged_file(file, "it belongs to another vault")
