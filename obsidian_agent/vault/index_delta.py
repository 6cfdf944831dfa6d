"""The files in which one state of a vault differs from the state that an index describes, with their facts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Self

from obsidian_agent.errors import Problem
from obsidian_agent.vault.index_facts import Facts, file_name, tag_key, tag_within, target_name
from obsidian_agent.vault.paths import VaultPath


class Delta:
    """What is `stale` in the index, and what is to be said of those files that are there."""

    def __init__(self) -> None:
        self.stale: set[str] = set()
        self.files: dict[str, VaultPath] = {}
        self.facts: dict[str, Facts] = {}
        self.problems: dict[str, Problem] = {}
        self._naming: dict[str, dict[str, VaultPath]] = {}
        self._named: dict[str, dict[str, VaultPath]] = {}
        self.names_changed: set[str] = set()
        """Keys of the names under which files came or went: links that end with them may lead elsewhere than the index says."""

    def copy(self) -> Self:
        """Another one that can be changed while this one is in use."""
        made = type(self)()
        made.stale = set(self.stale)
        made.files, made.facts, made.problems = dict(self.files), dict(self.facts), dict(self.problems)
        made._naming = {name: dict(paths) for name, paths in self._naming.items()}
        made._named = {name: dict(paths) for name, paths in self._named.items()}
        made.names_changed = set(self.names_changed)
        return made

    def forget(self, path: VaultPath) -> None:
        """What the index says of this path counts no longer, and neither does what was said here."""
        text = path.text
        self.stale.add(text)
        self.problems.pop(text, None)
        if self.files.pop(text, None) is not None:
            self._named[file_name(path)].pop(text)
        old = self.facts.pop(text, None)
        for name in set(map(target_name, old.targets)) if old else ():
            self._naming[name].pop(text, None)

    def learn(self, path: VaultPath, facts: Facts, problem: Problem | None = None) -> None:
        """This is now what is to be said of a file that is there."""
        self.forget(path)
        self.files[path.text] = path
        self.facts[path.text] = facts
        self._named.setdefault(file_name(path), {})[path.text] = path
        for name in set(map(target_name, facts.targets)):
            self._naming.setdefault(name, {})[path.text] = path
        if problem is not None:
            self.problems[path.text] = problem

    def tagged(self, key: str, folder: VaultPath) -> list[VaultPath]:
        """The notes here below a folder with a tag or one nested below it."""
        return [
            path
            for path in self.files.values()
            if path.is_note and path.within(folder) and any(tag_within(tag_key(name), key) for name in self.facts[path.text].tags)
        ]

    def aliases(self) -> Iterator[tuple[str, VaultPath]]:
        """The other names of the notes here."""
        return ((alias, path) for path in self.files.values() for alias in self.facts[path.text].aliases)

    def referring(self) -> list[VaultPath]:
        """The notes here with references that are no links of the graph."""
        return [path for path in self.files.values() if self.facts[path.text].references]

    def naming(self, name: str) -> list[VaultPath]:
        """The files here with a link whose target ends with a name."""
        return list(self._naming.get(name, {}).values())

    def named(self, name: str) -> list[VaultPath]:
        """The files here that have a name."""
        return list(self._named.get(name, {}).values())

    def over(self, below: Iterable[VaultPath], here: list[VaultPath]) -> list[VaultPath]:
        """An answer of the index with the stale part taken out and the part from here put in."""
        kept = [path for path in below if path.text not in self.stale] if self.stale else list(below)
        return sorted([*kept, *here]) if here else kept
