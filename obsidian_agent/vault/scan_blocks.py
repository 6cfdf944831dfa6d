"""When the blocks of a note must be known to read its text, and what they are.

Most notes need no more than their fences; `is_flat` tells them by a few quick searches. The others go through the block structure of
markdown_lines.py, from which `leaves` cuts the pieces that no inline construct leaves: paragraphs, headings, list items, table cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from obsidian_agent.vault.markdown_lines import HEADING, ITEM, RULE, UNDERLINE, Line

_TABLE: Final = re.compile(rb"\n[ \t>]*(?:\|[ \t]*:?-|:?-+:?[ \t]*\|)")
_ITEM: Final = rb"[ \t>]*+(?:[-*+]|[0-9]{1,9}[.)])[ \t]+(?!(?:[-*+]|[0-9]{1,9}[.)])[ \t]*\r?\n)[^\s#>]"
_INDENTED: Final = re.compile(rb"(?:\n|\A)(?!" + _ITEM + rb")[^\n]*\n {0,3}(?:\t| {4})")
_INDENTATION: Final = re.compile(rb"\n?(?: {4}| {0,3}\t)")
_ITEM_CODE: Final = re.compile(rb"(?:\n|\A)[ \t>]*(?:[-*+]|[0-9]{1,9}[.)])(?: {5}| *\t *\t| {4}\t)")
_QUOTED_CODE: Final = re.compile(rb">(?: {5}| {0,4}\t)")
_UNDERLINED: Final = re.compile(rb"[^\s][ \t]*\r?\n[ \t]{0,3}(?:=+|-+)[ \t]*\r?(?:\n|\Z)")
_DELIMITER: Final = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?")
_RULED: Final = frozenset("-*_=")
_PIPE: Final = re.compile(r"\\[\s\S]|(\|)")
_PIPE_BYTE: Final = re.compile(rb"\\[\s\S]|(\|)")


class NeedsBlocks(Exception):
    """Where the blocks of the note end must be known to go on. A signal between scanners, never seen outside of them."""


class Leaf(NamedTuple):
    """A piece of text that no inline construct leaves; of a comment only the tags count."""

    start: int
    end: int
    comment: bool = False


def is_flat(data: bytes, start: int) -> bool:
    """Whether only fences, and what an `InlineScanner` can tell, hide text from `start` on. False says nothing."""
    before = max(0, start - 1)
    if b"%%" in data or _INDENTATION.match(data, start) or (start == 3 and data[0] > 127):
        return False
    if (b"\n   " in data or b"\t" in data) and _INDENTED.search(data, before):
        return False
    if (b"     " in data or b"\t" in data) and _ITEM_CODE.search(data, before):
        return False
    if b"|" in data and _TABLE.search(data, before):
        return False
    return not ((b">    " in data or b">\t" in data) and _QUOTED_CODE.search(data, before)) and not _UNDERLINED.search(data, before)


def line_starts(data: bytes, lines: Sequence[Line], *, ascii_only: bool) -> list[int]:
    """The offset in bytes at which each line of the decoded note begins, and the end of the note."""
    if ascii_only:
        return [line.start for line in lines] + [len(data)]
    starts = [3 if data.startswith(b"\xef\xbb\xbf") else 0]
    for _ in lines:
        newline = data.find(b"\n", starts[-1])
        starts.append(len(data) if newline < 0 else newline + 1)
    return starts


def leaves(data: bytes, lines: Sequence[Line], starts: Sequence[int]) -> Iterator[Leaf]:
    """The pieces of a note's text in order."""
    block: list[int] = []
    for position, line in enumerate(lines):
        heading = not line.hidden and line.body.startswith("#") and HEADING.match(line.body)
        rule = not line.hidden and line.body[:1] in _RULED and (RULE.match(line.body) or (block and UNDERLINE.match(line.body)))
        apart = line.hidden or not line.body or heading or rule or line.depth is not None
        if block and (apart or line.quotes > lines[block[-1]].quotes):
            yield from _cells(data, lines, starts, block)
            block = []
        if heading or (line.hidden and line.comment):
            yield Leaf(starts[position], starts[position + 1], comment=line.hidden)
        elif line.body and not (line.hidden or line.opaque or rule):
            block.append(position)
    if block:
        yield from _cells(data, lines, starts, block)


def hidden_spans(lines: Sequence[Line], starts: Sequence[int]) -> list[tuple[int, int]]:
    """The lines that are no Markdown, as ranges of bytes."""
    return [(starts[position], starts[position + 1]) for position, line in enumerate(lines) if line.hidden]


def _cells(data: bytes, lines: Sequence[Line], starts: Sequence[int], block: Sequence[int]) -> Iterator[Leaf]:
    """A block as it is, or what precedes the table in it and the table's cells."""
    header = _table(lines, block)
    if header is None:
        yield Leaf(starts[block[0]], starts[block[-1] + 1])
        return
    if header:
        yield Leaf(starts[block[0]], starts[block[header]])
    for position in (*block[header : header + 1], *block[header + 2 :]):
        start, end = starts[position], starts[position + 1]
        for mark in _PIPE_BYTE.finditer(data, start, end):
            if mark[1]:
                yield Leaf(start, mark.start())
                start = mark.end()
        yield Leaf(start, end)


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
