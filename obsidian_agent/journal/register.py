"""The register of a journal: one short line for each record, in a file of its own beside the database.

It is written, and flushed, when a record is durable and before the vault is touched. So a database that has lost its last pages, or its
log, is noticed, and the runs that are gone can be named. A line is `NUMBER ID KIND HASH CHECKSUM`. It may lag behind the database after a
crash, never run ahead of it.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from obsidian_agent.vault import durable

FILE: Final = "journal.register"
_TITLE: Final = b"obsidian-agent register 1\n"
_LINE: Final = re.compile(rb"(?P<entry>(\d{1,18}) ([0-9a-f-]{1,64}) (run|undo|redo) ([0-9a-f]{64})) (?P<sum>[0-9a-f]{8})")


@dataclass(frozen=True, slots=True)
class Entry:
    """A record that was made at some time."""

    seq: int
    run_id: str
    kind: str
    hash: bytes

    def line(self) -> bytes:
        """As it is written."""
        text = f"{self.seq} {self.run_id} {self.kind} {self.hash.hex()}".encode()
        return b"%s %08x\n" % (text, zlib.crc32(text))


@dataclass(frozen=True, slots=True)
class Listed:
    """What the file says. `whole`: every line could be read; False also where the file is missing."""

    entries: dict[int, Entry]
    whole: bool

    @property
    def last(self) -> int:
        """The highest number in it, 0 when there is none."""
        return max(self.entries, default=0)


class Register:
    """The file. Its methods raise OSError."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / FILE

    def read(self) -> Listed:
        """Everything that can be read of it."""
        try:
            text = self.file.read_bytes()
        except FileNotFoundError:
            return Listed({}, False)
        lines = text.removeprefix(_TITLE).split(b"\n")
        found = [entry for entry in map(_entry, lines[:-1]) if entry is not None]
        entries = {entry.seq: entry for entry in found}
        return Listed(entries, text.startswith(_TITLE) and not lines[-1] and len(entries) == len(lines) - 1)

    def add(self, entries: Iterable[Entry]) -> None:
        """Add lines and flush them; when that fails, they are not there."""
        fd = os.open(self.file, os.O_WRONLY | os.O_APPEND | getattr(os, "O_CLOEXEC", 0))
        try:
            size = os.fstat(fd).st_size
            try:
                os.write(fd, b"".join(entry.line() for entry in entries))
                os.fsync(fd)
                durable.flush_disk(fd)
            except OSError:
                with suppress(OSError):
                    os.ftruncate(fd, size)
                raise
        finally:
            os.close(fd)

    def write(self, entries: Iterable[Entry]) -> None:
        """Write the file anew, whole or not at all; without entries that could not be read again."""
        lines = [entry.line() for entry in sorted(entries, key=lambda entry: entry.seq) if _entry(entry.line()[:-1]) == entry]
        draft = self.file.with_name(f"{FILE}.new")
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            with os.fdopen(fd, "wb", closefd=False) as file:
                file.write(_TITLE + b"".join(lines))
            os.fsync(fd)
        finally:
            os.close(fd)
        draft.replace(self.file)
        if durable.FOLDERS_OPEN:
            folder = os.open(self.file.parent, os.O_RDONLY)
            try:
                durable.flush_folder(folder)
            finally:
                os.close(folder)


def _entry(line: bytes) -> Entry | None:
    match = _LINE.fullmatch(line)
    if match is None or int(match["sum"], 16) != zlib.crc32(match["entry"]):
        return None
    return Entry(int(match[2]), match[3].decode(), match[4].decode(), bytes.fromhex(match[5].decode()))
