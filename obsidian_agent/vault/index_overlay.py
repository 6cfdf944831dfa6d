"""The index of a vault with changes over it: what lies below, but for the files that the changes touched."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping

from obsidian_agent.errors import Problem, VaultError
from obsidian_agent.vault.index import VaultIndex
from obsidian_agent.vault.index_facts import NOTHING, Facts, facts_of, holds_facts, tag_key, tag_within, target_name
from obsidian_agent.vault.index_links import linking
from obsidian_agent.vault.overlay import OverlayVault
from obsidian_agent.vault.paths import ROOT, VaultPath
from obsidian_agent.vault.resolve import LinkResolver


class OverlayIndex:
    """See `VaultIndex`. It follows the overlay: before each answer the files touched since the last one are looked at again."""

    def __init__(self, below: VaultIndex, view: OverlayVault) -> None:
        self._below = below
        self._view = view
        self._seen = 0
        self._stale: set[str] = set()
        self._files: dict[str, VaultPath] = {}
        self._facts: dict[str, Facts] = {}
        self._naming: dict[str, dict[str, VaultPath]] = {}
        self._problems: dict[str, Problem] = {}
        self._resolver: LinkResolver | None = None

    @property
    def problems(self) -> Mapping[str, Problem]:
        old = {path: problem for path, problem in self._below.problems.items() if path not in self._stale}
        return old | self._problems

    def files(self) -> Iterator[VaultPath]:
        self._follow()
        old = (path for path in self._below.files() if path.text not in self._stale)
        return heapq.merge(old, sorted(self._files.values()))

    def notes(self, folder: VaultPath) -> Iterator[VaultPath]:
        return (entry.path for entry in self._view.walk(folder) if entry.kind == "file" and entry.path.is_note)

    def facts(self, path: VaultPath) -> Facts:
        self._follow()
        known = self._facts.get(path.text)
        return known if known is not None else self._below.facts(path)

    def tagged(self, tag: str, folder: VaultPath) -> list[VaultPath]:
        self._follow()
        wanted = tag_key(tag)
        new = [
            path
            for path in self._files.values()
            if path.is_note and path.within(folder) and any(tag_within(tag_key(name), wanted) for name in self._facts[path.text].tags)
        ]
        return self._merged(self._below.tagged(tag, folder) if self._is_below(folder) else [], new)

    def naming(self, name: str) -> list[VaultPath]:
        self._follow()
        return self._merged(self._below.naming(name), list(self._naming.get(name, {}).values()))

    def linking(self, path: VaultPath) -> list[VaultPath]:
        return linking(self, path)

    def resolve(self, target: str, source: VaultPath) -> VaultPath | None:
        self._follow()
        if not self._stale and not self._files:
            return self._below.resolve(target, source)
        if self._resolver is None:
            self._resolver = LinkResolver(self.files())
        return self._resolver.resolve(target, source)

    # --- following the overlay ---------------------------------------------------------------------------------------------------

    def _follow(self) -> None:
        touched = self._view.touched
        if self._seen == len(touched):
            return
        new = dict.fromkeys(touched[self._seen :])
        self._seen = len(touched)
        for path in new:
            self._forget(path)
        for path in new:
            entry = self._view.locate(path)
            if entry is not None and entry.kind == "file":
                self._learn(entry.path)
            elif self._resolver is not None:
                self._resolver.remove(path)

    def _forget(self, path: VaultPath) -> None:
        self._stale.add(path.text)
        self._problems.pop(path.text, None)
        self._files.pop(path.text, None)
        old = self._facts.pop(path.text, None)
        for name in set(map(target_name, old.targets)) if old else ():
            self._naming[name].pop(path.text, None)

    def _learn(self, path: VaultPath) -> None:
        facts = self._scanned(path)
        self._stale.add(path.text)
        self._files[path.text] = path
        self._facts[path.text] = facts
        for name in set(map(target_name, facts.targets)):
            self._naming.setdefault(name, {})[path.text] = path
        if self._resolver is not None:
            self._resolver.add(path)

    def _scanned(self, path: VaultPath) -> Facts:
        if not holds_facts(path):
            return NOTHING
        origin = self._view.moved_from(path)
        if origin is not None and holds_facts(origin) and origin.suffix == path.suffix:
            return self._below.facts(origin)
        try:
            return facts_of(path, self._view.read(path))
        except VaultError as error:
            self._problems[path.text] = error.problem()
            return NOTHING

    def _merged(self, old: list[VaultPath], new: list[VaultPath]) -> list[VaultPath]:
        kept = [path for path in old if path.text not in self._stale]
        return sorted([*kept, *new]) if new else kept

    def _is_below(self, folder: VaultPath) -> bool:
        """Whether the folder was there before: only then the index below can be asked about it."""
        entry = self._view.base.locate(folder)
        return folder == ROOT or (entry is not None and entry.kind == "folder")
