"""Which files a change moves, takes away or adds, and what links mean in the vault that results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from obsidian_agent.vault.index.index import VaultIndex
from obsidian_agent.vault.links.resolve import LinkResolver, asked_name, file_name, is_relative, target_name
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.views.view import Entry, VaultView, in_the_way


@dataclass(frozen=True)
class Shift:
    """What happens to the files of a vault at once: old paths to new ones, files that go, files that come.

    `heirs` are files that go because another one takes their place: links to them are links to the new file then.
    """

    moved: Mapping[VaultPath, VaultPath] = field(default_factory=dict)
    removed: frozenset[VaultPath] = frozenset()
    added: tuple[VaultPath, ...] = ()
    heirs: Mapping[VaultPath, VaultPath] = field(default_factory=dict)

    def after(self, path: VaultPath) -> VaultPath | None:
        """Where a file is then; None when it is gone."""
        new = self.moved.get(path) or self.heirs.get(path)
        if new is not None:
            return new
        return None if path in self.removed else path

    @cached_property
    def names(self) -> frozenset[str]:
        """The names (keys of `resolve.file_name`) that come or go: a link that ends with none of them means what it did, unless it
        climbs or is in a file that moves."""
        return frozenset(map(file_name, (*self.moved, *self.moved.values(), *self.removed, *self.heirs, *self.added)))

    @cached_property
    def renames(self) -> bool:
        """Whether a file gets another name, not only another folder."""
        return any(file_name(old) != file_name(new) for old, new in self.moved.items())

    @cached_property
    def gone(self) -> frozenset[VaultPath]:
        """The paths under which a file is no longer found."""
        return frozenset((*self.moved, *self.removed, *self.heirs))

    @cached_property
    def coming(self) -> Mapping[str, tuple[VaultPath, ...]]:
        """The paths that are new, by name."""
        found: dict[str, tuple[VaultPath, ...]] = {}
        for path in (*self.moved.values(), *self.added):
            found[file_name(path)] = (*found.get(file_name(path), ()), path)
        return found


def shift_of_rename(view: VaultView, entry: Entry, target: VaultPath) -> Shift:
    """The shift that a rename of a file or folder is; a file in the way of a file has the renamed one as its heir."""
    moved = {path: path.rebased(entry.path, target) for path in _files(view, entry)}
    twin = None if entry.kind == "folder" else in_the_way(view, target, entry.path)
    return Shift(moved) if twin is None else Shift(moved, heirs={twin: target})


def shift_of_delete(view: VaultView, entry: Entry) -> Shift:
    """The shift that a deletion is."""
    return Shift(removed=frozenset(_files(view, entry)))


def _files(view: VaultView, entry: Entry) -> list[VaultPath]:
    if entry.kind == "file":
        return [entry.path]
    return [below.path for below in view.walk(entry.path) if below.kind == "file"]


class ShiftedLinks:
    """What links mean after a shift. Only files of the names that are asked for are looked at."""

    def __init__(self, index: VaultIndex, shift: Shift) -> None:
        self._index = index
        self._shift = shift
        self._by_name: dict[str, LinkResolver] = {}

    def resolve(self, target: str, source: VaultPath) -> VaultPath | None:
        """The file that a target means in a file (its new path), or None."""
        if not target:
            return source
        return self._named(asked_name(target, source)).resolve(target, source)

    def is_unique(self, target: str) -> bool:
        """Whether a target that is not relative can mean one file only, from wherever."""
        return len(self._named(target_name(target)).candidates(target)) == 1

    def is_tie(self, target: str, source: VaultPath) -> bool:
        """Whether only the alphabet decides what a target means in a file: several files fit, and the best two are equally good."""
        if not target or is_relative(target):
            return False
        resolver = self._named(target_name(target))
        best = resolver.candidates(target)[:2]
        if len(best) < 2 or len(best[0].text) != len(best[1].text) or best[0].parent == source.parent:
            return False
        return resolver.resolve(target, source) == best[0] and resolver.resolve(f"/{target}", source) is None

    def twins(self, path: VaultPath) -> bool:
        """Whether another file has the same path for links: it differs in case or in its Unicode form alone."""
        found = self._named(file_name(path)).resolve(f"/{path.text}", path)
        return found is not None and found != path

    def _named(self, name: str) -> LinkResolver:
        known = self._by_name.get(name)
        if known is None:
            gone = self._shift.gone
            there = (path for path in self._index.named(name) if path not in gone)
            known = self._by_name[name] = LinkResolver((*there, *self._shift.coming.get(name, ())))
        return known
