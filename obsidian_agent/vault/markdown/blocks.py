"""When the blocks of a note must be known to read its text, and what they are.

Most notes need no more than what begins and ends at the first column; `is_flat` tells them by a few quick searches. The others go through
the block structure of lines.py, from which `regions` makes ranges of text and the borders in it that nothing inline crosses.

Headings, tasks and block ids of a note, from the places where they may be.

What a heading or a list item is, lines.py says; nothing here looks at every line.
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

_LINE_OPENING: Final = expression(rb"(?>(?:[ \t>]|(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)*)")

INDENTED: Final = expression(rb"\n(?: {4}| {0,3}\t)(?=[ \t]*+[^ \t\r\n])")
"""The beginning of a line that is indented enough for code."""

# The lines that make a note more than flat, in one pass: indented enough for code (1), only marks that can underline (2), the row below
# the header of a table (3).
_LINE: Final = expression(
    rb"""\n(?:
    (?:\ {4}|\ {0,3}\t)(?=[ \t]*+[^ \t\r\n])()
    |\ {0,3}(?:=++|-++)[ \t]*+\r?(?=\n|\Z)()
    |[ \t>]*+(?:\|[ \t]*+:?-|:?-++:?[ \t]*+\|)()
    )""",
    re.VERBOSE,
)
_MARK: Final = rb"(?:[-*+]|[0-9]{1,9}[.)])"
# An item with a paragraph, which a line goes on however far it is indented: no rule, fence, heading, quote, HTML or comment.
_PLAIN_ITEM: Final = expression(
    rb"[ \t>]*+(?>(?:"
    + _MARK
    + rb"[ \t]+)+)(?!"
    + _MARK
    + rb"[ \t]*\r?\n|(?:[-*_][ \t]*){3,}\r?\n|```|~~~|<|\$\$|%%)[^\s#>]"
)
_FENCE: Final = expression(rb"[ \t]*+(?:```|~~~)")
_FIRST_LINE: Final = expression(rb" {4}| {0,3}\t")
_FAR: Final = rb"(?: {5}|(?=[ \t]*\t)[ \t]{2})"  # perhaps five columns: a tab is as wide as where it stands makes it
_ITEM_CODE: Final = expression(
    rb"(?:\n|\A)[ \t>]*+(?>(?:"
    + _MARK
    + rb"(?!"
    + _FAR
    + rb")[ \t]{1,4}(?=[-*+0-9>])(?>(?:>[ \t]*)*))*)"
    + _MARK
    + _FAR
)
_QUOTED_CODE: Final = expression(rb">(?: {5}| {0,4}\t)")
BLANK_LINE: Final = expression(rb"\n[ \t>]*\r?\n")
_DELIMITER: Final = expression(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?")
_RULED: Final = frozenset("-*_=")
_PIPE: Final = expression(r"\\[\s\S]|(\|)")
_PIPE_BYTE: Final = expression(rb"\\[\s\S]|(\|)")


class NeedsBlocks(Exception):
    """Where the blocks of the note end must be known to go on. A signal between scanners, never seen outside of them."""


class LineFinder:
    """The lines of ascending offsets. Each line is looked for once, however much there is in it."""

    __slots__ = ("_counted", "_data", "_end", "_number", "_opening", "_start")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._number, self._counted = 1, 0
        self._start, self._end, self._opening = 0, -1, -1

    def number(self, offset: int) -> int:
        """The line's number, from 1."""
        if offset > self._counted:
            self._number += self._data.count(b"\n", self._counted, offset)
            self._counted = offset
        return self._number

    def start(self, offset: int) -> int:
        """Where the line begins."""
        if not self._start <= offset <= self._end:
            self._start = self._data.rfind(b"\n", 0, offset) + 1
            newline = self._data.find(b"\n", offset)
            self._end = len(self._data) if newline < 0 else newline
            self._opening = -1
        return self._start

    def end(self, offset: int) -> int:
        """Where the line ends."""
        self.start(offset)
        return self._end

    def is_opened(self, offset: int) -> bool:
        """Whether a block can begin at an offset: only quote marks, list markers and blanks precede in the line."""
        start = self.start(offset)
        if self._opening < 0:
            opening = _LINE_OPENING.match(self._data, start, self._end)
            self._opening = opening.end() if opening else start
        return self._opening == offset


