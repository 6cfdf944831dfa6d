"""The file of a snapshot: named sections of bytes, mapped into memory when it is opened.

It is written to a temporary file and then renamed, so that a crash leaves either the old file or
the new one. A file that is damaged, or was written by another version or on another kind of
machine, is refused; the index is then built again.
"""

from __future__ import annotations

import json
import marshal
import mmap
import os
import sys
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from obsidian_agent.state_files import replace_file

Buffer: TypeAlias = bytes | memoryview
Sections: TypeAlias = Mapping[str, memoryview]

MAGIC: Final = b"obsidian-agent index 10\n"
"""First bytes of the file. The number is that of the format."""

KIND: Final = f"{sys.byteorder} {marshal.version}"
"""The byte order and the format of `marshal`, on which the sections depend."""

_ALIGNMENT: Final = 8
_LENGTH_BYTES: Final = 8
_CAN_MAP: Final = os.name == "posix"
"""Other systems cannot replace a file that is mapped."""


class UnusableIndex(Exception):
    """The file is missing, damaged or of another kind. Raised and caught inside this package."""


def write_sections(path: Path, sections: Mapping[str, Iterable[Buffer]]) -> None:
    """Write a file with these sections durably. Raise OSError."""
    pieces: list[Buffer] = [MAGIC]
    table: dict[str, tuple[int, int]] = {}
    end, checksum = len(MAGIC), 0
    for name, chunks in sections.items():
        pieces.append(b"\0" * (-end % _ALIGNMENT))
        start = end = end + len(pieces[-1])
        for chunk in chunks:
            checksum = zlib.crc32(chunk, checksum)
            pieces.append(chunk)
            end += len(chunk)
        table[name] = (start, end - start)
    tail = json.dumps({"sections": table, "crc": checksum, "kind": KIND}).encode()
    replace_file(path, *pieces, tail, len(tail).to_bytes(_LENGTH_BYTES, "big"))


def read_sections(path: Path) -> dict[str, memoryview]:
    """Return the sections of a file. Raise UnusableIndex if it is not exactly as written."""
    try:
        data = _map_file(path)
    except (OSError, ValueError) as error:
        raise UnusableIndex(str(error)) from error
    if len(data) < len(MAGIC) + _LENGTH_BYTES or bytes(data[: len(MAGIC)]) != MAGIC:
        raise UnusableIndex("not an index of this version")
    size = int.from_bytes(data[-_LENGTH_BYTES:], "big")
    try:
        tail_end = len(data) - _LENGTH_BYTES
        tail = json.loads(bytes(data[tail_end - size : tail_end]))
        sections = {
            name: data[start : start + length] for name, (start, length) in tail["sections"].items()
        }
        checksum, kind = tail["crc"], tail["kind"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnusableIndex("truncated or damaged") from error
    actual = 0
    for section in sections.values():
        actual = zlib.crc32(section, actual)
    if actual != checksum or kind != KIND:
        raise UnusableIndex("damaged, or of another kind of machine or Python")
    return sections


def _map_file(path: Path) -> memoryview:
    with open(path, "rb") as file:
        if not _CAN_MAP or os.fstat(file.fileno()).st_size == 0:
            return memoryview(file.read())
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
