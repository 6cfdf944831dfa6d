"""The overlay of a vault: what each step of a dry run sees, and in the end the exact `ChangeSet`.

The overlay stores only what differs from its base. A move of a folder moves every entry below it in
the tables, so that every lookup is one dictionary access. Moves, deletions and new folders are
logged as they happen. Contents are stored per file and written once, by the last instance that
touched the file; a rename of the file or of a folder above it counts as a touch. So files are moved
on disk before they are rewritten, and every prefix of the operations leaves a consistent vault.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Sequence
from operator import attrgetter
from typing import assert_never

from msgspec.structs import replace

from obsidian_agent import budget
from obsidian_agent.errors import ToolError, VaultError
from obsidian_agent.vault.filesystem.inventory import Inventory
from obsidian_agent.vault.index.index import VaultIndex
from obsidian_agent.vault.paths import path as paths
from obsidian_agent.vault.paths.path import VaultPath, collision_key
from obsidian_agent.vault.paths.rules import with_mark
from obsidian_agent.vault.views.changes import (
    ChangeSet,
    CreateFile,
    CursorMark,
    DeleteEntry,
    FileChange,
    MakeDir,
    MakeFolder,
    ModifyFile,
    Move,
    MovedFile,
    OwnedOperation,
    RenameEntry,
    WriteFile,
    content_hash,
    net_changes,
)
from obsidian_agent.vault.views.hashed_base import HashedBase
from obsidian_agent.vault.views.overlay_entries import (
    OverlayEntries,
    OverlayNode,
    Rollback,
    StructureLog,
)
from obsidian_agent.vault.views.overlay_index import OverlayIndex
from obsidian_agent.vault.views.view import (
    FileStat,
    VaultEntry,
    VaultView,
    find_conflict,
    sorted_twins,
)


class OverlayVault(VaultView):
    """A view that accepts `FileChange`s."""

    def __init__(self, base: VaultView, now_ms: float) -> None:
        """Create an overlay without changes. Files written in it have the time `now_ms`."""
        self.before = HashedBase(base)
        """The vault below the changes, with the contents and hashes that were read."""
        self._now_ms = now_ms
        self._rollback = Rollback()
        self._entries = OverlayEntries(self._rollback)
        self._log = StructureLog(self._rollback)
        self._cursors: dict[str, tuple[bytes, CursorMark]] = {}
        self._joined: dict[tuple[int, int], None] = {}
        """Pairs of instances, the second of which deleted what the first had written or created.

        See `ChangeSet.joined`.
        """
        self._trashed: dict[str, None] = {}
        self._linked: dict[tuple[str, int], None] = {}
        """Files that were changed through a symbolic link, each with the instance that did it."""
        self._index: VaultIndex | None = None

    # --- reading ----------------------------------------------------------------------------------

    @property
    def index(self) -> VaultIndex:
        if self._index is None:
            self._index = OverlayIndex(self.before.view, self._entries, self)
        return self._index

    def locate(self, path: VaultPath) -> VaultEntry | None:
        node = self._entries.get(path)
        if node is not None:
            return node.entry
        entry = None if self._entries.is_removed(path) else self.before.view.locate(path)
        if entry is not None:
            parent = entry.path.parent
            real_parent = self._real_path(parent)
            if real_parent is None:
                return None
            if real_parent != parent:
                return self.locate(entry.path.rebased(parent, real_parent))
        if path.text.isascii() or (entry is not None and entry.path == path):
            return entry
        folder = self.locate(path.parent)
        if folder is None or folder.kind == "file":
            return None
        if folder.path != path.parent:
            return self.locate(path.rebased(path.parent, folder.path))
        for twin in self.twins(path):
            if twin.nfc == path.nfc and twin.parent == path.parent:
                entry = self._exact_entry(twin)
                if entry is not None:
                    return entry
        return None

    def _exact_entry(self, path: VaultPath) -> VaultEntry | None:
        """Return the entry with exactly this spelling."""
        node = self._entries.get(path)
        return node.entry if node is not None else self.before.view.locate(path)

    def _real_path(self, path: VaultPath) -> VaultPath | None:
        """Return the path with symbolic links resolved, or None if the target is deleted."""
        node = self._entries.get(path)
        origin = path if node is None else node.origin
        if origin is None or origin.is_root or (node is not None and node.content is not None):
            return path
        real = self.before.view.real(origin)
        if real == origin:
            return path
        if node is not None:
            return self.current(real)
        return None if self._is_deleted(real) else real

    def _is_deleted(self, path: VaultPath) -> bool:
        return self._entries.is_removed(path) and self._entries.get(path) is None

    def _spelled(self, path: VaultPath) -> VaultPath:
        """Return a path in the spelling of the current entry, or else of the original one."""
        if path.text.isascii() or self._entries.get(path) is not None:
            return path
        entry = self.locate(path)
        return entry.path if entry is not None else self.before.path_of(path) or path

    def _content_path(self, path: VaultPath) -> VaultPath:
        """Return the path of the file that stores the content of `path`. Raise FILE_NOT_FOUND."""
        spelled = self._spelled(path)
        real = None if self._is_deleted(spelled) else self._real_path(spelled)
        if real is None:
            raise _not_found(path)
        return real

    def twins(self, path: VaultPath) -> list[VaultPath]:
        old = (twin for twin in self.before.view.twins(path) if self._entries.is_untouched(twin))
        return sorted_twins(path, [*old, *self._entries.twins(path)])

    def read(self, path: VaultPath) -> bytes:
        budget.check()
        path = self._content_path(path)
        node = self._entries.get(path)
        if node is None:
            return self.before.read(path)
        if node.content is not None:
            return node.content
        if node.kind == "folder" or node.origin is None:
            raise VaultError(f"{path} is a folder, not a note.", code="NOT_TEXT", path=path.text)
        return self.before.read(node.origin)

    def stat(self, path: VaultPath) -> FileStat:
        path = self._content_path(path)
        node = self._entries.get(path)
        if node is None:
            return self.before.view.stat(path)
        if node.content is None and node.origin is not None:
            return self.before.view.stat(node.origin)
        created_ms = self._now_ms
        if node.origin is not None:
            created_ms = self.before.view.stat(node.origin).created_ms
        return FileStat(len(node.content or b""), self._now_ms, created_ms)

    def children(self, folder: VaultPath) -> list[VaultEntry]:
        entry = self.locate(folder)
        if entry is None:
            raise _not_found(folder)
        if entry.kind == "file":
            raise VaultError(
                f"{folder} is a file, not a folder.", code="NOT_A_FOLDER", path=folder.text
            )
        old = self.before.view.children(entry.path) if self.before.is_folder(entry.path) else []
        new = (node.entry for node in self._entries.inside(entry.path))
        return sorted(
            [*(child for child in old if self._entries.is_untouched(child.path)), *new],
            key=attrgetter("path.text"),
        )

    def walk(self, folder: VaultPath) -> Iterator[VaultEntry]:
        folder = self._spelled(folder)
        base_entries = self.before.view.walk(folder) if self.before.is_folder(folder) else ()
        old = (entry for entry in base_entries if self._entries.is_untouched(entry.path))
        new = sorted(
            (node.entry for node in self._entries.nodes if node.path.within(folder)),
            key=attrgetter("path.text"),
        )
        return budget.checked(heapq.merge(old, new, key=attrgetter("path.text")))

    def origin(self, path: VaultPath) -> VaultPath | None:
        entry = self.locate(path)
        if entry is None:
            return None
        node = self._entries.get(entry.path)
        return entry.path if node is None else node.origin

    def current(self, origin: VaultPath) -> VaultPath | None:
        spelled = origin if self._entries.is_moved(origin) else self.before.path_of(origin)
        return None if spelled is None else self._entries.current(spelled)

    def is_link(self, path: VaultPath) -> bool:
        origin = self.origin(path)
        return origin is not None and self.before.view.is_link(origin)

    def real(self, path: VaultPath) -> VaultPath:
        return self._real_path(path) or path

    def names(self, path: VaultPath) -> Sequence[VaultPath]:
        origin = self.origin(path)
        origins = () if origin is None else self.before.view.names(origin)
        now = (self.current(name) for name in origins)
        return tuple(dict.fromkeys([path, *(name for name in now if name is not None)]))

    def inventory(self, path: VaultPath) -> Inventory | None:
        """Return None: each `Move` of the overlay has the inventory of its original."""
        return None

    def trash_names(self) -> Collection[str]:
        return self.before.trash_names().union(self._trashed)

    def was_created_here(self, path: VaultPath) -> bool:
        """Return whether this plan created a file whose path equals `path`, ignoring case."""
        return self._entries.is_created(path)

    def cursor_mark(self, origin: VaultPath) -> tuple[bytes, CursorMark] | None:
        """Return the content and the cursor after the last editor step on a file.

        `origin` is the file's path before the plan.
        """
        return self._cursors.get(origin.text)

    def trash_target(self, path: VaultPath) -> VaultPath:
        """Return a free path in `.trash/`: with the entry's own name, or ` 2`, ` 3`, … added."""
        used_names = self.trash_names()
        name, count = path.name, 1
        while collision_key(name) in used_names:
            count += 1
            name = with_mark(path.name, f" {count}")
        return paths.trash_path(name)

    # --- applying changes -------------------------------------------------------------------------

    def apply(self, changes: Sequence[FileChange], instance: int) -> None:
        """Apply the changes of an instance: all of them, or none.

        After a ToolError or VaultError the overlay is unchanged.
        """
        try:
            for change in changes:
                self._apply(change, instance)
        except BaseException:
            self._rollback.rewind()
            raise
        finally:
            self._rollback.clear()

    def _apply(self, change: FileChange, instance: int) -> None:
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
            raise _already_exists(twin, change.path)
        path = self._in_existing_spelling(change.path, instance)
        node = OverlayNode(
            path=path,
            kind="file",
            origin=None,
            content=change.content,
            touched=instance,
            writers=frozenset({instance}),
        )
        self._entries.put(node, new=True)

    def _modify(self, change: ModifyFile, instance: int) -> None:
        entry = self.locate(change.path)
        if entry is None:
            raise _not_found(change.path)
        if entry.kind == "folder":
            raise ToolError(
                f"{entry.path} is a folder, not a note.", code="NOT_TEXT", path=entry.path.text
            )
        node = self._entries.get(entry.path)
        origin = node.origin if node else entry.path
        if change.cursor is not None and origin is not None:
            self._rollback.put(self._cursors, origin.text, (change.content, change.cursor))
        real = self._content_path(entry.path)
        if real != entry.path:
            # The symbolic link may point to a protected file.
            paths.parse(real.text, paths.PathUse.UPDATE)
            self._modify(replace(change, path=real), instance)
            self._rollback.put(self._linked, (real.text, instance), None)
            return
        if (
            (real.text, instance) in self._linked
            and node is not None
            and node.content != change.content
        ):
            raise ToolError(
                f"{real} would be changed twice, once through a symbolic link.",
                code="CONFLICT",
                path=real.text,
                hint="Name only the note itself.",
            )
        if node is None:
            self.before.hash_of(entry.path)
            node = OverlayNode(
                path=entry.path,
                kind="file",
                origin=entry.path,
                content=change.content,
                touched=instance,
                writers=frozenset({instance}),
            )
        else:
            node = replace(
                node,
                content=change.content,
                touched=instance,
                writers=node.writers | {instance},
            )
        self._entries.put(node)

    def _rename(self, change: RenameEntry, instance: int) -> None:
        entry = self.locate(change.path)
        if entry is None:
            raise _not_found(change.path)
        target = change.new_path
        if target.text == entry.path.text:
            return
        twin = find_conflict(self, target, entry.path)
        if twin is not None:
            self._check_overwrite(change, entry, twin)
            self._delete(twin, instance)
        target = self._in_existing_spelling(target, instance)
        if target.within(entry.path):
            raise ToolError(f"{entry.path} cannot be moved into itself.", path=entry.path.text)
        if entry.kind == "folder":
            self._move_folder(entry.path, target, instance)
        else:
            self._move_file(entry.path, target, instance)

    def _check_overwrite(self, change: RenameEntry, entry: VaultEntry, twin: VaultPath) -> None:
        """Raise FILE_EXISTS unless `twin` is another file and may be overwritten."""
        if self._real_path(twin) == self._real_path(entry.path):
            raise ToolError(
                f"{twin} and {entry.path} are the same file: one is a symbolic link to the other.",
                code="FILE_EXISTS",
                path=change.new_path.text,
                hint="Choose another name.",
            )
        existing = self.locate(twin)
        if (
            not change.overwrite
            or entry.kind == "folder"
            or (existing is not None and existing.kind == "folder")
        ):
            raise _already_exists(twin, change.new_path)

    def _move_file(self, path: VaultPath, target: VaultPath, instance: int) -> None:
        node = self._entries.get(path)
        origin = node.origin if node else path
        if origin is not None:
            self._log.add(self._move_of(path, target, origin, folder=False), instance)
        self._move_node(VaultEntry(path, "file"), target, instance, new=origin is None)

    def _move_folder(self, path: VaultPath, target: VaultPath, instance: int) -> None:
        below, origin = list(self.walk(path)), self.origin(path)
        self._log.add(self._move_of(path, target, origin, folder=True), instance)
        self._log.add_folder_move(path, target, origin)
        for entry in [VaultEntry(path, "folder"), *below]:
            self._move_node(entry, entry.path.rebased(path, target), instance)

    def _move_node(
        self, entry: VaultEntry, target: VaultPath, instance: int, *, new: bool = False
    ) -> None:
        node = self._entries.get(entry.path)
        moved = OverlayNode(
            path=target,
            kind=entry.kind,
            origin=node.origin if node else entry.path,
            content=node.content if node else None,
            touched=instance,
            writers=node.writers if node else frozenset(),
        )
        self._entries.drop(entry.path)
        self._entries.put(moved, new=new)

    def _delete(self, path: VaultPath, instance: int) -> None:
        entry = self.locate(path)
        if entry is None:
            raise _not_found(path)
        folder = entry.kind == "folder"
        below = list(self.walk(entry.path)) if folder else []
        for item in [entry, *below]:
            node = self._entries.get(item.path)
            for writer in (node.writers if node else frozenset()) - {instance}:
                self._rollback.put(self._joined, (writer, instance), None)
        origin = self.origin(entry.path)
        files = sum(1 for item in below if item.kind == "file")
        if origin is None and folder and self._drop_new_folder(entry.path, below, instance):
            return
        if origin is not None or folder:
            trash = self.trash_target(entry.path)
            self._log.add(
                self._move_of(entry.path, trash, origin, folder=folder, trash=True), instance
            )
            self._rollback.put(self._trashed, collision_key(trash.name), None)
        self._log.add_deletion([(item, self.origin(item.path)) for item in [entry, *below]], files)
        for item in [*below, entry]:
            self._entries.drop(item.path)

    def _move_of(
        self,
        path: VaultPath,
        target: VaultPath,
        origin: VaultPath | None,
        *,
        folder: bool,
        trash: bool = False,
    ) -> Move:
        """Return a move that runs only if the entry is still in its original state.

        `origin` is the original path; None for a folder that the plan created.
        """
        if origin is not None and path.parent != target.parent and self.before.view.is_link(origin):
            # The target of the link may be relative to its folder.
            raise ToolError(
                f"{path} is a symbolic link, which may not work from another folder.",
                code="PATH_NOT_ALLOWED",
                path=path.text,
            )
        before_hash, inventory = None, None
        if origin is not None:
            before_hash, inventory = self.before.state_before_move(origin, folder=folder)
        return Move(
            path=path,
            new_path=target,
            folder=folder,
            before_hash=before_hash,
            trash=trash,
            inventory=inventory,
        )

    def _drop_new_folder(self, folder: VaultPath, below: list[VaultEntry], instance: int) -> bool:
        """Drop a folder that this plan created, instead of moving it to the trash.

        Return False if an original file or folder is in it, or was moved into it and out again.
        """
        inside = [folder, *(entry.path for entry in below)]
        if any(self.origin(path) is not None for path in inside):
            return False
        if self._log.has_move_through(folder):
            return False
        for creator in self._log.remove_new_folders(inside) - {instance}:
            self._rollback.put(self._joined, (creator, instance), None)
        for path in inside:
            self._entries.drop(path)
        return True

    def _make_folders(self, folder: VaultPath, instance: int) -> VaultPath:
        """Create a folder and its missing parents. Return its path in the vault's spelling."""
        entry = self.locate(folder)
        if entry is not None:
            if entry.kind == "file":
                raise ToolError(
                    f"{folder} is a file, so it cannot be a folder.",
                    code="NOT_A_FOLDER",
                    path=folder.text,
                )
            real = self._real_path(entry.path)
            if real is None:
                raise _not_found(folder)
            return real
        twin = self.twin(folder)
        if twin is not None:
            raise ToolError(
                f"The folder {twin} exists in another spelling.",
                code="FILE_EXISTS",
                path=folder.text,
                hint=f"Use {twin}.",
            )
        parent = self._make_folders(folder.parent, instance)
        created = folder.rebased(folder.parent, parent)
        self._log.add(MakeDir(created), instance)
        self._entries.put(
            OverlayNode(path=created, kind="folder", origin=None, content=None, touched=instance)
        )
        return created

    def _in_existing_spelling(self, path: VaultPath, instance: int) -> VaultPath:
        """Create the missing parents of a path. Return it in the vault's spelling."""
        return path.rebased(path.parent, self._make_folders(path.parent, instance))

    # --- the result -------------------------------------------------------------------------------

    def change_set(self) -> ChangeSet:
        """Return the operations in the order of execution and the net changes, as of now."""
        nodes = self._entries.nodes
        operations = list(self._log.operations)
        unchanged: set[str] = set()
        for node in sorted(nodes, key=lambda node: (node.touched, node.path.text)):
            if node.content is None:
                continue
            before = None if node.origin is None else self.before.hash_of(node.origin)
            after = content_hash(node.content)
            if before == after:
                unchanged.add(node.path.text)
            else:
                write = WriteFile(node.path, before, after, node.content)
                operations.append(OwnedOperation(write, node.touched))
        operations.sort(key=attrgetter("instance"))
        files = [
            MovedFile(
                node.path,
                node.origin,
                None if node.path.text in unchanged else node.content,
                node.writers,
            )
            for node in nodes
            if node.kind == "file"
        ]
        folders = [node.path for node in nodes if node.kind == "folder" and node.origin is None]
        changes = net_changes(
            files, folders, self._log.folder_moves, self._log.deletions, self.before.known_hash
        )
        joined = {
            (writer, node.touched) for node in nodes for writer in node.writers - {node.touched}
        }
        return ChangeSet(tuple(operations), changes, frozenset(joined.union(self._joined)))


def _not_found(path: VaultPath) -> VaultError:
    return VaultError(f"{path} does not exist in the vault.", code="FILE_NOT_FOUND", path=path.text)


def _already_exists(twin: VaultPath, path: VaultPath) -> ToolError:
    return ToolError(
        f"{twin} already exists.", code="FILE_EXISTS", path=path.text, hint="Choose another name."
    )
