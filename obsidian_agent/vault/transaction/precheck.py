"""What the disk says about actions that have not been carried out: is each one still possible, already done, or overtaken by somebody else?

A list of actions is judged as a whole before the first one touches the disk. So the survey keeps a map of what the disk would look like
after the actions assumed so far: where moved entries still lie, what is new, what is gone. The same survey serves the check before a run
(the actions themselves), undo, and the look at an interrupted run (their reverses, last one first).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from enum import Enum, auto
from typing import assert_never

from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import PathRefused, VaultError
from obsidian_agent.vault.filesystem.dirhandles import Content, FolderHandles
from obsidian_agent.vault.filesystem.store import io_error
from obsidian_agent.vault.paths.path import VaultPath, collision_key
from obsidian_agent.vault.transaction.actions import Action, MoveEntry, PutFile, PutFolder

Images = Callable[[str], bytes | None]
"""The bytes with a hash, or None where they are not known."""

_LISTED_AFTER = 8
_BLOCK = 512


class State(Enum):
    """How the disk stands to an action."""

    READY = auto()
    """It is as the action expects: it can be carried out."""
    DONE = auto()
    """It is as the action would leave it."""
    TORN = auto()
    """A file of ours whose bytes never reached the disk; the action can be carried out over it."""
    FOREIGN = auto()
    """Somebody else's content, or a place that cannot be reached without leaving the vault."""
    MISSING = auto()
    """The entry, or the folder it belongs into, is gone."""
    BLOCKED = auto()
    """The place where the entry belongs is taken."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The state of one action; `actual` is the hash of the content that is there (None: no file), `content` that content as read.

    `real` is where the file really is when the path is a link.
    """

    state: State
    reason: str = ""
    actual: str | None = None
    content: Content | None = None
    status: os.stat_result | None = None
    real: VaultPath | None = None

    @property
    def possible(self) -> bool:
        """Whether the action can be carried out as it is."""
        return self.state is State.READY or self.state is State.TORN


@dataclass(frozen=True, slots=True)
class _Spot:
    """An entry on the map: where it lies on the disk (None: it is not there yet), and its content where an action gave it one."""

    disk: VaultPath | None
    exists: bool = True
    hash: str | None = None


_GONE = _Spot(None, exists=False)
_NEW_FOLDER = _Spot(None)


