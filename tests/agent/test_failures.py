"""One mapping of errors."""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3

import pytest

from obsidian_agent.agent.failures import explain
from obsidian_agent.errors import JournalError, PathRefused, ProviderError

SECRET = "/home/ada/Vault/Private/diary.md sk-verysecretkey"


def system(number: int) -> OSError:
    return OSError(number, os.strerror(number), SECRET)


CASES: list[tuple[BaseException, str]] = [
    (ProviderError("refused sk-verysecretkey", code="API_KEY_INVALID"), "API_KEY_INVALID"),
    (PathRefused("x", code="PATH_OUTSIDE_VAULT"), "PATH_OUTSIDE_VAULT"),
    (JournalError("x"), "JOURNAL_ERROR"),
    (system(errno.ENOENT), "FILE_NOT_FOUND"),
    (system(errno.EACCES), "PERMISSION_DENIED"),
    (system(errno.ENOSPC), "DISK_FULL"),
    (system(errno.EMFILE), "TOO_MANY_FILES"),
    (system(errno.ECONNREFUSED), "API_NETWORK"),
    (system(errno.EXDEV), "IO_ERROR"),
    (TimeoutError(SECRET), "API_TIMEOUT"),
    (asyncio.CancelledError(), "CANCELLED"),
    (UnicodeDecodeError("utf-8", SECRET.encode(), 0, 1, "bad"), "NOT_TEXT"),
    (sqlite3.OperationalError(SECRET), "JOURNAL_ERROR"),
    (sqlite3.DatabaseError(SECRET), "JOURNAL_ERROR"),
    (MemoryError(), "OUT_OF_MEMORY"),
    (KeyError(SECRET), "INTERNAL_ERROR"),
]


@pytest.mark.parametrize(
    ("error", "code"), CASES, ids=lambda value: value if isinstance(value, str) else None
)
def test_every_error_is_one_thing_to_tell(error: BaseException, code: str) -> None:
    problem = explain(error)
    assert problem.code == code
    assert problem.message
    assert "verysecretkey" not in repr(problem)
    assert "/home/ada" not in repr(problem)
