"""Making a thread's file smaller: what no state that can be come back to needs any more is left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from obsidian_agent.agent.threads.records import Record
from obsidian_agent.agent.threads.state import VERSIONS_KEPT

WORTH_IT: Final = 64
"""So many records must go before a file is written anew."""


def pruned(records: Sequence[Record]) -> list[Record] | None:
    """The records without what was superseded: pieces of answers that came to their end, and versions that are too old.

    None when that would not save much.
    """
    versions = [at for at, record in enumerate(records) if record["k"] == "version"]
    gone = {*versions[:-VERSIONS_KEPT], *_superseded(records)}
    return [record for at, record in enumerate(records) if at not in gone] if len(gone) >= WORTH_IT else None


def _superseded(records: Sequence[Record]) -> Iterator[int]:
    """Pieces of answers whose message is there; those of an answer that a crash cut off are all that there is of it."""
    pieces: list[int] = []
    for at, record in enumerate(records):
        match record["k"]:
            case "stream":
                pieces.append(at)
            case "message" if record.get("role") == "assistant":
                yield from pieces
                pieces.clear()
            case "asked" | "version":
                pieces.clear()
            case _:
                pass
