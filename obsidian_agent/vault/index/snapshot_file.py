"""The file that keeps an index between two starts: named sections of bytes, mapped into memory when it is opened.

It is written beside its place and put there whole, so that a crash leaves the old one or the new one. A file that is not exactly as it was
written, or was written by another version or kind of machine, does not open; then the index is built again.

The sections are columns: lists of texts, of numbers, and of lists of ids, read in place. Only what a question touches becomes Python objects;
that is what keeps a hundred thousand notes small and a start quick. Files have ids, their places among the paths; lists of ids are bytes of an
`array` of kind `IDS`, which are joined and written as they are. `Records` are the columns as a scan finds them.

Each file has a `Stamp`, which tells whether it changed: `walk_stamps` takes one pass over the folders, one `stat` a file. `DiskView.walk` makes an
entry and a judged path of every name and sorts them; this makes neither of a plain name, because the index looks at the whole vault after each
burst of events. A test holds the two to the same files.
"""

from __future__ import annotations

import json
import marshal
import mmap
import os
import stat
import sys
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from obsidian_agent.dataclass import dataclass, field
from obsidian_agent.errors import PathRefused, VaultError
from obsidian_agent.state_files import replace_file
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.paths.path import ROOT, VaultPath, from_disk, protected
from obsidian_agent.vault.paths.rules import PLAIN

_SIGNED: Final = (1 << 63) - 1
"""Inodes may use 64 bits and more; the columns of the index have one of them for the sign."""


class FileStamp(NamedTuple):
    """What differs once a file has changed. Times in nanoseconds."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


def stamp_of(info: os.stat_result) -> FileStamp:
    """The stamp of a file."""
    return FileStamp(info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino & _SIGNED)


def walk_stamps(store: VaultStore, start: VaultPath = ROOT) -> Iterator[tuple[str, FileStamp]]:
    """Path and stamp of every file below a folder, in no order: those that `DiskView.walk` shows.

    A folder that is gone or may not be read is left out, as there. VaultError when `start` cannot be listed.
    """
    pending = [start]
    while pending:
        folder = pending.pop()
        try:
            yield from _listed(store, folder, pending)
        except VaultError as error:
            if folder is start or not isinstance(
                error.__cause__, (PermissionError, FileNotFoundError)
            ):
                raise


def _listed(
    store: VaultStore, folder: VaultPath, pending: list[VaultPath]
) -> Iterator[tuple[str, FileStamp]]:
    prefix = f"{folder.text}/" if folder.text else ""
    handle = store.open_folder(folder) if store.root_fd >= 0 else None
    try:
        where: int | str = (
            os.path.join(store.real_path, *folder.parts) if handle is None else handle
        )
        with os.scandir(where) as entries:
            for entry in entries:
                name = entry.name
                if not PLAIN.fullmatch(name) and not _allowed(folder, name):
                    continue
                try:
                    if entry.is_file(follow_symlinks=False):
                        # Listings of Windows know no inode; there a file is asked once more.
                        info = (
                            os.stat(entry.path, follow_symlinks=False)
                            if handle is None
                            else entry.stat(follow_symlinks=False)
                        )
                        yield prefix + name, stamp_of(info)
                    elif entry.is_dir(follow_symlinks=False):
                        pending.append(from_disk(folder, name))
                    elif (
                        entry.is_symlink()
                        and (found := stamp(store, from_disk(folder, name))) is not None
                    ):
                        yield prefix + name, found
                except FileNotFoundError:
                    # Gone between the listing and the look.
                    continue
    finally:
        if handle is not None:
            os.close(handle)


def _allowed(folder: VaultPath, name: str) -> bool:
    if protected(name):
        return False
    try:
        from_disk(folder, name)
    except PathRefused:
        return False
    return True


def stamp(store: VaultStore, path: VaultPath) -> FileStamp | None:
    """The stamp of one file, through links that stay in the vault; None when there is none."""
    try:
        found = store.stat(path)
    except VaultError:
        return None
    if found is None or not stat.S_ISREG(found[0].st_mode):
        return None
    return stamp_of(found[0])


Sections = Mapping[str, memoryview]
NumberKind = Literal["B", "I", "Q", "q"]
"""Kinds of numbers as `array` names them: bytes, ids, offsets, signed ones."""

IDS: Final = "I"
LONG: Final = "Q"


def numbers(sections: Sections, name: str, kind: NumberKind) -> memoryview:
    """A column of numbers of one kind of `array`."""
    try:
        return sections[name].cast(kind)
    except (KeyError, TypeError) as error:
        raise UnusableIndex(f"no column {name}") from error


class Texts:
    """A list of UTF-8 texts."""

    def __init__(self, sections: Sections, name: str) -> None:
        self._ends = numbers(sections, f"{name}.ends", LONG)
        self._data = numbers(sections, name, "B")

    def __len__(self) -> int:
        return len(self._ends)

    def raw(self, at: int) -> memoryview:
        """The bytes of a text."""
        return self._data[self._ends[at - 1] if at else 0 : self._ends[at]]

    def __getitem__(self, at: int) -> str:
        return str(self.raw(at), "utf-8", "surrogatepass")

    def range_of(self, key: Any, key_of: Callable[[str], Any]) -> range:
        """Where the texts with a key are; the list must be sorted by `key_of`."""
        low = bisect_left(range(len(self)), key, key=lambda at: key_of(self[at]))
        high = low
        while high < len(self) and key_of(self[high]) == key:
            high += 1
        return range(low, high)


class Rows:
    """A list of lists of ids."""

    def __init__(self, sections: Sections, name: str) -> None:
        self._ends = numbers(sections, f"{name}.ends", LONG)
        self._ids = numbers(sections, name, IDS)

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, at: int) -> memoryview:
        return self._ids[self._ends[at - 1] if at else 0 : self._ends[at]]


def text_column(name: str, texts: Iterable[str | bytes]) -> dict[str, Iterable[Buffer]]:
    """The sections of a `Texts`."""
    encoded = [
        text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass") for text in texts
    ]
    ends = array(LONG, accumulate(map(len, encoded)))
    return {name: [b"".join(encoded)], f"{name}.ends": [ends.tobytes()]}


def row_column(name: str, rows: Sequence[bytes]) -> dict[str, Iterable[Buffer]]:
    """The sections of a `Rows`, from the bytes of arrays of ids."""
    width = array(IDS).itemsize
    ends = array(LONG, accumulate([len(row) // width for row in rows]))
    return {name: [b"".join(rows)], f"{name}.ends": [ends.tobytes()]}


def number_column(
    name: str, kind: NumberKind, values: Iterable[int]
) -> dict[str, Iterable[Buffer]]:
    """The section of a column of numbers."""
    return {name: [array(kind, values).tobytes()]}


UNSTABLE: Final = FileStamp(-1, 0, 0, 0)
"""The stamp of a file that may still have been changing when it was read: it differs from that of every file."""

LOSSY: Final = 1
"""Flag of a note that is not UTF-8."""

FOLDS_ODDLY: Final = 2
"""Flag of a note with characters that case folding turns into ASCII letters, as it does with the sharp s."""

FAILED: Final = 4
"""Flag of a file that could not be read."""

REFERS: Final = 8
"""Flag of a note with references to files that are no links of the graph."""


class Packed(NamedTuple):
    """Where the bytes of a note lie: the number of a pack of texts, and a place in it."""

    pack: int
    start: int
    size: int


class Tagged(NamedTuple):
    """A tag's key and the ids of the notes that have it, ascending."""

    key: str
    ids: bytes


