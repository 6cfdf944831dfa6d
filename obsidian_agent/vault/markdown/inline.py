"""Links and tags in running text, and where headings, checkboxes and block ids may be: one pass of one regular expression, over bytes.

What hides text is passed over as Obsidian does: escapes, code, mathematics, HTML, comments; a comment between ``%%`` on one line hides
nothing. Whatever is looked for ahead is remembered until the scan has come there, so that a text of nothing but opening marks takes no
longer, byte by byte, than any other.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import Final
from urllib.parse import unquote_to_bytes

from obsidian_agent.expression import expression
from obsidian_agent.vault.markdown.blocks import BLANK_LINE, INDENTED, LineFinder, NeedsBlocks
from obsidian_agent.vault.markdown.lines import HTML_BLOCK
from obsidian_agent.vault.markdown.model import Link, LinkForm, LinkKind, NoteTag

_PUNCTUATION: Final = rb"[!-/:-@\[-`{-~]"
_NESTING: Final = 8


def _balanced(levels: int) -> bytes:
    unit = rb"[^\s()\\]++|\\" + _PUNCTUATION + rb"?+"
    pattern = rb"(?>(?:" + unit + rb")*)"
    for _ in range(levels):
        pattern = rb"(?>(?:" + unit + rb"|\(" + pattern + rb"\))*)"
    return pattern


DESTINATION: Final = expression(
    rb"[ \t\r\n]*+(?:<((?>(?:[^<>\n\\]|\\[\s\S])*))>|(?!<)(" + _balanced(_NESTING) + rb"))"
    rb"""(?:[ \t\r\n]++(?:"(?>(?:[^"\\]|\\[\s\S])*)"|'(?>(?:[^'\\]|\\[\s\S])*)'|\((?>(?:[^()\\]|\\[\s\S])*)\)))?[ \t\r\n]*+\)"""
)
"""From behind the opening parenthesis to behind the closing one: group 1 in angle brackets, group 2 without; a title may follow."""

_EXTERNAL: Final = expression(rb"[A-Za-z][A-Za-z0-9+.\-]*:|//")
_ESCAPE: Final = expression(rb"\\(" + _PUNCTUATION + rb")")
_SUBPATH: Final = expression(rb"#|%23|\\#")


def is_external(destination: bytes) -> bool:
    """Whether a destination has a URL's scheme or host."""
    return _EXTERNAL.match(destination) is not None


def decoded(destination: bytes) -> str:
    """What a destination says: backslash escapes and percent-encoding undone; encoding that is no UTF-8 stays as it is."""
    plain = _ESCAPE.sub(rb"\1", destination) if b"\\" in destination else destination
    if b"%" in plain:
        try:
            return unquote_to_bytes(plain).decode()
        except UnicodeDecodeError:
            pass
    return plain.decode()


def markdown_link(
    display: bytes,
    raw: bytes,
    start: int,
    end: int,
    raw_start: int,
    line: int,
    *,
    embed: bool,
    angle: bool,
) -> Link:
    """A Markdown link to a file; `raw` is its destination as written, from `raw_start`."""
    path, mark, subpath = decoded(raw).partition("#")
    stop = found.start() if mark and (found := _SUBPATH.search(raw)) else len(raw)
    piece = raw[:stop]
    first = raw_start + len(piece) - len(piece.lstrip())
    return Link(
        "markdown-embed" if embed else "markdown",
        path.strip(),
        mark + subpath,
        display.decode(),
        start,
        end,
        first,
        max(first, raw_start + len(piece.rstrip())),
        line,
        "angle" if angle else "plain",
    )


