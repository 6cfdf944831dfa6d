"""Reversible operations: the executor applies them, the journal stores them, undo reverses them.

An `Action` describes the state of one path before and after. Runs, undo, redo and recovery all
apply actions, and the reverse of an action is an action.

To the system, a file that replaces another one is a new file, with its own times and none of the
other names (hard links). A run therefore records the metadata of the files that it replaces, and
undo restores it. The modification time can be set on every system. The birth time can be set on
macOS and FreeBSD, where setting an earlier modification time moves it along, but not on Linux.
Other names are restored by linking the file to one of them.

Sources: utimensat(2) of FreeBSD and Apple on birth times; inode(7).
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable
from typing import Final, assert_never

from msgspec import Struct
from msgspec.structs import replace

from obsidian_agent.vault.filesystem.store import OpenFiles, VaultStore
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.views.changes import MakeDir, Move, Operation, WriteFile

CAN_SET_BIRTH_TIME: Final = sys.platform == "darwin" or sys.platform.startswith("freebsd")
"""True if the system can give a file an earlier birth time."""

Siblings = dict[tuple[int, int], list[VaultPath]]
"""Paths of files that were one file with several names, by the (device, inode) it had."""


class FileMetadata(Struct, frozen=True):
    """The metadata of a file that undo restores. Times are in nanoseconds since the epoch."""

    modified_ns: int
    born_ns: int | None = None
    """The birth time; None if it could not be restored anyway."""
    inode: tuple[int, int] | None = None
    """The (device, inode) of a file with several names."""


def metadata_of(status: os.stat_result) -> FileMetadata:
    """Return the metadata of a file with this status."""
    born: float | None = getattr(status, "st_birthtime", None) if CAN_SET_BIRTH_TIME else None
    inode = (status.st_dev, status.st_ino) if status.st_nlink > 1 else None
    born_ns = None if born is None else int(born * 1_000_000_000)
    return FileMetadata(status.st_mtime_ns, born_ns, inode)


class PutFile(Struct, frozen=True):
    """The content of a file changes. `before` and `after` are hashes; None stands for no file."""

    path: VaultPath
    before: str | None
    after: str | None
    mode: int | None = None
    """The permission bits of a created or restored file; None stands for the default."""
    was: FileMetadata | None = None
    """The metadata of the replaced file, if known."""
    becomes: FileMetadata | None = None
    """The metadata that the file gets; None stands for that of a new file."""
    held: bool = False
    """True if the editor has the file open and changes it."""


class PutFolder(Struct, frozen=True):
    """A folder is created, or removed if it is empty."""

    path: VaultPath
    created: bool


class MoveEntry(Struct, frozen=True, kw_only=True):
    """A file or folder moves to `new_path`, which is free."""

    path: VaultPath
    new_path: VaultPath
    folder: bool
    hash: str | None = None
    """The hash of a file whose content the preview read."""
    inode: tuple[int, int] | None = None
    """The (device, inode) of the entry, if known."""


Action = PutFile | PutFolder | MoveEntry


def siblings_among(actions: Iterable[Action]) -> Siblings:
    """Return the paths of restored files that were one file with several names."""
    siblings: Siblings = {}
    for action in actions:
        if isinstance(action, PutFile) and (old := action.becomes) and old.inode is not None:
            siblings.setdefault(old.inode, []).append(action.path)
    return {inode: paths for inode, paths in siblings.items() if len(paths) > 1}


def action_of(operation: Operation) -> Action:
    """Return the action for an operation of a change set."""
    match operation:
        case MakeDir(path):
            return PutFolder(path, created=True)
        case Move():
            return MoveEntry(
                path=operation.path,
                new_path=operation.new_path,
                folder=operation.folder,
                hash=operation.before_hash,
            )
        case WriteFile():
            return PutFile(operation.path, operation.before_hash, operation.after_hash)
        case _:
            assert_never(operation)


def save_open_files(
    store: VaultStore, actions: Iterable[Action], *, require_answer: bool = False
) -> OpenFiles | None:
    """Have the editor save unsaved text of the files that the actions change.

    Raises the same errors as `Editor.save`.
    """
    if store.editor is None:
        return None
    paths: set[str] = set()
    for action in actions:
        paths.add(action.path.text)
        if isinstance(action, MoveEntry):
            paths.add(action.new_path.text)
    return store.editor.save(paths, require_answer=require_answer)


def mark_held(open_files: OpenFiles | None, action: Action) -> Action:
    """Return the action with `held` set if the editor has its file open and can change it."""
    if not isinstance(action, PutFile):
        return action
    held = (
        open_files is not None
        and None not in (action.before, action.after)
        and open_files.is_open(action.path.text)
    )
    return action if held == action.held else replace(action, held=held)


def is_same_link(action: MoveEntry, status: os.stat_result | None) -> bool:
    """Return True if `status` is that of a symbolic link, the entry that the action moves.

    A link cannot be changed. The file that it leads to is another entry, which the same run may
    change or move, so its content does not matter.
    """
    return (
        status is not None
        and stat.S_ISLNK(status.st_mode)
        and action.inode == (status.st_dev, status.st_ino)
    )


def after_move(action: Action, move: MoveEntry) -> Action:
    """Return the action with the paths that its entries have after a move."""
    path = rebased(action.path, move.path, move.new_path)
    if isinstance(action, MoveEntry):
        new_path = rebased(action.new_path, move.path, move.new_path)
        return replace(action, path=path, new_path=new_path)
    return replace(action, path=path)


def rebased(path: VaultPath, old: VaultPath, new: VaultPath) -> VaultPath:
    """Return a path after `old`, a file or folder, became `new`."""
    return path.rebased(old, new) if path == old or path.within(old) else path


def reverse(action: Action) -> Action:
    """Return the action that reverses this one."""
    match action:
        case PutFile():
            return PutFile(
                action.path,
                before=action.after,
                after=action.before,
                mode=action.mode,
                was=action.becomes,
                becomes=action.was,
                held=action.held,
            )
        case PutFolder():
            return PutFolder(action.path, not action.created)
        case MoveEntry():
            return replace(action, path=action.new_path, new_path=action.path)
        case _:
            assert_never(action)
