"""The index of a vault as it was at one moment: immutable, in a file. Files have ids: their places among the sorted paths.

The texts of its notes lie beside it in packs: one search over a mapped file instead of opening very many notes.
"""

from __future__ import annotations

import json
import mmap
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Final, NamedTuple

from obsidian_agent.vault.index.index import Facts, tag_within, unpack_facts
from obsidian_agent.vault.index.name_search import NameSearch
from obsidian_agent.vault.index.snapshot_file import (
    FOLDS_ODDLY,
    IDS,
    LONG,
    LOSSY,
    REFERS,
    Buffer,
    FileStamp,
    LinkSources,
    Packed,
    Records,
    Rows,
    Tagged,
    Texts,
    UnusableIndex,
    ids_of,
    moved_ids,
    number_column,
    numbers,
    read_sections,
    row_column,
    text_column,
    write_sections,
)
from obsidian_agent.vault.index.text_search import Needle
from obsidian_agent.vault.links.resolve import name_key, target_name

_PIECE: Final = 1 << 16
"""Characters of paths that are split at once."""


class Snapshot:
    """See the module. Ids of notes ascend with their paths. UnusableIndex when the file cannot be used."""

    def __init__(self, file: Path | None) -> None:
        if file is None:
            sections = {
                name: memoryview(b"".join(chunks))
                for name, chunks in _sections(Records.blank([], []), ()).items()
            }
        else:
            sections = read_sections(file)
        try:
            self.packs: tuple[str, ...] = tuple(json.loads(bytes(sections["packs"])))
        except (KeyError, ValueError) as error:
            raise UnusableIndex("no list of packs") from error
        self.paths: list[str] = []
        self.ids: dict[str, int] = {}
        # A piece at a time: in one go no other thread, as that of the screen, could run meanwhile.
        for piece in _pieces(str(numbers(sections, "paths", "B"), "utf-8")):
            start = len(self.paths)
            self.paths += piece
            self.ids.update(zip(piece, range(start, len(self.paths)), strict=True))
        self._stamps = tuple(numbers(sections, f"stamps.{name}", "q") for name in FileStamp._fields)
        self._facts = Texts(sections, "facts")
        self._tags = Texts(sections, "tags")
        self._tagged = Rows(sections, "tagged")
        self.targets = Texts(sections, "targets")
        self._sources = Rows(sections, "sources")
        self._aliases = Texts(sections, "aliases")
        self._aliased = numbers(sections, "aliased", IDS)
        self._by_name = numbers(sections, "by_name", "I")
        self._packed = tuple(numbers(sections, f"packed.{name}", LONG) for name in Packed._fields)
        self.flags = numbers(sections, "flags", "B")
        lengths = [
            len(self.flags),
            len(self._facts),
            len(self._by_name),
            *map(len, (*self._stamps, *self._packed)),
        ]
        if (
            any(length != len(self.paths) for length in lengths)
            or len(self._tags) != len(self._tagged)
            or len(self._aliases) != len(self._aliased)
        ):
            raise UnusableIndex("columns of different lengths")

    def __len__(self) -> int:
        return len(self.paths)

    def stamp(self, file: int) -> FileStamp:
        """The stamp with which a file was read."""
        size, mtime, ctime, inode = self._stamps
        return FileStamp(size[file], mtime[file], ctime[file], inode[file])

    def stamps(self) -> Iterator[tuple[int, int, int, int]]:
        """Every stamp, in the order of the ids."""
        return zip(*self._stamps, strict=True)

    def facts(self, file: int) -> Facts:
        """The facts of a file."""
        return unpack_facts(self._facts.raw(file))

    @cached_property
    def notes_with_references(self) -> list[str]:
        """The paths of the notes with references that are no links of the graph, sorted as paths are; found when first asked for."""
        return [self.paths[file] for file, flags in enumerate(self.flags) if flags & REFERS]

    def raw_facts(self, file: int) -> bytes:
        """The facts of a file as they are kept."""
        return bytes(self._facts.raw(file))

    def packed(self, file: int) -> Packed:
        """Where the text of a note lies."""
        pack, start, size = self._packed
        return Packed(pack[file], start[file], size[file])

    def texts_in(self, pack: int) -> tuple[array[int], array[int]]:
        """The ids of the notes whose texts are in a pack, and where these start, both ascending."""
        packs, starts, sizes = self._packed
        ids = array(
            IDS, [file for file in range(len(self.paths)) if sizes[file] and packs[file] == pack]
        )
        return ids, array(LONG, [starts[file] for file in ids])

    def tagged(self, key: str) -> Iterator[memoryview]:
        """The ids of the notes with a tag or one nested below it, tag by tag."""
        for at in self._tags.range_of(key, str):
            yield self._tagged[at]
        below = bisect_left(range(len(self._tags)), key + "/", key=self._tags.__getitem__)
        while below < len(self._tags) and tag_within(self._tags[below], key):
            yield self._tagged[below]
            below += 1

    def alias_rows(self) -> Iterator[tuple[int, str]]:
        """The ids of notes and another name that they have."""
        return ((self._aliased[at], self._aliases[at]) for at in range(len(self._aliases)))

    @cached_property
    def names(self) -> NameSearch:
        """Paths and aliases, ready to be searched; made when first asked for."""
        return NameSearch(
            self.paths, ((alias, self.paths[file]) for file, alias in self.alias_rows())
        )

    def tag_rows(self) -> Iterator[tuple[str, memoryview]]:
        """Every tag's key and the ids of the notes that have it."""
        return ((self._tags[at], self._tagged[at]) for at in range(len(self._tags)))

    def files_linking_name(self, name: str) -> Iterator[tuple[str, memoryview]]:
        """The targets of links that end with a name, each with the ids of the files that have it."""
        for at in self.targets.range_of(name, target_name):
            yield self.targets[at], self._sources[at]

    def links(self) -> Iterator[tuple[str, memoryview]]:
        """Every target and the ids of the files that have it."""
        return ((self.targets[at], self._sources[at]) for at in range(len(self.targets)))

    def files_named(self, name: str) -> Iterator[str]:
        """The paths of the files with a name (a key of `resolve.name_key`)."""
        order, paths = self._by_name, self.paths
        at = bisect_left(range(len(order)), name, key=lambda place: name_key(paths[order[place]]))
        while at < len(order) and name_key(paths[order[at]]) == name:
            yield paths[order[at]]
            at += 1


