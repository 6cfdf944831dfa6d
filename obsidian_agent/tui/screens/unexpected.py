"""What a person sees when the program itself is at fault, and a report to show to others: where it happened, not what the notes say."""

from __future__ import annotations

import logging
import os
import platform
import re
import sys
import traceback

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

import obsidian_agent
from obsidian_agent import terminal_text
from obsidian_agent.tui.bindings import bindings, shown
from obsidian_agent.tui.screens.dialogs import Modal


class Unexpected(Modal[None]):
    """Calm words; `c` copies a report without note text, paths or keys."""

    BINDINGS = bindings("error")

    def __init__(self, error: BaseException) -> None:
        super().__init__("An unexpected error occurred. Please try again.")
        self._report = report(error)

    def body(self) -> ComposeResult:
        self.hint = f"{_log_in_words()}The report ({shown(self, 'error.copy')}) names no notes, paths or keys."
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


_PATH = re.compile(r"(?:[A-Za-z]:\\|~?/)[^\s'\"<>|]+")
_QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|“[^”\n]*”")
_SECRET = re.compile(r"\b(?:sk|pk|ghp|xox[a-z])[-_][\w-]{6,}|\b[\w-]{32,}|(?i:bearer\s+\S+)")
MESSAGE_LIMIT = 300


def redacted(text: str) -> str:
    """The text without paths, quoted texts and everything that looks like a key."""
    for pattern, stand_in in ((_SECRET, "<secret>"), (_QUOTED, "<text>"), (_PATH, "<path>")):
        text = pattern.sub(stand_in, text)
    return text[:MESSAGE_LIMIT]


def report(error: BaseException) -> str:
    """Versions, the chain of errors, and the places in the code; no note text, paths of the computer or keys."""
    lines = [f"obsidian-agent {obsidian_agent.__version__}, Python {platform.python_version()}, {sys.platform}"]
    seen: BaseException | None = error
    while seen is not None:
        lines.append(f"{type(seen).__module__}.{type(seen).__qualname__}: {redacted(str(seen))}")
        for frame in traceback.extract_tb(seen.__traceback__):
            where = frame.filename.replace("\\", "/").rpartition("obsidian_agent/")
            name = f"obsidian_agent/{where[2]}" if where[1] else frame.filename.replace("\\", "/").rpartition("/")[2]
            lines.append(f"  {name}:{frame.lineno} in {frame.name}")
        seen = seen.__cause__ or seen.__context__
    return "\n".join(lines)
