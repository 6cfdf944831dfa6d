"""The view of a vault that a client has: the files that the user's rules share, and no others.

Which files are shared is decided once for each state of the index, and again for the files that
changed. These decisions serve queries over the whole vault. A file that is read, and every path of
an answer, is decided again as it is on disk then.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from typing import Any, Final, TypeVar

from obsidian_agent import budget
from obsidian_agent.agent.privacy.consent import Gate, Grants, Level
from obsidian_agent.errors import Problem
from obsidian_agent.plan.policy import SharingRules
from obsidian_agent.tools.text.tasks import DUE_MARKS, ListedTask, ListTasksInput, tasks_in
from obsidian_agent.vault.filesystem.store import VaultStore, missing
from obsidian_agent.vault.index.file_names import FileNames
from obsidian_agent.vault.index.index import NO_FACTS, Facts, NoteContent, PathCache, is_note_path
from obsidian_agent.vault.index.name_search import NameFinder
from obsidian_agent.vault.index.stamps import read_stamp
from obsidian_agent.vault.index.stored import StoredIndex
from obsidian_agent.vault.index.text_search import Needle, exact_needle
from obsidian_agent.vault.index.word_query import QueryWord
from obsidian_agent.vault.index.words import WordCount
from obsidian_agent.vault.paths.path import ROOT, VaultPath
from obsidian_agent.vault.views.disk import DiskView
from obsidian_agent.vault.views.filtered import FilteredIndex, FilteredView

_TASK: Final = re.compile(rb"[-*+.)][ \t]+\[(?:[^\]\r\n\x80-\xff]|[\xc0-\xff][\x80-\xbf]+)\]")
"""A list item that begins with a box of one character."""


MAX_READ: Final = 50
"""Notes that are read rather than asking the index first which of them may hold something."""
MAX_RESULTS: Final = 64
"""Results of queries over the whole vault that are stored for one state of the index."""

Value = TypeVar("Value")


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
        self._store, self._vault_path = store, PathCache()
        self._facts: dict[str, Facts] = {}
        self._with_tasks: dict[str, bool] = {}
        self._due: dict[str, tuple[ListedTask, ...]] = {}
        self._results: dict[tuple[object, ...], Any] = {}
        self._results_of_names: dict[tuple[object, ...], Any] = {}
        self._decisions: dict[str, bool]
        self.paths: frozenset[str]
        self.hidden: frozenset[str]
        self.folders: frozenset[str]
        self.unlisted: frozenset[str]
        gate = _gate(rules, FileNames(store))

        def decide(text: str) -> bool:
            return gate.allowed(self._vault_path(text), Level.TEXT) is not None

        if before is not None and before.rules == rules and _follows(index, before.index):
            changed, present = _changed(index), index.changed.delta.files
            self._decisions = dict(before._decisions)
            for text in changed:
                if text in present:
                    self._decisions[text] = decide(text)
                else:
                    self._decisions.pop(text, None)
            self._facts, self._with_tasks = dict(before._facts), dict(before._with_tasks)
            self._due = dict(before._due)
            for text in changed:
                for cache in (self._facts, self._with_tasks, self._due):
                    cache.pop(text, None)
            if self._decisions == before._decisions:
                self.paths, self.hidden = before.paths, before.hidden
                self.folders, self.unlisted = before.folders, before.unlisted
                self._results_of_names = before._results_of_names
                return
        else:
            self._decisions = {text: decide(text) for text in budget.checked(index.file_paths())}
        self.paths = frozenset(text for text, shared in self._decisions.items() if shared)
        self.hidden = frozenset(self._decisions.keys() - self.paths)
        self.folders = frozenset({ROOT.text, *_folders_of(self.paths)})
        self.unlisted = self.hidden | (_folders_of(self.hidden) - self.folders)

    @cached_property
    def notes(self) -> Sequence[str]:
        """The sorted paths of the shared notes."""
        return sorted(filter(is_note_path, self.paths))

    @cached_property
    def latest(self) -> Sequence[VaultPath]:
        """The shared notes, the one that was modified last first."""
        times = self.modified_ns
        return [*map(self._vault_path, sorted(times, key=lambda text: (-times[text], text)))]

    def remember(
        self, key: tuple[object, ...], make: Callable[[], Value], *, of_names: bool = False
    ) -> Value:
        """Return the result of `make`, from its first call with this key in this state.

        One `of_names` depends on the paths of the shared files alone, and outlasts other changes.
        """
        results = self._results_of_names if of_names else self._results
        if key not in results:
            if len(results) >= MAX_RESULTS:
                results.clear()
            results[key] = make()
        result: Value = results[key]
        return result

    @cached_property
    def tasks_due(self) -> Sequence[ListedTask]:
        """The tasks with a due date in the shared notes, the earliest first."""
        return sorted(self._tasks_due(), key=lambda task: task.due or "")

    def _tasks_due(self) -> Iterator[ListedTask]:
        """Yield the tasks with a due date, by path and line."""
        unread = self.notes_with_tasks - self._due.keys()
        if len(unread) > MAX_READ:
            needles = [needle for mark in DUE_MARKS if (needle := exact_needle(mark)) is not None]
            notes = set().union(*(self.index.may_hold(ROOT, needle) for needle in needles))
            self._due |= dict.fromkeys(unread - notes, ())
        for text in budget.checked(sorted(self.notes_with_tasks)):
            if text not in self._due:
                path = self._vault_path(text)
                data = self.index.text(path)
                note = "" if isinstance(data, Problem) else data.decode(errors="replace")
                tasks = tasks_in(ListTasksInput(status="all"), path, note)
                self._due[text] = tuple(task for task in tasks if task.due is not None)
            yield from self._due[text]

    @cached_property
    def modified_ns(self) -> Mapping[str, int]:
        """The times at which the shared notes were modified, in nanoseconds since the epoch."""
        snapshot, changed = self.index.snapshot, self.index.changed.stamps
        times = {
            text: stamp[1] for text, stamp in zip(snapshot.paths, snapshot.stamps(), strict=True)
        }
        times |= {text: stamp.mtime_ns for text, stamp in changed.items()}
        for text in self.index.changed.delta.files.keys() - changed.keys():
            stamp = read_stamp(self._store, self._vault_path(text))
            times[text] = 0 if stamp is None else stamp.mtime_ns
        return {text: times[text] for text in self.notes}

    @cached_property
    def notes_with_tasks(self) -> frozenset[str]:
        """The shared notes with a line that looks like a task."""
        for text in budget.checked(self.notes):
            if text not in self._with_tasks:
                data = self.index.text(self._vault_path(text))
                self._with_tasks[text] = isinstance(data, bytes) and bool(_TASK.search(data))
        return frozenset(text for text in self.notes if self._with_tasks[text])

    def facts(self, path: VaultPath) -> Facts:
        """Return the facts of a file; `NO_FACTS` for a hidden one."""
        if path.text not in self.paths:
            return NO_FACTS
        facts = self._facts.get(path.text)
        if facts is None:
            facts = self._facts[path.text] = self.index.facts(path)
        return facts


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

    def is_hidden(self, path: VaultPath) -> bool:
        if path.text not in self.files.paths:
            return super().is_hidden(path)
        hidden = self._hidden.get(path.text)
        if hidden is None:  # the names of a file are looked at again, but not its folder
            hidden = self._hidden[path.text] = any(map(self.is_denied, self.inner.names(path)))
        return hidden

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
        if folder.is_root:
            return len(self._files.notes)
        return sum(1 for _ in self._notes_below(folder))

    def files(self) -> Iterator[VaultPath]:
        return map(self._vault_path, sorted(self._files.paths))

    def facts(self, path: VaultPath) -> Facts:
        return self._files.facts(path)

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


def _changed(index: StoredIndex) -> set[str]:
    """Return the files that changed since the snapshot of an index."""
    return index.changed.delta.files.keys() | index.changed.delta.stale


def _follows(index: StoredIndex, before: StoredIndex) -> bool:
    """Return whether an index has the snapshot and all changes of an earlier one."""
    return index.snapshot is before.snapshot and _changed(before) <= _changed(index)


def _folders_of(files: Set[str]) -> set[str]:
    """Return every folder with one of these files in it or below it."""
    folders: set[str] = set()
    for text in files:
        folder = text.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return folders