def flat_tables(data: bytes, start: int) -> list[tuple[int, int]]:
    """The ranges in which rows of tables may be, from `start` on, in a note in which only what begins in the first column hides lines.

    Raises NeedsBlocks when code may be hidden by its indentation, or a line of marks may make a heading of the one above. What else hides
    text can be told while reading: see `InlineScanner`.
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
    """A range of text that is read in one go; of a comment only the tags count."""

    start: int
    end: int
    comment: bool = False


def line_starts(data: bytes, lines: Sequence[Line], *, ascii_only: bool) -> list[int]:
    """The offset in bytes at which each line of the decoded note begins, and the end of the note."""
    if ascii_only:
        return [line.start for line in lines] + [len(data)]
    starts = [3 if data.startswith(b"\xef\xbb\xbf") else 0]
    for _ in lines:
        newline = data.find(b"\n", starts[-1])
        starts.append(len(data) if newline < 0 else newline + 1)
    return starts


def regions(
    data: bytes, lines: Sequence[Line], starts: Sequence[int]
) -> tuple[list[Region], list[int]]:
    """The visible text in order, and the offsets at which blocks begin in it; table cells are regions of their own."""
    return _Regions(data, lines, starts).cut()


class _Regions:
    """Cuts the lines of one note."""

    def __init__(self, data: bytes, lines: Sequence[Line], starts: Sequence[int]) -> None:
        self._data = data
        self._lines = lines
        self._starts = starts
        self._found: list[Region] = []
        self._borders: list[int] = []
        self._begin = -1
        self._block: list[int] = []

    def cut(self) -> tuple[list[Region], list[int]]:
        lines, starts, block = self._lines, self._starts, self._block
        for position, line in enumerate(lines):
            if line.hidden or line.opaque:
                self._end_block()
                self._end_region(starts[position])
                if line.comment:
                    self._found.append(Region(starts[position], starts[position + 1], comment=True))
                continue
            if self._begin < 0:
                self._begin = starts[position]
            body = line.body
            alone = not body or (body[0] == "#" and read_heading(body)) or self._is_rule(body)
            if alone or line.depth is not None or (block and line.quotes > lines[block[-1]].quotes):
                self._end_block()
                self._borders.append(starts[position])
            if alone:
                self._borders.append(starts[position + 1])
            else:
                block.append(position)
        self._end_block()
        self._end_region(starts[-1])
        return self._found, self._borders

    def _is_rule(self, body: str) -> bool:
        return body[0] in _RULED and bool(
            RULE.match(body) or (self._block and UNDERLINE.match(body))
        )

    def _end_region(self, end: int) -> None:
        if 0 <= self._begin < end:
            self._found.append(Region(self._begin, end))
        self._begin = -1

    def _end_block(self) -> None:
        """The lines of a block are complete: if there is a table in it, its cells are cut out."""
        block = self._block
        if len(block) > 1 and (header := _table(self._lines, block)) is not None:
            self._end_region(self._starts[block[header]])
            for position in (*block[header : header + 1], *block[header + 2 :]):
                self._found.extend(
                    _cells(self._data, self._starts[position], self._starts[position + 1])
                )
            self._begin = self._starts[block[-1] + 1]
        block.clear()


def _cells(data: bytes, start: int, end: int) -> Iterator[Region]:
    for mark in _PIPE_BYTE.finditer(data, start, end):
        if mark[1]:
            yield Region(start, mark.start())
            start = mark.end()
    yield Region(start, end)


def _table(lines: Sequence[Line], block: Sequence[int]) -> int | None:
    """Where in a block the header row of a table is."""
    for index in range(1, len(block)):
        body = lines[block[index]].body
        if body[0] in "|:-" and _DELIMITER.fullmatch(body):
            above = lines[block[index - 1]].body
            item = ITEM.match(above) if lines[block[index - 1]].depth is not None else None
            row = item["rest"] if item else above
            if row and "|" in body + row and _columns(body) == _columns(row):
                return index - 1
    return None


def _columns(row: str) -> int:
    """How many cells a row has; a pipe at its beginning and one at its end are no border between cells."""
    inner = row.strip().removeprefix("|")
    pipes = [mark.end() for mark in _PIPE.finditer(inner) if mark[1]]
    return len(pipes) + (0 if pipes and pipes[-1] == len(inner) else 1)


_NEW_BLOCK: Final = expression(
    rb"[ \t]*\r?\n(?:[ \t>]*+(?:\r?\n|\Z|(?:[-*+]|[0-9]{1,9}[.)])[ \t]|#{1,6}[ \t]|```|~~~|\$\$|%%|<)|>)|\s*\Z"
)


def headings(data: bytes, start: int, marks: Iterable[int]) -> Iterator[NoteHeading]:
    """The headings that begin with the `#` at some offsets."""
    lines = LineFinder(data)
    for at in marks:
        line_start = max(start, lines.start(at))
        if at - line_start > 3 or data[line_start:at].strip(b" "):
            continue
        raw = data[at : lines.end(at)]
        if found := read_heading(raw.rstrip(b" \t\r").decode()):
            yield NoteHeading(
                *found, lines.number(at), line_start, at + len(raw) - raw.endswith(b"\r")
            )


def tasks(data: bytes, boxes: Iterable[tuple[int, int]]) -> Iterator[NoteTask]:
    """The list items whose line and checkbox are at some offsets."""
    lines = LineFinder(data)
    for line_start, at in boxes:
        status, _, text = data[at + 1 : lines.end(at)].decode().partition("]")
        yield NoteTask(status, without_block_id(text), lines.number(line_start))


def block_ids(data: bytes, start: int, places: Iterable[tuple[int, int]]) -> Iterator[BlockId]:
    """The names of blocks among what looks like one: at the end of the last line of a block, or alone in a line."""
    lines = LineFinder(data)
    for at, end in places:
        if (at == start or data[at - 1] in b" \t\n") and _NEW_BLOCK.match(data, end):
            yield BlockId(data[at + 1 : end].decode(), at, end, lines.number(at))
