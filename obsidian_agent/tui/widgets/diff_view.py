"""The exact change of one file: unified, with signs, line numbers and marked words; only the lines on the screen are drawn.

`Detail` shows it, or a text, below the list of a plan.
"""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content, Span
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual
from textual.widgets import ContentSwitcher, Static

from obsidian_agent import terminal_text
from obsidian_agent.tui import diff_model
from obsidian_agent.tui.bindings import bindings
from obsidian_agent.tui.diff_model import Diff, DiffLine

CACHED_ROWS = 512

_SIGNS = {"add": "+", "del": "-", "same": " ", "hunk": " ", "note": " "}
_LINE_STYLES = {"add": "on $success 14%", "del": "on $error 14%", "same": "", "hunk": "$quiet", "note": "$quiet"}
_SIGN_STYLES = {"add": "$success bold", "del": "$error bold"}
_WORD_STYLES = {"add": "on $success 32%", "del": "on $error 32%"}


class DiffView(ScrollView, can_focus=True):
    """Shows a `Diff`. Long lines wrap; numbers stand at the first part only."""

    DEFAULT_CSS = """
    DiffView { scrollbar-size-vertical: 1; overflow-x: hidden; background: $surface; }
    """
    BINDINGS = [*bindings("diff", without=("diff.close",)), *bindings("list", without=("list.next", "list.previous", "list.choose"))]
    ALLOW_SELECT = False

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.diff = Diff()
        self.message = ""
        self._rows: list[tuple[int, int, int]] = []
        self._marks: dict[int, list[tuple[int, int]]] = {}
        self._drawn: dict[tuple[int, int], Strip] = {}
        self._digits = 1

    def show(self, diff: Diff) -> None:
        """Show another diff, from its top."""
        self.message = "" if diff.lines else "No lines to show."
        self._set(diff)
        self.scroll_to(y=0, animate=False)

    def say(self, message: str) -> None:
        """Show a message in place of a diff."""
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
        self._drawn.clear()
        width = max(self.scrollable_content_region.width - self._gutter, 8)
        rows: list[tuple[int, int, int]] = []
        for index, line in enumerate(self.diff.lines):
            rows.extend((index, start, end) for start, end in diff_model.wrap(line.text, width))
        self._rows = rows
        self.virtual_size = Size(self.scrollable_content_region.width, len(rows))
        self.refresh()

    def on_resize(self) -> None:
        self._layout()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._drawn.clear()

    def render_line(self, y: int) -> Strip:
        row = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        if row >= len(self._rows):
            if row == 0 and self.message:
                return self._strip(Content.styled(f" {self.message}", "$quiet"), width)
            return Strip.blank(width, self.visual_style.rich_style)
        strip = self._drawn.get((row, width))
        if strip is None:
            if len(self._drawn) > CACHED_ROWS:
                self._drawn.clear()
            strip = self._drawn[row, width] = self._strip(self._draw(*self._rows[row], width), width)
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
        return row.pad_right(max(width - row.cell_length, 0)).stylize_before(_LINE_STYLES[line.kind])

    def _spans(self, index: int, line: DiffLine, start: int, end: int) -> list[Span]:
        style = _WORD_STYLES.get(line.kind)
        if style is None or line.pair is None:
            return []
        marks = self._marks.get(index)
        if marks is None:
            marks = self._marks[index] = diff_model.word_marks(line.text, self.diff.lines[line.pair].text)
        return [Span(max(left, start) - start, min(right, end) - start, style) for left, right in marks if left < end and right > start]

    def action_cursor(self, step: int) -> None:
        self.scroll_relative(y=step, animate=False)

    def action_page(self, direction: int) -> None:
        self.scroll_relative(y=direction * max(1, self.size.height - 1), animate=False)

    def action_first(self) -> None:
        self.scroll_home(animate=False)

    def action_last(self) -> None:
        self.scroll_end(animate=False)

    def action_change(self, direction: int) -> None:
        """To the next or previous run of changed lines."""
        tops = {index: row for row, (index, start, _) in reversed(list(enumerate(self._rows))) if start == 0}
        places = [tops[index] for index in self.diff.changes()]
        here = self.scroll_offset.y
        later = [row for row in places if row > here + 1] if direction > 0 else [row for row in reversed(places) if row <= here]
        if later:
            self.scroll_to(y=max(later[0] - 1, 0), animate=False)


class Detail(Vertical):
    """A head line and either a diff or plain text. Texts given to it must be safe to show; titles are made safe here."""

    DEFAULT_CSS = """
    Detail { height: 1fr; background: $surface; }
    Detail #detail-head { height: 1; padding: 0 1; background: $boost; }
    Detail VerticalScroll { height: 1fr; scrollbar-size-vertical: 1; background: $surface; padding: 0 1; }
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
        """Show the change of one file."""
        self.title, self.content = title, diff
        signs = Content.assemble((f"  +{diff.added:,}", "$success"), (f"  -{diff.removed:,}", "$error"))
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

    def _head(self, title: str, extra: Content) -> None:
        self.query_one("#detail-head", Static).update(Content.assemble((terminal_text.shortened(title, 200), "bold"), extra))
