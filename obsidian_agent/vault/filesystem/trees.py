"""The two ways to reach the vault's folder: by directory handles, and by checked paths where the platform has none.

A tree takes judged paths and raises OSError as the system does, or PathRefused for links that lead elsewhere. `store.py` turns the first
into the program's own words.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal, Protocol

from obsidian_agent.vault.filesystem import system_calls, walk
from obsidian_agent.vault.paths.path import VaultPath

ScanKind = Literal["file", "folder", "other"]
ScanEntry = tuple[str, ScanKind, bool]


class Tree(Protocol):
    """What the store needs of the disk. `path` is never the root unless a method says so."""

    def close(self) -> None: ...

    def writable(self) -> bool: ...

    def open_folder(self, folder: VaultPath) -> int:
        """A directory handle; the root is allowed."""
        ...

    def open_file(self, path: VaultPath) -> int:
        """A handle for reading whatever is there, without blocking."""
        ...

    def parts(self, path: VaultPath) -> tuple[str, ...]:
        """The components of the path with all links followed."""
        ...

    def root_status(self) -> os.stat_result: ...

    def status(self, path: VaultPath) -> os.stat_result:
        """Of the entry itself, also when it is a link."""
        ...

    def target_status(self, path: VaultPath) -> tuple[os.stat_result, int]:
        """Of what the entry leads to, and its birth time in nanoseconds; the root is allowed."""
        ...

    def scan(self, folder: VaultPath) -> list[tuple[str, ScanKind | None]]:
        """Names and kinds, None for a link; the root is allowed."""
        ...

    def replace(self, path: VaultPath, data: bytes) -> None:
        """All or nothing, durable, the mode kept; a link is written through."""
        ...

    def make_folder(self, folder: VaultPath) -> None: ...

    def remove(self, path: VaultPath) -> None: ...

    def remove_folder(self, folder: VaultPath) -> None: ...


def kind_of(mode: int) -> ScanKind:
    """The kind that a mode of `stat` stands for."""
    return "folder" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "other"


def _scan(target: int | str) -> list[tuple[str, ScanKind | None]]:
    found: list[tuple[str, ScanKind | None]] = []
    with os.scandir(target) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                found.append((entry.name, "file"))
            elif entry.is_symlink() or (hasattr(entry, "is_junction") and entry.is_junction()):
                found.append((entry.name, None))
            else:
                found.append((entry.name, "folder" if entry.is_dir(follow_symlinks=False) else "other"))
    return found


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
    os.fsync(handle)


def _temp_name() -> str:
    return f".oa-{secrets.token_hex(4)}"


_TEMP_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class HandleTree:
    """A tree behind a directory handle that was opened once; it survives a rename of the vault's folder."""

    def __init__(self, root_fd: int, *, openat2: bool) -> None:
        self.root_fd = root_fd
        self._openat2 = openat2

    def close(self) -> None:
        if self.root_fd >= 0:
            walk.close_quietly(self.root_fd)
            self.root_fd = -1

    def writable(self) -> bool:
        return os.access(".", os.W_OK | os.X_OK, dir_fd=self.root_fd)

    def open_folder(self, folder: VaultPath) -> int:
        return self._open(folder, walk.FOLDER_FLAGS)

    def open_file(self, path: VaultPath) -> int:
        return self._open(path, walk.FILE_FLAGS)

    def _open(self, path: VaultPath, flags: int) -> int:
        if self._openat2:
            try:
                return walk.open_without_links(self.root_fd, path.text or ".", flags)
            except OSError as error:
                # A link, or (EAGAIN) a rename at the same moment: the walk decides.
                if error.errno not in (errno.ELOOP, errno.EAGAIN):
                    raise
        return walk.open_by_walk(self.root_fd, path, flags)

    @contextmanager
    def _place(self, path: VaultPath, *, follow: bool) -> Iterator[walk.Place]:
        place = walk.find(self.root_fd, path, follow_last=follow)
        try:
            yield place
        finally:
            walk.close_quietly(place.folder_fd)

    def parts(self, path: VaultPath) -> tuple[str, ...]:
        with self._place(path, follow=True) as place:
            return place.parts

    def root_status(self) -> os.stat_result:
        return os.fstat(self.root_fd)

    def status(self, path: VaultPath) -> os.stat_result:
        fd = self.open_folder(path.parent)
        try:
            return os.stat(path.name, dir_fd=fd, follow_symlinks=False)
        finally:
            walk.close_quietly(fd)

    def target_status(self, path: VaultPath) -> tuple[os.stat_result, int]:
        if system_calls.KNOWN_BY_HANDLE:
            fd = self._open(path, system_calls.PATH_FLAGS)
            try:
                info = os.fstat(fd)
                return info, system_calls.born_ns(info, fd)
            finally:
                walk.close_quietly(fd)
        if path.is_root:
            info = self.root_status()
            return info, system_calls.born_ns(info)
        with self._place(path, follow=True) as place:
            info = os.stat(place.name, dir_fd=place.folder_fd, follow_symlinks=False)
            return info, system_calls.born_ns(info)

    def scan(self, folder: VaultPath) -> list[tuple[str, ScanKind | None]]:
        fd = self.open_folder(folder)
        try:
            return _scan(fd)
        finally:
            walk.close_quietly(fd)

    def replace(self, path: VaultPath, data: bytes) -> None:
        with self._place(path, follow=True) as place:
            folder, temp = place.folder_fd, _temp_name()
            handle = os.open(temp, _TEMP_FLAGS, 0o666, dir_fd=folder)
            try:
                try:
                    with suppress(FileNotFoundError):
                        os.fchmod(handle, stat.S_IMODE(os.stat(place.name, dir_fd=folder, follow_symlinks=False).st_mode))
                    _write_all(handle, data)
                finally:
                    os.close(handle)
                os.rename(temp, place.name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temp, dir_fd=folder)
                raise
            os.fsync(folder)

    def make_folder(self, folder: VaultPath) -> None:
        with self._place(folder, follow=False) as place:
            os.mkdir(place.name, dir_fd=place.folder_fd)
            os.fsync(place.folder_fd)

    def remove(self, path: VaultPath) -> None:
        with self._place(path, follow=False) as place:
            os.unlink(place.name, dir_fd=place.folder_fd)
            os.fsync(place.folder_fd)

    def remove_folder(self, folder: VaultPath) -> None:
        with self._place(folder, follow=False) as place:
            os.rmdir(place.name, dir_fd=place.folder_fd)
            os.fsync(place.folder_fd)


