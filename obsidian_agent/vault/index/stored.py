"""An index that lasts: a snapshot, and over it the files that changed since, for one state of the vault.

A state is never changed once it is in use; a refresh makes the next one. So screens and plans can ask while the vault is followed.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from obsidian_agent.dataclass import dataclass, field
from obsidian_agent.errors import Problem
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.index.index import (
    Delta,
    Facts,
    NoteContent,
    PathCache,
    VaultIndex,
    is_note_path,
    read_note,
    tag_key,
)
from obsidian_agent.vault.index.name_search import NameFinder, NameHits, NameSearch, search_parts
from obsidian_agent.vault.index.snapshot import Packs, Snapshot
from obsidian_agent.vault.index.snapshot_file import FileStamp
from obsidian_agent.vault.index.text_search import Needle
from obsidian_agent.vault.links.resolve import (
    LinksByName,
    file_name,
    is_relative,
    link_key,
    name_key,
)
from obsidian_agent.vault.markdown.canvas import BASE
from obsidian_agent.vault.paths.path import VaultPath


@dataclass(slots=True)
class SnapshotChanges:
    """The files that differ from a snapshot, and the stamps with which they were read."""

    delta: Delta = field(default_factory=Delta)
    stamps: dict[str, FileStamp] = field(default_factory=dict)

    def copy(self) -> SnapshotChanges:
        """Another one that can be changed."""
        return SnapshotChanges(self.delta.copy(), dict(self.stamps))


class IndexCounts(NamedTuple):
    """How many notes, files, links (and how many of these lead nowhere) and different tags there are."""

    notes: int
    files: int
    links: int
    unresolved: int
    tags: int


class StoredIndex(VaultIndex):
    """See `VaultIndex`."""

    def __init__(
        self, snapshot: Snapshot, changed: SnapshotChanges, store: VaultStore, packs: Packs
    ) -> None:
        super().__init__()
        self.snapshot = snapshot
        self.changed = changed
        self.packs = packs
        self._store = store
        self._delta = changed.delta
        self._path = PathCache()
        self._bases: list[VaultPath] | None = None

    @property
    def problems(self) -> Mapping[str, Problem]:
        return self._delta.problems

    def files(self) -> Iterator[VaultPath]:
        return self._over(map(self._path, self.snapshot.paths), list(self._delta.files.values()))

    def has_file(self, path: VaultPath) -> bool:
        """Whether there is such a file."""
        return path.text in self._delta.files or (
            path.text in self.snapshot.ids and path.text not in self._delta.stale
        )

    def notes(self, folder: VaultPath) -> Iterator[VaultPath]:
        here = [path for path in self._delta.files.values() if path.is_note and path.within(folder)]
        texts = self.snapshot.paths[self._below(folder)]
        return self._over(map(self._path, filter(is_note_path, texts)), here)

    def note_count(self, folder: VaultPath) -> int:
        prefix = f"{folder.text}/" if folder.text else ""
        return sum(
            1 for text in self.file_paths() if is_note_path(text) and text.startswith(prefix)
        )

    def facts(self, path: VaultPath) -> Facts:
        known = self._delta.facts.get(path.text)
        if known is not None:
            return known
        file = self.snapshot.ids.get(path.text)
        return Facts() if file is None else self.snapshot.facts(file)

    def tagged(self, tag: str, folder: VaultPath) -> list[VaultPath]:
        key = tag_key(tag)
        paths = self.snapshot.paths
        texts = sorted({paths[file] for row in self.snapshot.tagged(key) for file in row})
        prefix = f"{folder.text}/" if folder.text else ""
        below = map(self._path, (text for text in texts if text.startswith(prefix)))
        return self._delta.over(below, self._delta.tagged(key, folder))

    def files_linking_name(self, name: str) -> list[VaultPath]:
        paths = self.snapshot.paths
        texts = sorted(
            {paths[file] for _, row in self.snapshot.files_linking_name(name) for file in row}
        )
        return self._delta.over(map(self._path, texts), self._delta.files_linking_name(name))

    def files_named(self, name: str) -> list[VaultPath]:
        return self._delta.over(
            map(self._path, sorted(self.snapshot.files_named(name))), self._delta.files_named(name)
        )

    def bases(self) -> list[VaultPath]:
        if self._bases is None:
            self._bases = sorted(
                self._path(text) for text in self.file_paths() if text.lower().endswith(BASE)
            )
        return self._bases

    def notes_with_references(self) -> list[VaultPath]:
        return self._delta.over(
            map(self._path, self.snapshot.notes_with_references),
            self._delta.notes_with_references(),
        )

    def backlinks(self, path: VaultPath) -> list[VaultPath]:
        if any(True for name in (".", "..") for _ in self.snapshot.files_linking_name(name)):
            return super().backlinks(path)
        texts = map(self._path, sorted(self.backlink_paths(path)))
        name = file_name(path)
        here = {
            source
            for ending in (name, ".", "..")
            for source in self._delta.files_linking_name(ending)
            if self._means(source, path)
        }
        return sorted({*texts, *here})

    def counts(self) -> IndexCounts:
        """What there is, counted. All links are resolved in one pass, name by name: most need no more than a look into one dictionary."""
        snapshot, delta = self.snapshot, self._delta
        texts = list(self.file_paths())
        names = {link_key(text.rpartition("/")[2]) for text in texts}
        files: dict[str, list[str]] = {}
        for text in texts:
            files.setdefault(name_key(text), []).append(text)
        files_named = LinksByName(lambda name: map(self._path, files.get(name, ())))
        stale = {snapshot.ids[text] for text in delta.stale if text in snapshot.ids}
        links = [
            (target, [file for file in row if file not in stale] if stale else row)
            for target, row in snapshot.links()
        ]
        total = lost = 0
        for target, row in links:
            total += len(row)
            if "/" in target or is_relative(target):
                same = files_named.is_same_everywhere(target)
                here = [self._path(snapshot.paths[file]) for file in (row[:1] if same else row)]
                lost += (len(row) if same else 1) * sum(
                    1 for source in here if files_named.resolve(target, source) is None
                )
            elif (key := link_key(target)) not in names and f"{key}.md" not in names:
                lost += len(row)
        tags = {key for key, row in snapshot.tag_rows() if not stale.issuperset(row)}
        for text, facts in delta.facts.items():
            total += len(facts.targets)
            lost += sum(
                1
                for target in facts.targets
                if files_named.resolve(target, delta.files[text]) is None
            )
            tags.update(map(tag_key, facts.tags))
        return IndexCounts(sum(map(is_note_path, texts)), len(texts), total, lost, len(tags))

    def backlink_paths(self, path: VaultPath) -> set[str]:
        """The paths of the files, but `path` itself and those that changed since the snapshot, with a link that leads to `path`."""
        found: set[int] = set()
        paths = self.snapshot.paths
        for target, row in self.snapshot.files_linking_name(file_name(path)):
            if not self._links.is_same_everywhere(target):
                found.update(
                    file for file in row if self.resolve(target, self._path(paths[file])) == path
                )
            elif len(row) and self.resolve(target, self._path(paths[row[0]])) == path:
                found.update(row.tolist())
        texts = set(map(paths.__getitem__, found))
        texts.discard(path.text)
        texts -= self._delta.stale
        return texts

    def text(self, path: VaultPath) -> bytes | Problem:
        return self._read(path)

    def aliases(self) -> Iterator[tuple[str, VaultPath]]:
        paths, delta = self.snapshot.paths, self._delta
        for file, alias in self.snapshot.alias_rows():
            if paths[file] not in delta.stale:
                yield alias, self._path(paths[file])
        yield from delta.aliases()

    def names(self) -> NameFinder:
        return _Names(self.snapshot, self._delta)

    def texts(self, folder: VaultPath, *needles: Needle | None) -> Iterator[NoteContent]:
        stale = self._delta.stale
        wanted = self._holding([needle for needle in needles if needle is not None])
        paths, below = self.snapshot.paths, self._below(folder)
        found = (
            paths[below]
            if wanted is None
            else [paths[file] for file in sorted(wanted) if below.start <= file < below.stop]
        )
        texts = (text for text in found if is_note_path(text) and text not in stale)
        here = sorted(
            path for path in self._delta.files.values() if path.is_note and path.within(folder)
        )
        merged = heapq.merge(map(self._path, texts), here) if here else map(self._path, texts)
        return (NoteContent(path, self._read(path)) for path in merged)

    def with_changes(self, changed: SnapshotChanges) -> StoredIndex:
        """The next state of the same snapshot."""
        return StoredIndex(self.snapshot, changed, self._store, self.packs)

    def file_paths(self) -> Iterator[str]:
        """The path of every file, in no order."""
        stale = self._delta.stale
        yield from (
            (text for text in self.snapshot.paths if text not in stale)
            if stale
            else self.snapshot.paths
        )
        yield from self._delta.files

    def _holding(self, needles: Sequence[Needle]) -> set[int] | None:
        """The notes of the snapshot that may hold all needles; None when all may."""
        if not needles:
            return None
        try:
            return set.intersection(*map(self.packs.holding, needles))
        except OSError:
            return None

    def _read(self, path: VaultPath) -> bytes | Problem:
        try:
            file = self.snapshot.ids.get(path.text) if path.text not in self._delta.stale else None
            if file is not None and (
                (data := self.packs.text(file)) or not self.snapshot.stamp(file).size
            ):
                return data
        except OSError:
            pass
        return read_note(self._store, path)

    def _below(self, folder: VaultPath) -> slice:
        """Where in the snapshot the files below a folder are: they lie together."""
        paths = self.snapshot.paths
        if not folder.text:
            return slice(0, len(paths))
        behind_slash = chr(ord("/") + 1)
        return slice(
            bisect_left(paths, f"{folder.text}/"), bisect_left(paths, folder.text + behind_slash)
        )

    def _over(self, below: Iterable[VaultPath], here: list[VaultPath]) -> Iterator[VaultPath]:
        if not self._delta.stale:
            return iter(below)
        return iter(self._delta.over(below, here))


class _Names:
    """The names of a snapshot, and those of the files that changed since; the former are made once for all states."""

    def __init__(self, snapshot: Snapshot, delta: Delta) -> None:
        self._snapshot = snapshot
        self._delta = delta

    def search(self, query: str, limit: int | None = None) -> NameHits:
        delta = self._delta
        parts: list[tuple[NameSearch, Set[str]]] = [(self._snapshot.names, delta.stale)]
        if delta.files:
            parts.append(
                (
                    NameSearch(
                        delta.files, ((alias, path.text) for alias, path in delta.aliases())
                    ),
                    frozenset(),
                )
            )
        return search_parts(parts, query, limit)
