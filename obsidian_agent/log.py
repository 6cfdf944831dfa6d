"""The log: what went wrong in the program itself, in a private file that is rotated. It says where in the code, not what the notes say.

Modules log with `logging.getLogger(__name__)`; whatever they log is redacted here, on its way into the file.
"""

from __future__ import annotations

import logging
import os
import platform
import re
import sys
import traceback
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

import obsidian_agent
from obsidian_agent.state_files import make_private

LARGEST: Final = 1024 * 1024
"""Bytes of the file; the next line begins another: a program that fails all day must not fill a disk."""

OLDER: Final = 3
"""Older files that are kept."""

MESSAGE_LIMIT: Final = 300
"""Characters of a message: what is longer carries a text with it."""

_PATH = re.compile(r"(?:[A-Za-z]:\\|~?/)[^\s'\"<>|]+")
_QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|“[^”\n]*”")
_SECRET = re.compile(r"\b(?:sk|pk|ghp|xox[a-z])[-_][\w-]{6,}|\b[\w-]{32,}|(?i:bearer\s+\S+)")


def redacted(text: str) -> str:
    """The text without paths, quoted texts and everything that looks like a key."""
    for pattern, stand_in in ((_SECRET, "<secret>"), (_QUOTED, "<text>"), (_PATH, "<path>")):
        text = pattern.sub(stand_in, text)
    return text[:MESSAGE_LIMIT]


def report(error: BaseException) -> str:
    """Versions, the chain of errors, and the places in the code; no note text, paths of the computer or keys."""
    lines = [
        f"obsidian-agent {obsidian_agent.__version__}, Python {platform.python_version()}, {sys.platform}"
    ]
    seen: BaseException | None = error
    while seen is not None:
        lines.append(f"{type(seen).__module__}.{type(seen).__qualname__}: {redacted(str(seen))}")
        for frame in traceback.extract_tb(seen.__traceback__):
            where = frame.filename.replace("\\", "/").rpartition("obsidian_agent/")
            name = (
                f"obsidian_agent/{where[2]}"
                if where[1]
                else frame.filename.replace("\\", "/").rpartition("/")[2]
            )
            lines.append(f"  {name}:{frame.lineno} in {frame.name}")
        seen = seen.__cause__ or seen.__context__
    return "\n".join(lines)


class _Redacting(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        error = record.exc_info[1] if record.exc_info else None
        text = redacted(record.getMessage()) + (f"\n{report(error)}" if error is not None else "")
        return f"{self.formatTime(record)} {record.levelname} {record.name}: " + text.replace(
            "\x1b", "�"
        ).replace("\n", "\n  ")


class _Private(RotatingFileHandler):
    """For the person alone; a disk that is full is nobody's business here."""

    def _open(self) -> TextIOWrapper:
        make_private(Path(self.baseFilename).parent)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        return open(
            os.open(self.baseFilename, flags, 0o600),
            "a",
            encoding="utf-8",
            errors="backslashreplace",
        )

    def handleError(self, record: logging.LogRecord) -> None:
        pass


def file_in(folder: Path) -> Path:
    """The log file in the folder for logs."""
    return folder / "obsidian-agent.log"


def start(folder: Path) -> None:
    """Keep what this program logs in a file from now on, and in no other; it is made with the first line."""
    stop()
    handler = _Private(file_in(folder), maxBytes=LARGEST, backupCount=OLDER, delay=True)
    handler.setFormatter(_Redacting())
    logging.getLogger("obsidian_agent").addHandler(handler)


def stop() -> None:
    """Keep no log any more."""
    logger = logging.getLogger("obsidian_agent")
    for handler in [each for each in logger.handlers if isinstance(each, _Private)]:
        logger.removeHandler(handler)
        handler.close()


def current() -> Path | None:
    """The file that the log is kept in; None when it is not."""
    handlers = logging.getLogger("obsidian_agent").handlers
    return next((Path(each.baseFilename) for each in handlers if isinstance(each, _Private)), None)


def lines(file: Path) -> list[str]:
    """What is in the log, the older files first. Raises OSError."""
    files = [Path(f"{file}.{number}") for number in range(OLDER, 0, -1)] + [file]
    return [
        line
        for each in files
        if each.exists()
        for line in each.read_text("utf-8", "replace").splitlines()
    ]
