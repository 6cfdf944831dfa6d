"""A view of the diff of one file with signs, line numbers and marked words.

Only the lines on the screen are rendered. `Detail` shows a diff or a text below the list of a plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content, Span
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual
from textual.widgets import ContentSwitcher, Static

from obsidian_agent import terminal_text
from obsidian_agent.dataclass import dataclass, replace
from obsidian_agent.tui.bindings import bindings

LineKind = Literal["add", "del", "same", "hunk", "note"]
WORD_LIMIT = 2_000
"""Characters beyond which lines get no word marks, as comparing them is too slow."""

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)")
_WORDS = re.compile(r"\w+|\s+|.")

CACHED_ROWS = 512

_SIGNS = {"add": "+", "del": "-", "same": " ", "hunk": " ", "note": " "}
_LINE_STYLES = {
    "add": "on $success 14%",
    "del": "on $error 14%",
    "same": "",
    "hunk": "$quiet",
    "note": "$quiet",
}
_SIGN_STYLES = {"add": "$success bold", "del": "$error bold"}
_WORD_STYLES = {"add": "on $success 32%", "del": "on $error 32%"}


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line with its 1-based number on each side, None where it does not exist.

    `pair` is the index of its counterpart on the other side.
    """

    kind: LineKind
    text: str
    old: int | None = None
    new: int | None = None
    pair: int | None = None


@dataclass(frozen=True, slots=True)
class Diff:
    """The lines of a diff with the counts of added and removed ones."""

    lines: tuple[DiffLine, ...] = ()
    added: int = 0
    removed: int = 0

    def changes(self) -> list[int]:
        """Return the indices at which a run of changed lines starts."""
        is_changed = [line.kind in ("add", "del") for line in self.lines]
        return [
            index
            for index, changed in enumerate(is_changed)
            if changed and (index == 0 or not is_changed[index - 1])
        ]


def parse_diff(text: str) -> Diff:
    """Parse a unified diff of one file without its headers, and make its texts safe to display."""
    lines: list[DiffLine] = []
    old = new = old_left = new_left = 0
    # Only "\n" ends a line: other line breaks belong to the text and are displayed as symbols.
    for raw in text.removesuffix("\n").split("\n") if text else ():
        if hunk := _HUNK.match(raw):
            old, new = int(hunk[1]), int(hunk[3])
            old_left, new_left = int(hunk[2] or 1), int(hunk[4] or 1)
            lines.append(DiffLine("hunk", terminal_text.line(f"Line {max(new, 1)}{hunk[5]}")))
            continue
        sign, body = raw[:1], raw[1:]
        if sign == "\\":
            lines.append(DiffLine("note", "no newline at the end"))
        elif old_left <= 0 and new_left <= 0:
            continue
        elif sign == "+":
            lines.append(DiffLine("add", _safe(body), None, new))
            new, new_left = new + 1, new_left - 1
        elif sign == "-":
            lines.append(DiffLine("del", _safe(body), old, None))
            old, old_left = old + 1, old_left - 1
        else:
            lines.append(DiffLine("same", _safe(body), old, new))
            old, new, old_left, new_left = old + 1, new + 1, old_left - 1, new_left - 1
    return Diff(
        tuple(_paired(lines)),
        sum(line.kind == "add" for line in lines),
        sum(line.kind == "del" for line in lines),
    )


def _safe(text: str) -> str:
    return terminal_text.line(text.expandtabs(4))


def _paired(lines: Sequence[DiffLine]) -> Iterator[DiffLine]:
    """Pair the n-th removed line of a run with the n-th added line after it."""
    pairs: dict[int, int] = {}
    index = 0
    while index < len(lines):
        if lines[index].kind != "del":
            index += 1
            continue
        start = index
        while index < len(lines) and lines[index].kind == "del":
            index += 1
        middle = index
        while index < len(lines) and lines[index].kind == "add":
            index += 1
        for step in range(min(middle - start, index - middle)):
            pairs[start + step] = middle + step
            pairs[middle + step] = start + step
    for index, line in enumerate(lines):
        yield replace(line, pair=pairs[index]) if index in pairs else line


