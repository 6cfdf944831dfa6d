"""The lines of a note: which are Markdown, and the headings, list items and tasks among them.

Code, comments, raw HTML, mathematics and properties are not Markdown. Only the block structure that
this requires is read. It follows CommonMark where Obsidian does. An indented list item needs no
exact indentation. ``%%`` comments are Obsidian's: a block of them begins a line and ends on a later
one, and an unclosed one is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from obsidian_agent import budget
from obsidian_agent.expression import expression
from obsidian_agent.vault.frontmatter.properties import find_frontmatter
from obsidian_agent.vault.markdown.model import NoteTask
from obsidian_agent.vault.text import BOM

LINES_BETWEEN_CHECKS = 1_000

ITEM = expression(r"(?P<marker>[-*+]|[0-9]{1,9}[.)])(?P<gap>[ \t]+|$)(?P<rest>.*)", re.DOTALL)
"""A list item, after its indentation."""

RULE = expression(r"([-*_])(?:[ \t]*\1){2,}[ \t]*$")
"""A horizontal rule, after its indentation."""

UNDERLINE = expression(r"=+$|-+$")
"""A line that makes a heading of the text above it."""

HTML_BLOCK = expression(
    r"</?(?:address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd"
    r"|details|dialog|dir|div|dl|dt|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]"
    r"|head|header|hr|html|iframe|legend|li|link|main|menu|menuitem|nav|noframes|ol|optgroup|option"
    r"|p|param|search|section|source|summary|table|tbody|td|tfoot|th|thead|title|tr|track|ul)"
    r"(?:\s|/?>|$)",
    re.IGNORECASE,
)
"""A tag that begins a block of HTML, even in the middle of a paragraph."""

_QUOTE = expression(r"[ \t]{0,3}>[ ]?")
_INDENT = expression(r"[ \t]*")
_UNINDENTED = expression(r"^\S", re.MULTILINE)
_FENCE = expression(r"(`{3,})[^`]*$|(~{3,})")
_RAW_HTML = expression(r"<(script|pre|style|textarea)(?:[\s>]|$)", re.IGNORECASE)
_LONE_TAG = expression(
    r"(?:<[a-z][a-z0-9-]*+"
    r"(?>(?:\s++[a-z_:][\w.:-]*+"
    r"""(?>(?:\s*+=\s*+(?:[^\s"'=<>`]++|'[^']*+'|"[^"]*+"))?))*)"""
    r"\s*+/?>|</[a-z][a-z0-9-]*+\s*+>)$",
    re.IGNORECASE,
)
_MARKUP = expression(r"<(?:(!--)|(\?)|(!\[CDATA\[)|(![A-Za-z]))")
_MARKUP_ENDS = ("-->", "?>", "]]>", ">")
"""The text that ends the markup of each group of `_MARKUP`."""
_NOT_PARAGRAPH = expression(r"[#>|]|[-*+][ \t]|[0-9]{1,9}[.)][ \t]")
_CHECKBOX = expression(r"\[(?P<status>[^\[\]\r\n])\](?:[ \t]+|$)")
_BLOCK_ID = expression(r"[A-Za-z0-9-]+")
_SPECIAL = frozenset(" \t>-*+#`~%$<=_0123456789")
"""First characters of lines that can be more than text."""
_TAB = 4
_MAX_QUOTES = 100
_MAX_MARKERS = 100
"""List items and quotes that one line can begin. Each costs a search in the rest of the line."""


class Line(NamedTuple):
    """A line of a note. A named tuple, because a large note has ten thousand."""

    number: int
    """1-based."""
    start: int
    end: int
    """The position before the line end."""
    next: int
    """The position after the line end."""
    hidden: bool
    """True if not Markdown: code (with its fences), comment, HTML, mathematics, frontmatter."""
    quotes: int
    """Levels of block quote."""
    indent: int
    """Columns of blanks before `body`, without quote marks."""
    body: str
    """The rest of the line after quote marks and blanks."""
    depth: int | None
    """The level of a list item, from 0; None for other lines."""
    comment: bool = False
    """True if a ``%%`` comment hides the line."""
    opaque: bool = False
    """True for a list item whose text is code or the like: only the item itself is Markdown."""


class Bullet(Struct, frozen=True):
    """A list item. `text` excludes marker, checkbox and block id; `raw` is the line without end.

    `depth` counts from 0. `checked` is None without a checkbox, False if the checkbox is empty.
    """

    text: str
    raw: str
    depth: int
    checked: bool | None


class ListItem(NamedTuple):
    """The content of a list item: `text` as in `Bullet`, `status` the character in its checkbox."""

    text: str
    status: str | None


def scan(
    text: str, *, dedent: int = 0, properties: bool = True, stop: int | None = None
) -> list[Line]:
    """Return all lines of a note.

    Args:
        dedent: Columns by which all lines of an excerpt are indented.
        properties: False if the text cannot begin with properties.
        stop: The position in the text from which on no line begins that is needed.
    """
    return _Scanner(text, dedent).lines(properties, len(text) if stop is None else stop)


class _Open(NamedTuple):
    """A block that is not Markdown and continues in the next line."""

    closing: str
    """The end of the block: the run of a fence, text in the last line, or "" for a blank line."""
    quotes: int
    """Levels of quotation. The block ends with them."""
    fence: bool = False
    container: int = 0
    """For a fence, the column below which a line is outside of the list item that contains it."""
    comment: bool = False


class _Item(NamedTuple):
    indent: int
    content: int
    """The column where the item's text begins."""


