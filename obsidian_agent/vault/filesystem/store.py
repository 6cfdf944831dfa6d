"""The vault on disk: one handle of its root, and the safe methods to read, list and write below it.

Runs do not write through this module but through the directory handles of `VaultStore.open_folder`.
`write_atomic`, `make_folder` and `remove` are for changes outside of runs (the program's own folder
in the vault). `VaultStore.editor` is set by the caller: another program that has files of the vault
open, with text that is not on the disk yet. It changes those files itself.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Final, Literal, Protocol, Self, get_args

from obsidian_agent.errors import ConfigError, PathRefused, Problem, VaultError
from obsidian_agent.state_files import write_all
from obsidian_agent.vault.filesystem import system_calls, walk
from obsidian_agent.vault.paths.path import (
    CONFIG_FOLDER,
    ROOT,
    VaultPath,
    config_path,
    from_disk,
    is_reserved,
)

READ_LIMIT: Final = 64 * 1024 * 1024
"""Size of the largest file that is read, in bytes."""

CONFIG_LIMIT: Final = 4 * 1024 * 1024
"""Size of the largest file of Obsidian's configuration that is read, in bytes."""

ConfigName = Literal[
    "app",
    "daily-notes",
    "templates",
    "core-plugins",
    "community-plugins",
    "workspace",
    "hotkeys",
    "types",
]
ScanKind = Literal["file", "folder", "other"]
ScanEntry = tuple[str, ScanKind, bool]
"""The name and kind of an entry, and True for a link."""

_CONFIG_NAMES: Final = frozenset(get_args(ConfigName))
_MISSING: Final = (FileNotFoundError, NotADirectoryError)
_REASONS: Final = {
    errno.EACCES: "may not be read or changed by this user; check its permissions",
    errno.EPERM: "may not be read or changed by this user; check its permissions",
    errno.EROFS: "is on a disk that is mounted read-only",
    errno.ENOSPC: "does not fit: the disk is full; make room and try again",
    errno.EDQUOT: "does not fit: your disk quota is used up; make room and try again",
    errno.EMFILE: "cannot be opened: too many files are open; try again",
    errno.EIO: "cannot be read or written: the disk reports an error",
}
_TEMP_FLAGS: Final = (
    os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
)


def kind_of(mode: int) -> ScanKind:
    """Return the kind of an entry with this `st_mode`."""
    if stat.S_ISDIR(mode):
        return "folder"
    return "file" if stat.S_ISREG(mode) else "other"


class OpenFiles(Protocol):
    """The files that the editor had open when it saved them."""

    @property
    def warnings(self) -> Sequence[Problem]:
        """Warnings on open files that were nevertheless changed on the disk."""

    def is_open(self, path: str) -> bool:
        """Return True if the file is open."""

    def write(self, path: str, before: bytes, after: bytes) -> bool:
        """Change an open file in the editor. Return False if it must be changed on the disk.

        Raises `Conflict` if the user has typed in it meanwhile, `VaultError` if the editor cannot
        change it, and `ObsidianError` if it is unknown whether it did.
        """


class Editor(Protocol):
    """Another program that may have files of the vault open."""

    def save(
        self, paths: Iterable[str] | None, *, require_answer: bool = False
    ) -> OpenFiles | None:
        """Write unsaved text of these files, and of files in these folders, to the disk.

        None stands for all files. Returns None if no file is open. Raises `Conflict` for text that
        cannot be saved. An editor that runs but does not answer is an `ObsidianError` with
        `require_answer`, otherwise a warning, and no file counts as open.
        """


