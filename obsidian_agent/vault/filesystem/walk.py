"""Opening files and folders of the vault without ever leaving it.

Two ways over directory handles, one promise. Where the kernel has `openat2` a path without links is opened by one call (`RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS`).
Everywhere else, and for every path with a link in it, the walk goes component by component with `O_NOFOLLOW` and follows links itself:
each name that a link brings in is judged by the same rule of protected names, `..` never climbs above the root, and absolute links are
refused as `RESOLVE_BENEATH` refuses them. Nothing is checked first and opened afterwards by name, so there is no race to lose.

A platform without directory handles (Windows) is walked by path, with the same rules: every component is looked at before the next one is.
A program that swaps a folder for a link between the look and the use could win there, so nothing of a run is written there.

Sources: openat2(2), path_resolution(7).
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import PathRefused
from obsidian_agent.vault.filesystem.system_calls import PATH_FLAGS
from obsidian_agent.vault.paths.path import VaultPath, is_reserved, protected

HAS_HANDLES: Final = (
    os.open in os.supports_dir_fd and hasattr(os, "O_DIRECTORY") and hasattr(os, "O_NOFOLLOW")
)
"""Whether the platform can open relative to a directory handle (Linux, macOS and the BSDs can, Windows cannot)."""

MAX_LINKS: Final = 40
"""As many links on one path as Linux follows."""

FOLDER_FLAGS: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
FILE_FLAGS: Final = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)

_LINK_ERRORS = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EMLINK})

_SYS_OPENAT2 = 437
_RESOLVE = 0x02 | 0x04 | 0x08  # RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH


class _OpenHow(ctypes.Structure):
    """`struct open_how` of linux/openat2.h."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_HOW = {flags: _OpenHow(flags, 0, _RESOLVE) for flags in (FOLDER_FLAGS, FILE_FLAGS, PATH_FLAGS)}
_HOW_ADDRESS = {flags: ctypes.addressof(how) for flags, how in _HOW.items()}
_HOW_SIZE = ctypes.sizeof(_OpenHow)
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform.startswith("linux") else None
if _libc is not None:
    _libc.syscall.restype = ctypes.c_long
    _libc.syscall.argtypes = (
        ctypes.c_long,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_void_p,
        ctypes.c_size_t,
    )


def close_quietly(fd: int) -> None:
    """Close a handle that was only read from: an error then says nothing about the data."""
    try:  # noqa: SIM105 - called for every file that is read, and this costs nothing
        os.close(fd)
    except OSError:
        pass


def read_all(fd: int, size: int, limit: int = sys.maxsize) -> bytes:
    """Everything from the handle's place to the end of the file, or more than `limit`; `size` is a guess that makes one read enough."""
    data = os.read(fd, min(size, limit) + 1)
    if len(data) == size:
        return data
    chunks, total = [data], len(data)
    while total <= limit and (chunk := os.read(fd, 1 << 16)):
        chunks.append(chunk)
        total += len(chunk)
    return b"".join(chunks)


def open_without_links(root_fd: int, text: str, flags: int) -> int:
    """One `openat2` call for a path that has no link in it. OSError: ELOOP for a link, ENOSYS where the call is missing."""
    if _libc is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), text)
    fd: int = _libc.syscall(
        _SYS_OPENAT2, root_fd, os.fsencode(text), _HOW_ADDRESS[flags], _HOW_SIZE
    )
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


class _Walk:
    """One walk: the components still to go (next one last), and the real ones behind us. `root` is a handle, or a path without handles."""

    def __init__(self, root: int | str, path: VaultPath) -> None:
        self.root = root
        self.path = path
        self.pending = list(reversed(path.parts))
        self.names: list[str] = []
        self.handles: list[int] = []
        self.links = 0

    def at(self, name: str) -> tuple[str, int | None]:
        """What to give to the system for a name in the folder we are in, and the handle it is relative to."""
        if isinstance(self.root, str):
            return os.path.join(self.root, *self.names, name), None
        return name, self.handles[-1] if self.handles else self.root

    def enter(self, name: str) -> str | None:
        """Go into a folder, never through a link: the target when it is one. OSError when it is missing or no folder."""
        native, folder = self.at(name)
        if folder is None:
            if (target := self.link(name)) is None and not stat.S_ISDIR(os.lstat(native).st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)
            return target
        try:
            self.handles.append(os.open(name, FOLDER_FLAGS | NOFOLLOW, dir_fd=folder))
        except OSError as error:
            target = self.link(name) if error.errno in _LINK_ERRORS else None
            if target is None:
                raise
            return target
        return None

    def link(self, name: str) -> str | None:
        """The target of a link here, None for everything else and for what is missing."""
        native, folder = self.at(name)
        try:
            return os.readlink(native, dir_fd=folder)
        except (OSError, ValueError) as error:
            if folder is None or (
                isinstance(error, OSError) and error.errno in (errno.EINVAL, errno.ENOENT)
            ):
                return None
            raise

    def run(self) -> str:
        """Walk to the folder of the last component; the name of that, which is no link. It may be missing."""
        while self.pending:
            name = self.pending.pop()
            if name == "..":
                self.climb()
            elif name not in ("", "."):
                if self.links and protected(name):
                    raise self.refused(f"leads to {name!r}, which is protected", "PATH_NOT_ALLOWED")
                target = self.enter(name) if self.pending else self.link(name)
                if target is not None:
                    self.follow(target)
                elif not self.pending:
                    return name
                else:
                    self.names.append(name)
        # A link that ends in "." or "..": the folder we are in is what the path names.
        return self.climb()

    def climb(self) -> str:
        """Back to the folder above; the name of the one left. All were entered from the root downwards, so this stays below it."""
        if not self.names:
            raise self.refused("leads out of the vault or to the vault itself")
        if self.handles:
            close_quietly(self.handles.pop())
        return self.names.pop()

    def follow(self, target: str) -> None:
        """Put the components of a link's target in the place of its name."""
        self.links += 1
        if self.links > MAX_LINKS:
            raise self.refused("goes in circles")
        if is_reserved(self.path):
            raise self.refused("must be a real folder", "PATH_NOT_ALLOWED")
        target = target.replace(os.sep, "/")
        if target.startswith("/") or os.path.splitdrive(target)[0]:
            raise self.refused("leads to an absolute path")
        self.pending.extend(reversed(target.split("/")))

    def refused(self, why: str, code: str = "PATH_OUTSIDE_VAULT") -> PathRefused:
        """The refusal of the path because of a link on it."""
        return PathRefused(
            f"{self.path.text} is a link, or goes through one, that {why}; it is not followed.",
            code=code,
            path=self.path.text,
        )


@dataclass(frozen=True, slots=True)
class ResolvedPath:
    """Where a path ends after its links: the name to give to the system, the handle of the folder it is relative to (None: it is a
    whole path), and all components of the real path."""

    name: str
    folder_fd: int | None
    parts: tuple[str, ...]


@contextmanager
def find(root: int | str, path: VaultPath) -> Iterator[ResolvedPath]:
    """Follow `path` (not the vault's root) from a handle or path of the root to its last component, through links that stay inside.

    The last name is no link, and may be missing. The handle is closed behind the block. OSError for a folder that is missing or none,
    PathRefused for a link that leaves the vault, leads to a protected name or goes in circles.
    """
    walk = _Walk(root, path)
    try:
        name = walk.run()
        yield ResolvedPath(*walk.at(name), (*walk.names, name))
    finally:
        for handle in walk.handles:
            close_quietly(handle)
