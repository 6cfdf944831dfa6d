"""The lines of a note, which of them are Markdown (not code, comment, raw HTML, mathematics or properties), and what they say: headings, list
items, tasks.

This is the block structure that these need, and no more. It follows CommonMark where Obsidian does; an indented list item needs no exact
indentation, ``%%`` comments are Obsidian's (a block of them begins a line and ends on a later one; an unclosed one is none).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from obsidian_agent.dataclass import dataclass
from obsidian_agent.expression import expression
from obsidian_agent.vault.frontmatter.properties import find_frontmatter
from obsidian_agent.vault.markdown.model import NoteTask
from obsidian_agent.vault.text import BOM

ITEM = expression(r"(?P<marker>[-*+]|[0-9]{1,9}[.)])(?P<gap>[ \t]+|$)(?P<rest>.*)", re.DOTALL)
"""A list item behind its indentation."""

RULE = expression(r"([-*_])(?:[ \t]*\1){2,}[ \t]*$")
"""A horizontal rule behind its indentation."""

UNDERLINE = expression(r"=+$|-+$")
"""What makes a heading of the text above it."""

_QUOTE = expression(r"[ \t]{0,3}>[ ]?")
_INDENT = expression(r"[ \t]*")
_FENCE = expression(r"(`{3,})[^`]*$|(~{3,})")
HTML_BLOCK = expression(
    r"</?(?:address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt|fieldset"
    r"|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|menu|menuitem|nav|noframes|ol"
    r"|optgroup|option|p|param|search|section|source|summary|table|tbody|td|tfoot|th|thead|title|tr|track|ul)(?:\s|/?>|$)",
    re.IGNORECASE,
)
_RAW_HTML = expression(r"<(script|pre|style|textarea)(?:[\s>]|$)", re.IGNORECASE)
_LONE_TAG = expression(
    r"""(?:<[a-z][a-z0-9-]*+(?>(?:\s++[a-z_:][\w.:-]*+(?>(?:\s*+=\s*+(?:[^\s"'=<>`]++|'[^']*+'|"[^"]*+"))?))*)\s*+/?>|</[a-z][a-z0-9-]*+\s*+>)$""",
    re.IGNORECASE,
)
_MARKUP = expression(r"<(?:(!--)|(\?)|(!\[CDATA\[)|(![A-Za-z]))")
_MARKUP_ENDS = ("-->", "?>", "]]>", ">")
_SPECIAL = frozenset(" \t>-*+#`~%$<=_0123456789")
_TAB = 4
_DEEP = 100
_MOST_ITEMS = 100
"""List items and quotes in them that one line may begin; nobody writes more, and each costs a look at the rest of the line."""


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
    opaque: bool = False
    """Of a list item: whether its text is code or the like, and only the item itself is Markdown."""


def scan(text: str, *, dedent: int = 0, properties: bool = True) -> list[Line]:
    """All lines of a note, or of a piece of one whose lines are all indented by `dedent` columns, or of a text that has no properties."""
    return _Scanner(text, dedent).lines(properties)


class _Open(NamedTuple):
    """A block that is no Markdown and goes on in the next line."""

    closing: str
    """What ends it: the run of a fence, the text that its last line holds, or "" for a blank line."""
    quotes: int
    """Levels of quotation: it ends with them."""
    fence: bool = False
    container: int = 0
    """Of a fence: the column below which a line is outside of the list item that holds it."""
    comment: bool = False


class _Item(NamedTuple):
    indent: int
    content: int
    """Column where the item's text begins."""


class _Text(NamedTuple):
    """What a line says behind its list markers."""

    content: str
    column: int
    quotes: int
    items: int
    """How many list items the line begins."""
    code: bool
    """Whether the text is so far from its marker that it is code."""


class _Scanner:
    """The state between lines: the open block, the list items around, whether the last line was text that can go on."""

    def __init__(self, text: str, dedent: int) -> None:
        self._text = text
        self._dedent = dedent
        self._open: _Open | None = None
        self._lists: list[list[_Item]] = [[]]
        self._quotes = 0
        self._after_text = False

    def lines(self, properties: bool) -> list[Line]:
        text = self._text
        front = find_frontmatter(text) if properties else None
        body = front.body_start if front else 0
        found: list[Line] = []
        start = len(BOM) if text.startswith(BOM) else 0
        number = 1
        while start < len(text):
            newline = text.find("\n", start)
            following = len(text) if newline < 0 else newline + 1
            end = (
                following
                if newline < 0
                else newline - 1
                if newline > start and text[newline - 1] == "\r"
                else newline
            )
            if start < body:
                found.append(Line(number, start, end, following, True, 0, 0, text[start:end], None))
            elif self._open is None and start < end and text[start] not in _SPECIAL:
                self._plain()
                found.append(
                    Line(
                        number,
                        start,
                        end,
                        following,
                        False,
                        0,
                        0,
                        text[start:end].rstrip(" \t"),
                        None,
                    )
                )
            else:
                found.append(self._line(number, start, end, following))
            start = following
            number += 1
        return found

    def _plain(self) -> None:
        """A line of text without indentation, quote or marker."""
        if not self._after_text:
            self._lists = [[]]
            self._quotes = 0
            self._after_text = True

    def _line(self, number: int, start: int, end: int, following: int) -> Line:
        block = self._open
        quotes, indent, body = self._strip(start, end, block.quotes if block else _DEEP)
        if block is not None:
            if self._continues(block, quotes, indent, body, end):
                return Line(
                    number, start, end, following, True, quotes, indent, body, None, block.comment
                )
            quotes, indent, body = self._strip(start, end, _DEEP)
        items = self._items(quotes)
        if quotes > self._quotes:
            self._after_text = False
            self._leave_items(start, end)
        if quotes != self._quotes and not (self._after_text and body):
            self._quotes = quotes
        if not body:
            self._after_text = False
            return Line(number, start, end, following, False, quotes, indent, body, None)
        return self._text_line(number, start, end, following, quotes, indent, body, items)

    def _text_line(
        self,
        number: int,
        start: int,
        end: int,
        following: int,
        quotes: int,
        indent: int,
        body: str,
        items: list[_Item],
    ) -> Line:
        """A line that is not blank and that no open block has swallowed."""
        marked = self._begins_item(indent, body, items)
        if not marked and (
            not self._after_text or (body[0] in "#-*_" and not self._goes_on(body, indent))
        ):
            _leave(items, indent)
        if (
            not self._after_text
            and indent >= (items[-1].content if items else 0) + _TAB
            and not (items and marked)
        ):
            return Line(number, start, end, following, True, quotes, indent, body, None)
        text = (
            _behind_markers(body, indent, quotes)
            if marked
            else _Text(body, indent, quotes, 0, code=False)
        )
        opens = text.code or self._opens(text, end, items)
        depth = (
            self._enter(indent, body, items)
            if marked and (text.code or not opens or text.items)
            else None
        )
        if opens and depth is None:
            self._after_text = False
            _leave(items, indent)
            return Line(
                number,
                start,
                end,
                following,
                True,
                quotes,
                indent,
                body,
                None,
                self._open is not None and self._open.comment,
            )
        self._after_text = not opens and self._goes_on(text.content, indent)
        return Line(number, start, end, following, False, quotes, indent, body, depth, opaque=opens)

    def _begins_item(self, indent: int, body: str, items: list[_Item]) -> bool:
        """Whether a line begins a list item. In the middle of a text only one with text can, and a number only when it is 1."""
        item = ITEM.match(body)
        if item is None or RULE.match(body) or (indent >= _TAB and not items):
            return False
        if not self._after_text or (items and indent < items[-1].content):
            return True
        return bool(item["rest"]) and (item["marker"] in "-*+" or item["marker"][:-1] == "1")

    def _goes_on(self, content: str, indent: int) -> bool:
        """Whether the next line can continue the text of this one."""
        if not content:
            return False
        if content[0] == "#":
            return read_heading(content) is None
        if content[0] not in "-*_=":
            return True
        return not (
            RULE.match(content) or (self._after_text and indent < _TAB and UNDERLINE.match(content))
        )

    def _items(self, quotes: int) -> list[_Item]:
        """The list items around a line, outermost first; each level of quotation has its own."""
        del self._lists[quotes + 1 :]
        while len(self._lists) <= quotes:
            self._lists.append([])
        return self._lists[quotes]

    def _leave_items(self, start: int, end: int) -> None:
        """A quote begins here: it ends the list items that it is not indented enough for."""
        blanks = _INDENT.match(self._text, start, end)
        _leave(self._lists[0], _columns(blanks[0]) if blanks else 0)

    def _strip(self, start: int, end: int, most: int) -> tuple[int, int, str]:
        """Levels of quotation (at most so many), indentation, and the rest of a line."""
        text, quotes = self._text, 0
        while quotes < most and (mark := _QUOTE.match(text, start, end)):
            quotes += 1
            start = mark.end()
        blanks = _INDENT.match(text, start, end)
        stop = blanks.end() if blanks else start
        indent = _columns(text[start:stop])
        return (
            quotes,
            max(0, indent - self._dedent) if quotes == 0 else indent,
            text[stop:end].rstrip(" \t") if stop < end else "",
        )

    def _continues(self, block: _Open, quotes: int, indent: int, body: str, end: int) -> bool:
        """Whether a line belongs to the open block; its last line does."""
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

    def _opens(self, text: _Text, end: int, items: list[_Item]) -> bool:
        """Whether text begins a block that is no Markdown; if that goes on in the next line it is the open one then."""
        content = text.content
        first = content[:1]
        if first in ("`", "~"):
            fence = _FENCE.match(content)
            if fence is None:
                return False
            container = (
                text.column
                if text.items
                else next(
                    (item.content for item in reversed(items) if item.content <= text.column), 0
                )
            )
            self._open = _Open(fence[1] or fence[2], text.quotes, True, container)
            return True
        if first == "<":
            return self._opens_html(text)
        if first == "%" and content.startswith("%%"):
            if "%%" in content[2:] or self._text.find("%%", end) < 0:
                return False
            self._open = _Open("%%", text.quotes, comment=True)
            return True
        if first == "$" and content.startswith("$$") and "$$" not in content[2:]:
            self._open = _Open("$$", text.quotes)
            return True
        return False

    def _opens_html(self, text: _Text) -> bool:
        content = text.content
        if markup := _MARKUP.match(content):
            closing = _MARKUP_ENDS[(markup.lastindex or 1) - 1]
            self._open = None if closing in content[markup.end() :] else _Open(closing, text.quotes)
            return True
        if raw := _RAW_HTML.match(content):
            closing = f"</{raw[1].lower()}>"
            self._open = None if closing in content.lower() else _Open(closing, text.quotes)
            return True
        if HTML_BLOCK.match(content) or (
            (text.items or not self._after_text) and _LONE_TAG.match(content)
        ):
            self._open = _Open("", text.quotes)
            return True
        return False

    def _enter(self, indent: int, body: str, items: list[_Item]) -> int | None:
        """Notes a list item around the next lines; its depth, or None for a line that is none. Two columns are enough for a level."""
        item = ITEM.match(body)
        if item is None:
            return None
        while items and indent < min(items[-1].content, items[-1].indent + 2):
            items.pop()
        gap = len(item["gap"].expandtabs(_TAB))
        items.append(
            _Item(
                indent, indent + len(item["marker"]) + (gap if gap <= _TAB and item["rest"] else 1)
            )
        )
        return len(items) - 1


def _leave(items: list[_Item], indent: int) -> None:
    """What is not indented enough for a list item ends it."""
    while items and indent < items[-1].content:
        items.pop()


def _behind_markers(body: str, indent: int, quotes: int) -> _Text:
    """The text of a list item, of one inside it, and so on; quote marks among the markers count as quotation."""
    content, column, items = body, indent, 0
    for _ in range(_MOST_ITEMS):
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


_NO_PARAGRAPH = expression(r"[#>|]|[-*+][ \t]|[0-9]{1,9}[.)][ \t]")


def read_heading(body: str) -> tuple[str, int] | None:
    """Text and level of the heading that a line is, given without indentation; marks at its end are not part of its text."""
    rest = body.lstrip("#")
    level = len(body) - len(rest)
    if not 1 <= level <= 6 or rest[:1] not in ("", " ", "\t"):
        return None
    text = rest.strip(" \t")
    shorter = text.rstrip("#")
    return (text if shorter[-1:] not in ("", " ", "\t") else shorter).strip(), level


def headings_of(lines: Sequence[Line]) -> Iterator[tuple[str, int, Line, Line]]:
    """The headings among the lines of a note: text, level, first and last line."""
    for position, line in enumerate(lines):
        if line.hidden or line.quotes or line.indent > 3 or not line.body:
            continue
        if line.body[0] == "#" and (found := read_heading(line.body)):
            yield *found, line, line
        elif line.body[0] in "=-" and (title := _underlined(lines, position)):
            yield title.body, 1 if line.body[0] == "=" else 2, title, line


def _underlined(lines: Sequence[Line], position: int) -> Line | None:
    """The line that an underline makes a heading: a paragraph of one line, as Obsidian has it."""
    if position == 0 or not UNDERLINE.match(lines[position].body):
        return None
    title = lines[position - 1]
    if (
        title.hidden
        or title.quotes
        or title.indent > 3
        or not title.body
        or title.depth is not None
        or _NO_PARAGRAPH.match(title.body)
    ):
        return None
    above = lines[position - 2] if position > 1 else None
    alone = above is None or above.hidden or not above.body or read_heading(above.body) is not None
    return title if alone else None


_CHECKBOX = expression(r"\[(?P<status>[^\]\r\n])\](?:[ \t]+|$)")
_BLOCK_ID = expression(r"[A-Za-z0-9-]+")


@dataclass(frozen=True, slots=True)
class Bullet:
    """A list item. `text` is without marker, checkbox and block id; `raw` is the whole line without its line end.

    `depth` counts from 0; `checked` is None without a checkbox, and true for every mark in it but a blank.
    """

    text: str
    raw: str
    depth: int
    checked: bool | None


class ListItem(NamedTuple):
    """What a list item says: `text` as in `Bullet`, and the one character in its checkbox, None without one."""

    text: str
    status: str | None


def bullets(text: str) -> list[Bullet]:
    """The list items, bulleted and numbered, in order. Items in code and comments, and items without text, are left out."""
    return [
        Bullet(
            item.text,
            text[line.start : line.end],
            line.depth or 0,
            None if item.status is None else item.status != " ",
        )
        for line, item in _items(scan(text, dedent=_common_indent(text)))
        if item.text
    ]


def tasks(text: str) -> list[NoteTask]:
    """The list items that have a checkbox, in order, those in quotes and callouts too."""
    return tasks_of(scan(text, dedent=_common_indent(text)))


def tasks_of(lines: Sequence[Line]) -> list[NoteTask]:
    """The list items that have a checkbox among the lines of a note."""
    return [
        NoteTask(item.status, item.text, line.number)
        for line, item in _items(lines)
        if item.status is not None
    ]


def read_item(body: str) -> ListItem | None:
    """What the line of a list item says, given without indentation and quote marks; None for a line that is none."""
    found = ITEM.match(body)
    if found is None:
        return None
    box = _CHECKBOX.match(found["rest"])
    content = found["rest"][box.end() :] if box else found["rest"]
    return ListItem(without_block_id(content), box["status"] if box else None)


def without_block_id(text: str) -> str:
    """The text of an item without blanks around it, and without the block id at its end."""
    text = text.strip()
    above, mark, name = text.rpartition("^")
    return (
        above.rstrip()
        if mark and above[-1:] in ("", " ", "\t") and _BLOCK_ID.fullmatch(name)
        else text
    )


def _items(lines: Sequence[Line]) -> Iterator[tuple[Line, ListItem]]:
    for line in lines:
        if line.depth is not None and (item := read_item(line.body)):
            yield line, item


def _common_indent(text: str) -> int:
    """Columns by which all lines are indented: a selection may be from the middle of a list."""
    columns = (
        len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
        for line in text.split("\n")
        if line.strip()
    )
    return min(columns, default=0)
