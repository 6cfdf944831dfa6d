"""The index of a vault as it was at one moment: immutable, in a file. Files have ids: their places among the sorted paths."""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from obsidian_agent.vault.index_columns import IDS, LONG, Rows, Texts, number_column, numbers, row_column, text_column
from obsidian_agent.vault.index_facts import Facts, name_key, tag_key, tag_within, target_name
from obsidian_agent.vault.index_file import Buffer, UnusableIndex, read_sections, write_sections
from obsidian_agent.vault.index_walk import Stamp

UNSETTLED: Final = Stamp(-1, 0, 0, 0)
"""The stamp of a file that may still have been changing when it was read: it differs from that of every file."""


class Packed(NamedTuple):
    """Where the bytes of a note lie: the number of a pack of texts, and a place in it."""

    pack: int
    start: int
    size: int


class Row(NamedTuple):
    """What a snapshot keeps of one file. `facts` are packed; `tags` and `targets` are theirs."""

    path: str
    stamp: Stamp
    facts: bytes
    tags: Sequence[str]
    targets: Sequence[str]
    packed: Packed
    flags: int


LOSSY: Final = 1
"""Flag of a note that is not UTF-8."""

FOLDS_ODDLY: Final = 2
"""Flag of a note with characters that case folding turns into ASCII letters, as it does with the sharp s."""

NO_FACTS: Final = b""
NOT_PACKED: Final = Packed(0, 0, 0)


def pack_facts(facts: Facts) -> bytes:
    """Facts as they are kept."""
    fields = [facts.tags, facts.aliases, dict(facts.properties), facts.targets, int(facts.lossy)]
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def unpack_facts(data: Buffer) -> Facts:
    """The facts that `pack_facts` kept; none for nothing."""
    if not data:
        return Facts()
    tags, aliases, properties, targets, lossy = json.loads(str(data, "utf-8", "surrogatepass"))
    return Facts(tuple(tags), tuple(aliases), properties, tuple(targets), bool(lossy))


