"""Links and tags in running text, and candidates for headings, checkboxes and block ids.

They are found in one pass of one regular expression over the bytes of the note. Constructs that
hide text (`HiddenSpans`) are skipped, as are escapes. A comment between ``%%`` on one line hides
nothing, as in Obsidian.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote_to_bytes

from obsidian_agent.expression import expression
from obsidian_agent.vault.markdown.blocks import BLANK_LINE, NeedsBlocks
from obsidian_agent.vault.markdown.hidden_spans import HiddenSpans, line_end
from obsidian_agent.vault.markdown.model import Link, LinkForm, LinkKind, NoteTag

_PUNCTUATION: Final = rb"[!-/:-@\[-`{-~]"
_NESTED_PARENTHESES: Final = 8
_NESTED_LINKS: Final = 16
_BANG, _OPENING_BRACKET, _CLOSING_BRACKET, _TICK = b"![]`"

_EXTERNAL: Final = expression(rb"[A-Za-z][A-Za-z0-9+.\-]*:|//")
_ESCAPE: Final = expression(rb"\\(" + _PUNCTUATION + rb")")
_SUBPATH: Final = expression(rb"#|%23|\\#")

# The groups of `_EVENT`.
_WIKI, _MARKDOWN, _TAG, _HEADING, _BOX, _BLOCK_ID = 1, 3, 4, 5, 6, 7
_TICKS, _DOLLAR, _ANGLE, _TILDES, _PERCENT, _BRACKET = 8, 9, 10, 11, 12, 13

# Every alternative begins with a plain character, so that the search can skip to the next of nine.
# Runs are possessive: no backtracking.
_PLAIN: Final = rb"""\\[!-/:-@\[-`{-~]
    |\[\[(?![ \t]*\]\])((?>(?:[^\[\]\n]++|\](?!\])|\[(?!\[))+))\]\]
    |\[([^\[\]\\`\n]*+)\]\(([^\s()<>\\]++)\)
    |\#([^\s\#,.;:!?(){}\[\]"'`<>|\\*=+&%$@^~]++)
    |\#\#{0,5}(?=[\ \t\r\n]|\Z)()
    |\[([^\[\]\n]{1,4})\](?=[\ \t\r\n]|\Z)
    |\^([A-Za-z0-9-]++)(?=[ \t]*+\r?(?:\n|\Z))
    |`[^`\n]++`(?!`)
    |`(`*+)
    |\$\$[^$\n]*+\$\$
    |\$(\$?+)
    |<()
    |~~~()
    |%%(?<![^\s>]%%)()"""
_EVENT: Final = expression(_PLAIN + rb"|\[()", re.VERBOSE)
_LINKLESS_EVENT: Final = expression(_PLAIN, re.VERBOSE)
"""The events of a text in which no Markdown link ends: a bracket alone is no event there."""
_TEXT_END: Final = expression(rb"\]\(")
_BRACKETS: Final = expression(rb"\\[\s\S]|`+|\[|\]")
_BEFORE_BOX: Final = expression(rb"[ \t>]*+(?:[-*+]|([0-9]{1,9})[.)])[ \t]+")
_BEFORE_NUMBER: Final = expression(rb"\n?[ \t>]*+(?:[0-9]{1,9}[.)][ \t]|\r?\n|\Z)")
_BEFORE_TAG: Final = frozenset(b" \t\n\r\v\f>(")
_NOT_IN_TAG: Final = expression("[\\s\u2000-\u206f\u2e00-\u2e7f]")
_NOT_NUMBER: Final = expression(r"[^\d/_-]")
_new = tuple.__new__
"""The constructor of a named tuple without its Python function, in half the time."""


def _balanced(levels: int) -> bytes:
    """Return the pattern of a destination with parentheses nested up to some levels."""
    unit = rb"[^\s()\\]++|\\" + _PUNCTUATION + rb"?+"
    pattern = rb"(?>(?:" + unit + rb")*)"
    for _ in range(levels):
        pattern = rb"(?>(?:" + unit + rb"|\(" + pattern + rb"\))*)"
    return pattern


_DESTINATION: Final = expression(
    rb"[ \t\r\n]*+"
    rb"(?:<((?>(?:[^<>\n\\]|\\[\s\S])*))>|(?!<)(" + _balanced(_NESTED_PARENTHESES) + rb"))"
    rb"(?:[ \t\r\n]++(?:"
    rb""""(?>(?:[^"\\]|\\[\s\S])*)"|'(?>(?:[^'\\]|\\[\s\S])*)'|\((?>(?:[^()\\]|\\[\s\S])*)\)"""
    rb"))?[ \t\r\n]*+\)"
)
"""The rest of a link after the opening parenthesis: a destination in angle brackets (group 1) or
without (group 2), a title, and the closing parenthesis."""


