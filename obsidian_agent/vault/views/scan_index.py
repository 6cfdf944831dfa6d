"""An index without memory: each file is read and scanned when the first question needs it, and then kept as long as the view."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from obsidian_agent.errors import Problem, VaultError
from obsidian_agent.vault.index.facts import NOTHING, Facts, facts_of, holds_facts, tag_key, tag_within
from obsidian_agent.vault.index.index import NoteText, VaultIndex, read_note
from obsidian_agent.vault.index.text_search import Needle
from obsidian_agent.vault.links.resolve import file_name, target_name
from obsidian_agent.vault.markdown.canvas import BASE
from obsidian_agent.vault.paths.path import ROOT, VaultPath
from obsidian_agent.vault.views.view import VaultView


class ScanIndex(VaultIndex):
    """See `VaultIndex`. A question for tags below a folder reads that folder, a question for links everything."""

    def __init__(self, view: VaultView) -> None:
        super().__init__()
        self._view = view
        self._facts: dict[str, Facts] = {}
        self._problems: dict[str, Problem] = {}
        self._files: list[VaultPath] | None = None
        self._naming: dict[str, list[VaultPath]] | None = None
        self._named: dict[str, list[VaultPath]] | None = None
        self._bases: list[VaultPath] | None = None

    @property
    def problems(self) -> Mapping[str, Problem]:
        return self._problems

    def files(self) -> Iterator[VaultPath]:
        if self._files is None:
            self._files = [entry.path for entry in self._view.walk(ROOT) if entry.kind == "file"]
        return iter(self._files)

    def notes(self, folder: VaultPath) -> Iterator[VaultPath]:
        if self._files is not None:
            return (path for path in self._files if path.is_note and path.within(folder))
        return (entry.path for entry in self._view.walk(folder) if entry.kind == "file" and entry.path.is_note)

    def facts(self, path: VaultPath) -> Facts:
        known = self._facts.get(path.text)
        if known is None:
            known = self._facts[path.text] = self._scanned(path)
        return known

    def tagged(self, tag: str, folder: VaultPath) -> list[VaultPath]:
        wanted = tag_key(tag)
        return [path for path in self.notes(folder) if any(tag_within(tag_key(name), wanted) for name in self.facts(path).tags)]

    def naming(self, name: str) -> list[VaultPath]:
        if self._naming is None:
            self._naming = {}
            for path in filter(holds_facts, self.files()):
                for key in set(map(target_name, self.facts(path).targets)):
                    self._naming.setdefault(key, []).append(path)
        return self._naming.get(name, [])

    def named(self, name: str) -> list[VaultPath]:
        if self._named is None:
            self._named = {}
            for path in self.files():
                self._named.setdefault(file_name(path), []).append(path)
        return self._named.get(name, [])

    def bases(self) -> list[VaultPath]:
        if self._bases is None:
            self._bases = [path for path in self.files() if path.suffix == BASE]
        return self._bases

    def referring(self) -> list[VaultPath]:
        return [path for path in self.files() if self.facts(path).references]

    def texts(self, folder: VaultPath, *needles: Needle | None) -> Iterator[NoteText]:
        return (NoteText(path, read_note(self._view, path)) for path in self.notes(folder))

    def text(self, path: VaultPath) -> bytes | Problem:
        return read_note(self._view, path)

    def aliases(self) -> Iterator[tuple[str, VaultPath]]:
        return ((alias, path) for path in self.notes(ROOT) for alias in self.facts(path).aliases)

    def _scanned(self, path: VaultPath) -> Facts:
        if not holds_facts(path):
            return NOTHING
        try:
            return facts_of(path, self._view.read(path))
        except VaultError as error:
            self._problems[path.text] = error.problem()
            return NOTHING
