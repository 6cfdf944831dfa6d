"""An index without a store: it scans files when a query needs them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from obsidian_agent.errors import Problem, VaultError
from obsidian_agent.vault.index.index import (
    NO_FACTS,
    Facts,
    NoteContent,
    VaultIndex,
    has_facts,
    read_note,
    scan_facts,
    tag_key,
    tag_within,
)
from obsidian_agent.vault.index.text_search import Needle
from obsidian_agent.vault.links.resolve import file_name, target_name
from obsidian_agent.vault.markdown.bases import BASE
from obsidian_agent.vault.paths.path import ROOT, VaultPath
from obsidian_agent.vault.views.view import VaultView


class ScanIndex(VaultIndex):
    """An index that reads and scans each file once, when the first query needs it.

    A query for tags below a folder reads that folder; a query for links reads the whole vault.
    """

    def __init__(self, view: VaultView) -> None:
        super().__init__()
        self._view = view
        self._facts: dict[str, Facts] = {}
        self._problems: dict[str, Problem] = {}

    @property
    def problems(self) -> Mapping[str, Problem]:
        return self._problems

    @cached_property
    def _files(self) -> list[VaultPath]:
        return [entry.path for entry in self._view.walk(ROOT) if entry.kind == "file"]

    def files(self) -> Iterator[VaultPath]:
        return iter(self._files)

    def notes(self, folder: VaultPath) -> Iterator[VaultPath]:
        return self._view.notes(folder)

    def facts(self, path: VaultPath) -> Facts:
        facts = self._facts.get(path.text)
        if facts is None:
            facts = self._facts[path.text] = self._scan(path)
        return facts

    def tagged(self, tag: str, folder: VaultPath) -> list[VaultPath]:
        key = tag_key(tag)
        return [
            path
            for path in self.notes(folder)
            if any(tag_within(tag_key(name), key) for name in self.facts(path).tags)
        ]

    @cached_property
    def _by_linked_name(self) -> dict[str, list[VaultPath]]:
        return _group(
            (name, path)
            for path in filter(has_facts, self._files)
            for name in set(map(target_name, self.facts(path).targets))
        )

    def files_linking_name(self, name: str) -> list[VaultPath]:
        return self._by_linked_name.get(name, [])

    @cached_property
    def _by_name(self) -> dict[str, list[VaultPath]]:
        return _group((file_name(path), path) for path in self._files)

    def files_named(self, name: str) -> list[VaultPath]:
        return self._by_name.get(name, [])

    def bases(self) -> list[VaultPath]:
        return [path for path in self._files if path.suffix == BASE]

    def notes_with_references(self) -> list[VaultPath]:
        return [path for path in self._files if self.facts(path).references]

    def texts(self, folder: VaultPath, *needles: Needle | None) -> Iterator[NoteContent]:
        return (NoteContent(path, read_note(self._view, path)) for path in self.notes(folder))

    def text(self, path: VaultPath) -> bytes | Problem:
        return read_note(self._view, path)

    def aliases(self) -> Iterator[tuple[str, VaultPath]]:
        return ((alias, path) for path in self.notes(ROOT) for alias in self.facts(path).aliases)

    def _scan(self, path: VaultPath) -> Facts:
        if not has_facts(path):
            return NO_FACTS
        try:
            return scan_facts(path, self._view.read(path))
        except VaultError as error:
            self._problems[path.text] = error.problem()
            return NO_FACTS


def _group(pairs: Iterable[tuple[str, VaultPath]]) -> dict[str, list[VaultPath]]:
    groups: dict[str, list[VaultPath]] = {}
    for key, path in pairs:
        groups.setdefault(key, []).append(path)
    return groups
