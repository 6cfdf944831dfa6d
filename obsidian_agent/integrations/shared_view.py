"""The view of a vault that a client has: the files that the user's rules share, and no others.

Which files are shared is decided once for each state of the index, and again for the files that
changed. These decisions serve queries over the whole vault. A file that is read, and every path of
an answer, is decided again as it is on disk then.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property

from obsidian_agent import budget
from obsidian_agent.agent.privacy.consent import Gate, Grants, Level
from obsidian_agent.errors import Problem
from obsidian_agent.plan.policy import SharingRules
from obsidian_agent.vault.filesystem.store import VaultStore, missing
from obsidian_agent.vault.index.file_names import FileNames
from obsidian_agent.vault.index.index import NO_FACTS, Facts, NoteContent, PathCache, is_note_path
from obsidian_agent.vault.index.name_search import NameFinder
from obsidian_agent.vault.index.stored import StoredIndex
from obsidian_agent.vault.index.text_search import Needle
from obsidian_agent.vault.index.word_query import QueryWord
from obsidian_agent.vault.index.words import WordCount
from obsidian_agent.vault.paths.path import ROOT, VaultPath
from obsidian_agent.vault.views.disk import DiskView
from obsidian_agent.vault.views.filtered import FilteredIndex, FilteredView


class SharedFileSet:
    """The files that rules share in one state of the index.

    A folder is shared if a file in it is. `unlisted` are the hidden files, and the folders with
    files none of which is shared.
    """

    def __init__(
        self,
        index: StoredIndex,
        rules: SharingRules,
        store: VaultStore,
        before: SharedFileSet | None = None,
    ) -> None:
        """Decide about every file, but for those that are unchanged since `before`. May block."""
        self.index = index
        self.rules = rules
        known: Mapping[str, bool] = {}
        if before is not None and before.rules == rules and before.index.snapshot is index.snapshot:
            known = before._decisions
        changed = index.changed.delta.files
        gate, vault_path = _gate(rules, FileNames(store)), PathCache()
        self._decisions: dict[str, bool] = {
            text: known[text]
            if text in known and text not in changed
            else gate.allowed(vault_path(text), Level.TEXT) is not None
            for text in budget.checked(index.file_paths())
        }
        self.paths = frozenset(text for text, shared in self._decisions.items() if shared)
        self.hidden = frozenset(self._decisions.keys() - self.paths)
        self.folders = frozenset({ROOT.text, *_folders_of(self.paths)})
        self.unlisted = self.hidden | (_folders_of(self.hidden) - self.folders)

    @cached_property
    def notes(self) -> Sequence[str]:
        """The sorted paths of the shared notes."""
        return sorted(filter(is_note_path, self.paths))


class SharedFilesCache:
    """The latest `SharedFileSet` of a vault. Threads may share it."""

    def __init__(self) -> None:
        self._latest: SharedFileSet | None = None
        self._lock = threading.Lock()

    def get(self, index: StoredIndex, rules: SharingRules, store: VaultStore) -> SharedFileSet:
        """Return the shared files of a state of the index. May block."""
        with self._lock:
            latest = self._latest
            if latest is None or latest.index is not index or latest.rules != rules:
                latest = self._latest = SharedFileSet(index, rules, store, latest)
            return latest


class SharedView(FilteredView):
    """The view of a client. Names in the trash are hidden, since they may come from anywhere."""

    def __init__(self, store: VaultStore, files: SharedFileSet) -> None:
        inner = DiskView(store, lambda: files.index)
        # The view judges every name of a file, so the gate judges each path by itself.
        gate = Gate(files.rules, Grants(), False, lambda path: (path,))
        super().__init__(
            inner,
            lambda path: gate.allowed(path, Level.TEXT) is None and path.text not in files.folders,
        )
        self.files = files

    @property
    def index(self) -> FilteredIndex:
        if self._index is None:
            self._index = SharedIndex(self.files, self)
        assert isinstance(self._index, FilteredIndex)
        return self._index

    @property
    def _unlisted(self) -> frozenset[str]:
        return self.files.unlisted

    def is_listed(self, path: VaultPath) -> bool:
        return path.text in self.files.paths or not self.is_hidden(path)

    def notes(self, folder: VaultPath) -> Iterator[VaultPath]:
        self._check_visible(folder)
        return self.index.notes(folder)

    def trash_names(self) -> tuple[str, ...]:
        return ()


class SharedIndex(FilteredIndex):
    """The index of a client's view, which takes the decisions of the index's own state."""

    def __init__(self, files: SharedFileSet, view: SharedView) -> None:
        super().__init__(files.index, view)
        self._stored = files.index
        self._files = files
        self._vault_path = PathCache()

    @property
    def problems(self) -> Mapping[str, Problem]:
        return {
            text: problem
            for text, problem in self._stored.problems.items()
            if text in self._files.paths
        }

    def notes(self, folder: VaultPath) -> Iterator[VaultPath]:
        return map(self._vault_path, self._notes_below(folder))

    def note_count(self, folder: VaultPath) -> int:
        return sum(1 for _ in self._notes_below(folder))

    def files(self) -> Iterator[VaultPath]:
        return map(self._vault_path, sorted(self._files.paths))

    def facts(self, path: VaultPath) -> Facts:
        return self._stored.facts(path) if path.text in self._files.paths else NO_FACTS

    def texts(self, folder: VaultPath, *needles: Needle | None) -> Iterator[NoteContent]:
        shared = self._files.paths
        return (
            note
            for note in budget.checked(self._stored.texts(folder, *needles))
            if note.path.text in shared
        )

    def may_hold(self, folder: VaultPath, needle: Needle) -> set[str]:
        return self._stored.may_hold(folder, needle) & self._files.paths

    def word_counts(self, word: QueryWord) -> Mapping[str, WordCount] | None:
        counts = self._stored.word_counts(word)
        if counts is None or not self._files.hidden:
            return counts
        shared = self._files.paths
        return {text: count for text, count in counts.items() if text in shared}

    def changed_notes(self) -> set[str]:
        return self._stored.changed_notes() & self._files.paths

    def text(self, path: VaultPath) -> bytes | Problem:
        if path.text not in self._files.paths:
            return missing(path).problem()
        return self._stored.text(path)

    def aliases(self) -> Iterator[tuple[str, VaultPath]]:
        return (row for row in self._stored.aliases() if row[1].text in self._files.paths)

    def names(self) -> NameFinder:
        return self._stored.names(self._files.hidden)

    def _notes_below(self, folder: VaultPath) -> Iterator[str]:
        prefix = f"{folder.text}/" if folder.text else ""
        return (text for text in self._files.notes if text.startswith(prefix))

    def _visible(self, paths: Iterable[VaultPath]) -> list[VaultPath]:
        return [path for path in paths if path.text in self._files.paths]


def _gate(rules: SharingRules, names: Callable[[VaultPath], Sequence[VaultPath]]) -> Gate:
    known: dict[str, Sequence[VaultPath]] = {}

    def names_once(path: VaultPath) -> Sequence[VaultPath]:
        if path.text not in known:
            known[path.text] = names(path)
        return known[path.text]

    return Gate(rules, Grants(), False, names_once)


def _folders_of(files: Set[str]) -> set[str]:
    """Return every folder with one of these files in it or below it."""
    folders: set[str] = set()
    for text in files:
        folder = text.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return folders
