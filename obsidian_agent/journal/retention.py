"""How long contents are kept: 90 days or 2 GB, whichever ends first, and those of the last 20 runs always."""

from __future__ import annotations

import sqlite3
from typing import Final

KEEP_RUNS: Final = 20
KEEP_SECONDS: Final = 90 * 86_400.0
KEEP_BYTES: Final = 2 << 30
AT_MOST: Final = 50
"""Records that are thinned out at once, so that no run waits for years of leftovers."""


def prune(connection: sqlite3.Connection, now: float) -> int:
    """Drop the contents of records that are past keeping, within the open transaction; how many. Plans and lists of changes stay."""
    rows = connection.execute(
        "SELECT seq, kind, unix, bytes FROM record WHERE bytes > 0 AND status != 'applying' ORDER BY seq DESC"
    ).fetchall()
    runs, total, old = 0, 0, list[int]()
    for seq, kind, unix, size in rows:
        runs += kind == "run"
        total += size
        if runs > KEEP_RUNS and (now - unix > KEEP_SECONDS or total > KEEP_BYTES):
            old.append(seq)
    for seq in old[-AT_MOST:]:
        connection.execute("UPDATE part SET images = NULL WHERE record = ?", (seq,))
        connection.execute("UPDATE record SET bytes = 0 WHERE seq = ?", (seq,))
    return len(old[-AT_MOST:])
