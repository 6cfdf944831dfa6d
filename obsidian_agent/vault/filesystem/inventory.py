"""The inventory of a folder that is moved or trashed.

It records what a preview found in the folder, to be compared with the disk before the run. A big
folder is not read for that. If all files together have at most `HASHED_BYTES`, each is identified
by its hash, and only a change of content counts. In a bigger folder a file is identified by its
size, its modification time and its change time, which no program can set. Clocks are coarse, so a
file that was changed in the last moments is hashed as well, as Git does with its index. Files over
`HASHED_FILE` are never read. Protected names (`.git`, `.DS_Store`) are not previewed and therefore
not recorded. Of a link only the link itself is recorded, because its target is not moved.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from collections.abc import Iterable, Iterator
from functools import cached_property
from operator import attrgetter
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from obsidian_agent.vault.filesystem.dirhandles import FolderHandles, content_of
from obsidian_agent.vault.filesystem.store import ScanKind, VaultStore, kind_of
from obsidian_agent.vault.paths.path import VaultPath

HASHED_FILE: Final = 16 * 1024 * 1024
"""Larger files are identified by size and times: reading them would delay the preview."""

HASHED_BYTES: Final = 8 * 1024 * 1024
"""A folder whose files are larger in total is identified by sizes and times."""

_RECENT_NS: Final = 3_000_000_000
"""More than the coarsest clock of a file system in use: that of FAT ticks every two seconds."""

Listing = Iterable[tuple[VaultPath, Iterable[str]]]
"""Folders, each with names in it."""


class InventoryItem(Struct, frozen=True, kw_only=True):
    """An entry of an inventory."""

    name: str
    """The path below the folder."""
    kind: ScanKind
    link: bool = False
    size: int = 0
    times: tuple[int, int] | None = None
    """The modification time and the change time, in nanoseconds."""
    hash: str | None = None
    """The hash of the content of a file, or the target of a link.

    A file without times is identified by its hash alone. If it has both, both must be the same.
    """


class Inventory(Struct, frozen=True, dict=True):
    """Everything below a folder, sorted by name.

    If `path` is a file, the only item is that file, with the name "".
    """

    path: VaultPath
    items: tuple[InventoryItem, ...]

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the inventory.

        It excludes hashes of recently changed files in a big folder, so it is the same for every
        inventory of an unchanged folder.
        """
        facts = [
            [
                item.name,
                item.kind,
                item.link,
                item.size,
                item.times,
                None if item.times else item.hash,
            ]
            for item in self.items
        ]
        return hashlib.sha256(
            json.dumps(facts, ensure_ascii=False, separators=(",", ":")).encode(
                "utf-8", "surrogatepass"
            )
        ).hexdigest()


def inventory_of(store: VaultStore, path: VaultPath, listing: Listing) -> Inventory:
    """Return the inventory of `path`. Raises `VaultError` if a folder cannot be opened."""
    recent = time.time_ns() - _RECENT_NS
    with FolderHandles(store) as handles:
        entries = list(_entries(handles, path, listing))
        is_small = sum(item.size for *_, item in entries) <= HASHED_BYTES
        items: list[InventoryItem] = []
        for folder, name, item in entries:
            times = item.times
            if times is not None and item.size <= HASHED_FILE:
                if is_small:
                    hash = _hash(handles, folder, name)
                    item = replace(item, hash=hash, times=None if hash is not None else times)
                elif max(times) >= recent:
                    item = replace(item, hash=_hash(handles, folder, name))
            items.append(item)
    return Inventory(path, tuple(sorted(items, key=attrgetter("name"))))


def differences(
    store: VaultStore, before: Inventory, listing: Listing
) -> Iterator[tuple[str, str]]:
    """Yield the path of each changed entry and its change. Reads files that have a hash."""
    old = {item.name: item for item in before.items}
    with FolderHandles(store) as handles:
        for folder, name, item in _entries(handles, before.path, listing):
            previous = old.pop(item.name, None)
            if previous is None:
                yield _full_path(before.path, item.name), "is new"
            elif _differs(previous, item) or (
                not item.link
                and previous.hash is not None
                and previous.hash != _hash(handles, folder, name)
            ):
                yield _full_path(before.path, item.name), "has changed"
    for name in old:
        yield _full_path(before.path, name), "is gone"


def file_stamps(store: VaultStore) -> dict[str, tuple[int, ...]]:
    """Return size, times, inode and mode of every file and link of the vault, by path.

    Hidden files are included. Folders have an empty tuple. No file is read, and entries without
    access are skipped.
    """
    stamps: dict[str, tuple[int, ...]] = {}
    pending = [""]
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(os.path.join(store.real_path, folder)) as entries:
                for entry in entries:
                    status, path = entry.stat(follow_symlinks=False), f"{folder}{entry.name}"
                    if stat.S_ISDIR(status.st_mode):
                        pending.append(f"{path}/")
                        stamps[path] = ()
                    else:
                        stamps[path] = (
                            status.st_size,
                            status.st_mtime_ns,
                            status.st_ctime_ns,
                            status.st_ino,
                            status.st_mode,
                        )
        except OSError:
            continue
    return stamps


def _entries(
    handles: FolderHandles, path: VaultPath, listing: Listing
) -> Iterator[tuple[VaultPath, str, InventoryItem]]:
    """Yield the entries, without their content. Entries that are gone by now are skipped."""
    for folder, names in listing:
        for name in names:
            try:
                status = os.stat(name, dir_fd=handles.get(folder), follow_symlinks=False)
                target = None
                if stat.S_ISLNK(status.st_mode):
                    target = os.readlink(name, dir_fd=handles.get(folder))
            except OSError:
                continue
            below = _path_below(path, folder, name)
            if target is not None:
                item = InventoryItem(name=below, kind="other", link=True, hash=target)
            elif stat.S_ISREG(status.st_mode):
                times = (status.st_mtime_ns, status.st_ctime_ns)
                item = InventoryItem(name=below, kind="file", size=status.st_size, times=times)
            else:
                item = InventoryItem(name=below, kind=kind_of(status.st_mode))
            yield folder, name, item


def _path_below(path: VaultPath, folder: VaultPath, name: str) -> str:
    """Return the path of a name in `folder`, relative to `path`; "" for `path` itself."""
    if folder.text == path.text:
        return name
    if folder.within(path):
        return f"{folder.text[len(path.text) + 1 :]}/{name}"
    return ""


def _differs(old: InventoryItem, new: InventoryItem) -> bool:
    """Return True if an entry is known to be different without reading it."""
    if (old.kind, old.link, old.size) != (new.kind, new.link, new.size):
        return True
    if new.link:
        return old.hash != new.hash
    return old.times is not None and old.times != new.times


def _hash(handles: FolderHandles, folder: VaultPath, name: str) -> str | None:
    try:
        content = content_of(handles.get(folder), name)
    except OSError:
        return None
    return None if content is None else content.hash


def _full_path(path: VaultPath, name: str) -> str:
    return f"{path.text}/{name}" if name else path.text
