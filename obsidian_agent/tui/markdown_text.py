"""Markdown of an answer as styled text, without clickable links, images or HTML.

One text in one widget keeps a long conversation fast: Textual's Markdown mounts a widget for every
paragraph. `Splitter` divides a streamed answer into parts, so that only its end is drawn again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct
from textual.content import Content

from obsidian_agent import terminal_text

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

Piece = tuple[str, str] | Content

_HEADINGS = {"h1": "bold $primary", "h2": "bold $primary"}
_MARKS = {
    "strong_open": "bold",
    "em_open": "italic",
    "s_open": "strike",
    "link_open": "$secondary underline",
}
MAX_CELL_WIDTH = 40
"""Columns of a table cell beyond which the next one is no longer aligned."""

MAX_DEPTH = 8
"""Nesting of lists and quotes beyond which the indent does not grow."""

MIN_PART = 600
"""Characters after which a part ends at the next paragraph."""

MAX_PART = 3_000
"""Characters after which a part ends at the next line or, in an endless line, at a word."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


def render(text: str) -> Content:
    """Return styled text for a Markdown answer, with unsafe characters replaced."""
    try:
        tokens = _parser().parse(terminal_text.block(text))
    except RecursionError:
        return Content(terminal_text.block(text))
    writer = _Writer()
    for token in tokens:
        writer.write(token)
    return writer.content()


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False, "maxNesting": 40}).enable(
        ["table", "strikethrough"]
    )


class _Writer:
    """Renders the flat list of block tokens as lines."""

    def __init__(self) -> None:
        self._pieces: list[Piece] = []
        self._lists: list[int | None] = []
        self._quotes = 0
        self._bullet = ""
        self._style = ""
        self._in_cell = False
        self._rows: list[list[Content]] = []
        self._outside: list[Piece] = []

    def content(self) -> Content:
        return Content.assemble(*self._pieces).rstrip()

    def write(self, token: Token) -> None:
        match token.type:
            case "heading_open":
                self._style = _HEADINGS.get(token.tag, "bold")
            case "heading_close":
                self._style = ""
            case "bullet_list_open":
                self._lists.append(None)
            case "ordered_list_open":
                self._lists.append(int(token.attrs.get("start") or 1))
            case "bullet_list_close" | "ordered_list_close":
                self._lists.pop()
                self._gap()
            case "list_item_open":
                self._item()
            case "blockquote_open":
                self._quotes += 1
            case "blockquote_close":
                self._quotes -= 1
            case "inline":
                self._inline(token.children or [])
                self._end_inline(token)
            case "fence" | "code_block":
                self._code(token.content)
            case "hr":
                self._line([("─" * 24, "$quiet")])
                self._gap()
            case _:
                self._table(token.type)

    def _table(self, kind: str) -> None:
        match kind:
            case "table_open":
                self._rows = []
            case "tr_open":
                self._rows.append([])
            case "td_open" | "th_open":
                self._in_cell = True
                self._style = "bold" if kind == "th_open" else ""
                self._outside, self._pieces = self._pieces, []
            case "td_close" | "th_close":
                self._in_cell = False
                self._style = ""
                self._rows[-1].append(Content.assemble(*self._pieces))
                self._pieces = self._outside
            case "table_close":
                self._write_table()
                self._gap()

    def _write_table(self) -> None:
        """Write the rows of a table in aligned columns."""
        widths = [
            min(MAX_CELL_WIDTH, max(row[at].cell_length for row in self._rows if at < len(row)))
            for at in range(max(map(len, self._rows)))
        ]
        for row in self._rows:
            self._pieces += self._indent()
            for cell, width in zip(row, widths, strict=False):
                self._pieces += [cell, (" " * (max(0, width - cell.cell_length) + 2), "")]
            self._pieces.append(("\n", ""))

    def _item(self) -> None:
        number = self._lists[-1]
        if number is None:
            self._bullet = "• "
        else:
            self._bullet = f"{number}. "
            self._lists[-1] = number + 1

    def _indent(self) -> list[Piece]:
        quote: list[Piece] = (
            [("▎ " * min(self._quotes, MAX_DEPTH), "$quiet")] if self._quotes else []
        )
        depth = min(len(self._lists), MAX_DEPTH)
        if not depth:
            return quote
        pad = "  " * (depth - 1)
        bullet, self._bullet = self._bullet or "  ", ""
        return [*quote, (pad, ""), (bullet, "$primary")]

    def _line(self, pieces: Sequence[Piece]) -> None:
        self._pieces += [*self._indent(), *pieces, ("\n", "")]

    def _gap(self) -> None:
        if not self._lists:
            self._pieces.append(("\n", ""))

    def _inline(self, children: Sequence[Token]) -> None:
        if not self._in_cell:
            self._pieces += self._indent()
        styles: list[str] = [self._style] if self._style else []
        for child in children:
            if child.type in _MARKS:
                styles.append(_MARKS[child.type])
            elif child.type.endswith("_close") and styles:
                styles.pop()
            elif child.type == "code_inline":
                self._pieces.append((child.content, " ".join([*styles, "on $panel"])))
            elif child.type in ("softbreak", "hardbreak"):
                self._pieces.append(("\n", ""))
                self._pieces += self._indent()
            else:
                self._pieces.append((child.content, " ".join(styles)))

    def _end_inline(self, token: Token) -> None:
        if self._in_cell:
            return
        self._pieces.append(("\n", ""))
        if not token.hidden:
            self._gap()

    def _code(self, text: str) -> None:
        for row in text.rstrip("\n").split("\n"):
            self._line([("▏ ", "$quiet"), (row, "$secondary")])
        self._gap()


