"""One mapping of errors."""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
from typing import Any

import pytest

from obsidian_agent.agent.failures import KEPT, UNEXPECTED, Failure, Failures, explain, severity_of
from obsidian_agent.config.settings import Settings
from obsidian_agent.errors import ConfigError, Conflict, JournalError, PathRefused, PlanError, ProviderError, ToolError, VaultError

SECRET = "/home/ada/Vault/Private/diary.md sk-verysecretkey"


def system(number: int) -> OSError:
    return OSError(number, os.strerror(number), SECRET)


def invalid() -> Exception:
    try:
        Settings.model_validate({"temperature": SECRET})
    except Exception as error:
        return error
    raise AssertionError


CASES: list[tuple[BaseException, str, str, bool]] = [
    (ProviderError("x", code="API_KEY_INVALID"), "API_KEY_INVALID", "error", True),
    (ProviderError("x", code="API_RATE_LIMIT", retryable=True), "API_RATE_LIMIT", "warning", True),
    (ProviderError("x", code="API_NETWORK", retryable=True), "API_NETWORK", "error", True),
    (ProviderError("x", code="CONTEXT_TOO_LONG"), "CONTEXT_TOO_LONG", "error", True),
    (VaultError("x", code="FILE_NOT_FOUND"), "FILE_NOT_FOUND", "error", False),
    (VaultError("x", code="FILE_EXISTS"), "FILE_EXISTS", "error", False),
    (PathRefused("x", code="PATH_OUTSIDE_VAULT"), "PATH_OUTSIDE_VAULT", "error", False),
    (Conflict("x"), "CONFLICT", "error", False),
    (ToolError("x", code="COMMAND_NOT_FOUND"), "COMMAND_NOT_FOUND", "error", False),
    (PlanError("x"), "SCHEMA_INVALID", "error", False),
    (ConfigError("x"), "CONFIG_INVALID", "error", False),
    (JournalError("x"), "JOURNAL_ERROR", "critical", False),
    (system(errno.ENOENT), "FILE_NOT_FOUND", "error", False),
    (system(errno.EACCES), "PERMISSION_DENIED", "error", False),
    (system(errno.EROFS), "READ_ONLY", "error", False),
    (system(errno.ENOSPC), "DISK_FULL", "critical", True),
    (system(errno.EIO), "IO_ERROR", "error", True),
    (system(errno.EMFILE), "TOO_MANY_FILES", "error", True),
    (system(errno.ELOOP), "PATH_INVALID", "error", False),
    (system(errno.ECONNREFUSED), "API_NETWORK", "error", True),
    (system(errno.EXDEV), "IO_ERROR", "error", True),
    (TimeoutError(SECRET), "API_TIMEOUT", "error", True),
    (asyncio.CancelledError(), "CANCELLED", "info", False),
    (KeyboardInterrupt(), "CANCELLED", "info", False),
    (invalid(), "SCHEMA_INVALID", "error", False),
    (UnicodeDecodeError("utf-8", SECRET.encode(), 0, 1, "bad"), "NOT_TEXT", "error", False),
    (sqlite3.OperationalError(SECRET), "JOURNAL_ERROR", "critical", True),
    (sqlite3.DatabaseError(SECRET), "JOURNAL_ERROR", "critical", False),
    (RecursionError(), "TOO_DEEP", "error", False),
    (MemoryError(), "OUT_OF_MEMORY", "critical", True),
    (KeyError(SECRET), "INTERNAL_ERROR", "critical", True),
]


@pytest.mark.parametrize(("error", "code", "severity", "retry"), CASES, ids=lambda value: value if isinstance(value, str) else None)
def test_every_error_is_one_thing_to_tell(error: BaseException, code: str, severity: str, retry: bool) -> None:
    failure = explain(error, "saving")
    assert (failure.code, failure.severity, failure.retry, failure.where) == (code, severity, retry, "saving")
    assert failure.message
    told = repr(failure) + repr(failure.problem())
    assert "verysecretkey" not in told
    assert "/home/ada" not in told


def test_what_nobody_foresaw_is_said_in_the_usual_words() -> None:
    assert UNEXPECTED in explain(KeyError("x")).message
    assert severity_of("INTERNAL_ERROR") == "critical"
    assert severity_of("whatever") == "error"


def test_the_last_two_hundred_are_kept_and_told() -> None:
    told: list[Failure] = []
    failures = Failures(told.append)
    for number in range(KEPT + 5):
        failures.handle(ConfigError(str(number)))
    assert len(failures.kept) == KEPT
    assert failures.kept[-1].message == str(KEPT + 4)
    assert len(told) == KEPT + 5


def test_who_cannot_be_told_stops_nothing() -> None:
    def broken(failure: Any) -> None:
        raise RuntimeError("no screen")

    failures = Failures(broken)
    assert failures.handle(ConfigError("x")).code == "CONFIG_INVALID"
    assert failures.kept[-1].code == "DEGRADED"
