"""Markdown of an answer as styled text, whole or in parts while it comes. No links to click, no images, no HTML: words stay words.

One text in one widget is also what keeps a long conversation fast: a Markdown widget mounts a widget for every paragraph. What is
finished of a long answer is drawn once, only the end of it again and again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from textual.content import Content

from obsidian_agent import terminal_text
from obsidian_agent.dataclass import dataclass

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
WIDEST_CELL = 40
"""Columns of a table's cell beyond which the next one is not lined up."""

DEEPEST = 8
"""Deeper nesting of lists and quotes is drawn at this depth."""


def render(text: str) -> Content:
    """Styled text of a Markdown answer; the text is made safe here."""
    try:
        tokens = _parser().parse(terminal_text.block(text))
    except RecursionError:
        return Content(terminal_text.block(text))
    writer = _Writer()
    for token in tokens:
        writer.take(token)
    return writer.content()


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False, "maxNesting": 40}).enable(
        ["table", "strikethrough"]
    )


class _Writer:
    """Turns the flat list of block tokens into lines; knows lists, quotes, code and tables."""

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

    def take(self, token: Token) -> None:
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
                self._columns()
                self._gap()

    def _columns(self) -> None:
        """The rows of a table, every column as wide as its widest cell, up to a limit."""
        widths = [
            min(WIDEST_CELL, max(row[at].cell_length for row in self._rows if at < len(row)))
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
        quote: list[Piece] = [("▎ " * min(self._quotes, DEEPEST), "$quiet")] if self._quotes else []
        depth = min(len(self._lists), DEEPEST)
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


PART = 600
"""Characters from which on a part ends with the next paragraph."""

MOST = 3_000
"""Characters after which a part ends wherever a line does, and a line wherever a word does."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


@dataclass(frozen=True, slots=True)
class MarkdownPart:
    """Markdown that can be drawn on its own. `gap`: an empty line follows. `torn`: it ends where no paragraph does."""

    text: str
    gap: bool = True
    torn: bool = False


def mended(parts: Iterable[MarkdownPart]) -> list[MarkdownPart]:
    """The same text, what was torn in one part again."""
    whole: list[MarkdownPart] = []
    for part in parts:
        if whole and whole[-1].torn:
            whole[-1] = MarkdownPart(whole[-1].text + part.text, part.gap, part.torn)
        else:
            whole.append(part)
    return whole


@dataclass(slots=True)
class Splitter:
    """Takes pieces of a stream. `tail` is the Markdown that may still change."""

    text: str = ""
    _start: int = 0
    _looked: int = 0
    """Up to here, lines were looked at."""
    _blank: bool = False
    _fence: str = ""
    """The line that opened the code block we are in; "" outside of one."""
    _reopened: str = ""

    def take(self, piece: str) -> list[MarkdownPart]:
        """Add a piece; returns the parts that are finished by it."""
        self.text += piece
        parts: list[MarkdownPart] = []
        while (end := self.text.find("\n", self._looked)) >= 0:
            self._line(self._looked, end + 1, parts)
            self._looked = end + 1
        if len(self.text) - self._start > MOST:
            self._force(parts)
        return parts

    @property
    def tail(self) -> str:
        """What is not finished."""
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
            and start - self._start >= PART
        ):
            self._cut(start, parts, gap=True)
        self._blank = False
        fence = _FENCE.match(line)
        if fence is not None:
            if not self._fence:
                self._fence = line
            elif fence.group(1).startswith(self._mark) and not fence.group(2).strip():
                self._fence = ""
        if end - self._start > MOST:
            self._cut(end, parts, gap=False)

    def _force(self, parts: list[MarkdownPart]) -> None:
        """The last line is endless: cut it at a word."""
        at = max(self.text.rfind(" ", self._start + MOST // 2), self._looked)
        at = at if at > self._start + MOST // 2 else len(self.text)
        self._looked = max(self._looked, at)
        self._cut(at, parts, gap=False)

    @property
    def _mark(self) -> str:
        found = _FENCE.match(self._fence)
        return found.group(1) if found is not None else ""

    def _cut(self, at: int, parts: list[MarkdownPart], *, gap: bool) -> None:
        text = self.tail[: len(self._reopened) + at - self._start]
        parts.append(
            MarkdownPart(
                f"{text.rstrip()}\n{self._mark}" if self._fence else text,
                gap,
                torn=not gap and not self._fence,
            )
        )
        self._start, self._reopened = at, self._fence
