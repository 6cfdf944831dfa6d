"""The table that `make bench` prints and that bench/NOTES.md records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One figure and its baseline. `ratio` is the median of ours over the baseline's, by pairs."""

    what: str
    figure: str
    ours: str
    baseline: str
    theirs: str
    ratio: float | None
    goal: str


def markdown(rows: Sequence[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = [
        "| what | figure | ours | baseline | theirs | ratio | goal |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        cells = (row.what, row.figure, row.ours, row.baseline, row.theirs, ratio, row.goal)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
