"""File stamps: size, times and inode, which show whether a file changed since it was scanned.

`walk_stamps` makes one pass over the folders with one `stat` per file. `DiskView.walk` creates a
checked path and an entry for every name, and sorts them. This walk does neither for plain names,
because the index compares the whole vault after each burst of file events. A test ensures that both
list the same files.
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

STABLE_NS: Final = 2_000_000_000
"""Minimum age of the last change of a stable file: the clock of the coarsest file system."""

_SIGNED_MASK: Final = (1 << 63) - 1
"""Inodes may use 64 bits or more; the columns of the index are signed."""


class FileStamp(NamedTuple):
    """Values of a file that differ after a change. Times are in nanoseconds."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


UNSTABLE: Final = FileStamp(-1, 0, 0, 0)
"""Stamp of a file that may have been changing when it was read. It matches no real stamp."""


def stamp_of(info: os.stat_result) -> FileStamp:
    """Return the stamp in the result of a `stat`."""
    return FileStamp(info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino & _SIGNED_MASK)


def is_stable(stamp: FileStamp, now_ns: int) -> bool:
    """Return whether any later change will alter the stamp, however coarse the file's times are."""
    return max(stamp.mtime_ns, stamp.ctime_ns) < now_ns - STABLE_NS


def read_stamp(store: VaultStore, path: VaultPath) -> FileStamp | None:
    """Return the stamp of a file, or None if there is no such file.

    Links that stay in the vault are followed.
    """
    try:
        status = store.stat(path)
    except VaultError:
        return None
    if status is None or not stat.S_ISREG(status[0].st_mode):
        return None
    return stamp_of(status[0])


def walk_stamps(store: VaultStore, start: VaultPath = ROOT) -> Iterator[tuple[str, FileStamp]]:
    """Yield path and stamp of every file that `DiskView.walk` lists below a folder, unsorted.

    Folders that disappear or may not be read are skipped. Raise VaultError if `start` cannot be
    listed.
    """
    pending = [start]
    while pending:
        folder = pending.pop()
        try:
            yield from _list_folder(store, folder, pending)
        except VaultError as error:
            if folder is start or not isinstance(
                error.__cause__, (PermissionError, FileNotFoundError)
            ):
                raise


def _list_folder(
    store: VaultStore, folder: VaultPath, pending: list[VaultPath]
) -> Iterator[tuple[str, FileStamp]]:
    """Yield the files of one folder, and add its folders to `pending`."""
    prefix = f"{folder.text}/" if folder.text else ""
    handle = store.open_folder(folder) if store.root_fd >= 0 else None
    try:
        location: int | str = (
            os.path.join(store.real_path, *folder.parts) if handle is None else handle
        )
        with os.scandir(location) as entries:
            for entry in entries:
                name = entry.name
                if not PLAIN.fullmatch(name) and not _is_allowed(folder, name):
                    continue
                try:
                    if entry.is_file(follow_symlinks=False):
                        # Listings of Windows have no inode, so the file needs a `stat` of its own.
                        info = (
                            os.stat(entry.path, follow_symlinks=False)
                            if handle is None
                            else entry.stat(follow_symlinks=False)
                        )
                        yield prefix + name, stamp_of(info)
                    elif entry.is_dir(follow_symlinks=False):
                        pending.append(from_disk(folder, name))
                    elif (
                        entry.is_symlink()
                        and (stamp := read_stamp(store, from_disk(folder, name))) is not None
                    ):
                        yield prefix + name, stamp
                except FileNotFoundError:
                    # Deleted after it was listed.
                    continue
    finally:
        if handle is not None:
            os.close(handle)


def _is_allowed(folder: VaultPath, name: str) -> bool:
    if protected(name):
        return False
    try:
        from_disk(folder, name)
    except PathRefused:
        return False
    return True
