"""What lies under temporary names during a run: the run's own goes at once, what it displaced goes when nobody writes to it any more.

A program that opened a note before it was replaced writes to what the note was, also after that was looked at for the last time. So the
system is asked whether somebody has the displaced file open for writing (Linux knows: a lease is granted only on a file that nobody writes).
If so, or where nobody knows, it is looked at again after a moment. What was written meanwhile, and what somebody still has open then, is put
beside the note under a name that people see.

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

from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import Problem, VaultError
from obsidian_agent.vault.filesystem.dirhandles import READ_FLAGS, FolderHandles
from obsidian_agent.vault.filesystem.system_calls import rename_as_recovered
from obsidian_agent.vault.filesystem.walk import close_quietly, read_all
from obsidian_agent.vault.paths.path import VaultPath

MOMENT: Final = 0.1
"""Seconds until a displaced file is looked at again."""

PATIENCE: Final = 2.0
"""Seconds that one run waits in all for files in folders that it is about to remove."""


@dataclass(slots=True)
class _Temporary:
    """A file under a temporary name in `folder`; `path` is the note it is about.

    `hash` is what it must still hold to be let go, None for what is thrown away whatever it holds.
    """

    folder: VaultPath
    name: str
    path: VaultPath
    hash: str | None
    due: float = 0.0


class TempFiles:
    """The temporary files of one run."""

    def __init__(self, handles: FolderHandles) -> None:
        self._handles = handles
        self._displaced: deque[_Temporary] = deque()
        self._left: list[_Temporary] = []
        self._patience = PATIENCE
        self.warnings: list[Problem] = []
        """What was put beside a note, for people."""

    def discard(self, path: VaultPath, folder: int, name: str) -> None:
        """Throw a file away; one that the disk does not let go is tried again at the end."""
        try:
            _remove(folder, name)
        except OSError:
            self._left.append(_Temporary(path.parent, name, path, None))

    def let_go(
        self, path: VaultPath, folder: int, name: str, hash: str, *, written: bool | None
    ) -> None:
        """Throw away what had this content when it was looked at; `written`: whether somebody had it open then (None: not known)."""
        if written is False:
            self.discard(path, folder, name)
        else:
            self._displaced.append(
                _Temporary(path.parent, name, path, hash, time.monotonic() + MOMENT)
            )

    def moved(self, old: VaultPath, new: VaultPath) -> None:
        """A folder has moved, with everything in it."""
        for one in (*self._displaced, *self._left):
            if one.folder == old or one.folder.within(old):
                one.folder, one.path = one.folder.rebased(old, new), one.path.rebased(old, new)

    def clear(self, folder: VaultPath) -> None:
        """Empty a folder that is about to go of what waits in it, and of what the disk would not let go before."""
        for one in [one for one in self._displaced if one.folder == folder]:
            pause = min(self._patience, max(0.0, one.due - time.monotonic()))
            self._patience -= pause
            time.sleep(pause)
            self._displaced.remove(one)
            self._settle(one)
        for one in [one for one in self._left if one.folder == folder]:
            self._left.remove(one)
            self._settle(one)

    def settle(self, *, wait: bool = False) -> bool:
        """Deal with everything whose time has come; with `wait` with everything. False when something could not be dealt with."""
        while self._displaced and (wait or self._displaced[0].due <= time.monotonic()):
            one = self._displaced.popleft()
            time.sleep(max(0.0, one.due - time.monotonic()))
            self._settle(one)
        if wait:
            left, self._left = self._left, []
            for one in left:
                self._settle(one)
        return not self._left

    def _settle(self, one: _Temporary) -> None:
        try:
            folder = self._handles.get(one.folder)
            if one.hash is None or _unchanged(folder, one.name, one.hash):
                _remove(folder, one.name)
                return
            beside = rename_as_recovered(folder, one.name, one.path.name)
        except FileNotFoundError:
            return
        except (OSError, VaultError):
            self._left.append(one)
            return
        place = f"{one.folder.text}/{beside}" if one.folder.text else beside
        message = f"Another program had {one.path.text} open while it was changed; what it wrote is in {place}."
        self.warnings.append(Problem("CONFLICT", message, path=one.path.text))


def _remove(folder: int, name: str) -> None:
    """Remove a file if it is there. A disk that is mounted read-only refuses even to remove what is not."""
    try:
        os.unlink(name, dir_fd=folder)
    except OSError as error:
        with contextlib.suppress(FileNotFoundError):
            os.stat(name, dir_fd=folder, follow_symlinks=False)
            raise error


def is_open_for_writing(fd: int) -> bool | None:
    """Whether any program has the file behind a handle, which was opened for reading only, open for writing; None where nobody knows."""
    if sys.platform != "linux":
        return None
    import fcntl

    try:
        # Should somebody open the file just now, the system tells us by a signal; this one is ignored unless asked for.
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except BlockingIOError:
        return True
    except OSError:
        return None
    return False


def _unchanged(folder: int, name: str, hash: str) -> bool:
    """Whether a file still has its content and, as far as is known, nobody can still write to it."""
    fd = os.open(name, READ_FLAGS, dir_fd=folder)
    try:
        if is_open_for_writing(fd):
            return False
        return hashlib.sha256(read_all(fd, os.fstat(fd).st_size)).hexdigest() == hash
    finally:
        close_quietly(fd)
