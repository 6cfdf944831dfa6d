"""Changes to a vault, as data: proposals of tools, operations of the executor, and net changes.

A tool proposes `FileChange`s. `OverlayVault` (overlay.py) applies them and returns a `ChangeSet`:
the ordered `Operation`s that turn the vault on disk into the vault of the preview. The content of
each file is written by exactly one `WriteFile`; structural operations (new folders, moves, trash)
are replayed in the order of the steps. Net changes follow from the original path and the final
content of each file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from msgspec import Struct

from obsidian_agent.vault.filesystem.inventory import Inventory
from obsidian_agent.vault.paths.path import VaultPath

ChangeKind = Literal["create", "modify", "delete", "rename", "mkdir"]


def content_hash(data: bytes) -> str:
    """Return the SHA-256 of the bytes as hex: the `hash` of the plan language."""
    return hashlib.sha256(data).hexdigest()


# --- proposals of tools ---------------------------------------------------------------------------


class CreateFile(Struct, frozen=True):
    """A new file at a free path. The overlay creates missing parents, visibly."""

    path: VaultPath
    content: bytes


class CursorMark(Struct, frozen=True):
    """The position of the cursor after an editor step, as an index in the new text."""

    offset: int
    replaced: bool
    """True if the step replaced the run's selection."""


class ModifyFile(Struct, frozen=True):
    """New content for an existing file. Editor tools also set the cursor."""

    path: VaultPath
    content: bytes
    cursor: CursorMark | None = None


class RenameEntry(Struct, frozen=True):
    """A new path for a file or folder. Missing parents of `new_path` are created.

    With `overwrite`, a file at `new_path` goes to the trash.
    """

    path: VaultPath
    new_path: VaultPath
    overwrite: bool = False


class DeleteEntry(Struct, frozen=True):
    """A move of a file or folder to the vault's own `.trash/`, under a free name."""

    path: VaultPath


class MakeFolder(Struct, frozen=True):
    """A new folder with its missing parents. No change if it exists."""

    path: VaultPath


FileChange = CreateFile | ModifyFile | RenameEntry | DeleteEntry | MakeFolder


# --- operations of the executor -------------------------------------------------------------------


class MakeDir(Struct, frozen=True):
    """The creation of one folder, whose parent exists."""

    path: VaultPath


class Move(Struct, frozen=True, kw_only=True):
    """A rename of a file or folder to a free path in an existing folder."""

    path: VaultPath
    new_path: VaultPath
    folder: bool
    before_hash: str | None
    """The hash that a file must still have; None for folders, and files too large to hash."""
    trash: bool = False
    """True if the new path is in `.trash/`."""
    inventory: Inventory | None = None
    """The contents of a folder, or size and times of a large file. They must be unchanged."""


class WriteFile(Struct, frozen=True):
    """The only write of a file. Its current hash must be `before_hash`; None for a new file."""

    path: VaultPath
    before_hash: str | None
    after_hash: str
    content: bytes


Operation = MakeDir | Move | WriteFile


class OwnedOperation(Struct, frozen=True):
    """An operation and the instance that causes it, as an index in the preview's instances."""

    operation: Operation
    instance: int


# --- net changes ----------------------------------------------------------------------------------


class NetChange(Struct, frozen=True, kw_only=True):
    """The net effect on one path, as displayed and approved.

    A file that is renamed and edited is one rename with content.
    """

    kind: ChangeKind
    path: VaultPath
    new_path: VaultPath | None = None
    before: VaultPath | None = None
    """The path of the old content in the original vault; None if there was none."""
    content: bytes | None = None
    """The new content; None if it is unchanged."""
    folder: bool = False
    files: int = 0
    """The number of files in a deleted folder, which is one change."""
    before_hash: str | None = None
    """The hash of the old content, if it was read."""
    writers: frozenset[int] = frozenset()
    """The instances that wrote the new content, as indices in the preview's instances."""


class ChangeSet(Struct, frozen=True):
    """All effects of a plan on the vault.

    `operations` are in the order of execution, `changes` is the net effect, sorted by path.
    """

    operations: tuple[OwnedOperation, ...] = ()
    changes: tuple[NetChange, ...] = ()
    joined: frozenset[tuple[int, int]] = frozenset()
    """Pairs of instances whose changes cannot be told apart on the disk.

    Both wrote the same file, or the second deleted what the first made. The changes of the first
    reach the disk only with the operations of the second.
    """


