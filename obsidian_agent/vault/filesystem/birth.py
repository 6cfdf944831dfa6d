"""When a file was made. Linux knows it, Python asks for it from 3.12 on (and not on Linux), so `statx` is called directly.

The change time is no substitute where the birth time is to be had: every edit in place moves it.

Source: statx(2).
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from typing import Final

PATH_FLAGS: Final = getattr(os, "O_PATH", 0) | getattr(os, "O_CLOEXEC", 0)
"""Flags of a handle that is good for asking only: it needs no permission to read and wakes no FIFO or device."""

_STATX_BTIME = 0x800
_AT_EMPTY_PATH = 0x1000
_SIZE = 256
_BTIME = struct.Struct("=qI")
_BTIME_OFFSET = 80

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform.startswith("linux") else None
_statx = getattr(_libc, "statx", None)
if _statx is not None:
    _statx.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_char_p)

KNOWN_BY_HANDLE: Final = _statx is not None and PATH_FLAGS != 0
"""Whether `born_ns` can learn more from a handle than `os.fstat` says."""


def born_ns(info: os.stat_result, fd: int | None = None) -> int:
    """The birth time in nanoseconds since the epoch, of the file behind `fd` too where that helps; else the change time."""
    if fd is not None and _statx is not None:
        buffer = ctypes.create_string_buffer(_SIZE)
        if _statx(fd, b"", _AT_EMPTY_PATH, _STATX_BTIME, buffer) == 0 and struct.unpack_from("=I", buffer)[0] & _STATX_BTIME:
            seconds, nanoseconds = _BTIME.unpack_from(buffer, _BTIME_OFFSET)
            return int(seconds * 1_000_000_000 + nanoseconds)
    born: float | None = getattr(info, "st_birthtime", None)
    return info.st_ctime_ns if born is None else int(born * 1_000_000_000)
