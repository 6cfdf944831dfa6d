"""Markdown of notes and answers as styled lines, each with its line of the source and its links.

The syntax of Obsidian is included: wikilinks, embeds, callouts, tasks, highlights, comments and
tags. HTML and images stay text. Nothing here reads a file: what is known about
links and embeds comes as `LinkFacts`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from rich.cells import cell_len
from textual.content import Content

from obsidian_agent import terminal_text

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

    from obsidian_agent.services.reading import LinkFacts
    from obsidian_agent.vault.markdown.canvas import Card

MAX_CELL_WIDTH = 40
"""Columns of a table cell beyond which the next one is not aligned, if the width is unknown."""

MIN_CELL_WIDTH = 6
"""Columns that every column of a table gets where the table is too wide."""

MAX_DEPTH = 8
"""Nesting of lists and quotes beyond which the indent does not grow."""

MAX_EMBEDDED_LINES = 60
"""Lines of an embedded note; the rest is counted."""

WEB = ("https://", "http://", "mailto:")

_HEADINGS = {"h1": "bold $primary underline", "h2": "bold $primary"}
_MARKS = {
    "strong_open": "bold",
    "em_open": "italic",
    "s_open": "strike",
    "mark_open": "on $warning 25%",
}
_BLANK_QUOTE = "$quiet"
_CALLOUTS = {
    "warning": "$warning",
    "caution": "$warning",
    "attention": "$warning",
    "question": "$warning",
    "help": "$warning",
    "faq": "$warning",
    "danger": "$error",
    "error": "$error",
    "bug": "$error",
    "failure": "$error",
    "fail": "$error",
    "missing": "$error",
    "success": "$success",
    "check": "$success",
    "done": "$success",
    "tip": "$success",
    "hint": "$success",
    "important": "$success",
    "quote": "$quiet",
    "cite": "$quiet",
}
"""Styles of the kinds of callouts in Obsidian; all others are blue there."""

_WIKILINK = re.compile(r"(!?)\[\[([^\[\]|\n]+)(?:\|([^\[\]\n]*))?\]\]")
_CALLOUT = re.compile(r"\[!([^\]\n]+)\]([+-]?)[ \t]*([^\n]*)(?:\n|$)")
_TASK = re.compile(r"\[(.)\](?:[ \t]+|$)")
_TAG = re.compile(r"#(?=[\w/-]*[^\W\d])[\w/-]+")
_BLOCK_ID = re.compile(r"\^[A-Za-z0-9-]+[ \t]*(?:\n|$)")
_URL = re.compile(r"https?://[^\s<>\"'`]*[^\s<>\"'`.,;:!?)\]]")
_BOXES = {" ": "☐ ", "x": "☑ ", "X": "☑ "}


class LinkSpan(Struct, frozen=True):
    """A link in a line: where its text is, and its target as it is written.

    `source` is the note in which it stands, empty for the displayed one. The target of a tag is
    the tag with its `#`.
    """

    start: int
    end: int
    target: str
    source: str = ""
    is_tag: bool = False


class MarkdownLine(Struct, frozen=True, kw_only=True):
    """A line of rendered Markdown. It may be wrapped: `rest` precedes its further rows."""

    body: Content
    line: int
    """The line of the source, from 0."""
    first: Content = Content("")
    rest: Content = Content("")
    links: tuple[LinkSpan, ...] = ()
    opens: str = ""
    """The fold that this line opens and closes."""
    inside: tuple[str, ...] = ()
    """The folds that hide this line while they are closed."""


def markdown_lines(
    text: str, known: LinkFacts | None = None, *, width: int = 0, first_line: int = 0
) -> list[MarkdownLine]:
    """Return the lines of a Markdown text, with unsafe characters replaced.

    `width` is that of the screen, if tables should fit into it. `first_line` is the number of the
    text's first line in its file. Raise `RecursionError` for text that is nested too deeply.
    """
    writer = _Writer(known, width, first_line)
    writer.write(text)
    lines = writer.lines
    while lines and not lines[-1].body.plain:
        lines.pop()
    return lines


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": 40})
    parser.enable(["table", "strikethrough"])
    for name, rule in (
        ("wikilink", _wikilink),
        ("comment", _comment),
        ("mark", _mark),
        ("tag", _tag),
        ("block_id", _block_id),
    ):
        parser.inline.ruler.before("escape" if name != "wikilink" else "link", name, rule)
    parser.inline.ruler.before("image", "embed", _wikilink)
    return parser


# --- rules of Obsidian's syntax -------------------------------------------------------------------


def _wikilink(state: StateInline, silent: bool) -> bool:
    match = _WIKILINK.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        token = state.push("embed" if match[1] else "wikilink", "", 0)
        token.content = match[2].strip().removesuffix("\\")
        token.info = match[3] or ""
    state.pos = match.end()
    return True


def _delimited(state: StateInline, mark: str) -> int:
    """Return the end of text between two marks that begins here, or -1."""
    start = state.pos
    if not state.src.startswith(mark, start):
        return -1
    end = state.src.find(mark, start + 2, state.posMax)
    if end <= start + 2 or state.src[start + 2].isspace():
        return -1
    return end


def _comment(state: StateInline, silent: bool) -> bool:
    start = state.pos
    if not state.src.startswith("%%", start):
        return False
    end = state.src.find("%%", start + 2, state.posMax)
    if end < 0:
        return False
    if not silent:
        token = state.push("comment", "", 0)
        token.content = state.src[start : end + 2]
    state.pos = end + 2
    return True


def _mark(state: StateInline, silent: bool) -> bool:
    start, end, limit = state.pos, _delimited(state, "=="), state.posMax
    if end < 0 or state.level > 8:
        return False
    if not silent:
        state.push("mark_open", "mark", 1)
        state.pos, state.posMax = start + 2, end
        state.md.inline.tokenize(state)
        state.push("mark_close", "mark", -1)
        state.posMax = limit
    state.pos = end + 2
    return True


def _tag(state: StateInline, silent: bool) -> bool:
    at = state.pos
    if at and not state.src[at - 1].isspace():
        return False
    match = _TAG.match(state.src, at, state.posMax)
    if match is None:
        return False
    if not silent:
        state.push("tag", "", 0).content = match[0]
    state.pos = match.end()
    return True


def _block_id(state: StateInline, silent: bool) -> bool:
    at = state.pos
    match = _BLOCK_ID.match(state.src, at, state.posMax)
    if match is None or (at and not state.src[at - 1].isspace()):
        return False
    if not silent:
        state.push("block_id", "", 0).content = match[0].strip()
    state.pos = at + len(match[0].rstrip("\n"))
    return True


def _callouts(tokens: Sequence[Token]) -> None:
    """Mark the quotes that are callouts, and take the first line out of them."""
    for opening, _, inline in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if opening.type != "blockquote_open" or inline.type != "inline":
            continue
        match = _CALLOUT.match(inline.content)
        if match is not None:
            opening.meta["callout"] = (match[1].strip(), match[2], match[3].strip())
            inline.content = inline.content[match.end() :]
            inline.children = _children(inline.content)
            if inline.map is not None:
                inline.map = [inline.map[0] + 1, inline.map[1]]


def property_lines(properties: Mapping[str, Any], rows: Sequence[str]) -> list[MarkdownLine]:
    """Return the properties of a note: a line that counts them, which opens one for each.

    `rows` are the lines of the source up to the end of the properties.
    """
    last_line = max(len(rows) - 1, 0)
    count = terminal_text.counted(len(properties), "property", "properties")
    names = terminal_text.shortened(", ".join(map(str, properties)), 60)
    fold = "-properties"
    head = Content.assemble((count, "$quiet"), (f"  {names}", "$quiet"))
    lines = [MarkdownLine(body=head, line=0, opens=fold)]
    width = min(max((cell_len(str(name)) for name in properties), default=0), 24)
    for name, value in properties.items():
        label = terminal_text.shortened(str(name), 40)
        text = _Text()
        text.add(f"  {label:<{width}}  ", "$quiet")
        listed = value if isinstance(value, list) else [value]
        words = ("" if item is None else str(item) for item in listed)
        written = terminal_text.line(", ".join(words))
        writer = _Writer(None, 0, 0)
        writer.write_inline(text, written)
        starts = (number for number, row in enumerate(rows) if row.startswith(f"{name}:"))
        lines.append(
            MarkdownLine(
                body=text.content,
                line=next(starts, last_line),
                rest=Content(" " * (width + 4)),
                links=tuple(text.links),
                inside=(fold,),
            )
        )
    lines.append(MarkdownLine(body=Content(""), line=last_line))
    return lines


def _children(text: str) -> list[Token]:
    tokens = _parser().parseInline(text)
    return (tokens[0].children or []) if tokens else []


# --- lines ----------------------------------------------------------------------------------------


class _Text:
    """The text of a line or a cell while it is written."""

    def __init__(self) -> None:
        self.pieces: list[tuple[str, str]] = []
        self.links: list[LinkSpan] = []
        self.length = 0

    def add(self, text: str, style: str) -> None:
        text = text.replace("\t", "    ")
        self.pieces.append((text, style))
        self.length += len(text)

    @property
    def content(self) -> Content:
        return Content.assemble(*self.pieces)


class _Writer:
    """Writes the flat list of block tokens as lines."""

    def __init__(
        self, known: LinkFacts | None, width: int, first_line: int, source: str = ""
    ) -> None:
        self.lines: list[MarkdownLine] = []
        self._known = known
        self._width = width
        self._offset = first_line
        self._source = source
        self._lists: list[int | None] = []
        self._quotes: list[str] = []
        """The styles of the quotes and callouts around the current text."""
        self._folds: list[str] = []
        """The folded callouts around it, an empty text for other quotes."""
        self._bullet: tuple[str, str] = ("", "")
        self._style = ""
        self._line = first_line
        self._cell: _Text | None = None
        self._rows: list[tuple[int, list[_Text]]] = []

    def write(self, text: str) -> None:
        """Write a text."""
        tokens = _parser().parse(terminal_text.block(text))
        _callouts(tokens)
        for token in tokens:
            if token.map is not None:
                self._line = self._offset + token.map[0]
            self._write(token)

    def write_inline(self, text: _Text, written: str) -> None:
        """Write a text without blocks."""
        self._pieces(text, _children(written), [])

    def _write(self, token: Token) -> None:
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
                self._open_quote(token)
            case "blockquote_close":
                self._quotes.pop()
                self._folds.pop()
                if self.lines and not self.lines[-1].body.plain:
                    self.lines.pop()  # the gap inside; that below the quote has no bar
                    self._gap()
            case "inline":
                self._inline(token)
            case "fence" | "code_block":
                self._code(token)
            case "hr":
                self._add(Content.styled("─" * 24, "$quiet"))
                self._gap()
            case _:
                self._table(token.type)

    def _add(self, body: Content, links: Sequence[LinkSpan] = (), *, opens: str = "") -> None:
        first, rest = self._indent()
        self.lines.append(
            MarkdownLine(
                body=body,
                line=self._line,
                first=first,
                rest=rest,
                links=tuple(links),
                opens=opens,
                inside=tuple(fold for fold in self._folds if fold and fold != opens),
            )
        )

    def _gap(self) -> None:
        if self._lists:
            return
        first = self._quote_bars() if self._quotes and self._folds[-1] else Content("")
        inside = tuple(fold for fold in self._folds if fold)
        self.lines.append(
            MarkdownLine(body=Content(""), line=self._line, first=first, inside=inside)
        )

    def _quote_bars(self) -> Content:
        return Content.assemble(*(("▎ ", style) for style in self._quotes[:MAX_DEPTH]))

    def _indent(self) -> tuple[Content, Content]:
        """Return what precedes the first row of a line, and the rows below it."""
        bars = self._quote_bars()
        depth = min(len(self._lists), MAX_DEPTH)
        if not depth:
            return bars, bars
        pad = "  " * (depth - 1)
        bullet, self._bullet = self._bullet, ("", "")
        if not bullet[0]:
            blank = Content.assemble(bars, (f"{pad}  ", ""))
            return blank, blank
        rest = Content.assemble(bars, (pad + " " * cell_len(bullet[0]), ""))
        return Content.assemble(bars, (pad, ""), bullet), rest

    def _item(self) -> None:
        number = self._lists[-1]
        if number is None:
            self._bullet = ("• ", "$primary")
        else:
            self._bullet = (f"{number}. ", "$primary")
            self._lists[-1] = number + 1

    def _open_quote(self, token: Token) -> None:
        callout = token.meta.get("callout")
        if callout is None:
            self._quotes.append(_BLANK_QUOTE)
            self._folds.append("")
            return
        kind, fold, title = callout
        style = _CALLOUTS.get(kind.lower(), "$secondary")
        self._quotes.append(style)
        name = f"{'-' if fold == '-' else ''}callout {len(self.lines)}"
        self._folds.append(name)
        title_text = _Text()
        self._pieces(title_text, _children(title or kind.capitalize()), [f"bold {style}"])
        self._add(title_text.content, title_text.links, opens=name if fold else "")

    # --- text in a line ---------------------------------------------------------------------------

    def _inline(self, token: Token) -> None:
        children, styles = token.children or [], [self._style] if self._style else []
        if self._cell is not None:
            self._pieces(self._cell, children, styles)
            return
        if not token.content and self._quotes:
            return  # a callout has its title only
        task = _TASK.match(token.content) if self._bullet[0] else None
        if task is not None:
            self._bullet = (_BOXES.get(task[1], f"[{task[1]}] "), "$primary")
            children = _children(token.content[task.end() :])
            if task[1] in "xX":
                styles = ["$quiet"]
        if len(children) == 1 and children[0].type == "embed" and self._embed(children[0]):
            return
        text = _Text()
        for part in _split_lines(children):
            text = _Text()
            self._pieces(text, part, styles)
            self._add(text.content, text.links)
            self._line += 1
        self._line = max(self._line - 1, self._offset)
        if not token.hidden:
            self._gap()

    def _pieces(self, text: _Text, children: Sequence[Token], styles: list[str]) -> None:
        """Add the tokens of a line. `styles` are those of the marks that are open."""
        target: list[tuple[str, int]] = []
        for child in children:
            style = " ".join(styles)
            match child.type:
                case "wikilink":
                    label = child.info or _display_text(child.content)
                    self._link(text, label, child.content, style)
                case "embed":
                    self._link(text, self._embed_label(child), child.content, style)
                case "link_open":
                    target.append((str(child.attrs.get("href", "")), text.length))
                    styles.append("$secondary underline")
                case "link_close":
                    styles.pop()
                    href, start = target.pop()
                    text.links.append(LinkSpan(start, text.length, _decoded(href), self._source))
                case "tag":
                    start = text.length
                    text.add(child.content, f"{style} $primary".strip())
                    text.links.append(
                        LinkSpan(start, text.length, child.content, self._source, is_tag=True)
                    )
                case "comment" | "block_id":
                    text.add(child.content, "$quiet")
                case "code_inline":
                    text.add(child.content, f"{style} on $panel".strip())
                case "image":
                    self._link(text, child.content or "image", str(child.attrs["src"]), style)
                case kind if kind in _MARKS:
                    styles.append(_MARKS[kind])
                case kind if kind.endswith("_close") and styles:
                    styles.pop()
                case _:
                    self._plain(text, child.content, style, is_linked=bool(target))

    def _plain(self, text: _Text, content: str, style: str, *, is_linked: bool) -> None:
        """Add text, in which addresses are links."""
        at = 0
        for match in [] if is_linked or "://" not in content else _URL.finditer(content):
            text.add(content[at : match.start()], style)
            self._link(text, match[0], match[0], style)
            at = match.end()
        text.add(content[at:], style)

    def _link(self, text: _Text, label: str, target: str, style: str) -> None:
        start = text.length
        color = "$quiet" if self._known and target in self._known.missing else "$secondary"
        text.add(label, f"{style} {color} underline".strip())
        text.links.append(LinkSpan(start, text.length, target, self._source))

    # --- embeds -----------------------------------------------------------------------------------

    def _embed_label(self, token: Token) -> str:
        size = self._known.sizes.get(token.content) if self._known else None
        name = _display_text(token.content)
        if size is None:
            return f"⧉ {name}"
        return f"▣ {name} ({_size(size)})"

    def _embed(self, token: Token) -> bool:
        """Write an embedded note below its name. Return False if its text is not known."""
        embed = self._known.embeds.get(token.content) if self._known else None
        if embed is None:
            return False
        head = _Text()
        self._link(head, self._embed_label(token), token.content, "")
        self._add(head.content, head.links)
        self._quotes.append("$secondary")
        self._folds.append("")
        inner = _Writer(None, self._width and self._width - 2, 0, embed.path)
        inner.write(embed.text)
        bars = self._quote_bars()
        while inner.lines and not inner.lines[-1].body.plain:
            inner.lines.pop()
        for line in inner.lines[:MAX_EMBEDDED_LINES]:
            self.lines.append(
                MarkdownLine(
                    body=line.body,
                    line=self._line,
                    first=Content.assemble(bars, line.first),
                    rest=Content.assemble(bars, line.rest),
                    links=line.links,
                    inside=tuple(fold for fold in self._folds if fold),
                )
            )
        omitted = len(inner.lines) - MAX_EMBEDDED_LINES
        if omitted > 0:
            self._add(Content.styled(f"… {omitted:,} more lines", "$quiet"))
        self._quotes.pop()
        self._folds.pop()
        self._gap()
        return True

    # --- blocks -----------------------------------------------------------------------------------

    def _code(self, token: Token) -> None:
        if token.type == "fence":
            self._line += 1
        code = token.content.rstrip("\n").replace("\t", "    ")
        rows: Sequence[Content] | None = None
        if language := token.info.strip().partition(" ")[0]:
            from obsidian_agent.tui.code_colors import colored_lines

            rows = colored_lines(code, language)
        for row in rows or [Content.styled(row, "$secondary") for row in code.split("\n")]:
            self._add(Content.assemble(("▏ ", "$quiet"), row))
            self._line += 1
        self._gap()

    def _table(self, kind: str) -> None:
        match kind:
            case "table_open":
                self._rows = []
            case "tr_open":
                self._rows.append((self._line, []))
            case "td_open" | "th_open":
                self._cell = _Text()
                self._style = "bold" if kind == "th_open" else ""
            case "td_close" | "th_close":
                if self._cell is not None:
                    self._rows[-1][1].append(self._cell)
                self._cell, self._style = None, ""
            case "table_close":
                self._write_table()
                self._gap()

    def _write_table(self) -> None:
        """Write the rows of a table in aligned columns, which are wrapped to fit the width."""
        widths = self._column_widths()
        for line, cells in self._rows:
            self._line = line
            contents = [cell.content for cell in cells]
            if not self._width:
                parts = [[(0, len(content))] for content in contents]
            else:
                parts = [
                    wrap(content.plain, width)
                    for content, width in zip(contents, widths, strict=False)
                ]
            for row in range(max(map(len, parts), default=0)):
                self._write_row(cells, contents, [cell[row : row + 1] for cell in parts], widths)

    def _write_row(
        self,
        cells: Sequence[_Text],
        contents: Sequence[Content],
        parts: Sequence[Sequence[tuple[int, int]]],
        widths: Sequence[int],
    ) -> None:
        pieces: list[Content | tuple[str, str]] = []
        links: list[LinkSpan] = []
        at = 0
        for cell, content, part, width in zip(cells, contents, parts, widths, strict=False):
            start, end = part[0] if part else (0, 0)
            part_content = content[start:end]
            links += shift_links(cell.links, start, end, at)
            pad = " " * (max(0, width - part_content.cell_length) + 2)
            pieces += [part_content, (pad, "")]
            at += len(part_content) + len(pad)
        self._add(Content.assemble(*pieces), links)

    def _column_widths(self) -> list[int]:
        columns = max((len(cells) for _, cells in self._rows), default=0)
        natural = [
            max(cells[at].content.cell_length for _, cells in self._rows if at < len(cells))
            for at in range(columns)
        ]
        if not self._width:
            return [min(width, MAX_CELL_WIDTH) for width in natural]
        room = self._width - 2 * columns
        limit = max(natural, default=0)
        while limit > MIN_CELL_WIDTH and sum(min(width, limit) for width in natural) > room:
            limit -= 1
        return [min(width, limit) for width in natural]


def _split_lines(children: Sequence[Token]) -> Iterator[list[Token]]:
    """Yield the tokens of each line of a paragraph; marks that go on are opened again."""
    line: list[Token] = []
    open_marks: list[Token] = []
    for child in children:
        if child.type in ("softbreak", "hardbreak"):
            yield line
            line = list(open_marks)
            continue
        if child.nesting == 1:
            open_marks.append(child)
        elif child.nesting == -1 and open_marks:
            open_marks.pop()
        line.append(child)
    if line or not children:
        yield line


def shift_links(links: Sequence[LinkSpan], start: int, end: int, to: int) -> Iterator[LinkSpan]:
    """Yield the links of a part of a text, as they are where the part is moved to `to`."""
    for link in links:
        if link.start < end and link.end > start:
            first, last = max(link.start, start) - start + to, min(link.end, end) - start + to
            yield LinkSpan(first, last, link.target, link.source, link.is_tag)


def wrap(text: str, width: int) -> list[tuple[int, int]]:
    """Return the offsets of at least one part of a line, each at most `width` cells wide.

    Lines break after a blank where possible.
    """
    if len(text) * 2 <= width or width < 2 or (text.isascii() and len(text) <= width):
        return [(0, len(text))]
    sizes = [1 if char.isascii() else cell_len(char) for char in text]
    ends = list(accumulate(sizes))
    parts: list[tuple[int, int]] = []
    start = blank = 0
    for index, char in enumerate(text):
        while ends[index] - (ends[start - 1] if start else 0) > width and index > start:
            end = blank if blank > start else index
            parts.append((start, end))
            start = end
        if char == " ":
            blank = index + 1
    parts.append((start, len(text)))
    return parts


def is_web(target: str) -> bool:
    """Return True if a link leads to an address instead of a file."""
    return target.lower().startswith(WEB)


def _display_text(target: str) -> str:
    return " > ".join(part for part in target.split("#") if part) or target


def _decoded(href: str) -> str:
    """Return the target of a Markdown link without percent-encoding, except an address."""
    from urllib.parse import unquote

    return href if "://" in href else terminal_text.line(unquote(href))


def _size(count: int) -> str:
    if count < 1000:
        return f"{count} B"
    if count < 1_000_000:
        return f"{count / 1000:.0f} kB"
    return f"{count / 1_000_000:.1f} MB"


def note_lines(
    text: str, properties: Mapping[str, Any], known: LinkFacts | None, width: int
) -> list[MarkdownLine]:
    """Return the lines of a note: its properties, folded, and its text."""
    rows = text.split("\n")
    body_start = 0
    if rows[0].rstrip() == "---":
        ends = (number for number, row in enumerate(rows[1:], 1) if row.rstrip() == "---")
        body_start = next(ends, -1) + 1
    head = property_lines(properties, rows[:body_start]) if properties else []
    if not properties:
        body_start = 0
    body = "\n".join(rows[body_start:])
    return head + markdown_lines(body, known, width=width, first_line=body_start)


def canvas_lines(cards: Sequence[Card], known: LinkFacts | None, width: int) -> list[MarkdownLine]:
    """Return the lines of a canvas: its cards from top to bottom."""
    count = terminal_text.counted(len(cards), "card")
    lines = [MarkdownLine(body=Content.styled(count, "$quiet"), line=0)]
    lines.append(MarkdownLine(body=Content(""), line=0))
    for card in cards:
        line = card.line - 1
        words = terminal_text.line(card.text)
        match card.kind:
            case "group":
                body = Content.styled(words, "bold $primary")
                lines.append(MarkdownLine(body=body, line=line))
            case "file" | "link":
                text = _Text()
                text.add("▣ ", "$quiet")
                text.add(words, "$secondary underline")
                links = (LinkSpan(2, text.length, card.text),)
                lines.append(MarkdownLine(body=text.content, line=line, links=links))
            case "text":
                bar = Content.styled("▎ ", "$primary")
                lines += (
                    MarkdownLine(
                        body=row.body,
                        line=line,
                        first=Content.assemble(bar, row.first),
                        rest=Content.assemble(bar, row.rest),
                        links=row.links,
                    )
                    for row in markdown_lines(card.text, known, width=width)
                )
        lines.append(MarkdownLine(body=Content(""), line=line))
    return lines
