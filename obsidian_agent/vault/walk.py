"""Opening files and folders of the vault without ever leaving it.

Two ways, one promise. Where the kernel has `openat2` a path without links is opened by one call (`RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS`).
Everywhere else, and for every path with a link in it, the walk goes component by component over directory handles with `O_NOFOLLOW` and
resolves links itself: each name that a link brings in is judged by the same rule of protected names, and no `..` climbs above the root.
Nothing is checked first and opened afterwards by name, so there is no race to lose.

Sources: openat2(2), path_resolution(7).
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from dataclasses import dataclass
from typing import Final

from obsidian_agent.errors import PathRefused, VaultError
from obsidian_agent.vault.paths import VaultPath, is_trash, protected

MAX_LINKS = 40
"""As many links on one path as Linux follows."""

FOLDER_FLAGS: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
FILE_FLAGS: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_CLOEXEC", 0)
_NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)

_SYS_OPENAT2 = 437
_RESOLVE = 0x02 | 0x04 | 0x08  # NO_MAGICLINKS | NO_SYMLINKS | BENEATH
_LINK_ERRORS = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EMLINK})


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_HOW = {flags: _OpenHow(flags, 0, _RESOLVE) for flags in (FOLDER_FLAGS, FILE_FLAGS)}
_HOW_POINTER = {flags: ctypes.addressof(how) for flags, how in _HOW.items()}
_HOW_SIZE = ctypes.sizeof(_OpenHow)
_libc = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None
if _libc is not None:
    _libc.syscall.restype = ctypes.c_long
    _libc.syscall.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t)


def open_without_links(root_fd: int, text: str, flags: int) -> int:
    """One `openat2` call for a path that has no link in it; OSError (ELOOP for a link, ENOSYS where the call is missing)."""
    assert _libc is not None
    fd: int = _libc.syscall(_SYS_OPENAT2, root_fd, os.fsencode(text), _HOW_POINTER[flags], _HOW_SIZE)
    if fd < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), text)
    return fd


def has_openat2(root_fd: int) -> bool:
    """Whether the kernel has the call and lets us use it."""
    if not os.sys.platform.startswith("linux"):
        return False
    try:
        os.close(open_without_links(root_fd, ".", FOLDER_FLAGS))
    except OSError:
        return False
    return True


@dataclass(slots=True)
class Place:
    """Where a path ends after its links: a handle of the folder (to be closed by the caller), the name in it, and the real path."""

    folder_fd: int
    name: str
    parts: tuple[str, ...]


def find(root_fd: int, root: str, path: VaultPath) -> Place:
    """Follow `path` (not the root) to its last component, through links that stay inside. The last name itself is no link, and may be missing.

    `root` is the vault's real path: an absolute link below it counts as inside. OSError for what is missing or not a folder,
    PathRefused for a link that leaves the vault, leads to a protected name or goes in circles.
    """
    walk = _Walk(root_fd, root, path)
    try:
        return walk.run()
    except BaseException:
        walk.close()
        raise


class _Walk:
    """One walk: the handles of the folders from the root to here, and the components still to go."""

    __slots__ = ("handles", "links", "names", "path", "pending", "root", "root_fd")

    def __init__(self, root_fd: int, root: str, path: VaultPath) -> None:
        self.root_fd, self.root, self.path = root_fd, root, path
        self.pending = list(reversed(path.parts))
        self.handles: list[int] = []
        self.names: list[str] = []
        self.links = 0

    @property
    def here(self) -> int:
        return self.handles[-1] if self.handles else self.root_fd

    def run(self) -> Place:
        while True:
            name = self.pending.pop()
            if name == "..":
                self.climb()
            elif name not in ("", "."):
                if self.links and protected(name):
                    raise self.refused(f"leads to {name!r}, which is protected", "PATH_NOT_ALLOWED")
                if not self.pending:
                    target = self.link(name)
                    if target is None:
                        return self.place(name)
                    self.follow(target)
                else:
                    self.enter(name)
            if not self.pending:
                # A link that ends in "." or "..": the folder reached is the last component of its own parent.
                if not self.names:
                    raise self.refused("leads to the vault itself", "PATH_NOT_ALLOWED")
                name = self.names.pop()
                os.close(self.handles.pop())
                return self.place(name)

    def enter(self, name: str) -> None:
        try:
            fd = os.open(name, FOLDER_FLAGS | _NOFOLLOW, dir_fd=self.here)
        except OSError as error:
            target = self.link(name) if error.errno in _LINK_ERRORS else None
            if target is None:
                raise
            self.follow(target)
        else:
            self.handles.append(fd)
            self.names.append(name)

    def climb(self) -> None:
        if not self.handles:
            raise self.refused("leads out of the vault")
        os.close(self.handles.pop())
        self.names.pop()

    def link(self, name: str) -> str | None:
        try:
            return os.readlink(name, dir_fd=self.here)
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOENT):
                return None
            raise

    def follow(self, target: str) -> None:
        self.links += 1
        if self.links > MAX_LINKS:
            raise self.refused("goes in circles")
        if is_trash(self.path):
            raise self.refused("must not be a link", "PATH_NOT_ALLOWED")
        if target.startswith("/"):
            if not target.startswith(self.root + "/"):
                raise self.refused("leads out of the vault")
            self.close()
            target = target[len(self.root) + 1 :]
        self.pending.extend(reversed(target.split("/")))

    def place(self, name: str) -> Place:
        folder = self.handles.pop() if self.handles else os.open(".", FOLDER_FLAGS, dir_fd=self.root_fd)
        place = Place(folder, name, (*self.names, name))
        self.close()
        return place

    def close(self) -> None:
        for handle in self.handles:
            os.close(handle)
        self.handles.clear()
        self.names.clear()

    def refused(self, why: str, code: str = "PATH_OUTSIDE_VAULT") -> PathRefused:
        return PathRefused(f"{self.path.text} is or goes through a link that {why}; it is not followed.", code=code, path=self.path.text)


def open_folder(root_fd: int, root: str, path: VaultPath) -> int:
    """The folder at `path` by the walk alone; a handle to be closed by the caller. Errors as `find`."""
    if path.is_root:
        return os.open(".", FOLDER_FLAGS, dir_fd=root_fd)
    place = find(root_fd, root, path)
    try:
        return os.open(place.name, FOLDER_FLAGS | _NOFOLLOW, dir_fd=place.folder_fd)
    finally:
        os.close(place.folder_fd)


def open_file(root_fd: int, root: str, path: VaultPath) -> int:
    """The file (or whatever is there) at `path` by the walk alone, for reading, without blocking. Errors as `find`."""
    place = find(root_fd, root, path)
    try:
        return os.open(place.name, FILE_FLAGS | _NOFOLLOW, dir_fd=place.folder_fd)
    finally:
        os.close(place.folder_fd)


def vault_error(error: OSError, path: VaultPath) -> VaultError:
    """An error of the operating system in the words and codes of the plan language."""
    text = path.text or "the vault"
    match error.errno:
        case errno.ENOENT:
            return VaultError(f"{text} does not exist.", code="FILE_NOT_FOUND", path=path.text)
        case errno.ENOTDIR:
            return VaultError(f"{text} is not a folder, or a file is in the way to it.", code="NOT_A_FOLDER", path=path.text)
        case errno.ELOOP | errno.EXDEV:
            return PathRefused(f"{text} goes through a link that was not followed.", code="PATH_OUTSIDE_VAULT", path=path.text)
        case errno.ENAMETOOLONG:
            return PathRefused(f"{text[:80]}… has a name that is too long.", code="PATH_INVALID", path=path.text)
        case errno.ENXIO | errno.EISDIR:
            return not_a_file(path)
        case _:
            return VaultError(f"{text}: {error.strerror or error}.", code="IO_ERROR", path=path.text, retryable=True)


def not_a_file(path: VaultPath) -> VaultError:
    """The refusal of a folder, FIFO, socket or device where a file was asked for."""
    return VaultError(f"{path.text} is not a regular file.", code="NOT_TEXT", path=path.text)


def is_regular(info: os.stat_result) -> bool:
    """Whether it is a file with bytes in it."""
    return stat.S_ISREG(info.st_mode)
