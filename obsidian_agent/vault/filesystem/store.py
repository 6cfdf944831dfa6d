"""The vault on disk: one handle to its root, and the few safe ways to read, list and write below it.

Runs do not write through this module but over the directory handles that `VaultStore.open_folder` gives. `write_atomic`, `make_folder` and
`remove` are for what happens outside of runs (the program's own folder in the vault).
"""

from __future__ import annotations

import errno
import json
import os
import sys
from contextlib import suppress
from functools import cached_property
from types import TracebackType
from typing import Final, Literal, Self, get_args

from obsidian_agent.errors import ConfigError, PathRefused, VaultError
from obsidian_agent.vault.filesystem import walk
from obsidian_agent.vault.filesystem.trees import HandleTree, PathTree, ScanEntry, ScanKind, Tree, kind_of
from obsidian_agent.vault.paths.path import CONFIG_FOLDER, ROOT, VaultPath, config_path, from_disk, is_reserved

READ_LIMIT: Final = 64 * 1024 * 1024
"""Largest file that is read, in bytes."""

CONFIG_LIMIT: Final = 4 * 1024 * 1024
"""Largest file of Obsidian's own config that is read, in bytes."""

_REASONS: Final = {
    errno.EACCES: "may not be read or changed by this user; check its permissions",
    errno.EPERM: "may not be read or changed by this user; check its permissions",
    errno.EROFS: "is on a disk that is mounted read-only",
    errno.ENOSPC: "does not fit: the disk is full; make room and try again",
    errno.EDQUOT: "does not fit: your share of the disk is used up; make room and try again",
    errno.EMFILE: "cannot be opened: too many files are open; try again",
    errno.EIO: "cannot be read or written: the disk reports an error",
}

ConfigName = Literal["app", "daily-notes", "templates", "core-plugins", "community-plugins", "workspace", "hotkeys", "types"]
_CONFIG_NAMES: Final = frozenset(get_args(ConfigName))