class _Text(NamedTuple):
    """The text of a line after its list markers."""

    content: str
    column: int
    quotes: int
    items: int
    """Number of list items that the line begins."""
    code: bool
    """True if the text is so far from its marker that it is code."""


class _Role(NamedTuple):
    """The fields of a `Line` that depend on the blocks around it."""

    hidden: bool = False
    depth: int | None = None
    comment: bool = False
    opaque: bool = False


_HIDDEN = _Role(hidden=True)


class _Scanner:
    """The state between lines: the open block, the enclosing list items, and the paragraph."""

    def __init__(self, text: str, dedent: int) -> None:
        self._text = text
        self._dedent = dedent
        self._open: _Open | None = None
        self._lists: list[list[_Item]] = [[]]
        self._quotes = 0
        self._after_text = False
        """True if the previous line was text that this one can continue."""

    def lines(self, properties: bool, stop: int) -> list[Line]:
        text = self._text
        front = find_frontmatter(text) if properties else None
        body = front.body_start if front else 0
        lines: list[Line] = []
        start = len(BOM) if text.startswith(BOM) else 0
        number = 1
        # Lines are created with positional arguments: keywords double the time of a named tuple.
        while start < stop:
            if number % LINES_BETWEEN_CHECKS == 0:
                budget.check()
            newline = text.find("\n", start)
            if newline < 0:
                end = following = len(text)
            else:
                end, following = newline, newline + 1
                if newline > start and text[newline - 1] == "\r":
                    end = newline - 1
            if start < body:
                content = text[start:end]
                lines.append(Line(number, start, end, following, True, 0, 0, content, None))
            elif self._open is None and start < end and text[start] not in _SPECIAL:
                self._plain()
                content = text[start:end].rstrip(" \t")
                lines.append(Line(number, start, end, following, False, 0, 0, content, None))
            else:
                lines.append(self._line(number, start, end, following))
            start = following
            number += 1
        return lines

    def _plain(self) -> None:
        """Process a line of text without indentation, quote or marker."""
        if not self._after_text:
            self._lists = [[]]
            self._quotes = 0
            self._after_text = True

    def _line(self, number: int, start: int, end: int, following: int) -> Line:
        block = self._open
        quotes, indent, body = self._strip(start, end, block.quotes if block else _MAX_QUOTES)
        if block is not None:
            if self._continue_block(block, quotes, indent, body, end):
                return Line(
                    number, start, end, following, True, quotes, indent, body, None, block.comment
                )
            quotes, indent, body = self._strip(start, end, _MAX_QUOTES)
        items = self._items_at(quotes)
        if quotes > self._quotes:
            self._after_text = False
            self._close_items_before_quote(start, end)
        if quotes != self._quotes and not (self._after_text and body):
            self._quotes = quotes
        if not body:
            self._after_text = False
            return Line(number, start, end, following, False, quotes, indent, body, None)
        hidden, depth, comment, opaque = self._role(end, quotes, indent, body, items)
        return Line(
            number, start, end, following, hidden, quotes, indent, body, depth, comment, opaque
        )

    def _role(self, end: int, quotes: int, indent: int, body: str, items: list[_Item]) -> _Role:
        """Return the role of a line that is not blank and not part of the open block."""
        is_item = self._begins_item(indent, body, items)
        if not is_item and (
            not self._after_text or (body[0] in "#-*_" and not self._can_continue(body, indent))
        ):
            _close_items(items, indent)
        if (
            not self._after_text
            and indent >= (items[-1].content if items else 0) + _TAB
            and not (items and is_item)
        ):
            return _HIDDEN
        if is_item:
            text = _text_after_markers(body, indent, quotes)
        else:
            text = _Text(body, indent, quotes, 0, code=False)
        opens = text.code or self._open_block(text, end, items)
        depth = None
        if is_item and (text.code or not opens or text.items):
            depth = self._enter_item(indent, body, items)
        if opens and depth is None:
            self._after_text = False
            _close_items(items, indent)
            return _Role(hidden=True, comment=self._open is not None and self._open.comment)
        self._after_text = not opens and self._can_continue(text.content, indent)
        return _Role(depth=depth, opaque=opens)

    def _begins_item(self, indent: int, body: str, items: list[_Item]) -> bool:
        """Return True if a line begins a list item.

        Within a paragraph only an item with text can, and a numbered one only with the number 1.
        """
        item = ITEM.match(body)
        if item is None or RULE.match(body) or (indent >= _TAB and not items):
            return False
        if not self._after_text or (items and indent < items[-1].content):
            return True
        return bool(item["rest"]) and (item["marker"] in "-*+" or item["marker"][:-1] == "1")

    def _can_continue(self, content: str, indent: int) -> bool:
        """Return True if the next line can continue the text of this one."""
        if not content:
            return False
        if content[0] == "#":
            return read_heading(content) is None
        if content[0] not in "-*_=":
            return True
        if RULE.match(content):
            return False
        return not (self._after_text and indent < _TAB and UNDERLINE.match(content))

    def _items_at(self, quotes: int) -> list[_Item]:
        """Return the list items around a line, outermost first. Each quote level has its own."""
        del self._lists[quotes + 1 :]
        while len(self._lists) <= quotes:
            self._lists.append([])
        return self._lists[quotes]

    def _close_items_before_quote(self, start: int, end: int) -> None:
        """Close the list items in which a quote that begins here is not indented enough to be."""
        blanks = _INDENT.match(self._text, start, end)
        _close_items(self._lists[0], _columns(blanks[0]) if blanks else 0)

    def _strip(self, start: int, end: int, max_quotes: int) -> tuple[int, int, str]:
        """Return the levels of quotation, the indentation, and the rest of a line."""
        text, quotes = self._text, 0
        while quotes < max_quotes and (mark := _QUOTE.match(text, start, end)):
            quotes += 1
            start = mark.end()
        blanks = _INDENT.match(text, start, end)
        stop = blanks.end() if blanks else start
        indent = _columns(text[start:stop])
        if quotes == 0:
            indent = max(0, indent - self._dedent)
        return quotes, indent, text[stop:end].rstrip(" \t") if stop < end else ""

    def _continue_block(self, block: _Open, quotes: int, indent: int, body: str, end: int) -> bool:
        """Return True if a line belongs to the open block. The last line does, and closes it."""
        if not block.comment and (
            quotes < block.quotes or (block.fence and body and indent < block.container)
        ):
            self._open = None
            return False
        if block.fence:
            if body.startswith(block.closing) and not body.strip(block.closing[0]):
                self._open = None
            return True
        if not block.closing:
            if not body:
                self._open = None
            return bool(body)
        if block.closing in body.lower():
            self._open = None
        return True

    def _open_block(self, text: _Text, end: int, items: list[_Item]) -> bool:
        """Return True if text begins a block that is not Markdown.

        The block becomes the open one if it continues in the next line.
        """
        content = text.content
        first = content[:1]
        if first in ("`", "~"):
            return self._open_fence(text, items)
        if first == "<":
            return self._open_html(text)
        if first == "%" and content.startswith("%%"):
            if "%%" in content[2:] or self._text.find("%%", end) < 0:
                return False
            self._open = _Open("%%", text.quotes, comment=True)
            return True
        if first == "$" and content.startswith("$$") and "$$" not in content[2:]:
            self._open = _Open("$$", text.quotes)
            return True
        return False

    def _open_fence(self, text: _Text, items: list[_Item]) -> bool:
        fence = _FENCE.match(text.content)
        if fence is None:
            return False
        if text.items:
            container = text.column
        else:
            columns = (item.content for item in reversed(items) if item.content <= text.column)
            container = next(columns, 0)
        self._open = _Open(fence[1] or fence[2], text.quotes, True, container)
        return True

    def _open_html(self, text: _Text) -> bool:
        content = text.content
        if markup := _MARKUP.match(content):
            closing = _MARKUP_ENDS[(markup.lastindex or 1) - 1]
            self._open = None if closing in content[markup.end() :] else _Open(closing, text.quotes)
            return True
        if raw := _RAW_HTML.match(content):
            closing = f"</{raw[1].lower()}>"
            self._open = None if closing in content.lower() else _Open(closing, text.quotes)
            return True
        can_be_alone = text.items or not self._after_text
        if HTML_BLOCK.match(content) or (can_be_alone and _LONE_TAG.match(content)):
            self._open = _Open("", text.quotes)
            return True
        return False

    def _enter_item(self, indent: int, body: str, items: list[_Item]) -> int | None:
        """Add a list item to those around the next lines. Return its depth, or None.

        Two columns of indentation are enough for a level.
        """
        item = ITEM.match(body)
        if item is None:
            return None
        while items and indent < min(items[-1].content, items[-1].indent + 2):
            items.pop()
        gap = len(item["gap"].expandtabs(_TAB))
        if gap > _TAB or not item["rest"]:
            gap = 1
        items.append(_Item(indent, indent + len(item["marker"]) + gap))
        return len(items) - 1


