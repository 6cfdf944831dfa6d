"""The marks that git leaves around two versions of some lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from msgspec import Struct

from obsidian_agent.vault.frontmatter.properties import find_frontmatter
from obsidian_agent.vault.markdown.lines import scan
from obsidian_agent.vault.text import split_lines

Side = Literal["both", "upper", "lower"]
_Part = Literal["both", "upper", "base", "lower"]

_NEXT: Final[dict[tuple[_Part, str], _Part]] = {
    ("both", "<<<<<<<"): "upper",
    ("upper", "|||||||"): "base",
    ("upper", "======="): "lower",
    ("base", "======="): "lower",
    ("lower", ">>>>>>>"): "both",
}
"""The part of a conflict that a mark begins."""


class _Mark(Struct, frozen=True):
    """A line that ends a part of a conflict and begins another."""

    part: _Part


def has_conflicts(text: str) -> bool:
    """Return whether a text has complete conflicts outside of code, or within its properties."""
    if resolved(text, "both") == text:
        return False
    front = find_frontmatter(text)
    start = front.body_start if front is not None else 0
    return any(
        line.body.startswith("<<<<<<<") and (line.start < start or not line.hidden)
        for line in scan(text)
    )


def resolved(text: str, side: Side) -> str:
    """Return a text with one side of each conflict, or the lines of both; the same if it has none.

    A text with an incomplete conflict is returned unchanged too.
    """
    lines: list[str] = []
    part: _Part = "both"
    for line in _parts(text):
        if isinstance(line, _Mark):
            part = line.part
        elif part in ("both", side) or (side == "both" and part != "base"):
            lines.append(line)
    return "".join(lines) if part == "both" else text


def _parts(text: str) -> Iterator[str | _Mark]:
    part: _Part = "both"
    for line in split_lines(text):
        mark = line[:7]
        following = _NEXT.get((part, mark)) if line[7:8] in ("", " ", "\r", "\n") else None
        if following is None:
            yield line
        else:
            part = following
            yield _Mark(following)
