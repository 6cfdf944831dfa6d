"""Temporary files that an interrupted run has left in the vault: thrown away when they are ours, put back when they are somebody's.

Under a temporary name lies either what the run was writing, or what it had displaced. Its mode tells the first while it is not whole; and
as long as the note still is what the run expected, nothing was displaced.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from obsidian_agent.journal.records import Record, StoredAction
from obsidian_agent.vault.filesystem.dirhandles import Content, FolderHandles, content_of, io_error
from obsidian_agent.vault.filesystem.system_calls import exchange, rename_beside, rename_to_free
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.transaction.actions import MoveEntry, PutFile
from obsidian_agent.vault.transaction.apply import IN_WRITING
from obsidian_agent.vault.transaction.precheck import Images, is_torn_of


@dataclass(frozen=True, slots=True)
class Leftover:
    """A temporary entry: the folder it lies in, its name, and the action it was made for (None: not known)."""

    folder: VaultPath
    name: str
    action: PutFile | MoveEntry | None


def leftovers(handles: FolderHandles, record: Record, actions: Sequence[StoredAction]) -> Iterator[Leftover]:
    """Every temporary entry of a record, wherever in the vault its folder is by now."""
    pattern = re.compile(rf"\.{re.escape(record.token)}\.(\d+)\.[0-9a-f]+")
    for folder, entry in handles.entries():
        match = pattern.fullmatch(entry.name)
        if match is not None:
            number = int(match[1])
            action = actions[number].action if number < len(actions) else None
            yield Leftover(folder, entry.name, action if isinstance(action, PutFile | MoveEntry) else None)


def clear(handles: FolderHandles, leftover: Leftover, images: Images, torn_before: int | None = None) -> str | None:
    """Deal with one leftover. Answers what to tell people when it holds something that is not of the run.

    `torn_before`: as for a survey.
    """
    folder, name = handles.get(leftover.folder), leftover.name
    action = leftover.action
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if isinstance(action, MoveEntry):
            return _put_back(folder, name, leftover.folder, action.path.name)
        if action is None or not stat.S_ISREG(status.st_mode):
            return _keep_beside(folder, name, leftover.folder, action.path.name if action else "note.md")
        if stat.S_IMODE(status.st_mode) == IN_WRITING:
            os.unlink(name, dir_fd=folder)
            return None
        content = content_of(folder, name)
        if content is None:
            return None
        there = content_of(folder, action.path.name)
        if not _ours(content, there, action, images, torn_before):
            return _give_back(folder, leftover, there, action, images, torn_before)
        if there is None and content.hash == action.before and action.after is None:
            return _put_back(folder, name, leftover.folder, action.path.name)
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise io_error(error, leftover.folder) from error
    return None


def _ours(content: Content, there: Content | None, action: PutFile, images: Images, torn_before: int | None) -> bool:
    """Whether content under a temporary name is the run's own, with `there` at the place of the action."""
    if content.hash in (action.before, action.after) or is_torn_of(content, action, images, torn_before):
        return True
    displaced_nothing = action.before == (there.hash if there else None)
    image = images(action.after) if action.after is not None and displaced_nothing else None
    return image is not None and image.startswith(content.data)


def _give_back(
    folder: int, leftover: Leftover, there: Content | None, action: PutFile, images: Images, torn_before: int | None
) -> str | None:
    """Somebody else's content was displaced: it gets its place back if we hold it, else a visible name of its own."""
    target = action.path.name
    if there is not None and (there.hash == action.after or is_torn_of(there, action, images, torn_before)):
        if exchange(folder, leftover.name, target):
            os.unlink(leftover.name, dir_fd=folder)
        else:
            os.replace(leftover.name, target, src_dir_fd=folder, dst_dir_fd=folder)
        return None
    return _put_back(folder, leftover.name, leftover.folder, target)


def _put_back(folder: int, name: str, parent: VaultPath, target: str) -> str | None:
    try:
        rename_to_free(folder, name, folder, target)
    except FileExistsError:
        return _keep_beside(folder, name, parent, target)
    return None


def _keep_beside(folder: int, name: str, parent: VaultPath, target: str) -> str:
    beside = rename_beside(folder, name, target)
    return f"What was there before is now {parent.text + '/' if parent.text else ''}{beside}."
