"""A check of actions before they are applied: each is possible, done already, or not possible.

A list of actions is checked as a whole before the first one changes the disk. The survey therefore
keeps a map of the disk after the actions that it has assumed so far: the locations of moved
entries, new entries and removed ones. The same survey serves the check before a run (the actions
themselves), and undo and recovery (their reverses, starting with the last one).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from enum import Enum, auto
from typing import assert_never

from msgspec import Struct

from obsidian_agent.errors import PathRefused, VaultError
from obsidian_agent.vault.filesystem.dirhandles import Content, FolderHandles
from obsidian_agent.vault.filesystem.store import io_error
from obsidian_agent.vault.paths.path import VaultPath, collision_key
from obsidian_agent.vault.transaction.actions import (
    Action,
    MoveEntry,
    PutFile,
    PutFolder,
    is_same_link,
)

Images = Callable[[str], bytes | None]
"""A function that returns the bytes with a hash, or None if they are not stored."""

_LISTED_AFTER = 8
"""Names that are checked separately in a folder before it is listed."""
_BLOCK = 512
"""Bytes of the smallest unit that a disk writes."""


class State(Enum):
    """The state of the disk in relation to an action."""

    READY = auto()
    """The disk is as the action expects: it can be applied."""
    DONE = auto()
    """The disk is as the action would leave it."""
    TORN = auto()
    """A run's file was only partly written before a power loss. The action can be applied to it."""
    FOREIGN = auto()
    """The content is from another program, or the path leads out of the vault."""
    MISSING = auto()
    """The entry, or the folder it belongs in, is gone."""
    BLOCKED = auto()
    """The target path is in use."""


class Finding(Struct, frozen=True):
    """The state of one action."""

    state: State
    reason: str = ""
    actual: str | None = None
    """The hash of the current content; None stands for no file."""
    content: Content | None = None
    """The current content, if it was read."""
    status: os.stat_result | None = None
    real: VaultPath | None = None
    """The path of the file itself if the action's path is a link."""

    @property
    def possible(self) -> bool:
        """True if the action can be applied."""
        return self.state is State.READY or self.state is State.TORN


class _MappedEntry(Struct, frozen=True):
    """An entry of the map."""

    disk: VaultPath | None
    """The current path on the disk; None if the entry does not exist yet."""
    exists: bool = True
    hash: str | None = None
    """The hash of the content that an assumed action wrote."""


_GONE = _MappedEntry(None, exists=False)
_NEW_FOLDER = _MappedEntry(None)