class VaultStore:
    """A vault folder, opened once.

    Every access starts at the root's handle and stays below it. Threads may share a store.
    """

    def __init__(self, real_path: str, root_fd: int | None, *, openat2: bool = False) -> None:
        """Create a store. Without a handle (`root_fd`) everything is opened by path; see `walk`."""
        self.real_path = real_path
        """The vault's folder with all links resolved when it was opened."""
        self._root: int | str = real_path if root_fd is None else root_fd
        self._openat2 = openat2
        self._case_insensitive: bool | None = None
        self.editor: Editor | None = None
        """Another program that may have files of the vault open."""

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Self:
        """Open a folder as a vault.

        Raises `ConfigError` if it is missing, not a folder, or not readable.
        """
        name = os.fspath(folder)
        try:
            real = os.path.realpath(folder, strict=True)
            if not os.path.isdir(real):
                raise NotADirectoryError
            os.scandir(real).close()
            if not walk.HAS_HANDLES:
                return cls(real, None)
            root_fd = os.open(real, walk.FOLDER_FLAGS)
        except FileNotFoundError:
            raise ConfigError(
                f"There is no folder {name}: give the path of your vault's folder."
            ) from None
        except NotADirectoryError:
            raise ConfigError(
                f"{name} is a file: give the path of the folder that holds your notes."
            ) from None
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise ConfigError(
                f"The folder {name} cannot be opened ({reason}): check its path and permissions."
            ) from None
        return cls(real, root_fd, openat2=walk.has_openat2(root_fd))

    def close(self) -> None:
        """Close the directory handle. The store is unusable afterwards."""
        if self.root_fd >= 0:
            walk.close_quietly(self.root_fd)
            self._root = -1

    __del__ = close

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def root_fd(self) -> int:
        """The handle of the vault's folder; -1 if the platform has none, or after `close`."""
        return self._root if isinstance(self._root, int) else -1

    @property
    def name(self) -> str:
        """The vault's name, which is that of its folder."""
        return os.path.basename(self.real_path)

    def is_writable(self) -> bool:
        """Return True if files can be created in the vault's root."""
        if isinstance(self._root, str):
            return os.access(self._root, os.W_OK)
        return os.access(".", os.W_OK | os.X_OK, dir_fd=self._root)

    def open_folder(self, folder: VaultPath) -> int:
        """Open a folder without leaving the vault. The caller must close the handle.

        Raises FILE_NOT_FOUND, NOT_A_FOLDER, IO_ERROR, and PATH_OUTSIDE_VAULT or PATH_NOT_ALLOWED
        for links that lead elsewhere.
        """
        with _vault_errors(folder):
            return self._open(folder, walk.FOLDER_FLAGS)

    def read(self, path: VaultPath, limit: int = READ_LIMIT) -> bytes:
        """Return the bytes of a regular file. Links that stay inside the vault are followed.

        Raises FILE_NOT_FOUND, NOT_TEXT (folder, FIFO, socket, device), FILE_TOO_LARGE, IO_ERROR,
        and PATH_OUTSIDE_VAULT or PATH_NOT_ALLOWED for other links.
        """
        if path.is_root:
            raise not_a_file(path)
        try:
            fd = self._open(path, walk.FILE_FLAGS)
            try:
                info = os.fstat(fd)
                if kind_of(info.st_mode) != "file":
                    raise not_a_file(path)
                if (
                    info.st_size > limit
                    or len(data := walk.read_all(fd, info.st_size, limit)) > limit
                ):
                    raise VaultError(
                        f"{path.text} is larger than {limit / 2**20:g} MB, the limit for one file.",
                        code="FILE_TOO_LARGE",
                        path=path.text,
                    )
                return data
            finally:
                walk.close_quietly(fd)
        except OSError as error:
            if error.errno == errno.ENOTDIR:
                raise missing(path) from error
            raise vault_error(error, path) from error

    def _open(self, path: VaultPath, flags: int) -> int:
        """Open an entry, and follow links in its path."""
        if isinstance(self._root, int):
            if self._openat2:
                try:
                    return walk.open_without_links(self._root, path.text or ".", flags)
                except OSError as error:
                    # For a link, or a rename at the same moment (EAGAIN), the walk decides.
                    if error.errno not in (errno.ELOOP, errno.EAGAIN):
                        raise
            if path.is_root:
                return os.open(".", flags, dir_fd=self._root)
        elif flags == walk.FOLDER_FLAGS:
            raise OSError(errno.ENOTSUP, "this platform has no directory handles", path.text)
        with walk.find(self._root, path) as real:
            if real.folder_fd is None and not stat.S_ISREG(os.lstat(real.name).st_mode):
                raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), path.text)
            return os.open(real.name, flags | walk.NOFOLLOW, dir_fd=real.folder_fd)

    @contextmanager
    def _entry(self, path: VaultPath) -> Iterator[tuple[str, int | None]]:
        """Provide the name of an entry for system calls, and the handle it is relative to.

        If the entry is a link, it is the link itself.
        """
        if isinstance(self._root, str):
            if path.parent.is_root:
                yield os.path.join(self._root, path.name), None
            else:
                with walk.find(self._root, path.parent) as parent:
                    yield os.path.join(parent.name, path.name), None
            return
        fd = self._open(path.parent, walk.FOLDER_FLAGS)
        try:
            yield path.name, fd
        finally:
            walk.close_quietly(fd)

    def resolve(self, path: VaultPath) -> VaultPath:
        """Return the path that a write through `path` would change, with all links followed.

        The last component may be missing. Raises the same errors as `read`.
        """
        if path.is_root or is_reserved(path):
            return path
        with _vault_errors(path), walk.find(self._root, path) as real:
            return _path_of(real, path)

    def resolve_with_status(self, path: VaultPath) -> tuple[VaultPath, os.stat_result | None]:
        """Return `resolve` with the status of the entry there, None if it is missing."""
        if path.is_root or is_reserved(path):
            return path, self.lstat(path)
        with _vault_errors(path), walk.find(self._root, path) as real:
            status = None
            with suppress(*_MISSING):
                status = os.stat(real.name, dir_fd=real.folder_fd, follow_symlinks=False)
            return _path_of(real, path), status

    def lstat(self, path: VaultPath) -> os.stat_result | None:
        """Return the status of an entry without following it, or None if it is missing."""
        with suppress(*_MISSING), _vault_errors(path, passed=_MISSING):
            if path.is_root:
                return os.stat(self._root)
            with self._entry(path) as (name, folder):
                return os.stat(name, dir_fd=folder, follow_symlinks=False)
        return None

    def stat(self, path: VaultPath) -> tuple[os.stat_result, int] | None:
        """Return the status and the birth time (in nanoseconds) of an entry, with links followed.

        Return None if the entry is missing.
        """
        with suppress(*_MISSING), _vault_errors(path, passed=_MISSING):
            if system_calls.HAS_STATX and isinstance(self._root, int):
                fd = self._open(path, system_calls.PATH_FLAGS)
                try:
                    info = os.fstat(fd)
                    return info, system_calls.birth_time_ns(info, fd)
                finally:
                    walk.close_quietly(fd)
            if path.is_root:
                info = os.stat(self._root)
                return info, system_calls.birth_time_ns(info)
            with walk.find(self._root, path) as real:
                info = os.stat(real.name, dir_fd=real.folder_fd, follow_symlinks=False)
                return info, system_calls.birth_time_ns(info)
        return None

    def scan(self, folder: VaultPath) -> list[ScanEntry]:
        """Return all entries of a folder, protected ones included, unsorted.

        A link has the kind of its target, or "other" if that is missing, outside or protected.
        Names that are not UTF-8 contain surrogates. Raises the same errors as `open_folder`.
        """
        with _vault_errors(folder):
            entries = self._list(folder)
        return [
            (name, kind or _link_kind(self, folder, name), kind is None) for name, kind in entries
        ]

    def _list(self, folder: VaultPath) -> list[tuple[str, ScanKind | None]]:
        """Return names and kinds; None is the kind of a link."""
        if isinstance(self._root, int):
            fd = self._open(folder, walk.FOLDER_FLAGS)
            try:
                return _scan(fd)
            finally:
                walk.close_quietly(fd)
        if folder.is_root:
            return _scan(self._root)
        with walk.find(self._root, folder) as real:
            return _scan(real.name)

    @property
    def case_insensitive(self) -> bool:
        """True if names that differ only in case are one file. Checked once, without writing."""
        if self._case_insensitive is None:
            self._case_insensitive = _is_case_insensitive(self)
        return self._case_insensitive

    def write_atomic(self, path: VaultPath, data: bytes) -> None:
        """Replace or create a file outside of runs, atomically and durably.

        An existing file's mode is preserved, and a link is written through. Raises FILE_NOT_FOUND
        for a missing folder, NOT_TEXT if `path` is a folder, and the errors of `open_folder`.
        """
        with _vault_errors(path), walk.find(self._root, path) as real:
            folder = real.folder_fd
            temp = os.path.join(os.path.dirname(real.name), f".oa-{secrets.token_hex(4)}")
            handle = os.open(temp, _TEMP_FLAGS, 0o666, dir_fd=folder)
            try:
                try:
                    with suppress(FileNotFoundError):
                        mode = stat.S_IMODE(
                            os.stat(real.name, dir_fd=folder, follow_symlinks=False).st_mode
                        )
                        os.chmod(temp, mode, dir_fd=folder)
                    write_all(handle, data)
                    os.fsync(handle)
                finally:
                    os.close(handle)
                os.replace(temp, real.name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temp, dir_fd=folder)
                raise
            if folder is not None:
                os.fsync(folder)

    def make_folder(self, folder: VaultPath) -> None:
        """Create a folder and its parents outside of runs, durably, unless it exists."""
        if folder.is_root:
            return
        self.make_folder(folder.parent)
        try:
            with (
                _vault_errors(folder, passed=(FileExistsError,)),
                self._entry(folder) as (name, parent),
            ):
                os.mkdir(name, dir_fd=parent)
                if parent is not None:
                    os.fsync(parent)
        except FileExistsError:
            status = self.stat(folder)
            if status is None or kind_of(status[0].st_mode) != "folder":
                raise VaultError(
                    f"{folder.text} cannot be created: something else has that name.",
                    code="NOT_A_FOLDER",
                    path=folder.text,
                ) from None

    def remove(self, path: VaultPath) -> bool:
        """Delete a file, or a link itself, outside of runs, durably. Return False if missing."""
        with suppress(*_MISSING):
            with _vault_errors(path, passed=_MISSING), self._entry(path) as (name, folder):
                os.unlink(name, dir_fd=folder)
                if folder is not None:
                    os.fsync(folder)
            return True
        return False

    def remove_folder(self, folder: VaultPath) -> None:
        """Remove a folder outside of runs, durably, unless it has entries."""
        try:
            with self._entry(folder) as (name, parent):
                os.rmdir(name, dir_fd=parent)
                if parent is not None:
                    os.fsync(parent)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST):
                raise vault_error(error, folder) from error

    @cached_property
    def config_folder(self) -> str:
        """The name of Obsidian's configuration folder.

        This is `.obsidian`, or else the only hidden folder with files that Obsidian writes there.
        """
        with suppress(VaultError):
            hidden = sorted(
                name
                for name, kind, _ in self.scan(ROOT)
                if kind == "folder" and name.startswith(".")
            )
            if CONFIG_FOLDER not in hidden:
                candidates = [name for name in hidden if self._is_config(name)]
                if len(candidates) == 1:
                    return candidates[0]
        return CONFIG_FOLDER

    def _is_config(self, name: str) -> bool:
        with suppress(VaultError):
            return any(
                self.lstat(config_path(file, folder=name)) is not None
                for file in ("app.json", "workspace.json")
            )
        return False

    def obsidian_config(self, name: ConfigName) -> object | None:
        """Return the parsed JSON of `<name>.json` in Obsidian's configuration folder.

        Return None if it is missing, too large or invalid. This is the only method that reads from
        a protected folder.
        """
        if name not in _CONFIG_NAMES:
            raise ValueError(f"{name!r} is not one of Obsidian's config files that are read")
        try:
            document: object = json.loads(
                self.read(config_path(f"{name}.json", folder=self.config_folder), CONFIG_LIMIT)
            )
        except (VaultError, ValueError, RecursionError):
            return None
        return document


