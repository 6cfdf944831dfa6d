"""Opening files and folders of the vault without ever leaving it.

There are two methods with the same guarantees. Where the kernel has `openat2`, a path without links
is opened by one call (`RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS`). Otherwise, and for every path that
contains a link, the walk opens one component after the other with `O_NOFOLLOW` and follows links
itself: every name in a link's target must pass the rule for protected names, `..` never climbs
above the root, and absolute targets are refused, as `RESOLVE_BENEATH` does. Nothing is checked
first and then opened by name, so there is no race.

A platform without directory handles (Windows) is walked by path under the same rules, with each
component checked before the next one. Another program could replace a folder by a link between the
check and the use, so runs write nothing on such a platform.

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

from msgspec import Struct

from obsidian_agent.errors import PathRefused
from obsidian_agent.vault.filesystem.system_calls import PATH_FLAGS
from obsidian_agent.vault.paths.path import VaultPath, is_reserved, protected

HAS_HANDLES: Final = (
    os.open in os.supports_dir_fd and hasattr(os, "O_DIRECTORY") and hasattr(os, "O_NOFOLLOW")
)
"""True if the platform can open files relative to a directory handle. Windows cannot."""

MAX_LINKS: Final = 40
"""Links that are followed on one path, as on Linux."""

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


class _OpenHow(ctypes.Structure):
    """`struct open_how` of linux/openat2.h."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_HOW = {flags: _OpenHow(flags, 0, _RESOLVE) for flags in (FOLDER_FLAGS, FILE_FLAGS, PATH_FLAGS)}
_HOW_ADDRESS = {flags: ctypes.addressof(how) for flags, how in _HOW.items()}
_HOW_SIZE = ctypes.sizeof(_OpenHow)


def close_quietly(fd: int) -> None:
    """Close a handle that was only read from, and ignore errors: they concern no data."""
    try:  # noqa: SIM105 - called for every file that is read, and this costs nothing
        os.close(fd)
    except OSError:
        pass


def read_all(fd: int, size: int, limit: int = sys.maxsize) -> bytes:
    """Read from the current position to the end of the file.

    `size` is the expected size: if it is right, one read is enough. Reading stops after more than
    `limit` bytes.
    """
    data = os.read(fd, min(size, limit) + 1)
    if len(data) == size:
        return data
    chunks, total = [data], len(data)
    while total <= limit and (chunk := os.read(fd, 1 << 16)):
        chunks.append(chunk)
        total += len(chunk)
    return b"".join(chunks)


def open_without_links(root_fd: int, text: str, flags: int) -> int:
    """Open a path that contains no link by one `openat2` call.

    Raises OSError: ELOOP for a link, ENOSYS if the call is missing.
    """
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
    """Return True if `openat2` works. Old kernels lack it and some sandboxes forbid it."""
    try:
        os.close(open_without_links(root_fd, ".", FOLDER_FLAGS))
    except OSError:
        return False
    return True


class _Walk:
    """A walk along one path, component by component."""

    def __init__(self, root: int | str, path: VaultPath) -> None:
        self.root = root
        """The root's handle, or its path on a platform without directory handles."""
        self.path = path
        self.pending = list(reversed(path.parts))
        """The components to be visited, the next one last."""
        self.names: list[str] = []
        """The real components of the current folder."""
        self.handles: list[int] = []
        """The handles of the visited folders."""
        self.links = 0

    def locate(self, name: str) -> tuple[str, int | None]:
        """Return the arguments for a system call on a name in the current folder.

        These are the native name and the handle that it is relative to.
        """
        if isinstance(self.root, str):
            return os.path.join(self.root, *self.names, name), None
        return name, self.handles[-1] if self.handles else self.root

    def enter(self, name: str) -> str | None:
        """Enter a folder. If it is a link, return the link's target instead.

        Raises OSError if the folder is missing or not a folder.
        """
        native, folder = self.locate(name)
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
        """Return the target of a link, or None for any other entry and for a missing one."""
        native, folder = self.locate(name)
        try:
            return os.readlink(native, dir_fd=folder)
        except (OSError, ValueError) as error:
            if folder is None or (
                isinstance(error, OSError) and error.errno in (errno.EINVAL, errno.ENOENT)
            ):
                return None
            raise

    def run(self) -> str:
        """Walk to the folder of the last component, and return that component.

        It is not a link, and may be missing.
        """
        while self.pending:
            name = self.pending.pop()
            if name == "..":
                self.climb()
            elif name not in ("", "."):
                if self.links and protected(name):
                    raise self.refusal(f"leads to {name!r}, which is protected", "PATH_NOT_ALLOWED")
                target = self.enter(name) if self.pending else self.link(name)
                if target is not None:
                    self.follow(target)
                elif not self.pending:
                    return name
                else:
                    self.names.append(name)
        # A link's target ended in "." or "..": the path names the current folder.
        return self.climb()

    def climb(self) -> str:
        """Return to the parent folder, and return the name of the folder that was left.

        Folders were entered from the root downwards, so this never leaves the root.
        """
        if not self.names:
            raise self.refusal("leads out of the vault or to the vault itself")
        if self.handles:
            close_quietly(self.handles.pop())
        return self.names.pop()

    def follow(self, target: str) -> None:
        """Replace the name of a link by the components of its target."""
        self.links += 1
        if self.links > MAX_LINKS:
            raise self.refusal("goes in circles")
        if is_reserved(self.path):
            raise self.refusal("must be a real folder", "PATH_NOT_ALLOWED")
        target = target.replace(os.sep, "/")
        if target.startswith("/") or os.path.splitdrive(target)[0]:
            raise self.refusal("leads to an absolute path")
        self.pending.extend(reversed(target.split("/")))

    def refusal(self, reason: str, code: str = "PATH_OUTSIDE_VAULT") -> PathRefused:
        """Return the error for a link on the path."""
        return PathRefused(
            f"{self.path.text} is a link, or goes through one, that {reason}; it is not followed.",
            code=code,
            path=self.path.text,
        )


class ResolvedPath(Struct, frozen=True):
    """The location of a path after its links were followed."""

    name: str
    """The name for system calls."""
    folder_fd: int | None
    """The handle that `name` is relative to; None if `name` is a complete path."""
    parts: tuple[str, ...]
    """The components of the real path in the vault."""


@contextmanager
def find(root: int | str, path: VaultPath) -> Iterator[ResolvedPath]:
    """Resolve a path to its last component, through links that stay inside the vault.

    `root` is the handle or the path of the vault's root; `path` must not be the root itself. The
    last component is not a link and may be missing. The folder's handle is closed after the block.
    Raises OSError for a missing folder or a file in its place, and `PathRefused` for a link that
    leaves the vault, leads to a protected name or goes in circles.
    """
    walk = _Walk(root, path)
    try:
        name = walk.run()
        yield ResolvedPath(*walk.locate(name), (*walk.names, name))
    finally:
        for handle in walk.handles:
            close_quietly(handle)
