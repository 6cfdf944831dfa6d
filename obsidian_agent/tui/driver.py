"""A Textual driver for terminals that may close at any moment, which then ends the app."""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textual.driver import Driver


def with_hangup_detection(driver: type[Driver], on_hangup: Callable[[], object]) -> type[Driver]:
    """Return a driver that calls `on_hangup` from a thread and then discards its output.

    In Textual's drivers a write error ends the writer thread, and the app blocks once the queue of
    30 items is full (textual/drivers/_writer_thread.py); the reader thread polls in a busy loop. A
    signal need not arrive, for instance below `nohup` or `su -c`.
    """

    class HangupDriver(driver):  # type: ignore[misc, valid-type]
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            if (file := getattr(self, "_file", None)) is not None:
                if not file.isatty() and sys.__stdout__ is not None:
                    file = sys.__stdout__  # standard error, on which Textual draws, may be a log
                self._file = _Output(file, on_hangup)
                threading.Thread(
                    target=_wait_for_hangup, args=(file.fileno(), on_hangup), daemon=True
                ).start()

    return HangupDriver


def _wait_for_hangup(terminal: int, on_hangup: Callable[[], object]) -> None:
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(terminal, 0)  # POLLHUP is always reported
        if any(event & select.POLLHUP for _, event in poll.poll()):
            on_hangup()


class _Output:
    """The file of a terminal. A write error calls `on_hangup` and redirects the file to /dev/null.

    Python's own output at exit then goes there as well.
    """

    def __init__(self, file: IO[str], on_hangup: Callable[[], object]) -> None:
        self._file, self._on_hangup = file, on_hangup

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, text: str) -> int:
        self._attempt(lambda: self._file.write(text))
        return len(text)

    def flush(self) -> None:
        self._attempt(self._file.flush)

    def _attempt(self, call: Callable[[], object]) -> None:
        try:
            call()
        except OSError:
            devnull = os.open(os.devnull, os.O_WRONLY)
            os.dup2(devnull, self._file.fileno())
            os.close(devnull)
            self._on_hangup()