class MarkdownPart(Struct, frozen=True):
    """Markdown that can be drawn on its own."""

    text: str
    has_gap: bool = True
    """True if an empty line follows."""
    is_torn: bool = False
    """True if the next part continues the same paragraph."""


def rejoin(parts: Iterable[MarkdownPart]) -> list[MarkdownPart]:
    """Return the parts with torn ones joined again."""
    whole: list[MarkdownPart] = []
    for part in parts:
        if whole and whole[-1].is_torn:
            whole[-1] = MarkdownPart(whole[-1].text + part.text, part.has_gap, part.is_torn)
        else:
            whole.append(part)
    return whole


class Splitter(Struct):
    """Divides a stream of Markdown into parts that do not change any more."""

    text: str = ""
    _start: int = 0
    _scanned: int = 0
    """Offset up to which lines were scanned."""
    _blank: bool = False
    _fence: str = ""
    """The line that opened the current code block, or an empty string."""
    _reopened: str = ""
    """The fence that the current part must repeat because it starts inside a code block."""

    def feed(self, piece: str) -> list[MarkdownPart]:
        """Add a piece of the stream. Return the parts that it completes."""
        self.text += piece
        parts: list[MarkdownPart] = []
        while (end := self.text.find("\n", self._scanned)) >= 0:
            self._line(self._scanned, end + 1, parts)
            self._scanned = end + 1
        if len(self.text) - self._start > MAX_PART:
            self._split_line(parts)
        return parts

    @property
    def tail(self) -> str:
        """The Markdown behind the completed parts, which may still change."""
        return self._reopened + self.text[self._start :]

    def _line(self, start: int, end: int, parts: list[MarkdownPart]) -> None:
        line = self.text[start:end]
        if not line.strip():
            self._blank = True
            return
        if (
            self._blank
            and not self._fence
            and not line[0].isspace()
            and start - self._start >= MIN_PART
        ):
            self._end_part(start, parts, has_gap=True)
        self._blank = False
        fence = _FENCE.match(line)
        if fence is not None:
            if not self._fence:
                self._fence = line
            elif fence.group(1).startswith(self._fence_mark) and not fence.group(2).strip():
                self._fence = ""
        if end - self._start > MAX_PART:
            self._end_part(end, parts, has_gap=False)

    def _split_line(self, parts: list[MarkdownPart]) -> None:
        """Split an endless last line at a word."""
        middle = self._start + MAX_PART // 2
        at = max(self.text.rfind(" ", middle), self._scanned)
        if at <= middle:
            at = len(self.text)
        self._scanned = max(self._scanned, at)
        self._end_part(at, parts, has_gap=False)

    @property
    def _fence_mark(self) -> str:
        match = _FENCE.match(self._fence)
        return match.group(1) if match is not None else ""

    def _end_part(self, at: int, parts: list[MarkdownPart], *, has_gap: bool) -> None:
        text = self.tail[: len(self._reopened) + at - self._start]
        if self._fence:
            text = f"{text.rstrip()}\n{self._fence_mark}"
        is_torn = not has_gap and not self._fence
        parts.append(MarkdownPart(text, has_gap, is_torn))
        self._start, self._reopened = at, self._fence
