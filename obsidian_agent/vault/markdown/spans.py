"""Where the constructs end that hide links and tags: code, mathematics, HTML, comments.

An offset that is asked for is that of the construct's first character; the answer is the offset behind it, or -1 when nothing is hidden
there. The borders between blocks, which nothing inline crosses, are known; or the text is a whole note of which nothing is known. Then
the blocks that begin in the first column and hide their lines count too, and whatever depends on where another block ends raises
`NeedsBlocks`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from obsidian_agent.vault.markdown.blocks import INDENTED, NeedsBlocks, opens_line
from obsidian_agent.vault.markdown.lines import HTML_BLOCK

_PIPE: Final = re.compile(rb"(?<!\\)\|")
_TICK_RUN: Final = re.compile(rb"`+")
_DOLLARS: Final = re.compile(rb"\\[\s\S]|(?<![ \t\n])\$(?![0-9])")
BLANK_LINE: Final = re.compile(rb"\n[ \t>]*\r?\n")
_UNQUOTEDBLANK_LINE: Final = re.compile(rb"\n[ \t]*\r?(?=\n)")
_HTML_TAG: Final = re.compile(
    rb"""</?[A-Za-z][A-Za-z0-9-]*+
    (?:\s++[A-Za-z_:][A-Za-z0-9_.:-]*+(?:\s*+=\s*+(?:[^\s"'=<>`]++|'[^']*+'|"[^"]*+"))?+)*+
    \s*+/?>""",
    re.VERBOSE,
)
_HTML_BLOCK: Final = re.compile(HTML_BLOCK.pattern.replace("$", r"\r?\Z").encode(), re.IGNORECASE)
_HTML_START: Final = re.compile(rb"<[A-Za-z/!?]")
_AUTOLINK: Final = re.compile(rb"<[A-Za-z][A-Za-z0-9+.\-]{1,31}:[^\s<>]*+>")


class HiddenSpans:
    """The hiding constructs of one note. What is known to be closed nowhere is not looked for again, so that hostile notes cost no more."""

    def __init__(self, data: bytes, borders: Sequence[int] | None, tables: Sequence[tuple[int, int]]) -> None:
        """`borders` are the offsets at which blocks begin, ascending; None when they are not known. Then `tables` are the ranges in which
        there may be rows of tables, whose pipes are borders."""
        self._data = data
        self.borders = borders
        self.tables = tables
        self._hopeless: dict[tuple[int, int], int] = {}

    def keep_cells(self, start: int, end: int) -> None:
        """Raises NeedsBlocks when a construct has a pipe in it where that may be the border of a table's cell."""
        if _PIPE.search(self._data, start, end) and any(first <= start < last for first, last in self.tables):
            raise NeedsBlocks

    def same_block(self, at: int, to: int) -> bool:
        """Whether a construct may reach from one place to another. Raises NeedsBlocks when only the blocks can tell."""
        if self._data.find(b"\n", at, to) < 0:
            return True
        if self.borders is not None:
            return bisect_right(self.borders, at) == bisect_right(self.borders, to - 1)
        if BLANK_LINE.search(self._data, at, to):
            return False
        raise NeedsBlocks

    def limit(self, at: int, end: int) -> int:
        """How far an inline construct may reach: to the end of the block, or of the line when that is not known."""
        if self.borders is None:
            return min(end, self.end_of_line(at))
        border = bisect_right(self.borders, at)
        return min(end, self.borders[border]) if border < len(self.borders) else end

    def end_of_line(self, at: int) -> int:
        """Where the line of an offset ends."""
        newline = self._data.find(b"\n", at)
        return len(self._data) if newline < 0 else newline

    def pass_over(self, at: int, behind: int) -> int:
        """Behind a block that begins at a line's start; one that is indented, quoted or in a list needs the blocks."""
        if (at and self._data[at - 1] != 10) or INDENTED.match(self._data, behind):
            raise NeedsBlocks
        return behind

    def ticks(self, at: int, behind: int, end: int) -> int:
        """The fence or the code span that a run of backticks opens."""
        may_fence = self.borders is None and behind - at >= 3 and opens_line(self._data, at)
        if may_fence and b"`" not in self._data[behind : self.end_of_line(behind)]:
            return self._fence(at, behind, b"`")
        return self.code(at, behind, end)

    def tildes(self, at: int) -> int:
        """The fence that three tildes open."""
        if self.borders is not None or not opens_line(self._data, at):
            return -1
        behind = at
        while self._data.startswith(b"~", behind):
            behind += 1
        return self._fence(at, behind, b"~")

    def _fence(self, at: int, behind: int, mark: bytes) -> int:
        close = _closing_fence(mark, behind - at).search(self._data, behind)
        return self.pass_over(at, close.end() if close else len(self._data))

    def code(self, at: int, behind: int, end: int) -> int:
        """The code span that a run of backticks opens."""
        length = behind - at
        if self._hopeless.get((length, end), end) <= at:
            return -1
        for run in _TICK_RUN.finditer(self._data, behind, end):
            if run.end() - run.start() == length:
                return run.end() if self.same_block(at, run.end()) else -1
        self._hopeless[length, end] = at
        return -1

    def mathematics(self, at: int, end: int) -> int:
        """Mathematics between single or double dollars. A single one opens before no blank, and closes behind no blank and before no
        digit."""
        data = self._data
        if data.startswith(b"$$", at):
            close = data.find(b"$$", at + 2, end)
            if self.borders is None and (close < 0 or data.find(b"\n", at, close) >= 0) and opens_line(data, at):
                return self.pass_over(at, len(data) if close < 0 else self.end_of_line(close))
            return close + 2 if close >= 0 and self.same_block(at, close) else -1
        if self._hopeless.get((0, end), end) <= at or at + 1 >= end or data[at + 1] in b" \t\r\n":
            return -1
        for dollar in _DOLLARS.finditer(data, at + 1, end):
            if data[dollar.start()] == 36:
                return dollar.end() if self.same_block(at, dollar.end()) else -1
        self._hopeless[0, end] = at
        return -1

    def html(self, at: int, end: int) -> int:
        """A tag, a comment, an address in angle brackets, or a block of HTML."""
        data = self._data
        if found := _AUTOLINK.match(data, at, end):
            return found.end()
        if self.borders is None and _HTML_START.match(data, at) and opens_line(data, at):
            return self._html_block(at)
        if data.startswith(b"<!--", at):
            close = data.find(b"-->", at + 4, end)
            return close + 3 if close >= 0 and self.same_block(at, close) else -1
        found = _HTML_TAG.match(data, at, end)
        return found.end() if found and self.same_block(at, found.end()) else -1

    def _html_block(self, at: int) -> int:
        data = self._data
        if data.startswith(b"<!--", at):
            close = data.find(b"-->", at + 4)
            return self.pass_over(at, len(data) if close < 0 else self.end_of_line(close))
        if not _HTML_BLOCK.match(data, at):
            raise NeedsBlocks
        blank = _UNQUOTEDBLANK_LINE.search(data, at)
        return self.pass_over(at, blank.end() if blank else len(data))


@lru_cache(maxsize=64)
def _closing_fence(mark: bytes, length: int) -> re.Pattern[bytes]:
    return re.compile(rb"\n {0,3}%s{%d,}[ \t]*\r?(?=\n|\Z)" % (mark, length))
