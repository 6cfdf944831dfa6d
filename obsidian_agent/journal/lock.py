"""The writer lock of a vault, which ends with its process.

It consists of two locks: one on a file in the state folder, which also names the holder, and where
the system allows it one on the vault's folder, so that programs with different state folders, or
that opened the vault by another path, exclude each other too. Nothing is written to the vault for
the lock.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from obsidian_agent.errors import JournalError
from obsidian_agent.state_files import try_lock, wait_for_lock
from obsidian_agent.vault.filesystem.walk import close_quietly

_LOCK_SECONDS: Final = 0.05
"""Seconds to wait for a lock, because `is_locked` holds it for a moment."""


@contextlib.contextmanager
def vault_lock(file: Path, vault_fd: int) -> Iterator[None]:
    """Hold the lock of a vault. The lock file stays afterwards.

    Raise JournalError (VAULT_BUSY), which names the holder, if another process holds it.
    """
    fd = os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        if not wait_for_lock(fd, _LOCK_SECONDS):
            raise _busy(_holder(fd))
        os.ftruncate(fd, 0)
        os.write(fd, f"{os.getpid()}\n".encode())
        with _folder_lock(vault_fd):
            yield
    finally:
        close_quietly(fd)


def is_locked(file: Path) -> bool:
    """Return True if a process holds the lock of this file."""
    try:
        fd = os.open(file, os.O_RDWR)
    except OSError:
        return False
    try:
        return not try_lock(fd)
    finally:
        close_quietly(fd)


@contextlib.contextmanager
def _folder_lock(vault_fd: int) -> Iterator[None]:
    if sys.platform == "win32":
        yield
        return
    fd = os.open(".", os.O_RDONLY | os.O_CLOEXEC, dir_fd=vault_fd)
    try:
        if not wait_for_lock(fd, _LOCK_SECONDS):
            raise _busy(None)
        yield
    finally:
        close_quietly(fd)


def _holder(fd: int) -> str | None:
    os.lseek(fd, 0, os.SEEK_SET)
    text = os.read(fd, 32).strip()
    return text.decode() if text.isdigit() else None


def _busy(holder: str | None) -> JournalError:
    process = f"process {holder}" if holder else "another process"
    return JournalError(
        f"The vault is being changed by {process}, and only one process may change it at a time.",
        code="VAULT_BUSY",
        hint="Wait until it has finished, or close it.",
        retryable=True,
    )
