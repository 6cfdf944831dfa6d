"""A vault with changes folded over it: what each step of a dry run sees, and in the end the exact `ChangeSet`.

The overlay keeps only what differs from its base. Moving a folder moves every entry below it in the books, so that looking anything up
stays one dictionary access. Structure is logged as it happens; contents are held per file and written once, by the last instance that
touched the file (a rename of it, or of a folder above it, counts as a touch): on disk a file that moves still has its first content,
and every prefix of the operations is a consistent vault.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, assert_never

from obsidian_agent.errors import ToolError, VaultError
from obsidian_agent.vault import paths
from obsidian_agent.vault.changes import (
    ChangeSet,
    CreateFile,
    CursorMark,
    DeleteEntry,
    FileChange,
    MakeDir,
    MakeFolder,
    ModifyFile,
    Move,
    Operation,
    OwnedOperation,
    RenameEntry,
    WriteFile,
    content_hash,
)
from obsidian_agent.vault.net import Deletion, FolderMove, MovedFile, net_changes
from obsidian_agent.vault.paths import VaultPath
from obsidian_agent.vault.view import Entry, EntryKind, FileStat, VaultView

if TYPE_CHECKING:
    from obsidian_agent.vault.index import VaultIndex

HASHED_MOVE_LIMIT = 16 * 1024 * 1024
"""Larger files are moved without a content check: their bytes do not change, and reading them would make the preview wait."""


@dataclass(slots=True)
class _Node:
    """An entry that is not in the base under this path: new, changed or moved here. `content` None means the bytes at `origin`."""

    path: VaultPath
    kind: EntryKind
    origin: VaultPath | None
    content: bytes | None
    touched: int


class OverlayVault:
    """A `VaultView` that accepts `FileChange`s. `now_ms` is the time that files written here have, frozen when the preview starts."""

    def __init__(self, base: VaultView, now_ms: float) -> None:
        self._base = base
        self._now_ms = now_ms
        self._nodes: dict[str, _Node] = {}
        self._children: dict[str, dict[str, _Node]] = {}
        self._keys: dict[str, str] = {}
        self._removed: set[str] = set()
        self._created: set[str] = set()
        self._current: dict[str, VaultPath | None] = {}
        self._log: list[OwnedOperation] = []
        self._folder_moves: list[FolderMove] = []
        self._deletions: list[Deletion] = []
        self._trash_names: set[str] | None = None
        self._base_hash: dict[str, str] = {}
        self._cursors: dict[str, tuple[bytes, CursorMark]] = {}
        self._last_read: tuple[str, bytes] | None = None
        self._touched: list[VaultPath] = []
        self.index: VaultIndex | None = None
        """Set and used by `index.index_of` only."""

    # --- looking ---------------------------------------------------------------------------------------------------------------

    def locate(self, path: VaultPath) -> Entry | None:
        node = self._nodes.get(path.nfc)
        if node is not None:
            return Entry(node.path, node.kind)
        if path.nfc in self._removed:
            return None
        return self._base.locate(path)

    def twin(self, path: VaultPath) -> VaultPath | None:
        known = self._keys.get(path.key)
        if known is not None:
            return self._nodes[known].path
        found = self._base.twin(path)
        return None if found is None or found.nfc in self._removed else found

    def read(self, path: VaultPath) -> bytes:
        node = self._nodes.get(path.nfc)
        if node is None:
            if path.nfc in self._removed:
                raise _not_found(path)
            return self._read_base(path)
        if node.content is not None:
            return node.content
        if node.kind == "folder" or node.origin is None:
            raise VaultError(f"{path} is a folder, not a note.", code="NOT_TEXT", path=path.text)
        return self._read_base(node.origin)

    def stat(self, path: VaultPath) -> FileStat:
        node = self._nodes.get(path.nfc)
        if node is None:
            if path.nfc in self._removed:
                raise _not_found(path)
            return self._base.stat(path)
        if node.content is None and node.origin is not None:
            return self._base.stat(node.origin)
        created = self._base.stat(node.origin).created_ms if node.origin is not None else self._now_ms
        return FileStat(len(node.content or b""), self._now_ms, created)

    def children(self, folder: VaultPath) -> list[Entry]:
        entry = self.locate(folder)
        if entry is None:
            raise _not_found(folder)
        if entry.kind == "file":
            raise VaultError(f"{folder} is a file, not a folder.", code="NOT_A_FOLDER", path=folder.text)
        found = [child for child in self._base_children(folder) if self._untouched(child)]
        found.extend(Entry(node.path, node.kind) for node in self._children.get(folder.nfc, {}).values())
        return sorted(found, key=attrgetter("path.text"))

    def walk(self, folder: VaultPath) -> Iterator[Entry]:
        entry = self._base.locate(folder)
        old: Iterator[Entry] = iter(())
        if entry is not None and entry.kind == "folder":
            old = filter(self._untouched, self._base.walk(entry.path))
        new = sorted((Entry(n.path, n.kind) for n in self._nodes.values() if n.path.within(folder)), key=attrgetter("path.text"))
        return heapq.merge(old, new, key=attrgetter("path.text"))

    def origin(self, path: VaultPath) -> VaultPath | None:
        node = self._nodes.get(path.nfc)
        if node is not None:
            return node.origin
        if path.nfc in self._removed:
            return None
        entry = self._base.locate(path)
        return entry.path if entry else None

    def current(self, origin: VaultPath) -> VaultPath | None:
        if origin.nfc in self._current:
            return self._current[origin.nfc]
        entry = self._base.locate(origin)
        return entry.path if entry else None

    @property
    def base(self) -> VaultView:
        """The vault below the changes."""
        return self._base

    @property
    def touched(self) -> Sequence[VaultPath]:
        """Every path that a change has put, altered or taken away, in order, some more than once. It only grows: read on from where
        you were, and ask `locate` what is there now."""
        return self._touched

    def moved_from(self, path: VaultPath) -> VaultPath | None:
        """Where the unchanged content of the file at `path` lies below the changes; None when it is new or changed."""
        node = self._nodes.get(path.nfc)
        return node.origin if node is not None and node.content is None else None

    def created_here(self, path: VaultPath) -> bool:
        """Whether an earlier step of this plan made a file whose path equals `path` in NFC and case folding."""
        return path.key in self._created

    def cursor_mark(self, origin: VaultPath) -> tuple[bytes, CursorMark] | None:
        """The content that the last editor's step gave to the file that was at `origin` at the start, and where the cursor was then."""
        return self._cursors.get(origin.nfc)

    def trash_target(self, path: VaultPath) -> VaultPath:
        """The free name that a deleted entry gets in `.trash/`: its own, or with ` 2`, ` 3`, … before the extension."""
        taken = self._taken_in_trash()
        name, count = path.name, 1
        while name.casefold() in taken:
            count += 1
            name = f"{path.stem} {count}{path.name[len(path.stem) :]}"
        return paths.trash_path(name)

    # --- changing --------------------------------------------------------------------------------------------------------------

    def apply(self, change: FileChange, instance: int) -> None:
        """Fold one change of instance number `instance`. Raises ToolError or VaultError and then leaves the overlay as it was."""
        match change:
            case CreateFile():
                self._create(change, instance)
            case ModifyFile():
                self._modify(change, instance)
            case RenameEntry():
                self._rename(change, instance)
            case DeleteEntry():
                self._delete(change.path, instance)
            case MakeFolder():
                self._make_folders(change.path, instance)
            case _:
                assert_never(change)

    def _create(self, change: CreateFile, instance: int) -> None:
        twin = self.twin(change.path)
        if twin is not None:
            raise ToolError(f"{twin} already exists.", code="FILE_EXISTS", path=change.path.text, hint="Choose another name.")
        path = self._in_existing_spelling(change.path, instance)
        self._put(_Node(path, "file", None, change.content, instance))
        self._created.add(path.key)

    def _modify(self, change: ModifyFile, instance: int) -> None:
        entry = self.locate(change.path)
        if entry is None:
            raise _not_found(change.path)
        if entry.kind == "folder":
            raise ToolError(f"{entry.path} is a folder, not a note.", code="NOT_TEXT", path=entry.path.text)
        node = self._nodes.get(entry.path.nfc)
        origin = node.origin if node else entry.path
        if change.cursor is not None and origin is not None:
            self._cursors[origin.nfc] = (change.content, change.cursor)
        if node is None:
            self._hash_of_base(entry.path)
            self._put(_Node(entry.path, "file", entry.path, change.content, instance))
            return
        node.content = change.content
        node.touched = instance
        self._touched.append(node.path)

    def _rename(self, change: RenameEntry, instance: int) -> None:
        entry = self.locate(change.path)
        if entry is None:
            raise _not_found(change.path)
        target = change.new_path
        if target.text == entry.path.text:
            return
        if target.within(entry.path):
            raise ToolError(f"{entry.path} cannot be moved into itself.", path=entry.path.text)
        twin = self.twin(target)
        if twin is not None and twin.text != entry.path.text:
            if not change.overwrite or self._kind(twin) == "folder" or entry.kind == "folder":
                raise ToolError(f"{twin} already exists.", code="FILE_EXISTS", path=target.text, hint="Choose another name.")
            self._delete(twin, instance)
        target = self._in_existing_spelling(target, instance)
        if entry.kind == "folder":
            self._move_folder(entry.path, target, instance)
        else:
            self._move_file(entry.path, target, instance)

    def _move_file(self, path: VaultPath, target: VaultPath, instance: int) -> None:
        node = self._nodes.get(path.nfc)
        origin = node.origin if node else path
        if origin is not None:
            self._add(Move(path, target, False, self._hash_for_move(origin)), instance)
        content = node.content if node else None
        self._drop(path)
        self._put(_Node(target, "file", origin, content, instance))
        if origin is None:
            self._created.add(target.key)

    def _move_folder(self, path: VaultPath, target: VaultPath, instance: int) -> None:
        below = list(self.walk(path))
        self._add(Move(path, target, True, None), instance)
        self._folder_moves = [move.after(path, target) for move in self._folder_moves]
        folder_origin = self.origin(path)
        if folder_origin is not None and not any(move.origin.nfc == folder_origin.nfc for move in self._folder_moves):
            self._folder_moves.append(FolderMove(folder_origin, target))
        for entry in [Entry(path, "folder"), *below]:
            node = self._nodes.get(entry.path.nfc)
            origin = node.origin if node else entry.path
            content = node.content if node else None
            self._drop(entry.path)
            self._put(_Node(entry.path.rebased(path, target), entry.kind, origin, content, instance))

    def _delete(self, path: VaultPath, instance: int) -> None:
        entry = self.locate(path)
        if entry is None:
            raise _not_found(path)
        folder = entry.kind == "folder"
        below = list(self.walk(entry.path)) if folder else []
        origin = self.origin(entry.path)
        files = sum(1 for item in below if item.kind == "file")
        if origin is None and folder and self._forget_new_folder(entry.path, below):
            return
        if origin is not None or folder:
            trash = self.trash_target(entry.path)
            before = None if folder or origin is None else self._hash_for_move(origin)
            self._add(Move(entry.path, trash, folder, before, trash=True), instance)
            self._taken_in_trash().add(trash.name.casefold())
        self._note_deleted([entry, *below], files)
        for item in [*below, entry]:
            self._drop(item.path)

    def _note_deleted(self, entries: list[Entry], files: int) -> None:
        """What of the vault at the start goes with a deleted entry: the entry itself, and what had been moved into it from elsewhere."""
        gone = entries[0].path
        self._folder_moves = [move for move in self._folder_moves if move.path.nfc != gone.nfc and not move.path.within(gone)]
        noted: list[VaultPath] = []
        for entry in entries:
            origin = self.origin(entry.path)
            if origin is None or any(origin.within(folder) for folder in noted):
                continue
            self._deletions.append(Deletion(origin, entry.kind == "folder", files if entry is entries[0] else 0))
            if entry.kind == "folder":
                noted.append(origin)

    def _forget_new_folder(self, folder: VaultPath, below: list[Entry]) -> bool:
        """Take a folder that this plan made, and that nothing of the vault went through, out of the books instead of trashing it."""
        inside = [folder, *(entry.path for entry in below)]
        moves = (owned.operation for owned in self._log if isinstance(owned.operation, Move))
        moved = (path for move in moves for path in (move.path, move.new_path))
        if any(self.origin(path) is not None for path in inside) or any(path == folder or path.within(folder) for path in moved):
            return False
        gone = {path.nfc for path in inside}
        self._log = [owned for owned in self._log if not (isinstance(owned.operation, MakeDir) and owned.operation.path.nfc in gone)]
        for path in inside:
            self._drop(path)
        return True

    def _make_folders(self, folder: VaultPath, instance: int) -> VaultPath:
        """Make a folder and the parents it lacks; answer its path in the spelling of the vault."""
        entry = self.locate(folder)
        if entry is not None:
            if entry.kind == "file":
                raise ToolError(f"{folder} is a file, so it cannot be a folder.", code="NOT_A_FOLDER", path=folder.text)
            return entry.path
        twin = self.twin(folder)
        if twin is not None:
            raise ToolError(f"The folder {twin} exists in another spelling.", code="FILE_EXISTS", path=folder.text, hint=f"Use {twin}.")
        parent = self._make_folders(folder.parent, instance)
        made = folder.rebased(folder.parent, parent)
        self._add(MakeDir(made), instance)
        self._put(_Node(made, "folder", None, None, instance))
        return made

    # --- the result ------------------------------------------------------------------------------------------------------------

    def change_set(self) -> ChangeSet:
        """The operations in the order of execution and the net changes, as far as the plan has been folded."""
        operations = list(self._log)
        for node in sorted(self._nodes.values(), key=attrgetter("touched")):
            if node.content is None:
                continue
            before = None if node.origin is None else self._hash_of_base(node.origin)
            after = content_hash(node.content)
            if before != after:
                operations.append(OwnedOperation(WriteFile(node.path, before, after, node.content), node.touched))
        operations.sort(key=attrgetter("instance"))
        files = [MovedFile(n.path, n.origin, n.content if self._differs(n) else None) for n in self._nodes.values() if n.kind == "file"]
        folders = [n.path for n in self._nodes.values() if n.kind == "folder" and n.origin is None]
        return ChangeSet(tuple(operations), net_changes(files, folders, self._folder_moves, self._deletions))

    def _differs(self, node: _Node) -> bool:
        return node.content is not None and (node.origin is None or content_hash(node.content) != self._hash_of_base(node.origin))

    # --- the books -------------------------------------------------------------------------------------------------------------

    def _put(self, node: _Node) -> None:
        nfc = node.path.nfc
        self._nodes[nfc] = node
        self._touched.append(node.path)
        self._children.setdefault(node.path.parent.nfc, {})[nfc] = node
        self._keys[node.path.key] = nfc
        if node.origin is not None:
            self._current[node.origin.nfc] = node.path

    def _drop(self, path: VaultPath) -> None:
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

    def _add(self, operation: Operation, instance: int) -> None:
        self._log.append(OwnedOperation(operation, instance))

    def _in_existing_spelling(self, path: VaultPath, instance: int) -> VaultPath:
        """The path below its parents as the vault spells them; missing parents are made."""
        return path.rebased(path.parent, self._make_folders(path.parent, instance))

    def _untouched(self, entry: Entry) -> bool:
        return entry.path.nfc not in self._removed and entry.path.nfc not in self._nodes

    def _kind(self, path: VaultPath) -> EntryKind | None:
        entry = self.locate(path)
        return entry.kind if entry else None

    def _base_children(self, folder: VaultPath) -> list[Entry]:
        entry = self._base.locate(folder)
        return self._base.children(entry.path) if entry is not None and entry.kind == "folder" else []

    def _read_base(self, path: VaultPath) -> bytes:
        if self._last_read is not None and self._last_read[0] == path.nfc:
            return self._last_read[1]
        data = self._base.read(path)
        self._base_hash.setdefault(path.nfc, content_hash(data))
        self._last_read = (path.nfc, data)
        return data

    def _hash_of_base(self, path: VaultPath) -> str:
        known = self._base_hash.get(path.nfc)
        if known is None:
            self._read_base(path)
            known = self._base_hash[path.nfc]
        return known

    def _hash_for_move(self, origin: VaultPath) -> str | None:
        return None if self._base.stat(origin).size > HASHED_MOVE_LIMIT else self._hash_of_base(origin)

    def _taken_in_trash(self) -> set[str]:
        if self._trash_names is None:
            names = getattr(self._base, "trash_names", None)
            self._trash_names = {name.casefold() for name in names()} if names is not None else set()
        return self._trash_names


def _not_found(path: VaultPath) -> VaultError:
    return VaultError(f"{path} does not exist in the vault.", code="FILE_NOT_FOUND", path=path.text)