def _path_of(real: walk.ResolvedPath, path: VaultPath) -> VaultPath:
    """Return the path that `path` was resolved to: itself if no link was followed."""
    if real.parts == path.parts:
        return path
    resolved = ROOT
    for part in real.parts:
        resolved = from_disk(resolved, part)
    return resolved


def _link_kind(store: VaultStore, folder: VaultPath, name: str) -> ScanKind:
    try:
        status = store.stat(from_disk(folder, name))
    except VaultError:
        return "other"
    return kind_of(status[0].st_mode) if status else "other"


def _is_case_insensitive(store: VaultStore) -> bool:
    with suppress(VaultError, OSError):
        names = {name for name, _, _ in store.scan(ROOT)}
        for name in names:
            other = name.swapcase()
            if name.isascii() and other != name and other not in names:
                if store.root_fd >= 0:
                    return _is_same_file(name, other, store.root_fd)
                return _is_same_file(
                    os.path.join(store.real_path, name), os.path.join(store.real_path, other), None
                )
    return sys.platform in ("darwin", "win32")


def _is_same_file(name: str, other: str, folder_fd: int | None) -> bool:
    try:
        status = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
        return os.path.samestat(status, os.stat(other, dir_fd=folder_fd, follow_symlinks=False))
    except FileNotFoundError:
        return False


