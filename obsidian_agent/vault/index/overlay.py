"""The index of a vault with changes over it: what lies below, but for the files that the changes touched.

The files in which one state of a vault differs from the state that an index describes, with their facts.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Self

from obsidian_agent.errors import Problem, VaultError
from obsidian_agent.vault.index.facts import (
    NOTHING,
    Facts,
    LinksByName,
    facts_of,
    file_name,
    holds_facts,
    linking,
    tag_key,
    tag_within,
    target_name,
)
from obsidian_agent.vault.index.index import NameFinder, VaultIndex
from obsidian_agent.vault.index.name_search import NameSearch
from obsidian_agent.vault.index.needle import Needle
from obsidian_agent.vault.index.texts import NoteText, read_note
from obsidian_agent.vault.markdown.canvas import BASE
from obsidian_agent.vault.paths.path import ROOT, VaultPath
from obsidian_agent.vault.views.overlay import OverlayVault
from obsidian_agent.vault.views.view import Entry, VaultView


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


class OverlayIndex:
    """See `VaultIndex`. It follows the overlay: before each answer the files touched since the last one are looked at again."""

    def __init__(self, below: VaultIndex, view: OverlayVault) -> None:
        self._below = below
        self._view = view
        self._seen = 0
        self._delta = Delta()
        self._links = LinksByName(self.named)

    @property
    def problems(self) -> Mapping[str, Problem]:
        delta = self._followed()
        return {path: problem for path, problem in self._below.problems.items() if path not in delta.stale} | delta.problems

    def files(self) -> Iterator[VaultPath]:
        delta = self._followed()
        old = (path for path in self._below.files() if path.text not in delta.stale)
        return heapq.merge(old, sorted(delta.files.values()))

    def notes(self, folder: VaultPath) -> Iterator[VaultPath]:
        return (entry.path for entry in self._view.walk(folder) if entry.kind == "file" and entry.path.is_note)

    def facts(self, path: VaultPath) -> Facts:
        known = self._followed().facts.get(path.text)
        return known if known is not None else self._below.facts(path)

    def tagged(self, tag: str, folder: VaultPath) -> list[VaultPath]:
        delta = self._followed()
        below = self._below.tagged(tag, folder) if self._was_there(folder) else []
        return delta.over(below, delta.tagged(tag_key(tag), folder))

    def naming(self, name: str) -> list[VaultPath]:
        delta = self._followed()
        return delta.over(self._below.naming(name), delta.naming(name))

    def named(self, name: str) -> list[VaultPath]:
        delta = self._followed()
        return delta.over(self._below.named(name), delta.named(name))

    def bases(self) -> list[VaultPath]:
        delta = self._followed()
        return delta.over(self._below.bases(), [path for path in delta.files.values() if path.text.lower().endswith(BASE)])

    def referring(self) -> list[VaultPath]:
        delta = self._followed()
        return delta.over(self._below.referring(), delta.referring())

    def linking(self, path: VaultPath) -> list[VaultPath]:
        delta = self._followed()
        if file_name(path) in delta.names_changed:
            return linking(self, path)
        name = file_name(path)
        naming = {source for ending in (name, ".", "..") for source in delta.naming(ending)}
        here = [source for source in naming if self._means(source, path)]
        return delta.over(self._below.linking(path), here)

    def texts(self, folder: VaultPath, *needles: Needle | None) -> Iterator[NoteText]:
        delta = self._followed()
        old = (text for text in self._below.texts(folder, *needles) if text.path.text not in delta.stale) if self._was_there(folder) else ()
        here = sorted(path for path in delta.files.values() if path.is_note and path.within(folder))
        new = (NoteText(path, read_note(self._view, path)) for path in here)
        return heapq.merge(old, new, key=attrgetter("path.text"))

    def text(self, path: VaultPath) -> bytes | Problem:
        return read_note(self._view, path) if path.text in self._followed().stale else self._below.text(path)

    def aliases(self) -> Iterator[tuple[str, VaultPath]]:
        delta = self._followed()
        yield from ((alias, path) for alias, path in self._below.aliases() if path.text not in delta.stale)
        yield from delta.aliases()

    def names(self) -> NameFinder:
        if not self._followed().stale:
            return self._below.names()
        return NameSearch((path.text for path in self.files()), ((alias, path.text) for alias, path in self.aliases()))

    def resolve(self, target: str, source: VaultPath) -> VaultPath | None:
        delta = self._followed()
        if not delta.names_changed:
            return self._below.resolve(target, source)
        return self._links.resolve(target, source)

    def _means(self, source: VaultPath, path: VaultPath) -> bool:
        return source != path and any(self.resolve(target, source) == path for target in self._delta.facts[source.text].targets)

    # --- following the overlay ---------------------------------------------------------------------------------------------------

    def _followed(self) -> Delta:
        touched = self._view.touched
        if self._seen == len(touched):
            return self._delta
        new = dict.fromkeys(touched[self._seen :])
        self._seen = len(touched)
        for path in new:
            there = _holds_file(self._view, path)
            self._note_name(path, there=there)
            if there:
                self._delta.learn(path, *self._looked_at(path))
            else:
                self._delta.forget(path)
        return self._delta

    def _note_name(self, path: VaultPath, *, there: bool) -> None:
        """Keep account of files that came and went: before this change, did the path hold a file?"""
        was_there = path.text in self._delta.files or (path.text not in self._delta.stale and _holds_file(self._view.base, path))
        if there == was_there:
            return
        self._delta.names_changed.add(file_name(path))
        self._links.forget(file_name(path))

    def _looked_at(self, path: VaultPath) -> tuple[Facts, Problem | None]:
        if not holds_facts(path):
            return NOTHING, None
        origin = self._view.moved_from(path)
        if origin is not None and origin.suffix == path.suffix:
            return self._below.facts(origin), self._below.problems.get(origin.text)
        try:
            return facts_of(path, self._view.read(path)), None
        except VaultError as error:
            return NOTHING, error.problem()

    def _was_there(self, folder: VaultPath) -> bool:
        """Whether the folder is one of the vault below: only then its index can be asked about it."""
        entry = self._view.base.locate(folder)
        return folder == ROOT or (entry is not None and entry.kind == "folder")


def _holds_file(view: VaultView, path: VaultPath) -> bool:
    """Whether there is a file of this very spelling."""
    return view.locate(path) == Entry(path, "file")
