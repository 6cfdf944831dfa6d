"""What a person sees when the program itself is at fault."""

from __future__ import annotations

import logging
import os

from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.widgets import Static

from obsidian_agent import terminal_text
from obsidian_agent.tui.report import report
from obsidian_agent.tui.screens.modal import Modal


class Unexpected(Modal[None]):
    """Calm words; `c` copies a report without note text, paths or keys."""

    BINDINGS = [Binding("c", "copy_report", "Copy report"), Binding("enter", "close", "Close", show=False)]

    def __init__(self, error: BaseException) -> None:
        super().__init__(
            "An unexpected error occurred. Please try again.", f"{_log_in_words()}The report (c) names no notes, paths or keys."
        )
        self._report = report(error)

    def body(self) -> ComposeResult:
        rows = self._report.split("\n")
        yield Static(Content.styled(terminal_text.block("\n".join(rows[:1] + rows[1:2])), "$quiet"), markup=False)

    def action_copy_report(self) -> None:
        self.app.copy_to_clipboard(self._report)
        self.app.notify("The report is in the clipboard.", markup=False)


def _log_in_words() -> str:
    """Where the details are, if what is logged is kept in a file."""
    logger: logging.Logger | None = logging.getLogger(__name__)
    while logger is not None:
        for handler in logger.handlers:
            if isinstance(handler, logging.FileHandler) and handler.baseFilename != os.devnull:
                return f"Details are in {handler.baseFilename}. "
        logger = logger.parent
    return ""