class VaultStore:
    """A vault folder, opened once. Every access starts at the root's handle and never leaves what is below it. Threads may share it."""

    def __init__(self, tree: Tree, real_path: str) -> None:
        self._tree = tree
        self.real_path = real_path
        """The vault's folder with all links resolved, as it was when it was opened."""
        self._case_insensitive: bool | None = None

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Self:
        """Open a folder as a vault. ConfigError when it is missing, no folder, or not to be read."""
        shown = os.fspath(folder)
        try:
            real = os.path.realpath(folder, strict=True)
            if not os.path.isdir(real):
                raise NotADirectoryError
            os.scandir(real).close()
            if not walk.HAS_HANDLES:
                return cls(PathTree(real), real)
            root_fd = os.open(real, walk.FOLDER_FLAGS)
        except FileNotFoundError:
            raise ConfigError(f"There is no folder {shown}: give the path of your vault's folder.") from None
        except NotADirectoryError:
            raise ConfigError(f"{shown} is a file: give the path of the folder that holds your notes.") from None
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise ConfigError(f"The folder {shown} cannot be opened ({reason}): check its path and permissions.") from None
        return cls(HandleTree(root_fd, openat2=walk.has_openat2(root_fd)), real)

    def close(self) -> None:
        """Give the handle back; the store is of no use afterwards."""
        self._tree.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def root_fd(self) -> int:
        """The handle of the vault's folder; -1 where the platform has none or when closed."""
        return self._tree.root_fd if isinstance(self._tree, HandleTree) else -1

    @property
    def name(self) -> str:
        """The vault's name: that of its folder."""
        return os.path.basename(self.real_path)

    def writable(self) -> bool:
        """Whether files can be made in the root."""
        return self._tree.writable()

    def open_folder(self, folder: VaultPath) -> int:
        """A directory handle (the caller closes it), reached without leaving the vault.

        FILE_NOT_FOUND, NOT_A_FOLDER, PATH_OUTSIDE_VAULT or PATH_NOT_ALLOWED (links that lead elsewhere), IO_ERROR.
        """
        try:
            return self._tree.open_folder(folder)
        except OSError as error:
            raise vault_error(error, folder) from error

    def read(self, path: VaultPath, limit: int = READ_LIMIT) -> bytes:
        """The bytes of a regular file, through links that stay inside.

        FILE_NOT_FOUND, NOT_TEXT (folder, FIFO, socket, device), FILE_TOO_LARGE, PATH_OUTSIDE_VAULT or PATH_NOT_ALLOWED (links), IO_ERROR.
        """
        if path.is_root:
            raise not_a_file(path)
        try:
            fd = self._tree.open_file(path)
            try:
                info = os.fstat(fd)
                if kind_of(info.st_mode) != "file":
                    raise not_a_file(path)
                return _read_all(fd, info.st_size, limit, path)
            finally:
                walk.close_quietly(fd)
        except OSError as error:
            if error.errno == errno.ENOTDIR:
                raise missing(path) from error
            raise vault_error(error, path) from error

    def resolve(self, path: VaultPath) -> VaultPath:
        """Where a write through `path` lands: links followed, the last one too. The last name may be missing. Errors as `read`."""
        if path.is_root or is_reserved(path):
            return path
        try:
            parts = self._tree.parts(path)
        except OSError as error:
            raise vault_error(error, path) from error
        real = ROOT
        for part in parts:
            real = from_disk(real, part)
        return real

    def lstat(self, path: VaultPath) -> os.stat_result | None:
        """The status of the entry itself (of a link, not its target), or None when it is missing."""
        try:
            return self._tree.root_status() if path.is_root else self._tree.status(path)
        except OSError as error:
            _raise_unless_missing(error, path)
            return None

    def stat(self, path: VaultPath) -> tuple[os.stat_result, int] | None:
        """The status of what the entry leads to inside the vault and its birth time in nanoseconds, or None when it is missing."""
        try:
            return self._tree.target_status(path)
        except OSError as error:
            _raise_unless_missing(error, path)
            return None

    def scan(self, folder: VaultPath) -> list[ScanEntry]:
        """Name, kind and is-link of every entry, protected ones too, in no order. Errors as `open_folder`.

        A link has the kind of what it leads to, "other" if that is missing, outside or protected. Names that are not UTF-8 hold surrogates.
        """
        try:
            found = self._tree.scan(folder)
        except OSError as error:
            raise vault_error(error, folder) from error
        return [(name, kind or _link_kind(self, folder, name), kind is None) for name, kind in found]

    @property
    def case_insensitive(self) -> bool:
        """Whether names that differ in case alone are one file here; found out once, by looking only."""
        if self._case_insensitive is None:
            self._case_insensitive = _folds_case(self)
        return self._case_insensitive

    def write_atomic(self, path: VaultPath, data: bytes) -> None:
        """Replace or make a file outside of runs: all or nothing, durable, the mode kept; a link is written through.

        FILE_NOT_FOUND for a missing folder, NOT_TEXT for a folder in the way, and as `open_folder`.
        """
        try:
            self._tree.replace(path, data)
        except OSError as error:
            raise vault_error(error, path) from error

    def make_folder(self, folder: VaultPath) -> None:
        """Make a folder and its parents outside of runs, durably; no change when it exists."""
        if folder.is_root:
            return
        self.make_folder(folder.parent)
        try:
            self._tree.make_folder(folder)
        except FileExistsError:
            if (found := self.stat(folder)) is None or kind_of(found[0].st_mode) != "folder":
                raise VaultError(f"{folder.text} is in the way and is no folder.", code="NOT_A_FOLDER", path=folder.text) from None
        except OSError as error:
            raise vault_error(error, folder) from error

    def remove(self, path: VaultPath) -> bool:
        """Remove a file (or a link itself) outside of runs, durably; False when there was none."""
        try:
            self._tree.remove(path)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                return False
            raise vault_error(error, path) from error
        return True

    def remove_folder(self, folder: VaultPath) -> None:
        """Remove an empty folder outside of runs, durably; no change when it is not empty."""
        try:
            self._tree.remove_folder(folder)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST):
                raise vault_error(error, folder) from error

    @cached_property
    def config_folder(self) -> str:
        """The name of Obsidian's own folder: `.obsidian`, or the only hidden folder that holds what it writes there."""
        with suppress(VaultError):
            hidden = sorted(name for name, kind, _ in self.scan(ROOT) if kind == "folder" and name.startswith("."))
            if CONFIG_FOLDER not in hidden and len(found := [name for name in hidden if self._is_config(name)]) == 1:
                return found[0]
        return CONFIG_FOLDER

    def _is_config(self, name: str) -> bool:
        with suppress(VaultError):
            return any(self.lstat(config_path(file, folder=name)) is not None for file in ("app.json", "workspace.json"))
        return False

    def obsidian_config(self, name: ConfigName) -> object | None:
        """The parsed JSON of `<name>.json` in Obsidian's own folder; None when missing, too large or broken. The only look into a protected folder."""
        if name not in _CONFIG_NAMES:
            raise ValueError(f"{name!r} is not one of Obsidian's config files that are read")
        try:
            document: object = json.loads(self.read(config_path(f"{name}.json", folder=self.config_folder), CONFIG_LIMIT))
        except (VaultError, ValueError, RecursionError):
            return None
        return document


