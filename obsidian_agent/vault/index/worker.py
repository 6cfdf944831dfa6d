"""Worker processes of the index: one task each, over pipes.

A worker is a module started with `-m`, not a fork (the program may have threads) and without the
program's main module. Task, progress and result are plain values that `marshal` serializes. A
worker that fails only costs time: its result is None, and the caller does the work itself.
"""

from __future__ import annotations

import marshal
import os
import queue
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO, Any, Final, Self

_LENGTH_BYTES: Final = 8
_POLL_SECONDS: Final = 0.1


class IndexingCancelled(Exception):
    """The caller no longer needs the index. Raised and caught inside this package only."""


class WorkerProcess:
    """A process that waits for its task. It ends with the block, or when its parent ends."""

    def __init__(self, module: str) -> None:
        """Start a module that calls `serve`. Raise OSError if no process can be started."""
        import subprocess  # not needed in the worker itself

        # -P: the current folder may be a vault, and nothing in a vault is ever imported.
        command = [sys.executable, "-P", "-m", module]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.kill()
        with suppress(BrokenPipeError):
            self._input.close()
        self._process.wait()

    def run(self, task: object, on_progress: Callable[[Any], None]) -> Any:
        """Send the task and wait for its result. Return None if the process failed.

        `on_progress` receives the progress messages that arrive before the result.
        """
        try:
            _send(self._input, task)
            while True:
                is_result, message = _receive(self._output)
                if is_result:
                    return message
                on_progress(message)
        except (OSError, EOFError, ValueError, TypeError):
            return None
        finally:
            self._output.close()


def run_workers(
    workers: Sequence[WorkerProcess],
    tasks: Sequence[object],
    on_progress: Callable[[int, Any], None],
    is_cancelled: Callable[[], bool],
) -> list[Any]:
    """Run one task in each worker and return the results in the same order.

    `on_progress` is called in this thread with the worker's number and its message. Raise
    IndexingCancelled.
    """
    messages: queue.SimpleQueue[tuple[int, bool, Any]] = queue.SimpleQueue()

    def run(number: int, worker: WorkerProcess, task: object) -> None:
        result = worker.run(task, lambda message: messages.put((number, False, message)))
        messages.put((number, True, result))

    for number, (worker, task) in enumerate(zip(workers, tasks, strict=True)):
        threading.Thread(
            target=run, args=(number, worker, task), name="index-child", daemon=True
        ).start()
    results: list[Any] = [None] * len(workers)
    running = len(workers)
    while running:
        if is_cancelled():
            raise IndexingCancelled
        try:
            number, is_result, message = messages.get(timeout=_POLL_SECONDS)
        except queue.Empty:
            continue
        if is_result:
            results[number] = message
            running -= 1
        else:
            on_progress(number, message)
    return results


def serve(work: Callable[[Any, Callable[[object], None]], object]) -> None:
    """Run the one task of a worker process: `work` gets it and a function to report progress."""
    task = _receive(sys.stdin.buffer)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    out = sys.stdout.buffer
    _send(out, (True, work(task, lambda message: _send(out, (False, message)))))


def _exit_with_parent() -> None:
    # The pipe closes when the parent ends. `os.read`, because an interpreter cannot shut down while
    # a thread waits inside `sys.stdin`.
    os.read(0, 1)
    os._exit(1)


def _send(file: IO[bytes], message: Any) -> None:
    data = marshal.dumps(message)
    file.write(len(data).to_bytes(_LENGTH_BYTES, "big") + data)
    file.flush()


def _receive(file: IO[bytes]) -> Any:
    length = int.from_bytes(file.read(_LENGTH_BYTES), "big")
    return marshal.loads(file.read(length))