def _close_items(items: list[_Item], indent: int) -> None:
    """Remove the list items for which a line is not indented enough."""
    while items and indent < items[-1].content:
        items.pop()


def _text_after_markers(body: str, indent: int, quotes: int) -> _Text:
    """Return the text of a list item, or of the innermost of several that begin in one line.

    Quote marks between the markers count as levels of quotation.
    """
    content, column, items = body, indent, 0
    for _ in range(_MAX_MARKERS):
        item = ITEM.match(content)
        if item is not None and not RULE.match(content):
            gap = len(item["gap"].expandtabs(_TAB))
            items += 1
            if gap > _TAB and item["rest"]:
                return _Text(item["rest"], column, quotes, items, code=True)
            column += len(item["marker"]) + max(gap, 1)
            content = item["rest"]
        elif content.startswith(">"):
            quotes += 1
            content = content[1:].removeprefix(" ")
        else:
            break
    return _Text(content, column, quotes, items, code=False)


def _columns(blanks: str) -> int:
    return len(blanks) if "\t" not in blanks else len(blanks.expandtabs(_TAB))


def read_heading(body: str) -> tuple[str, int] | None:
    """Return text and level of the heading in a line given without indentation, if it is one.

    Closing `#` marks are not part of the text.
    """
    rest = body.lstrip("#")
    level = len(body) - len(rest)
    if not 1 <= level <= 6 or rest[:1] not in ("", " ", "\t"):
        return None
    text = rest.strip(" \t")
    shorter = text.rstrip("#")
    if shorter[-1:] in ("", " ", "\t"):
        text = shorter
    return text.strip(), level