class Survey:
    """Looks at actions in the order in which they would be carried out. Reads the disk, never writes it.

    `images` are those of an interrupted run, whose half-done moves are known for what they are. If the machine went down since, at
    `torn_before` (nanoseconds since the epoch), content last written before then that is a torn version of these images is told from
    foreign content; what was written later is somebody's, and so is everything when only the process ended.
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
        self._map: dict[str, _Spot] = {}
        self._structure = False
        self._asked: dict[str, int] = {}
        self._listed: dict[str, frozenset[str]] = {}

    # --- the map ---------------------------------------------------------------------------------------------------------------

    def assume(self, action: Action) -> None:
        """From here on the action counts as carried out."""
        match action:
            case PutFile(path, _, after):
                spot = self._spot(path)
                self._map[path.text] = (
                    _GONE
                    if after is None
                    else _Spot(spot.disk if spot.exists else None, hash=after)
                )
            case PutFolder(path, made):
                self._structure = True
                self._map[path.text] = _NEW_FOLDER if made else _GONE
            case MoveEntry():
                self._structure = True
                spot = self._spot(action.path)
                if action.folder:
                    self._carry_along(action.path, action.new_path)
                self._map[action.path.text] = _GONE
                self._map[action.new_path.text] = spot
            case _:
                assert_never(action)

    def _carry_along(self, old: VaultPath, new: VaultPath) -> None:
        # What was known of an earlier folder at the new place says nothing of this one.
        for text in [text for text in self._map if text.startswith(new.text + "/")]:
            del self._map[text]
        below = old.text + "/"
        for text in [text for text in self._map if text.startswith(below)]:
            self._map[f"{new.text}/{text[len(below) :]}"] = self._map.pop(text)

    def _spot(self, path: VaultPath) -> _Spot:
        known = self._map.get(path.text)
        if known is not None:
            return known
        if self._structure:
            folder = path.parent
            while not folder.is_root:
                above = self._map.get(folder.text)
                if above is not None:
                    return _GONE if above.disk is None else _Spot(path.rebased(folder, above.disk))
                folder = folder.parent
        return _Spot(path)

    # --- looking ---------------------------------------------------------------------------------------------------------------

    def check(self, action: Action) -> Finding:
        """How the disk stands to one action, all assumed actions taken as done."""
        try:
            match action:
                case PutFile():
                    return self._look_at_file(action)
                case PutFolder():
                    return self._look_at_folder(action)
                case MoveEntry():
                    return self._look_at_move(action)
                case _:
                    assert_never(action)
        except PathRefused as refusal:
            # A folder or note that somebody has moved elsewhere, with a link in its place.
            return Finding(State.FOREIGN, f"it cannot be reached: {refusal.message.rstrip('.')}")
        except VaultError as error:
            if isinstance(error.__cause__, PermissionError):
                return Finding(State.FOREIGN, "this user may not read it")
            raise

    def _look_at_file(self, action: PutFile) -> Finding:
        spot = self._spot(action.path)
        if spot.exists and spot.disk is None and spot.hash is None:
            return Finding(State.FOREIGN, "there is a folder in its place")
        if not spot.exists or spot.disk is None or spot.hash is not None:
            return self._judged(action, spot.hash, None)
        if action.before is None and self._free(spot.disk):
            return self._creatable(spot.disk)
        content, real = self._handles.read_through(spot.disk)
        if content is None:
            if self._handles.status(spot.disk) is not None:
                return Finding(
                    State.FOREIGN, "there is a folder, a link or a special file in its place"
                )
            return self._judged(action, None, None)
        return self._judged(action, content.hash, content, real)

    def _judged(
        self,
        action: PutFile,
        actual: str | None,
        content: Content | None,
        real: VaultPath | None = None,
    ) -> Finding:
        status = content.status if content else None
        if actual == action.before:
            return Finding(State.READY, "", actual, content, status, real)
        if actual == action.after:
            return Finding(State.DONE, "", actual, content, status, real)
        if actual is None:
            return Finding(State.MISSING, "it is gone")
        if content is not None and self._torn(content, action):
            return Finding(
                State.TORN, "only a part of it reached the disk", actual, content, status, real
            )
        reason = "there is a file now" if action.before is None else "its content has changed"
        return Finding(State.FOREIGN, reason, actual, content, status, real)

    def _torn(self, content: Content, action: PutFile) -> bool:
        return self._images is not None and is_torn_of(
            content, action, self._images, self._torn_before
        )

    def _creatable(self, path: VaultPath) -> Finding:
        """A free name: the file can be made if its folder is there."""
        if (
            path.parent.is_root
            or path.parent.text in self._listed
            or self._handles.status(path.parent) is not None
        ):
            return Finding(State.READY)
        return Finding(State.MISSING, "its folder is gone")

    def _free(self, path: VaultPath) -> bool:
        """Whether nothing has this name; a folder that is asked about often is listed once."""
        folder = path.parent
        names = self._listed.get(folder.text)
        if names is None:
            asked = self._asked[folder.text] = self._asked.get(folder.text, 0) + 1
            if asked <= _LISTED_AFTER:
                return self._handles.status(path) is None
            try:
                names = self._listed[folder.text] = frozenset(os.listdir(self._handles.get(folder)))
            except (VaultError, OSError):
                return self._handles.status(path) is None
        return path.name not in names

    def _look_at_folder(self, action: PutFolder) -> Finding:
        spot = self._spot(action.path)
        status = self._handles.status(spot.disk) if spot.exists and spot.disk is not None else None
        there = spot.exists and (spot.disk is None or status is not None)
        if status is not None and not stat.S_ISDIR(status.st_mode):
            return Finding(State.FOREIGN, "there is a file in the folder's place", status=status)
        if there != action.created:
            if (
                action.created
                and spot.exists
                and spot.disk is not None
                and self._creatable(spot.disk).state is State.MISSING
            ):
                return Finding(State.MISSING, "the folder above it is gone")
            return Finding(State.READY, status=status)
        return Finding(State.DONE, status=status)

    def _look_at_move(self, action: MoveEntry) -> Finding:
        source, target = self._spot(action.path), self._spot(action.new_path)
        if source.exists and source.disk is None:
            if source.hash is not None and source.hash != action.hash:
                return Finding(State.FOREIGN, "its content has changed", source.hash)
            if target.exists and (
                target.disk is None or self._handles.status(target.disk) is not None
            ):
                return Finding(
                    State.BLOCKED, f"its place {action.new_path.text} is taken", source.hash
                )
            return Finding(State.READY)
        here = self._entry(source, action)
        there = self._entry(target, action)
        if here.state is State.READY:
            if there.state is State.MISSING or self._same_entry(here, there, action):
                return here
            if action.inode is not None and _inode(there) == action.inode != _inode(here):
                return Finding(State.DONE, status=there.status)
            return Finding(
                State.BLOCKED,
                f"its place {action.new_path.text} is taken",
                here.actual,
                status=here.status,
            )
        if there.state is State.READY:
            return Finding(State.DONE, "", there.actual, status=there.status)
        return here

    def _same_entry(self, here: Finding, there: Finding, action: MoveEntry) -> bool:
        """Whether both names are one entry: another spelling on a disk that ignores case, or a link left by a move that was cut off."""
        if _inode(here) != _inode(there):
            return False
        if collision_key(action.path.text) != collision_key(action.new_path.text):
            return self._images is not None
        # Two spellings of a file with several names may be two of these names.
        links = there.status.st_nlink if there.status is not None and not action.folder else 1
        spot = self._spot(action.new_path)
        if links < 2 or spot.disk is None:
            return True
        try:
            return spot.disk.name not in os.listdir(self._handles.get(spot.disk.parent))
        except OSError as error:
            raise io_error(error, spot.disk) from error

    def _entry(self, spot: _Spot, action: MoveEntry) -> Finding:
        """Whether the entry at a spot is the one that the action moves: READY, FOREIGN or MISSING."""
        status = self._handles.status(spot.disk) if spot.exists and spot.disk is not None else None
        if status is None or spot.disk is None:
            return Finding(State.MISSING, "it is gone")
        if action.folder != stat.S_ISDIR(status.st_mode):
            return Finding(State.FOREIGN, "there is something else in its place", status=status)
        if action.hash is None:
            return Finding(State.READY, status=status)
        if spot.hash is not None:
            actual: str | None = spot.hash
        else:
            content, _ = self._handles.read_through(spot.disk)
            actual = content.hash if content else None
        if actual == action.hash:
            return Finding(State.READY, "", actual, status=status)
        return Finding(State.FOREIGN, "its content has changed", actual, status=status)


def is_torn_of(content: Content, action: PutFile, images: Images, torn_before: int | None) -> bool:
    """Whether a file, last written before the machine went down, holds what that left of the images of an action."""
    if torn_before is None or content.status.st_mtime_ns >= torn_before:
        return False
    known = (images(hash) for hash in (action.after, action.before) if hash is not None)
    return any(image is not None and is_torn(content.data, image) for image in known)


def is_torn(data: bytes, image: bytes) -> bool:
    """Whether `data` is what a power loss can leave of `image`: nothing, a beginning, or some blocks as zeros."""
    if len(data) > len(image):
        return False
    if image.startswith(data):
        return True
    starts = range(0, len(data), _BLOCK)
    blocks = ((data[at : at + _BLOCK], image[at : min(at + _BLOCK, len(data))]) for at in starts)
    return all(block == wanted or not block.strip(b"\0") for block, wanted in blocks)


def _inode(finding: Finding) -> tuple[int, int] | None:
    return (finding.status.st_dev, finding.status.st_ino) if finding.status else None
