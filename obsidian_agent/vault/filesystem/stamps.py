"""What a file is besides its content: when it was changed and made, and whether it has other names. Taken before a run, given back by undo.

A file that is replaced becomes another file to the system, with times of its own and none of the other names. The time of the last change
can be set everywhere. The time of its making can be set where setting an earlier time of change moves it along (macOS, FreeBSD), and not on
Linux. Other names come back by linking the file again to one of them.

Sources: utimensat(2) of FreeBSD and Apple on birth times; inode(7).
"""

from __future__ import annotations

import os
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from obsidian_agent.errors import PathRefused
from obsidian_agent.vault.filesystem.dirhandles import FolderHandles
from obsidian_agent.vault.paths.path import VaultPath, from_disk

SETS_BIRTH: Final = sys.platform == "darwin" or sys.platform.startswith("freebsd")
"""Whether the time when a file was made can be given to another file."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """Times in nanoseconds since the epoch; `born_ns` is None where it could not be set anyway.

    `inode` is the (device, inode) of a file that has other names too.
    """

    modified_ns: int
    born_ns: int | None = None
    inode: tuple[int, int] | None = None


def stamp_of(status: os.stat_result) -> Stamp:
    """The stamp of a file with this status."""
    born: float | None = getattr(status, "st_birthtime", None) if SETS_BIRTH else None
    inode = (status.st_dev, status.st_ino) if status.st_nlink > 1 else None
    return Stamp(status.st_mtime_ns, None if born is None else int(born * 1_000_000_000), inode)


def set_times(fd: int, stamp: Stamp) -> None:
    """Give a file the times of a stamp, as far as the system lets it."""
    now = time.time_ns()
    if stamp.born_ns is not None:
        os.utime(fd, ns=(now, stamp.born_ns))
    os.utime(fd, ns=(now, stamp.modified_ns))


class OtherNames:
    """Where in the vault a file has its other names. The vault is looked through when that is asked, and again after `forget`."""

    def __init__(self, handles: FolderHandles) -> None:
        self._handles = handles
        self._found: Mapping[int, Sequence[VaultPath]] | None = None

    def forget(self) -> None:
        """Names have changed since."""
        self._found = None

    def of(self, inode: tuple[int, int]) -> VaultPath | None:
        """A name of the file with this (device, inode), or None when it has none in the vault. VaultError when the disk fails."""
        if self._found is None:
            found = defaultdict[int, list[VaultPath]](list)
            for folder, entry in self._handles.entries():
                if entry.is_file(follow_symlinks=False) and not entry.name.startswith("."):
                    with suppress(PathRefused):
                        found[entry.inode()].append(from_disk(folder, entry.name))
            self._found = found
        for path in self._found.get(inode[1], ()):
            status = self._handles.status(path)
            if status is not None and (status.st_dev, status.st_ino) == inode:
                return path
        return None
