"""Operations in a form that can be turned around: what the executor carries out, the journal remembers, and undo reverses.

An `Action` says what one place of the vault is before and after. Forward runs, undo, redo and recovery all carry out actions; the
reverse of an action is an action.

A file that is replaced becomes another file to the system, with times of its own and none of the other names; what it was besides its content
is its stamp, taken before a run and given back by undo. The time of the last change can be set everywhere. The time of its making can be set
where setting an earlier time of change moves it along (macOS, FreeBSD), and not on Linux. Other names come back by linking the file again to
one of them.

Sources: utimensat(2) of FreeBSD and Apple on birth times; inode(7).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Final, assert_never

from obsidian_agent.dataclass import dataclass, replace
from obsidian_agent.vault.filesystem.store import OpenFiles, VaultStore
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.views.changes import MakeDir, Move, Operation, WriteFile

SETS_BIRTH: Final = sys.platform == "darwin" or sys.platform.startswith("freebsd")
"""Whether the time when a file was made can be given to another file."""


@dataclass(frozen=True, slots=True)
class FileMetadata:
    """Times in nanoseconds since the epoch; `born_ns` is None where it could not be set anyway.

    `inode` is the (device, inode) of a file that has other names too.
    """

    modified_ns: int
    born_ns: int | None = None
    inode: tuple[int, int] | None = None


def metadata_of(status: os.stat_result) -> FileMetadata:
    """The stamp of a file with this status."""
    born: float | None = getattr(status, "st_birthtime", None) if SETS_BIRTH else None
    inode = (status.st_dev, status.st_ino) if status.st_nlink > 1 else None
    return FileMetadata(
        status.st_mtime_ns, None if born is None else int(born * 1_000_000_000), inode
    )


@dataclass(frozen=True, slots=True)
class PutFile:
    """The content of a file goes from hash `before` to hash `after`; None stands for "no file".

    `mode` holds the permission bits of a file that comes (back) into being; None gives it the usual ones. `was` is the stamp of the file
    that is replaced, where known, and `becomes` the one that the new file gets (None: that of a file just written).
    """

    path: VaultPath
    before: str | None
    after: str | None
    mode: int | None = None
    was: FileMetadata | None = None
    becomes: FileMetadata | None = None
    held: bool = False


@dataclass(frozen=True, slots=True)
class PutFolder:
    """A folder comes into being (`created`), or goes if it is empty."""

    path: VaultPath
    created: bool


@dataclass(frozen=True, slots=True)
class MoveEntry:
    """A file or folder goes from `path` to `new_path`, which is free.

    `hash` is the content hash of a file whose content was looked at, `inode` the (device, inode) of the entry where known.
    """

    path: VaultPath
    new_path: VaultPath
    folder: bool
    hash: str | None = None
    inode: tuple[int, int] | None = None


Action = PutFile | PutFolder | MoveEntry

Siblings = dict[tuple[int, int], list[VaultPath]]
"""Paths of files that were one file, by the (device, inode) it had."""


def siblings_among(actions: Iterable[Action]) -> Siblings:
    """Return the paths of the files that these actions write back, where several of them were one file."""
    siblings: Siblings = {}
    for action in actions:
        if isinstance(action, PutFile) and (stamp := action.becomes) and stamp.inode is not None:
            siblings.setdefault(stamp.inode, []).append(action.path)
    return {inode: paths for inode, paths in siblings.items() if len(paths) > 1}


def action_of(operation: Operation) -> Action:
    """The action that an operation of a change set asks for."""
    match operation:
        case MakeDir(path):
            return PutFolder(path, created=True)
        case Move():
            return MoveEntry(
                operation.path, operation.new_path, operation.folder, operation.before_hash
            )
        case WriteFile():
            return PutFile(operation.path, operation.before_hash, operation.after_hash)
        case _:
            assert_never(operation)


def save_open_files(
    store: VaultStore, actions: Iterable[Action], *, require_answer: bool = False
) -> OpenFiles | None:
    """Have an editor beside this program write to the disk what is typed in files that these actions are about. Errors as `Editor.save`."""
    if store.editor is None:
        return None
    paths = {
        path.text
        for action in actions
        for path in (
            (action.path, action.new_path) if isinstance(action, MoveEntry) else (action.path,)
        )
    }
    return store.editor.save(paths, require_answer=require_answer)


def mark_held(editing: OpenFiles | None, action: Action) -> Action:
    """The action with whether an editor has its file open, and is to change it."""
    if not isinstance(action, PutFile):
        return action
    held = (
        editing is not None
        and None not in (action.before, action.after)
        and editing.is_open(action.path.text)
    )
    return action if held == action.held else replace(action, held=held)


def after_move(action: Action, move: MoveEntry) -> Action:
    """The action at the place where its entry is after a move of that, or of a folder around it."""

    def after(path: VaultPath) -> VaultPath:
        return (
            path.rebased(move.path, move.new_path)
            if path == move.path or path.within(move.path)
            else path
        )

    if isinstance(action, MoveEntry):
        return replace(action, path=after(action.path), new_path=after(action.new_path))
    return replace(action, path=after(action.path))


def reverse(action: Action) -> Action:
    """The action that takes this one back."""
    match action:
        case PutFile():
            return PutFile(
                action.path,
                action.after,
                action.before,
                action.mode,
                action.becomes,
                action.was,
                action.held,
            )
        case PutFolder():
            return PutFolder(action.path, not action.created)
        case MoveEntry():
            return replace(action, path=action.new_path, new_path=action.path)
        case _:
            assert_never(action)
