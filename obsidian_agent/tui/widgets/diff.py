"""A view of the diff of one file with signs, line numbers and marked words.

Only the lines on the screen are rendered. `Detail` shows a diff or a text below the list of a plan.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from msgspec import Struct
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content, Span
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual
from textual.widgets import ContentSwitcher, Static

from obsidian_agent import terminal_text
from obsidian_agent.tui.bindings import bindings
from obsidian_agent.tui.diff_lines import Diff, DiffLine, word_marks
from obsidian_agent.tui.markdown_lines import wrap
from obsidian_agent.tui.widgets.note import LinkRequested

CACHED_ROWS = 512
SPLIT_WIDTH = 150
"""Columns of the view from which both sides are next to each other."""

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
_ANSI_LINE_STYLES = {**_LINE_STYLES, "add": "$success", "del": "$error"}
_ANSI_WORD_STYLES = {"add": "bold underline", "del": "bold underline"}
"""Colors of the terminal cannot be mixed with its background."""

_WIKILINK = re.compile(r"\[\[([^\[\]|\n]+)(?:\|[^\[\]\n]*)?\]\]")


class Cell(NamedTuple):
    """A part of a line: the index of the line in the diff, and the offsets of the part."""

    line: int
    start: int
    end: int


class LinkChoiceRequested(Message):
    """One of several links is to be chosen and opened."""

    def __init__(self, targets: Sequence[str]) -> None:
        super().__init__()
        self.targets = targets


class Page(Struct, frozen=True):
    """A diff or a safe text with its title; of several pages, also its number and their count."""

    title: str
    content: Diff | str
    number: int = 0
    count: int = 0


TurnPage = Callable[[int], Awaitable[Page | None]]
"""Returns the next (1), current (0) or previous (-1) page."""


class DiffView(ScrollView, can_focus=True):
    """A scrollable diff, from `SPLIT_WIDTH` with both sides next to each other.

    Only the first part of a wrapped line has a number.
    """

    DEFAULT_CSS = """
    DiffView { scrollbar-size-vertical: 1; overflow-x: hidden; background: $surface; }
    """
    BINDINGS = [
        *bindings("diff", without=("diff.close", "diff.next_file", "diff.previous_file")),
        *bindings("list", without=("list.next", "list.previous", "list.choose")),
    ]
    ALLOW_SELECT = False

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.diff = Diff()
        self.message = ""
        self._rows: list[tuple[Cell | None, ...]] = []
        """For each row its cells: one, or one for each side."""
        self._marks: dict[int, list[tuple[int, int]]] = {}
        self._strips: dict[tuple[int, int], Strip] = {}
        self._digits = 1
        self._starts_at_top = False
        self._is_at_start = True
        """True until the user scrolls."""

    def show(self, diff: Diff, *, from_top: bool = False) -> None:
        """Show another diff from its first change, or from its first line."""
        self._starts_at_top = from_top
        self.message = "" if diff.lines else "No lines to show."
        self._set(diff)
        self._is_at_start = True
        self._go_to_start()

    def _set(self, diff: Diff) -> None:
        self.diff = diff
        self._marks.clear()
        self._digits = len(str(max((line.old or line.new or 1 for line in diff.lines), default=1)))
        self._layout()

    def _go_to_start(self) -> None:
        starts = [] if self._starts_at_top else self._change_rows()
        self.scroll_to(y=max(starts[0] - 2, 0) if starts else 0, animate=False, immediate=True)

    @property
    def _is_split(self) -> bool:
        return self.scrollable_content_region.width >= SPLIT_WIDTH

    def _layout(self) -> None:
        self._strips.clear()
        self._rows = []
        width = self.scrollable_content_region.width
        if not width:
            return  # the size comes with the first layout
        if self._is_split:
            self._rows = list(self._split_rows((width - 1) // 2 - self._digits - 3))
        else:
            room = max(width - 2 * self._digits - 4, 8)
            self._rows = [
                (Cell(index, start, end),)
                for index, line in enumerate(self.diff.lines)
                for start, end in wrap(line.text, room)
            ]
        self.virtual_size = Size(width, len(self._rows))
        self.refresh()

    def _split_rows(self, room: int) -> Iterator[tuple[Cell | None, ...]]:
        """Yield rows with the removed lines on the left and the added ones on the right."""
        lines = self.diff.lines
        index = 0
        while index < len(lines):
            if lines[index].kind in ("hunk", "note"):
                yield (Cell(index, 0, len(lines[index].text)),)
                index += 1
                continue
            sides: list[list[int]] = [[index], [index]]
            start = index
            if lines[index].kind != "same":
                sides = [[], []]
                while index < len(lines) and lines[index].kind in ("add", "del"):
                    sides[lines[index].kind == "add"].append(index)
                    index += 1
            index = max(index, start + 1)
            for pair in zip_longest(*sides):
                yield from zip_longest(*(self._cells(line, room) for line in pair))

    def _cells(self, index: int | None, room: int) -> list[Cell]:
        if index is None:
            return []
        return [Cell(index, start, end) for start, end in wrap(self.diff.lines[index].text, room)]

    def on_resize(self) -> None:
        self._layout()
        if self._is_at_start:
            self._go_to_start()

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
            strip = self._strips[row, width] = self._strip(self._draw_row(row, width), width)
        return strip

    def _strip(self, content: Content, width: int) -> Strip:
        strips = Visual.to_strips(self, content, width, 1, self.visual_style, pad=True)
        return strips[0].crop(0, width)

    def _draw_row(self, row: int, width: int) -> Content:
        cells = self._rows[row]
        digits = self._digits
        first = cells[0]
        if len(cells) > 1:
            half = (width - 1) // 2
            left = self._draw_side(cells[0], half, is_new=False)
            right = self._draw_side(cells[1], width - 1 - half, is_new=True)
            return Content.assemble(left, ("│", "$quiet"), right)
        assert first is not None
        line = self.diff.lines[first.line]
        if line.kind == "hunk":
            return Content.styled(f"{line.text} ".rjust(len(line.text) + 2 * digits + 4), "$quiet")
        is_first = first.start == 0
        old = str(line.old or "") if is_first else ""
        new = str(line.new or "") if is_first else ""
        return self._draw(first, f"{old:>{digits}} {new:>{digits}} ", width)

    def _draw_side(self, cell: Cell | None, width: int, *, is_new: bool) -> Content:
        if cell is None:
            return Content(" " * width)
        line = self.diff.lines[cell.line]
        number = line.new if is_new else line.old
        text = str(number or "") if cell.start == 0 else ""
        return self._draw(cell, f"{text:>{self._digits}} ", width)

    def _draw(self, cell: Cell, numbers: str, width: int) -> Content:
        index, start, end = cell
        line = self.diff.lines[index]
        text = Content(line.text[start:end], self._spans(index, line, start, end))
        row = Content.assemble(
            (numbers, "$quiet"),
            (f"{_SIGNS[line.kind] if start == 0 else ' '} ", _SIGN_STYLES.get(line.kind, "")),
            text,
        )
        styles = _ANSI_LINE_STYLES if self._is_ansi else _LINE_STYLES
        return row.pad_right(max(width - row.cell_length, 0)).stylize_before(styles[line.kind])

    @property
    def _is_ansi(self) -> bool:
        return bool(self.app.current_theme.ansi)

    def _spans(self, index: int, line: DiffLine, start: int, end: int) -> list[Span]:
        style = (_ANSI_WORD_STYLES if self._is_ansi else _WORD_STYLES).get(line.kind)
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
        self._is_at_start = False
        self.scroll_relative(y=step, animate=False)

    def action_page(self, direction: int) -> None:
        self._is_at_start = False
        self.scroll_relative(y=direction * max(1, self.size.height - 1), animate=False)

    def action_first(self) -> None:
        self._is_at_start = False
        self.scroll_home(animate=False)

    def action_last(self) -> None:
        self._is_at_start = False
        self.scroll_end(animate=False)

    # --- links ------------------------------------------------------------------------------------

    def action_links(self) -> None:
        """Open the only link of the diff, or let the user choose one."""
        links = dict.fromkeys(
            match[1].strip() for line in self.diff.lines for match in _WIKILINK.finditer(line.text)
        )
        if len(links) == 1:
            self.post_message(LinkRequested(next(iter(links))))
        elif links:
            self.post_message(LinkChoiceRequested(list(links)))

    def on_click(self, event: events.Click) -> None:
        row = event.y - self.content_region.y + self.region.y + self.scroll_offset.y
        if not 0 <= row < len(self._rows) or len(self._rows[row]) > 1:
            return
        cell = self._rows[row][0]
        if cell is None:
            return
        index, start, end = cell
        text = self.diff.lines[index].text
        column = event.x - self.content_region.x + self.region.x - 2 * self._digits - 4
        at = start + len(Content(text[start:end]).truncate(max(column, 0)))
        for match in _WIKILINK.finditer(text):
            if match.start() <= at < match.end():
                self.post_message(LinkRequested(match[1].strip()))
                return

    def _change_rows(self) -> list[int]:
        """Return the rows at which a run of changed lines starts."""
        changes = set(self.diff.changes())
        return [
            row
            for row, cells in enumerate(self._rows)
            if any(cell is not None and cell.start == 0 and cell.line in changes for cell in cells)
        ]

    def action_change(self, direction: int) -> None:
        """Scroll to the next or previous run of changed lines."""
        self._is_at_start = False
        here = self.scroll_offset.y
        starts = self._change_rows()
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

    def show_diff(self, title: str, diff: Diff, *, from_top: bool = False) -> None:
        """Show the diff of one file, from its first change or from its first line."""
        self.title, self.content = title, diff
        signs = Content.assemble(
            (f"  +{diff.added:,}", "$success"), (f"  −{diff.removed:,}", "$error")
        )
        self._head(title, signs)
        self.query_one(DiffView).show(diff, from_top=from_top)
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
