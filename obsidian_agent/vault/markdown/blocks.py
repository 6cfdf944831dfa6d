"""The block structure of a note, and the headings, tasks and block ids in it.

Most notes are flat: only what begins and ends in the first column hides lines. A few quick searches
can tell (`flat_tables`), and their blocks need not be known. Other notes are read line by line
(`lines.py`). `regions` then returns the ranges of visible text, with the borders between blocks
that no inline construct crosses. Headings, tasks and block ids are read at given positions, so that
no line is read again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from obsidian_agent.expression import expression
from obsidian_agent.vault.markdown.lines import (
    ITEM,
    RULE,
    UNDERLINE,
    Line,
    read_heading,
    without_block_id,
)
from obsidian_agent.vault.markdown.model import BlockId, NoteHeading, NoteTask
from obsidian_agent.vault.text import BOM

_BOM: Final = BOM.encode()
_LINE_OPENING: Final = expression(rb"(?>(?:[ \t>]|(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)*)")

INDENTED: Final = expression(rb"\n(?: {4}| {0,3}\t)(?=[ \t]*+[^ \t\r\n])")
"""The beginning of a line that is indented enough for code."""

BLANK_LINE: Final = expression(rb"\n[ \t>]*\r?\n")

# Lines that may make a note more than flat: indented enough for code (1), only marks that can
# underline a heading (2), or the delimiter row of a table (3).
_LINE: Final = expression(
    rb"""\n(?:
    (?:\ {4}|\ {0,3}\t)(?=[ \t]*+[^ \t\r\n])()
    |\ {0,3}(?:=++|-++)[ \t]*+\r?(?=\n|\Z)()
    |[ \t>]*+(?:\|[ \t]*+:?-|:?-++:?[ \t]*+\|)()
    )""",
    re.VERBOSE,
)
_ITEM_MARK: Final = rb"(?:[-*+]|[0-9]{1,9}[.)])"
# An item with a paragraph: no rule, fence, heading, quote, HTML or comment. The next line continues
# the paragraph, whatever its indentation.
_PLAIN_ITEM: Final = expression(
    rb"[ \t>]*+(?>(?:%(mark)s[ \t]+)+)"
    rb"(?!%(mark)s[ \t]*\r?\n|(?:[-*_][ \t]*){3,}\r?\n|```|~~~|<|\$\$|%%%%)[^\s#>]"
    % {b"mark": _ITEM_MARK}
)
_FENCE: Final = expression(rb"[ \t]*+(?:```|~~~)")
_FIRST_LINE: Final = expression(rb" {4}| {0,3}\t")
# Possibly five columns: the width of a tab depends on its position.
_FAR: Final = rb"(?: {5}|(?=[ \t]*\t)[ \t]{2})"
_ITEM_CODE: Final = expression(
    rb"(?:\n|\A)[ \t>]*+"
    rb"(?>(?:%(mark)s(?!%(far)s)[ \t]{1,4}(?=[-*+0-9>])(?>(?:>[ \t]*)*))*)"
    rb"%(mark)s%(far)s" % {b"mark": _ITEM_MARK, b"far": _FAR}
)
_QUOTED_CODE: Final = expression(rb">(?: {5}| {0,4}\t)")
_DELIMITER: Final = expression(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?")
_RULE_MARKS: Final = frozenset("-*_=")
_PIPE: Final = expression(r"\\[\s\S]|(\|)")
_PIPE_BYTE: Final = expression(rb"\\[\s\S]|(\|)")
_NEW_BLOCK: Final = expression(
    rb"[ \t]*\r?\n"
    rb"(?:[ \t>]*+"
    rb"(?:\r?\n|\Z|(?:[-*+]|[0-9]{1,9}[.)])[ \t]|#{1,6}[ \t]|```|~~~|\$\$|%%|<)"
    rb"|>)"
    rb"|\s*\Z"
)
"""The end of a block, after its last character."""


class NeedsBlocks(Exception):
    """Raised if the ends of blocks must be known to continue a scan. The scanners handle it."""


class LineFinder:
    """The lines of offsets, given in ascending order. Each line is searched for once only."""

    __slots__ = ("_counted", "_data", "_end", "_number", "_opening", "_start")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._number, self._counted = 1, 0
        self._start, self._end, self._opening = 0, -1, -1

    def number(self, offset: int) -> int:
        """Return the number of the line, from 1."""
        if offset > self._counted:
            self._number += self._data.count(b"\n", self._counted, offset)
            self._counted = offset
        return self._number

    def start(self, offset: int) -> int:
        """Return the offset at which the line begins."""
        if not self._start <= offset <= self._end:
            self._start = self._data.rfind(b"\n", 0, offset) + 1
            newline = self._data.find(b"\n", offset)
            self._end = len(self._data) if newline < 0 else newline
            self._opening = -1
        return self._start

    def end(self, offset: int) -> int:
        """Return the offset at which the line ends, before its newline."""
        self.start(offset)
        return self._end

    def can_open_block(self, offset: int) -> bool:
        """Return True if a block can begin at an offset.

        Only quote marks, list markers and blanks may precede it in the line.
        """
        start = self.start(offset)
        if self._opening < 0:
            opening = _LINE_OPENING.match(self._data, start, self._end)
            self._opening = opening.end() if opening else start
        return self._opening == offset


def flat_tables(data: bytes, start: int) -> list[tuple[int, int]]:
    """Return the ranges that may hold rows of tables, from `start` on, in a flat note.

    Raises NeedsBlocks if indentation may hide code, or a line of marks may make a heading of the
    line above. Other constructs that hide text are handled by `InlineScanner`.
    """
    if (start == 3 and data[0] > 127) or _FIRST_LINE.match(data, start):
        raise NeedsBlocks
    before = max(0, start - 1)
    if (b"     " in data or b"\t" in data) and (
        _ITEM_CODE.search(data, before) or _QUOTED_CODE.search(data, before)
    ):
        raise NeedsBlocks
    tables: list[tuple[int, int]] = []
    for line in _LINE.finditer(data, start):
        at = line.start()
        above = max(start, data.rfind(b"\n", start, at) + 1)
        if line.lastindex == 1:
            if not _PLAIN_ITEM.match(data, above) or _FENCE.match(data, line.end()):
                raise NeedsBlocks
        elif line.lastindex == 3:
            if tables and at < tables[-1][1]:
                continue
            blank = BLANK_LINE.search(data, line.end())
            tables.append((above, blank.start() if blank else len(data)))
        elif data[above:at].strip(b" \t\r"):
            raise NeedsBlocks
    return tables


class Region(NamedTuple):
    """A range of text that is scanned at once. Only the tags of a comment count."""

    start: int
    end: int
    comment: bool = False


def line_starts(data: bytes, lines: Sequence[Line], *, ascii_only: bool) -> list[int]:
    """Return the byte offset at which each line begins, and the end of the note."""
    if ascii_only:
        return [line.start for line in lines] + [len(data)]
    starts = [len(_BOM) if data.startswith(_BOM) else 0]
    for _ in lines:
        newline = data.find(b"\n", starts[-1])
        starts.append(len(data) if newline < 0 else newline + 1)
    return starts


def regions(
    data: bytes, lines: Sequence[Line], starts: Sequence[int]
) -> tuple[list[Region], list[int]]:
    """Return the regions of visible text in order, and the offsets at which blocks begin in them.

    Each cell of a table is a region.
    """
    return _Splitter(data, lines, starts).split()


class _Splitter:
    """The division of the lines of one note into regions."""

    def __init__(self, data: bytes, lines: Sequence[Line], starts: Sequence[int]) -> None:
        self._data = data
        self._lines = lines
        self._starts = starts
        self._regions: list[Region] = []
        self._borders: list[int] = []
        self._region_start = -1
        self._block: list[int] = []
        """The lines of the current block, as indices."""

    def split(self) -> tuple[list[Region], list[int]]:
        lines, starts, block = self._lines, self._starts, self._block
        for position, line in enumerate(lines):
            if line.hidden or line.opaque:
                self._end_block()
                self._end_region(starts[position])
                if line.comment:
                    self._regions.append(
                        Region(starts[position], starts[position + 1], comment=True)
                    )
                continue
            if self._region_start < 0:
                self._region_start = starts[position]
            body = line.body
            is_alone = not body or (body[0] == "#" and read_heading(body)) or self._is_rule(body)
            begins_quote = block and line.quotes > lines[block[-1]].quotes
            if is_alone or line.depth is not None or begins_quote:
                self._end_block()
                self._borders.append(starts[position])
            if is_alone:
                self._borders.append(starts[position + 1])
            else:
                block.append(position)
        self._end_block()
        self._end_region(starts[-1])
        return self._regions, self._borders

    def _is_rule(self, body: str) -> bool:
        if body[0] not in _RULE_MARKS:
            return False
        return bool(RULE.match(body) or (self._block and UNDERLINE.match(body)))

    def _end_region(self, end: int) -> None:
        if 0 <= self._region_start < end:
            self._regions.append(Region(self._region_start, end))
        self._region_start = -1

    def _end_block(self) -> None:
        """Complete a block. If it contains a table, add the cells as regions."""
        block = self._block
        if len(block) > 1 and (header := _table(self._lines, block)) is not None:
            self._end_region(self._starts[block[header]])
            for position in (block[header], *block[header + 2 :]):
                self._regions.extend(
                    _cells(self._data, self._starts[position], self._starts[position + 1])
                )
            self._region_start = self._starts[block[-1] + 1]
        block.clear()


def _cells(data: bytes, start: int, end: int) -> Iterator[Region]:
    for mark in _PIPE_BYTE.finditer(data, start, end):
        if mark[1]:
            yield Region(start, mark.start())
            start = mark.end()
    yield Region(start, end)


def _table(lines: Sequence[Line], block: Sequence[int]) -> int | None:
    """Return the index of the header row of a table in a block, or None without a table."""
    for index in range(1, len(block)):
        body = lines[block[index]].body
        if body[0] in "|:-" and _DELIMITER.fullmatch(body):
            above = lines[block[index - 1]].body
            item = ITEM.match(above) if lines[block[index - 1]].depth is not None else None
            row = item["rest"] if item else above
            if row and "|" in body + row and _cell_count(body) == _cell_count(row):
                return index - 1
    return None


def _cell_count(row: str) -> int:
    """Count the cells of a row. A pipe at its beginning or end is not a border between cells."""
    inner = row.strip().removeprefix("|")
    pipes = [mark.end() for mark in _PIPE.finditer(inner) if mark[1]]
    if pipes and pipes[-1] == len(inner):
        return len(pipes)
    return len(pipes) + 1


def headings(data: bytes, start: int, marks: Iterable[int]) -> Iterator[NoteHeading]:
    """Yield the headings whose first `#` is at one of the offsets `marks`."""
    lines = LineFinder(data)
    for at in marks:
        line_start = max(start, lines.start(at))
        if at - line_start > 3 or data[line_start:at].strip(b" "):
            continue
        raw = data[at : lines.end(at)]
        if heading := read_heading(raw.rstrip(b" \t\r").decode()):
            end = at + len(raw) - raw.endswith(b"\r")
            yield NoteHeading(*heading, lines.number(at), line_start, end)


def tasks(data: bytes, boxes: Iterable[tuple[int, int]]) -> Iterator[NoteTask]:
    """Yield the tasks among list items, given as offsets of their line and their checkbox."""
    lines = LineFinder(data)
    for line_start, at in boxes:
        status, _, text = data[at + 1 : lines.end(at)].decode().partition("]")
        yield NoteTask(status, without_block_id(text), lines.number(line_start))


def block_ids(data: bytes, start: int, candidates: Iterable[tuple[int, int]]) -> Iterator[BlockId]:
    """Yield the block ids among candidates, given as ranges from `^`.

    A block id ends the last line of a block, or is alone in a line.
    """
    lines = LineFinder(data)
    for at, end in candidates:
        if (at == start or data[at - 1] in b" \t\n") and _NEW_BLOCK.match(data, end):
            yield BlockId(data[at + 1 : end].decode(), at, end, lines.number(at))