class Snapshot:
    """See the module. Ids of notes ascend with their paths. UnusableIndex when the file cannot be used."""

    def __init__(self, file: Path | None) -> None:
        if file is None:
            sections = {name: memoryview(b"".join(chunks)) for name, chunks in _sections((), ()).items()}
        else:
            sections = read_sections(file)
        try:
            self.packs: tuple[str, ...] = tuple(json.loads(bytes(sections["packs"])))
        except (KeyError, ValueError) as error:
            raise UnusableIndex("no list of packs") from error
        joined = str(numbers(sections, "paths", "B"), "utf-8")
        self.paths: list[str] = joined.split("\n") if joined else []
        self.ids: dict[str, int] = dict(zip(self.paths, range(len(self.paths)), strict=True))
        self._stamps = tuple(numbers(sections, f"stamps.{name}", "q") for name in Stamp._fields)
        self._facts = Texts(sections, "facts")
        self._tags = Texts(sections, "tags")
        self._tagged = Rows(sections, "tagged")
        self.targets = Texts(sections, "targets")
        self._sources = Rows(sections, "sources")
        self._by_name = numbers(sections, "by_name", "I")
        self._packed = tuple(numbers(sections, f"packed.{name}", LONG) for name in Packed._fields)
        self.flags = numbers(sections, "flags", "B")
        lengths = [len(self.flags), len(self._facts), len(self._by_name), *map(len, (*self._stamps, *self._packed))]
        if any(length != len(self.paths) for length in lengths) or len(self._tags) != len(self._tagged):
            raise UnusableIndex("columns of different lengths")

    def __len__(self) -> int:
        return len(self.paths)

    def stamp(self, file: int) -> Stamp:
        """The stamp with which a file was read."""
        size, mtime, ctime, inode = self._stamps
        return Stamp(size[file], mtime[file], ctime[file], inode[file])

    def stamps(self) -> Iterator[tuple[int, int, int, int]]:
        """Every stamp, in the order of the ids."""
        return zip(*self._stamps, strict=True)

    def facts(self, file: int) -> Facts:
        """The facts of a file."""
        return unpack_facts(self._facts.raw(file))

    def row(self, file: int) -> Row:
        """Everything that is kept of a file."""
        facts = self.facts(file)
        raw = bytes(self._facts.raw(file))
        return Row(self.paths[file], self.stamp(file), raw, facts.tags, facts.targets, self.packed(file), self.flags[file])

    def packed(self, file: int) -> Packed:
        """Where the text of a note lies."""
        pack, start, size = self._packed
        return Packed(pack[file], start[file], size[file])

    def texts_in(self, pack: int) -> tuple[array[int], array[int]]:
        """The ids of the notes whose texts are in a pack, and where these start, both ascending."""
        packs, starts, sizes = self._packed
        ids = array(IDS, [file for file in range(len(self.paths)) if sizes[file] and packs[file] == pack])
        return ids, array(LONG, [starts[file] for file in ids])

    def tagged(self, key: str) -> Iterator[memoryview]:
        """The ids of the notes with a tag or one nested below it, tag by tag."""
        for at in self._tags.range_of(key, str):
            yield self._tagged[at]
        below = bisect_left(range(len(self._tags)), key + "/", key=self._tags.__getitem__)
        while below < len(self._tags) and tag_within(self._tags[below], key):
            yield self._tagged[below]
            below += 1

    def tags(self) -> Iterator[tuple[str, int]]:
        """Every tag's key and how many notes have it."""
        return ((self._tags[at], len(self._tagged[at])) for at in range(len(self._tags)))

    def naming(self, name: str) -> Iterator[tuple[str, memoryview]]:
        """The targets of links that end with a name, each with the ids of the files that have it."""
        for at in self.targets.range_of(name, target_name):
            yield self.targets[at], self._sources[at]

    def links(self) -> Iterator[tuple[str, memoryview]]:
        """Every target and the ids of the files that have it."""
        return ((self.targets[at], self._sources[at]) for at in range(len(self.targets)))

    def named(self, name: str) -> Iterator[str]:
        """The paths of the files with a name (a key of `index_facts.name_key`)."""
        order, paths = self._by_name, self.paths
        at = bisect_left(range(len(order)), name, key=lambda place: name_key(paths[order[place]]))
        while at < len(order) and name_key(paths[order[at]]) == name:
            yield paths[order[at]]
            at += 1


def write_snapshot(file: Path, rows: Iterable[Row], packs: Sequence[str]) -> None:
    """Put the snapshot of these files (sorted by path) at `file`. `packs` are the names of the files with their texts."""
    write_sections(file, _sections(tuple(rows), packs))


def _sections(rows: Sequence[Row], packs: Sequence[str]) -> dict[str, Iterable[Buffer]]:
    tagged: dict[str, list[int]] = {}
    sources: dict[str, list[int]] = {}
    for at, row in enumerate(rows):
        for key in dict.fromkeys(map(tag_key, row.tags)):
            tagged.setdefault(key, []).append(at)
        for target in dict.fromkeys(row.targets):
            sources.setdefault(target, []).append(at)
    tags = sorted(tagged)
    targets = [target for _, target in sorted((target_name(target), target) for target in sources)]
    names = [name_key(row.path) for row in rows]
    sections: dict[str, Iterable[Buffer]] = {"packs": [json.dumps(packs).encode()]}
    sections["paths"] = ["\n".join([row.path for row in rows]).encode()]
    for position, field in enumerate(Stamp._fields):
        sections |= number_column(f"stamps.{field}", "q", (row.stamp[position] for row in rows))
    for position, field in enumerate(Packed._fields):
        sections |= number_column(f"packed.{field}", LONG, (row.packed[position] for row in rows))
    sections |= number_column("flags", "B", (row.flags for row in rows))
    sections |= text_column("facts", (row.facts for row in rows))
    sections |= text_column("tags", tags)
    sections |= row_column("tagged", [tagged[key] for key in tags])
    sections |= text_column("targets", targets)
    sections |= row_column("sources", [sources[target] for target in targets])
    sections |= number_column("by_name", "I", sorted(range(len(rows)), key=names.__getitem__))
    return sections
