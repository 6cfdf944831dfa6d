"""The journal's database: tables, migrations, and connections.

The database is in WAL mode. Commits use no flushes of SQLite; instead the caller flushes the log
(`-wal`) once before it touches the vault, and closing flushes nothing. Frames carry checksums, so a
log that a power loss truncated ends at the last complete commit. Checkpoints are explicit and do
use SQLite's flushes. A read-only connection is closed last, so that SQLite does not checkpoint.

Sources: SQLite, "Write-Ahead Logging", "WAL-mode File Format", PRAGMA synchronous,
PRAGMA user_version, PRAGMA secure_delete.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from obsidian_agent.errors import JournalError
from obsidian_agent.journal import integrity

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
    bytes INTEGER NOT NULL
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
"""Version 1. Never changed: later columns come from migrations, in new journals too."""


def _chain_records(connection: sqlite3.Connection) -> None:
    """Migrate to version 2: a hash chain, and undo points (`cuts`) in a column of their own.

    `kept` is 0 once the contents of a record were deleted. `boot` is the id of the system start
    during which it ran (`boot_id`).
    """
    for column in (
        "previous BLOB",
        "hash BLOB",
        "seal BLOB",
        "cuts BLOB",
        "kept INTEGER NOT NULL DEFAULT 1",
        "boot TEXT",
    ):
        connection.execute(f"ALTER TABLE record ADD COLUMN {column}")
    for seq, stored in connection.execute(
        "SELECT seq, plan FROM record WHERE plan IS NOT NULL"
    ).fetchall():
        # An unreadable plan affects only its own run, so it stays unchanged.
        with contextlib.suppress(zlib.error, ValueError, AttributeError):
            plan = json.loads(zlib.decompress(stored))
            undo_points = plan.pop("$cuts", None)
            if undo_points is not None:
                packed = zlib.compress(json.dumps(plan, ensure_ascii=False).encode(), 1)
                connection.execute(
                    "UPDATE record SET plan = ?, cuts = ? WHERE seq = ?",
                    (packed, json.dumps(undo_points).encode(), seq),
                )
    integrity.chain_unlinked(connection)


def _allow_held_files(_: sqlite3.Connection) -> None:
    """Migrate to version 3: actions may record that an editor held the file open.

    The tables do not change; the version keeps older programs from reading such actions.
    """


def _allow_step_numbers(_: sqlite3.Connection) -> None:
    """Migrate to version 4: undo points may hold the actions and commands of their step.

    Existing records do not change; the version keeps older programs from reading new ones.
    """


_MIGRATIONS: Final[tuple[Callable[[sqlite3.Connection], None], ...]] = (
    _chain_records,
    _allow_held_files,
    _allow_step_numbers,
)
"""Each migrates from one version to the next in one transaction; the first from version 1."""

VERSION: Final = 1 + len(_MIGRATIONS)


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
    """Create an empty journal of the latest version atomically. It is not durable yet."""
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
        connection.executescript(f"BEGIN; {_TABLES} PRAGMA user_version=1; COMMIT;")
        connection.execute("INSERT INTO vault VALUES (?)", (vault,))
        migrate(connection)
        connection.execute("PRAGMA journal_mode=WAL")
    finally:
        connection.close()
    draft.rename(file)


def is_older(connection: sqlite3.Connection) -> bool:
    """Return True if the journal must be migrated before use."""
    return _version(connection) < VERSION


def migrate(
    connection: sqlite3.Connection,
    before_commit: Callable[[sqlite3.Connection], None] = lambda _: None,
) -> None:
    """Migrate an older journal in one transaction.

    `before_commit` is called with the migrated database before the transaction ends.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have migrated it already.
        version = _version(connection)
        for step in _MIGRATIONS[version - 1 :]:
            step(connection)
        connection.execute(f"PRAGMA user_version={VERSION}")
        if version < VERSION:
            before_commit(connection)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


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
    return _connect(
        file, vault, "rw", "synchronous=OFF", "wal_autocheckpoint=0", "secure_delete=ON"
    )


def open_reader(file: Path, vault: str) -> sqlite3.Connection:
    """Open an existing database for reading."""
    return _connect(file, vault, "ro")


def _connect(file: Path, vault: str, mode: str, *pragmas: str) -> sqlite3.Connection:
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


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _check(connection: sqlite3.Connection, file: Path, vault: str) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = _version(connection)
    if application != APPLICATION_ID:
        raise damaged_file(file, "it is another program's database")
    if version > VERSION:
        raise JournalError(
            f"The journal {file} was written by a newer version of obsidian-agent "
            f"(format {version}; this version reads up to {VERSION}).",
            path=str(file),
            hint="Update obsidian-agent; nothing was changed.",
        )
    if version < 1:
        raise damaged_file(file, "its version is missing")
    row = connection.execute("SELECT path FROM vault").fetchone()
    if row is None or row[0] != vault:
        raise damaged_file(file, "it belongs to another vault")
