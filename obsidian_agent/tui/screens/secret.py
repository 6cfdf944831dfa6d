"""One line that nobody sees."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widgets import Input

from obsidian_agent.tui.screens.modal import Modal
from obsidian_agent.tui.widgets.entry import LineEntry


class Secret(Modal[str]):
    """Dismisses with what was typed, which may be nothing."""

    AUTO_FOCUS = "LineEntry"

    def body(self) -> ComposeResult:
        yield LineEntry(password=True, compact=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip())
