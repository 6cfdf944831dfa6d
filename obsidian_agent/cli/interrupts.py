"""Ctrl+C, SIGTERM and a closed terminal: an answer and 130 before a run, in a run a stop after the current file, the second one at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


def ending_signals() -> list[signal.Signals]:
    """The signals that ask a program to end; those that are ignored (nohup) stay ignored."""
    names = ("SIGINT", "SIGTERM", "SIGHUP")
    known = [signal.Signals[name] for name in names if name in signal.Signals.__members__]
    return [number for number in known if signal.getsignal(number) != signal.SIG_IGN]


def end_politely() -> None:
    """Let every such signal end a command as Ctrl+C does: files closed, the terminal as it was, an answer."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        for number in ending_signals():
            if number != signal.SIGINT:
                signal.signal(number, stop)


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """An event that those signals set while the block runs."""
    cancel = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        if cancel.is_set():
            raise KeyboardInterrupt
        cancel.set()

    before = {number: signal.signal(number, stop) for number in ending_signals()}
    try:
        yield cancel
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
