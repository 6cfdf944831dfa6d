"""Ctrl+C in a run: the first one stops it after the current file, the second one is Python's own."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set while the block runs."""
    cancel = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        if cancel.is_set():
            raise KeyboardInterrupt
        cancel.set()

    signals = [signal.SIGINT, signal.SIGTERM]
    before = {number: signal.signal(number, stop) for number in signals}
    try:
        yield cancel
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
