"""The file that keeps an index between two starts: named sections of bytes, mapped into memory when it is opened.

It is written beside its place and put there whole, so that a crash leaves the old one or the new one. A file that is not exactly as it was
written, or was written by another version or kind of machine, does not open; then the index is built again.
"""

from __future__ import annotations

import json
import marshal
import mmap
import os
import sys
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

Buffer: TypeAlias = bytes | memoryview

MAGIC: Final = b"obsidian-agent index 4\n"
"""The last digit counts changes of the format."""

KIND: Final = f"{sys.byteorder} {marshal.version}"
"""What the sections depend on: the order of bytes, and the format of Python's own serialisation."""

_ALIGN: Final = 8
_CAN_MAP: Final = os.name == "posix"
"""Elsewhere a mapped file could not be replaced."""


class UnusableIndex(Exception):
    """The file is missing, damaged or of another kind. Never seen outside of the index."""


def write_sections(path: Path, sections: Mapping[str, Iterable[Buffer]]) -> None:
    """Put a file with these sections at `path`, durably. OSError when the disk says no."""
    temp = path.with_name(f"{path.name}.{os.getpid()}.new")
    table: dict[str, tuple[int, int]] = {}
    try:
        with open(temp, "wb", opener=_private) as file:
            at = file.write(MAGIC)
            checksum = 0
            for name, chunks in sections.items():
                at += file.write(b"\0" * (-at % _ALIGN))
                start = at
                for chunk in chunks:
                    checksum = zlib.crc32(chunk, checksum)
                    at += file.write(chunk)
                table[name] = (start, at - start)
            tail = json.dumps({"sections": table, "crc": checksum, "kind": KIND}).encode()
            file.write(tail + len(tail).to_bytes(8, "big"))
            file.flush()
            os.fsync(file.fileno())
        os.replace(temp, path)
    finally:
        with suppress(FileNotFoundError):
            temp.unlink()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_BINARY", 0), 0o600)


def read_sections(path: Path) -> dict[str, memoryview]:
    """The sections of a file, as they were written. UnusableIndex for anything else."""
    try:
        data = map_file(path)
    except (OSError, ValueError) as error:
        raise UnusableIndex(str(error)) from error
    if len(data) < len(MAGIC) + 8 or bytes(data[: len(MAGIC)]) != MAGIC:
        raise UnusableIndex("not an index of this version")
    size = int.from_bytes(data[-8:], "big")
    try:
        tail = json.loads(bytes(data[len(data) - 8 - size : len(data) - 8]))
        sections = {name: data[start : start + length] for name, (start, length) in tail["sections"].items()}
        checksum, kind = tail["crc"], tail["kind"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnusableIndex("cut off or damaged") from error
    actual = 0
    for section in sections.values():
        actual = zlib.crc32(section, actual)
    if actual != checksum or kind != KIND:
        raise UnusableIndex("damaged, or of another kind of machine or Python")
    return sections


def map_file(path: Path) -> memoryview:
    """The bytes of a file, mapped where that is possible."""
    with open(path, "rb") as file:
        if not _CAN_MAP or os.fstat(file.fileno()).st_size == 0:
            return memoryview(file.read())
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
