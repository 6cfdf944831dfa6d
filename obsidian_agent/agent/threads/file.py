"""The file of one thread: lines are added, never changed; a rewrite replaces the whole file or nothing.

A kill at any moment loses nothing that `add` has returned from, and a power loss nothing that came before a `flush`.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from obsidian_agent.agent.threads.records import Record, line_of, records_in
from obsidian_agent.errors import ConfigError

_ADD = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


@dataclass(slots=True)
class ThreadFile:
    """One thread's file. Safe to be used from several threads of the program."""

    path: Path
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, *records: Record, durable: bool = False) -> None:
        """Add records; with `durable` they survive a power loss too. Raises `ConfigError` THREAD_NOT_SAVED."""
        data = b"".join(line_of(record) for record in records)
        with self._lock, _told(self.path):
            fd = os.open(self.path, _ADD, 0o600)
            try:
                if os.lseek(fd, 0, os.SEEK_END) and os.lseek(fd, -1, os.SEEK_END) >= 0 and os.read(fd, 1) != b"\n":
                    data = b"\n" + data  # a line that a crash cut off stays one of its own
                while data:
                    data = data[os.write(fd, data) :]
                if durable:
                    os.fsync(fd)
            finally:
                os.close(fd)

    def read(self) -> tuple[list[dict[str, object]], int]:
        """All records, and how many lines were damaged. FileNotFoundError when there is none."""
        return records_in(self.path.read_bytes())

    def replace(self, records: Iterable[Record]) -> None:
        """Put these records in the place of all that are there: all or nothing."""
        fresh = self.path.with_name(f".{self.path.name}.new")
        with self._lock, _told(self.path):
            fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0), 0o600)
            try:
                data = b"".join(line_of(record) for record in records)
                while data:
                    data = data[os.write(fd, data) :]
                os.fsync(fd)
            finally:
                os.close(fd)
            os.replace(fresh, self.path)


class _told(contextlib.AbstractContextManager["_told"]):
    """Failures of the disk as the error that a person is told."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            reason = error.strerror or type(error).__name__
            message = f"The conversation cannot be saved in {self._path} ({reason})."
            hint = "Make room, or correct the permissions of that file."
            raise ConfigError(message, code="THREAD_NOT_SAVED", hint=hint) from error
