"""What an index keeps of some files, in columns: as a scan finds it, and as a snapshot is written from.

Files have ids, their places among the paths. Lists of ids are bytes of an `array` of kind `IDS`: they are joined and written as they are,
and a large vault has very many of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from obsidian_agent.vault.index_columns import IDS, LONG
from obsidian_agent.vault.index_walk import Stamp

UNSETTLED: Final = Stamp(-1, 0, 0, 0)
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


class Sources(NamedTuple):
    """A link's target, the key of the name it ends with, and the ids of the files that have it, ascending."""

    name: str
    target: str
    ids: bytes


@dataclass(slots=True)
class Records:
    """Files in the order of their ids; `facts` of all of them one after the other, `fact_sizes` in bytes."""

    paths: list[str]
    stamps: list[Stamp]
    packed: tuple[array[int], array[int], array[int]]
    """Columns of `Packed`."""
    flags: bytearray
    facts: bytes
    fact_sizes: array[int]
    tagged: list[Tagged] = field(default_factory=list)
    """Sorted."""
    sources: list[Sources] = field(default_factory=list)
    """Sorted."""
    aliases: list[tuple[int, str]] = field(default_factory=list)
    """Ids of notes and another name that they have, sorted."""

    @classmethod
    def blank(cls, paths: list[str], stamps: list[Stamp]) -> Records:
        """Records of files of which only paths and stamps are known."""
        count = len(paths)
        columns = array(LONG, bytes(8 * count)), array(LONG, bytes(8 * count)), array(LONG, bytes(8 * count))
        return cls(paths, stamps, columns, bytearray(count), b"", array(IDS, bytes(array(IDS).itemsize * count)))


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


def joined_sources(lists: Sequence[list[Sources]]) -> list[Sources]:
    """Lists of sources as one; ids must ascend from each list to the next."""
    if len(lists) == 1:
        return lists[0]
    found: dict[str, Sources] = {}
    for sources in lists:
        for each in sources:
            before = found.get(each.target)
            found[each.target] = each if before is None else before._replace(ids=before.ids + each.ids)
    return sorted(found.values())


def moved_ids(ids: Iterable[int], places: array[int]) -> Iterator[int]:
    """New ids for old ones; those whose place is -1 are left out."""
    return (place for file in ids if (place := places[file]) >= 0)