def _scan(target: int | str) -> list[tuple[str, ScanKind | None]]:
    entries: list[tuple[str, ScanKind | None]] = []
    with os.scandir(target) as listing:
        for entry in listing:
            if entry.is_file(follow_symlinks=False):
                entries.append((entry.name, "file"))
            elif entry.is_symlink() or (hasattr(entry, "is_junction") and entry.is_junction()):
                entries.append((entry.name, None))
            elif entry.is_dir(follow_symlinks=False):
                entries.append((entry.name, "folder"))
            else:
                entries.append((entry.name, "other"))
    return entries


@contextmanager
def _vault_errors(path: VaultPath, passed: tuple[type[OSError], ...] = ()) -> Iterator[None]:
    """Convert errors of the operating system, except those in `passed`."""
    try:
        yield
    except passed:
        raise
    except OSError as error:
        raise vault_error(error, path) from error


def missing(path: VaultPath) -> VaultError:
    """Return the error FILE_NOT_FOUND."""
    return VaultError(f"{path.text} does not exist.", code="FILE_NOT_FOUND", path=path.text)


def not_a_file(path: VaultPath) -> VaultError:
    """Return the error NOT_TEXT, for a folder, FIFO, socket or device in place of a file."""
    return VaultError(
        f"{path.text or 'The vault itself'} is not a regular file.", code="NOT_TEXT", path=path.text
    )


