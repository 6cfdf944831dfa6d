"""Where everything is while a plan is folded: the entries that are not in the base under their path, and those of the base that are gone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from obsidian_agent.vault.overlay_trail import Trail
from obsidian_agent.vault.paths import VaultPath
from obsidian_agent.vault.view import Entry, EntryKind


@dataclass(frozen=True, slots=True)
class Node:
    """An entry that is not in the base under this path: new, changed or moved here. `content` None means the bytes at `origin`."""

    path: VaultPath
    kind: EntryKind
    origin: VaultPath | None
    content: bytes | None
    touched: int

    @property
    def entry(self) -> Entry:
        """The entry as a view shows it."""
        return Entry(self.path, self.kind)


class Books:
    """The entries that differ from the base, found by their path, by their folder and by where they came from."""

    def __init__(self, trail: Trail) -> None:
        self._trail = trail
        self._nodes: dict[str, Node] = {}
        self._children: dict[str, dict[str, Node]] = {}
        self._twins: dict[str, dict[str, Node]] = {}
        self._removed: dict[str, None] = {}
        self._created: dict[str, None] = {}
        self._current: dict[str, VaultPath | None] = {}
        self._touched: list[VaultPath] = []

    @property
    def nodes(self) -> Collection[Node]:
        """All entries that differ, in no order that means something."""
        return self._nodes.values()

    @property
    def touched(self) -> Sequence[VaultPath]:
        """Every path that was put, altered or dropped, in order, some more than once."""
        return self._touched

    def get(self, path: VaultPath) -> Node | None:
        """The entry at `path`, if it differs from the base."""
        return self._nodes.get(path.nfc)

    def twin(self, path: VaultPath) -> Node | None:
        """An entry whose path equals `path` in NFC and case folding."""
        return next(iter(self._twins.get(path.key, {}).values()), None)

    def inside(self, folder: VaultPath) -> Collection[Node]:
        """The entries directly in a folder."""
        return self._children.get(folder.nfc, {}).values()

    def removed(self, path: VaultPath) -> bool:
        """Whether what the base has at `path` is not there any more (something else may be)."""
        return path.nfc in self._removed

    def untouched(self, entry: Entry) -> bool:
        """Whether an entry of the base still is what is found at its path."""
        return entry.path.nfc not in self._removed and entry.path.nfc not in self._nodes

    def created(self, path: VaultPath) -> bool:
        """Whether a file was made whose path equals `path` in NFC and case folding."""
        return path.key in self._created

    def moved(self, origin: VaultPath) -> bool:
        """Whether what the base has at `origin` was put somewhere or dropped: then `current` knows where it is."""
        return origin.nfc in self._current

    def current(self, origin: VaultPath) -> VaultPath | None:
        """Where what the base has at `origin` is now; None: nowhere. Of what was `moved` only."""
        return self._current[origin.nfc]

    def put(self, node: Node, *, new: bool = False) -> None:
        """Enter an entry; `new` when it is a file that the plan makes."""
        nfc, path, trail = node.path.nfc, node.path, self._trail
        self._touched.append(path)
        trail.put(self._nodes, nfc, node)
        trail.put(self._group(self._children, path.parent.nfc), nfc, node)
        trail.put(self._group(self._twins, path.key), nfc, node)
        if node.origin is not None:
            trail.put(self._current, node.origin.nfc, path)
        if new:
            trail.put(self._created, path.key, None)

    def rewrite(self, node: Node, content: bytes, instance: int) -> None:
        """New bytes for an entry that is in the books."""
        self.put(replace(node, content=content, touched=instance))

    def drop(self, path: VaultPath) -> None:
        """Nothing is at `path` any more."""
        trail, node = self._trail, self._nodes.get(path.nfc)
        self._touched.append(path)
        if node is not None:
            trail.drop(self._nodes, path.nfc)
            trail.drop(self._children[path.parent.nfc], path.nfc)
            trail.drop(self._twins[path.key], path.nfc)
            trail.drop(self._created, path.key)
        origin = node.origin if node else path
        if origin is not None:
            trail.put(self._current, origin.nfc, None)
        trail.put(self._removed, path.nfc, None)

    def rewind(self, touched: int) -> None:
        """Forget that paths were touched after the first `touched` of them; their entries are put back by the trail."""
        del self._touched[touched:]

    def _group(self, groups: dict[str, dict[str, Node]], key: str) -> dict[str, Node]:
        if key not in groups:
            self._trail.put(groups, key, {})
        return groups[key]
