"""Links and tags in running text: one pass of one regular expression, over bytes.

What hides them is passed over as Obsidian does: escapes, code spans, mathematics, HTML tags and comments; a comment between ``%%`` on one
line hides nothing. The text is either one block (a paragraph, a heading, a table cell), or it is `flat`: a whole note whose blocks nobody
has looked at. Then fences that begin a line are passed over too, and whatever depends on where a block ends raises `NeedsBlocks`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from obsidian_agent.vault.scan_blocks import NeedsBlocks
from obsidian_agent.vault.scan_destination import DESTINATION, is_external, markdown_link
from obsidian_agent.vault.scan_model import Link, NoteTag

_WIKI, _MARKDOWN, _TAG, _TICKS, _DOLLAR, _ANGLE, _BRACKET, _TILDES = 1, 3, 4, 5, 6, 7, 8, 9

# Every alternative begins with a plain character, so that the search can skip to the next of seven. Runs are possessive: no backtracking.
_EVENT: Final = re.compile(
    rb"""\\[!-/:-@\[-`{-~]
    |\[\[(?![ \t]*\]\])((?:[^\[\]\n]++|\](?!\])|\[(?!\[))++)\]\]
    |\[([^\[\]\\`\n]*+)\]\(([^\s()<>\\]++)\)
    |\#([^\s\#,.;:!?(){}\[\]"'`<>|\\*=+&%$@^~]++)
    |`[^`\n]++`(?!`)
    |`(`*+)
    |\$(\$?+)
    |<()
    |\[[\ xX]\](?!\()
    |\[()
    |~~~()""",
    re.VERBOSE,
)
_TICK_RUN: Final = re.compile(rb"`+")
_BRACKETS: Final = re.compile(rb"\\[\s\S]|`+|\[|\]")
_DOLLARS: Final = re.compile(rb"\\[\s\S]|(?<![ \t\n])\$(?![0-9])")
_BLANK_LINE: Final = re.compile(rb"\n[ \t>]*\r?\n")
_LINE_OPENING: Final = re.compile(rb"(?:[ \t>]|(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)*+")
_HTML_TAG: Final = re.compile(
    rb"""</?[A-Za-z][A-Za-z0-9-]*+
    (?:\s++[A-Za-z_:][A-Za-z0-9_.:-]*+(?:\s*+=\s*+(?:[^\s"'=<>`]++|'[^']*+'|"[^"]*+"))?+)*+
    \s*+/?>""",
    re.VERBOSE,
)
_AUTOLINK: Final = re.compile(rb"<[A-Za-z][A-Za-z0-9+.\-]{1,31}:[^\s<>]*+>")
_BEFORE_TAG: Final = frozenset(b" \t\n\r\v\f>(")
_NOT_IN_TAG: Final = re.compile("[\\s\u2000-\u206f\u2e00-\u2e7f]")
_NO_NUMBER: Final = re.compile(r"[^\d/_-]")
_DEEPEST: Final = 16


class InlineScanner:
    """Collects the links and tags of one note. Ranges must be given in ascending order, because lines are counted on the way."""

    def __init__(self, data: bytes, *, flat: bool) -> None:
        self.links: list[Link] = []
        self.tags: list[NoteTag] = []
        self.hidden: list[tuple[int, int]] = []
        """Flat: the fenced code that was passed over."""
        self._data = data
        self._flat = flat
        self._line = 1
        self._counted = 0
        self._hopeless: dict[tuple[int, int], int] = {}
        self._pairs: dict[int, int] = {}
        self._paired = (0, -1)
        self._depth = 0

    def scan(self, start: int, end: int) -> None:
        """Collect what is in a range."""
        data = self._data
        last_link = data.rfind(b"](", start, end)
        position: int = start
        consumed = start
        while position >= 0:
            for event in _EVENT.finditer(data, position, end):
                kind = event.lastindex
                if kind is None:
                    consumed = event.end()
                elif kind == _WIKI:
                    self._wikilink(event, consumed)
                    consumed = event.end()
                elif kind == _TAG:
                    if self._precedes_tag(event.start(), start, consumed):
                        self._tag(event)
                elif kind == _MARKDOWN:
                    self._simple_link(event, consumed)
                    consumed = event.end()
                elif kind != _BRACKET or event.start() < last_link:
                    position = self._other(kind, event, start, end, consumed)
                    if position >= 0:
                        consumed = position
                        break
            else:
                return

    def scan_tags(self, start: int, end: int) -> None:
        """Collect only the tags of a range; used for comments, whose tags Obsidian indexes and whose links it does not."""
        links, self.links = self.links, []
        self.scan(start, end)
        self.links = links

    # --- what is found ------------------------------------------------------------------------------------------------------------

    def _line_at(self, offset: int) -> int:
        if offset > self._counted:
            self._line += self._data.count(b"\n", self._counted, offset)
            self._counted = offset
        return self._line

    def _wikilink(self, event: re.Match[bytes], consumed: int) -> None:
        raw = event[1]
        start = event.start()
        first = start + 2
        text = raw.decode()
        pipe = text.find("|")
        path, display, escaped = text, None, False
        if pipe > 0:
            path, display = text[:pipe], text[pipe + 1 :]
            if path[-1] == "\\":
                path, escaped = path[:-1], True
        elif text.isspace():
            return
        path, mark, subpath = path.partition("#")
        target = path.strip()
        if not target and not mark:
            return
        if target != path:
            first += len(path[: len(path) - len(path.lstrip())].encode())
        embed = start > consumed and self._data[start - 1] == 33
        self.links.append(
            Link(
                "embed" if embed else "wikilink",
                target,
                (mark + subpath).rstrip(),
                display,
                start - embed,
                event.end(),
                first,
                first + (len(target) if target.isascii() else len(target.encode())),
                self._line_at(start),
                "table" if escaped else "plain",
            )
        )

    def _simple_link(self, event: re.Match[bytes], consumed: int) -> None:
        raw = event[3]
        start = event.start()
        if not is_external(raw):
            embed = start > consumed and self._data[start - 1] == 33
            link = markdown_link(event[2], raw, start - embed, event.end(), event.start(3), self._line_at(start), embed=embed, angle=False)
            self.links.append(link)
        if b"#" in event[2]:
            self._inside(event.start(2), event.end(2))

    def _tag(self, event: re.Match[bytes]) -> None:
        raw = event[4]
        name = raw.decode()
        if not raw.isascii() and (stop := _NOT_IN_TAG.search(name)):
            name = name[: stop.start()]
        name = name.rstrip("/")
        if _NO_NUMBER.search(name):
            start = event.start()
            self.tags.append(NoteTag(name, start, start + 1 + len(name.encode()), self._line_at(start)))

    def _precedes_tag(self, at: int, start: int, consumed: int) -> bool:
        """Whether a `#` here begins a tag: behind a blank, `>`, `(`, at the beginning of a block, or right behind another construct."""
        if at == 0:
            return True
        before = self._data[at - 1]
        if before in _BEFORE_TAG or at == consumed:
            return before != 91 or at != start
        if before < 0x80:
            return False
        return self._data[max(0, at - 4) : at].decode(errors="replace")[-1].isspace()

    # --- what hides, and links that are not simple ----------------------------------------------------------------------------------

    def _other(self, kind: int, event: re.Match[bytes], start: int, end: int, consumed: int) -> int:
        """Where to go on behind an event that has no simple end; -1: right behind it, and nothing was hidden."""
        at = event.start()
        if kind == _TICKS:
            return self._ticks(at, event.end(), end)
        if kind == _DOLLAR:
            return self._mathematics(at, end)
        if kind == _ANGLE:
            return self._angle(at, end)
        if kind == _BRACKET:
            return self._link(at, end, consumed)
        if self._flat and self._opens_line(at):
            return self._fence(at, b"~")
        return -1

    def _ticks(self, at: int, behind: int, end: int) -> int:
        if self._flat and behind - at >= 3 and self._opens_line(at):
            line_end = self._data.find(b"\n", behind)
            if b"`" not in self._data[behind : len(self._data) if line_end < 0 else line_end]:
                return self._fence(at, b"`")
        return self._code(at, behind, end)

    def _opens_line(self, at: int) -> bool:
        """Whether only quote marks, list markers and blanks precede in the line."""
        line = self._data.rfind(b"\n", 0, at) + 1
        return _LINE_OPENING.fullmatch(self._data, line, at) is not None

    def _fence(self, at: int, mark: bytes) -> int:
        """Behind the fenced code that begins at a line's start; one that is indented, quoted or in a list needs the blocks."""
        data = self._data
        if at and data[at - 1] != 10:
            raise NeedsBlocks
        run = at
        while data.startswith(mark, run):
            run += 1
        close = _closing_fence(mark, run - at).search(data, run)
        behind = close.end() if close else len(data)
        self.hidden.append((at, behind))
        return behind

    def _code(self, at: int, behind: int, end: int) -> int:
        """Behind the code span that a run of backticks opens, or -1 when nothing closes it."""
        length = behind - at
        if self._hopeless.get((length, end), end) <= at:
            return -1
        for run in _TICK_RUN.finditer(self._data, behind, end):
            if run.end() - run.start() == length:
                return run.end() if self._same_block(at, run.end()) else -1
        self._hopeless[length, end] = at
        return -1

    def _mathematics(self, at: int, end: int) -> int:
        data = self._data
        if data.startswith(b"$$", at):
            close = data.find(b"$$", at + 2, end)
            if self._flat and (close < 0 or data.find(b"\n", at, close) >= 0) and self._opens_line(at):
                raise NeedsBlocks
            return close + 2 if close >= 0 and self._same_block(at, close) else -1
        if self._hopeless.get((0, end), end) <= at or at + 1 >= end or data[at + 1] in b" \t\r\n":
            return -1
        for dollar in _DOLLARS.finditer(data, at + 1, end):
            if data[dollar.start()] == 36:
                return dollar.end() if self._same_block(at, dollar.end()) else -1
        self._hopeless[0, end] = at
        return -1

    def _angle(self, at: int, end: int) -> int:
        data = self._data
        if found := _AUTOLINK.match(data, at, end):
            return found.end()
        if self._flat and at + 1 < end and (data[at + 1 : at + 2].isalpha() or data[at + 1] in b"/!?") and self._opens_line(at):
            raise NeedsBlocks
        if data.startswith(b"<!--", at):
            close = data.find(b"-->", at + 4, end)
            return close + 3 if close >= 0 and self._same_block(at, close) else -1
        found = _HTML_TAG.match(data, at, end)
        return found.end() if found and self._same_block(at, found.end()) else -1

    def _same_block(self, at: int, to: int) -> bool:
        """Whether a construct may reach from one place to another. Raises NeedsBlocks when only the blocks can tell."""
        if not self._flat or self._data.find(b"\n", at, to) < 0:
            return True
        if _BLANK_LINE.search(self._data, at, to):
            return False
        raise NeedsBlocks

    def _link(self, at: int, end: int, consumed: int) -> int:
        """Behind the Markdown link that a bracket opens, or -1."""
        data = self._data
        limit = end
        if self._flat:
            newline = data.find(b"\n", at, end)
            limit = end if newline < 0 else newline
        close = self._closing_bracket(at, limit)
        if close < 0:
            if limit < end and (other := data.find(b"](", limit, end)) >= 0:
                self._same_block(at, other)
            return -1
        found = DESTINATION.match(data, close + 2, end) if data.startswith(b"(", close + 1) and close + 1 < end else None
        if found is None or not self._same_block(at, found.end()):
            return -1
        group = 1 if found[1] is not None else 2
        if not found[group]:
            return -1
        if not is_external(found[group]):
            embed = at > consumed and data[at - 1] == 33
            self.links.append(
                markdown_link(
                    data[at + 1 : close],
                    found[group],
                    at - embed,
                    found.end(),
                    found.start(group),
                    self._line_at(at),
                    embed=embed,
                    angle=group == 1,
                )
            )
        self._inside(at + 1, close)
        return found.end()

    def _inside(self, start: int, end: int) -> None:
        """Collect what is in the text of a link."""
        if self._depth < _DEEPEST:
            self._depth += 1
            self.scan(start, end)
            self._depth -= 1

    def _closing_bracket(self, at: int, end: int) -> int:
        """The bracket that closes the one here, or -1. All pairs up to `end` are found at once, so that many brackets cost no more."""
        first, last = self._paired
        if end != last or at < first:
            self._paired = (at, end)
            self._pairs = self._pair(at, end)
        return self._pairs.get(at, -1)

    def _pair(self, at: int, end: int) -> dict[int, int]:
        data, pairs = self._data, {}
        pending: list[int] = []
        position = at
        while position >= 0:
            for mark in _BRACKETS.finditer(data, position, end):
                character = data[mark.start()]
                if character == 91:
                    pending.append(mark.start())
                elif character == 93 and pending:
                    pairs[pending.pop()] = mark.start()
                elif character == 96 and (position := self._code(mark.start(), mark.end(), end)) >= 0:
                    break
            else:
                return pairs
        return pairs


@lru_cache(maxsize=64)
def _closing_fence(mark: bytes, length: int) -> re.Pattern[bytes]:
    return re.compile(rb"\n {0,3}%s{%d,}[ \t]*\r?(?=\n|\Z)" % (mark, length))
