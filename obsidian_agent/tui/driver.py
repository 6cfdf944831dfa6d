"""The terminal that the app draws on. It may be gone at any moment: then nothing waits for it any more, and the app ends."""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textual.driver import Driver


def with_hangup_detection(driver: type[Driver], gone: Callable[[], object]) -> type[Driver]:
    """A driver that says, from a thread, that its terminal is gone, and draws into nothing from then on.

    In Textual's own an error ends the thread that draws, and whoever draws waits for it for good (textual/drivers/_writer_thread.py: 30 pieces
    wait at most); the thread that reads hears of nothing, and asks again at once, for good. A signal need not come: `nohup`, `su -c`.
    """

    class Outliving(driver):  # type: ignore[misc, valid-type]
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            if (file := getattr(self, "_file", None)) is not None:
                if not file.isatty() and sys.__stdout__ is not None:
                    file = sys.__stdout__  # Textual draws on standard error, which may be a log
                self._file = _Output(file, gone)
                threading.Thread(
                    target=_wait_for_end, args=(file.fileno(), gone), daemon=True
                ).start()

    return Outliving


def _wait_for_end(terminal: int, gone: Callable[[], object]) -> None:
    if hasattr(select, "poll"):
        asked = select.poll()
        asked.register(terminal, 0)  # the end is told unasked
        if any(event & select.POLLHUP for _, event in asked.poll()):
            gone()


class _Output:
    """A terminal's file, of which nobody hears an error but `gone`; from then on it leads nowhere, also what is written when Python ends."""

    def __init__(self, file: IO[str], gone: Callable[[], object]) -> None:
        self._file, self._gone = file, gone

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
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._file.fileno())
            os.close(nowhere)
            self._gone()