def _pieces(lines: str) -> Iterator[list[str]]:
    """Many lines, some at a time."""
    at = 0
    while at < len(lines):
        end = lines.find("\n", at + _PIECE)
        end = len(lines) if end < 0 else end
        yield lines[at:end].split("\n")
        at = end + 1


def write_snapshot(file: Path, records: Records, packs: Sequence[str]) -> None:
    """Put the snapshot of these files at `file`. `packs` are the names of the files with their texts."""
    write_sections(file, _sections(records, packs))


def _sections(records: Records, packs: Sequence[str]) -> dict[str, Iterable[Buffer]]:
    names = [name_key(path) for path in records.paths]
    sections: dict[str, Iterable[Buffer]] = {"packs": [json.dumps(packs).encode()]}
    sections["paths"] = ["\n".join(records.paths).encode()]
    for position, field in enumerate(FileStamp._fields):
        sections |= number_column(
            f"stamps.{field}", "q", [stamp[position] for stamp in records.stamps]
        )
    for name, column in zip(Packed._fields, records.packed, strict=True):
        sections[f"packed.{name}"] = [column.tobytes()]
    sections["flags"] = [bytes(records.flags)]
    sections |= {
        "facts": [records.facts],
        "facts.ends": [array(LONG, accumulate(records.fact_sizes)).tobytes()],
    }
    sections |= text_column("tags", [tag.key for tag in records.tagged])
    sections |= row_column("tagged", [tag.ids for tag in records.tagged])
    sections |= text_column("targets", [each.target for each in records.sources])
    sections |= row_column("sources", [each.ids for each in records.sources])
    sections |= text_column("aliases", [alias for _, alias in records.aliases])
    sections |= number_column("aliased", IDS, [file for file, _ in records.aliases])
    sections |= number_column("by_name", "I", sorted(range(len(names)), key=names.__getitem__))
    return sections


def merged(snapshot: Snapshot, stale: Set[str], fresh: Records) -> Records:
    """The files of a snapshot but the stale ones, and the fresh ones."""
    old = [(text, False, file) for file, text in enumerate(snapshot.paths) if text not in stale]
    files = sorted([*old, *((text, True, file) for file, text in enumerate(fresh.paths))])
    old_places, new_places = array("q", [-1]) * len(snapshot), array("q", [-1]) * len(fresh.paths)
    stamps, facts = [], []
    fresh_ends = _ends(fresh.fact_sizes)
    for place, (_, is_fresh, file) in enumerate(files):
        if is_fresh:
            new_places[file] = place
            stamps.append(fresh.stamps[file])
            facts.append(fresh.facts[fresh_ends[file] : fresh_ends[file + 1]])
        else:
            old_places[file] = place
            stamps.append(snapshot.stamp(file))
            facts.append(snapshot.raw_facts(file))
    made = Records.blank([text for text, _, _ in files], stamps)
    made.facts, made.fact_sizes = b"".join(facts), array(IDS, map(len, facts))
    for place, (_, is_fresh, file) in enumerate(files):
        row = tuple(column[file] for column in fresh.packed) if is_fresh else snapshot.packed(file)
        made.flags[place] = fresh.flags[file] if is_fresh else snapshot.flags[file]
        for column, value in zip(made.packed, row, strict=True):
            column[place] = value
    kept = (
        (old_places[file], alias) for file, alias in snapshot.alias_rows() if old_places[file] >= 0
    )
    made.aliases = sorted([*kept, *((new_places[file], alias) for file, alias in fresh.aliases)])
    made.tagged = _merged_tags(snapshot, fresh, old_places, new_places)
    made.sources = _merged_sources(snapshot, fresh, old_places, new_places)
    return made