class _PathSteps(walk.Steps):
    """A walk by path: every component is looked at before the next one is."""

    def __init__(self, root: str, path: VaultPath) -> None:
        super().__init__(path)
        self.root = root

    def native(self, name: str) -> str:
        return os.path.join(self.root, *self.names, name)

    def enter(self, name: str) -> str | None:
        if (target := self.link(name)) is not None:
            return target
        if not stat.S_ISDIR(os.lstat(self.native(name)).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)
        return None

    def leave(self) -> None:
        """Nothing is held open."""

    def link(self, name: str) -> str | None:
        try:
            return os.readlink(self.native(name))
        except (OSError, ValueError):
            return None


class PathTree:
    """A tree by path, for platforms without directory handles (Windows).

    Every component is checked before use. A program that swaps a folder for a link between the check and the use could win there; the
    handles that close this gap in `HandleTree` are not to be had.
    """

    def __init__(self, root: str) -> None:
        self.root = root

    def close(self) -> None:
        """Nothing is held open."""

    def writable(self) -> bool:
        return os.access(self.root, os.W_OK)

    def open_folder(self, folder: VaultPath) -> int:
        raise OSError(errno.ENOTSUP, "this platform has no directory handles", folder.text)

    def open_file(self, path: VaultPath) -> int:
        native = self.native(path)
        if not stat.S_ISREG(os.lstat(native).st_mode):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), path.text)
        return os.open(native, walk.FILE_FLAGS)

    def native(self, path: VaultPath, *, follow: bool = True) -> str:
        """The system's own path, after the same walk as over handles."""
        if path.is_root:
            return self.root
        steps = _PathSteps(self.root, path)
        return steps.native(steps.run(follow_last=follow))

    def parts(self, path: VaultPath) -> tuple[str, ...]:
        steps = _PathSteps(self.root, path)
        name = steps.run(follow_last=True)
        return (*steps.names, name)

    def root_status(self) -> os.stat_result:
        return os.stat(self.root)

    def status(self, path: VaultPath) -> os.stat_result:
        return os.lstat(self.native(path, follow=False))

    def target_status(self, path: VaultPath) -> tuple[os.stat_result, int]:
        info = os.lstat(self.native(path))
        return info, system_calls.born_ns(info)

    def scan(self, folder: VaultPath) -> list[tuple[str, ScanKind | None]]:
        return _scan(self.native(folder))

    def replace(self, path: VaultPath, data: bytes) -> None:
        native = self.native(path)
        temp = os.path.join(os.path.dirname(native), _temp_name())
        handle = os.open(temp, _TEMP_FLAGS, 0o666)
        try:
            try:
                with suppress(FileNotFoundError):
                    os.chmod(temp, stat.S_IMODE(os.stat(native).st_mode))
                _write_all(handle, data)
            finally:
                os.close(handle)
            os.replace(temp, native)
        except BaseException:
            with suppress(OSError):
                os.unlink(temp)
            raise

    def make_folder(self, folder: VaultPath) -> None:
        os.mkdir(self.native(folder, follow=False))

    def remove(self, path: VaultPath) -> None:
        os.unlink(self.native(path, follow=False))

    def remove_folder(self, folder: VaultPath) -> None:
        os.rmdir(self.native(folder, follow=False))
