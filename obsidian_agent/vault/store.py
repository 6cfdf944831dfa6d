"""The vault on disk: one handle to its root, and the few safe ways to read, list and write below it."""

from __future__ import annotations

import errno
import json
import os
import secrets
import stat
import sys
from types import TracebackType
from typing import Final, Literal, Self

from obsidian_agent.errors import ConfigError, VaultError
from obsidian_agent.vault import walk
from obsidian_agent.vault.paths import ROOT, VaultPath

READ_LIMIT: Final = 64 * 1024 * 1024
"""Largest file that is read, in bytes."""

_CONFIG_LIMIT: Final = 4 * 1024 * 1024

ScanKind = Literal["file", "folder", "other"]
ConfigName = Literal["app", "daily-notes", "templates", "core-plugins", "community-plugins", "workspace", "hotkeys", "types"]
_CONFIG_NAMES: Final = frozenset({"app", "daily-notes", "templates", "core-plugins", "community-plugins", "workspace", "hotkeys", "types"})


class VaultStore:
    """A vault folder, opened once. Every access below it starts at the handle and never leaves it."""

    def __init__(self, root_fd: int, real_path: str, *, openat2: bool) -> None:
        self.root_fd = root_fd
        self.real_path = real_path
        self._openat2 = openat2
        self._case_insensitive: bool | None = None

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Self:
        """Open a folder as a vault. ConfigError when it is missing, no folder or unreadable."""
        real = os.path.realpath(folder)
        try:
            root_fd = os.open(real, walk.FOLDER_FLAGS)
        except FileNotFoundError:
            raise ConfigError(f"There is no folder {os.fspath(folder)}: give the path of your vault's folder.") from None
        except NotADirectoryError:
            raise ConfigError(f"{os.fspath(folder)} is a file: give the path of your vault's folder.") from None
        except OSError as error:
            raise ConfigError(f"The folder {os.fspath(folder)} cannot be opened ({error.strerror}): check its permissions.") from None
        return cls(root_fd, real, openat2=walk.has_openat2(root_fd))

    def close(self) -> None:
        """Give the handle back; the store is of no use afterwards."""
        if self.root_fd >= 0:
            os.close(self.root_fd)
            self.root_fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def name(self) -> str:
        """The vault's name: that of its folder."""
        return os.path.basename(self.real_path)

    def writable(self) -> bool:
        """Whether files can be made in the root."""
        return os.access(".", os.W_OK | os.X_OK, dir_fd=self.root_fd)

    def open_folder(self, folder: VaultPath) -> int:
        """A directory handle (the caller closes it), reached without leaving the vault.

        FILE_NOT_FOUND, NOT_A_FOLDER, PATH_OUTSIDE_VAULT or PATH_NOT_ALLOWED for links that lead elsewhere, IO_ERROR.
        """
        try:
            if self._openat2:
                try:
                    return walk.open_without_links(self.root_fd, folder.text or ".", walk.FOLDER_FLAGS)
                except OSError as error:
                    if error.errno not in (errno.ELOOP, errno.EAGAIN, errno.ENOTDIR):
                        raise
            return walk.open_folder(self.root_fd, self.real_path, folder)
        except OSError as error:
            raise walk.vault_error(error, folder) from error

    def read(self, path: VaultPath, limit: int = READ_LIMIT) -> bytes:
        """The bytes of a regular file. FILE_NOT_FOUND, NOT_TEXT (folder, FIFO, socket, device), FILE_TOO_LARGE, and as `open_folder`."""
        if path.is_root:
            raise walk.not_a_file(path)
        try:
            fd = self._open_file(path)
            try:
                info = os.fstat(fd)
                if not walk.is_regular(info):
                    raise walk.not_a_file(path)
                if info.st_size > limit:
                    raise VaultError(f"{path.text} has {info.st_size} bytes; at most {limit} are read.", code="FILE_TOO_LARGE", path=path.text)
                return _read_all(fd, info.st_size, limit, path)
            finally:
                os.close(fd)
        except OSError as error:
            raise walk.vault_error(error, path) from error

    def _open_file(self, path: VaultPath) -> int:
        if self._openat2:
            try:
                return walk.open_without_links(self.root_fd, path.text, walk.FILE_FLAGS)
            except OSError as error:
                if error.errno not in (errno.ELOOP, errno.EAGAIN):
                    raise
        return walk.open_file(self.root_fd, self.real_path, path)

    def resolve(self, path: VaultPath) -> VaultPath:
        """The path with all links on it (the last one too) followed: where a write through it lands. The last name may be missing."""
        raise NotImplementedError

    def lstat(self, path: VaultPath) -> os.stat_result | None:
        """The status of an entry itself (of a link, not its target), or None when it is missing."""
        if path.is_root:
            return os.fstat(self.root_fd)
        try:
            fd = self.open_folder(path.parent)
        except VaultError as error:
            if error.code in ("FILE_NOT_FOUND", "NOT_A_FOLDER"):
                return None
            raise
        try:
            return os.stat(path.name, dir_fd=fd, follow_symlinks=False)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                return None
            raise walk.vault_error(error, path) from error
        finally:
            os.close(fd)

    def scan(self, folder: VaultPath) -> list[tuple[str, ScanKind, bool]]:
        """Name, kind and is-link of each entry, protected ones too. A link has the kind of its target, "other" if that is outside or missing."""
        fd = self.open_folder(folder)
        try:
            with os.scandir(fd) as entries:
                return [(entry.name, *self._kind(fd, folder, entry)) for entry in entries]
        except OSError as error:
            raise walk.vault_error(error, folder) from error
        finally:
            os.close(fd)

    def _kind(self, fd: int, folder: VaultPath, entry: os.DirEntry[str]) -> tuple[ScanKind, bool]:
        if entry.is_symlink():
            return "other", True
        if entry.is_dir(follow_symlinks=False):
            return "folder", False
        return ("file" if entry.is_file(follow_symlinks=False) else "other"), False

    @property
    def case_insensitive(self) -> bool:
        """Whether names that differ in case alone are one file here."""
        if self._case_insensitive is None:
            self._case_insensitive = sys.platform in ("darwin", "win32")
        return self._case_insensitive

    def write_atomic(self, path: VaultPath, data: bytes) -> None:
        """Replace or make a file outside of runs: all or nothing, durable, the mode kept."""
        fd = self.open_folder(path.parent)
        temp = f".oa-{secrets.token_hex(6)}"
        try:
            handle = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=fd)
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(handle, view) :]
                os.fsync(handle)
            finally:
                os.close(handle)
            os.rename(temp, path.name, src_dir_fd=fd, dst_dir_fd=fd)
            os.fsync(fd)
        except OSError as error:
            raise walk.vault_error(error, path) from error
        finally:
            os.close(fd)

    def obsidian_config(self, name: ConfigName) -> object | None:
        """The parsed JSON of `.obsidian/<name>.json`; None when missing, too large or broken. The only look into a protected folder."""
        if name not in _CONFIG_NAMES:
            raise ValueError(f"{name!r} is not one of Obsidian's config files that are read")
        try:
            fd = os.open(".obsidian", walk.FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=self.root_fd)
            try:
                handle = os.open(f"{name}.json", walk.FILE_FLAGS | os.O_NOFOLLOW, dir_fd=fd)
            finally:
                os.close(fd)
            try:
                if not stat.S_ISREG(os.fstat(handle).st_mode):
                    return None
                document: object = json.loads(_read_all(handle, 0, _CONFIG_LIMIT, ROOT))
                return document
            finally:
                os.close(handle)
        except (OSError, ValueError, RecursionError, VaultError):
            return None


def _read_all(fd: int, size: int, limit: int, path: VaultPath) -> bytes:
    chunks: list[bytes] = []
    total = 0
    while chunk := os.read(fd, max(size + 1 - total, 65536)):
        chunks.append(chunk)
        total += len(chunk)
        if total > limit:
            raise VaultError(f"{path.text} has more than {limit} bytes.", code="FILE_TOO_LARGE", path=path.text)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)
