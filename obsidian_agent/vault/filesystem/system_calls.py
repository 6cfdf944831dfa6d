"""System calls that Python lacks: renames that never overwrite, flushes of a disk, birth times.

A rename either requires a free name or exchanges two names: `renameat2` on Linux, `renameatx_np`
on macOS. If the kernel or file system has no such call, `rename_to_free` creates a hard link
(files) or checks the name before a plain rename (folders), and `exchange` returns False so that its
caller can use another method.

Written data must survive a power loss with as few flushes as possible. Linux flushes a whole file
system in one call (`syncfs`), which costs about as much as one `fsync`. Elsewhere each file and
folder is flushed separately; on macOS only `F_FULLFSYNC` reaches the disk itself.

Linux reports a file's birth time by `statx`. The change time is no substitute where the birth time
is known: every edit in place changes it.

Data that a killed process wrote is complete. Only a restart of the machine therefore distinguishes
a file torn by a power loss from one that another program shortened.

Sources: renameat2(2), syncfs(2), fsync(2), statx(2), proc_sys_kernel(5) on `random/boot_id`,
clock_gettime(2) on `CLOCK_BOOTTIME`; Apple's renameatx_np(2), sysctl(3) on `kern.bootsessionuuid`,
and fsync(2) on F_FULLFSYNC.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import itertools
import os
import stat
import struct
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

from obsidian_agent.vault.paths.rules import with_mark

PATH_FLAGS: Final = getattr(os, "O_PATH", 0) | getattr(os, "O_CLOEXEC", 0)
"""Flags of a handle for queries only: it needs no read permission and wakes no FIFO or device."""

CAN_OPEN_FOLDERS = os.name == "posix"
"""True if a folder can be opened, and therefore flushed."""

_UNSUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})
_NO_HARD_LINKS = _UNSUPPORTED | {errno.EPERM, errno.EMLINK, errno.EXDEV}
_NO_FLUSH = _UNSUPPORTED | {errno.EPERM}

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform.startswith("linux") else None
_syncfs = getattr(_libc, "syncfs", None)
_statx = getattr(_libc, "statx", None)
if _statx is not None:
    _statx.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_char_p)

HAS_STATX: Final = _statx is not None and PATH_FLAGS != 0
"""True if `birth_time_ns` can get more from a handle than `os.fstat` returns."""

_STATX_BTIME = 0x800
_AT_EMPTY_PATH = 0x1000
_STATX_SIZE = 256
_BTIME = struct.Struct("=qI")
_BTIME_OFFSET = 80

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_BOOT_ID_SIZE: Final = 64

_RENAME_ARGUMENTS = (
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.c_uint,
)

Rename = Callable[[int, bytes, int, bytes, int], int]


def _load_rename() -> tuple[Rename | None, int, int]:
    """Return the system call and its flags for "no replace" and "exchange"."""
    if sys.platform.startswith("linux"):
        name, no_replace, exchange = "renameat2", 1, 2
    elif sys.platform == "darwin":
        name, no_replace, exchange = "renameatx_np", 4, 2
    else:
        return None, 0, 0
    call = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if call is not None:
        call.argtypes = _RENAME_ARGUMENTS
        call.restype = ctypes.c_int
    return call, no_replace, exchange


_rename, _NO_REPLACE, _EXCHANGE = _load_rename()


def _try_rename(flag: int, folder_fd: int, name: str, new_folder_fd: int, new_name: str) -> bool:
    """Make the system call. Return False if it is not supported, raise OSError if it fails."""
    if _rename is None:
        return False
    if _rename(folder_fd, os.fsencode(name), new_folder_fd, os.fsencode(new_name), flag) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), name, None, new_name)


def rename_to_free(folder_fd: int, name: str, new_folder_fd: int, new_name: str) -> None:
    """Rename a file or folder to a free name. Raise FileExistsError if the name is in use."""
    if _try_rename(_NO_REPLACE, folder_fd, name, new_folder_fd, new_name):
        return
    if stat.S_ISREG(os.stat(name, dir_fd=folder_fd, follow_symlinks=False).st_mode):
        try:
            os.link(
                name,
                new_name,
                src_dir_fd=folder_fd,
                dst_dir_fd=new_folder_fd,
                follow_symlinks=False,
            )
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
        else:
            try:
                os.unlink(name, dir_fd=folder_fd)
            except OSError:
                os.unlink(new_name, dir_fd=new_folder_fd)
                raise
            return
    try:
        os.stat(new_name, dir_fd=new_folder_fd, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(name, new_name, src_dir_fd=folder_fd, dst_dir_fd=new_folder_fd)
    else:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new_name)


def rename_as_recovered(folder_fd: int, name: str, target: str) -> str:
    """Rename a file to the first free name of the form `<target> (recovered)`. Return that name."""
    for count in itertools.count(1):
        free = with_mark(target, f" (recovered{'' if count == 1 else f' {count}'})")
        try:
            rename_to_free(folder_fd, name, folder_fd, free)
        except FileExistsError:
            continue
        return free
    raise AssertionError


def exchange(folder_fd: int, name: str, new_name: str) -> bool:
    """Exchange two names of one folder atomically.

    Return False if the system cannot do that. Raise OSError if a name is missing.
    """
    return _try_rename(_EXCHANGE, folder_fd, name, folder_fd, new_name)


def flush_file_system(fd: int) -> bool:
    """Flush the file system that contains `fd`.

    Return False, with nothing flushed, if the call is missing. Raise OSError if a write was lost.
    """
    if _syncfs is None:
        return False
    if _syncfs(fd) == 0:
        return True
    number = ctypes.get_errno()
    if number in _NO_FLUSH:
        return False
    raise OSError(number, os.strerror(number))


def flush_disk(fd: int) -> None:
    """Flush the disk's own cache after the last `fsync`, which on macOS does not do that."""
    if sys.platform == "darwin":
        import fcntl

        with contextlib.suppress(OSError):
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)


