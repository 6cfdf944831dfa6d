"""System calls that Python does not offer, or offers too late: renames that never lose a file, flushes of a whole disk, birth times.

Renames go onto a free name only, or exchange two names. Linux has both as `renameat2`, macOS as `renameatx_np`. Where the kernel or the file
system lacks them, `rename_to_free` falls back to a hard link (files), or to a look before a plain rename (folders), and `exchange` answers
False so that the caller can do without.

What was written survives a power loss with as few flushes as the system allows: Linux flushes a whole file system in one call (`syncfs`), which
costs about as much as one `fsync`. Elsewhere each file and folder is flushed by itself; on macOS `F_FULLFSYNC` is the call that reaches the
disk.

When a file was made Linux tells by `statx`. The change time is no substitute where the birth time is to be had: every edit in place moves it.

Only a start of the machine can tell a file that a power cut has torn from one that somebody has shortened: what a process wrote before it was
killed is whole.

Sources: renameat2(2), syncfs(2), fsync(2), statx(2), proc_sys_kernel(5) on `random/boot_id`, clock_gettime(2) on `CLOCK_BOOTTIME`; Apple's
renameatx_np(2), sysctl(3) on `kern.bootsessionuuid`, and fsync(2) on F_FULLFSYNC.
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

from obsidian_agent.vault.paths.rules import marked

_LACKING = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})
_LINKLESS = _LACKING | {errno.EPERM, errno.EMLINK, errno.EXDEV}
_ARGUMENTS = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)

Rename = Callable[[int, bytes, int, bytes, int], int]


def _system_call() -> tuple[Rename | None, int, int]:
    """The call with its flags for "free name only" and "exchange"."""
    if sys.platform.startswith("linux"):
        name, free, exchange = "renameat2", 1, 2
    elif sys.platform == "darwin":
        name, free, exchange = "renameatx_np", 4, 2
    else:
        return None, 0, 0
    call = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if call is not None:
        call.argtypes = _ARGUMENTS
        call.restype = ctypes.c_int
    return call, free, exchange


_rename, _FREE, _EXCHANGE = _system_call()


def _called(flag: int, folder_fd: int, name: str, new_folder_fd: int, new_name: str) -> bool:
    """Make the call; False when the system cannot do it, OSError when it refused."""
    if _rename is None:
        return False
    if _rename(folder_fd, os.fsencode(name), new_folder_fd, os.fsencode(new_name), flag) == 0:
        return True
    number = ctypes.get_errno()
    if number in _LACKING:
        return False
    raise OSError(number, os.strerror(number), name, None, new_name)


def rename_to_free(folder_fd: int, name: str, new_folder_fd: int, new_name: str) -> None:
    """Rename a file or folder onto a name that is free; FileExistsError when it is not."""
    if _called(_FREE, folder_fd, name, new_folder_fd, new_name):
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
            if error.errno not in _LINKLESS:
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
    """Rename a file to the first free name like `target` that says where it comes from. Return that name."""
    for count in itertools.count(1):
        free = marked(target, f" (recovered{'' if count == 1 else f' {count}'})")
        try:
            rename_to_free(folder_fd, name, folder_fd, free)
        except FileExistsError:
            continue
        return free
    raise AssertionError


def exchange(folder_fd: int, name: str, new_name: str) -> bool:
    """Let two names of one folder change places in one step. False when the system cannot; OSError when one of them is missing."""
    return _called(_EXCHANGE, folder_fd, name, folder_fd, new_name)


def write_all(fd: int, data: bytes) -> None:
    """Write everything, however often the system takes only a part."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


CAN_OPEN_FOLDERS = os.name == "posix"
"""Whether a folder can be opened, and so flushed."""

_MISSING = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM})
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform.startswith("linux") else None
_syncfs = getattr(_libc, "syncfs", None)


def flush_file_system(fd: int) -> bool:
    """Flush the file system that `fd` is on. False where the call is missing (nothing was flushed then); OSError when a write was lost."""
    if _syncfs is None:
        return False
    if _syncfs(fd) == 0:
        return True
    number = ctypes.get_errno()
    if number in _MISSING:
        return False
    raise OSError(number, os.strerror(number))


def flush_disk(fd: int) -> None:
    """Empty the disk's own cache where `fsync` stops short of that (macOS); call it after the last `fsync`."""
    if sys.platform == "darwin":
        import fcntl

        with contextlib.suppress(OSError):
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)


def flush_folder(fd: int) -> None:
    """Flush the names in an open folder. Some file systems know no such thing, which is no error."""
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in _MISSING and error.errno != errno.EBADF:
            raise


PATH_FLAGS: Final = getattr(os, "O_PATH", 0) | getattr(os, "O_CLOEXEC", 0)
"""Flags of a handle that is good for asking only: it needs no permission to read and wakes no FIFO or device."""

_STATX_BTIME = 0x800
_AT_EMPTY_PATH = 0x1000
_SIZE = 256
_BTIME = struct.Struct("=qI")
_BTIME_OFFSET = 80

_statx = getattr(_libc, "statx", None)
if _statx is not None:
    _statx.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_char_p)

KNOWN_BY_HANDLE: Final = _statx is not None and PATH_FLAGS != 0
"""Whether `born_ns` can learn more from a handle than `os.fstat` says."""


def born_ns(info: os.stat_result, fd: int | None = None) -> int:
    """The birth time in nanoseconds since the epoch, of the file behind `fd` too where that helps; else the change time."""
    if fd is not None and _statx is not None:
        buffer = ctypes.create_string_buffer(_SIZE)
        if (
            _statx(fd, b"", _AT_EMPTY_PATH, _STATX_BTIME, buffer) == 0
            and struct.unpack_from("=I", buffer)[0] & _STATX_BTIME
        ):
            seconds, nanoseconds = _BTIME.unpack_from(buffer, _BTIME_OFFSET)
            return int(seconds * 1_000_000_000 + nanoseconds)
    born: float | None = getattr(info, "st_birthtime", None)
    return info.st_ctime_ns if born is None else int(born * 1_000_000_000)


_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_BOOT_NAME_SIZE: Final = 64


@cache
def boot_id() -> str | None:
    """A name for the time since the machine's last start; None where the system gives none."""
    try:
        if sys.platform == "darwin":
            return _darwin_boot_id()
        return _BOOT_ID.read_text("ascii").strip() or None
    except (OSError, ValueError):
        return None


def _darwin_boot_id() -> str | None:
    buffer, size = ctypes.create_string_buffer(_BOOT_NAME_SIZE), ctypes.c_size_t(_BOOT_NAME_SIZE)
    failed = ctypes.CDLL(None).sysctlbyname(
        b"kern.bootsessionuuid", buffer, ctypes.byref(size), None, ctypes.c_size_t(0)
    )
    return None if failed else buffer.value.decode("ascii") or None


def started_since(boot: str | None) -> int | None:
    """When the machine was started, in nanoseconds since the epoch, if that was after the start with this name; None if not, or unknown."""
    now = boot_id()
    if boot is None or now is None or boot == now:
        return None
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    running = time.monotonic_ns() if clock is None else time.clock_gettime_ns(clock)
    return time.time_ns() - running