# --- what hides text --------------------------------------------------------------------------------------------------------------

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
    """Where the constructs of one note end that hide links and tags: code, mathematics, HTML, comments.

    An offset that is asked for is that of the construct's first character, and they ascend; the answer is the offset behind it, or -1 when
    nothing is hidden there. The borders between blocks, which nothing inline crosses, are known; or the text is a whole note of which
    nothing is known. Then the blocks that begin in the first column and hide their lines count too, and whatever depends on where another
    block ends raises `NeedsBlocks`.
    """

    def __init__(
        self, data: bytes, borders: Sequence[int] | None, tables: Sequence[tuple[int, int]]
    ) -> None:
        """`borders` are the offsets at which blocks begin, ascending; None when they are not known. Then `tables` are the ranges in which
        there may be rows of tables, whose pipes are borders."""
        self._data = data
        self.borders = borders
        self.tables = tables
        self.lines = LineFinder(data)
        self._ahead: dict[re.Pattern[bytes], tuple[int, int, int]] = {}
        self._runs: dict[int, list[int]] | None = None

    def next(self, wanted: re.Pattern[bytes], at: int) -> tuple[int, int]:
        """The next place of what is searched for, and where it ends; behind the end of the note when there is none."""
        asked, start, end = self._ahead.get(wanted, (0, -1, -1))
        if not asked <= at <= start:
            found = wanted.search(self._data, at)
            while found and wanted is _DOLLARS and found[1] is None:
                found = wanted.search(self._data, found.end())
            start, end = found.span() if found else (len(self._data) + 1,) * 2
            self._ahead[wanted] = at, start, end
        return start, end

    def keep_cells(self, start: int, end: int) -> None:
        """Raises NeedsBlocks when a construct has a pipe in it where that may be the border of a table's cell."""
        if _PIPE.search(self._data, start, end):
            table = bisect_right(self.tables, (start, len(self._data))) - 1
            if table >= 0 and start < self.tables[table][1]:
                raise NeedsBlocks

    def same_block(self, at: int, to: int) -> bool:
        """Whether a construct may reach from one place to another. Raises NeedsBlocks when only the blocks can tell."""
        if to <= self.lines.end(at):
            return True
        if self.borders is not None:
            return bisect_right(self.borders, at) == bisect_right(self.borders, to - 1)
        if self.next(BLANK_LINE, at)[1] <= to:
            return False
        raise NeedsBlocks

    def limit(self, at: int, end: int) -> int:
        """How far an inline construct may reach: to the end of the block, or of the line when that is not known."""
        if self.borders is None:
            return min(end, self.lines.end(at))
        border = bisect_right(self.borders, at)
        return min(end, self.borders[border]) if border < len(self.borders) else end

    def pass_over(self, at: int, behind: int) -> int:
        """Behind a block that begins at a line's start; one that is indented, quoted or in a list needs the blocks."""
        if (at and self._data[at - 1] != 10) or INDENTED.match(self._data, behind):
            raise NeedsBlocks
        return behind

    def ticks(self, at: int, behind: int, end: int) -> int:
        """The fence or the code span that a run of backticks opens."""
        if (
            self.borders is None
            and behind - at >= 3
            and self.lines.is_opened(at)
            and self._data.find(b"`", behind, self.lines.end(at)) < 0
        ):
            return self._fence(at, behind, b"`")
        return self.code(at, behind, end)

    def tildes(self, at: int) -> int:
        """The fence that three tildes open."""
        if self.borders is not None or not self.lines.is_opened(at):
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
        if self._runs is None:
            self._runs = {}
            for run in _TICKS_RUN.finditer(self._data, at):
                self._runs.setdefault(run.end() - run.start(), []).append(run.start())
        length = behind - at
        runs = self._runs.get(length, [])
        following = bisect_right(runs, at)
        close = runs[following] + length if following < len(runs) else end + 1
        return close if close <= end and self.same_block(at, close) else -1

    def mathematics(self, at: int, end: int) -> int:
        """Mathematics between single or double dollars. A single one opens before no blank, and closes behind no blank and before no
        digit."""
        data = self._data
        if data.startswith(b"$$", at):
            close, behind = self.next(_TWO_DOLLARS, at + 2)
            is_closed = behind <= end
            if (
                self.borders is None
                and (not is_closed or close > self.lines.end(at))
                and self.lines.is_opened(at)
            ):
                return self.pass_over(at, _line_end(data, close) if is_closed else len(data))
            return behind if is_closed and self.same_block(at, close) else -1
        if at + 1 >= end or data[at + 1] in b" \t\r\n":
            return -1
        behind = self.next(_DOLLARS, at + 1)[1]
        return behind if behind <= end and self.same_block(at, behind) else -1

    def html(self, at: int, end: int) -> int:
        """A tag, a comment, an address in angle brackets, or a block of HTML."""
        data = self._data
        if found := _AUTOLINK.match(data, at, end):
            return found.end()
        if self.borders is None and _HTML_START.match(data, at) and self.lines.is_opened(at):
            return self._html_block(at)
        if data.startswith(b"<!--", at):
            close, behind = self.next(_COMMENT_END, at + 4)
            return behind if behind <= end and self.same_block(at, close) else -1
        found = _HTML_TAG.match(data, at, end)
        return found.end() if found and self.same_block(at, found.end()) else -1

    def _html_block(self, at: int) -> int:
        data = self._data
        if data.startswith(b"<!--", at):
            close = data.find(b"-->", at + 4)
            return self.pass_over(at, len(data) if close < 0 else _line_end(data, close))
        if not _HTML_BLOCK.match(data, at):
            raise NeedsBlocks
        blank = _UNQUOTED_BLANK_LINE.search(data, at)
        return self.pass_over(at, blank.end() if blank else len(data))