def is_external(destination: bytes) -> bool:
    """Return True if a destination has a URL's scheme or host."""
    return _EXTERNAL.match(destination) is not None


def decoded(destination: bytes) -> str:
    """Return a destination without backslash escapes and percent-encoding.

    Percent-encoding that is not UTF-8 is unchanged.
    """
    plain = _ESCAPE.sub(rb"\1", destination) if b"\\" in destination else destination
    if b"%" in plain:
        try:
            return unquote_to_bytes(plain).decode()
        except UnicodeDecodeError:
            pass
    return plain.decode()


def read_destination(raw: bytes, start: int) -> tuple[str, str, int, int]:
    """Return target, subpath, and the start and end of the target of a Markdown destination.

    Args:
        raw: The destination as written, without angle brackets.
        start: Its offset in the note.
    """
    path, mark, subpath = decoded(raw).partition("#")
    piece = raw
    if mark and (subpath_start := _SUBPATH.search(raw)):
        piece = raw[: subpath_start.start()]
    first = start + len(piece) - len(piece.lstrip())
    return path.strip(), mark + subpath, first, max(first, start + len(piece.rstrip()))


def tag_name(name: str) -> str:
    """Return the name of the tag in the characters after a `#`; "" if they are not a tag."""
    if not name.isascii() and (stop := _NOT_IN_TAG.search(name)):
        name = name[: stop.start()]
    name = name.rstrip("/")
    return name if name.isalpha() or _NOT_NUMBER.search(name) else ""


