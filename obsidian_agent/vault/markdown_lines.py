"""The lines of a note, and which of them are Markdown: not code, comment, raw HTML, mathematics or properties.

This is the block structure that headings, lists and tasks need, and no more. It follows CommonMark where Obsidian does; an indented list
item needs no exact indentation, ``%%`` comments are Obsidian's (a block of them begins a line and ends on a later one; an unclosed one is
none).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from obsidian_agent.vault import frontmatter
from obsidian_agent.vault.text import BOM

ITEM = re.compile(r"(?P<marker>[-*+]|[0-9]{1,9}[.)])(?P<gap>[ \t]+|$)(?P<rest>.*)", re.DOTALL)
"""A list item behind its indentation."""

HEADING = re.compile(r"(?P<marks>#{1,6})(?:[ \t]+(?P<text>.*?))??(?:[ \t]+#+)?[ \t]*$", re.DOTALL)
"""A heading behind its indentation; marks at its end are not part of its text."""

_QUOTE = re.compile(r"[ \t]{0,3}>[ ]?")
_INDENT = re.compile(r"[ \t]*")
_FENCE = re.compile(r"(`{3,})[^`]*$|(~{3,})")
_RULE = re.compile(r"([-*_])(?:[ \t]*\1){2,}[ \t]*$")
_HTML = re.compile(
    r"</?(?:address|article|aside|blockquote|body|center|col|dd|details|dialog|dir|div|dl|dt|fieldset|figcaption|figure|footer|form|frame"
    r"|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|menu|nav|ol|optgroup|option|p|param|search|section|summary|table"
    r"|tbody|td|tfoot|th|thead|title|tr|track|ul)(?:[\s/>]|$)",
    re.IGNORECASE,
)
_RAW_HTML = re.compile(r"<(script|pre|style|textarea)(?:[\s>]|$)", re.IGNORECASE)
_TAB = 4


class Line(NamedTuple):
    """A line. Named tuples: a large note has ten thousand."""

    number: int
    """1-based."""
    start: int
    end: int
    """Before the line end."""
    next: int
    """Behind the line end."""
    hidden: bool
    """Not Markdown: code (fences too), comment, HTML block, mathematics, frontmatter."""
    quotes: int
    """Levels of block quote."""
    indent: int
    """Columns of blanks before `body`, quote marks not counted."""
    body: str
    """The rest of the line behind quote marks and blanks."""
    depth: int | None
    """Of a list item, from 0; None for every other line."""
    comment: bool = False
    """Whether it is hidden by a ``%%`` comment."""


def scan(text: str, *, dedent: int = 0) -> list[Line]:
    """All lines of a note, or of a piece of one whose lines are all indented by `dedent` columns."""
    return _Scanner(text, dedent).lines()


class _Fence(NamedTuple):
    character: str
    length: int
    quotes: int
    container: int
    """Column below which a line is outside of the list item that holds the fence."""


class _Item(NamedTuple):
    indent: int
    content: int
    """Column where the item's text begins."""


