"""The index of an overlay: the index of its base, with the changed files scanned again."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING

from obsidian_agent import budget
from obsidian_agent.errors import Problem, VaultError
from obsidian_agent.vault.index.index import (
    NO_FACTS,
    ContentTest,
    Delta,
    Facts,
    NoteContent,
    VaultIndex,
    has_facts,
    read_note,
    scan_facts,
    tag_key,
)
from obsidian_agent.vault.index.name_search import NameFinder
from obsidian_agent.vault.index.text_search import Needle
from obsidian_agent.vault.links.resolve import file_name
from obsidian_agent.vault.markdown.bases import BASE
from obsidian_agent.vault.paths.path import ROOT, VaultPath
from obsidian_agent.vault.views.overlay_entries import OverlayEntries
from obsidian_agent.vault.views.view import VaultEntry, VaultView

if TYPE_CHECKING:
    from obsidian_agent.vault.index.word_query import QueryWord
    from obsidian_agent.vault.index.words import WordCount


class OverlayIndex(VaultIndex):
    """An index that follows an overlay.

    Each query first scans the files that the overlay has touched since the query before.
    """

    def __init__(self, base: VaultView, entries: OverlayEntries, view: VaultView) -> None:
        """Create the index of the overlay `view`: `base` with the changes in `entries`."""
        super().__init__()
        self._base = base
        self._base_index = base.index
        self._entries = entries
        self._view = view
        self._processed = 0
        self._delta = Delta()
        self._base_passed: dict[ContentTest, list[VaultPath]] = {}
        self._passed: dict[str, dict[ContentTest, bool]] = {}
        """Results of tests for each changed note, by its path, until it changes again."""

    @property
    def problems(self) -> Mapping[str, Problem]:
        delta = self._current_delta()
        return {
            path: problem
            for path, problem in self._base_index.problems.items()
            if path not in delta.stale
        } | delta.problems

    def files(self) -> Iterator[VaultPath]:
        delta = self._current_delta()
        old = (path for path in self._base_index.files() if path.text not in delta.stale)
        return heapq.merge(old, sorted(delta.files.values()))

    def notes(self, folder: VaultPath) -> Iterator[VaultPath]:
        return self._view.notes(folder)

    def facts(self, path: VaultPath) -> Facts:
        budget.check()
        facts = self._current_delta().facts.get(path.text)
        return facts if facts is not None else self._base_index.facts(path)

    def tagged(self, tag: str, folder: VaultPath) -> list[VaultPath]:
        delta = self._current_delta()
        old = self._base_index.tagged(tag, folder) if self._is_base_folder(folder) else []
        return delta.merge(old, delta.tagged(tag_key(tag), folder))

    def files_linking_name(self, name: str) -> list[VaultPath]:
        delta = self._current_delta()
        old = self._base_index.files_linking_name(name)
        return delta.merge(old, delta.files_linking_name(name))

    def files_named(self, name: str) -> list[VaultPath]:
        delta = self._current_delta()
        return delta.merge(self._base_index.files_named(name), delta.files_named(name))

    def bases(self) -> list[VaultPath]:
        delta = self._current_delta()
        new = [path for path in delta.files.values() if path.suffix == BASE]
        return delta.merge(self._base_index.bases(), new)

    def notes_with_references(self) -> list[VaultPath]:
        delta = self._current_delta()
        old = self._base_index.notes_with_references()
        return delta.merge(old, delta.notes_with_references())

    def backlinks(self, path: VaultPath) -> list[VaultPath]:
        delta = self._current_delta()
        name = file_name(path)
        if name in delta.changed_names:
            return super().backlinks(path)
        sources = {
            source for ending in (name, ".", "..") for source in delta.files_linking_name(ending)
        }
        new = [source for source in sources if self._links_to(source, path)]
        return delta.merge(self._base_index.backlinks(path), new)

    def texts(self, folder: VaultPath, *needles: Needle | None) -> Iterator[NoteContent]:
        delta = self._current_delta()
        old: Iterable[NoteContent] = ()
        if self._is_base_folder(folder):
            old = (
                note
                for note in self._base_index.texts(folder, *needles)
                if note.path.text not in delta.stale
            )
        changed = sorted(
            path for path in delta.files.values() if path.is_note and path.within(folder)
        )
        new = (NoteContent(path, read_note(self._view, path)) for path in changed)
        return budget.checked(heapq.merge(old, new, key=attrgetter("path.text")))

    def notes_with(self, test: ContentTest) -> list[VaultPath]:
        delta = self._current_delta()
        if test not in self._base_passed:
            self._base_passed[test] = self._base_index.notes_with(test)
        changed = [path for path in delta.files.values() if path.is_note]
        new = [path for path in changed if self._passes(path, test)]
        return delta.merge(self._base_passed[test], new)

    def _passes(self, path: VaultPath, test: ContentTest) -> bool:
        results = self._passed.setdefault(path.text, {})
        if test not in results:
            budget.check()
            content = read_note(self._view, path)
            results[test] = not isinstance(content, Problem) and test.passes(content)
        return results[test]

    def may_hold(self, folder: VaultPath, needle: Needle) -> set[str]:
        delta = self._current_delta()
        notes: set[str] = set()
        if self._is_base_folder(folder):
            notes = self._base_index.may_hold(folder, needle) - delta.stale
        notes.update(
            path.text for path in delta.files.values() if path.is_note and path.within(folder)
        )
        return notes

    def word_counts(self, word: QueryWord) -> Mapping[str, WordCount] | None:
        counts = self._base_index.word_counts(word)
        stale = self._current_delta().stale
        if counts is None or not stale:
            return counts
        return {text: count for text, count in counts.items() if text not in stale}

    def changed_notes(self) -> set[str]:
        delta = self._current_delta()
        changed = {text for text, path in delta.files.items() if path.is_note}
        return (self._base_index.changed_notes() - delta.stale) | changed

    def text(self, path: VaultPath) -> bytes | Problem:
        if path.text in self._current_delta().stale:
            return read_note(self._view, path)
        return self._base_index.text(path)

    def aliases(self) -> Iterator[tuple[str, VaultPath]]:
        delta = self._current_delta()
        for alias, path in self._base_index.aliases():
            if path.text not in delta.stale:
                yield alias, path
        yield from delta.aliases()

    def names(self) -> NameFinder:
        if not self._current_delta().stale:
            return self._base_index.names()
        return super().names()

    def resolve(self, target: str, source: VaultPath) -> VaultPath | None:
        budget.check()
        delta = self._current_delta()
        if not delta.changed_names:
            return self._base_index.resolve(target, source)
        return super().resolve(target, source)

    def _current_delta(self) -> Delta:
        """Scan the files touched since the last call, and return the difference to the base."""
        touched = self._entries.touched
        if self._processed == len(touched):
            return self._delta
        new = dict.fromkeys(touched[self._processed :])
        self._processed = len(touched)
        for path in new:
            self._passed.pop(path.text, None)
            exists = _is_file(self._view, path)
            self._update_names(path, exists=exists)
            if exists:
                self._delta.update(path, *self._scan(path))
            else:
                self._delta.remove(path)
        return self._delta

    def _update_names(self, path: VaultPath, *, exists: bool) -> None:
        """Record a changed name if a file was created or removed at `path`."""
        existed = path.text in self._delta.files or (
            path.text not in self._delta.stale and _is_file(self._base, path)
        )
        if exists == existed:
            return
        self._delta.changed_names.add(file_name(path))
        self._links.forget(file_name(path))

    def _scan(self, path: VaultPath) -> tuple[Facts, Problem | None]:
        if not has_facts(path):
            return NO_FACTS, None
        node = self._entries.get(path)
        origin = node.origin if node is not None and node.content is None else None
        if origin is not None and origin.suffix == path.suffix:
            return self._base_index.facts(origin), self._base_index.problems.get(origin.text)
        try:
            return scan_facts(path, self._view.read(path)), None
        except VaultError as error:
            return NO_FACTS, error.problem()

    def _is_base_folder(self, folder: VaultPath) -> bool:
        """Return whether the base has this folder. Only then can its index be queried for it."""
        entry = self._base.locate(folder)
        return folder == ROOT or (entry is not None and entry.kind == "folder")


def _is_file(view: VaultView, path: VaultPath) -> bool:
    """Return whether there is a file with exactly this spelling."""
    return view.locate(path) == VaultEntry(path, "file")
