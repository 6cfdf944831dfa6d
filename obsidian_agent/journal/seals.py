"""How records vouch for themselves and for one another, so that damage to the database is noticed.

Each record has a hash of what never changes in it and of the hash before it (`previous`): a chain, in which a record that was lost or
replaced leaves a gap. What does change (marks, the plan, what is kept) has a seal of its own, written anew with each change.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, Final

LASTING: Final = ("seq", "run_id", "kind", "time", "unix", "goal", "plan_hash", "token", "source", "run", "count")
CHANGING: Final = ("status", "applied", "reversed", "undone", "effects", "bytes", "kept", "plan", "cuts", "boot")
# A column that is added to one of these changes every digest: the migration that adds it has to close or seal all records anew.
START: Final = b""
"""What stands as `previous` in the first record."""

_LASTING: Final = ", ".join(LASTING)
_ALL: Final = f"previous, hash, seal, {_LASTING}, {', '.join(CHANGING)}"


def close(connection: sqlite3.Connection, seq: int, previous: bytes) -> None:
    """Put a record that was just written into the chain, behind the one with the hash `previous`."""
    row = connection.execute(f"SELECT {_LASTING} FROM record WHERE seq = ?", (seq,)).fetchone()
    connection.execute("UPDATE record SET previous = ?, hash = ? WHERE seq = ?", (previous, _digest((previous, *row)), seq))
    seal(connection, [seq])


def seal(connection: sqlite3.Connection, records: Iterable[int | None]) -> None:
    """Seal records as they are now: after every change, within the same transaction. Numbers that are None or not there are passed over."""
    for seq in {seq for seq in records if seq is not None}:
        row = connection.execute(f"SELECT hash, {', '.join(CHANGING)} FROM record WHERE seq = ?", (seq,)).fetchone()
        if row is not None:
            connection.execute("UPDATE record SET seal = ? WHERE seq = ?", (_digest(row), seq))


def close_all(connection: sqlite3.Connection, after: int = 0) -> None:
    """Take the records behind a number into the chain that a version of the program wrote which knew none."""
    for (seq,) in connection.execute("SELECT seq FROM record WHERE hash IS NULL AND seq > ? ORDER BY seq", (after,)).fetchall():
        last = connection.execute("SELECT hash FROM record WHERE seq < ? ORDER BY seq DESC LIMIT 1", (seq,)).fetchone()
        close(connection, seq, START if last is None else last[0])


def is_whole(connection: sqlite3.Connection, seq: int, late_after: int) -> bool:
    """Whether a record is as it was written. One behind the number `late_after` may not be in the chain yet."""
    row = connection.execute(f"SELECT {_ALL} FROM record WHERE seq = ?", (seq,)).fetchone()
    return row is not None and _vouched(row, late_after)


def chain(connection: sqlite3.Connection, late_after: int) -> list[tuple[int, str, bytes | None, bytes | None, bool]]:
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
