"""When this machine was started. Only a start can tell a file that a power cut has torn from one that somebody has shortened.

What a process wrote before it was killed is whole: the system keeps it. Bytes are lost only when the machine itself goes down.

Sources: proc_sys_kernel(5) on `random/boot_id`; Apple's sysctl(3), `kern.bootsessionuuid`; clock_gettime(2) on `CLOCK_BOOTTIME`.
"""

from __future__ import annotations

import ctypes
import sys
import time
from functools import cache
from pathlib import Path
from typing import Final

_LINUX: Final = Path("/proc/sys/kernel/random/boot_id")
_SIZE: Final = 64


@cache
def boot_id() -> str | None:
    """A name for the time since the machine's last start; None where the system gives none."""
    try:
        if sys.platform == "darwin":
            return _darwin()
        return _LINUX.read_text("ascii").strip() or None
    except (OSError, ValueError):
        return None


def _darwin() -> str | None:
    buffer, size = ctypes.create_string_buffer(_SIZE), ctypes.c_size_t(_SIZE)
    failed = ctypes.CDLL(None).sysctlbyname(b"kern.bootsessionuuid", buffer, ctypes.byref(size), None, ctypes.c_size_t(0))
    return None if failed else buffer.value.decode("ascii") or None


def started_since(boot: str | None) -> int | None:
    """When the machine was started, in nanoseconds since the epoch, if that was after the start with this name; None if not, or unknown."""
    now = boot_id()
    if boot is None or now is None or boot == now:
        return None
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    running = time.monotonic_ns() if clock is None else time.clock_gettime_ns(clock)
    return time.time_ns() - running
