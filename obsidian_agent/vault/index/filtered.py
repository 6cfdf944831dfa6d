"""The index of a vault of which something is hidden: another index without that, and links decided among the files that are left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from obsidian_agent.errors import Problem
from obsidian_agent.vault.filesystem.store import missing
from obsidian_agent.vault.index.facts import NOTHING, Facts, LinksByName, linking
from obsidian_agent.vault.index.index import NameFinder, VaultIndex
from obsidian_agent.vault.index.name_search import NameSearch
from obsidian_agent.vault.index.needle import Needle
from obsidian_agent.vault.index.texts import NoteText
from obsidian_agent.vault.paths.path import PathUse, VaultPath, parse
from obsidian_agent.vault.views.filtered import HidingView


class HidingIndex:
    """See `VaultIndex`."""

    def __init__(self, inner: VaultIndex, view: HidingView) -> None:
        self._inner = inner
        self._view = view
        self._links = LinksByName(self.named)

    @property
    def problems(self) -> Mapping[str, Problem]:
        found = self._inner.problems
        return {text: problem for text, problem in found.items() if not self._view.hidden(parse(text, PathUse.READ))}

    def notes(self, folder: VaultPath) -> Iterator[VaultPath]:
        return (path for path in self._inner.notes(folder) if not self._view.denied(path))

    def files(self) -> Iterator[VaultPath]:
        return (path for path in self._inner.files() if not self._view.denied(path))

    def facts(self, path: VaultPath) -> Facts:
        return NOTHING if self._view.hidden(path) else self._inner.facts(path)

    def tagged(self, tag: str, folder: VaultPath) -> list[VaultPath]:
        return self._left(self._inner.tagged(tag, folder))

    def naming(self, name: str) -> list[VaultPath]:
        return self._left(self._inner.naming(name))

    def named(self, name: str) -> list[VaultPath]:
        return self._left(self._inner.named(name))

    def bases(self) -> list[VaultPath]:
        return self._left(self._inner.bases())

    def referring(self) -> list[VaultPath]:
        return self._left(self._inner.referring())

    def linking(self, path: VaultPath) -> list[VaultPath]:
        return linking(self, path)

    def texts(self, folder: VaultPath, *needles: Needle | None) -> Iterator[NoteText]:
        return (note for note in self._inner.texts(folder, *needles) if not self._view.hidden(note.path))

    def text(self, path: VaultPath) -> bytes | Problem:
        return self._inner.text(path) if not self._view.hidden(path) else missing(path).problem()

    def aliases(self) -> Iterator[tuple[str, VaultPath]]:
        return ((alias, path) for alias, path in self._inner.aliases() if not self._view.hidden(path))

    def names(self) -> NameFinder:
        return NameSearch((path.text for path in self.files()), ((alias, path.text) for alias, path in self.aliases()))

    def resolve(self, target: str, source: VaultPath) -> VaultPath | None:
        return self._links.resolve(target, source)

    def _left(self, paths: Iterable[VaultPath]) -> list[VaultPath]:
        return [path for path in paths if not self._view.hidden(path)]
