"""Work of the index in a process of its own: a module of this package, started anew.

No fork (the program may have threads), no import of the program's main module. Question and answer go over pipes, as Python serialises plain
values. A process that fails costs nothing but time: then the work is done by whoever asked.
"""

from __future__ import annotations

import marshal
import os
import queue
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import IO, Any, Final, Self

_LENGTH: Final = 8
_LOOK_SECONDS: Final = 0.1


class Cancelled(Exception):
    """The caller wants no index any more. A signal, never seen outside of the index."""


class ChildProcess:
    """A process that waits for its question. It ends with the block, and with the program that asked, however that ends."""

    def __init__(self, module: str) -> None:
        """Start a module whose main calls `answer`. OSError when the system does not let it."""
        import subprocess  # not in the process itself

        # -P: the folder one happens to be in may be a vault, and nothing in a vault is ever imported.
        command = [sys.executable, "-P", "-m", module]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._questions, self._answers = self._process.stdin, self._process.stdout

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.kill()
        with suppress(BrokenPipeError):
            self._questions.close()
        self._process.wait()

    def ask(self, question: object, report: Callable[[Any], None]) -> Any:
        """Hand over the question and wait for the answer, None when the process failed; `report` is told what it says meanwhile."""
        try:
            _put(self._questions, question)
            while True:
                is_answer, message = _get(self._answers)
                if is_answer:
                    return message
                report(message)
        except (OSError, EOFError, ValueError, TypeError):
            return None
        finally:
            self._answers.close()


def ask_all(
    children: Sequence[ChildProcess], questions: Sequence[object], report: Callable[[int, Any], None], cancelled: Callable[[], bool]
) -> list[Any]:
    """The answers of some processes, each to its own question; `report` is told in this thread what they say meanwhile. Raises Cancelled."""
    heard: queue.SimpleQueue[tuple[int, bool, Any]] = queue.SimpleQueue()

    def wait(number: int, child: ChildProcess, question: object) -> None:
        answer = child.ask(question, lambda message: heard.put((number, False, message)))
        heard.put((number, True, answer))

    for number, (child, question) in enumerate(zip(children, questions, strict=True)):
        threading.Thread(target=wait, args=(number, child, question), name="index-child", daemon=True).start()
    answers: list[Any] = [None] * len(children)
    waiting = len(children)
    while waiting:
        if cancelled():
            raise Cancelled
        try:
            number, is_answer, message = heard.get(timeout=_LOOK_SECONDS)
        except queue.Empty:
            continue
        if is_answer:
            answers[number], waiting = message, waiting - 1
        else:
            report(number, message)
    return answers


def answer(work: Callable[[Any, Callable[[object], None]], object]) -> None:
    """In such a process: answer the one question. `work` gets it, and a function that tells the program something meanwhile."""
    question = _get(sys.stdin.buffer)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    out = sys.stdout.buffer
    _put(out, (True, work(question, lambda message: _put(out, (False, message)))))


def _end_with_parent() -> None:
    # The pipe closes when the program that asked is gone. Not through `sys.stdin`: an interpreter cannot end while a thread waits in there.
    os.read(0, 1)
    os._exit(1)


def _put(file: IO[bytes], message: Any) -> None:
    data = marshal.dumps(message)
    file.write(len(data).to_bytes(_LENGTH, "big") + data)
    file.flush()


def _get(file: IO[bytes]) -> Any:
    length = int.from_bytes(file.read(_LENGTH), "big")
    return marshal.loads(file.read(length))
