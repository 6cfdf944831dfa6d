"""Headings, tasks and block ids of a note, found by their first character, without a look at every line.

What a heading or a task is says markdown.py; this only finds the lines that can be one. `hidden` are the ranges of code and the like.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

from obsidian_agent.vault.markdown_lines import HEADING
from obsidian_agent.vault.markdown_lists import read_item
from obsidian_agent.vault.scan_blocks import NeedsBlocks
from obsidian_agent.vault.scan_model import BlockId, NoteHeading, NoteTask

Spans = Sequence[tuple[int, int]]

_HEADING: Final = re.compile(rb"\n( {0,3}#{1,6}(?:[ \t][^\n]*+)?)(?=\n|\Z)")
_BOX: Final = re.compile(rb"\[[^\]\n]{1,4}\](?=[ \t\r\n]|\Z)")
_BEFORE_BOX: Final = re.compile(rb"[ \t>]*+(?:[-*+]|([0-9]{1,9})[.)])[ \t]+")
_BEFORE_NUMBER: Final = re.compile(rb"\n?[ \t>]*+(?:[0-9]{1,9}[.)][ \t]|\r?\n|\Z)")
_BLOCK_ID: Final = re.compile(rb"\^([A-Za-z0-9-]++)[ \t]*+\r?(?=\n|\Z)")
_NEW_BLOCK: Final = re.compile(rb"\n[ \t>]*+(?:\r?\n|\Z|(?:[-*+]|[0-9]{1,9}[.)])[ \t]|#{1,6}[ \t]|```|~~~|\$\$|%%|<)|\n>|\Z")


class _Lines:
    """Line numbers of ascending offsets."""

    __slots__ = ("_at", "_data", "_line")

    def __init__(self, data: bytes) -> None:
        self._data, self._at, self._line = data, 0, 1

    def at(self, offset: int) -> int:
        self._line += self._data.count(b"\n", self._at, offset)
        self._at = offset
        return self._line


def headings(data: bytes, start: int, hidden: Spans) -> Iterator[NoteHeading]:
    """The headings marked with `#` from `start` on."""
    lines = _Lines(data)
    first = _HEADING.match(b"\n" + data[start : start + 1000].partition(b"\n")[0]) if start < 4 else None
    if first and (heading := _heading(first[1], lines.at(start), start)):
        yield heading
    for found in _HEADING.finditer(data, max(0, start - 1)):
        at = found.start(1)
        if (not hidden or not is_hidden(hidden, at)) and (heading := _heading(found[1], lines.at(at), at)):
            yield heading


def _heading(raw: bytes, line: int, start: int) -> NoteHeading | None:
    body = raw.decode().strip(" \t\r")
    mark = HEADING.match(body)
    if mark is None:
        return None
    return NoteHeading((mark["text"] or "").strip(), len(mark["marks"]), line, start, start + len(raw.rstrip(b"\r")))


def tasks(data: bytes, start: int, hidden: Spans) -> Iterator[NoteTask]:
    """The list items with a checkbox from `start` on."""
    lines = _Lines(data)
    for box in _BOX.finditer(data, start):
        line_start = max(start, data.rfind(b"\n", start, box.start()) + 1)
        lead = _BEFORE_BOX.fullmatch(data, line_start, box.start())
        if lead is None or is_hidden(hidden, line_start):
            continue
        if lead[1] and lead[1] != b"1" and not _BEFORE_NUMBER.match(data, max(0, data.rfind(b"\n", 0, line_start - 1)), line_start):
            raise NeedsBlocks
        end = data.find(b"\n", box.end())
        item = read_item(data[line_start : len(data) if end < 0 else end].decode().lstrip(" \t>").rstrip(" \t\r"))
        if item is not None and item.status is not None:
            yield NoteTask(item.status, item.text, lines.at(line_start))


def block_ids(data: bytes, start: int, hidden: Spans) -> Iterator[BlockId]:
    """The names of blocks from `start` on: at the end of the last line of a block, or alone in a line."""
    lines = _Lines(data)
    for found in _BLOCK_ID.finditer(data, start):
        at = found.start()
        if (at > start and data[at - 1] not in b" \t\n") or is_hidden(hidden, at) or not _NEW_BLOCK.match(data, found.end()):
            continue
        yield BlockId(found[1].decode(), at, found.end(1), lines.at(at))


def is_hidden(hidden: Spans, offset: int) -> bool:
    """Whether an offset is in one of some ascending ranges."""
    position = bisect_right(hidden, (offset, len(hidden) and hidden[-1][1]))
    return position > 0 and offset < hidden[position - 1][1]
