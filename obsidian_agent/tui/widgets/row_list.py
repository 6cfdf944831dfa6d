"""Lists that render only the rows on the screen, however many there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct
from textual import events
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual

from obsidian_agent import terminal_text
from obsidian_agent.tui.bindings import binding, bindings

T = TypeVar("T")
CACHED_ROWS = 512
"""Rendered rows after which the cache is cleared."""


class _RowMessage(Message):
    def __init__(self, list_: VirtualList[Any], index: int) -> None:
        super().__init__()
        self.list = list_
        self.index = index

    @property
    def control(self) -> VirtualList[Any]:
        return self.list

    @property
    def row(self) -> Any:
        """The row, or None in an empty list. A chosen row is no heading."""
        rows = self.list.rows
        return rows[self.index] if 0 <= self.index < len(rows) else None


class VirtualList(ScrollView, Generic[T], can_focus=True):
    """A list of one-line rows with a cursor; subclasses render the rows.

    A row that is a string is the heading of a section.
    """

    DEFAULT_CSS = """
    VirtualList { scrollbar-size-vertical: 1; overflow-x: hidden; background: $surface; }
    VirtualList > .virtual-list--cursor { background: $block-cursor-blurred-background; }
    VirtualList:focus > .virtual-list--cursor {
        background: $block-cursor-background; color: $block-cursor-foreground;
    }
    """
    COMPONENT_CLASSES = {"virtual-list--cursor"}
    BINDINGS = bindings("list")
    ALLOW_SELECT = False

    cursor: reactive[int] = reactive(0, repaint=False)

    class Highlighted(_RowMessage):
        """The cursor has moved or the rows have changed. `index` is -1 in an empty list."""

    class Chosen(_RowMessage):
        """A row was chosen with Enter or the mouse."""

    def __init__(
        self,
        rows: Sequence[T | str] = (),
        *,
        empty: str = "",
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.rows: Sequence[T | str] = rows
        self.empty = empty
        self._strips: dict[tuple[int, int, bool], Strip] = {}

    # --- for subclasses ---------------------------------------------------------------------------

    def draw_row(self, row: T, width: int) -> Content:
        """Return a row as one line of safe text."""
        raise NotImplementedError

    def can_stop(self, row: T | str) -> bool:
        """Return True if the cursor may stop at the row; False for headings."""
        return not isinstance(row, str)

    # --- content ----------------------------------------------------------------------------------

    def set_rows(
        self, rows: Sequence[T | str], cursor: int | None = None, *, follow: bool = False
    ) -> None:
        """Replace the rows. Without `cursor` it stays at its index.

        With `follow`, the list stays scrolled to its end if it was there.
        """
        at_end = self.scroll_offset.y >= self.max_scroll_y
        self.rows = rows
        self._strips.clear()
        self.virtual_size = Size(self.scrollable_content_region.width, len(rows))
        if follow and at_end:
            cursor = len(rows) - 1
        self.set_reactive(
            VirtualList.cursor, self._nearest(self.cursor if cursor is None else cursor, 1)
        )
        self.refresh(layout=self.styles.height is not None and self.styles.height.is_auto)
        if follow and at_end:
            # Forced, because the first rows that do not fit have no scroll bar yet.
            self.scroll_end(animate=False, immediate=True, force=True)
        elif not follow:
            self._show_cursor()
            self.post_message(self.Highlighted(self, self.cursor if rows else -1))

    @property
    def current(self) -> T | None:
        """The row under the cursor."""
        row = self.rows[self.cursor] if 0 <= self.cursor < len(self.rows) else None
        return None if isinstance(row, str) else row

    @property
    def entries(self) -> list[T]:
        """The rows without the headings."""
        return [row for row in self.rows if not isinstance(row, str)]

    def watch_cursor(self, old: int, new: int) -> None:
        self._strips.clear()
        self.refresh()
        self._show_cursor()
        if old != new:
            self.post_message(self.Highlighted(self, new))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self.rows) or (1 if self.empty else 0)

    # --- rendering --------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        index = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        style = self.visual_style
        if index >= len(self.rows):
            if index == 0 and self.empty:
                return self._strip(Content.styled(self.empty, "$quiet"), width)
            return Strip.blank(width, style.rich_style)
        key = (index, width, index == self.cursor)
        strip = self._strips.get(key)
        if strip is None:
            if len(self._strips) > CACHED_ROWS:
                self._strips.clear()
            strip = self._strips[key] = self._strip(
                self.draw(self.rows[index], width), width, cursor=index == self.cursor
            )
        return strip

    def draw(self, row: T | str, width: int) -> Content:
        """Return a row or a heading as one line of safe text."""
        if isinstance(row, str):
            return Content.styled(terminal_text.line(row), "bold $quiet")
        return self.draw_row(row, width)

    def _strip(self, content: Content, width: int, *, cursor: bool = False) -> Strip:
        style = self.visual_style
        if cursor and self.can_stop(self.rows[self.cursor]):
            style = style + self.get_visual_style("virtual-list--cursor")
        content = content.truncate(width, ellipsis=True)
        strips = Visual.to_strips(self, content, width, 1, style, pad=True)
        return strips[0] if strips else Strip.blank(width, style.rich_style)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()

    def on_resize(self) -> None:
        self._strips.clear()
        self.virtual_size = Size(self.scrollable_content_region.width, len(self.rows))
        self.refresh()  # rows of another width may still be on the screen
        self._show_cursor()

    # --- moving the cursor ------------------------------------------------------------------------

    def action_cursor(self, step: int) -> None:
        if self.rows:
            self.cursor = self._nearest(self.cursor + step, step)

    def action_page(self, direction: int) -> None:
        if self.rows:
            step = direction * max(1, self.scrollable_content_region.height - 1)
            self.cursor = self._nearest(
                min(max(self.cursor + step, 0), len(self.rows) - 1), direction
            )

    def action_first(self) -> None:
        self.cursor = self._nearest(0, 1)
        self.scroll_to(y=0, animate=False)

    def action_last(self) -> None:
        self.cursor = self._nearest(len(self.rows) - 1, -1)

    def action_section(self, direction: int) -> None:
        """Move to the first row of the next or previous section, below its heading."""
        index = self.cursor + direction
        while 0 <= index < len(self.rows):
            if (
                self.can_stop(self.rows[index])
                and (index == 0 or not self.can_stop(self.rows[index - 1]))
                and index != self.cursor
            ):
                self.cursor = index
                return
            index += direction

    def action_choose(self) -> None:
        if self.current is not None and self.can_stop(self.current):
            self.post_message(self.Chosen(self, self.cursor))

    def on_click(self, event: events.Click) -> None:
        index = event.y - self.content_region.y + self.region.y + self.scroll_offset.y
        if 0 <= index < len(self.rows) and self.can_stop(self.rows[index]):
            is_current = index == self.cursor
            self.cursor = index
            if is_current or event.chain > 1:
                self.action_choose()

    def _nearest(self, index: int, direction: int) -> int:
        """Return the nearest row where the cursor may stop, searching in `direction` first."""
        last = len(self.rows) - 1
        if last < 0:
            return 0
        start = min(max(index, 0), last)
        for step in (1, -1) if direction >= 0 else (-1, 1):
            candidate = start
            while 0 <= candidate <= last:
                if self.can_stop(self.rows[candidate]):
                    return candidate
                candidate += step
        return start

    def _show_cursor(self) -> None:
        if self.rows and self.size.height and self.cursor >= 0:
            top = self.cursor
            if top and not self.can_stop(self.rows[top - 1]):
                top -= 1  # the heading of the section
            height = self.cursor - top + 1
            # Forced, because the first rows that do not fit have no scroll bar yet.
            self.scroll_to_region(
                Region(0, top, 1, height), animate=False, immediate=True, force=True
            )


class Choice(Struct, frozen=True):
    """A row with a `word` before its text and a dim `note` behind it.

    Texts are made safe when rendered.
    """

    key: str
    text: str
    note: str = ""
    word: str = ""
    word_style: str = "$primary"
    word_width: int = 0


class ChoiceList(VirtualList[Choice]):
    """A list of `Choice` rows that is as high as its rows."""

    DEFAULT_CSS = "ChoiceList { height: auto; }"
    BINDINGS = [binding("list.choose", "Choose")]

    def draw_row(self, row: Choice, width: int) -> Content:
        word = ""
        if row.word or row.word_width:
            word = f"{terminal_text.line(row.word):<{row.word_width}} "
        return Content.assemble(
            (" ", ""),
            (word, row.word_style),
            (terminal_text.shortened(row.text, 300), "$foreground"),
            (f"  {terminal_text.shortened(row.note, 300)}" if row.note else "", "$quiet"),
        )

    def set_choices(self, choices: Sequence[Choice], cursor: int | None = None) -> None:
        """Replace the rows."""
        self.set_rows(choices, cursor)
