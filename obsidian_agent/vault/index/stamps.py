"""Every file of a vault with what tells whether it changed: one pass over the folders, one `stat` a file.

`DiskView.walk` makes an entry and a judged path of every name and sorts them; this makes neither of a plain name, because the index looks at
the whole vault after each burst of events. A test holds the two to the same files.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import Final, NamedTuple

from obsidian_agent.errors import PathRefused, VaultError
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.paths.path import ROOT, VaultPath, from_disk, protected
from obsidian_agent.vault.paths.rules import PLAIN

_SIGNED: Final = (1 << 63) - 1
"""Inodes may use 64 bits and more; the columns of the index have one of them for the sign."""


class Stamp(NamedTuple):
    """What differs once a file has changed. Times in nanoseconds."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


def stamp_of(info: os.stat_result) -> Stamp:
    """The stamp of a file."""
    return Stamp(info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino & _SIGNED)


def walk_stamps(store: VaultStore, start: VaultPath = ROOT) -> Iterator[tuple[str, Stamp]]:
    """Path and stamp of every file below a folder, in no order: those that `DiskView.walk` shows.

    A folder that is gone or may not be read is left out, as there. VaultError when `start` cannot be listed.
    """
    pending = [start]
    while pending:
        folder = pending.pop()
        try:
            yield from _listed(store, folder, pending)
        except VaultError as error:
            if folder is start or not isinstance(error.__cause__, (PermissionError, FileNotFoundError)):
                raise


def _listed(store: VaultStore, folder: VaultPath, pending: list[VaultPath]) -> Iterator[tuple[str, Stamp]]:
    prefix = f"{folder.text}/" if folder.text else ""
    handle = store.open_folder(folder) if store.root_fd >= 0 else None
    try:
        where: int | str = os.path.join(store.real_path, *folder.parts) if handle is None else handle
        with os.scandir(where) as entries:
            for entry in entries:
                name = entry.name
                if not PLAIN.fullmatch(name) and not _allowed(folder, name):
                    continue
                try:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(from_disk(folder, name))
                    elif (found := _stamp(store, folder, entry, in_folder=handle is not None)) is not None:
                        yield prefix + name, found
                except FileNotFoundError:
                    # Gone between the listing and the look.
                    continue
    finally:
        if handle is not None:
            os.close(handle)


def _stamp(store: VaultStore, folder: VaultPath, entry: os.DirEntry[str], *, in_folder: bool) -> Stamp | None:
    if entry.is_file(follow_symlinks=False):
        # Listings of Windows know no inode; there a file is asked once more.
        info = entry.stat(follow_symlinks=False) if in_folder else os.stat(entry.path, follow_symlinks=False)
        return stamp_of(info)
    return stamp(store, from_disk(folder, entry.name)) if entry.is_symlink() else None


def _allowed(folder: VaultPath, name: str) -> bool:
    if protected(name):
        return False
    try:
        from_disk(folder, name)
    except PathRefused:
        return False
    return True


def stamp(store: VaultStore, path: VaultPath) -> Stamp | None:
    """The stamp of one file, through links that stay in the vault; None when there is none."""
    try:
        found = store.stat(path)
    except VaultError:
        return None
    if found is None or not stat.S_ISREG(found[0].st_mode):
        return None
    return stamp_of(found[0])
