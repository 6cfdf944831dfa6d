"""The reading view of a note: rendered Markdown with a cursor, links, folds and find.

Only the rows on the screen are drawn. Every row knows its line of the note, so that lines can be
selected here as in the source.
"""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual

from obsidian_agent.tui.bindings import bindings
from obsidian_agent.tui.markdown_lines import LinkSpan, MarkdownLine, wrap

Row = tuple[int, int, int]
"""A part of a line on the screen: the index of the line, and the offsets of the part."""

MAX_WIDTH = 100
"""Columns of text, however wide the pane is."""


class ReadingView(ScrollView, can_focus=True):
    """A rendered note."""

    DEFAULT_CSS = """
    ReadingView {
        height: 1fr; scrollbar-size-vertical: 1; overflow-x: hidden; background: $surface;
        padding: 0 0 0 2;
    }
    ReadingView > .reading--cursor { background: $boost; }
    ReadingView:focus > .reading--cursor { background: $block-cursor-background; }
    """
    COMPONENT_CLASSES = {"reading--cursor"}
    BINDINGS = bindings("list", without=("list.next", "list.previous", "list.choose"))
    ALLOW_SELECT = False

    cursor: reactive[int] = reactive(0, repaint=False)

    class LinkChosen(Message):
        """A link was chosen with Enter or the mouse."""

        def __init__(self, link: LinkSpan) -> None:
            super().__init__()
            self.link = link

    class Moved(Message):
        """The cursor is on another line of the note (from 0)."""

        def __init__(self, line: int) -> None:
            super().__init__()
            self.line = line

    def __init__(self) -> None:
        super().__init__(id="note-reading")
        self._all: Sequence[MarkdownLine] = ()
        self._lines: list[MarkdownLine] = []
        """The lines outside closed folds."""
        self._rows: list[Row] = []
        self._toggled: set[str] = set()
        """The folds that are not as they are at first."""
        self._selected = range(0)
        self._query = ""
        self._link = 0

    # --- content ----------------------------------------------------------------------------------

    def show(self, lines: Sequence[MarkdownLine], *, keeps_folds: bool = False) -> None:
        """Show the lines of a note."""
        if not keeps_folds:
            self._toggled.clear()
        self._all = lines
        self._layout()

    def select(self, lines: range) -> None:
        """Mark lines of the note as selected."""
        self._selected = lines
        self.refresh()

    def find(self, text: str) -> None:
        """Mark all occurrences of a text, regardless of case."""
        self._query = text.casefold()
        self.refresh()

    @property
    def text_width(self) -> int:
        """The columns of text."""
        return max(min(self.scrollable_content_region.width - 1, MAX_WIDTH), 20)

    def _is_closed(self, fold: str) -> bool:
        return fold.startswith("-") != (fold in self._toggled)

    def _layout(self) -> None:
        self._lines = [
            line for line in self._all if not any(self._is_closed(fold) for fold in line.inside)
        ]
        width = self.text_width
        self._rows = [
            (index, start, end)
            for index, line in enumerate(self._lines)
            for start, end in wrap(line.body.plain, max(width - line.first.cell_length, 10))
        ]
        self.virtual_size = Size(self.scrollable_content_region.width, len(self._rows))
        self.set_reactive(ReadingView.cursor, min(self.cursor, max(len(self._rows) - 1, 0)))
        self.refresh()

    def on_resize(self) -> None:
        line = self.line
        self._layout()
        self.go_to(line)

    # --- the cursor -------------------------------------------------------------------------------

    @property
    def current(self) -> MarkdownLine | None:
        """The line under the cursor."""
        return self._lines[self._rows[self.cursor][0]] if self._rows else None

    @property
    def line(self) -> int:
        """The line of the note under the cursor, from 0."""
        current = self.current
        return 0 if current is None else current.line

    @property
    def link(self) -> LinkSpan | None:
        """The highlighted link of the line under the cursor."""
        current = self.current
        if current is None or not current.links:
            return None
        return current.links[min(self._link, len(current.links) - 1)]

    def go_to(self, line: int, *, center: bool = False) -> None:
        """Move the cursor to the first row of a line of the note, and open what hides it."""
        for hidden in self._all:
            if hidden.line == line and hidden.inside and not hidden.opens:
                closed = [fold for fold in hidden.inside if self._is_closed(fold)]
                self._toggled.symmetric_difference_update(closed)
                if closed:
                    self._layout()
                break
        row = 0
        for number, (index, start, _) in enumerate(self._rows):
            if self._lines[index].line > line:
                break
            if not start and self._lines[index].body.plain:
                row = number
                if self._lines[index].line == line:
                    break
        self.set_reactive(ReadingView.cursor, row)
        self._link = 0
        self.refresh()
        self._show_cursor(center=center)

    def watch_cursor(self, old: int, new: int) -> None:
        if old == new:
            return
        if self._rows and self._rows[min(old, len(self._rows) - 1)][0] != self._rows[new][0]:
            self._link = 0
        self.refresh()
        self._show_cursor()
        self.post_message(self.Moved(self.line))

    def _show_cursor(self, *, center: bool = False) -> None:
        if self.size.height and self._rows:
            if center:
                top = max(self.cursor - self.size.height // 3, 0)
                self.scroll_to(y=top, animate=False, immediate=True)
            else:
                region = Region(0, self.cursor, 1, 1)
                self.scroll_to_region(region, animate=False, immediate=True)

    def _move(self, row: int) -> None:
        self.cursor = min(max(row, 0), max(len(self._rows) - 1, 0))

    def action_cursor(self, step: int) -> None:
        self._move(self.cursor + step)

    def action_page(self, direction: int) -> None:
        self._move(self.cursor + direction * max(1, self.size.height - 1))

    def action_first(self) -> None:
        self._move(0)

    def action_last(self) -> None:
        self._move(len(self._rows) - 1)

    def next_link(self, direction: int) -> bool:
        """Highlight the next or previous link. Return False if there is none."""
        current = self.current
        if current is not None and 0 <= self._link + direction < len(current.links):
            self._link += direction
            self.refresh()
            return True
        row = self.cursor + direction
        here = self._rows[self.cursor][0] if self._rows else 0
        while 0 <= row < len(self._rows):
            index, start, _ = self._rows[row]
            line = self._lines[index]
            if line.links and index != here and not start:
                self.cursor = row
                self._link = 0 if direction > 0 else len(line.links) - 1
                self.refresh()
                return True
            row += direction
        return False

    def open_current(self) -> None:
        """Open or close the fold under the cursor, or follow the highlighted link."""
        current, link = self.current, self.link
        if current is not None and current.opens:
            self._toggled.symmetric_difference_update({current.opens})
            self._layout()
        elif link is not None:
            self.post_message(self.LinkChosen(link))

    def on_click(self, event: events.Click) -> None:
        row = event.y - self.content_region.y + self.region.y + self.scroll_offset.y
        column = event.x - self.content_region.x + self.region.x
        if not 0 <= row < len(self._rows):
            return
        self._move(row)
        index, start, end = self._rows[row]
        line = self._lines[index]
        prefix = line.rest if start else line.first
        at = self._offset_at(line.body.plain[start:end], column - prefix.cell_length - 1) + start
        for number, link in enumerate(line.links):
            if link.start <= at < link.end:
                self._link = number
                self.post_message(self.LinkChosen(link))
                return
        if line.opens:
            self.open_current()

    @staticmethod
    def _offset_at(text: str, column: int) -> int:
        parts = wrap(text, column) if column >= 2 else [(0, max(column, 0))]
        if column < 0:
            return len(text) + 1
        return parts[0][1] if Content(text).cell_length > column else len(text) + 1

    # --- rendering --------------------------------------------------------------------------------

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        row = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        style = self.visual_style
        if row >= len(self._rows):
            return Strip.blank(width, style.rich_style)
        index, start, end = self._rows[row]
        line = self._lines[index]
        is_cursor = row == self.cursor
        body = line.body
        if is_cursor or index == self._rows[self.cursor][0]:
            body = self._with_link(body, line)
        body = self._with_matches(body)
        mark = "▌" if line.line in self._selected else " "
        content = Content.assemble(
            (mark, "$primary"),
            line.rest if start else line.first,
            self._fold_sign(line) if not start else "",
            body[start:end],
        )
        if line.line in self._selected and not is_cursor:
            content = content.stylize_before("on $primary 15%")
        if is_cursor:
            style = style + self.get_visual_style("reading--cursor")
        strips = Visual.to_strips(self, content, width, 1, style, pad=True)
        return strips[0].crop(0, width) if strips else Strip.blank(width, style.rich_style)

    def _fold_sign(self, line: MarkdownLine) -> Content:
        if not line.opens:
            return Content("")
        return Content.styled("▸ " if self._is_closed(line.opens) else "▾ ", "$quiet")

    def _with_link(self, body: Content, line: MarkdownLine) -> Content:
        link = self.link
        if link is None or not self.has_focus:
            return body
        return body.stylize("reverse", link.start, link.end)

    def _with_matches(self, body: Content) -> Content:
        if not self._query:
            return body
        folded = body.plain.casefold()
        if len(folded) != len(body.plain):
            return body
        at = folded.find(self._query)
        while at >= 0:
            body = body.stylize("on $warning 40%", at, at + len(self._query))
            at = folded.find(self._query, at + len(self._query))
        return body