@lru_cache(maxsize=64)
def _closing_fence(mark: bytes, length: int) -> re.Pattern[bytes]:
    return re.compile(rb"\n {0,3}%s{%d,}[ \t]*\r?(?=\n|\Z)" % (mark, length))


def _line_end(data: bytes, at: int) -> int:
    newline = data.find(b"\n", at)
    return len(data) if newline < 0 else newline


# --- the scan ---------------------------------------------------------------------------------------------------------------------

_WIKI, _MARKDOWN, _TAG, _HEADING, _BOX, _BLOCK_ID = 1, 3, 4, 5, 6, 7
_TICKS, _DOLLAR, _ANGLE, _TILDES, _PERCENT, _BRACKET = 8, 9, 10, 11, 12, 13

# Every alternative begins with a plain character, so that the search can skip to the next of nine. Runs are possessive: no backtracking.
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
_BARREN_EVENT: Final = expression(_PLAIN, re.VERBOSE)
"""What is to be found where no Markdown link ends: there a bracket alone is nothing."""
_EVENT: Final = expression(_PLAIN + rb"|\[()", re.VERBOSE)
_TEXT_END: Final = expression(rb"\]\(")
_BRACKETS: Final = expression(rb"\\[\s\S]|`+|\[|\]")
_BEFORE_BOX: Final = expression(rb"[ \t>]*+(?:[-*+]|([0-9]{1,9})[.)])[ \t]+")
_BEFORE_NUMBER: Final = expression(rb"\n?[ \t>]*+(?:[0-9]{1,9}[.)][ \t]|\r?\n|\Z)")
_BEFORE_TAG: Final = frozenset(b" \t\n\r\v\f>(")
_NOT_IN_TAG: Final = expression("[\\s\u2000-\u206f\u2e00-\u2e7f]")
_NO_NUMBER: Final = expression(r"[^\d/_-]")
_DEEPEST: Final = 16
_new = tuple.__new__


def tag_name(name: str) -> str:
    """The name of the tag that a run of characters behind a `#` is; "" when it is none."""
    if not name.isascii() and (stop := _NOT_IN_TAG.search(name)):
        name = name[: stop.start()]
    name = name.rstrip("/")
    return name if name.isalpha() or _NO_NUMBER.search(name) else ""


