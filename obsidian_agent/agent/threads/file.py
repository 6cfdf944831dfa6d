"""The file of one thread: lines are added, never changed; a rewrite replaces the whole file or nothing.

A kill at any moment loses nothing that `add` has returned from, and a power loss nothing that came before a `flush`.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from obsidian_agent.agent.threads.records import Record, line_of, records_in
from obsidian_agent.errors import ConfigError

_ADD = os.O_RDWR | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


@dataclass(slots=True)
class ThreadFile:
    """One thread's file. Safe to be used from several threads of the program."""

    path: Path
    size: int = -1
    """Bytes when this program last read or wrote it; -1 before."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def changed(self) -> bool:
        """Whether another program has added to it since."""
        try:
            found = self.path.stat()
            return stat.S_ISREG(found.st_mode) and found.st_size != self.size
        except OSError:
            return False

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep other programs from working in the same thread. Raises `ConfigError` THREAD_BUSY where one does already."""
        try:
            fd = os.open(self.path, os.O_RDONLY)
        except OSError:
            fd = -1  # saving will say what is wrong
        try:
            if fd >= 0 and not _lock_file(fd):
                message = "This conversation is being worked on in another window."
                raise ConfigError(message, code="THREAD_BUSY", hint="Wait, or begin another one.")
            yield
        finally:
            if fd >= 0:
                os.close(fd)

    def add(self, *records: Record, durable: bool = False, create: bool = False) -> None:
        """Add records; with `durable` they survive a power loss too. Raises `ConfigError` THREAD_NOT_SAVED.

        Without `create` there must be a file: one that was deleted meanwhile does not come back.
        """
        data = b"".join(line_of(record) for record in records)
        with self._lock, _told(self.path):
            fd = os.open(self.path, _ADD | (os.O_CREAT if create else 0), 0o600)
            try:
                if os.lseek(fd, 0, os.SEEK_END) and os.lseek(fd, -1, os.SEEK_END) >= 0 and os.read(fd, 1) != b"\n":
                    data = b"\n" + data  # a line that a crash cut off stays one of its own
                while data:
                    data = data[os.write(fd, data) :]
                if durable:
                    os.fsync(fd)
                self.size = os.fstat(fd).st_size
            finally:
                os.close(fd)

    def read(self) -> tuple[list[dict[str, object]], int]:
        """All records, and how many lines were damaged. FileNotFoundError when there is none."""
        data = self.path.read_bytes()
        self.size = len(data)
        return records_in(data)

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
                self.size = os.fstat(fd).st_size
            finally:
                os.close(fd)
            os.replace(fresh, self.path)


def _lock_file(fd: int) -> bool:
    """Whether nobody else holds it. Systems without such locks let everybody in."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


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
