"""Short-lived handles of the vault's folders, so that a folder is not reopened for every file."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from time import monotonic
from typing import Final, Self, TypeVar

from msgspec import Struct

from obsidian_agent.errors import PathRefused, VaultError
from obsidian_agent.vault.filesystem.store import VaultStore, io_error
from obsidian_agent.vault.filesystem.walk import close_quietly, read_all
from obsidian_agent.vault.paths.path import ROOT, VaultPath, from_disk, trash_path

T = TypeVar("T")

MAX_AGE: Final = 0.1
"""Seconds after which a folder is opened again, in case another program has moved it."""

MAX_OPEN: Final = 32
"""Folders that are open at the same time. On macOS a process may have 256 open files."""

READ_FLAGS: Final = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
)


class Content(Struct, frozen=True):
    """The content and status of a file at the time it was read."""

    data: bytes
    hash: str
    status: os.stat_result


class FolderHandles:
    """Open folders of a vault by path. A run reads and writes only through one of these."""

    def __init__(self, store: VaultStore) -> None:
        self.store = store
        self._open: dict[str, tuple[int, float]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.forget()

    def get(self, folder: VaultPath) -> int:
        """Return the handle of a folder, which remains owned by this object.

        Raises the same errors as `VaultStore.open_folder`.
        """
        cached = self._open.get(folder.text)
        now = monotonic()
        if cached is not None:
            # The most recently used handle is last, so it is not the next one to be evicted.
            del self._open[folder.text]
            if now - cached[1] < MAX_AGE:
                self._open[folder.text] = cached
                return cached[0]
            close_quietly(cached[0])
        elif len(self._open) >= MAX_OPEN:
            close_quietly(self._open.pop(next(iter(self._open)))[0])
        fd = self.store.open_folder(folder)
        self._open[folder.text] = (fd, now)
        return fd

    def forget(self) -> None:
        """Close every handle. After a folder was moved, paths refer to other folders."""
        for fd, _ in self._open.values():
            close_quietly(fd)
        self._open.clear()

    def drop(self, folder: VaultPath) -> None:
        """Close the handle of one folder, which is about to be removed."""
        cached = self._open.pop(folder.text, None)
        if cached is not None:
            close_quietly(cached[0])

    def entries(self) -> Iterator[tuple[VaultPath, os.DirEntry[str]]]:
        """Yield every entry of the vault with its folder, hidden entries included.

        Links, and hidden folders other than the trash, are not entered. Folders that are gone or
        unreadable are skipped. Raises `VaultError` if the disk fails.
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
                        is_trash = folder.is_root and entry.name == trash_path().name
                        pending.append(trash_path() if is_trash else from_disk(folder, entry.name))

    def status(self, path: VaultPath) -> os.stat_result | None:
        """Return the status of an entry, or None if the entry or its folder is missing.

        Links are not followed.
        """
        return self._query(
            path, lambda folder: os.stat(path.name, dir_fd=folder, follow_symlinks=False)
        )

    def read(self, path: VaultPath) -> Content | None:
        """Return the content of a regular file, or None for anything else.

        None stands for a missing file, a folder, a link or a device.
        """
        return self._query(path, lambda folder: content_of(folder, path.name))

    def _query(self, path: VaultPath, query: Callable[[int], T]) -> T | None:
        try:
            return query(self.get(path.parent))
        except FileNotFoundError:
            return None
        except VaultError as error:
            if error.code in ("FILE_NOT_FOUND", "NOT_A_FOLDER"):
                return None
            raise
        except OSError as error:
            raise io_error(error, path) from error

    def read_through(self, path: VaultPath) -> tuple[Content | None, VaultPath | None]:
        """Read like `read`, but follow a link that stays in the vault.

        For a link, return the content of its target and the target's path.
        """
        content = self.read(path)
        if content is not None:
            return content, None
        status = self.status(path)
        if status is None or not stat.S_ISLNK(status.st_mode):
            return None, None
        target = self.store.resolve(path)
        return self.read(target), target


def content_of(folder: int, name: str) -> Content | None:
    """Return the content of a regular file in an open folder, or None for anything else.

    Never blocks on a FIFO and never follows a link.
    """
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
