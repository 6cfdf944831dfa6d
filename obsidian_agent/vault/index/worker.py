"""A process that scans one part of a vault.

The process is this module, started anew: no fork (the program may have threads), no import of the program's main module. A process that
fails costs nothing but time: then the part is scanned by whoever asked.
"""

from __future__ import annotations

import marshal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import IO, Any, NamedTuple, Self

from obsidian_agent.vault.index.chunk import Part, scan_part

_LENGTH = 8


class Job(NamedTuple):
    """The vault's folder, ids and paths of the files to scan, and the new file that gets the texts of the notes among them."""

    real_path: str
    ids: Sequence[int]
    paths: Sequence[str]
    pack: str


class Worker:
    """A process that waits for its job; it ends with the block."""

    def __init__(self) -> None:
        import subprocess  # not in the process itself

        # -P: the folder one happens to be in may be a vault, and nothing in a vault is ever imported.
        command = [sys.executable, "-P", "-m", __name__]
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

    def scan(self, job: Job, report: Callable[[int], None]) -> Part | None:
        """Hand over the job and wait for what was found, None when the process failed; `report` is told how many files are done."""
        try:
            _put(self._questions, (job.real_path, list(job.ids), list(job.paths), job.pack))
            while isinstance(message := _get(self._answers), int):
                report(message)
            return Part(*message)
        except (OSError, EOFError, ValueError, TypeError):
            return None
        finally:
            self._answers.close()


def _put(file: IO[bytes], message: Any) -> None:
    data = marshal.dumps(message)
    file.write(len(data).to_bytes(_LENGTH, "big") + data)
    file.flush()


def _get(file: IO[bytes]) -> Any:
    length = int.from_bytes(file.read(_LENGTH), "big")
    return marshal.loads(file.read(length))


def _main() -> None:
    real_path, ids, paths, pack = _get(sys.stdin.buffer)
    answers = sys.stdout.buffer
    _put(answers, tuple(scan_part(real_path, ids, paths, pack, lambda count: _put(answers, count))))


if __name__ == "__main__":
    _main()