def link_updates(change_set: ChangeSet) -> Callable[[NetChange], bool]:
    """Return a predicate for changes of notes in which only links to moved files follow."""
    movers = {
        owned.instance
        for owned in change_set.operations
        if isinstance(owned.operation, Move) and not owned.operation.trash
    }

    def only_follows(change: NetChange) -> bool:
        return change.kind == "modify" and bool(change.writers) and change.writers <= movers

    return only_follows


class MovedFile(Struct, frozen=True):
    """A file that is new, changed or moved."""

    path: VaultPath
    origin: VaultPath | None
    """The original path; None for a new file."""
    content: bytes | None
    """The new content; None if it is unchanged."""
    writers: frozenset[int] = frozenset()
    """The instances that wrote the new content."""


class FolderMove(Struct, frozen=True):
    """A folder of the original vault and its current path."""

    origin: VaultPath
    path: VaultPath

    def after(self, old: VaultPath, new: VaultPath) -> FolderMove:
        """Return this move followed by a move of `old` to `new`."""
        if self.path == old:
            return FolderMove(self.origin, new)
        if self.path.within(old):
            return FolderMove(self.origin, self.path.rebased(old, new))
        return self


class Deletion(Struct, frozen=True):
    """An entry of the original vault that went to the trash, with `files` files below it."""

    path: VaultPath
    folder: bool
    files: int


def net_changes(
    files: Iterable[MovedFile],
    folders: Iterable[VaultPath],
    moves: Sequence[FolderMove],
    deletions: Iterable[Deletion],
    hash_of: Callable[[VaultPath], str | None],
) -> tuple[NetChange, ...]:
    """Return the net changes, sorted by path. `hash_of` knows the hashes of the files read.

    A path has one change. It has two if something new is at the old path of a rename or of a
    deleted folder; then the change that frees the path comes first. A file that only moves along
    with its folder is not listed.
    """
    deleted = {deletion.path.text: _deletion(deletion, hash_of) for deletion in deletions}
    leaving = [
        NetChange(kind="rename", path=move.origin, new_path=move.path, folder=True)
        for move in moves
        if move.origin.text != move.path.text
    ]
    arriving = [NetChange(kind="mkdir", path=folder, folder=True) for folder in folders]
    for file in files:
        change = _file_change(file, moves, None if file.origin is None else hash_of(file.origin))
        if change is None:
            continue
        replaced = deleted.get(change.path.text)
        if change.kind == "create" and replaced is not None and not replaced.folder:
            del deleted[change.path.text]
            change = NetChange(
                kind="modify",
                path=change.path,
                before=replaced.path,
                content=change.content,
                before_hash=replaced.before_hash,
                writers=change.writers,
            )
        (leaving if change.kind == "rename" else arriving).append(change)
    changes = [*deleted.values(), *leaving, *arriving]
    return tuple(sorted(changes, key=lambda change: change.path.text))


def _deletion(deletion: Deletion, hash_of: Callable[[VaultPath], str | None]) -> NetChange:
    path, files = deletion.path, deletion.files
    if deletion.folder:
        return NetChange(kind="delete", path=path, folder=True, files=files)
    return NetChange(kind="delete", path=path, before=path, files=files, before_hash=hash_of(path))


def _file_change(
    file: MovedFile, moves: Sequence[FolderMove], before_hash: str | None
) -> NetChange | None:
    if file.origin is None:
        return NetChange(kind="create", path=file.path, content=file.content, writers=file.writers)
    if file.origin.text == file.path.text:
        if file.content is None:
            return None
        return NetChange(
            kind="modify",
            path=file.path,
            before=file.origin,
            content=file.content,
            before_hash=before_hash,
            writers=file.writers,
        )
    if file.content is None and _path_after_moves(file.origin, moves) == file.path.text:
        return None
    return NetChange(
        kind="rename",
        path=file.origin,
        new_path=file.path,
        before=file.origin,
        content=file.content,
        before_hash=before_hash,
        writers=file.writers,
    )


def _path_after_moves(origin: VaultPath, moves: Sequence[FolderMove]) -> str:
    """Return the path of a file after the moves of folders alone. The deepest folder decides."""
    deepest = max(
        (move for move in moves if origin.within(move.origin)),
        key=lambda move: len(move.origin.text),
        default=None,
    )
    if deepest is None:
        return origin.text
    return origin.rebased(deepest.origin, deepest.path).text
