"""The log of errors in the program itself: a private, rotated file without text from notes.

Modules log with `logging.getLogger(__name__)`. Records are redacted here before they are written.
"""

from __future__ import annotations

import logging
import platform
import re
import sys
import traceback
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

import obsidian_agent
from obsidian_agent.state_files import open_append

MAX_BYTES: Final = 1024 * 1024
"""Size at which the file is rotated: a program that fails all day must not fill a disk."""

BACKUPS: Final = 3
"""Number of rotated files."""

MESSAGE_LIMIT: Final = 300
"""Characters of a message. A longer message is likely to contain text of a note."""

_PATH = re.compile(r"(?:[A-Za-z]:\\|~?/)[^\s'\"<>|]+")
_QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|“[^”\n]*”")
_SECRET = re.compile(r"\b(?:sk|pk|ghp|xox[a-z])[-_][\w-]{6,}|\b[\w-]{32,}|(?i:bearer\s+\S+)")


def redacted(text: str) -> str:
    """Return the text without paths, quoted texts and anything that looks like a key."""
    for pattern, placeholder in ((_SECRET, "<secret>"), (_QUOTED, "<text>"), (_PATH, "<path>")):
        text = pattern.sub(placeholder, text)
    return text[:MESSAGE_LIMIT]


def report(error: BaseException) -> str:
    """Describe an error for a bug report: versions, the chain of errors and their source lines.

    The report holds no text of notes, no paths outside this package and no keys.
    """
    lines = [
        f"obsidian-agent {obsidian_agent.__version__}, "
        f"Python {platform.python_version()}, {sys.platform}"
    ]
    current: BaseException | None = error
    while current is not None:
        kind = type(current)
        lines.append(f"{kind.__module__}.{kind.__qualname__}: {redacted(str(current))}")
        for frame in traceback.extract_tb(current.__traceback__):
            lines.append(f"  {_source_file(frame.filename)}:{frame.lineno} in {frame.name}")
        current = current.__cause__ or current.__context__
    return "\n".join(lines)


def _source_file(filename: str) -> str:
    filename = filename.replace("\\", "/")
    _, package, module = filename.rpartition("obsidian_agent/")
    if package:
        return package + module
    return filename.rpartition("/")[2]


class _Redacting(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        error = record.exc_info[1] if record.exc_info else None
        text = redacted(record.getMessage())
        if error is not None:
            text += f"\n{report(error)}"
        text = text.replace("\x1b", "�").replace("\n", "\n  ")
        return f"{self.formatTime(record)} {record.levelname} {record.name}: {text}"


class _PrivateFileHandler(RotatingFileHandler):
    """Log handler with mode 0600. Write errors are ignored."""

    def _open(self) -> TextIOWrapper:
        fd = open_append(Path(self.baseFilename))
        return open(fd, "a", encoding="utf-8", errors="backslashreplace")

    def handleError(self, record: logging.LogRecord) -> None:
        pass


def file_in(folder: Path) -> Path:
    """Return the path of the log file in a folder."""
    return folder / "obsidian-agent.log"


def start(folder: Path) -> None:
    """Write the log to a file in `folder`, and to no other. The first record creates the file."""
    stop()
    handler = _PrivateFileHandler(
        file_in(folder), maxBytes=MAX_BYTES, backupCount=BACKUPS, delay=True
    )
    handler.setFormatter(_Redacting())
    logging.getLogger("obsidian_agent").addHandler(handler)


def stop() -> None:
    """Stop logging."""
    logger = logging.getLogger("obsidian_agent")
    for handler in list(logger.handlers):
        if not isinstance(handler, _PrivateFileHandler):
            continue
        logger.removeHandler(handler)
        handler.close()


def current() -> Path | None:
    """Return the path of the open log file, or None."""
    for handler in logging.getLogger("obsidian_agent").handlers:
        if isinstance(handler, _PrivateFileHandler):
            return Path(handler.baseFilename)
    return None


def lines(file: Path) -> list[str]:
    """Return the lines of the log and its rotated files, oldest first. Raises OSError."""
    files = [Path(f"{file}.{number}") for number in range(BACKUPS, 0, -1)] + [file]
    texts = [path.read_text("utf-8", "replace") for path in files if path.exists()]
    return [line for text in texts for line in text.splitlines()]
