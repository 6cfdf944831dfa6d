"""Which links mean something else after a shift."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import NamedTuple

from obsidian_agent.vault.index import VaultIndex
from obsidian_agent.vault.index_facts import is_relative, target_name
from obsidian_agent.vault.linkgraph import CANVAS
from obsidian_agent.vault.paths import VaultPath
from obsidian_agent.vault.relink_shape import relative_path
from obsidian_agent.vault.relink_shift import Shift, ShiftedLinks
from obsidian_agent.vault.resolve import link_key


class Change(NamedTuple):
    """What a target means before a shift and should mean after it (None: its file is gone); `now` is what it would mean as it stands.

    With `card_only` it would do as a link and not as a file card of a canvas, which has the exact path.
    """

    before: VaultPath
    wanted: VaultPath | None
    now: VaultPath | None
    card_only: bool = False


class LinkChanges:
    """What a shift does to links that lead somewhere. The index is that of the vault before it."""

    def __init__(self, index: VaultIndex, shift: Shift) -> None:
        self.after = ShiftedLinks(index, shift)
        self._before = ShiftedLinks(index, Shift())
        self._index = index
        self._shift = shift
        self._concerned: dict[str, bool] = {}
        self._known: dict[tuple[str, str, str, bool], Change | None] = {}

    def sources(self) -> list[VaultPath]:
        """The files with links that may be concerned, sorted; not those that go, or are no longer of a kind that has links."""
        shift = self._shift
        found = {source.text: source for name in (*shift.names, ".", "..") for source in self._index.naming(name)}
        found.update({source.text: source for source in self._index.referring() if self._refers(source)})
        found.update({path.text: path for path in shift.moved})
        gone = {path.text for path in shift.gone}
        return sorted([source for text, source in found.items() if text not in gone or self._stays(source)], key=attrgetter("text"))

    def of_source(self, source: VaultPath) -> dict[str, Change]:
        """The targets of a file, as the index knows them, that mean something else afterwards; those of references too."""
        facts = self._index.facts(source)
        found = self.of_targets(facts.targets, source)
        return {**self.of_references(facts.references, source), **found} if facts.references else found

    def of_references(self, targets: Iterable[str], source: VaultPath) -> dict[str, Change]:
        """Those of the targets of references that mean something else afterwards, or that led to their file as the relative path which
        other programs follow and no longer will."""
        path = self._shift.moved.get(source, source)
        targets = [target for target in targets if target and (source in self._shift.moved or self.may_change(target))]
        changes = self.of_targets(targets, source)
        for target in targets:
            before = self._index.resolve(target, source) if target not in changes else None
            wanted = self._shift.after(before) if before is not None else None
            if before is not None and wanted is not None and _leads(target, source, before) and not _leads(target, path, wanted):
                changes[target] = Change(before, wanted, wanted)
        return changes

    def _refers(self, source: VaultPath) -> bool:
        return any(map(self.may_change, self._index.facts(source).references))

    def of_targets(self, targets: Iterable[str], source: VaultPath) -> dict[str, Change]:
        """Those of some targets that mean something else in a file afterwards."""
        path = self._shift.moved.get(source)
        if path is None:
            path, targets = source, filter(self.may_change, targets)
        where = source.parent.text, path.parent.text, source.suffix == CANVAS
        changes: dict[str, Change] = {}
        for target in targets:
            # Files of one folder mean the same by a text, so that a hub's many links are looked up a few times.
            key = (target, *where)
            if key not in self._known:
                self._known[key] = self._of_target(target, source, path)
            if change := self._known[key]:
                changes[target] = change
        return changes

    def _stays(self, source: VaultPath) -> bool:
        path = self._shift.moved.get(source)
        return path is not None and path.suffix == source.suffix

    def may_change(self, target: str) -> bool:
        """Whether a target in a file that stays could mean something else: it ends with a name that comes or goes."""
        known = self._concerned.get(target)
        if known is None:
            known = self._concerned[target] = bool(target) and (is_relative(target) or target_name(target) in self._shift.names)
        return known

    def _of_target(self, target: str, source: VaultPath, path: VaultPath) -> Change | None:
        before = self._index.resolve(target, source) if target else None
        if before is None:
            return None
        wanted = self._shift.after(before)
        now = self.after.resolve(target, path)
        if wanted is None or now != wanted or (self.after.is_tie(target, path) and not self._before.is_tie(target, source)):
            # Nobody knows which of two paths of one length Obsidian takes, so a link that had no such choice must not get it.
            return Change(before, wanted, now)
        if source.suffix == CANVAS and wanted != before and target == before.text:
            return Change(before, wanted, now, card_only=True)
        return None


def _leads(target: str, source: VaultPath, file: VaultPath) -> bool:
    """Whether a target is the relative path from one file to another."""
    return link_key(target.removeprefix("./")) == link_key(relative_path(file.text, source))