class Survey:
    """A check of actions in the order in which they would be applied. It never writes to the disk.

    `images` are those of an interrupted run, whose half-finished moves are then recognized.
    `torn_before` is the time (in nanoseconds since the epoch) of a restart of the machine since
    that run: a file last written before it may be a torn version of these images. A file written
    later, or any file if only the process ended, is foreign.
    """

    def __init__(
        self,
        handles: FolderHandles,
        images: Images | None = None,
        *,
        torn_before: int | None = None,
    ) -> None:
        self._handles = handles
        self._images = images
        self._torn_before = torn_before
        self._map: dict[str, _MappedEntry] = {}
        self._paths_changed = False
        """True if an assumed action moves an entry, or creates or removes a folder."""
        self._checks: dict[str, int] = {}
        """The number of names checked in each folder."""
        self._listed: dict[str, frozenset[str]] = {}

    def assume(self, action: Action) -> None:
        """Treat the action as applied from now on."""
        match action:
            case PutFile(path, _, after):
                if after is None:
                    self._map[path.text] = _GONE
                else:
                    entry = self._locate(path)
                    disk = entry.disk if entry.exists else None
                    self._map[path.text] = _MappedEntry(disk, hash=after)
            case PutFolder(path, created):
                self._paths_changed = True
                self._map[path.text] = _NEW_FOLDER if created else _GONE
            case MoveEntry():
                self._paths_changed = True
                entry = self._locate(action.path)
                if action.folder:
                    self._move_below(action.path, action.new_path)
                self._map[action.path.text] = _GONE
                self._map[action.new_path.text] = entry
            case _:
                assert_never(action)

    def _move_below(self, old: VaultPath, new: VaultPath) -> None:
        # Entries of an earlier folder at the new path do not belong to this one.
        for text in [text for text in self._map if text.startswith(new.text + "/")]:
            del self._map[text]
        below = old.text + "/"
        for text in [text for text in self._map if text.startswith(below)]:
            self._map[f"{new.text}/{text[len(below) :]}"] = self._map.pop(text)

    def _locate(self, path: VaultPath) -> _MappedEntry:
        mapped = self._map.get(path.text)
        if mapped is not None:
            return mapped
        if self._paths_changed:
            folder = path.parent
            while not folder.is_root:
                above = self._map.get(folder.text)
                if above is not None:
                    if above.disk is None:
                        return _GONE
                    return _MappedEntry(path.rebased(folder, above.disk))
                folder = folder.parent
        return _MappedEntry(path)

    def check(self, action: Action) -> Finding:
        """Return the state of an action, with all assumed actions applied."""
        try:
            match action:
                case PutFile():
                    return self._check_file(action)
                case PutFolder():
                    return self._check_folder(action)
                case MoveEntry():
                    return self._check_move(action)
                case _:
                    assert_never(action)
        except PathRefused as refusal:
            # Another program moved a folder or note and left a link in its place.
            return Finding(State.FOREIGN, f"it cannot be reached: {refusal.message.rstrip('.')}")
        except VaultError as error:
            if isinstance(error.__cause__, PermissionError):
                return Finding(State.FOREIGN, "this user may not read it")
            raise

    def _check_file(self, action: PutFile) -> Finding:
        entry = self._locate(action.path)
        if entry.exists and entry.disk is None and entry.hash is None:
            return Finding(State.FOREIGN, "there is a folder in its place")
        if not entry.exists or entry.disk is None or entry.hash is not None:
            return self._compare(action, entry.hash, None)
        if action.before is None and self._is_free(entry.disk):
            return self._check_parent(entry.disk)
        content, real = self._handles.read_through(entry.disk)
        if content is None:
            if self._handles.status(entry.disk) is not None:
                return Finding(
                    State.FOREIGN, "there is a folder, a link or a special file in its place"
                )
            return self._compare(action, None, None)
        return self._compare(action, content.hash, content, real)

    def _compare(
        self,
        action: PutFile,
        actual: str | None,
        content: Content | None,
        real: VaultPath | None = None,
    ) -> Finding:
        reason = ""
        if actual == action.before:
            state = State.READY
        elif actual == action.after:
            state = State.DONE
        elif actual is None:
            return Finding(State.MISSING, "it is gone")
        elif content is not None and self._is_torn(content, action):
            state, reason = State.TORN, "only a part of it reached the disk"
        else:
            state = State.FOREIGN
            reason = "there is a file now" if action.before is None else "its content has changed"
        status = content.status if content else None
        return Finding(state, reason, actual=actual, content=content, status=status, real=real)

    def _is_torn(self, content: Content, action: PutFile) -> bool:
        return self._images is not None and is_torn_of(
            content, action, self._images, self._torn_before
        )

    def _check_parent(self, path: VaultPath) -> Finding:
        """Check that a file with a free name can be created: its folder must exist."""
        if (
            path.parent.is_root
            or path.parent.text in self._listed
            or self._handles.status(path.parent) is not None
        ):
            return Finding(State.READY)
        return Finding(State.MISSING, "its folder is gone")

    def _is_free(self, path: VaultPath) -> bool:
        """Return True if no entry has this name. After several names the folder is listed."""
        folder = path.parent
        names = self._listed.get(folder.text)
        if names is None:
            checks = self._checks[folder.text] = self._checks.get(folder.text, 0) + 1
            if checks <= _LISTED_AFTER:
                return self._handles.status(path) is None
            try:
                names = self._listed[folder.text] = frozenset(os.listdir(self._handles.get(folder)))
            except (VaultError, OSError):
                return self._handles.status(path) is None
        return path.name not in names

    def _check_folder(self, action: PutFolder) -> Finding:
        entry = self._locate(action.path)
        status = self._status(entry)
        exists = entry.exists and (entry.disk is None or status is not None)
        if status is not None and not stat.S_ISDIR(status.st_mode):
            return Finding(State.FOREIGN, "there is a file in the folder's place", status=status)
        if exists == action.created:
            return Finding(State.DONE, status=status)
        if action.created and entry.exists and entry.disk is not None:
            parent = self._check_parent(entry.disk)
            if parent.state is State.MISSING:
                return Finding(State.MISSING, "its parent folder is gone")
        return Finding(State.READY, status=status)

    def _check_move(self, action: MoveEntry) -> Finding:
        source, target = self._locate(action.path), self._locate(action.new_path)
        blocked = f"its target {action.new_path.text} is in use"
        if source.exists and source.disk is None:
            if source.hash is not None and source.hash != action.hash:
                return Finding(State.FOREIGN, "its content has changed", source.hash)
            if target.exists and (
                target.disk is None or self._handles.status(target.disk) is not None
            ):
                return Finding(State.BLOCKED, blocked, source.hash)
            return Finding(State.READY)
        old = self._check_moved(source, action)
        new = self._check_moved(target, action)
        if old.state is State.READY:
            if new.state is State.MISSING or self._is_same_entry(old, new, action):
                return old
            if action.inode is not None and _inode(new) == action.inode != _inode(old):
                return Finding(State.DONE, status=new.status)
            return Finding(State.BLOCKED, blocked, old.actual, status=old.status)
        if new.state is State.READY:
            return Finding(State.DONE, "", new.actual, status=new.status)
        return old

    def _is_same_entry(self, old: Finding, new: Finding, action: MoveEntry) -> bool:
        """Return True if both paths of a move are one entry.

        These are two spellings of a name on a case-insensitive disk, or the hard link of an
        interrupted move.
        """
        if _inode(old) != _inode(new):
            return False
        if collision_key(action.path.text) != collision_key(action.new_path.text):
            return self._images is not None
        # A file with several names may have both spellings as separate names.
        links = new.status.st_nlink if new.status is not None and not action.folder else 1
        entry = self._locate(action.new_path)
        if links < 2 or entry.disk is None:
            return True
        try:
            return entry.disk.name not in os.listdir(self._handles.get(entry.disk.parent))
        except OSError as error:
            raise io_error(error, entry.disk) from error

    def _check_moved(self, entry: _MappedEntry, action: MoveEntry) -> Finding:
        """Return READY if this is the entry that the action moves, else FOREIGN or MISSING."""
        status = self._status(entry)
        if status is None or entry.disk is None:
            return Finding(State.MISSING, "it is gone")
        if action.folder != stat.S_ISDIR(status.st_mode):
            return Finding(State.FOREIGN, "there is something else in its place", status=status)
        if action.hash is None or is_same_link(action, status):
            return Finding(State.READY, status=status)
        if entry.hash is not None:
            actual: str | None = entry.hash
        else:
            content, _ = self._handles.read_through(entry.disk)
            actual = content.hash if content else None
        if actual == action.hash:
            return Finding(State.READY, "", actual, status=status)
        return Finding(State.FOREIGN, "its content has changed", actual, status=status)

    def _status(self, entry: _MappedEntry) -> os.stat_result | None:
        if not entry.exists or entry.disk is None:
            return None
        return self._handles.status(entry.disk)


def is_torn_of(content: Content, action: PutFile, images: Images, torn_before: int | None) -> bool:
    """Return True if a file is a torn version of the content before or after an action.

    It must have been written last before `torn_before`, the restart of the machine.
    """
    if torn_before is None or content.status.st_mtime_ns >= torn_before:
        return False
    candidates = (images(hash) for hash in (action.after, action.before) if hash is not None)
    return any(image is not None and is_torn(content.data, image) for image in candidates)


def is_torn(data: bytes, image: bytes) -> bool:
    """Return True if a power loss can turn `image` into `data`: a beginning, or blocks of zeros."""
    if len(data) > len(image):
        return False
    if image.startswith(data):
        return True
    starts = range(0, len(data), _BLOCK)
    blocks = ((data[at : at + _BLOCK], image[at : min(at + _BLOCK, len(data))]) for at in starts)
    return all(block == expected or not block.strip(b"\0") for block, expected in blocks)


def _inode(finding: Finding) -> tuple[int, int] | None:
    return (finding.status.st_dev, finding.status.st_ino) if finding.status else None
