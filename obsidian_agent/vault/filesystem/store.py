"""The vault on disk: one handle to its root, and the few safe ways to read, list and write below it.

Runs do not write through this module but over the directory handles that `VaultStore.open_folder` gives. `write_atomic`, `make_folder` and
`remove` are for what happens outside of runs (the program's own folder in the vault). `VaultStore.editor`, given from above, is a program beside this
one that holds files of the vault open, with words in it that the disk may not have yet: it changes those itself.
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
from types import TracebackType
from typing import Final, Literal, Protocol, Self, get_args

from obsidian_agent.errors import ConfigError, PathRefused, Problem, VaultError
from obsidian_agent.vault.filesystem import system_calls, walk
from obsidian_agent.vault.filesystem.system_calls import write_all
from obsidian_agent.vault.paths.path import (
    CONFIG_FOLDER,
    ROOT,
    VaultPath,
    config_path,
    from_disk,
    is_reserved,
)

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
_CONFIG_NAMES: Final = frozenset(get_args(ConfigName))


ScanKind = Literal["file", "folder", "other"]
ScanEntry = tuple[str, ScanKind, bool]

_TEMP_FLAGS: Final = (
    os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
)


def kind_of(mode: int) -> ScanKind:
    """The kind that a mode of `stat` stands for."""
    return "folder" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "other"


class VaultStore:
    """A vault folder, opened once. Every access starts at the root's handle and never leaves what is below it. Threads may share it."""

    def __init__(self, real_path: str, root_fd: int | None, *, openat2: bool = False) -> None:
        """`root_fd` None: a platform without directory handles, where everything goes by path (see `walk`)."""
        self.real_path = real_path
        """The vault's folder with all links resolved, as it was when it was opened."""
        self._root: int | str = real_path if root_fd is None else root_fd
        self._openat2 = openat2
        self._case_insensitive: bool | None = None
        self.editor: Editor | None = None
        """The program beside this one that may hold files of the vault open."""

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
                return cls(real, None)
            root_fd = os.open(real, walk.FOLDER_FLAGS)
        except FileNotFoundError:
            raise ConfigError(
                f"There is no folder {shown}: give the path of your vault's folder."
            ) from None
        except NotADirectoryError:
            raise ConfigError(
                f"{shown} is a file: give the path of the folder that holds your notes."
            ) from None
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise ConfigError(
                f"The folder {shown} cannot be opened ({reason}): check its path and permissions."
            ) from None
        return cls(real, root_fd, openat2=walk.has_openat2(root_fd))

    def close(self) -> None:
        """Give the handle back; the store is of no use afterwards."""
        if self.root_fd >= 0:
            walk.close_quietly(self.root_fd)
            self._root = -1

    __del__ = close

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def root_fd(self) -> int:
        """The handle of the vault's folder; -1 where the platform has none or when closed."""
        return self._root if isinstance(self._root, int) else -1

    @property
    def name(self) -> str:
        """The vault's name: that of its folder."""
        return os.path.basename(self.real_path)

    def is_writable(self) -> bool:
        """Whether files can be made in the root."""
        if isinstance(self._root, str):
            return os.access(self._root, os.W_OK)
        return os.access(".", os.W_OK | os.X_OK, dir_fd=self._root)

    def open_folder(self, folder: VaultPath) -> int:
        """A directory handle (the caller closes it), reached without leaving the vault.

        FILE_NOT_FOUND, NOT_A_FOLDER, PATH_OUTSIDE_VAULT or PATH_NOT_ALLOWED (links that lead elsewhere), IO_ERROR.
        """
        with _vault_errors(folder):
            return self._open(folder, walk.FOLDER_FLAGS)

    def read(self, path: VaultPath, limit: int = READ_LIMIT) -> bytes:
        """The bytes of a regular file, through links that stay inside.

        FILE_NOT_FOUND, NOT_TEXT (folder, FIFO, socket, device), FILE_TOO_LARGE, PATH_OUTSIDE_VAULT or PATH_NOT_ALLOWED (links), IO_ERROR.
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
                        f"{path.text} is larger than {limit:,} bytes, the most that is read of one file.",
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
        """A handle of what is at a path, links on the way followed."""
        if isinstance(self._root, int):
            if self._openat2:
                try:
                    return walk.open_without_links(self._root, path.text or ".", flags)
                except OSError as error:
                    # A link, or (EAGAIN) a rename at the same moment: the walk decides.
                    if error.errno not in (errno.ELOOP, errno.EAGAIN):
                        raise
            if path.is_root:
                return os.open(".", flags, dir_fd=self._root)
        elif flags == walk.FOLDER_FLAGS:
            raise OSError(errno.ENOTSUP, "this platform has no directory handles", path.text)
        with walk.find(self._root, path) as place:
            if place.folder_fd is None and not stat.S_ISREG(os.lstat(place.name).st_mode):
                raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), path.text)
            return os.open(place.name, flags | walk.NOFOLLOW, dir_fd=place.folder_fd)

    @contextmanager
    def _entry(self, path: VaultPath) -> Iterator[tuple[str, int | None]]:
        """The entry itself, also when it is a link: the name to give to the system, and the handle it is relative to."""
        if isinstance(self._root, str):
            if path.parent.is_root:
                yield os.path.join(self._root, path.name), None
            else:
                with walk.find(self._root, path.parent) as place:
                    yield os.path.join(place.name, path.name), None
            return
        fd = self._open(path.parent, walk.FOLDER_FLAGS)
        try:
            yield path.name, fd
        finally:
            walk.close_quietly(fd)

    def resolve(self, path: VaultPath) -> VaultPath:
        """Where a write through `path` lands: links followed, the last one too. The last name may be missing. Errors as `read`."""
        if path.is_root or is_reserved(path):
            return path
        with _vault_errors(path), walk.find(self._root, path) as place:
            real = ROOT
            for part in place.parts:
                real = from_disk(real, part)
            return real

    def lstat(self, path: VaultPath) -> os.stat_result | None:
        """The status of the entry itself (of a link, not its target), or None when it is missing."""
        with suppress(*_MISSING), _vault_errors(path, passed=_MISSING):
            if path.is_root:
                return os.stat(self._root)
            with self._entry(path) as (name, folder):
                return os.stat(name, dir_fd=folder, follow_symlinks=False)
        return None

    def stat(self, path: VaultPath) -> tuple[os.stat_result, int] | None:
        """The status of what the entry leads to inside the vault and its birth time in nanoseconds, or None when it is missing."""
        with suppress(*_MISSING), _vault_errors(path, passed=_MISSING):
            if system_calls.KNOWN_BY_HANDLE and isinstance(self._root, int):
                fd = self._open(path, system_calls.PATH_FLAGS)
                try:
                    info = os.fstat(fd)
                    return info, system_calls.born_ns(info, fd)
                finally:
                    walk.close_quietly(fd)
            if path.is_root:
                info = os.stat(self._root)
                return info, system_calls.born_ns(info)
            with walk.find(self._root, path) as place:
                info = os.stat(place.name, dir_fd=place.folder_fd, follow_symlinks=False)
                return info, system_calls.born_ns(info)
        return None

    def scan(self, folder: VaultPath) -> list[ScanEntry]:
        """Name, kind and is-link of every entry, protected ones too, in no order. Errors as `open_folder`.

        A link has the kind of what it leads to, "other" if that is missing, outside or protected. Names that are not UTF-8 hold surrogates.
        """
        with _vault_errors(folder):
            found = self._listed(folder)
        return [
            (name, kind or _link_kind(self, folder, name), kind is None) for name, kind in found
        ]

    def _listed(self, folder: VaultPath) -> list[tuple[str, ScanKind | None]]:
        """Names and kinds, None for a link."""
        if isinstance(self._root, int):
            fd = self._open(folder, walk.FOLDER_FLAGS)
            try:
                return _scan(fd)
            finally:
                walk.close_quietly(fd)
        if folder.is_root:
            return _scan(self._root)
        with walk.find(self._root, folder) as place:
            return _scan(place.name)

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
        with _vault_errors(path), walk.find(self._root, path) as place:
            folder, temp = (
                place.folder_fd,
                os.path.join(os.path.dirname(place.name), f".oa-{secrets.token_hex(4)}"),
            )
            handle = os.open(temp, _TEMP_FLAGS, 0o666, dir_fd=folder)
            try:
                try:
                    with suppress(FileNotFoundError):
                        mode = stat.S_IMODE(
                            os.stat(place.name, dir_fd=folder, follow_symlinks=False).st_mode
                        )
                        os.chmod(temp, mode, dir_fd=folder)
                    write_all(handle, data)
                    os.fsync(handle)
                finally:
                    os.close(handle)
                os.replace(temp, place.name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temp, dir_fd=folder)
                raise
            if folder is not None:
                os.fsync(folder)

    def make_folder(self, folder: VaultPath) -> None:
        """Make a folder and its parents outside of runs, durably; no change when it exists."""
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
            if (found := self.stat(folder)) is None or kind_of(found[0].st_mode) != "folder":
                raise VaultError(
                    f"{folder.text} is in the way and is no folder.",
                    code="NOT_A_FOLDER",
                    path=folder.text,
                ) from None

    def remove(self, path: VaultPath) -> bool:
        """Remove a file (or a link itself) outside of runs, durably; False when there was none."""
        with suppress(*_MISSING):
            with _vault_errors(path, passed=_MISSING), self._entry(path) as (name, folder):
                os.unlink(name, dir_fd=folder)
                if folder is not None:
                    os.fsync(folder)
            return True
        return False

    def remove_folder(self, folder: VaultPath) -> None:
        """Remove an empty folder outside of runs, durably; no change when it is not empty."""
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
        """The name of Obsidian's own folder: `.obsidian`, or the only hidden folder that holds what it writes there."""
        with suppress(VaultError):
            hidden = sorted(
                name
                for name, kind, _ in self.scan(ROOT)
                if kind == "folder" and name.startswith(".")
            )
            if (
                CONFIG_FOLDER not in hidden
                and len(found := [name for name in hidden if self._is_config(name)]) == 1
            ):
                return found[0]
        return CONFIG_FOLDER

    def _is_config(self, name: str) -> bool:
        with suppress(VaultError):
            return any(
                self.lstat(config_path(file, folder=name)) is not None
                for file in ("app.json", "workspace.json")
            )
        return False

    def obsidian_config(self, name: ConfigName) -> object | None:
        """The parsed JSON of `<name>.json` in Obsidian's own folder; None when missing, too large or broken. The only look into a protected folder."""
        if name not in _CONFIG_NAMES:
            raise ValueError(f"{name!r} is not one of Obsidian's config files that are read")
        try:
            document: object = json.loads(
                self.read(config_path(f"{name}.json", folder=self.config_folder), CONFIG_LIMIT)
            )
        except (VaultError, ValueError, RecursionError):
            return None
        return document


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
                return _same_file(
                    os.path.join(store.real_path, name), os.path.join(store.real_path, other), None
                )
    return sys.platform in ("darwin", "win32")


