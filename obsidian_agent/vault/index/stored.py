"""The stored index: a snapshot plus the files that changed since, for one state of the vault.

A state never changes once it is in use; a refresh creates the next one. So screens and plans can
query the index while the vault is watched.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field

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
from obsidian_agent.vault.index.packs import Packs
from obsidian_agent.vault.index.snapshot import Snapshot
from obsidian_agent.vault.index.stamps import UNSTABLE, FileStamp
from obsidian_agent.vault.index.text_search import Needle
from obsidian_agent.vault.links.resolve import (
    LinksByName,
    file_name,
    is_relative,
    link_key,
    name_key,
)
from obsidian_agent.vault.markdown.bases import BASE
from obsidian_agent.vault.paths.path import VaultPath

if TYPE_CHECKING:
    from obsidian_agent.vault.index.word_query import QueryWord
    from obsidian_agent.vault.index.words import WordCount


class SnapshotChanges(Struct):
    """The files that differ from a snapshot, and the stamps that they had when they were read."""

    delta: Delta = field(default_factory=Delta)
    stamps: dict[str, FileStamp] = field(default_factory=dict)

    def copy(self) -> SnapshotChanges:
        """Return a copy that can be changed."""
        return SnapshotChanges(self.delta.copy(), dict(self.stamps))


class IndexCounts(NamedTuple):
    """The numbers of notes, files, links, unresolved links and distinct tags."""

    notes: int
    files: int
    links: int
    unresolved: int
    tags: int


class StoredIndex(VaultIndex):
    """An index of a vault on disk, from a snapshot and the changes since."""

    def __init__(
        self, snapshot: Snapshot, changed: SnapshotChanges, store: VaultStore, packs: Packs
    ) -> None:
        super().__init__()
        self.snapshot = snapshot
        self.changed = changed
        self.packs = packs
        self._store = store
        self._delta = changed.delta
        self._vault_path = PathCache()
        self._bases: list[VaultPath] | None = None

    @property
    def problems(self) -> Mapping[str, Problem]:
        return self._delta.problems

    def files(self) -> Iterator[VaultPath]:
        indexed = map(self._vault_path, self.snapshot.paths)
        return self._merge(indexed, list(self._delta.files.values()))

    def has_file(self, path: VaultPath) -> bool:
        """Return whether the index holds a file with this path."""
        return path.text in self._delta.files or (
            path.text in self.snapshot.ids and path.text not in self._delta.stale
        )

    def notes(self, folder: VaultPath) -> Iterator[VaultPath]:
        texts = self.snapshot.paths[self._rows_below(folder)]
        indexed = map(self._vault_path, filter(is_note_path, texts))
        return self._merge(indexed, self._changed_notes(folder))

    def note_count(self, folder: VaultPath) -> int:
        prefix = f"{folder.text}/" if folder.text else ""
        return sum(
            1 for text in self.file_paths() if is_note_path(text) and text.startswith(prefix)
        )

    def facts(self, path: VaultPath) -> Facts:
        facts = self._delta.facts.get(path.text)
        if facts is not None:
            return facts
        file = self.snapshot.ids.get(path.text)
        return Facts() if file is None else self.snapshot.facts(file)

    def modified_ms(self, path: VaultPath) -> float | None:
        file = self.snapshot.ids.get(path.text)
        if file is None or path.text in self._delta.stale:
            return None
        stamp = self.snapshot.stamp(file)
        return None if stamp == UNSTABLE else stamp.mtime_ns / 1e6

    def tagged(self, tag: str, folder: VaultPath) -> list[VaultPath]:
        key = tag_key(tag)
        paths = self.snapshot.paths
        texts = sorted({paths[file] for ids in self.snapshot.tagged(key) for file in ids})
        prefix = f"{folder.text}/" if folder.text else ""
        indexed = map(self._vault_path, (text for text in texts if text.startswith(prefix)))
        return self._delta.merge(indexed, self._delta.tagged(key, folder))

    def files_linking_name(self, name: str) -> list[VaultPath]:
        paths = self.snapshot.paths
        texts = sorted(
            {paths[file] for _, ids in self.snapshot.files_linking_name(name) for file in ids}
        )
        return self._delta.merge(map(self._vault_path, texts), self._delta.files_linking_name(name))

    def files_named(self, name: str) -> list[VaultPath]:
        texts = sorted(self.snapshot.files_named(name))
        return self._delta.merge(map(self._vault_path, texts), self._delta.files_named(name))

    def bases(self) -> list[VaultPath]:
        if self._bases is None:
            self._bases = sorted(
                self._vault_path(text) for text in self.file_paths() if text.lower().endswith(BASE)
            )
        return self._bases

    def notes_with_references(self) -> list[VaultPath]:
        indexed = map(self._vault_path, self.snapshot.notes_with_references)
        return self._delta.merge(indexed, self._delta.notes_with_references())

    def backlinks(self, path: VaultPath) -> list[VaultPath]:
        if any(True for name in (".", "..") for _ in self.snapshot.files_linking_name(name)):
            return super().backlinks(path)
        indexed = map(self._vault_path, sorted(self.backlink_paths(path)))
        name = file_name(path)
        changed = {
            source
            for ending in (name, ".", "..")
            for source in self._delta.files_linking_name(ending)
            if self._links_to(source, path)
        }
        return sorted({*indexed, *changed})

    def backlink_paths(self, path: VaultPath) -> set[str]:
        """Return the paths of the files in the snapshot with a link that leads to `path`.

        `path` itself and the files that changed since the snapshot are left out.
        """
        sources: set[int] = set()
        paths = self.snapshot.paths
        for target, ids in self.snapshot.files_linking_name(file_name(path)):
            if not self._links.is_same_everywhere(target):
                sources.update(
                    file
                    for file in ids
                    if self.resolve(target, self._vault_path(paths[file])) == path
                )
            elif len(ids) and self.resolve(target, self._vault_path(paths[ids[0]])) == path:
                sources.update(ids.tolist())
        texts = set(map(paths.__getitem__, sources))
        texts.discard(path.text)
        texts -= self._delta.stale
        return texts

    def counts(self) -> IndexCounts:
        """Count notes, files, links, unresolved links and tags.

        All links are resolved in one pass, target by target. Most need only a set lookup.
        """
        snapshot, delta = self.snapshot, self._delta
        texts = list(self.file_paths())
        names = {link_key(text.rpartition("/")[2]) for text in texts}
        files: dict[str, list[str]] = {}
        for text in texts:
            files.setdefault(name_key(text), []).append(text)
        by_name = LinksByName(lambda name: map(self._vault_path, files.get(name, ())))
        stale = {snapshot.ids[text] for text in delta.stale if text in snapshot.ids}
        total = unresolved = 0
        for target, row in snapshot.links():
            sources = [file for file in row if file not in stale] if stale else row
            total += len(sources)
            if "/" in target or is_relative(target):
                unresolved += self._count_unresolved(target, sources, by_name)
            elif (key := link_key(target)) not in names and f"{key}.md" not in names:
                unresolved += len(sources)
        tags = {key for key, row in snapshot.tag_rows() if not stale.issuperset(row)}
        for text, facts in delta.facts.items():
            total += len(facts.targets)
            unresolved += sum(
                1 for target in facts.targets if by_name.resolve(target, delta.files[text]) is None
            )
            tags.update(map(tag_key, facts.tags))
        return IndexCounts(
            notes=sum(map(is_note_path, texts)),
            files=len(texts),
            links=total,
            unresolved=unresolved,
            tags=len(tags),
        )

    def _count_unresolved(
        self, target: str, sources: Sequence[int] | memoryview, by_name: LinksByName
    ) -> int:
        """Return how many of the files' links with this target lead nowhere."""
        paths = self.snapshot.paths
        if not by_name.is_same_everywhere(target):
            return sum(
                1
                for file in sources
                if by_name.resolve(target, self._vault_path(paths[file])) is None
            )
        if len(sources) and by_name.resolve(target, self._vault_path(paths[sources[0]])) is None:
            return len(sources)
        return 0

    def text(self, path: VaultPath) -> bytes | Problem:
        return self._read(path)

    def aliases(self) -> Iterator[tuple[str, VaultPath]]:
        paths, delta = self.snapshot.paths, self._delta
        for file, alias in self.snapshot.alias_rows():
            if paths[file] not in delta.stale:
                yield alias, self._vault_path(paths[file])
        yield from delta.aliases()

    def names(self, hidden: Set[str] = frozenset()) -> NameFinder:
        """Return a search over the names and aliases of all files but the `hidden` paths."""
        return _Names(self.snapshot, self._delta, hidden)

    def texts(self, folder: VaultPath, *needles: Needle | None) -> Iterator[NoteContent]:
        stale = self._delta.stale
        matches = self._candidates([needle for needle in needles if needle is not None])
        paths, rows = self.snapshot.paths, self._rows_below(folder)
        if matches is None:
            files = paths[rows]
        else:
            files = [paths[file] for file in sorted(matches) if rows.start <= file < rows.stop]
        texts = (text for text in files if is_note_path(text) and text not in stale)
        indexed = map(self._vault_path, texts)
        changed = sorted(self._changed_notes(folder))
        notes = heapq.merge(indexed, changed) if changed else indexed
        return (NoteContent(path, self._read(path)) for path in notes)

    def may_hold(self, folder: VaultPath, needle: Needle) -> set[str]:
        matches = self._candidates([needle])
        if matches is None:
            return super().may_hold(folder, needle)
        paths, rows = self.snapshot.paths, self._rows_below(folder)
        notes = {
            text
            for file in matches
            if rows.start <= file < rows.stop and is_note_path(text := paths[file])
        }
        notes -= self._delta.stale
        notes.update(path.text for path in self._changed_notes(folder))
        return notes

    def word_counts(self, word: QueryWord) -> Mapping[str, WordCount] | None:
        counts = self.packs.word_counts(word)
        if counts is None:
            return None
        paths, stale = self.snapshot.paths, self._delta.stale
        return {text: count for file, count in counts.items() if (text := paths[file]) not in stale}

    def changed_notes(self) -> set[str]:
        return {text for text, path in self._delta.files.items() if path.is_note}

    def with_changes(self, changed: SnapshotChanges) -> StoredIndex:
        """Return the next state of the same snapshot."""
        return StoredIndex(self.snapshot, changed, self._store, self.packs)

    def file_paths(self) -> Iterator[str]:
        """Yield the path of every file, in any order."""
        stale = self._delta.stale
        if stale:
            yield from (text for text in self.snapshot.paths if text not in stale)
        else:
            yield from self.snapshot.paths
        yield from self._delta.files

    def _changed_notes(self, folder: VaultPath) -> list[VaultPath]:
        return [path for path in self._delta.files.values() if path.is_note and path.within(folder)]

    def _candidates(self, needles: Sequence[Needle]) -> set[int] | None:
        """Return the notes of the snapshot that may hold all needles; None if all may."""
        if not needles:
            return None
        try:
            return set.intersection(*map(self.packs.candidates, needles))
        except OSError:
            return None

    def _read(self, path: VaultPath) -> bytes | Problem:
        """Return a note's bytes from its pack, or from disk if the pack lacks them."""
        try:
            file = self.snapshot.ids.get(path.text) if path.text not in self._delta.stale else None
            if file is not None and (
                (data := self.packs.text(file)) or not self.snapshot.stamp(file).size
            ):
                return data
        except OSError:
            pass
        return read_note(self._store, path)

    def _rows_below(self, folder: VaultPath) -> slice:
        """Return the rows of the snapshot with the files below a folder, which are adjacent."""
        paths = self.snapshot.paths
        if not folder.text:
            return slice(0, len(paths))
        after_slash = chr(ord("/") + 1)
        return slice(
            bisect_left(paths, f"{folder.text}/"), bisect_left(paths, folder.text + after_slash)
        )

    def _merge(self, indexed: Iterable[VaultPath], changed: list[VaultPath]) -> Iterator[VaultPath]:
        """Merge lazily if nothing changed."""
        if not self._delta.stale:
            return iter(indexed)
        return iter(self._delta.merge(indexed, changed))


class _Names:
    """A search over the names of a snapshot, prepared once for all states, and of the changes."""

    def __init__(self, snapshot: Snapshot, delta: Delta, hidden: Set[str]) -> None:
        self._snapshot = snapshot
        self._delta = delta
        self._hidden = hidden

    def search(self, query: str, limit: int | None = None, *, similar: bool = True) -> NameHits:
        delta = self._delta
        excluded = delta.stale | self._hidden if self._hidden else delta.stale
        parts: list[tuple[NameSearch, Set[str]]] = [(self._snapshot.names, excluded)]
        if delta.files:
            aliases = ((alias, path.text) for alias, path in delta.aliases())
            parts.append((NameSearch(delta.files, aliases), self._hidden))
        return search_parts(parts, query, limit, similar=similar)