def not_a_folder(path: VaultPath) -> VaultError:
    """Return the error NOT_A_FOLDER, for another entry in place of a folder or its parents."""
    return VaultError(
        f"{path.text} is not a folder, or its path goes through a file.",
        code="NOT_A_FOLDER",
        path=path.text,
    )


def vault_error(error: OSError, path: VaultPath) -> VaultError:
    """Convert an error of the operating system to one with a code and message of this program."""
    match error.errno:
        case errno.ENOENT:
            return missing(path)
        case errno.ENOTDIR:
            return not_a_folder(path)
        case errno.ENXIO | errno.EISDIR:
            return not_a_file(path)
        case errno.ELOOP | errno.EMLINK | errno.EXDEV:
            return PathRefused(
                f"{path.text} goes through links that were not followed.",
                code="PATH_OUTSIDE_VAULT",
                path=path.text,
            )
        case errno.ENAMETOOLONG:
            return PathRefused(
                f"{path.text[:80]}… has a name that is too long for this disk.",
                code="PATH_INVALID",
                path=path.text,
            )
        case _:
            return io_error(error, path)


def io_error(error: OSError, path: VaultPath) -> VaultError:
    """Return the error IO_ERROR for a failed system call. It is retryable."""
    reason = (
        _REASONS.get(error.errno or 0)
        or f"could not be read or written: {error.strerror or type(error).__name__}"
    )
    return VaultError(
        f"{path.text or 'The vault'} {reason}.", code="IO_ERROR", path=path.text, retryable=True
    )
