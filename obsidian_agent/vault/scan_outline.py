"""Headings, tasks and block ids of a note, from the places where they may be.

What a heading or a list item is, markdown.py says; nothing here looks at every line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from obsidian_agent.vault.markdown_lines import HEADING
from obsidian_agent.vault.markdown_lists import without_block_id
from obsidian_agent.vault.scan_model import BlockId, NoteHeading, NoteTask

_NEW_BLOCK: Final = re.compile(rb"[ \t]*\r?\n(?:[ \t>]*+(?:\r?\n|\Z|(?:[-*+]|[0-9]{1,9}[.)])[ \t]|#{1,6}[ \t]|```|~~~|\$\$|%%|<)|>)|\s*\Z")
_INDENTED: Final = (b"", b" ", b"  ", b"   ")


class _Lines:
    """Line numbers and ends of ascending offsets."""

    __slots__ = ("_at", "_data", "_line")

    def __init__(self, data: bytes) -> None:
        self._data, self._at, self._line = data, 0, 1

    def number(self, offset: int) -> int:
        self._line += self._data.count(b"\n", self._at, offset)
        self._at = offset
        return self._line

    def end(self, offset: int) -> int:
        newline = self._data.find(b"\n", offset)
        return len(self._data) if newline < 0 else newline


def headings(data: bytes, start: int, marks: Iterable[int]) -> Iterator[NoteHeading]:
    """The headings that begin with the `#` at some offsets."""
    lines = _Lines(data)
    for at in marks:
        line_start = at
        if at > start and data[at - 1] != 10:
            line_start = max(start, data.rfind(b"\n", start, at) + 1)
            if data[line_start:at] not in _INDENTED:
                continue
        raw = data[at : lines.end(at)]
        text = raw.rstrip(b" \t\r").decode()
        if text[-1] == "#" and (mark := HEADING.match(text)):
            title, level = mark["text"] or "", len(mark["marks"])
        else:
            title = text.lstrip("#")
            level = len(text) - len(title)
        end = at + len(raw) - raw.endswith(b"\r")
        yield NoteHeading(title.strip(), level, lines.number(at), line_start, end)


def tasks(data: bytes, boxes: Iterable[tuple[int, int]]) -> Iterator[NoteTask]:
    """The list items whose line and checkbox are at some offsets."""
    lines = _Lines(data)
    for line_start, at in boxes:
        status, _, text = data[at + 1 : lines.end(at)].decode().partition("]")
        yield NoteTask(status, without_block_id(text), lines.number(line_start))


def block_ids(data: bytes, start: int, places: Iterable[tuple[int, int]]) -> Iterator[BlockId]:
    """The names of blocks among what looks like one: at the end of the last line of a block, or alone in a line."""
    lines = _Lines(data)
    for at, end in places:
        if (at == start or data[at - 1] in b" \t\n") and _NEW_BLOCK.match(data, end):
            yield BlockId(data[at + 1 : end].decode(), at, end, lines.number(at))
