"""The frame of every modal screen: a titled box; Escape closes it without a result."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Footer, Static

from obsidian_agent import terminal_text
from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tui.background import in_background

R = TypeVar("R")


class Modal(ModalScreen[R | None], Generic[R]):
    """Subclasses give a title and yield the body. The result is None when the screen was closed without one."""

    BINDINGS = [Binding("escape", "close", "Close")]

    def __init__(self, title: str, hint: str = "") -> None:
        super().__init__()
        self.heading = title
        self.hint = hint

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static(Content(terminal_text.block(self.heading)), id="modal-title", markup=False)
            yield from self.body()
            yield Static("", id="modal-problem", markup=False)
            if self.hint:
                yield Static(Content(terminal_text.block(self.hint)), id="modal-hint", markup=False)
            yield Footer(show_command_palette=False)

    def body(self) -> ComposeResult:
        """The widgets between title and footer."""
        raise NotImplementedError

    def problem(self, text: str) -> None:
        """Say what is wrong with what was entered; "" takes it away."""
        shown = self.query_one("#modal-problem", Static)
        shown.update(Content(terminal_text.block(text)))
        shown.display = bool(text)

    def run_flow(self, group: str, work: Callable[[], Coroutine[Any, Any, None]], *, exclusive: bool = False) -> None:
        """Work of this screen; an error of the core is shown in it."""

        async def guarded() -> None:
            try:
                await work()
            except ObsidianAgentError as error:
                if self.is_attached:
                    self.problem(error.problem().message)

        in_background(self, group, guarded, exclusive=exclusive)

    def action_close(self) -> None:
        self.dismiss(None)


class Buttons(Horizontal):
    """A row of buttons."""

    def __init__(self, *buttons: Widget) -> None:
        super().__init__(*buttons)
