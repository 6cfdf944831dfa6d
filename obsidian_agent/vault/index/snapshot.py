"""The immutable index of a vault at one moment, read from its file.

Files have ids: their positions among the sorted paths.
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence, Set, Sized
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Final

from obsidian_agent.vault.index.columns import (
    ID_TYPE,
    LONG_TYPE,
    REFERS,
    IdListColumn,
    LinkSources,
    PackedText,
    Records,
    TaggedNotes,
    TextColumn,
    decode_ids,
    encode_id_lists,
    encode_numbers,
    encode_texts,
    read_numbers,
    remap_ids,
)
from obsidian_agent.vault.index.index import Facts, tag_within, unpack_facts
from obsidian_agent.vault.index.name_search import NameSearch
from obsidian_agent.vault.index.snapshot_file import (
    Buffer,
    UnusableIndex,
    read_sections,
    write_sections,
)
from obsidian_agent.vault.index.stamps import FileStamp
from obsidian_agent.vault.links.resolve import name_key, target_name

_PIECE: Final = 1 << 16
"""Number of characters of paths that are split at once."""


class Snapshot:
    """The files of a vault at one moment, and what their notes and canvases contain."""

    def __init__(self, file: Path | None) -> None:
        """Open a snapshot; None stands for an empty one. Raise UnusableIndex."""
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
        # In pieces: one long call would block all other threads, for instance that of the screen.
        for piece in _split_lines(str(read_numbers(sections, "paths", "B"), "utf-8")):
            start = len(self.paths)
            self.paths += piece
            self.ids.update(zip(piece, range(start, len(self.paths)), strict=True))
        self._stamps = tuple(
            read_numbers(sections, f"stamps.{name}", "q") for name in FileStamp._fields
        )
        self._facts = TextColumn(sections, "facts")
        self._tags = TextColumn(sections, "tags")
        self._tagged = IdListColumn(sections, "tagged")
        self.targets = TextColumn(sections, "targets")
        self._sources = IdListColumn(sections, "sources")
        self._aliases = TextColumn(sections, "aliases")
        self._aliased = read_numbers(sections, "aliased", ID_TYPE)
        self._by_name = read_numbers(sections, "by_name", "I")
        self._packed = tuple(
            read_numbers(sections, f"packed.{name}", LONG_TYPE) for name in PackedText._fields
        )
        self.flags = read_numbers(sections, "flags", "B")
        self._check_lengths()

    def _check_lengths(self) -> None:
        columns: tuple[Sized, ...] = (
            self.flags,
            self._facts,
            self._by_name,
            *self._stamps,
            *self._packed,
        )
        if (
            any(len(column) != len(self.paths) for column in columns)
            or len(self._tags) != len(self._tagged)
            or len(self._aliases) != len(self._aliased)
        ):
            raise UnusableIndex("columns of different lengths")

    def __len__(self) -> int:
        return len(self.paths)

    def stamp(self, file: int) -> FileStamp:
        """Return the stamp that a file had when it was scanned."""
        size, mtime, ctime, inode = self._stamps
        return FileStamp(size[file], mtime[file], ctime[file], inode[file])

    def stamps(self) -> Iterator[tuple[int, int, int, int]]:
        """Return every stamp, in the order of the ids."""
        return zip(*self._stamps, strict=True)

    def facts(self, file: int) -> Facts:
        """Return the facts of a file."""
        return unpack_facts(self._facts.raw(file))

    def raw_facts(self, file: int) -> bytes:
        """Return the facts of a file in their stored form."""
        return bytes(self._facts.raw(file))

    @cached_property
    def notes_with_references(self) -> list[str]:
        """The paths of the notes with references that are not links of the graph, sorted."""
        return [self.paths[file] for file, flags in enumerate(self.flags) if flags & REFERS]

    def packed(self, file: int) -> PackedText:
        """Return the location of a note's text."""
        pack, start, size = self._packed
        return PackedText(pack[file], start[file], size[file])

    def texts_in(self, pack: int) -> tuple[array[int], array[int]]:
        """Return the ids of the notes in a pack and the offsets of their texts, both ascending."""
        packs, starts, sizes = self._packed
        ids = array(
            ID_TYPE,
            [file for file in range(len(self.paths)) if sizes[file] and packs[file] == pack],
        )
        return ids, array(LONG_TYPE, [starts[file] for file in ids])

    def tagged(self, key: str) -> Iterator[memoryview]:
        """Yield the ids of the notes with a tag, then those of each tag nested below it."""
        for row in self._tags.range_of(key, str):
            yield self._tagged[row]
        nested = bisect_left(range(len(self._tags)), key + "/", key=self._tags.__getitem__)
        while nested < len(self._tags) and tag_within(self._tags[nested], key):
            yield self._tagged[nested]
            nested += 1

    def tag_rows(self) -> Iterator[tuple[str, memoryview]]:
        """Yield the key of every tag and the ids of the notes that have it."""
        return ((self._tags[row], self._tagged[row]) for row in range(len(self._tags)))

    def alias_rows(self) -> Iterator[tuple[int, str]]:
        """Yield the id of a note and an alias of it."""
        return ((self._aliased[row], self._aliases[row]) for row in range(len(self._aliases)))

    @cached_property
    def names(self) -> NameSearch:
        """The search over paths and aliases, created when it is first needed."""
        return NameSearch(
            self.paths, ((alias, self.paths[file]) for file, alias in self.alias_rows())
        )

    def files_linking_name(self, name: str) -> Iterator[tuple[str, memoryview]]:
        """Yield the link targets that end with a name, and the ids of the files with such links."""
        for row in self.targets.range_of(name, target_name):
            yield self.targets[row], self._sources[row]

    def links(self) -> Iterator[tuple[str, memoryview]]:
        """Yield every link target and the ids of the files with such links."""
        return ((self.targets[row], self._sources[row]) for row in range(len(self.targets)))

    def files_named(self, name: str) -> Iterator[str]:
        """Yield the paths of the files with a name (a key of `resolve.name_key`)."""
        order, paths = self._by_name, self.paths
        row = bisect_left(range(len(order)), name, key=lambda row: name_key(paths[order[row]]))
        while row < len(order) and name_key(paths[order[row]]) == name:
            yield paths[order[row]]
            row += 1


