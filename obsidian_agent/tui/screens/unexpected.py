"""What a person sees when the program itself is at fault, and a report to show to others: where it happened, not what the notes say."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from obsidian_agent import terminal_text
from obsidian_agent.log import current, report
from obsidian_agent.tui.bindings import bindings, key_label
from obsidian_agent.tui.screens.dialogs import Modal


class Unexpected(Modal[None]):
    """Calm words; `c` copies a report without note text, paths or keys."""

    BINDINGS = bindings("error")

    def __init__(self, error: BaseException) -> None:
        super().__init__("An unexpected error occurred. Please try again.")
        self._report = report(error)

    def body(self) -> ComposeResult:
        file = current()
        self.hint = f"{f'Details are in {file}. ' if file else ''}The report ({key_label(self, 'error.copy')}) names no notes, paths or keys."
        rows = self._report.split("\n")
        yield Static(
            Content.styled(terminal_text.block("\n".join(rows[:1] + rows[1:2])), "$quiet"),
            markup=False,
        )

    def action_copy_report(self) -> None:
        self.app.copy_to_clipboard(self._report)
        self.app.notify("The report is in the clipboard.", markup=False)
