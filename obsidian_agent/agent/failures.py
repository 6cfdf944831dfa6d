"""Any error as one problem for users: a code, what happened, and what to do.

Errors raised by this program describe themselves; those of the system and of libraries are mapped
by type. No message contains a path of this machine, a key, or the text of a note.
"""

from __future__ import annotations

import asyncio
import errno
import sqlite3
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from obsidian_agent.errors import ObsidianAgentError, Problem
from obsidian_agent.providers.errors import redact

_SYSTEM: Final[Mapping[int, tuple[str, str]]] = MappingProxyType(
    {
        errno.ENOENT: (
            "FILE_NOT_FOUND",
            "A file or folder does not exist. Check whether it was moved.",
        ),
        errno.EACCES: (
            "PERMISSION_DENIED",
            "The system does not allow this. Check the permissions of the file.",
        ),
        errno.EPERM: (
            "PERMISSION_DENIED",
            "The system does not allow this. Check the permissions of the file.",
        ),
        errno.EROFS: (
            "READ_ONLY",
            "The disk is read-only. Make it writable, or work on a copy.",
        ),
        errno.ENOSPC: ("DISK_FULL", "The disk is full. Make room and try again."),
        errno.EDQUOT: ("DISK_FULL", "Your disk quota is used up. Make room and try again."),
        errno.EMFILE: (
            "TOO_MANY_FILES",
            "Too many files are open. Close other programs and try again.",
        ),
        errno.ENFILE: (
            "TOO_MANY_FILES",
            "Too many files are open. Close other programs and try again.",
        ),
        errno.ECONNREFUSED: (
            "API_NETWORK",
            "Nothing answers at that address. Is the service running?",
        ),
        errno.ENETUNREACH: ("API_NETWORK", "The network cannot be reached. Check the connection."),
    }
)


def explain(error: BaseException) -> Problem:
    """Return the problem that an error stands for. Never raises."""
    match error:
        case ObsidianAgentError():
            problem = error.problem()
            return replace(problem, message=redact(problem.message))
        case asyncio.CancelledError() | KeyboardInterrupt():
            return Problem("CANCELLED", "It was cancelled.")
        case TimeoutError():
            return Problem("API_TIMEOUT", "There was no answer for too long. Try again.")
        case OSError():
            known = _SYSTEM.get(error.errno or 0)
            return (
                Problem(*known)
                if known
                else Problem("IO_ERROR", f"The system failed ({type(error).__name__}). Try again.")
            )
        case UnicodeError():
            return Problem("NOT_TEXT", "The file is not UTF-8 text. Convert it first.")
        case sqlite3.OperationalError():
            return Problem(
                "JOURNAL_ERROR", "The history of runs cannot be used. Is another program using it?"
            )
        case sqlite3.Error():
            return Problem(
                "JOURNAL_ERROR", "The history of runs is damaged. Run: obsidian-agent doctor"
            )
        case MemoryError():
            return Problem("OUT_OF_MEMORY", "There is not enough memory. Close other programs.")
        case _:
            return Problem(
                "INTERNAL_ERROR",
                f"An unexpected error occurred. Please try again. ({type(error).__name__})",
            )
