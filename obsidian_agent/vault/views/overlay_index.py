"""The index of a vault with changes over it: what lies below, but for the files that the changes touched."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from operator import attrgetter

from obsidian_agent import budget
from obsidian_agent.errors import Problem, VaultError
from obsidian_agent.vault.index.index import (
    NO_FACTS,
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


class OverlayIndex(VaultIndex):
    """See `VaultIndex`. It follows the overlay: before each answer the files touched since the last one are looked at again."""

    def __init__(self, base: VaultView, entries: OverlayEntries, view: VaultView) -> None:
        """`view` is the overlay: `base` with the changes that `entries` has."""
        super().__init__()
        self._base = base
        self._below = base.index
        self._entries = entries
        self._view = view
        self._seen = 0
        self._delta = Delta()

    @property
    def problems(self) -> Mapping[str, Problem]:
        delta = self._followed()
        return {
            path: problem
            for path, problem in self._below.problems.items()
            if path not in delta.stale
        } | delta.problems

    def files(self) -> Iterator[VaultPath]:
        delta = self._followed()
        old = (path for path in self._below.files() if path.text not in delta.stale)
        return heapq.merge(old, sorted(delta.files.values()))

    def notes(self, folder: VaultPath) -> Iterator[VaultPath]:
        return (
            entry.path
            for entry in self._view.walk(folder)
            if entry.kind == "file" and entry.path.is_note
        )

    def facts(self, path: VaultPath) -> Facts:
        budget.check()
        known = self._followed().facts.get(path.text)
        return known if known is not None else self._below.facts(path)

    def tagged(self, tag: str, folder: VaultPath) -> list[VaultPath]:
        delta = self._followed()
        below = self._below.tagged(tag, folder) if self._was_there(folder) else []
        return delta.merge(below, delta.tagged(tag_key(tag), folder))

    def files_linking_name(self, name: str) -> list[VaultPath]:
        delta = self._followed()
        return delta.merge(self._below.files_linking_name(name), delta.files_linking_name(name))

    def files_named(self, name: str) -> list[VaultPath]:
        delta = self._followed()
        return delta.merge(self._below.files_named(name), delta.files_named(name))

    def bases(self) -> list[VaultPath]:
        delta = self._followed()
        return delta.merge(
            self._below.bases(), [path for path in delta.files.values() if path.suffix == BASE]
        )

    def notes_with_references(self) -> list[VaultPath]:
        delta = self._followed()
        return delta.merge(self._below.notes_with_references(), delta.notes_with_references())

    def backlinks(self, path: VaultPath) -> list[VaultPath]:
        delta = self._followed()
        if file_name(path) in delta.changed_names:
            return super().backlinks(path)
        name = file_name(path)
        files_linking_name = {
            source for ending in (name, ".", "..") for source in delta.files_linking_name(ending)
        }
        here = [source for source in files_linking_name if self._links_to(source, path)]
        return delta.merge(self._below.backlinks(path), here)

    def texts(self, folder: VaultPath, *needles: Needle | None) -> Iterator[NoteContent]:
        delta = self._followed()
        old = (
            (
                text
                for text in self._below.texts(folder, *needles)
                if text.path.text not in delta.stale
            )
            if self._was_there(folder)
            else ()
        )
        here = sorted(path for path in delta.files.values() if path.is_note and path.within(folder))
        new = (NoteContent(path, read_note(self._view, path)) for path in here)
        return budget.checked(heapq.merge(old, new, key=attrgetter("path.text")))

    def text(self, path: VaultPath) -> bytes | Problem:
        return (
            read_note(self._view, path)
            if path.text in self._followed().stale
            else self._below.text(path)
        )

    def aliases(self) -> Iterator[tuple[str, VaultPath]]:
        delta = self._followed()
        yield from (
            (alias, path) for alias, path in self._below.aliases() if path.text not in delta.stale
        )
        yield from delta.aliases()

    def names(self) -> NameFinder:
        if not self._followed().stale:
            return self._below.names()
        return super().names()

    def resolve(self, target: str, source: VaultPath) -> VaultPath | None:
        budget.check()
        delta = self._followed()
        if not delta.changed_names:
            return self._below.resolve(target, source)
        return super().resolve(target, source)

    # --- following the overlay ---------------------------------------------------------------------------------------------------

    def _followed(self) -> Delta:
        touched = self._entries.touched
        if self._seen == len(touched):
            return self._delta
        new = dict.fromkeys(touched[self._seen :])
        self._seen = len(touched)
        for path in new:
            there = _holds_file(self._view, path)
            self._note_name(path, there=there)
            if there:
                self._delta.update(path, *self._looked_at(path))
            else:
                self._delta.remove(path)
        return self._delta

    def _note_name(self, path: VaultPath, *, there: bool) -> None:
        """Keep account of files that came and went: before this change, did the path hold a file?"""
        was_there = path.text in self._delta.files or (
            path.text not in self._delta.stale and _holds_file(self._base, path)
        )
        if there == was_there:
            return
        self._delta.changed_names.add(file_name(path))
        self._links.forget(file_name(path))

    def _looked_at(self, path: VaultPath) -> tuple[Facts, Problem | None]:
        if not has_facts(path):
            return NO_FACTS, None
        node = self._entries.get(path)
        origin = node.origin if node is not None and node.content is None else None
        if origin is not None and origin.suffix == path.suffix:
            return self._below.facts(origin), self._below.problems.get(origin.text)
        try:
            return scan_facts(path, self._view.read(path)), None
        except VaultError as error:
            return NO_FACTS, error.problem()

    def _was_there(self, folder: VaultPath) -> bool:
        """Whether the folder is one of the vault below: only then its index can be asked about it."""
        entry = self._base.locate(folder)
        return folder == ROOT or (entry is not None and entry.kind == "folder")


def _holds_file(view: VaultView, path: VaultPath) -> bool:
    """Whether there is a file of this very spelling."""
    return view.locate(path) == VaultEntry(path, "file")