def headings_of(lines: Sequence[Line]) -> Iterator[tuple[str, int, Line, Line]]:
    """Yield the headings among the lines of a note: text, level, first and last line."""
    for position, line in enumerate(lines):
        if line.hidden or line.quotes or line.indent > 3 or not line.body:
            continue
        if line.body[0] == "#" and (heading := read_heading(line.body)):
            yield *heading, line, line
        elif line.body[0] in "=-" and (title := _underlined(lines, position)):
            yield title.body, 1 if line.body[0] == "=" else 2, title, line


def _underlined(lines: Sequence[Line], position: int) -> Line | None:
    """Return the line that an underline makes a heading, which is a paragraph of one line.

    CommonMark also allows longer paragraphs; Obsidian does not.
    """
    if position == 0 or not UNDERLINE.match(lines[position].body):
        return None
    title = lines[position - 1]
    if (
        title.hidden
        or title.quotes
        or title.indent > 3
        or not title.body
        or title.depth is not None
        or _NOT_PARAGRAPH.match(title.body)
    ):
        return None
    above = lines[position - 2] if position > 1 else None
    if above is None or above.hidden or not above.body or read_heading(above.body) is not None:
        return title
    return None


def bullets(text: str) -> list[Bullet]:
    """Return the bulleted and numbered list items in order.

    Items in code and comments, and items without text, are omitted.
    """
    return [
        Bullet(
            text=item.text,
            raw=text[line.start : line.end],
            depth=line.depth or 0,
            checked=None if item.status is None else item.status != " ",
        )
        for line, item in _list_items(scan(text, dedent=_common_indent(text)))
        if item.text
    ]


