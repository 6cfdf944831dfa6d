"""The constructs that hide links and tags in a note: code, mathematics, HTML, comments.

They hide text as in Obsidian. The results of searches are remembered until the scan has reached
them, so that a text of nothing but opening marks takes no longer, byte by byte, than any other.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from obsidian_agent.expression import expression
from obsidian_agent.vault.markdown.blocks import BLANK_LINE, INDENTED, LineFinder, NeedsBlocks
from obsidian_agent.vault.markdown.lines import HTML_BLOCK

_NEWLINE: Final = ord("\n")

_PIPE: Final = expression(rb"(?<!\\)\|")
_TICKS_RUN: Final = expression(rb"`+")
_DOLLARS: Final = expression(rb"\\[\s\S]|(?<![ \t\n])(\$)(?![0-9])")
_TWO_DOLLARS: Final = expression(rb"\$\$")
_COMMENT_END: Final = expression(rb"-->")
_UNQUOTED_BLANK_LINE: Final = expression(rb"\n[ \t]*\r?(?=\n)")
_HTML_TAG: Final = expression(
    rb"""</?[A-Za-z][A-Za-z0-9-]*+
    (?>(?:\s++[A-Za-z_:][A-Za-z0-9_.:-]*+(?>(?:\s*+=\s*+(?:[^\s"'=<>`]++|'[^']*+'|"[^"]*+"))?))*)
    \s*+/?>""",
    re.VERBOSE,
)
_HTML_BLOCK: Final = expression(HTML_BLOCK.pattern.replace("$", r"\r?\Z").encode(), re.IGNORECASE)
_HTML_START: Final = expression(rb"<[A-Za-z/!?]")
_AUTOLINK: Final = expression(rb"<[A-Za-z][A-Za-z0-9+.\-]{1,31}:[^\s<>]*+>")


class HiddenSpans:
    """The ends of the constructs in one note that hide links and tags.

    Every method gets the offset of the first character of a construct, in ascending order, and
    returns the offset after the construct, or -1 if nothing is hidden there.

    If the borders between blocks are known, no inline construct crosses them. Otherwise the text is
    a whole note: blocks that begin in the first column and hide their lines count too, and
    `NeedsBlocks` is raised if a result depends on the end of another block.
    """

    def __init__(
        self, data: bytes, borders: Sequence[int] | None, tables: Sequence[tuple[int, int]]
    ) -> None:
        """Search in a note.

        Args:
            data: The bytes of the note.
            borders: The offsets at which blocks begin, ascending; None if they are unknown.
            tables: Ranges that may hold rows of tables, whose pipes are borders. Without `borders`.
        """
        self._data = data
        self.borders = borders
        self.tables = tables
        self.lines = LineFinder(data)
        self._ahead: dict[re.Pattern[bytes], tuple[int, int, int]] = {}
        self._runs: dict[int, list[int]] | None = None

    def next(self, pattern: re.Pattern[bytes], at: int) -> tuple[int, int]:
        """Return the span of the next match; one after the end of the note if there is none."""
        searched_from, start, end = self._ahead.get(pattern, (0, -1, -1))
        if not searched_from <= at <= start:
            match = pattern.search(self._data, at)
            while match and pattern is _DOLLARS and match[1] is None:
                match = pattern.search(self._data, match.end())
            start, end = match.span() if match else (len(self._data) + 1,) * 2
            self._ahead[pattern] = at, start, end
        return start, end

    def check_cells(self, start: int, end: int) -> None:
        """Raise NeedsBlocks if a construct has a pipe that may be the border of a table cell."""
        if _PIPE.search(self._data, start, end):
            table = bisect_right(self.tables, (start, len(self._data))) - 1
            if table >= 0 and start < self.tables[table][1]:
                raise NeedsBlocks

    def is_same_block(self, start: int, end: int) -> bool:
        """Return True if a construct may reach from `start` to `end`."""
        if end <= self.lines.end(start):
            return True
        if self.borders is not None:
            return bisect_right(self.borders, start) == bisect_right(self.borders, end - 1)
        if self.next(BLANK_LINE, start)[1] <= end:
            return False
        raise NeedsBlocks

    def limit(self, at: int, end: int) -> int:
        """Return the limit of an inline construct: the end of its block, else of its line."""
        if self.borders is None:
            return min(end, self.lines.end(at))
        border = bisect_right(self.borders, at)
        return min(end, self.borders[border]) if border < len(self.borders) else end

    def skip_block(self, start: int, end: int) -> int:
        """Return the end of a block. One that is indented, quoted or in a list needs the blocks."""
        if (start and self._data[start - 1] != _NEWLINE) or INDENTED.match(self._data, end):
            raise NeedsBlocks
        return end

    def ticks(self, at: int, run_end: int, end: int) -> int:
        """Return the end of the fence or the code span that a run of backticks opens."""
        if (
            self.borders is None
            and run_end - at >= 3
            and self.lines.can_open_block(at)
            and self._data.find(b"`", run_end, self.lines.end(at)) < 0
        ):
            return self._fence(at, run_end, b"`")
        return self.code(at, run_end, end)

    def tildes(self, at: int) -> int:
        """Return the end of the fence that three tildes open."""
        if self.borders is not None or not self.lines.can_open_block(at):
            return -1
        run_end = at
        while self._data.startswith(b"~", run_end):
            run_end += 1
        return self._fence(at, run_end, b"~")

    def _fence(self, at: int, run_end: int, mark: bytes) -> int:
        close = _closing_fence(mark, run_end - at).search(self._data, run_end)
        return self.skip_block(at, close.end() if close else len(self._data))

    def code(self, at: int, run_end: int, end: int) -> int:
        """Return the end of the code span that a run of backticks opens."""
        if self._runs is None:
            self._runs = {}
            for run in _TICKS_RUN.finditer(self._data, at):
                self._runs.setdefault(run.end() - run.start(), []).append(run.start())
        length = run_end - at
        runs = self._runs.get(length, [])
        following = bisect_right(runs, at)
        close = runs[following] + length if following < len(runs) else end + 1
        return close if close <= end and self.is_same_block(at, close) else -1

    def mathematics(self, at: int, end: int) -> int:
        """Return the end of mathematics between single or double dollars.

        An opening single dollar is not followed by a blank. The closing one is not preceded by a
        blank, nor followed by a digit.
        """
        data = self._data
        if data.startswith(b"$$", at):
            close, close_end = self.next(_TWO_DOLLARS, at + 2)
            is_closed = close_end <= end
            if (
                self.borders is None
                and (not is_closed or close > self.lines.end(at))
                and self.lines.can_open_block(at)
            ):
                return self.skip_block(at, line_end(data, close) if is_closed else len(data))
            return close_end if is_closed and self.is_same_block(at, close) else -1
        if at + 1 >= end or data[at + 1] in b" \t\r\n":
            return -1
        close_end = self.next(_DOLLARS, at + 1)[1]
        return close_end if close_end <= end and self.is_same_block(at, close_end) else -1

    def html(self, at: int, end: int) -> int:
        """Return the end of a tag, a comment, an autolink, or a block of HTML."""
        data = self._data
        if autolink := _AUTOLINK.match(data, at, end):
            return autolink.end()
        if self.borders is None and _HTML_START.match(data, at) and self.lines.can_open_block(at):
            return self._html_block(at)
        if data.startswith(b"<!--", at):
            close, close_end = self.next(_COMMENT_END, at + 4)
            return close_end if close_end <= end and self.is_same_block(at, close) else -1
        tag = _HTML_TAG.match(data, at, end)
        return tag.end() if tag and self.is_same_block(at, tag.end()) else -1

    def _html_block(self, at: int) -> int:
        data = self._data
        if data.startswith(b"<!--", at):
            close = data.find(b"-->", at + 4)
            return self.skip_block(at, len(data) if close < 0 else line_end(data, close))
        if not _HTML_BLOCK.match(data, at):
            raise NeedsBlocks
        blank = _UNQUOTED_BLANK_LINE.search(data, at)
        return self.skip_block(at, blank.end() if blank else len(data))


def line_end(data: bytes, at: int) -> int:
    """Return the offset of the next newline, or of the end of the data."""
    newline = data.find(b"\n", at)
    return len(data) if newline < 0 else newline


@lru_cache(maxsize=64)
def _closing_fence(mark: bytes, length: int) -> re.Pattern[bytes]:
    return re.compile(rb"\n {0,3}%s{%d,}[ \t]*\r?(?=\n|\Z)" % (mark, length))