class InlineScanner:
    """A collector of the links and tags in the text of one note.

    Ranges must be given in ascending order, because lines are counted as the scan proceeds.
    """

    def __init__(
        self,
        data: bytes,
        borders: Sequence[int] | None = None,
        tables: Sequence[tuple[int, int]] = (),
    ) -> None:
        """Collect from a note. See `HiddenSpans` for `borders` and `tables`."""
        self.links: list[Link] = []
        self.tags: list[NoteTag] = []
        self.headings: list[int] = []
        """The positions of marks that may begin a heading."""
        self.boxes: list[tuple[int, int]] = []
        """The checkboxes of list items: the start of their line, and the bracket."""
        self.block_ids: list[tuple[int, int]] = []
        """The ranges of possible block ids, from `^`."""
        self._data = data
        self._hidden = HiddenSpans(data, borders, tables)
        self._tables = tables
        self._pairs: dict[int, int] = {}
        self._paired = (0, -1)
        self._depth = 0
        self._searched = self._linkless_end = -1

    def scan(self, start: int, end: int) -> None:
        """Collect from a range."""
        data = self._data
        position = consumed = start
        while True:
            is_linkless = position < self._linkless_end
            stop = min(self._linkless_end, end) if is_linkless else end
            expected = _LINKLESS_EVENT if is_linkless else _EVENT
            for event in expected.finditer(data, position, stop):
                kind = event.lastindex
                if kind == _WIKI:
                    self._wikilink(event, consumed)
                elif kind is None:
                    if self._tables:
                        self._hidden.check_cells(event.start(), event.end())
                elif kind == _TAG:
                    at = event.start()
                    if data[at - 1] in _BEFORE_TAG or self._precedes_tag(at, start, consumed):
                        self._tag(event)
                    continue
                elif kind == _HEADING:
                    self.headings.append(event.start())
                    continue
                elif kind == _MARKDOWN:
                    self._simple_link(event, consumed)
                elif kind == _BOX and self._is_box(event):
                    pass
                elif kind == _BRACKET and self._is_linkless(event.start(), end):
                    position = event.end()
                    break
                else:
                    position = self._other(kind, event, end, consumed)
                    if position >= 0:
                        consumed = position
                        break
                    continue
                consumed = event.end()
            else:
                if stop == end:
                    return
                position = stop

    def scan_tags(self, start: int, end: int) -> None:
        """Collect only the tags of a range. In comments, Obsidian indexes tags, but no links."""
        collected = self.links, self.headings, self.boxes, self.block_ids
        self.links, self.headings, self.boxes, self.block_ids = [], [], [], []
        self.scan(start, end)
        self.links, self.headings, self.boxes, self.block_ids = collected

    def _wikilink(self, event: re.Match[bytes], consumed: int) -> None:
        start, end = event.span()
        first = start + 2
        text = event[1].decode()
        path, display, subpath, escaped = text, None, "", False
        pipe = text.find("|")
        if pipe >= 0 and self._tables:
            self._hidden.check_cells(start, end)
        if pipe > 0:
            path, display = text[:pipe], text[pipe + 1 :]
            if path[-1] == "\\":
                path, escaped = path[:-1], True
        if "#" in path:
            path, mark, subpath = path.partition("#")
            subpath = (mark + subpath).rstrip()
        target = path.strip()
        if not target and not subpath:
            return
        if target != path:
            first += len(path[: len(path) - len(path.lstrip())].encode())
        last = first + (len(target) if target.isascii() else len(target.encode()))
        kind: LinkKind = "wikilink"
        if start > consumed and self._data[start - 1] == _BANG:
            kind = "embed"
            start -= 1
        form: LinkForm = "table" if escaped else "plain"
        line = self._hidden.lines.number(start)
        fields = (kind, target, subpath, display, start, end, first, last, line, form, None)
        self.links.append(_new(Link, fields))

    def _simple_link(self, event: re.Match[bytes], consumed: int) -> None:
        """Collect a Markdown link whose text and destination have no nested brackets."""
        start, end = event.span()
        if self._tables:
            self._hidden.check_cells(start, end)
        if not is_external(event[3]):
            self._markdown_link((start, end), event[2], event[3], event.start(3), consumed)
        if b"#" in event[2]:
            self._inside(event.start(2), event.end(2))

    def _markdown_link(
        self,
        span: tuple[int, int],
        display: bytes,
        raw: bytes,
        raw_start: int,
        consumed: int,
        form: LinkForm = "plain",
    ) -> None:
        """Collect a Markdown link with the destination `raw`."""
        start, end = span
        kind: LinkKind = "markdown"
        if start > consumed and self._data[start - 1] == _BANG:
            kind = "markdown-embed"
            start -= 1
        target, subpath, first, last = read_destination(raw, raw_start)
        line = self._hidden.lines.number(start)
        text = display.decode()
        fields = (kind, target, subpath, text, start, end, first, last, line, form, None)
        self.links.append(_new(Link, fields))

    def _tag(self, event: re.Match[bytes]) -> None:
        if name := tag_name(event[4].decode()):
            start = event.start()
            end = start + 1 + (len(name) if name.isascii() else len(name.encode()))
            line = self._hidden.lines.number(start)
            self.tags.append(_new(NoteTag, (name, start, end, line, False)))

    def _precedes_tag(self, at: int, start: int, consumed: int) -> bool:
        """Return True if a `#` begins a tag without one of the usual characters before it.

        It does at the very beginning, directly after another construct, and after a blank that is
        not ASCII.
        """
        if at == 0 or (at == consumed and at != start):
            return True
        if self._data[at - 1] < 0x80:
            return False
        return self._data[max(0, at - 4) : at].decode(errors="replace")[-1].isspace()

    def _is_box(self, event: re.Match[bytes]) -> bool:
        """Return True if a bracket is the checkbox of a list item. Its content is not text then."""
        data, at = self._data, event.start()
        if data[at - 3 : at] == b"\n- " and event.end() == at + 3:
            self.boxes.append((at - 2, at))
            return True
        line = self._hidden.lines.start(at)
        if not self._hidden.lines.can_open_block(at):
            return False
        lead = _BEFORE_BOX.fullmatch(data, line, at)
        if lead is None or len(event[6].decode(errors="replace")) != 1:
            return False
        if self._hidden.borders is None and lead[1] and lead[1] != b"1":
            # Within a paragraph, only the number 1 begins a list.
            above = max(0, data.rfind(b"\n", 0, max(0, line - 1)))
            if not _BEFORE_NUMBER.match(data, above, line):
                raise NeedsBlocks
        self.boxes.append((line, at))
        return True

    def _other(self, kind: int, event: re.Match[bytes], end: int, consumed: int) -> int:
        """Return the position after what an event opens, or -1 if it hides nothing."""
        at, hidden = event.start(), self._hidden
        if kind == _BLOCK_ID:
            self.block_ids.append((at, event.end(_BLOCK_ID)))
            return -1
        if kind == _TICKS:
            position = hidden.ticks(at, event.end(), end)
        elif kind == _DOLLAR:
            position = hidden.mathematics(at, end)
        elif kind == _ANGLE:
            position = hidden.html(at, end)
        elif kind == _TILDES:
            return hidden.tildes(at)
        elif kind == _PERCENT:
            return self._comment(at)
        else:
            position = self._link(at, end, consumed)
            if position < 0 and kind == _BOX:
                return at + 1
        if position >= 0 and self._tables:
            hidden.check_cells(at, position)
        return position

    def _is_linkless(self, at: int, end: int) -> bool:
        """Return True if no Markdown link ends between here and the end of the block.

        The text is searched at most twice a block, so that many brackets take no longer.
        """
        if at >= self._searched:
            data, hidden = self._data, self._hidden
            if hidden.borders is None:
                block_end = min(hidden.next(BLANK_LINE, at)[0], end)
            else:
                block_end = hidden.limit(at, end)
            last = data.rfind(b"](", at, max(at, data.rfind(b")", at, block_end)))
            if last < 0:
                self._searched = self._linkless_end = block_end
            else:
                self._searched, self._linkless_end = last, -1
        return at < self._linkless_end

    def _comment(self, at: int) -> int:
        """Collect the tags of a comment that begins a line and ends on a later one.

        Returns the position after its lines, or -1 if there is no such comment.
        """
        data, hidden = self._data, self._hidden
        if hidden.borders is not None or not hidden.lines.can_open_block(at):
            return -1
        close = data.find(b"%%", at + 2)
        if close < 0 or data.find(b"\n", at, close) < 0:
            return -1
        comment_end = hidden.skip_block(at, line_end(data, close))
        hidden.borders = ()
        while at < comment_end:
            next_line = min(comment_end, line_end(data, at) + 1)
            self.scan_tags(at, next_line)
            at = next_line
        hidden.borders = None
        return comment_end

    def _link(self, at: int, end: int, consumed: int) -> int:
        """Collect the Markdown link that a bracket opens. Returns the position after it, or -1."""
        data, hidden = self._data, self._hidden
        limit = hidden.limit(at, end)
        close = self._closing_bracket(at, limit)
        if close < 0:
            if (
                hidden.borders is None
                and limit < end
                and hidden.next(_TEXT_END, limit)[1] <= hidden.next(BLANK_LINE, at)[0]
            ):
                raise NeedsBlocks
            return -1
        if close + 1 >= end or not data.startswith(b"(", close + 1):
            return -1
        match = _DESTINATION.match(data, close + 2, end)
        if match is None or not hidden.is_same_block(at, match.end()):
            return -1
        group = 1 if match[1] is not None else 2
        raw = match[group]
        if not raw:
            return -1
        if not is_external(raw):
            form: LinkForm = "angle" if group == 1 else "plain"
            span = at, match.end()
            self._markdown_link(
                span, data[at + 1 : close], raw, match.start(group), consumed, form=form
            )
        self._inside(at + 1, close)
        return match.end()

    def _inside(self, start: int, end: int) -> None:
        """Collect from the text of a link."""
        if self._depth < _NESTED_LINKS:
            self._depth += 1
            self.scan(start, end)
            self._depth -= 1

    def _closing_bracket(self, at: int, end: int) -> int:
        """Return the bracket that closes the one at an offset, or -1.

        All pairs up to `end` are matched at once, which are valid within a pair as well.
        """
        first, last = self._paired
        if end > last or at < first:
            self._paired = (at, end)
            self._pairs = self._pair(at, end)
        close = self._pairs.get(at, -1)
        return close if close < end else -1

    def _pair(self, at: int, end: int) -> dict[int, int]:
        data = self._data
        pairs: dict[int, int] = {}
        pending: list[int] = []
        position = at
        # Code can continue after the end of a line. The blocks tell whether it hides a bracket.
        reach = len(data) if self._hidden.borders is None else end
        while True:
            for mark in _BRACKETS.finditer(data, position, end):
                character = data[mark.start()]
                if character == _OPENING_BRACKET:
                    pending.append(mark.start())
                elif character == _CLOSING_BRACKET and pending:
                    pairs[pending.pop()] = mark.start()
                elif (
                    character == _TICK
                    and (position := self._hidden.code(mark.start(), mark.end(), reach)) >= 0
                ):
                    break
            else:
                return pairs
