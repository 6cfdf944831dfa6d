"""One writer per vault: a lock that dies with its process.

It is held twice: on a file in the state folder, which also names the holder for the others, and where the system can on the vault's
folder itself, so that programs with different state folders, or that came by another path, exclude each other too. Nothing is written to
the vault.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from obsidian_agent.errors import JournalError
from obsidian_agent.vault.filesystem.walk import close_quietly

_TRIES = 5
_PAUSE = 0.01
_BUSY = frozenset({errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK})


@contextlib.contextmanager
def vault_lock(file: Path, vault_fd: int) -> Iterator[None]:
    """Hold the lock of a vault. JournalError (VAULT_BUSY) that names the holder when it is taken. The lock file stays, unlocked."""
    fd = os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        if not _lock(fd):
            raise _busy(_holder(fd))
        os.ftruncate(fd, 0)
        os.write(fd, f"{os.getpid()}\n".encode())
        with _folder_lock(vault_fd):
            yield
    finally:
        close_quietly(fd)


def is_locked(file: Path) -> bool:
    """Whether a process holds the lock of this file just now."""
    try:
        fd = os.open(file, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return False
    try:
        return not _try_lock(fd)
    finally:
        close_quietly(fd)


def wait_for_lock(fd: int, seconds: float = 10.0) -> None:
    """Hold a lock on an open file, which lasts until it is closed. Raises OSError (EAGAIN) when somebody else holds it all that time."""
    end = time.monotonic() + seconds
    while not _try_lock(fd):
        if time.monotonic() > end:
            raise OSError(errno.EAGAIN, "another process holds it")
        time.sleep(_PAUSE)


@contextlib.contextmanager
def _folder_lock(vault_fd: int) -> Iterator[None]:
    if sys.platform == "win32":
        yield
        return
    fd = os.open(".", os.O_RDONLY | os.O_CLOEXEC, dir_fd=vault_fd)
    try:
        if not _lock(fd):
            raise _busy(None)
        yield
    finally:
        close_quietly(fd)


def _lock(fd: int) -> bool:
    """Take the lock; somebody who only asks `is_locked` holds it for a moment, which is waited for."""
    for _ in range(_TRIES):
        if _try_lock(fd):
            return True
        time.sleep(_PAUSE)
    return False


def _holder(fd: int) -> str | None:
    os.lseek(fd, 0, os.SEEK_SET)
    text = os.read(fd, 32).strip()
    return text.decode() if text.isdigit() else None


def _busy(holder: str | None) -> JournalError:
    who = f"process {holder}" if holder else "another process"
    return JournalError(
        f"The vault is being changed by {who}, and only one may at a time.",
        code="VAULT_BUSY",
        hint="Wait until it has finished, or close it.",
        retryable=True,
    )


if sys.platform == "win32":
    import msvcrt

    def _try_lock(fd: int) -> bool:
        # A byte far behind the text, which others must be able to read.
        os.lseek(fd, 1 << 20, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno in _BUSY:
                return False
            raise
        finally:
            os.lseek(fd, 0, os.SEEK_SET)
        return True
else:
    import fcntl

    def _try_lock(fd: int) -> bool:
        """Whether the lock is ours now. A file system that knows no locks counts as unlocked."""
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return error.errno not in _BUSY
        return True
