"""One question with two answers; the safe one has the focus."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.widgets import Button, Static

from obsidian_agent import terminal_text
from obsidian_agent.tui.screens.modal import Buttons, Modal


class Confirm(Modal[bool]):
    """Dismisses with True for yes; False or None otherwise."""

    BINDINGS = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n", "answer(False)", "No"),
        Binding("left,right", "app.focus_next", show=False),
    ]

    def __init__(self, title: str, text: str, yes: str, no: str = "Cancel", *, danger: bool = True) -> None:
        super().__init__(title)
        self._text, self._yes, self._no, self._danger = text, yes, no, danger

    def body(self) -> ComposeResult:
        yield Static(Content(terminal_text.block(self._text)), markup=False)
        yield Buttons(
            Button(Content(self._no), compact=True, id="no"),
            Button(Content(self._yes), compact=True, id="yes", variant="error" if self._danger else "default"),
        )

    def on_mount(self) -> None:
        self.query_one("#no").focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)
