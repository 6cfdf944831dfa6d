"""A vault with changes folded over it: what each step of a dry run sees, and in the end the exact `ChangeSet`.

The overlay keeps only what differs from its base. Moving a folder moves every entry below it in the tables, so that looking anything up
stays one dictionary access. Structure is logged as it happens; contents are held per file and written once, by the last instance that
touched the file (a rename of it, or of a folder above it, counts as a touch): on disk a file that moves still has its first content,
and every prefix of the operations is a consistent vault.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Sequence
from operator import attrgetter
from typing import assert_never

from obsidian_agent import budget
from obsidian_agent.dataclass import replace
from obsidian_agent.errors import ToolError, VaultError
from obsidian_agent.vault.filesystem.inventory import Inventory
from obsidian_agent.vault.index.index import VaultIndex
from obsidian_agent.vault.paths import path as paths
from obsidian_agent.vault.paths.path import VaultPath, collision_key
from obsidian_agent.vault.paths.rules import marked
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
from obsidian_agent.vault.views.overlay_entries import (
    HashedBase,
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
    """A `VaultView` that accepts `FileChange`s. `now_ms` is the time that files written here have, frozen when the preview starts."""

    def __init__(self, base: VaultView, now_ms: float) -> None:
        self.before = HashedBase(base)
        """The vault that the changes are over, with the contents and hashes that were read."""
        self._now_ms = now_ms
        self._rollback = Rollback()
        self._entries = OverlayEntries(self._rollback)
        self._log = StructureLog(self._rollback)
        self._cursors: dict[str, tuple[bytes, CursorMark]] = {}
        self._joined: dict[tuple[int, int], None] = {}
        """Pairs of instances, the second of which deleted what the first had written."""
        self._trashed: dict[str, None] = {}
        self._linked: dict[tuple[str, int], None] = {}
        """Files that were changed by way of a link, each with the instance that did."""
        self._index: VaultIndex | None = None

    # --- looking ---------------------------------------------------------------------------------------------------------------

    @property
    def index(self) -> VaultIndex:
        if self._index is None:
            self._index = OverlayIndex(self.before.view, self._entries, self)
        return self._index

    def locate(self, path: VaultPath) -> VaultEntry | None:
        node = self._entries.get(path)
        if node is not None:
            return node.entry
        entry = None if self._entries.removed(path) else self.before.view.locate(path)
        if entry is not None and (way := self._place(entry.path.parent)) != entry.path.parent:
            return None if way is None else self.locate(entry.path.rebased(entry.path.parent, way))
        if path.text.isascii() or (entry is not None and entry.path == path):
            return entry
        folder = self.locate(path.parent)
        if folder is None or folder.kind == "file":
            return None
        if folder.path != path.parent:
            return self.locate(path.rebased(path.parent, folder.path))
        twins = (
            twin for twin in self.twins(path) if twin.nfc == path.nfc and twin.parent == path.parent
        )
        return next((found for twin in twins if (found := self._entry(twin)) is not None), None)

    def _entry(self, path: VaultPath) -> VaultEntry | None:
        """The entry of this very spelling."""
        node = self._entries.get(path)
        return node.entry if node is not None else self.before.view.locate(path)

    def _place(self, path: VaultPath) -> VaultPath | None:
        """Where what is at `path` lies: a link is another name of that. None when that is gone; `path` itself where there is no link."""
        node = self._entries.get(path)
        origin = path if node is None else node.origin
        if origin is None or origin.is_root or (node is not None and node.content is not None):
            return path
        real = self.before.view.real(origin)
        if real == origin:
            return path
        if node is not None:
            return self.current(real)
        return None if self._entries.removed(real) and self._entries.get(real) is None else real

    def _spelled(self, path: VaultPath) -> VaultPath:
        """A path in the spelling of what is there, or else of what was there at the start."""
        if path.text.isascii() or self._entries.get(path) is not None:
            return path
        entry = self.locate(path)
        return entry.path if entry is not None else self.before.path_of(path) or path

    def _content_at(self, path: VaultPath) -> VaultPath:
        """The file whose content is found at `path`. FILE_NOT_FOUND when that is gone."""
        spelled = self._spelled(path)
        place = (
            None
            if self._entries.removed(spelled) and self._entries.get(spelled) is None
            else self._place(spelled)
        )
        if place is None:
            raise _not_found(path)
        return place

    def twins(self, path: VaultPath) -> list[VaultPath]:
        old = (twin for twin in self.before.view.twins(path) if self._entries.untouched(twin))
        return sorted_twins(path, [*old, *self._entries.twins(path)])

    def read(self, path: VaultPath) -> bytes:
        budget.check()
        path = self._content_at(path)
        node = self._entries.get(path)
        if node is None:
            return self.before.read(path)
        if node.content is not None:
            return node.content
        if node.kind == "folder" or node.origin is None:
            raise VaultError(f"{path} is a folder, not a note.", code="NOT_TEXT", path=path.text)
        return self.before.read(node.origin)

    def stat(self, path: VaultPath) -> FileStat:
        path = self._content_at(path)
        node = self._entries.get(path)
        if node is None:
            return self.before.view.stat(path)
        if node.content is None and node.origin is not None:
            return self.before.view.stat(node.origin)
        created = (
            self.before.view.stat(node.origin).created_ms
            if node.origin is not None
            else self._now_ms
        )
        return FileStat(len(node.content or b""), self._now_ms, created)

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
            [*(child for child in old if self._entries.untouched(child.path)), *new],
            key=attrgetter("path.text"),
        )

    def walk(self, folder: VaultPath) -> Iterator[VaultEntry]:
        folder = self._spelled(folder)
        there = self.before.view.walk(folder) if self.before.is_folder(folder) else ()
        old = (entry for entry in there if self._entries.untouched(entry.path))
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
        there = origin if self._entries.moved(origin) else self.before.path_of(origin)
        return None if there is None else self._entries.current(there)

    def is_link(self, path: VaultPath) -> bool:
        origin = self.origin(path)
        return origin is not None and self.before.view.is_link(origin)

    def real(self, path: VaultPath) -> VaultPath:
        return self._place(path) or path

    def inventory(self, path: VaultPath) -> Inventory | None:
        """None: what an overlay shows is bound by the operations that made it so."""
        return None

    def trash_names(self) -> Collection[str]:
        return self.before.trash_names().union(self._trashed)

    def was_created_here(self, path: VaultPath) -> bool:
        """Whether an earlier step of this plan made a file whose path equals `path` in NFC and case folding."""
        return self._entries.created(path)

    def cursor_mark(self, origin: VaultPath) -> tuple[bytes, CursorMark] | None:
        """The content that the last editor's step gave to the file that was at `origin` at the start, and where the cursor was then."""
        return self._cursors.get(origin.text)

    def trash_target(self, path: VaultPath) -> VaultPath:
        """Return the free name of a deleted entry in `.trash/`: its own, or with ` 2`, ` 3`, … before the extension."""
        taken = self.trash_names()
        name, count = path.name, 1
        while collision_key(name) in taken:
            count += 1
            name = marked(path.name, f" {count}")
        return paths.trash_path(name)

    # --- changing --------------------------------------------------------------------------------------------------------------

    def apply(self, changes: Sequence[FileChange], instance: int) -> None:
        """Fold the changes of instance number `instance`: all of them, or none. ToolError or VaultError leaves the overlay as it was."""
        try:
            for change in changes:
                self._fold(change, instance)
        except BaseException:
            self._rollback.rewind()
            raise
        finally:
            self._rollback.clear()

    def _fold(self, change: FileChange, instance: int) -> None:
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
            raise ToolError(
                f"{twin} already exists.",
                code="FILE_EXISTS",
                path=change.path.text,
                hint="Choose another name.",
            )
        path = self._in_existing_spelling(change.path, instance)
        self._entries.put(
            OverlayNode(path, "file", None, change.content, instance, frozenset({instance})),
            new=True,
        )

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
        place = self._content_at(entry.path)
        if place != entry.path:
            paths.parse(
                place.text, paths.PathUse.UPDATE
            )  # A link may lead to what is never written.
            self._modify(replace(change, path=place), instance)
            self._rollback.put(self._linked, (place.text, instance), None)
            return
        if (
            (place.text, instance) in self._linked
            and node is not None
            and node.content != change.content
        ):
            message = f"{place} is known by a link too, and this would change it twice."
            raise ToolError(
                message, code="CONFLICT", path=place.text, hint="Name the note itself only."
            )
        if node is None:
            self.before.hash_of(entry.path)
            writers = frozenset({instance})
            self._entries.put(
                OverlayNode(entry.path, "file", entry.path, change.content, instance, writers)
            )
        else:
            self._entries.put(
                replace(
                    node,
                    content=change.content,
                    touched=instance,
                    writers=node.writers | {instance},
                )
            )

    def _rename(self, change: RenameEntry, instance: int) -> None:
        entry = self.locate(change.path)
        if entry is None:
            raise _not_found(change.path)
        target = change.new_path
        if target.text == entry.path.text:
            return
        twin = find_conflict(self, target, entry.path)
        if twin is not None:
            if self._place(twin) == self._place(entry.path):
                message = (
                    f"{twin} and {entry.path} are one file: a link leads from one to the other."
                )
                raise ToolError(
                    message, code="FILE_EXISTS", path=target.text, hint="Choose another name."
                )
            there = self.locate(twin)
            if (
                not change.overwrite
                or entry.kind == "folder"
                or (there is not None and there.kind == "folder")
            ):
                raise ToolError(
                    f"{twin} already exists.",
                    code="FILE_EXISTS",
                    path=target.text,
                    hint="Choose another name.",
                )
            self._delete(twin, instance)
        target = self._in_existing_spelling(target, instance)
        if target.within(entry.path):
            raise ToolError(f"{entry.path} cannot be moved into itself.", path=entry.path.text)
        if entry.kind == "folder":
            self._move_folder(entry.path, target, instance)
        else:
            self._move_file(entry.path, target, instance)

    def _move_file(self, path: VaultPath, target: VaultPath, instance: int) -> None:
        node = self._entries.get(path)
        origin = node.origin if node else path
        if origin is not None:
            self._log.add(self._move_of(path, target, origin, folder=False), instance)
        content = node.content if node else None
        writers = node.writers if node else frozenset()
        self._entries.drop(path)
        self._entries.put(
            OverlayNode(target, "file", origin, content, instance, writers), new=origin is None
        )

    def _move_folder(self, path: VaultPath, target: VaultPath, instance: int) -> None:
        below, origin = list(self.walk(path)), self.origin(path)
        self._log.add(self._move_of(path, target, origin, folder=True), instance)
        self._log.folder_moved(path, target, origin)
        for entry in [VaultEntry(path, "folder"), *below]:
            node = self._entries.get(entry.path)
            origin = node.origin if node else entry.path
            content = node.content if node else None
            writers = node.writers if node else frozenset()
            moved = entry.path.rebased(path, target)
            self._entries.drop(entry.path)
            self._entries.put(OverlayNode(moved, entry.kind, origin, content, instance, writers))

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
        if origin is None and folder and self._forget_new_folder(entry.path, below):
            return
        if origin is not None or folder:
            trash = self.trash_target(entry.path)
            self._log.add(
                self._move_of(entry.path, trash, origin, folder=folder, trash=True), instance
            )
            self._rollback.put(self._trashed, collision_key(trash.name), None)
        self._log.deleted([(item, self.origin(item.path)) for item in [entry, *below]], files)
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
        """A move bound to what was at `origin` at the start; a folder that the plan made (None) is bound by what it was filled with."""
        if origin is not None and path.parent != target.parent and self.before.view.is_link(origin):
            # What it leads to is said from the folder it lies in: from another one it would be another note, or none.
            raise ToolError(
                f"{path} is a link, which would lead elsewhere from another folder.",
                code="PATH_NOT_ALLOWED",
                path=path.text,
            )
        before, inventory = (
            (None, None) if origin is None else self.before.bound(origin, folder=folder)
        )
        return Move(path, target, folder, before, trash, inventory)

    def _forget_new_folder(self, folder: VaultPath, below: list[VaultEntry]) -> bool:
        """Take a folder that this plan made, and that nothing of the vault went through, out of the books instead of trashing it."""
        inside = [folder, *(entry.path for entry in below)]
        if any(self.origin(path) is not None for path in inside) or self._log.went_through(folder):
            return False
        self._log.forget_folders(inside)
        for path in inside:
            self._entries.drop(path)
        return True

    def _make_folders(self, folder: VaultPath, instance: int) -> VaultPath:
        """Make a folder and the parents it lacks; answer its path in the spelling of the vault."""
        entry = self.locate(folder)
        if entry is not None:
            if entry.kind == "file":
                raise ToolError(
                    f"{folder} is a file, so it cannot be a folder.",
                    code="NOT_A_FOLDER",
                    path=folder.text,
                )
            place = self._place(entry.path)
            if place is None:
                raise _not_found(folder)
            return place
        twin = self.twin(folder)
        if twin is not None:
            raise ToolError(
                f"The folder {twin} exists in another spelling.",
                code="FILE_EXISTS",
                path=folder.text,
                hint=f"Use {twin}.",
            )
        parent = self._make_folders(folder.parent, instance)
        made = folder.rebased(folder.parent, parent)
        self._log.add(MakeDir(made), instance)
        self._entries.put(OverlayNode(made, "folder", None, None, instance))
        return made

    # --- the result ------------------------------------------------------------------------------------------------------------

    def change_set(self) -> ChangeSet:
        """The operations in the order of execution and the net changes, as far as the plan has been folded."""
        operations = list(self._log.operations)
        unchanged: set[str] = set()
        for node in sorted(self._entries.nodes, key=lambda node: (node.touched, node.path.text)):
            if node.content is None:
                continue
            before = None if node.origin is None else self.before.hash_of(node.origin)
            after = content_hash(node.content)
            if before == after:
                unchanged.add(node.path.text)
            else:
                operations.append(
                    OwnedOperation(WriteFile(node.path, before, after, node.content), node.touched)
                )
        operations.sort(key=attrgetter("instance"))
        files = [
            MovedFile(n.path, n.origin, None if n.path.text in unchanged else n.content)
            for n in self._entries.nodes
            if n.kind == "file"
        ]
        folders = [n.path for n in self._entries.nodes if n.kind == "folder" and n.origin is None]
        changes = net_changes(
            files, folders, self._log.folder_moves, self._log.deletions, self.before.known_hash
        )
        joined = {(w, n.touched) for n in self._entries.nodes for w in n.writers - {n.touched}}
        return ChangeSet(tuple(operations), changes, frozenset(joined.union(self._joined)))

    def _in_existing_spelling(self, path: VaultPath, instance: int) -> VaultPath:
        """The path below its parents as the vault spells them; missing parents are made."""
        return path.rebased(path.parent, self._make_folders(path.parent, instance))


def _not_found(path: VaultPath) -> VaultError:
    return VaultError(f"{path} does not exist in the vault.", code="FILE_NOT_FOUND", path=path.text)
