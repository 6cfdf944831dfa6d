"""The frame of every modal screen: a titled box; Escape closes it without a result."""

from __future__ import annotations

from typing import Generic, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Footer, Static

from obsidian_agent.tui import sanitize

R = TypeVar("R")


class Modal(ModalScreen[R], Generic[R]):
    """Subclasses give a title and yield the body."""

    DEFAULT_CSS = """
    Modal { align: center middle; background: $background 60%; }
    Modal > #box { width: 84; max-width: 94%; height: auto; max-height: 90%; background: $surface; border: round $primary 60%; padding: 1 2 0 2; }
    Modal #modal-title { text-style: bold; height: auto; margin-bottom: 1; }
    Modal #modal-hint { color: $quiet; height: auto; margin-top: 1; }
    Modal #modal-problem { color: $error; height: auto; display: none; }
    Modal Footer { dock: none; height: 1; background: $surface; margin-top: 1; }
    Modal FooterKey { background: $surface; }
    Modal Input { border: round $panel; background: $surface; height: 3; &:focus { border: round $primary; } }
    Modal Button { border: none; height: 1; min-width: 8; margin-right: 2; background: $panel; &:focus { background: $primary; color: $background; text-style: bold; } }
    Modal VirtualList { height: auto; max-height: 60vh; }
    """
    BINDINGS = [Binding("escape", "close", "Close")]

    def __init__(self, title: str, hint: str = "") -> None:
        super().__init__()
        self.heading = title
        self.hint = hint

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static(Content(sanitize.block(self.heading)), id="modal-title", markup=False)
            yield from self.body()
            yield Static("", id="modal-problem", markup=False)
            if self.hint:
                yield Static(Content(sanitize.block(self.hint)), id="modal-hint", markup=False)
            yield Footer(show_command_palette=False)

    def body(self) -> ComposeResult:
        """The widgets between title and footer."""
        raise NotImplementedError

    def problem(self, text: str) -> None:
        """Say what is wrong with what was entered; "" takes it away."""
        shown = self.query_one("#modal-problem", Static)
        shown.update(Content(sanitize.block(text)))
        shown.display = bool(text)

    def action_close(self) -> None:
        self.dismiss(None)


class Buttons(Horizontal):
    """A row of buttons."""

    DEFAULT_CSS = "Buttons { height: 1; margin-top: 1; }"

    def __init__(self, *buttons: Widget) -> None:
        super().__init__(*buttons)
