"""Where everything is while a plan is folded: the entries that are not in the base under their path, and those of the base that are gone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from obsidian_agent.vault.paths import VaultPath
from obsidian_agent.vault.view import Entry, EntryKind


@dataclass(slots=True)
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

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._children: dict[str, dict[str, Node]] = {}
        self._keys: dict[str, Node] = {}
        self._removed: set[str] = set()
        self._created: set[str] = set()
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
        """The entry whose path equals `path` in NFC and case folding."""
        return self._keys.get(path.key)

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
        nfc = node.path.nfc
        self._nodes[nfc] = node
        self._touched.append(node.path)
        self._children.setdefault(node.path.parent.nfc, {})[nfc] = node
        self._keys[node.path.key] = node
        if node.origin is not None:
            self._current[node.origin.nfc] = node.path
        if new:
            self._created.add(node.path.key)

    def rewrite(self, node: Node, content: bytes, instance: int) -> None:
        """New bytes for an entry that is in the books."""
        node.content, node.touched = content, instance
        self._touched.append(node.path)

    def drop(self, path: VaultPath) -> None:
        """Nothing is at `path` any more."""
        node = self._nodes.pop(path.nfc, None)
        self._touched.append(path)
        if node is not None:
            self._children[path.parent.nfc].pop(path.nfc, None)
            self._keys.pop(path.key, None)
            self._created.discard(path.key)
        origin = node.origin if node else path
        if origin is not None:
            self._current[origin.nfc] = None
        self._removed.add(path.nfc)