def _ends(sizes: array[int]) -> list[int]:
    ends = [0]
    for size in sizes:
        ends.append(ends[-1] + size)
    return ends


def _merged_tags(
    snapshot: Snapshot, fresh: Records, old: array[int], new: array[int]
) -> list[Tagged]:
    found = {key: list(moved_ids(ids, old)) for key, ids in snapshot.tag_rows()}
    for key, ids in fresh.tagged:
        found.setdefault(key, []).extend(moved_ids(ids_of(ids), new))
    return sorted(
        Tagged(key, array(IDS, sorted(ids)).tobytes()) for key, ids in found.items() if ids
    )


def _merged_sources(
    snapshot: Snapshot, fresh: Records, old: array[int], new: array[int]
) -> list[LinkSources]:
    found = {target: list(moved_ids(ids, old)) for target, ids in snapshot.links()}
    names = {each.target: each.name for each in fresh.sources}
    for _, target, ids in fresh.sources:
        found.setdefault(target, []).extend(moved_ids(ids_of(ids), new))
    made = ((target, array(IDS, sorted(ids)).tobytes()) for target, ids in found.items() if ids)
    return sorted(
        LinkSources(names.get(target) or target_name(target), target, ids) for target, ids in made
    )


# --- the texts of the notes --------------------------------------------------------------------------------------------------------

CHUNK: Final = 1 << 18
"""Bytes that are lower-cased at a time: they stay in the processor's cache."""


class _Pack(NamedTuple):
    data: mmap.mmap | bytes
    ids: array[int]
    starts: array[int]


class Packs:
    """The texts of the notes of a snapshot, in a folder. Every method raises OSError when a pack is gone: then the notes must be read."""

    def __init__(self, snapshot: Snapshot, folder: Path) -> None:
        self._snapshot = snapshot
        self._folder = folder

    @cached_property
    def _packs(self) -> list[_Pack]:
        snapshot = self._snapshot
        return [
            _Pack(_mapped(self._folder / name), *snapshot.texts_in(number))
            for number, name in enumerate(snapshot.packs)
        ]

    def text(self, file: int) -> bytes:
        """The bytes of a note."""
        pack, start, size = self._snapshot.packed(file)
        return self._packs[pack].data[start : start + size] if size else b""

    def holding(self, needle: Needle) -> set[int]:
        """The ids of all notes that hold a needle, and of those of which that cannot be told so."""
        found: set[int] = set()
        for pack in self._packs:
            found.update(_hits(pack, needle))
        odd = LOSSY | FOLDS_ODDLY if needle.lower else LOSSY
        found.update(file for file, flags in enumerate(self._snapshot.flags) if flags & odd)
        return found


def _hits(pack: _Pack, needle: Needle) -> Iterator[int]:
    """The notes of a pack with a needle, each once: the next look begins behind the note of the last hit."""
    data, ids, starts = pack
    wanted, total = needle.data, len(data)
    overlap = len(wanted) - 1
    step = CHUNK if needle.lower else CHUNK << 5
    behind = 0
    for chunk in range(0, total, step):
        end = min(chunk + step + overlap, total)
        if behind >= end:
            continue
        base = max(chunk, behind)
        if needle.lower:
            piece: mmap.mmap | bytes = data[base:end].lower()
            offset, limit, at = base, end - base, 0
        else:
            piece, offset, limit, at = data, 0, end, base
        at = piece.find(wanted, at, limit)
        while at >= 0:
            place = bisect_right(starts, offset + at) - 1
            behind = starts[place + 1] if place + 1 < len(starts) else total
            # A pack may begin with texts that are no longer valid.
            if place >= 0:
                yield ids[place]
            at = piece.find(wanted, behind - offset, limit) if behind - offset < limit else -1


def _mapped(path: Path) -> mmap.mmap | bytes:
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        if not size:
            return b""
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
