"""The temporary files of a run, and their removal.

A run's own temporary files are deleted at once. A file that it displaced is deleted when no program
can write to it any more: a program that opened a note before it was replaced still writes to the
old file, even after that was last checked. Linux can report whether any program has the displaced
file open for writing, because it grants a lease only on a file that is not. If a program has it
open, or if that is unknown, the file is checked again after a moment. A file that was changed
meanwhile, or is still open then, is put beside the note under a visible name.

Source: fcntl(2), "Leases".
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import sys
import time
from collections import deque
from typing import Final

from msgspec import Struct

from obsidian_agent.errors import Problem, VaultError
from obsidian_agent.vault.filesystem.dirhandles import READ_FLAGS, FolderHandles
from obsidian_agent.vault.filesystem.system_calls import rename_as_recovered
from obsidian_agent.vault.filesystem.walk import close_quietly, read_all
from obsidian_agent.vault.paths.path import VaultPath

RECHECK_SECONDS: Final = 0.1
"""Seconds until a displaced file is checked again."""

MAX_WAIT_SECONDS: Final = 2.0
"""Seconds that a run waits in total for files in folders that it is about to remove."""


class _TempFile(Struct, kw_only=True):
    """A file with a temporary name."""

    folder: VaultPath
    name: str
    path: VaultPath
    """The note that the file belongs to."""
    hash: str | None = None
    """The hash that the file must still have to be deleted; None if any content is deleted."""
    due: float = 0.0
    """The time, on the monotonic clock, at which the file is checked."""


class TempFiles:
    """The temporary files of a run."""

    def __init__(self, handles: FolderHandles) -> None:
        self._handles = handles
        self._displaced: deque[_TempFile] = deque()
        self._failed: list[_TempFile] = []
        """Files that the disk did not delete. They are tried again at the end."""
        self._remaining_wait = MAX_WAIT_SECONDS
        self.warnings: list[Problem] = []
        """A warning for each file that was put beside a note."""

    def discard(self, path: VaultPath, folder: int, name: str) -> None:
        """Delete a file. If the disk refuses, try again at the end."""
        try:
            _remove(folder, name)
        except OSError:
            self._failed.append(_TempFile(folder=path.parent, name=name, path=path))

    def discard_displaced(
        self, path: VaultPath, folder: int, name: str, hash: str, *, written: bool | None
    ) -> None:
        """Delete a displaced file, which had this hash when it was checked.

        `written` is True if a program had it open for writing then, None if that is unknown. In
        both cases the file is checked again first.
        """
        if written is False:
            self.discard(path, folder, name)
        else:
            due = time.monotonic() + RECHECK_SECONDS
            file = _TempFile(folder=path.parent, name=name, path=path, hash=hash, due=due)
            self._displaced.append(file)

    def moved(self, old: VaultPath, new: VaultPath) -> None:
        """Update the paths of files in a folder that was moved."""
        for file in (*self._displaced, *self._failed):
            if file.folder == old or file.folder.within(old):
                file.folder = file.folder.rebased(old, new)
                file.path = file.path.rebased(old, new)

    def clear(self, folder: VaultPath) -> None:
        """Delete the temporary files in a folder that is about to be removed."""
        for file in [file for file in self._displaced if file.folder == folder]:
            pause = min(self._remaining_wait, max(0.0, file.due - time.monotonic()))
            self._remaining_wait -= pause
            time.sleep(pause)
            self._displaced.remove(file)
            self._finish(file)
        for file in [file for file in self._failed if file.folder == folder]:
            self._failed.remove(file)
            self._finish(file)

    def finish_due(self) -> None:
        """Check and delete the displaced files that are due."""
        while self._displaced and self._displaced[0].due <= time.monotonic():
            self._finish_next()

    def finish_all(self) -> bool:
        """Check and delete all files, and wait for those that are not due yet.

        Return False if one could not be deleted.
        """
        while self._displaced:
            self._finish_next()
        failed, self._failed = self._failed, []
        for file in failed:
            self._finish(file)
        return not self._failed

    def _finish_next(self) -> None:
        file = self._displaced.popleft()
        time.sleep(max(0.0, file.due - time.monotonic()))
        self._finish(file)

    def _finish(self, file: _TempFile) -> None:
        try:
            folder = self._handles.get(file.folder)
            if file.hash is None or _is_unchanged(folder, file.name, file.hash):
                _remove(folder, file.name)
                return
            recovered = rename_as_recovered(folder, file.name, file.path.name)
        except FileNotFoundError:
            return
        except (OSError, VaultError):
            self._failed.append(file)
            return
        location = f"{file.folder.text}/{recovered}" if file.folder.text else recovered
        message = (
            f"Another program had {file.path.text} open while it was changed. "
            f"What that program wrote is in {location}."
        )
        self.warnings.append(Problem("CONFLICT", message, path=file.path.text))


def is_open_for_writing(fd: int) -> bool | None:
    """Return True if a program has the file open for writing, None if that is unknown.

    `fd` must have been opened for reading only.
    """
    if sys.platform != "linux":
        return None
    import fcntl

    try:
        # If a program opens the file now, the system sends a signal. SIGURG is ignored by default.
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except BlockingIOError:
        return True
    except OSError:
        return None
    return False


def _remove(folder: int, name: str) -> None:
    """Delete a file if it exists. A read-only disk refuses to delete even a missing file."""
    try:
        os.unlink(name, dir_fd=folder)
    except OSError as error:
        with contextlib.suppress(FileNotFoundError):
            os.stat(name, dir_fd=folder, follow_symlinks=False)
            raise error


def _is_unchanged(folder: int, name: str, hash: str) -> bool:
    """Return True if a file has this hash and, as far as is known, is not open for writing."""
    fd = os.open(name, READ_FLAGS, dir_fd=folder)
    try:
        if is_open_for_writing(fd):
            return False
        return hashlib.sha256(read_all(fd, os.fstat(fd).st_size)).hexdigest() == hash
    finally:
        close_quietly(fd)
