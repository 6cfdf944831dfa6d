"""Columns of a snapshot: lists of texts, of numbers, and of lists of file ids.

They are read in place in the mapped file. Only what a query touches becomes Python objects, which
keeps an index of a hundred thousand notes small and opens it quickly. A file's id is its position
among the sorted paths; a list of ids is the bytes of an array of `ID_TYPE`, so that lists can be
joined and written without decoding. `Records` holds the columns as a scan produces them.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct, field

from obsidian_agent.vault.index.snapshot_file import Buffer, Sections, UnusableIndex
from obsidian_agent.vault.index.stamps import FileStamp

NumberKind: TypeAlias = Literal["B", "I", "Q", "q"]
"""Type codes of `array`: bytes, ids, offsets and signed numbers."""

ID_TYPE: Final = "I"
LONG_TYPE: Final = "Q"

LOSSY: Final = 1
"""Flag of a note that is not valid UTF-8."""

FOLDS_TO_ASCII: Final = 2
"""Flag of a note with characters that case folding turns into ASCII letters, for example ß."""

FAILED: Final = 4
"""Flag of a file that could not be read."""

REFERS: Final = 8
"""Flag of a note that refers to files by something else than links of the graph."""


def read_numbers(sections: Sections, name: str, kind: NumberKind) -> memoryview:
    """Return a column of numbers. Raise UnusableIndex if there is no such column."""
    try:
        return sections[name].cast(kind)
    except (KeyError, TypeError) as error:
        raise UnusableIndex(f"no column {name}") from error


class TextColumn:
    """A column of UTF-8 texts."""

    def __init__(self, sections: Sections, name: str) -> None:
        self._ends = read_numbers(sections, f"{name}.ends", LONG_TYPE)
        self._data = read_numbers(sections, name, "B")

    def __len__(self) -> int:
        return len(self._ends)

    def raw(self, row: int) -> memoryview:
        """Return the bytes of a text."""
        return self._data[self._ends[row - 1] if row else 0 : self._ends[row]]

    def __getitem__(self, row: int) -> str:
        return str(self.raw(row), "utf-8", "surrogatepass")

    def range_of(self, key: Any, key_of: Callable[[str], Any]) -> range:
        """Return the rows with a key. The column must be sorted by `key_of`."""
        low = bisect_left(range(len(self)), key, key=lambda row: key_of(self[row]))
        high = low
        while high < len(self) and key_of(self[high]) == key:
            high += 1
        return range(low, high)


class IdListColumn:
    """A column of lists of ids."""

    def __init__(self, sections: Sections, name: str) -> None:
        self._ends = read_numbers(sections, f"{name}.ends", LONG_TYPE)
        self._ids = read_numbers(sections, name, ID_TYPE)

    def __len__(self) -> int:
        return len(self._ends)

    def bounds(self, row: int) -> tuple[int, int]:
        """Return where a list begins and ends in the column."""
        return (self._ends[row - 1] if row else 0), self._ends[row]

    def __getitem__(self, row: int) -> memoryview:
        start, end = self.bounds(row)
        return self._ids[start:end]


def encode_texts(name: str, texts: Iterable[str | bytes]) -> dict[str, Iterable[Buffer]]:
    """Return the sections of a `TextColumn`."""
    encoded = [
        text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass") for text in texts
    ]
    ends = array(LONG_TYPE, accumulate(map(len, encoded)))
    return {name: [b"".join(encoded)], f"{name}.ends": [ends.tobytes()]}


def encode_id_lists(name: str, lists: Sequence[bytes]) -> dict[str, Iterable[Buffer]]:
    """Return the sections of an `IdListColumn`, from the bytes of arrays of ids."""
    width = array(ID_TYPE).itemsize
    ends = array(LONG_TYPE, accumulate([len(ids) // width for ids in lists]))
    return {name: [b"".join(lists)], f"{name}.ends": [ends.tobytes()]}


def encode_numbers(
    name: str, kind: NumberKind, values: Iterable[int]
) -> dict[str, Iterable[Buffer]]:
    """Return the section of a column of numbers."""
    return {name: [array(kind, values).tobytes()]}


class PackedText(NamedTuple):
    """The location of a note's text: the number of a pack, and an offset and size in it."""

    pack: int
    start: int
    size: int


class TaggedNotes(NamedTuple):
    """The key of a tag and the ascending ids of the notes that have it."""

    key: str
    ids: bytes


class LinkSources(NamedTuple):
    """A link target and the files with links to it.

    `name` is the key of the name that the target ends with. `ids` are ascending; a file is repeated
    for each of its links.
    """

    name: str
    target: str
    ids: bytes


class Records(Struct, kw_only=True):
    """Columns of files in the order of their ids.

    `facts` holds the facts of all files one after the other, `fact_sizes` their sizes in bytes.
    """

    paths: list[str]
    stamps: list[FileStamp]
    packed: tuple[array[int], array[int], array[int]]
    """The columns of `PackedText`."""
    flags: bytearray
    facts: bytes
    fact_sizes: array[int]
    tagged: list[TaggedNotes] = field(default_factory=list)
    """The notes of each tag, sorted."""
    sources: list[LinkSources] = field(default_factory=list)
    """The links of all files by target, sorted."""
    aliases: list[tuple[int, str]] = field(default_factory=list)
    """Pairs of a note's id and an alias, sorted."""

    @classmethod
    def blank(cls, paths: list[str], stamps: list[FileStamp]) -> Records:
        """Return records of files of which only paths and stamps are known."""
        count = len(paths)
        return cls(
            paths=paths,
            stamps=stamps,
            packed=(
                array(LONG_TYPE, bytes(8 * count)),
                array(LONG_TYPE, bytes(8 * count)),
                array(LONG_TYPE, bytes(8 * count)),
            ),
            flags=bytearray(count),
            facts=b"",
            fact_sizes=array(ID_TYPE, bytes(array(ID_TYPE).itemsize * count)),
        )


def decode_ids(data: bytes) -> array[int]:
    """Return a list of ids from its bytes."""
    ids = array(ID_TYPE)
    ids.frombytes(data)
    return ids


def join_tags(lists: Iterable[Iterable[TaggedNotes]]) -> list[TaggedNotes]:
    """Join the tags of several chunks. Ids must ascend from each chunk to the next."""
    ids_by_key: dict[str, bytes] = {}
    for tags in lists:
        for key, ids in tags:
            ids_by_key[key] = ids_by_key[key] + ids if key in ids_by_key else ids
    return sorted(map(TaggedNotes._make, ids_by_key.items()))


def join_sources(lists: Sequence[list[LinkSources]]) -> list[LinkSources]:
    """Join the link targets of several chunks. Ids must ascend from each chunk to the next."""
    if len(lists) == 1:
        return lists[0]
    by_target: dict[str, LinkSources] = {}
    for sources in lists:
        for row in sources:
            before = by_target.get(row.target)
            by_target[row.target] = (
                row if before is None else before._replace(ids=before.ids + row.ids)
            )
    return sorted(by_target.values())


def remap_ids(ids: Iterable[int], new_ids: array[int]) -> Iterator[int]:
    """Yield the new id of each file. Files whose new id is -1 are dropped."""
    return (new_id for file in ids if (new_id := new_ids[file]) >= 0)
