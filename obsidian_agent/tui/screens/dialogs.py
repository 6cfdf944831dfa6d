"""The base of every modal screen, and the generic dialogs: confirm, pick, secret, report, diff."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from msgspec.structs import replace
from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.filter import LineFilter
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Button, ContentSwitcher, Input, Static
from textual.worker import Worker, WorkerState

from obsidian_agent import terminal_text
from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tui.bindings import HELP, binding, bindings
from obsidian_agent.tui.diff_lines import Diff
from obsidian_agent.tui.report_lines import Line
from obsidian_agent.tui.themes import Dimmed
from obsidian_agent.tui.widgets.diff import DiffView, Page, TurnPage
from obsidian_agent.tui.widgets.footer import KeyFooter
from obsidian_agent.tui.widgets.prompt import LineEntry
from obsidian_agent.tui.widgets.row_list import Choice, ChoiceList, VirtualList

R = TypeVar("R")
T = TypeVar("T")

STYLES = "../styles/modals.tcss"

WIDTH = 106
"""Columns after which a line of a report is wrapped."""


class Modal(ModalScreen[R | None], Generic[R]):
    """The base of modal screens: a title, the body of the subclass, a problem, a hint, a footer.

    The result is None if the user closes the screen without one.
    """

    CSS_PATH = STYLES
    BINDINGS = [*bindings("dialog"), HELP]
    VERTICAL_BREAKPOINTS = [(0, "-low"), (24, "-high")]
    ONLY_PREVIEWS: ClassVar[bool] = False
    """True if no answer changes anything: a preview, which is approved, follows."""

    def __init__(self, title: str, hint: str = "") -> None:
        super().__init__()
        self.heading = title
        self.hint = hint

    def get_line_filters(self) -> Sequence[LineFilter]:
        filters = super().get_line_filters()
        return [*filters, Dimmed()] if self.app.current_theme.ansi else filters

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static(Content(terminal_text.block(self.heading)), id="modal-title", markup=False)
            yield from self.body()
            yield Static("", id="modal-problem", markup=False)
            if self.hint:
                yield Static(Content(terminal_text.block(self.hint)), id="modal-hint", markup=False)
            yield KeyFooter(show_command_palette=False)

    def body(self) -> ComposeResult:
        """Yield the widgets between title and footer."""
        raise NotImplementedError

    def show_problem(self, text: str) -> None:
        """Show a problem above the hint; "" hides it."""
        label = self.query_one("#modal-problem", Static)
        label.update(Content(terminal_text.block(text)))
        label.display = bool(text)

    def run_flow(
        self, group: str, work: Callable[[], Coroutine[Any, Any, None]], *, exclusive: bool = False
    ) -> None:
        """Start a worker that ends with this screen; its `ObsidianAgentError` is shown here."""
        _: Worker[None] = self.run_worker(
            work, group=group, exclusive=exclusive, exit_on_error=False
        )

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if event.state is WorkerState.ERROR and isinstance(event.worker.error, ObsidianAgentError):
            self.show_problem(event.worker.error.problem().message)
        elif event.state is WorkerState.ERROR:
            self.app.post_message(event)

    def action_close(self) -> None:
        self.dismiss(None)


class ListScreen(Modal[R], Generic[T, R]):
    """The base of modal screens with one list, whose rows are loaded in the background."""

    def load(self) -> Sequence[T | str]:
        """Return the rows. Called in a thread."""
        raise NotImplementedError

    @property
    def listing(self) -> VirtualList[T]:
        """The list."""
        return self.query_one(VirtualList)

    @property
    def row(self) -> T | None:
        """The row under the cursor."""
        return self.listing.current

    def on_mount(self) -> None:
        self.listing.focus()
        self.run_flow("rows", self.reload)

    async def reload(self) -> None:
        """Load the rows again. The cursor stays at its index."""
        rows = await asyncio.to_thread(self.load)
        if self.is_attached:
            self.listing.set_rows(rows)
            self.refresh_bindings()


def numbered(rows: Sequence[Choice]) -> list[Choice]:
    """Return the rows with numbers before their texts, which choose them in a `ChoiceScreen`."""
    return [replace(row, word=str(number)) for number, row in enumerate(rows, 1)]


class ChoiceScreen(Modal[str]):
    """A choice from a few rows. Dismisses with the key of the chosen one.

    A row whose word is a number is also chosen by that key.
    """

    def __init__(
        self, title: str, rows: Sequence[Choice], *, hint: str = "", empty: str = ""
    ) -> None:
        super().__init__(title, hint)
        self._rows = rows
        self._empty = empty

    def body(self) -> ComposeResult:
        yield ChoiceList(self._rows, empty=self._empty)

    def on_mount(self) -> None:
        self.query_one(ChoiceList).focus()

    def on_key(self, event: events.Key) -> None:
        for row in self._rows:
            if event.key.isdecimal() and row.word == event.key:
                event.stop()
                self.dismiss(row.key)
                return

    def on_virtual_list_chosen(self, event: ChoiceList.Chosen) -> None:
        self.dismiss(event.row.key)


class Buttons(Horizontal):
    """A row of buttons."""

    def __init__(self, *buttons: Widget) -> None:
        super().__init__(*buttons)


class Confirm(Modal[bool]):
    """A yes/no question. Dismisses with True for yes, with False or None otherwise."""

    BINDINGS = bindings("confirm")
    AUTO_FOCUS = "#no"

    def __init__(
        self, title: str, text: str, yes: str, no: str = "Cancel", *, danger: bool = True
    ) -> None:
        super().__init__(title)
        self._text, self._yes, self._no, self._danger = text, yes, no, danger

    def body(self) -> ComposeResult:
        yield Static(Content(terminal_text.block(self._text)), markup=False)
        yield Buttons(
            Button(Content(self._no), compact=True, id="no"),
            Button(
                Content(self._yes),
                compact=True,
                id="yes",
                variant="error" if self._danger else "default",
            ),
        )

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)


class SearchEntry(LineEntry):
    """The search box of a dialog."""

    BINDINGS = [binding("find.choose", "Choose")]


class SearchDialog(Modal[R]):
    """A search box above a list of matches. Dismisses with the chosen row, of a choice its key."""

    BINDINGS = bindings("find", without=("find.choose",))
    AUTO_FOCUS = "LineEntry"

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.query_one(VirtualList).action_choose()

    def on_virtual_list_chosen(self, event: VirtualList.Chosen) -> None:
        row = event.row
        result: Any = row.key if isinstance(row, Choice) else row
        self.dismiss(result)

    def action_move(self, step: int) -> None:
        self.query_one(VirtualList).action_cursor(step)

    def action_page(self, direction: int) -> None:
        self.query_one(VirtualList).action_page(direction)


class Pick(SearchDialog[str]):
    """A choice from rows. Dismisses with the key of the chosen row.

    `rows` are pairs of a key and a note on it. With `free`, typed text that matches no row is
    accepted as well. `typed` is the initial text.
    """

    def __init__(
        self,
        title: str,
        rows: Sequence[tuple[str, str]],
        *,
        hint: str = "",
        empty: str = "",
        free: bool = False,
        typed: str = "",
    ) -> None:
        super().__init__(title, hint)
        self._rows = rows
        self._empty = empty
        self._free = free
        self._typed = typed

    def body(self) -> ComposeResult:
        yield SearchEntry(self._typed, placeholder="Type to filter", compact=False)
        yield ChoiceList([], empty=self._empty)

    def on_mount(self) -> None:
        self.query_one(ChoiceList).can_focus = False
        self._find(self._typed)

    def on_input_changed(self, event: Input.Changed) -> None:
        self._find(event.value)

    def _find(self, query: str) -> None:
        words = query.casefold().split()
        matches = [
            Choice(key, key, note)
            for key, note in self._rows
            if all(word in f"{key} {note}".casefold() for word in words)
        ]
        self.query_one(ChoiceList).set_choices(matches, 0)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        listing = self.query_one(ChoiceList)
        if listing.current is not None:
            self.dismiss(listing.current.key)
        elif self._free and event.value.strip():
            self.dismiss(event.value.strip())


class SecretEntry(LineEntry):
    """A text that is not shown."""

    BINDINGS = [binding("find.choose", "Save")]


class Secret(Modal[str]):
    """A masked input. Dismisses with the typed text, which may be empty."""

    AUTO_FOCUS = "LineEntry"

    def body(self) -> ComposeResult:
        yield SecretEntry(password=True, compact=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip())


class CommentEntry(LineEntry):
    """The text of a comment."""

    BINDINGS = [binding("find.choose", "Send")]


class Comment(Modal[str]):
    """A wish for another plan. Dismisses with the typed text, which may be empty."""

    AUTO_FOCUS = "LineEntry"

    def __init__(self, *, has_form: bool = False) -> None:
        hint = (
            "Enter sends your comment to the planner that made this plan. The new plan is shown, "
            "with what differs."
        )
        if has_form:
            hint += " Without a comment, Enter shows the values in a form."
        super().__init__("What should be different?", hint)

    def body(self) -> ComposeResult:
        yield CommentEntry(compact=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip())


class ReportList(VirtualList[Line]):
    """The wrapped lines of a report, with the focus; only visible rows are drawn."""

    DEFAULT_CSS = "ReportList { height: auto; max-height: 70vh; }"

    def __init__(self, lines: Sequence[Line]) -> None:
        super().__init__()
        self._lines = lines

    def on_mount(self) -> None:
        self.focus()
        width = max(30, min(WIDTH, self.app.size.width * 94 // 100 - 10))
        self.set_rows(wrap_lines(self._lines, width), 0)

    def draw_row(self, row: Line, width: int) -> Content:
        return Content.styled(row[0], row[1])


class Report(Modal[None]):
    """A screen with lines to read. Their texts must already be sanitized."""

    BINDINGS = bindings("report")

    def __init__(self, title: str, lines: Sequence[Line]) -> None:
        super().__init__(title)
        self._lines = lines

    def body(self) -> ComposeResult:
        yield ReportList(self._lines)


def wrap_lines(lines: Sequence[Line], width: int) -> list[Line]:
    """Wrap lines at `width` characters. Continuation lines repeat the indent of the first."""
    rows: list[Line] = []
    for text, style in lines:
        indent = text[: len(text) - len(text.lstrip(" "))][: width // 2]
        while len(text) > width:
            end = text.rfind(" ", len(indent) + 1, width)
            if end <= width // 2:
                end = width
            rows.append((text[:end], style))
            text = indent + text[end:].lstrip(" ")
        rows.append((text, style))
    return rows


class DiffScreen(ModalScreen[None]):
    """A diff on the whole screen, or a text, which must already be sanitized.

    `turn_page` returns the next or previous file of a plan.
    """

    CSS_PATH = STYLES
    BINDINGS = [*bindings("diff", without=("diff.next", "diff.previous")), HELP]

    def __init__(self, title: str, content: Diff | str, turn_page: TurnPage | None = None) -> None:
        super().__init__()
        self._page = Page(title, content)
        self._turn_page = turn_page

    def compose(self) -> ComposeResult:
        yield Static("", id="head", markup=False)
        with ContentSwitcher(initial="whole-diff"):
            yield DiffView(id="whole-diff")
            with VerticalScroll(id="whole-text"):
                yield Static("", markup=False)
        yield KeyFooter(show_command_palette=False)

    def on_mount(self) -> None:
        self._show(self._page)
        if self._turn_page is not None:
            self.call_later(self.action_file, 0)  # adds the number of the page

    def _show(self, page: Page) -> None:
        self._page = page
        parts: list[tuple[str, str]] = [(terminal_text.line(page.title), "bold")]
        switcher = self.query_one(ContentSwitcher)
        if isinstance(page.content, Diff):
            parts.append((f"  +{page.content.added:,} −{page.content.removed:,}", "$quiet"))
            switcher.current = "whole-diff"
            view = self.query_one(DiffView)
            view.show(page.content)
            view.focus()
        else:
            switcher.current = "whole-text"
            self.query_one("#whole-text Static", Static).update(Content(page.content))
            self.query_one("#whole-text").focus()
        if page.count:
            parts.append((f"   file {page.number:,} of {page.count:,}", "$quiet"))
        self.query_one("#head", Static).update(Content.assemble(*parts))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "file" or self._turn_page is not None

    async def action_file(self, direction: int) -> None:
        """Show the next or previous file of the plan."""
        page = None if self._turn_page is None else await self._turn_page(direction)
        if page is not None and self.is_attached:
            self._show(page)

    def action_close(self) -> None:
        self.dismiss(None)
