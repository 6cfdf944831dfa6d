"""Renames that never lose a file: onto a free name only, and the exchange of two names.

Linux has both as `renameat2`, macOS as `renameatx_np`. Where the kernel or the file system lacks them, `rename_to_free` falls back to a
hard link (files), or to a look before a plain rename (folders), and `exchange` answers False so that the caller can do without.

Sources: renameat2(2); Apple's renameatx_np(2).
"""

from __future__ import annotations

import ctypes
import errno
import itertools
import os
import stat
import sys
from collections.abc import Callable

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
            os.link(name, new_name, src_dir_fd=folder_fd, dst_dir_fd=new_folder_fd, follow_symlinks=False)
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


def rename_beside(folder_fd: int, name: str, target: str) -> str:
    """Rename a file to the first free name like `target` that says where it comes from; that name."""
    stem, dot, suffix = target.rpartition(".")
    stem, suffix = (stem, dot + suffix) if stem else (target, "")
    for count in itertools.count(1):
        free = f"{stem} (recovered{'' if count == 1 else f' {count}'}){suffix}"
        try:
            rename_to_free(folder_fd, name, folder_fd, free)
        except FileExistsError:
            continue
        return free
    raise AssertionError


def exchange(folder_fd: int, name: str, new_name: str) -> bool:
    """Let two names of one folder change places in one step. False when the system cannot; OSError when one of them is missing."""
    return _called(_EXCHANGE, folder_fd, name, folder_fd, new_name)
