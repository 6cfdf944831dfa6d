"""The tables of an overlay: entries that differ from the base, and structural operations in order.

All changes go through a `Rollback`, so that a proposal that fails half way leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, Final, TypeVar

from msgspec import Struct

from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.views.changes import (
    Deletion,
    FolderMove,
    MakeDir,
    Move,
    Operation,
    OwnedOperation,
)
from obsidian_agent.vault.views.view import EntryKind, VaultEntry

K = TypeVar("K")
V = TypeVar("V")

_ABSENT: Final[Any] = object()


class Rollback:
    """A log of changes to tables and lists. `rewind` restores their state at the last `clear`."""

    def __init__(self) -> None:
        self._undo: list[tuple[Callable[..., object], *tuple[Any, ...]]] = []

    def put(self, table: dict[K, V], key: K, value: V) -> None:
        """Set a value."""
        self._undo.append((_restore, table, key, table.get(key, _ABSENT)))
        table[key] = value

    def drop(self, table: dict[K, V], key: K) -> None:
        """Remove a value, if there is one."""
        if key in table:
            self._undo.append((_restore, table, key, table.pop(key)))

    def append(self, items: list[V], item: V) -> None:
        """Append to a list."""
        self._undo.append((items.pop,))
        items.append(item)

    def replace(self, items: list[V], new: list[V]) -> None:
        """Replace the items of a list."""
        self._undo.append((items.__setitem__, slice(None), items[:]))
        items[:] = new

    def clear(self) -> None:
        """Accept all changes so far."""
        self._undo.clear()

    def rewind(self) -> None:
        """Undo all changes since the last `clear`, last first."""
        while self._undo:
            action, *arguments = self._undo.pop()
            action(*arguments)


def _restore(table: dict[Any, Any], key: Any, value: Any) -> None:
    if value is _ABSENT:
        del table[key]
    else:
        table[key] = value


class OverlayNode(Struct, frozen=True, kw_only=True):
    """An entry that the base does not have at this path: new, changed or moved here."""

    path: VaultPath
    kind: EntryKind
    origin: VaultPath | None
    """The path in the base; None for a new entry."""
    content: bytes | None
    """The new content; None if it is that of `origin`."""
    touched: int
    """The instance with whose operations the content is written."""
    writers: frozenset[int] = frozenset()
    """The instances whose changes are in `content`."""

    @property
    def entry(self) -> VaultEntry:
        """The entry in the form of a view."""
        return VaultEntry(self.path, self.kind)


class OverlayEntries:
    """The entries that differ from the base, by path, by folder and by origin."""

    def __init__(self, rollback: Rollback) -> None:
        self._rollback = rollback
        self._nodes: dict[str, OverlayNode] = {}
        self._children: dict[str, dict[str, OverlayNode]] = {}
        self._twins: dict[str, dict[str, OverlayNode]] = {}
        self._removed: dict[str, None] = {}
        self._created: dict[str, None] = {}
        self._current: dict[str, VaultPath | None] = {}
        self.touched: list[VaultPath] = []
        """Every path that was put or dropped, in order, possibly repeated.

        A reader can continue where it stopped.
        """

    @property
    def nodes(self) -> Collection[OverlayNode]:
        """All entries that differ, in no particular order."""
        return self._nodes.values()

    def get(self, path: VaultPath) -> OverlayNode | None:
        """Return the entry at `path` if it differs from the base."""
        return self._nodes.get(path.text)

    def twins(self, path: VaultPath) -> Iterable[VaultPath]:
        """Return the entries whose paths equal `path` in NFC and case folding."""
        return (node.path for node in self._twins.get(path.key, {}).values())

    def inside(self, folder: VaultPath) -> Collection[OverlayNode]:
        """Return the entries directly in a folder."""
        return self._children.get(folder.text, {}).values()

    def is_removed(self, path: VaultPath) -> bool:
        """Return whether the base's entry at `path` is gone. Another one may be there."""
        return path.text in self._removed or path.parent.text in self._removed

    def is_untouched(self, path: VaultPath) -> bool:
        """Return whether the entry at `path` is that of the base, unchanged."""
        return path.text not in self._nodes and not self.is_removed(path)

    def is_created(self, path: VaultPath) -> bool:
        """Return whether a file was created whose path equals `path` in NFC and case folding."""
        return path.key in self._created

    def is_moved(self, origin: VaultPath) -> bool:
        """Return whether the base's entry at `origin` was put or dropped, so `current` knows it."""
        return origin.text in self._current

    def current(self, origin: VaultPath) -> VaultPath | None:
        """Return the current path of the base's entry at `origin`, or None if it is deleted."""
        return self._current.get(origin.text, origin)

    def put(self, node: OverlayNode, *, new: bool = False) -> None:
        """Insert an entry. `new` marks a file that the plan creates."""
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
        """Remove the entry at `path`."""
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
    """Moves, deletions and new folders in the order in which they happen.

    Contents are not in it, because they are written once, at the end.
    """

    def __init__(self, rollback: Rollback) -> None:
        self._rollback = rollback
        self.operations: list[OwnedOperation] = []
        """The structural operations, in order."""
        self.folder_moves: list[FolderMove] = []
        """The folders of the base that have moved."""
        self.deletions: list[Deletion] = []
        """The entries of the base that are in the trash, without those below deleted folders."""

    def add(self, operation: Operation, instance: int) -> None:
        """Append an operation of an instance."""
        self._rollback.append(self.operations, OwnedOperation(operation, instance))

    def add_folder_move(self, path: VaultPath, target: VaultPath, origin: VaultPath | None) -> None:
        """Record the move of a folder. `origin` is its path in the base, None if it is new."""
        moves = [move.after(path, target) for move in self.folder_moves]
        if origin is not None and not any(move.origin.text == origin.text for move in moves):
            moves.append(FolderMove(origin, target))
        self._rollback.replace(self.folder_moves, moves)

    def add_deletion(
        self, entries: Iterable[tuple[VaultEntry, VaultPath | None]], files: int
    ) -> None:
        """Record a deletion.

        `entries` are the deleted entry and all entries below it, with their paths in the base (None
        if new); `files` of them are files. An entry that was moved into the folder before is
        deleted with it, and recorded with its original path.
        """
        deleted_folders: list[VaultPath] = []
        for number, (entry, origin) in enumerate(entries):
            is_top = number == 0
            if is_top:
                remaining = [
                    move
                    for move in self.folder_moves
                    if move.path != entry.path and not move.path.within(entry.path)
                ]
                self._rollback.replace(self.folder_moves, remaining)
            if origin is None or any(origin.within(folder) for folder in deleted_folders):
                continue
            self._rollback.append(
                self.deletions, Deletion(origin, entry.kind == "folder", files if is_top else 0)
            )
            if entry.kind == "folder":
                deleted_folders.append(origin)

    def has_move_through(self, folder: VaultPath) -> bool:
        """Return whether a move started or ended at the folder or below it."""
        moves = (owned.operation for owned in self.operations if isinstance(owned.operation, Move))
        return any(
            path == folder or path.within(folder)
            for move in moves
            for path in (move.path, move.new_path)
        )

    def remove_new_folders(self, folders: Collection[VaultPath]) -> set[int]:
        """Remove the operations that create these folders. Return the instances they belong to."""
        paths = {path.text for path in folders}
        remaining: list[OwnedOperation] = []
        owners: set[int] = set()
        for owned in self.operations:
            if isinstance(owned.operation, MakeDir) and owned.operation.path.text in paths:
                owners.add(owned.instance)
            else:
                remaining.append(owned)
        self._rollback.replace(self.operations, remaining)
        return owners