def write_snapshot(file: Path, records: Records, packs: Sequence[str]) -> None:
    """Write a snapshot. `packs` are the names of the files that hold the texts."""
    write_sections(file, _sections(records, packs))


def merge_snapshot(snapshot: Snapshot, stale: Set[str], fresh: Records) -> Records:
    """Merge a snapshot with newly scanned files, which replace its stale entries."""
    old = [(path, False, file) for file, path in enumerate(snapshot.paths) if path not in stale]
    files = sorted([*old, *((path, True, file) for file, path in enumerate(fresh.paths))])
    old_ids, fresh_ids = array("q", [-1]) * len(snapshot), array("q", [-1]) * len(fresh.paths)
    stamps, facts = [], []
    fresh_ends = list(accumulate(fresh.fact_sizes, initial=0))
    for number, (_, is_fresh, file) in enumerate(files):
        if is_fresh:
            fresh_ids[file] = number
            stamps.append(fresh.stamps[file])
            facts.append(fresh.facts[fresh_ends[file] : fresh_ends[file + 1]])
        else:
            old_ids[file] = number
            stamps.append(snapshot.stamp(file))
            facts.append(snapshot.raw_facts(file))
    merged = Records.blank([path for path, _, _ in files], stamps)
    merged.facts, merged.fact_sizes = b"".join(facts), array(ID_TYPE, map(len, facts))
    for number, (_, is_fresh, file) in enumerate(files):
        if is_fresh:
            packed = tuple(column[file] for column in fresh.packed)
            merged.flags[number] = fresh.flags[file]
        else:
            packed = snapshot.packed(file)
            merged.flags[number] = snapshot.flags[file]
        for column, value in zip(merged.packed, packed, strict=True):
            column[number] = value
    aliases = [
        (old_ids[file], alias) for file, alias in snapshot.alias_rows() if old_ids[file] >= 0
    ]
    aliases += ((fresh_ids[file], alias) for file, alias in fresh.aliases)
    merged.aliases = sorted(aliases)
    merged.tagged = _merge_tags(snapshot, fresh, old_ids, fresh_ids)
    merged.sources = _merge_sources(snapshot, fresh, old_ids, fresh_ids)
    return merged


def _split_lines(lines: str) -> Iterator[list[str]]:
    """Yield the lines of a text, some at a time."""
    start = 0
    while start < len(lines):
        end = lines.find("\n", start + _PIECE)
        end = len(lines) if end < 0 else end
        yield lines[start:end].split("\n")
        start = end + 1


def _sections(records: Records, packs: Sequence[str]) -> dict[str, Iterable[Buffer]]:
    names = [name_key(path) for path in records.paths]
    sections: dict[str, Iterable[Buffer]] = {"packs": [json.dumps(packs).encode()]}
    sections["paths"] = ["\n".join(records.paths).encode()]
    for position, name in enumerate(FileStamp._fields):
        sections |= encode_numbers(
            f"stamps.{name}", "q", [stamp[position] for stamp in records.stamps]
        )
    for name, column in zip(PackedText._fields, records.packed, strict=True):
        sections[f"packed.{name}"] = [column.tobytes()]
    sections["flags"] = [bytes(records.flags)]
    sections["facts"] = [records.facts]
    sections["facts.ends"] = [array(LONG_TYPE, accumulate(records.fact_sizes)).tobytes()]
    sections |= encode_texts("tags", [tag.key for tag in records.tagged])
    sections |= encode_id_lists("tagged", [tag.ids for tag in records.tagged])
    sections |= encode_texts("targets", [source.target for source in records.sources])
    sections |= encode_id_lists("sources", [source.ids for source in records.sources])
    sections |= encode_texts("aliases", [alias for _, alias in records.aliases])
    sections |= encode_numbers("aliased", ID_TYPE, [file for file, _ in records.aliases])
    sections |= encode_numbers("by_name", "I", sorted(range(len(names)), key=names.__getitem__))
    return sections


def _merge_tags(
    snapshot: Snapshot, fresh: Records, old_ids: array[int], fresh_ids: array[int]
) -> list[TaggedNotes]:
    ids_by_key = {key: list(remap_ids(ids, old_ids)) for key, ids in snapshot.tag_rows()}
    for key, ids in fresh.tagged:
        ids_by_key.setdefault(key, []).extend(remap_ids(decode_ids(ids), fresh_ids))
    return sorted(
        TaggedNotes(key, array(ID_TYPE, sorted(ids)).tobytes())
        for key, ids in ids_by_key.items()
        if ids
    )


def _merge_sources(
    snapshot: Snapshot, fresh: Records, old_ids: array[int], fresh_ids: array[int]
) -> list[LinkSources]:
    by_target = {target: list(remap_ids(ids, old_ids)) for target, ids in snapshot.links()}
    names = {source.target: source.name for source in fresh.sources}
    for _, target, ids in fresh.sources:
        by_target.setdefault(target, []).extend(remap_ids(decode_ids(ids), fresh_ids))
    return sorted(
        LinkSources(
            names.get(target) or target_name(target), target, array(ID_TYPE, sorted(ids)).tobytes()
        )
        for target, ids in by_target.items()
        if ids
    )