class LinkSources(NamedTuple):
    """A link's target, the key of the name it ends with, and the ids of the files that have it, ascending, once for each such link."""

    name: str
    target: str
    ids: bytes


@dataclass(slots=True)
class Records:
    """Files in the order of their ids; `facts` of all of them one after the other, `fact_sizes` in bytes."""

    paths: list[str]
    stamps: list[FileStamp]
    packed: tuple[array[int], array[int], array[int]]
    """Columns of `Packed`."""
    flags: bytearray
    facts: bytes
    fact_sizes: array[int]
    tagged: list[Tagged] = field(default_factory=list)
    """Sorted."""
    sources: list[LinkSources] = field(default_factory=list)
    """Sorted."""
    aliases: list[tuple[int, str]] = field(default_factory=list)
    """Ids of notes and another name that they have, sorted."""

    @classmethod
    def blank(cls, paths: list[str], stamps: list[FileStamp]) -> Records:
        """Records of files of which only paths and stamps are known."""
        count = len(paths)
        columns = (
            array(LONG, bytes(8 * count)),
            array(LONG, bytes(8 * count)),
            array(LONG, bytes(8 * count)),
        )
        return cls(
            paths,
            stamps,
            columns,
            bytearray(count),
            b"",
            array(IDS, bytes(array(IDS).itemsize * count)),
        )


def ids_of(data: bytes) -> array[int]:
    """A list of ids from its bytes."""
    ids = array(IDS)
    ids.frombytes(data)
    return ids


def joined_tags(lists: Iterable[Iterable[Tagged]]) -> list[Tagged]:
    """Lists of tags as one; ids must ascend from each list to the next."""
    found: dict[str, bytes] = {}
    for tags in lists:
        for key, ids in tags:
            found[key] = found[key] + ids if key in found else ids
    return sorted(map(Tagged._make, found.items()))


def joined_sources(lists: Sequence[list[LinkSources]]) -> list[LinkSources]:
    """Lists of sources as one; ids must ascend from each list to the next."""
    if len(lists) == 1:
        return lists[0]
    found: dict[str, LinkSources] = {}
    for sources in lists:
        for each in sources:
            before = found.get(each.target)
            found[each.target] = (
                each if before is None else before._replace(ids=before.ids + each.ids)
            )
    return sorted(found.values())


def moved_ids(ids: Iterable[int], places: array[int]) -> Iterator[int]:
    """New ids for old ones; those whose place is -1 are left out."""
    return (place for file in ids if (place := places[file]) >= 0)


Buffer: TypeAlias = bytes | memoryview

MAGIC: Final = b"obsidian-agent index 5\n"
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
    pieces: list[Buffer] = [MAGIC]
    table: dict[str, tuple[int, int]] = {}
    at, checksum = len(MAGIC), 0
    for name, chunks in sections.items():
        pieces.append(b"\0" * (-at % _ALIGN))
        start = at = at + len(pieces[-1])
        for chunk in chunks:
            checksum = zlib.crc32(chunk, checksum)
            pieces.append(chunk)
            at += len(chunk)
        table[name] = (start, at - start)
    tail = json.dumps({"sections": table, "crc": checksum, "kind": KIND}).encode()
    replace_file(path, *pieces, tail, len(tail).to_bytes(8, "big"))


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
        sections = {
            name: data[start : start + length] for name, (start, length) in tail["sections"].items()
        }
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
