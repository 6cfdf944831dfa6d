"""Python's garbage collection, kept to moments when nobody waits: a full pass over a large program takes longer than a key may."""

from __future__ import annotations

import gc
import time

NEVER = 1_000_000
"""Passes of the middle generation after which a full one would come by itself."""

IDLE_SECONDS = 2.0
"""So long nothing has been typed before a full pass."""


class GcPolicy:
    """While it is on, full passes happen in `collect_if_idle` only; young objects are collected as ever."""

    def __init__(self) -> None:
        self._before: tuple[int, int, int] | None = None
        self._touched_at = 0.0

    def start(self) -> None:
        """From now on no full pass comes by itself."""
        self._before = gc.get_threshold()
        gc.set_threshold(self._before[0], self._before[1], NEVER)

    def stop(self) -> None:
        """As it was."""
        if self._before is not None:
            gc.set_threshold(*self._before)
            self._before = None

    def record_input(self) -> None:
        """The person is doing something."""
        self._touched_at = time.monotonic()

    def collect_if_idle(self) -> bool:
        """A full pass, if one is due and nobody is typing; says whether there was one."""
        if (
            not gc.isenabled()
            or gc.get_count()[2] == 0
            or time.monotonic() - self._touched_at < IDLE_SECONDS
        ):
            return False
        gc.collect()
        return True