def _same_file(one: str, other: str, folder_fd: int | None) -> bool:
    try:
        first = os.stat(one, dir_fd=folder_fd, follow_symlinks=False)
        return os.path.samestat(first, os.stat(other, dir_fd=folder_fd, follow_symlinks=False))
    except FileNotFoundError:
        return False


def _scan(target: int | str) -> list[tuple[str, ScanKind | None]]:
    found: list[tuple[str, ScanKind | None]] = []
    with os.scandir(target) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                found.append((entry.name, "file"))
            elif entry.is_symlink() or (hasattr(entry, "is_junction") and entry.is_junction()):
                found.append((entry.name, None))
            else:
                found.append(
                    (entry.name, "folder" if entry.is_dir(follow_symlinks=False) else "other")
                )
    return found


_MISSING: Final = (FileNotFoundError, NotADirectoryError)


@contextmanager
def _vault_errors(path: VaultPath, passed: tuple[type[OSError], ...] = ()) -> Iterator[None]:
    """Errors of the operating system as those of the plan language, but for those that are passed on."""
    try:
        yield
    except passed:
        raise
    except OSError as error:
        raise vault_error(error, path) from error


def missing(path: VaultPath) -> VaultError:
    """FILE_NOT_FOUND for a path."""
    return VaultError(f"{path.text} does not exist.", code="FILE_NOT_FOUND", path=path.text)