class InlineScanner:
    """Collects what is in the text of one note. Ranges must be given in ascending order, because lines are counted on the way."""

    def __init__(
        self,
        data: bytes,
        borders: Sequence[int] | None = None,
        tables: Sequence[tuple[int, int]] = (),
    ) -> None:
        """`borders` and `tables` as `HiddenSpans` takes them."""
        self.links: list[Link] = []
        self.tags: list[NoteTag] = []
        self.headings: list[int] = []
        """Where the marks are that may begin a heading."""
        self.boxes: list[tuple[int, int]] = []
        """The checkboxes of list items: where their line begins, and the bracket."""
        self.block_ids: list[tuple[int, int]] = []
        """What may be the id of a block, from `^`."""
        self._data = data
        self._hidden = HiddenSpans(data, borders, tables)
        self._tables = tables
        self._pairs: dict[int, int] = {}
        self._paired = (0, -1)
        self._depth = 0
        self._looked = self._barren = -1

    def scan(self, start: int, end: int) -> None:
        """Collect what is in a range."""
        data = self._data
        position = consumed = start
        while True:
            is_barren = position < self._barren
            stop = min(self._barren, end) if is_barren else end
            for event in (_BARREN_EVENT if is_barren else _EVENT).finditer(data, position, stop):
                kind = event.lastindex
                if kind == _WIKI:
                    self._wikilink(event, consumed)
                elif kind is None:
                    if self._tables:
                        self._hidden.keep_cells(event.start(), event.end())
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
                elif kind == _BRACKET and self._is_barren(event.start(), end):
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
        """Collect only the tags of a range; used for comments, whose tags Obsidian indexes and whose links it does not."""
        kept = self.links, self.headings, self.boxes, self.block_ids
        self.links, self.headings, self.boxes, self.block_ids = [], [], [], []
        self.scan(start, end)
        self.links, self.headings, self.boxes, self.block_ids = kept

    # --- what is found ------------------------------------------------------------------------------------------------------------

    def _wikilink(self, event: re.Match[bytes], consumed: int) -> None:
        start, end = event.span()
        first = start + 2
        text = event[1].decode()
        path, display, subpath, escaped = text, None, "", False
        pipe = text.find("|")
        if pipe >= 0 and self._tables:
            self._hidden.keep_cells(start, end)
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
        if start > consumed and self._data[start - 1] == 33:
            kind = "embed"
            start -= 1
        form: LinkForm = "table" if escaped else "plain"
        self.links.append(
            _new(
                Link,
                (
                    kind,
                    target,
                    subpath,
                    display,
                    start,
                    end,
                    first,
                    last,
                    self._hidden.lines.number(start),
                    form,
                    None,
                ),
            )
        )

    def _simple_link(self, event: re.Match[bytes], consumed: int) -> None:
        raw = event[3]
        start = event.start()
        if self._tables:
            self._hidden.keep_cells(start, event.end())
        if not is_external(raw):
            embed = start > consumed and self._data[start - 1] == 33
            link = markdown_link(
                event[2],
                raw,
                start - embed,
                event.end(),
                event.start(3),
                self._hidden.lines.number(start),
                embed=embed,
                angle=False,
            )
            self.links.append(link)
        if b"#" in event[2]:
            self._inside(event.start(2), event.end(2))

    def _tag(self, event: re.Match[bytes]) -> None:
        if name := tag_name(event[4].decode()):
            start = event.start()
            end = start + 1 + (len(name) if name.isascii() else len(name.encode()))
            self.tags.append(
                _new(NoteTag, (name, start, end, self._hidden.lines.number(start), False))
            )

    def _precedes_tag(self, at: int, start: int, consumed: int) -> bool:
        """Whether a `#` without one of the usual characters before it begins a tag: at the very beginning, right behind another construct,
        or behind a blank that is not ASCII."""
        if at == 0 or (at == consumed and at != start):
            return True
        if self._data[at - 1] < 0x80:
            return False
        return self._data[max(0, at - 4) : at].decode(errors="replace")[-1].isspace()

    def _is_box(self, event: re.Match[bytes]) -> bool:
        """Whether a bracket is the checkbox of a list item; what is in it is no text then."""
        data, at = self._data, event.start()
        if data[at - 3 : at] == b"\n- " and event.end() == at + 3:
            self.boxes.append((at - 2, at))
            return True
        line = self._hidden.lines.start(at)
        lead = _BEFORE_BOX.fullmatch(data, line, at) if self._hidden.lines.is_opened(at) else None
        if lead is None or len(event[6].decode(errors="replace")) != 1:
            return False
        if self._hidden.borders is None and lead[1] and lead[1] != b"1":
            # In the middle of a text a number begins a list only when it is 1.
            above = max(0, data.rfind(b"\n", 0, max(0, line - 1)))
            if not _BEFORE_NUMBER.match(data, above, line):
                raise NeedsBlocks
        self.boxes.append((line, at))
        return True

    # --- what hides, and links that are not simple ----------------------------------------------------------------------------------

    def _other(self, kind: int, event: re.Match[bytes], end: int, consumed: int) -> int:
        """Where to go on behind an event that has no simple end; -1: right behind it, and nothing was hidden."""
        at, hiding = event.start(), self._hidden
        if kind == _BLOCK_ID:
            self.block_ids.append((at, event.end(_BLOCK_ID)))
            return -1
        if kind == _TICKS:
            behind = hiding.ticks(at, event.end(), end)
        elif kind == _DOLLAR:
            behind = hiding.mathematics(at, end)
        elif kind == _ANGLE:
            behind = hiding.html(at, end)
        elif kind == _TILDES:
            return hiding.tildes(at)
        elif kind == _PERCENT:
            return self._comment(at)
        else:
            behind = self._link(at, end, consumed)
            if behind < 0 and kind == _BOX:
                return at + 1
        if behind >= 0 and self._tables:
            hiding.keep_cells(at, behind)
        return behind

    def _is_barren(self, at: int, end: int) -> bool:
        """Whether no Markdown link ends between here and the end of the block; asked twice a block, so that a flood of brackets takes no longer."""
        if at >= self._looked:
            data, hiding = self._data, self._hidden
            block_end = (
                min(hiding.next(BLANK_LINE, at)[0], end)
                if hiding.borders is None
                else hiding.limit(at, end)
            )
            last = data.rfind(b"](", at, max(at, data.rfind(b")", at, block_end)))
            self._looked, self._barren = (block_end, block_end) if last < 0 else (last, -1)
        return at < self._barren

    def _comment(self, at: int) -> int:
        """Behind the lines of a comment that begins a line and ends on a later one; its tags are collected. Else -1."""
        data, hiding = self._data, self._hidden
        if hiding.borders is not None or not hiding.lines.is_opened(at):
            return -1
        close = data.find(b"%%", at + 2)
        if close < 0 or data.find(b"\n", at, close) < 0:
            return -1
        behind = hiding.pass_over(at, _line_end(data, close))
        hiding.borders = ()
        while at < behind:
            line_end = min(behind, _line_end(data, at) + 1)
            self.scan_tags(at, line_end)
            at = line_end
        hiding.borders = None
        return behind

    def _link(self, at: int, end: int, consumed: int) -> int:
        """Behind the Markdown link that a bracket opens, or -1."""
        data = self._data
        limit = self._hidden.limit(at, end)
        close = self._closing_bracket(at, limit)
        if close < 0:
            if (
                self._hidden.borders is None
                and limit < end
                and self._hidden.next(_TEXT_END, limit)[1] <= self._hidden.next(BLANK_LINE, at)[0]
            ):
                raise NeedsBlocks
            return -1
        found = (
            DESTINATION.match(data, close + 2, end)
            if data.startswith(b"(", close + 1) and close + 1 < end
            else None
        )
        if found is None or not self._hidden.same_block(at, found.end()):
            return -1
        group = 1 if found[1] is not None else 2
        if not found[group]:
            return -1
        if not is_external(found[group]):
            embed = at > consumed and data[at - 1] == 33
            start, raw_start, line = at - embed, found.start(group), self._hidden.lines.number(at)
            text = data[at + 1 : close]
            self.links.append(
                markdown_link(
                    text,
                    found[group],
                    start,
                    found.end(),
                    raw_start,
                    line,
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
        """The bracket that closes the one here, or -1. All pairs up to `end` are found at once, and hold for what is in a pair too."""
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
        # Where a line ends no code does; only the blocks tell whether code that goes on hides a bracket.
        reach = len(data) if self._hidden.borders is None else end
        while True:
            for mark in _BRACKETS.finditer(data, position, end):
                character = data[mark.start()]
                if character == 91:
                    pending.append(mark.start())
                elif character == 93 and pending:
                    pairs[pending.pop()] = mark.start()
                elif (
                    character == 96
                    and (position := self._hidden.code(mark.start(), mark.end(), reach)) >= 0
                ):
                    break
            else:
                return pairs
