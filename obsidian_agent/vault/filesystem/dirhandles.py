"""Short-lived handles of the vault's folders, so that ten thousand files in one folder don't mean ten thousand walks to it."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from time import monotonic
from types import TracebackType
from typing import Final, Self, TypeVar

from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import PathRefused, VaultError
from obsidian_agent.vault.filesystem.store import VaultStore, io_error
from obsidian_agent.vault.filesystem.walk import close_quietly, read_all
from obsidian_agent.vault.paths.path import ROOT, VaultPath, from_disk, trash_path

T = TypeVar("T")

MAX_AGE: Final = 0.1
"""Seconds after which a folder is walked to anew: one that another program has moved away is not written to for longer."""

MAX_OPEN: Final = 32
"""Folders that are held open at once: a process may have 256 files on macOS."""
READ_FLAGS: Final = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
)


@dataclass(frozen=True, slots=True)
class Content:
    """What a file held when it was read, and its status then."""

    data: bytes
    hash: str
    status: os.stat_result


class FolderHandles:
    """Open folders of one vault, found by path. Everything read or written during a run goes through one of these."""

    def __init__(self, store: VaultStore) -> None:
        self.store = store
        self._open: dict[str, tuple[int, float]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.forget()

    def get(self, folder: VaultPath) -> int:
        """The handle of a folder, owned by this object. Errors as `VaultStore.open_folder`."""
        known = self._open.get(folder.text)
        now = monotonic()
        if known is not None:
            # Newest last: the handle given out just before is never the one that is closed next.
            del self._open[folder.text]
            if now - known[1] < MAX_AGE:
                self._open[folder.text] = known
                return known[0]
            close_quietly(known[0])
        elif len(self._open) >= MAX_OPEN:
            close_quietly(self._open.pop(next(iter(self._open)))[0])
        fd = self.store.open_folder(folder)
        self._open[folder.text] = (fd, now)
        return fd

    def forget(self) -> None:
        """Close every handle: after a folder has moved, paths mean other folders."""
        for fd, _ in self._open.values():
            close_quietly(fd)
        self._open.clear()

    def drop(self, folder: VaultPath) -> None:
        """Close the handle of one folder that is about to go."""
        known = self._open.pop(folder.text, None)
        if known is not None:
            close_quietly(known[0])

    def entries(self) -> Iterator[tuple[VaultPath, os.DirEntry[str]]]:
        """Everything in the vault with the folder it lies in, hidden files too; not what is in hidden folders or behind links.

        Folders that are gone by now, or may not be read, are left out. VaultError when the disk fails.
        """
        pending = [ROOT]
        while pending:
            folder = pending.pop()
            try:
                with os.scandir(self.get(folder)) as listing:
                    entries = list(listing)
            except PermissionError:
                continue
            except VaultError as error:
                if (
                    isinstance(error, PathRefused)
                    or error.code != "IO_ERROR"
                    or isinstance(error.__cause__, PermissionError)
                ):
                    continue
                raise
            except OSError as error:
                raise io_error(error, folder) from error
            for entry in entries:
                yield folder, entry
                if entry.is_dir(follow_symlinks=False):
                    with suppress(PathRefused):
                        trash = folder.is_root and entry.name == trash_path().name
                        pending.append(trash_path() if trash else from_disk(folder, entry.name))

    def status(self, path: VaultPath) -> os.stat_result | None:
        """The status of the entry at `path` itself (of a link, not its target); None when it or its folder is missing."""
        return self._asked(
            path, lambda folder: os.stat(path.name, dir_fd=folder, follow_symlinks=False)
        )

    def read(self, path: VaultPath) -> Content | None:
        """The content of the regular file at `path`, or None for anything else (missing, folder, link, device)."""
        return self._asked(path, lambda folder: content_of(folder, path.name))

    def _asked(self, path: VaultPath, ask: Callable[[int], T]) -> T | None:
        try:
            return ask(self.get(path.parent))
        except FileNotFoundError:
            return None
        except VaultError as error:
            if error.code in ("FILE_NOT_FOUND", "NOT_A_FOLDER"):
                return None
            raise
        except OSError as error:
            raise io_error(error, path) from error

    def read_through(self, path: VaultPath) -> tuple[Content | None, VaultPath | None]:
        """As `read`; for a link that stays in the vault the content of its target, with the target's path."""
        content = self.read(path)
        if content is not None:
            return content, None
        status = self.status(path)
        if status is None or not stat.S_ISLNK(status.st_mode):
            return None, None
        real = self.store.resolve(path)
        return self.read(real), real


def content_of(folder: int, name: str) -> Content | None:
    """The content of a regular file in an open folder, or None for anything else. Never blocks on a FIFO, never follows a link."""
    try:
        fd = os.open(name, READ_FLAGS, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP, errno.EMLINK, errno.ENXIO, errno.EISDIR):
            return None
        raise
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            return None
        data = read_all(fd, status.st_size)
    finally:
        close_quietly(fd)
    return Content(data, hashlib.sha256(data).hexdigest(), status)