class _Scanner:
    """The state between lines: the open fence, the list items around, where a hidden block ends."""

    def __init__(self, text: str, dedent: int) -> None:
        self._text = text
        self._dedent = dedent
        self._fence: _Fence | None = None
        self._lists: list[list[_Item]] = [[]]
        self._hidden_until = 0
        self._comment_until = 0
        self._html = False
        self._after_text = False

    def lines(self) -> list[Line]:
        text = self._text
        front = frontmatter.span(text)
        body = front.body_start if front else 0
        found: list[Line] = []
        start = len(BOM) if text.startswith(BOM) else 0
        number = 1
        while start < len(text):
            newline = text.find("\n", start)
            following = len(text) if newline < 0 else newline + 1
            end = following if newline < 0 else newline - 1 if newline > start and text[newline - 1] == "\r" else newline
            if start < body:
                found.append(Line(number, start, end, following, True, 0, 0, text[start:end], None))
            else:
                found.append(self._line(number, start, end, following))
            start = following
            number += 1
        return found

    def _line(self, number: int, start: int, end: int, following: int) -> Line:
        quotes, indent, body = self._strip(start, end)
        items = self._items(quotes)
        hidden = self._is_hidden(start, end, quotes, indent, body, items)
        depth = self._enter(indent, body, items) if body and not hidden else None
        self._after_text = bool(body) and not hidden and not (body[0] == "#" and HEADING.match(body))
        return Line(number, start, end, following, hidden, quotes, indent, body, depth, hidden and start < self._comment_until)

    def _items(self, quotes: int) -> list[_Item]:
        """The list items around a line, outermost first; each level of quotation has its own."""
        del self._lists[quotes + 1 :]
        while len(self._lists) <= quotes:
            self._lists.append([])
        return self._lists[quotes]

    def _strip(self, start: int, end: int) -> tuple[int, int, str]:
        text, quotes = self._text, 0
        most = self._fence.quotes if self._fence else 100
        while quotes < most and (mark := _QUOTE.match(text, start, end)):
            quotes += 1
            start = mark.end()
        blanks = _INDENT.match(text, start, end)
        stop = blanks.end() if blanks else start
        indent = _columns(text[start:stop])
        return quotes, max(0, indent - self._dedent) if quotes == 0 else indent, text[stop:end].rstrip(" \t") if stop < end else ""

    def _is_hidden(self, start: int, end: int, quotes: int, indent: int, body: str, items: list[_Item]) -> bool:
        if start < self._hidden_until:
            return True
        if self._fence is not None and self._in_fence(quotes, indent, body):
            return True
        if self._html:
            self._html = bool(body)
            return bool(body)
        if not body:
            return False
        item = ITEM.match(body)
        if not self._after_text:
            while items and indent < items[-1].content and not item:
                items.pop()
            if indent >= (items[-1].content if items else 0) + _TAB and not (items and item):
                return True
        return (indent < _TAB or bool(items)) and self._opens(start, end, quotes, indent, body, items)

    def _in_fence(self, quotes: int, indent: int, body: str) -> bool:
        """Whether the line belongs to the open fence; the closing fence does, and so does not what is outside of its list or quote."""
        fence = self._fence
        if fence is None or quotes < fence.quotes or (body and indent < fence.container):
            self._fence = None
            return False
        if body.startswith(fence.character * fence.length) and not body.strip(fence.character):
            self._fence = None
        return True

    def _opens(self, start: int, end: int, quotes: int, indent: int, body: str, items: list[_Item]) -> bool:
        """Whether the line begins a block that is no Markdown; then its end is noted."""
        first = body[0]
        if first in "`~" and (fence := _FENCE.match(body)):
            mark = fence[1] or fence[2]
            container = next((item.content for item in reversed(items) if item.content <= indent), 0)
            self._fence = _Fence(mark[0], len(mark), quotes, container)
            return True
        if first == "%" and body.startswith("%%"):
            return self._until(start, end, "%%", "%%", closed_only=True)
        if first == "$" and body.startswith("$$"):
            return self._until(start, end, "$$", "$$", closed_only=True)
        if first == "<":
            if body.startswith("<!--"):
                return self._until(start, end, "<!--", "-->", closed_only=False)
            if raw := _RAW_HTML.match(body):
                return self._until(start, end, raw[0], f"</{raw[1]}>", closed_only=False)
            self._html = _HTML.match(body) is not None
            return self._html
        return False

    def _until(self, start: int, end: int, opening: str, closing: str, *, closed_only: bool) -> bool:
        """Hides all lines up to the one with the closing mark. `closed_only`: on one line or unclosed it hides nothing."""
        behind = self._text.index(opening, start) + len(opening)
        close = self._text.find(closing, behind)
        if closed_only and (close < 0 or close < end):
            return False
        self._hidden_until = len(self._text) if close < 0 else close + len(closing)
        if opening == "%%":
            self._comment_until = self._hidden_until
        return True

    def _enter(self, indent: int, body: str, items: list[_Item]) -> int | None:
        """Notes a list item around the next lines; its depth, or None for a line that is none. Two columns are enough for a level."""
        item = ITEM.match(body)
        if item is None or _RULE.match(body) or (indent >= _TAB and not items):
            return None
        while items and indent < min(items[-1].content, items[-1].indent + 2):
            items.pop()
        gap = len(item["gap"].expandtabs(_TAB))
        items.append(_Item(indent, indent + len(item["marker"]) + (gap if gap <= _TAB and item["rest"] else 1)))
        return len(items) - 1


def _columns(blanks: str) -> int:
    return len(blanks) if "\t" not in blanks else len(blanks.expandtabs(_TAB))
