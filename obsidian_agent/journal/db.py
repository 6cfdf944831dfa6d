"""The journal's database: its tables, how older ones are brought up to date, and how its connections are opened.

A commit costs one flush and closing none.

It is in WAL mode. Commits go through without SQLite's own flushes, and the caller flushes the log (`-wal`) once before the vault is
touched: frames carry checksums, so a log that was cut off by a power loss ends at the last whole commit. Checkpoints are made on purpose,
with SQLite's own flushes. A read-only connection is closed last, because then SQLite leaves the log as it is.

Sources: SQLite, "Write-Ahead Logging", "WAL-mode File Format", PRAGMA synchronous, PRAGMA user_version, PRAGMA secure_delete.
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
"""Marks a SQLite file as our journal; another one is not touched."""
BUSY_SECONDS: Final = 5.0
"""So long another process of ours may hold the journal before this one gives up."""

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
"""Version 1. Never changed: what came later is a migration, also in a journal that is made today."""


def _chain_records(connection: sqlite3.Connection) -> None:
    """Version 2: a chain of records; where a run can be cut stands beside its plan, not in it; `kept` says whether its texts are kept,
    `boot` since which start of the machine it was at work (`boot.boot_id`)."""
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
        # A plan that cannot be read stays as it is: only its own run is spoilt.
        with contextlib.suppress(zlib.error, ValueError, AttributeError):
            plan = json.loads(zlib.decompress(stored))
            cuts = plan.pop("$cuts", None)
            if cuts is not None:
                packed = zlib.compress(json.dumps(plan, ensure_ascii=False).encode(), 1)
                connection.execute(
                    "UPDATE record SET plan = ?, cuts = ? WHERE seq = ?",
                    (packed, json.dumps(cuts).encode(), seq),
                )
    integrity.close_all(connection)


def _allow_held_files(_: sqlite3.Connection) -> None:
    """Version 3: an action may say that an editor held its file open. Nothing is to be changed, but older programs would not understand it."""


def _allow_step_numbers(_: sqlite3.Connection) -> None:
    """Version 4: a cut may hold the actions and commands of its step. Earlier records stay as they are; older programs cannot read these."""


_MIGRATIONS: Final[tuple[Callable[[sqlite3.Connection], None], ...]] = (
    _chain_records,
    _allow_held_files,
    _allow_step_numbers,
)
"""Each leads from one version to the next, within one transaction; the first from version 1."""

VERSION: Final = 1 + len(_MIGRATIONS)


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
    """The error for a database that is not what it was."""
    return JournalError(
        f"The journal {file} is damaged ({what}), so nothing can be changed or undone.",
        code="JOURNAL_DAMAGED",
        path=str(file),
        hint="Restore it from a backup, or move the file away: a new one is started, and the runs in this one can no longer be undone.",
    )


def create(file: Path, vault: str) -> None:
    """Make an empty journal of the latest version, whole or not at all. It is not durable yet."""
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
        connection.executescript(f"BEGIN; {_TABLES} PRAGMA user_version=1; COMMIT;")
        connection.execute("INSERT INTO vault VALUES (?)", (vault,))
        migrate(connection)
        connection.execute("PRAGMA journal_mode=WAL")
    finally:
        connection.close()
    draft.rename(file)


def is_older(connection: sqlite3.Connection) -> bool:
    """Whether a journal has to be brought up to date before it can be used."""
    return _version(connection) < VERSION


def migrate(
    connection: sqlite3.Connection,
    before_commit: Callable[[sqlite3.Connection], None] = lambda _: None,
) -> None:
    """Bring an older journal up to date, all or nothing. `before_commit` sees it as it will be."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have been quicker.
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


def belongs_to(file: Path, vault: str) -> None:
    """Say where the vault of a journal is now, durably, and bring its log into the database."""
    with contextlib.closing(
        sqlite3.connect(file, timeout=BUSY_SECONDS, isolation_level=None)
    ) as connection:
        connection.execute("UPDATE vault SET path = ?", (vault,))
        checkpoint(connection)


def open_writer(file: Path, vault: str) -> sqlite3.Connection:
    """A connection that writes and never flushes by itself. What retention clears is gone from the file too."""
    return _opened(file, vault, "rw", "synchronous=OFF", "wal_autocheckpoint=0", "secure_delete=ON")


def open_reader(file: Path, vault: str) -> sqlite3.Connection:
    """A connection that only reads, from a database that exists."""
    return _opened(file, vault, "ro")


def _opened(file: Path, vault: str, mode: str, *pragmas: str) -> sqlite3.Connection:
    # SQLite takes an empty file for a new database, and would throw its log away.
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
    """Bring the log into the database and empty it, with flushes. False when a reader is in the way; then another time will do."""
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
        message = f"The journal {file} was written by a newer version of obsidian-agent (format {version}; this one knows {VERSION})."
        raise JournalError(
            message, path=str(file), hint="Update obsidian-agent; nothing was changed."
        )
    if version < 1:
        raise damaged_file(file, "its version is missing")
    row = connection.execute("SELECT path FROM vault").fetchone()
    if row is None or row[0] != vault:
        raise damaged_file(file, "it belongs to another vault")