def word_marks(text: str, other: str) -> list[tuple[int, int]]:
    """Return the spans of words in `text` that differ from `other`.

    There are none if the lines have too little in common.
    """
    if max(len(text), len(other)) > WORD_LIMIT:
        return []
    mine, theirs = _WORDS.findall(text), _WORDS.findall(other)
    matcher = SequenceMatcher(None, mine, theirs, autojunk=False)
    if matcher.ratio() < 0.4:
        return []
    starts = [0]
    for word in mine:
        starts.append(starts[-1] + len(word))
    return [
        (starts[i1], starts[i2])
        for tag, i1, i2, _, _ in matcher.get_opcodes()
        if tag != "equal" and i2 > i1
    ]


def wrap(text: str, width: int) -> list[tuple[int, int]]:
    """Return the offsets of at least one part of a line, each at most `width` cells wide.

    Lines break after a blank where possible.
    """
    if len(text) * 2 <= width or width < 2 or (text.isascii() and len(text) <= width):
        return [(0, len(text))]
    parts: list[tuple[int, int]] = []
    start = cells = 0
    blank = 0
    for index, char in enumerate(text):
        size = 1 if char.isascii() else cell_len(char)
        while cells + size > width:
            end = blank if blank > start else index
            parts.append((start, end))
            start, cells = end, cell_len(text[end:index])
        cells += size
        if char == " ":
            blank = index + 1
    parts.append((start, len(text)))
    return parts


class DiffView(ScrollView, can_focus=True):
    """A scrollable diff. Only the first part of a wrapped line has a number."""

    DEFAULT_CSS = """
    DiffView { scrollbar-size-vertical: 1; overflow-x: hidden; background: $surface; }
    """
    BINDINGS = [
        *bindings("diff", without=("diff.close",)),
        *bindings("list", without=("list.next", "list.previous", "list.choose")),
    ]
    ALLOW_SELECT = False

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.diff = Diff()
        self.message = ""
        self._rows: list[tuple[int, int, int]] = []
        """For each row the index of its line and the offsets of its part."""
        self._marks: dict[int, list[tuple[int, int]]] = {}
        self._strips: dict[tuple[int, int], Strip] = {}
        self._digits = 1

    def show(self, diff: Diff) -> None:
        """Show another diff from its top."""
        self.message = "" if diff.lines else "No lines to show."
        self._set(diff)
        self.scroll_to(y=0, animate=False)

    def show_message(self, message: str) -> None:
        """Show a message instead of a diff."""
        self.message = message
        self._set(Diff())

    def _set(self, diff: Diff) -> None:
        self.diff = diff
        self._marks.clear()
        self._digits = len(str(max((line.old or line.new or 1 for line in diff.lines), default=1)))
        self._layout()

    @property
    def _gutter(self) -> int:
        return 2 * self._digits + 4

    def _layout(self) -> None:
        self._strips.clear()
        width = max(self.scrollable_content_region.width - self._gutter, 8)
        rows: list[tuple[int, int, int]] = []
        for index, line in enumerate(self.diff.lines):
            rows.extend((index, start, end) for start, end in wrap(line.text, width))
        self._rows = rows
        self.virtual_size = Size(self.scrollable_content_region.width, len(rows))
        self.refresh()

    def on_resize(self) -> None:
        self._layout()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()

    def render_line(self, y: int) -> Strip:
        row = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        if row >= len(self._rows):
            if row == 0 and self.message:
                return self._strip(Content.styled(f" {self.message}", "$quiet"), width)
            return Strip.blank(width, self.visual_style.rich_style)
        strip = self._strips.get((row, width))
        if strip is None:
            if len(self._strips) > CACHED_ROWS:
                self._strips.clear()
            strip = self._strips[row, width] = self._strip(
                self._draw(*self._rows[row], width), width
            )
        return strip

    def _strip(self, content: Content, width: int) -> Strip:
        strips = Visual.to_strips(self, content, width, 1, self.visual_style, pad=True)
        return strips[0].crop(0, width)

    def _draw(self, index: int, start: int, end: int, width: int) -> Content:
        line = self.diff.lines[index]
        digits = self._digits
        if line.kind == "hunk":
            return Content.styled(f"{line.text} ".rjust(len(line.text) + 2 * digits + 4), "$quiet")
        first = start == 0
        old = str(line.old or "") if first else ""
        new = str(line.new or "") if first else ""
        text = Content(line.text[start:end], self._spans(index, line, start, end))
        row = Content.assemble(
            (f"{old:>{digits}} {new:>{digits}} ", "$quiet"),
            (f"{_SIGNS[line.kind] if first else ' '} ", _SIGN_STYLES.get(line.kind, "")),
            text,
        )
        return row.pad_right(max(width - row.cell_length, 0)).stylize_before(
            _LINE_STYLES[line.kind]
        )

    def _spans(self, index: int, line: DiffLine, start: int, end: int) -> list[Span]:
        style = _WORD_STYLES.get(line.kind)
        if style is None or line.pair is None:
            return []
        marks = self._marks.get(index)
        if marks is None:
            marks = self._marks[index] = word_marks(line.text, self.diff.lines[line.pair].text)
        return [
            Span(max(left, start) - start, min(right, end) - start, style)
            for left, right in marks
            if left < end and right > start
        ]

    def action_cursor(self, step: int) -> None:
        self.scroll_relative(y=step, animate=False)

    def action_page(self, direction: int) -> None:
        self.scroll_relative(y=direction * max(1, self.size.height - 1), animate=False)

    def action_first(self) -> None:
        self.scroll_home(animate=False)

    def action_last(self) -> None:
        self.scroll_end(animate=False)

    def action_change(self, direction: int) -> None:
        """Scroll to the next or previous run of changed lines."""
        tops = {
            index: row
            for row, (index, start, _) in reversed(list(enumerate(self._rows)))
            if start == 0
        }
        starts = [tops[index] for index in self.diff.changes()]
        here = self.scroll_offset.y
        if direction > 0:
            targets = [row for row in starts if row > here + 1]
        else:
            targets = [row for row in reversed(starts) if row <= here]
        if targets:
            self.scroll_to(y=max(targets[0] - 1, 0), animate=False)


