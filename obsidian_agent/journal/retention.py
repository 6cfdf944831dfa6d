"""How long contents are kept: 90 days or 2 GB, whichever ends first, and those of the last 20 runs always.

Contents are those of the files, and the texts in a run's plan: what it was about (its goal, tools, and the lists of what changed) stays.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from typing import Any, Final

from obsidian_agent.journal import integrity

KEEP_RUNS: Final = 20
KEEP_SECONDS: Final = 90 * 86_400.0
KEEP_BYTES: Final = 2 << 30
AT_MOST: Final = 50
"""Records that are thinned out at once, so that no run waits for years of leftovers."""


_KEPT_OF_PLAN: Final = ("version", "goal", "riskLevel")
_KEPT_OF_STEP: Final = ("id", "tool", "dependsOn")


def prune(connection: sqlite3.Connection, now: float) -> int:
    """Drop the contents of records that are past keeping, within the open transaction; how many."""
    rows = connection.execute(
        "SELECT seq, kind, unix, bytes FROM record WHERE kept = 1 AND status != 'applying' ORDER BY seq DESC"
    ).fetchall()
    runs, total, old = 0, 0, list[int]()
    for seq, kind, unix, size in rows:
        runs += kind == "run" and size > 0
        total += size
        if runs > KEEP_RUNS and (now - unix > KEEP_SECONDS or total > KEEP_BYTES):
            old.append(seq)
    for seq in old[-AT_MOST:]:
        (plan,) = connection.execute("SELECT plan FROM record WHERE seq = ?", (seq,)).fetchone()
        connection.execute("UPDATE part SET images = NULL WHERE record = ?", (seq,))
        connection.execute("UPDATE record SET bytes = 0, kept = 0, plan = ? WHERE seq = ?", (_without_texts(plan), seq))
    integrity.seal(connection, old[-AT_MOST:])
    return len(old[-AT_MOST:])


def _without_texts(stored: bytes | None) -> bytes | None:
    """A stored plan with its goal, tools and order, but nothing of what was to be written, found or asked; None when it cannot be read."""
    try:
        plan: dict[str, Any] = json.loads(zlib.decompress(stored or b""))
        steps = [{name: step[name] for name in _KEPT_OF_STEP if name in step} | {"args": {}} for step in plan["steps"]]
        kept = {name: plan[name] for name in _KEPT_OF_PLAN if name in plan} | {"steps": steps}
    except (zlib.error, ValueError, KeyError, TypeError):
        return None
    return zlib.compress(json.dumps(kept, ensure_ascii=False).encode(), 1)
