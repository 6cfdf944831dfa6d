"""What an overlay keeps while a plan is folded: the vault below it with the hashes of what was read (`HashedBase`), the entries that differ
from that (`OverlayEntries`), what the plan does to the structure, in order (`StructureLog`), and what a proposal has replaced in these tables
so far, so that one that fails half way leaves nothing behind (`Rollback`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, Final, TypeVar

from obsidian_agent.dataclass import dataclass
from obsidian_agent.vault.filesystem.inventory import HASHED_FILE, Inventory
from obsidian_agent.vault.paths.path import VaultPath, collision_key
from obsidian_agent.vault.views.changes import (
    Deletion,
    FolderMove,
    MakeDir,
    Move,
    Operation,
    OwnedOperation,
    content_hash,
)
from obsidian_agent.vault.views.view import EntryKind, VaultEntry, VaultView

_KEPT_BYTES: Final = 8 << 20
"""Contents that are kept: enough for a plan of ordinary size, and nothing beside a large one."""


class HashedBase:
    """Reads of a base view with the hash of everything read, and the names in its trash."""

    def __init__(self, view: VaultView) -> None:
        self.view = view
        self._hashes: dict[str, str] = {}
        self._sizes: dict[str, int] = {}
        self._inventories: dict[str, Inventory | None] = {}
        self._kept: dict[str, bytes] = {}
        self._kept_bytes = 0
        self._trash_names: frozenset[str] | None = None

    def read(self, path: VaultPath) -> bytes:
        """The bytes of a file; what was read lately is kept."""
        data = self._kept.get(path.text)
        if data is None:
            data = self.view.read(path)
            if path.text not in self._hashes:
                self._hashes[path.text], self._sizes[path.text] = content_hash(data), len(data)
            self._kept_bytes += len(data)
            if self._kept_bytes > _KEPT_BYTES:
                self._kept, self._kept_bytes = {}, len(data)
            self._kept[path.text] = data
        return data

    def known_hash(self, path: VaultPath) -> str | None:
        """The hash of a file that was read, None of another."""
        return self._hashes.get(path.text)

    def hash_of(self, path: VaultPath) -> str:
        """The hash that a file had when it was read first."""
        known = self._hashes.get(path.text)
        if known is None:
            self.read(path)
            known = self._hashes[path.text]
        return known

    def size_of(self, path: VaultPath) -> int:
        """The bytes that a file had when it was read first."""
        self.hash_of(path)
        return self._sizes[path.text]

    def bound(self, path: VaultPath, *, folder: bool) -> tuple[str | None, Inventory | None]:
        """What an entry that is moved must still be: a file its hash, a folder, or a file over `HASHED_FILE`, its inventory."""
        if not folder and self.view.stat(path).size <= HASHED_FILE:
            return self.hash_of(path), None
        known = self._inventories.get(path.text)
        if known is None:
            known = self._inventories[path.text] = self.view.inventory(path)
        return None, known

    def path_of(self, path: VaultPath) -> VaultPath | None:
        """The path as the base spells it; None: not there."""
        entry = self.view.locate(path)
        return entry.path if entry else None

    def is_folder(self, path: VaultPath) -> bool:
        """Whether the base has a folder of this very spelling."""
        return self.view.locate(path) == VaultEntry(path, "folder")

    def trash_names(self) -> frozenset[str]:
        """The collision keys of the names taken in the trash."""
        if self._trash_names is None:
            self._trash_names = frozenset(map(collision_key, self.view.trash_names()))
        return self._trash_names


K = TypeVar("K")
V = TypeVar("V")

_ABSENT: Any = object()


class Rollback:
    """Every change of a table or list goes through one of these; `rewind` puts back what there was at the last `clear`."""

    def __init__(self) -> None:
        self._ways_back: list[tuple[Callable[..., object], *tuple[Any, ...]]] = []

    def put(self, table: dict[K, V], key: K, value: V) -> None:
        """Enter a value."""
        self._ways_back.append((_restore, table, key, table.get(key, _ABSENT)))
        table[key] = value

    def drop(self, table: dict[K, V], key: K) -> None:
        """Take a value out, if it is there."""
        if key in table:
            self._ways_back.append((_restore, table, key, table.pop(key)))

    def append(self, items: list[V], item: V) -> None:
        """Add to a list."""
        self._ways_back.append((items.pop,))
        items.append(item)

    def replace(self, items: list[V], new: list[V]) -> None:
        """Give a list other items."""
        self._ways_back.append((items.__setitem__, slice(None), items[:]))
        items[:] = new

    def clear(self) -> None:
        """What was done so far stays."""
        self._ways_back.clear()

    def rewind(self) -> None:
        """Take back everything since the last `clear`, last first."""
        while self._ways_back:
            way, *values = self._ways_back.pop()
            way(*values)


def _restore(table: dict[Any, Any], key: Any, value: Any) -> None:
    if value is _ABSENT:
        del table[key]
    else:
        table[key] = value


@dataclass(frozen=True, slots=True)
class OverlayNode:
    """An entry that is not in the base under this path: new, changed or moved here. `content` None means the bytes at `origin`."""

    path: VaultPath
    kind: EntryKind
    origin: VaultPath | None
    content: bytes | None
    touched: int
    writers: frozenset[int] = frozenset()
    """Instances whose changes are in `content`; it is written with the operations of `touched`."""

    @property
    def entry(self) -> VaultEntry:
        """The entry as a view shows it."""
        return VaultEntry(self.path, self.kind)


class OverlayEntries:
    """The entries that differ from the base, found by their path, by their folder and by where they came from."""

    def __init__(self, rollback: Rollback) -> None:
        self._rollback = rollback
        self._nodes: dict[str, OverlayNode] = {}
        self._children: dict[str, dict[str, OverlayNode]] = {}
        self._twins: dict[str, dict[str, OverlayNode]] = {}
        self._removed: dict[str, None] = {}
        self._created: dict[str, None] = {}
        self._current: dict[str, VaultPath | None] = {}
        self.touched: list[VaultPath] = []
        """Every path that was put, altered or dropped, in order, some more than once: read on from where you were."""

    @property
    def nodes(self) -> Collection[OverlayNode]:
        """All entries that differ, in no order that means something."""
        return self._nodes.values()

    def get(self, path: VaultPath) -> OverlayNode | None:
        """The entry at `path`, if it differs from the base."""
        return self._nodes.get(path.text)

    def twins(self, path: VaultPath) -> Iterable[VaultPath]:
        """The entries whose paths equal `path` in NFC and case folding."""
        return (node.path for node in self._twins.get(path.key, {}).values())

    def inside(self, folder: VaultPath) -> Collection[OverlayNode]:
        """The entries directly in a folder."""
        return self._children.get(folder.text, {}).values()

    def removed(self, path: VaultPath) -> bool:
        """Whether what the base has at `path` is not there any more (something else may be)."""
        return path.text in self._removed or path.parent.text in self._removed

    def untouched(self, path: VaultPath) -> bool:
        """Whether what the base has at `path` still is what is found there."""
        return path.text not in self._nodes and not self.removed(path)

    def created(self, path: VaultPath) -> bool:
        """Whether a file was made whose path equals `path` in NFC and case folding."""
        return path.key in self._created

    def moved(self, origin: VaultPath) -> bool:
        """Whether what the base has at `origin` was put somewhere or dropped: then `current` knows where it is."""
        return origin.text in self._current

    def current(self, origin: VaultPath) -> VaultPath | None:
        """Where what the base has at `origin` is now; None: nowhere."""
        return self._current.get(origin.text, origin)

    def put(self, node: OverlayNode, *, new: bool = False) -> None:
        """Enter an entry; `new` when it is a file that the plan makes."""
        text, path, rollback = node.path.text, node.path, self._rollback
        rollback.append(self.touched, path)
        rollback.put(self._nodes, text, node)
        rollback.put(self._group(self._children, path.parent.text), text, node)
        rollback.put(self._group(self._twins, path.key), text, node)
        if node.origin is not None:
            rollback.put(self._current, node.origin.text, path)
        if new:
            rollback.put(self._created, path.key, None)

    def drop(self, path: VaultPath) -> None:
        """Nothing is at `path` any more."""
        rollback, node = self._rollback, self._nodes.get(path.text)
        rollback.append(self.touched, path)
        if node is not None:
            rollback.drop(self._nodes, path.text)
            rollback.drop(self._children[path.parent.text], path.text)
            rollback.drop(self._twins[path.key], path.text)
            rollback.drop(self._created, path.key)
        origin = node.origin if node else path
        if origin is not None:
            rollback.put(self._current, origin.text, None)
        rollback.put(self._removed, path.text, None)

    def _group(self, groups: dict[str, dict[str, OverlayNode]], key: str) -> dict[str, OverlayNode]:
        if key not in groups:
            self._rollback.put(groups, key, {})
        return groups[key]


class StructureLog:
    """Moves, deletions and new folders as they happen. Contents are not in here: they are written once, at the end."""

    def __init__(self, rollback: Rollback) -> None:
        self._rollback = rollback
        self.operations: list[OwnedOperation] = []
        """In the order in which they were folded."""
        self.folder_moves: list[FolderMove] = []
        """The folders of the start that are elsewhere now."""
        self.deletions: list[Deletion] = []
        """The entries of the start that are in the trash now; one inside a deleted folder is not listed again."""

    def add(self, operation: Operation, instance: int) -> None:
        """One more operation, of instance number `instance`."""
        self._rollback.append(self.operations, OwnedOperation(operation, instance))

    def folder_moved(self, path: VaultPath, target: VaultPath, origin: VaultPath | None) -> None:
        """A folder went from `path` to `target`; `origin` is where it was at the start, None when the plan made it."""
        moves = [move.after(path, target) for move in self.folder_moves]
        if origin is not None and not any(move.origin.text == origin.text for move in moves):
            moves.append(FolderMove(origin, target))
        self._rollback.replace(self.folder_moves, moves)

    def deleted(self, entries: Iterable[tuple[VaultEntry, VaultPath | None]], files: int) -> None:
        """An entry went to the trash: itself first, then what is below it, each with where it was at the start (None: new);
        `files` of them are files. What had been moved into it from elsewhere goes with it and is noted by its old path."""
        noted: list[VaultPath] = []
        for number, (entry, origin) in enumerate(entries):
            if number == 0:
                left = [
                    move
                    for move in self.folder_moves
                    if move.path != entry.path and not move.path.within(entry.path)
                ]
                self._rollback.replace(self.folder_moves, left)
            if origin is None or any(origin.within(folder) for folder in noted):
                continue
            self._rollback.append(
                self.deletions,
                Deletion(origin, entry.kind == "folder", files if number == 0 else 0),
            )
            if entry.kind == "folder":
                noted.append(origin)

    def went_through(self, folder: VaultPath) -> bool:
        """Whether any move had the folder, or something in it, as its start or its end."""
        moves = (owned.operation for owned in self.operations if isinstance(owned.operation, Move))
        return any(
            path == folder or path.within(folder)
            for move in moves
            for path in (move.path, move.new_path)
        )

    def forget_folders(self, folders: Collection[VaultPath]) -> None:
        """The plan does not make these folders after all."""
        gone = {path.text for path in folders}
        kept = [
            o
            for o in self.operations
            if not (isinstance(o.operation, MakeDir) and o.operation.path.text in gone)
        ]
        self._rollback.replace(self.operations, kept)