def flush_folder(fd: int) -> None:
    """Flush the names in an open folder. File systems that do not support this are ignored."""
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in _NO_FLUSH and error.errno != errno.EBADF:
            raise


def birth_time_ns(info: os.stat_result, fd: int | None = None) -> int:
    """Return a file's birth time in nanoseconds since the epoch, or else its change time.

    `info` is the status of the file, `fd` a handle of it: Linux gives the birth time only for one.
    """
    if fd is not None and _statx is not None:
        buffer = ctypes.create_string_buffer(_STATX_SIZE)
        if (
            _statx(fd, b"", _AT_EMPTY_PATH, _STATX_BTIME, buffer) == 0
            and struct.unpack_from("=I", buffer)[0] & _STATX_BTIME
        ):
            seconds, nanoseconds = _BTIME.unpack_from(buffer, _BTIME_OFFSET)
            return int(seconds * 1_000_000_000 + nanoseconds)
    birth_time: float | None = getattr(info, "st_birthtime", None)
    return info.st_ctime_ns if birth_time is None else int(birth_time * 1_000_000_000)


@cache
def boot_id() -> str | None:
    """Return the identifier of the machine's current boot, or None if the system has none."""
    try:
        if sys.platform == "darwin":
            return _darwin_boot_id()
        return _BOOT_ID.read_text("ascii").strip() or None
    except (OSError, ValueError):
        return None


def _darwin_boot_id() -> str | None:
    buffer, size = ctypes.create_string_buffer(_BOOT_ID_SIZE), ctypes.c_size_t(_BOOT_ID_SIZE)
    failed = ctypes.CDLL(None).sysctlbyname(
        b"kern.bootsessionuuid", buffer, ctypes.byref(size), None, ctypes.c_size_t(0)
    )
    return None if failed else buffer.value.decode("ascii") or None


def started_since(boot: str | None) -> int | None:
    """Return the time of the last boot, in nanoseconds since the epoch, if it is not `boot`.

    Return None if the machine was not restarted since `boot`, or if that is unknown.
    """
    current = boot_id()
    if boot is None or current is None or boot == current:
        return None
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    uptime = time.monotonic_ns() if clock is None else time.clock_gettime_ns(clock)
    return time.time_ns() - uptime
