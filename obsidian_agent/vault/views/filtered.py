"""Views without hidden files: as if they did not exist, or as if they had no text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from obsidian_agent import budget
from obsidian_agent.errors import Problem
from obsidian_agent.vault.filesystem.inventory import Inventory
from obsidian_agent.vault.filesystem.store import missing
from obsidian_agent.vault.index.index import NO_FACTS, Facts, NoteContent, PathCache, VaultIndex
from obsidian_agent.vault.index.text_search import Needle
from obsidian_agent.vault.paths.path import ROOT, PathUse, VaultPath, parse
from obsidian_agent.vault.views.view import FileStat, VaultEntry, VaultView

if TYPE_CHECKING:
    from obsidian_agent.vault.index.word_query import QueryWord
    from obsidian_agent.vault.index.words import WordCount


class FilteredView(VaultView):
    """A view in which hidden files and folders do not exist.

    `is_denied` decides by path what is hidden. A link or hard link to something hidden is hidden
    too, also in listings, and so is a folder in which every file is hidden.
    """

    def __init__(self, inner: VaultView, is_denied: Callable[[VaultPath], bool]) -> None:
        self.inner = inner
        self.is_denied = is_denied
        self._hidden = {ROOT.text: False}  # a vault in which everything is hidden is empty
        self._index: VaultIndex | None = None

    @property
    def index(self) -> VaultIndex:
        if self._index is None:
            self._index = FilteredIndex(self.inner.index, self)
        return self._index

    def is_hidden(self, path: VaultPath) -> bool:
        """Return whether a path is hidden or leads to something hidden, as a hard link does."""
        hidden = self._hidden.get(path.text)
        if hidden is None:
            names = self.inner.names(path)
            hidden = self._hidden[path.text] = (
                self.is_denied(path)
                or any(map(self.is_denied, names))
                or (self._is_folder(path) and any(name.text in self._unlisted for name in names))
            )
        return hidden

    def _is_folder(self, path: VaultPath) -> bool:
        entry = self.inner.locate(path)
        return entry is not None and entry.kind == "folder"

    def is_listed(self, path: VaultPath) -> bool:
        """Return whether an entry of a walk is visible. Faster than `is_hidden`."""
        return not self.is_denied(path) and path.text not in self._unlisted

    @cached_property
    def _unlisted(self) -> frozenset[str]:
        """The denied files, all links to them, and the folders in which every file is hidden."""
        denied, visible, links = list[VaultPath](), list[VaultPath](), list[VaultPath]()
        for entry in budget.checked(self.inner.walk(ROOT)):
            if entry.kind == "file" and self.is_denied(entry.path):
                denied.append(entry.path)
            elif self.inner.is_link(entry.path):
                links.append(entry.path)
            elif entry.kind == "file":
                visible.append(entry.path)
        unlisted = {path.text for path in denied}
        # A hard link has a name on both sides, so one side is enough: the shorter one.
        for path in (*min(denied, visible, key=len), *links):
            names = self.inner.names(path)
            if any(map(self.is_denied, names)):
                unlisted.update(name.text for name in names)
        with_hidden, with_visible = set[str](), {ROOT.text}
        for path in (*denied, *visible, *links):
            folders = with_hidden if path.text in unlisted else with_visible
            parent = path.parent
            while parent.text not in folders:
                folders.add(parent.text)
                parent = parent.parent
                if parent.is_root:
                    break
        unlisted |= with_hidden - with_visible
        for link in links:
            if any(name.text in unlisted for name in self.inner.names(link)):
                unlisted.add(link.text)
        return frozenset(unlisted)

    def locate(self, path: VaultPath) -> VaultEntry | None:
        return None if self.is_hidden(path) else self.inner.locate(path)

    def twins(self, path: VaultPath) -> Sequence[VaultPath]:
        return [twin for twin in self.inner.twins(path) if not self.is_hidden(twin)]

    def read(self, path: VaultPath) -> bytes:
        budget.check()
        self._check_visible(path)
        return self.inner.read(path)

    def stat(self, path: VaultPath) -> FileStat:
        self._check_visible(path)
        return self.inner.stat(path)

    def children(self, folder: VaultPath) -> list[VaultEntry]:
        self._check_visible(folder)
        return [entry for entry in self.inner.children(folder) if self.is_listed(entry.path)]

    def walk(self, folder: VaultPath) -> Iterator[VaultEntry]:
        self._check_visible(folder)
        return (
            entry for entry in budget.checked(self.inner.walk(folder)) if self.is_listed(entry.path)
        )

    def origin(self, path: VaultPath) -> VaultPath | None:
        return None if self.is_hidden(path) else self.inner.origin(path)

    def current(self, origin: VaultPath) -> VaultPath | None:
        return None if self.is_hidden(origin) else self.inner.current(origin)

    def is_link(self, path: VaultPath) -> bool:
        return not self.is_hidden(path) and self.inner.is_link(path)

    def real(self, path: VaultPath) -> VaultPath:
        return self.inner.real(path)

    def names(self, path: VaultPath) -> Sequence[VaultPath]:
        return self.inner.names(path)

    def inventory(self, path: VaultPath) -> Inventory | None:
        """Return what moves along with the entry at `path`, including hidden files."""
        self._check_visible(path)
        return self.inner.inventory(path)

    def trash_names(self) -> Collection[str]:
        return self.inner.trash_names()

    def _check_visible(self, path: VaultPath) -> None:
        """Raise FILE_NOT_FOUND for a hidden path."""
        if self.is_hidden(path):
            raise missing(path)


class FilteredIndex(VaultIndex):
    """An index without hidden files. Links resolve among the other files."""

    def __init__(self, inner: VaultIndex, view: FilteredView) -> None:
        super().__init__()
        self._inner = inner
        self._view = view
        self._vault_path = PathCache()

    @property
    def problems(self) -> Mapping[str, Problem]:
        return {
            text: problem
            for text, problem in self._inner.problems.items()
            if not self._view.is_hidden(parse(text, PathUse.READ))
        }

    def notes(self, folder: VaultPath) -> Iterator[VaultPath]:
        return (path for path in self._inner.notes(folder) if self._view.is_listed(path))

    def files(self) -> Iterator[VaultPath]:
        return (path for path in self._inner.files() if self._view.is_listed(path))

    def facts(self, path: VaultPath) -> Facts:
        return NO_FACTS if self._view.is_hidden(path) else self._inner.facts(path)

    def tagged(self, tag: str, folder: VaultPath) -> list[VaultPath]:
        return self._visible(self._inner.tagged(tag, folder))

    def files_linking_name(self, name: str) -> list[VaultPath]:
        return self._visible(self._inner.files_linking_name(name))

    def files_named(self, name: str) -> list[VaultPath]:
        return self._visible(self._inner.files_named(name))

    def bases(self) -> list[VaultPath]:
        return self._visible(self._inner.bases())

    def notes_with_references(self) -> list[VaultPath]:
        return self._visible(self._inner.notes_with_references())

    def texts(self, folder: VaultPath, *needles: Needle | None) -> Iterator[NoteContent]:
        return (
            note
            for note in budget.checked(self._inner.texts(folder, *needles))
            if not self._view.is_hidden(note.path)
        )

    def may_hold(self, folder: VaultPath, needle: Needle) -> set[str]:
        return super().may_hold(folder, needle) & self._inner.may_hold(folder, needle)

    def word_counts(self, word: QueryWord) -> Mapping[str, WordCount] | None:
        counts = self._inner.word_counts(word)
        if counts is None:
            return None
        return {text: count for text, count in counts.items() if not self._is_hidden(text)}

    def changed_notes(self) -> set[str]:
        return {text for text in self._inner.changed_notes() if not self._is_hidden(text)}

    def text(self, path: VaultPath) -> bytes | Problem:
        if self._view.is_hidden(path):
            return missing(path).problem()
        return self._inner.text(path)

    def aliases(self) -> Iterator[tuple[str, VaultPath]]:
        return (
            (alias, path) for alias, path in self._inner.aliases() if not self._view.is_hidden(path)
        )

    def _is_hidden(self, text: str) -> bool:
        budget.check()
        return self._view.is_hidden(self._vault_path(text))

    def _visible(self, paths: Iterable[VaultPath]) -> list[VaultPath]:
        return [path for path in paths if not self._view.is_hidden(path)]


class TextlessView(FilteredView):
    """A view in which hidden files exist but have no text."""

    @property
    def index(self) -> VaultIndex:
        if self._index is None:
            self._index = TextlessIndex(self.inner.index, self)
        return self._index

    def locate(self, path: VaultPath) -> VaultEntry | None:
        return self.inner.locate(path)

    def twins(self, path: VaultPath) -> Sequence[VaultPath]:
        return self.inner.twins(path)

    def read(self, path: VaultPath) -> bytes:
        data = self.inner.read(path)
        return b"" if self.is_hidden(path) else data

    def children(self, folder: VaultPath) -> list[VaultEntry]:
        return self.inner.children(folder)

    def walk(self, folder: VaultPath) -> Iterator[VaultEntry]:
        return self.inner.walk(folder)

    def origin(self, path: VaultPath) -> VaultPath | None:
        return self.inner.origin(path)

    def current(self, origin: VaultPath) -> VaultPath | None:
        return self.inner.current(origin)

    def is_link(self, path: VaultPath) -> bool:
        return self.inner.is_link(path)

    def _check_visible(self, path: VaultPath) -> None:
        """Accept every path: all files exist in this view."""


class TextlessIndex(FilteredIndex):
    """An index with the names of hidden files, but without their contents."""

    def notes(self, folder: VaultPath) -> Iterator[VaultPath]:
        return self._inner.notes(folder)

    def files(self) -> Iterator[VaultPath]:
        return self._inner.files()

    def files_named(self, name: str) -> list[VaultPath]:
        return self._inner.files_named(name)

    def text(self, path: VaultPath) -> bytes | Problem:
        return b"" if self._view.is_hidden(path) else self._inner.text(path)