class Detail(Vertical):
    """A heading with a diff or a plain text below it.

    Titles are made safe here, texts must be safe already.
    """

    DEFAULT_CSS = """
    Detail { height: 1fr; background: $surface; }
    Detail #detail-head { height: 1; padding: 0 1; background: $boost; }
    Detail VerticalScroll {
        height: 1fr; scrollbar-size-vertical: 1; background: $surface; padding: 0 1;
    }
    Detail ContentSwitcher { height: 1fr; }
    Detail DiffView { height: 1fr; }
    """

    def __init__(self) -> None:
        super().__init__(id="detail")
        self.title = ""
        self.content: Diff | str | None = None

    def compose(self) -> ComposeResult:
        yield Static("", id="detail-head", markup=False)
        with ContentSwitcher(initial="diff"):
            yield DiffView(id="diff")
            with VerticalScroll(id="detail-text", can_focus=False):
                yield Static("", markup=False)

    def show_diff(self, title: str, diff: Diff) -> None:
        """Show the diff of one file."""
        self.title, self.content = title, diff
        signs = Content.assemble(
            (f"  +{diff.added:,}", "$success"), (f"  -{diff.removed:,}", "$error")
        )
        self._head(title, signs)
        self.query_one(DiffView).show(diff)
        self.query_one(ContentSwitcher).current = "diff"

    def show_text(self, title: str, text: str) -> None:
        """Show a text."""
        self.title, self.content = title, text or None
        self._head(title, Content(""))
        self.query_one("#detail-text Static", Static).update(Content(text))
        self.query_one("#detail-text").scroll_home(animate=False)
        self.query_one(ContentSwitcher).current = "detail-text"

    def clear(self) -> None:
        """Remove title and content."""
        self.show_text("", "")

    def _head(self, title: str, extra: Content) -> None:
        self.query_one("#detail-head", Static).update(
            Content.assemble((terminal_text.shortened(title, 200), "bold"), extra)
        )
