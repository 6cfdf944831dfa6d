"""Every error as one thing to tell: a code, how bad it is, what happened, what to do, and whether trying again may help.

Errors that this program raises on purpose know most of that themselves; those of the system and of libraries are told by their types. No
message holds a path of this machine, a key, or the text of a note.
"""

from __future__ import annotations

import asyncio
import errno
import sqlite3
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

from pydantic import ValidationError

from obsidian_agent.errors import ObsidianAgentError, Problem, ProviderError
from obsidian_agent.providers.errors import redact

Severity = Literal["critical", "error", "warning", "info"]
KEPT: Final = 200
UNEXPECTED: Final = "An unexpected error occurred. Please try again."


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as people and programs get it. `retry`: the same may be tried again with one key; `where` is what was being done."""

    code: str
    message: str
    severity: Severity = "error"
    retry: bool = False
    suggestion: str = ""
    where: str = ""
    path: str | None = None

    def problem(self) -> Problem:
        """It as the data that events carry."""
        return Problem(self.code, f"{self.message} {self.suggestion}".strip(), path=self.path)


_SEVERITIES: Final[Mapping[str, Severity]] = MappingProxyType(
    {
        "CANCELLED": "info",
        "THREAD_BUSY": "info",
        "RATE_LIMIT_WAIT": "info",
        "COMPACTED": "info",
        "MODEL_CHOSEN": "info",
        "API_RATE_LIMIT": "warning",
        "API_STREAM_CUT": "warning",
        "TRUNCATED": "warning",
        "CONTEXT_FULL": "warning",
        "CONTEXT_SQUEEZED": "warning",
        "INSTRUCTIONS_CUT": "warning",
        "MENTION_NOT_FOUND": "warning",
        "MODEL_NOT_ALLOWED": "warning",
        "AGENT_NOT_FOUND": "warning",
        "SKILL_NOT_FOUND": "warning",
        "HISTORY_NOT_SHARED": "warning",
        "API_TOOLS_UNSUPPORTED": "warning",
        "DEGRADED": "warning",
        "NEEDS_INPUT": "info",
        "INTERNAL_ERROR": "critical",
        "JOURNAL_ERROR": "critical",
        "DISK_FULL": "critical",
        "THREAD_NOT_SAVED": "critical",
        "LEDGER_ERROR": "critical",
    }
)

_SYSTEM: Final[Mapping[int, tuple[str, str, str, bool]]] = MappingProxyType(
    {
        errno.ENOENT: ("FILE_NOT_FOUND", "A file or folder is not there.", "Look whether it was moved.", False),
        errno.EACCES: ("PERMISSION_DENIED", "The system does not allow this.", "Check the permissions of the file.", False),
        errno.EPERM: ("PERMISSION_DENIED", "The system does not allow this.", "Check the permissions of the file.", False),
        errno.EROFS: ("READ_ONLY", "The disk can only be read.", "Make it writable, or work on a copy.", False),
        errno.EEXIST: ("FILE_EXISTS", "There is something of that name already.", "Choose another name.", False),
        errno.ENOSPC: ("DISK_FULL", "The disk is full.", "Make room and try again.", True),
        errno.EDQUOT: ("DISK_FULL", "Your share of the disk is used up.", "Make room and try again.", True),
        errno.EIO: ("IO_ERROR", "The disk could not be read or written.", "Check the disk.", True),
        errno.EMFILE: ("TOO_MANY_FILES", "Too many files are open.", "Close other programs and try again.", True),
        errno.ENFILE: ("TOO_MANY_FILES", "Too many files are open.", "Close other programs and try again.", True),
        errno.ENAMETOOLONG: ("PATH_INVALID", "A name is too long for the disk.", "Choose a shorter one.", False),
        errno.EISDIR: ("NOT_TEXT", "That is a folder, not a file.", "Name a file.", False),
        errno.ENOTDIR: ("NOT_A_FOLDER", "That is a file, not a folder.", "Name a folder.", False),
        errno.ENOTEMPTY: ("FOLDER_NOT_EMPTY", "The folder is not empty.", "Empty it first.", False),
        errno.ELOOP: ("PATH_INVALID", "A link leads in circles.", "Remove the link.", False),
        errno.ECONNREFUSED: ("API_NETWORK", "Nothing answers at that address.", "Is the service running?", True),
        errno.ENETUNREACH: ("API_NETWORK", "The network cannot be reached.", "Check the connection.", True),
        errno.ETIMEDOUT: ("API_TIMEOUT", "Nothing came for too long.", "Try again.", True),
    }
)


def explain(error: BaseException, where: str = "") -> Failure:
    """What an error means. Never raises."""
    match error:
        case ObsidianAgentError():
            return _own(error, where)
        case asyncio.CancelledError() | KeyboardInterrupt():
            return Failure("CANCELLED", "It was cancelled.", "info", where=where)
        case TimeoutError():
            return Failure("API_TIMEOUT", "Nothing came for too long.", retry=True, suggestion="Try again.", where=where)
        case OSError():
            return _system(error, where)
        case ValidationError():
            first = error.errors(include_input=False, include_url=False)[0]
            field_name = ".".join(str(part) for part in first["loc"])
            return Failure("SCHEMA_INVALID", redact(f"{field_name}: {first['msg']}."), where=where)
        case UnicodeError():
            return Failure("NOT_TEXT", "What was read is no UTF-8 text.", suggestion="Convert the file.", where=where)
        case sqlite3.OperationalError():
            return Failure("JOURNAL_ERROR", "The record of runs cannot be used.", "critical", True, "Is another program using it?", where)
        case sqlite3.Error():
            return Failure(
                "JOURNAL_ERROR", "The record of runs is damaged.", "critical", suggestion="Run: obsidian-agent doctor", where=where
            )
        case RecursionError():
            return Failure("TOO_DEEP", "Something is nested too deeply.", where=where)
        case MemoryError():
            return Failure("OUT_OF_MEMORY", "There is not enough memory.", "critical", True, "Close other programs.", where)
        case _:
            return Failure("INTERNAL_ERROR", f"{UNEXPECTED} ({type(error).__name__})", "critical", True, where=where)


def severity_of(code: str) -> Severity:
    """How bad something is that carries this code."""
    return _SEVERITIES.get(code, "error")


def _own(error: ObsidianAgentError, where: str) -> Failure:
    retry = error.retryable or isinstance(error, ProviderError)
    message = redact(error.message)
    return Failure(error.code, message, severity_of(error.code), retry, error.hint or "", where, error.path)


def _system(error: OSError, where: str) -> Failure:
    code, message, suggestion, retry = _SYSTEM.get(
        error.errno or 0, ("IO_ERROR", f"The system failed ({type(error).__name__}).", "Try again.", True)
    )
    return Failure(code, message, severity_of(code), retry, suggestion, where)


@dataclass(slots=True)
class Failures:
    """The last failures, for whoever wants to look, and who is told of new ones."""

    tell: Callable[[Failure], None] = lambda failure: None
    kept: deque[Failure] = field(default_factory=lambda: deque(maxlen=KEPT))

    def handle(self, error: BaseException, where: str = "") -> Failure:
        """Explain an error, keep it, and tell of it. Never raises, whatever `tell` does."""
        failure = explain(error, where)
        self.kept.append(failure)
        try:
            self.tell(failure)
        except Exception:
            self.kept.append(Failure("DEGRADED", "A notice could not be shown.", "warning", where="notices"))
        return failure