def tasks(text: str) -> list[NoteTask]:
    """Return the list items with a checkbox, in order, including those in quotes and callouts."""
    return tasks_of(scan(text, dedent=_common_indent(text)))


def tasks_of(lines: Sequence[Line]) -> list[NoteTask]:
    """Return the list items that have a checkbox among the lines of a note."""
    return [
        NoteTask(item.status, item.text, line.number)
        for line, item in _list_items(lines)
        if item.status is not None
    ]


def read_item(body: str) -> ListItem | None:
    """Return the list item in a line given without indentation and quote marks, if it is one."""
    item = ITEM.match(body)
    if item is None:
        return None
    box = _CHECKBOX.match(item["rest"])
    if box is None:
        return ListItem(without_block_id(item["rest"]), None)
    return ListItem(without_block_id(item["rest"][box.end() :]), box["status"])


def without_block_id(text: str) -> str:
    """Return the text of an item without surrounding blanks and without the block id at its end."""
    text = text.strip()
    above, mark, name = text.rpartition("^")
    if mark and above[-1:] in ("", " ", "\t") and _BLOCK_ID.fullmatch(name):
        return above.rstrip()
    return text


def _list_items(lines: Sequence[Line]) -> Iterator[tuple[Line, ListItem]]:
    for line in lines:
        if line.depth is not None and (item := read_item(line.body)):
            yield line, item


def _common_indent(text: str) -> int:
    """Return the columns by which all lines are indented, as in a selection from within a list."""
    if _UNINDENTED.search(text):
        return 0
    columns = (
        len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
        for line in text.split("\n")
        if line.strip()
    )
    return min(columns, default=0)
