"""A garbage collection policy that keeps full passes away from user input.

A full pass over this program takes longer than the response to a key may.
"""

from __future__ import annotations

import gc
import time

NEVER = 1_000_000
"""Threshold of the oldest generation at which Python starts no full pass."""

IDLE_SECONDS = 2.0
"""Seconds without input before a full pass."""


class GcPolicy:
    """Restricts full passes to `collect_if_idle`; younger generations are collected as usual."""

    def __init__(self) -> None:
        self._thresholds: tuple[int, int, int] | None = None
        self._last_input = 0.0

    def start(self) -> None:
        """Disable automatic full passes."""
        self._thresholds = gc.get_threshold()
        gc.set_threshold(self._thresholds[0], self._thresholds[1], NEVER)

    def stop(self) -> None:
        """Restore the thresholds from before `start`."""
        if self._thresholds is not None:
            gc.set_threshold(*self._thresholds)
            self._thresholds = None

    def record_input(self) -> None:
        """Note that the user has just typed or clicked."""
        self._last_input = time.monotonic()

    def collect_if_idle(self) -> bool:
        """Do a full pass if one is due and the user is idle. Return whether it ran."""
        if (
            not gc.isenabled()
            or gc.get_count()[2] == 0
            or time.monotonic() - self._last_input < IDLE_SECONDS
        ):
            return False
        gc.collect()
        return True
