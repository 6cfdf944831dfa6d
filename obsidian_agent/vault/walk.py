"""Opening files and folders of the vault without ever leaving it, over directory handles.

Two ways, one promise. Where the kernel has `openat2` a path without links is opened by one call (`RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS`).
Everywhere else, and for every path with a link in it, the walk goes component by component with `O_NOFOLLOW` and follows links itself:
each name that a link brings in is judged by the same rule of protected names, `..` never climbs above the root, and absolute links are
refused as `RESOLVE_BENEATH` refuses them. Nothing is checked first and opened afterwards by name, so there is no race to lose.

Sources: openat2(2), path_resolution(7).
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from dataclasses import dataclass
from typing import Final

from obsidian_agent.errors import PathRefused
from obsidian_agent.vault.paths import VaultPath, is_reserved, protected

HAS_HANDLES: Final = os.open in os.supports_dir_fd and hasattr(os, "O_DIRECTORY") and hasattr(os, "O_NOFOLLOW")
"""Whether the platform can open relative to a directory handle (Linux, macOS and the BSDs can, Windows cannot)."""

MAX_LINKS: Final = 40
"""As many links on one path as Linux follows."""

FOLDER_FLAGS: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
FILE_FLAGS: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)

_LINK_ERRORS = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EMLINK})

_SYS_OPENAT2 = 437
_RESOLVE = 0x02 | 0x04 | 0x08  # RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH


class _OpenHow(ctypes.Structure):
    """`struct open_how` of linux/openat2.h."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_HOW = {flags: _OpenHow(flags, 0, _RESOLVE) for flags in (FOLDER_FLAGS, FILE_FLAGS)}
_HOW_ADDRESS = {flags: ctypes.addressof(how) for flags, how in _HOW.items()}
_HOW_SIZE = ctypes.sizeof(_OpenHow)
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform.startswith("linux") else None
if _libc is not None:
    _libc.syscall.restype = ctypes.c_long
    _libc.syscall.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t)


def open_without_links(root_fd: int, text: str, flags: int) -> int:
    """One `openat2` call for a path that has no link in it. OSError: ELOOP for a link, ENOSYS where the call is missing."""
    if _libc is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), text)
    fd: int = _libc.syscall(_SYS_OPENAT2, root_fd, os.fsencode(text), _HOW_ADDRESS[flags], _HOW_SIZE)
    if fd < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), text)
    return fd


def has_openat2(root_fd: int) -> bool:
    """Whether the kernel has the call and lets us use it (old kernels and some sandboxes do not)."""
    try:
        os.close(open_without_links(root_fd, ".", FOLDER_FLAGS))
    except OSError:
        return False
    return True


@dataclass(slots=True)
class Place:
    """Where a path ends after its links: a handle of the folder (the caller closes it), the name in it, and all components of the real path."""

    folder_fd: int
    name: str
    parts: tuple[str, ...]


def find(root_fd: int, path: VaultPath, *, follow_last: bool = True) -> Place:
    """Follow `path` (not the root) to its last component through links that stay inside. The last name may be missing.

    With `follow_last` the last name is no link when this returns. OSError for a folder that is missing or none, PathRefused for a link
    that leaves the vault, leads to a protected name or goes in circles.
    """
    walk = _Walk(root_fd, path)
    try:
        return walk.run(follow_last)
    finally:
        walk.close()


class _Walk:
    """One walk: the handles of the folders from the root to here, and the components still to go (next one last)."""

    __slots__ = ("handles", "links", "names", "path", "pending", "root_fd")

    def __init__(self, root_fd: int, path: VaultPath) -> None:
        self.root_fd = root_fd
        self.path = path
        self.pending = list(reversed(path.parts))
        self.handles: list[int] = []
        self.names: list[str] = []
        self.links = 0

    @property
    def here(self) -> int:
        return self.handles[-1] if self.handles else self.root_fd

    def run(self, follow_last: bool) -> Place:
        while self.pending:
            name = self.pending.pop()
            if name == "..":
                self.climb()
            elif name not in ("", "."):
                if self.links and protected(name):
                    raise self.refused(f"leads to {name!r}, which is protected", "PATH_NOT_ALLOWED")
                if self.pending:
                    self.enter(name)
                elif follow_last and (target := self.link(name)) is not None:
                    self.follow(target)
                else:
                    return self.place(name)
        return self.place(self.climb())

    def enter(self, name: str) -> None:
        try:
            fd = os.open(name, FOLDER_FLAGS | NOFOLLOW, dir_fd=self.here)
        except OSError as error:
            target = self.link(name) if error.errno in _LINK_ERRORS else None
            if target is None:
                raise
            self.follow(target)
        else:
            self.handles.append(fd)
            self.names.append(name)

    def climb(self) -> str:
        """Back to the folder above; the name of the one left. The handles were opened from the root downwards, so this stays below it."""
        if not self.handles:
            raise self.refused("leads out of the vault or to the vault itself")
        os.close(self.handles.pop())
        return self.names.pop()

    def link(self, name: str) -> str | None:
        """The target of a link, None for everything else."""
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
        if is_reserved(self.path):
            raise self.refused("must be a real folder", "PATH_NOT_ALLOWED")
        if target.startswith("/"):
            raise self.refused("leads to an absolute path")
        self.pending.extend(reversed(target.split("/")))

    def place(self, name: str) -> Place:
        folder = self.handles.pop() if self.handles else os.open(".", FOLDER_FLAGS, dir_fd=self.root_fd)
        return Place(folder, name, (*self.names, name))

    def close(self) -> None:
        for handle in self.handles:
            os.close(handle)

    def refused(self, why: str, code: str = "PATH_OUTSIDE_VAULT") -> PathRefused:
        return PathRefused(f"{self.path.text} is a link, or goes through one, that {why}; it is not followed.", code=code, path=self.path.text)


def open_by_walk(root_fd: int, path: VaultPath, flags: int) -> int:
    """What is at `path`, by the walk alone. Errors as `find`."""
    if path.is_root:
        return os.open(".", flags, dir_fd=root_fd)
    place = find(root_fd, path)
    try:
        return os.open(place.name, flags | NOFOLLOW, dir_fd=place.folder_fd)
    finally:
        os.close(place.folder_fd)
