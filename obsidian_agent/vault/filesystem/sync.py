"""Making what was written survive a power loss, with as few flushes as the system allows.

Linux flushes a whole file system in one call (`syncfs`), which costs about as much as one `fsync`. Elsewhere each file and folder is
flushed by itself; on macOS `F_FULLFSYNC` is the call that reaches the disk.

Sources: syncfs(2), fsync(2); Apple's fsync(2) on F_FULLFSYNC.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import sys

FOLDERS_OPEN = os.name == "posix"
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