def _read_all(fd: int, size: int, limit: int, path: VaultPath) -> bytes:
    chunks: list[bytes] = []
    total = 0
    while total <= limit and size <= limit:
        chunk = os.read(fd, max(size + 1 - total, 65536))
        if not chunk:
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)
        chunks.append(chunk)
        total += len(chunk)
    raise VaultError(
        f"{path.text} is larger than {limit:,} bytes, the most that is read of one file.", code="FILE_TOO_LARGE", path=path.text
    )


def _link_kind(store: VaultStore, folder: VaultPath, name: str) -> ScanKind:
    try:
        found = store.stat(from_disk(folder, name))
    except VaultError:
        return "other"
    return kind_of(found[0].st_mode) if found else "other"


def _folds_case(store: VaultStore) -> bool:
    with suppress(VaultError, OSError):
        known = {name for name, _, _ in store.scan(ROOT)}
        for name in known:
            other = name.swapcase()
            if name.isascii() and other != name and other not in known:
                if store.root_fd >= 0:
                    return _same_file(name, other, store.root_fd)
                return _same_file(os.path.join(store.real_path, name), os.path.join(store.real_path, other), None)
    return sys.platform in ("darwin", "win32")


def _same_file(one: str, other: str, folder_fd: int | None) -> bool:
    try:
        first = os.stat(one, dir_fd=folder_fd, follow_symlinks=False)
        return os.path.samestat(first, os.stat(other, dir_fd=folder_fd, follow_symlinks=False))
    except FileNotFoundError:
        return False


def _raise_unless_missing(error: OSError, path: VaultPath) -> None:
    if error.errno not in (errno.ENOENT, errno.ENOTDIR):
        raise vault_error(error, path) from error


def missing(path: VaultPath) -> VaultError:
    """FILE_NOT_FOUND for a path."""
    return VaultError(f"{path.text} does not exist.", code="FILE_NOT_FOUND", path=path.text)


def not_a_file(path: VaultPath) -> VaultError:
    """NOT_TEXT: a folder, FIFO, socket or device where a file was asked for."""
    return VaultError(f"{path.text or 'The vault itself'} is not a regular file.", code="NOT_TEXT", path=path.text)


def not_a_folder(path: VaultPath) -> VaultError:
    """NOT_A_FOLDER: something else where a folder was asked for, or on the way to it."""
    return VaultError(f"{path.text} is not a folder, or a file is in the way to it.", code="NOT_A_FOLDER", path=path.text)


def vault_error(error: OSError, path: VaultPath) -> VaultError:
    """An error of the operating system in the words and codes of the plan language."""
    match error.errno:
        case errno.ENOENT:
            return missing(path)
        case errno.ENOTDIR:
            return not_a_folder(path)
        case errno.ENXIO | errno.EISDIR:
            return not_a_file(path)
        case errno.ELOOP | errno.EMLINK | errno.EXDEV:
            return PathRefused(f"{path.text} goes through links that were not followed.", code="PATH_OUTSIDE_VAULT", path=path.text)
        case errno.ENAMETOOLONG:
            return PathRefused(f"{path.text[:80]}… has a name that is too long for this disk.", code="PATH_INVALID", path=path.text)
        case number:
            reason = _REASONS.get(number or 0) or f"could not be read or written: {error.strerror or type(error).__name__}"
            return VaultError(f"{path.text or 'The vault'} {reason}.", code="IO_ERROR", path=path.text, retryable=True)
