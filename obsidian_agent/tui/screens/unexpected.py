"""The dialog for an unexpected error, with a report to share that contains nothing from notes."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from obsidian_agent import terminal_text
from obsidian_agent.log import current, report
from obsidian_agent.tui.bindings import bindings, key_label
from obsidian_agent.tui.screens.dialogs import Modal


class Unexpected(Modal[None]):
    """An error of the program itself. `c` copies a report without note text, paths or keys."""

    BINDINGS = bindings("error")

    def __init__(self, error: BaseException) -> None:
        super().__init__("An unexpected error occurred. Please try again.")
        self._report = report(error)

    def body(self) -> ComposeResult:
        file = current()
        key = key_label(self, "error.copy")
        self.hint = f"The report ({key} copies it) contains no note text, paths or API keys."
        if file:
            self.hint = f"Details are in {file}. {self.hint}"
        summary = "\n".join(self._report.split("\n")[:2])
        yield Static(Content.styled(terminal_text.block(summary), "$quiet"), markup=False)

    def action_copy_report(self) -> None:
        self.app.copy_to_clipboard(self._report)
        self.app.notify("Report copied to the clipboard.", markup=False)