def not_a_file(path: VaultPath) -> VaultError:
    """NOT_TEXT: a folder, FIFO, socket or device where a file was asked for."""
    return VaultError(
        f"{path.text or 'The vault itself'} is not a regular file.", code="NOT_TEXT", path=path.text
    )


def not_a_folder(path: VaultPath) -> VaultError:
    """NOT_A_FOLDER: something else where a folder was asked for, or on the way to it."""
    return VaultError(
        f"{path.text} is not a folder, or a file is in the way to it.",
        code="NOT_A_FOLDER",
        path=path.text,
    )


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
    """A failed system call, whatever it was; trying again may help."""
    reason = (
        _REASONS.get(error.errno or 0)
        or f"could not be read or written: {error.strerror or type(error).__name__}"
    )
    return VaultError(
        f"{path.text or 'The vault'} {reason}.", code="IO_ERROR", path=path.text, retryable=True
    )


class OpenFiles(Protocol):
    """The files that were open when they were settled."""

    @property
    def warnings(self) -> Sequence[Problem]:
        """What people should know of files that are open and were changed on the disk all the same."""

    def is_open(self, path: str) -> bool:
        """Whether the file is open."""

    def write(self, path: str, before: bytes, after: bytes) -> bool:
        """Have an open file changed; False when that has to be done on the disk.

        Raises Conflict when the person has typed in it meanwhile, VaultError when the program cannot do it, and ObsidianError when nobody
        knows whether it did.
        """


class Editor(Protocol):
    """What can be asked of the program."""

    def save(
        self, paths: Iterable[str] | None, *, require_answer: bool = False
    ) -> OpenFiles | None:
        """Have what is typed in these files, and in those below these folders (None: everywhere), written to the disk. None: nothing is open.

        Raises Conflict for words that cannot be saved. A program that runs and does not answer is an ObsidianError with `surely`, else as if
        nothing were open, with a warning.
        """
