"""What goes along when a folder is moved or trashed: what a preview saw in it, to be compared with the disk before anything happens.

Looking at a big folder must not mean reading it. Where all files together hold at most `HASHED_BYTES`, each is known by its hash, and
only a change of content counts. In a bigger folder a file is known by its size, its modification time and its change time, which no
program can set; as clocks tick coarsely, one that was touched within the last moments is hashed besides, as Git does with its index.
Files over `HASHED_FILE` are never read. Protected names (`.git`, `.DS_Store`) are not shown, so they are not bound either; what lies
behind a link stays where it is, so only the link is.
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

from obsidian_agent.dataclass import dataclass, replace
from obsidian_agent.vault.filesystem.dirhandles import FolderHandles, content_of
from obsidian_agent.vault.filesystem.store import ScanKind, VaultStore, kind_of
from obsidian_agent.vault.paths.path import VaultPath

HASHED_FILE: Final = 16 * 1024 * 1024
"""Larger files are known by size and times: reading them would make the preview wait."""

HASHED_BYTES: Final = 8 * 1024 * 1024
"""A folder with more than this in its files is known by sizes and times."""

_RECENT_NS: Final = 3_000_000_000
"""The coarsest clock of a file system in use (FAT) ticks every two seconds."""


@dataclass(frozen=True, slots=True)
class InventoryItem:
    """An entry, by its name below the folder. `times` are modification and change time in nanoseconds.

    `hash` is that of a file's content, or a link's target. A file without times is known by its hash alone; one with both must have both.
    """

    name: str
    kind: ScanKind
    link: bool = False
    size: int = 0
    times: tuple[int, int] | None = None
    hash: str | None = None


@dataclass(frozen=True)
class Inventory:
    """Everything below the folder at `path`, sorted by name; for a file at `path` that file, under the name ""."""

    path: VaultPath
    items: tuple[InventoryItem, ...]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what it says; the hashes that only coarse clocks ask for do not count, so it stays the same while nothing changes."""
        facts = [
            [i.name, i.kind, i.link, i.size, i.times, None if i.times else i.hash]
            for i in self.items
        ]
        return hashlib.sha256(
            json.dumps(facts, ensure_ascii=False, separators=(",", ":")).encode(
                "utf-8", "surrogatepass"
            )
        ).hexdigest()


Listed = Iterable[tuple[VaultPath, Iterable[str]]]
"""Folders, each with names in it."""


def inventory_of(store: VaultStore, path: VaultPath, listed: Listed) -> Inventory:
    """The inventory of what is at `path`, which is `listed`. VaultError where a folder cannot be opened."""
    recent = time.time_ns() - _RECENT_NS
    with FolderHandles(store) as handles:
        found = list(_entries(handles, path, listed))
        small = sum(item.size for *_, item in found) <= HASHED_BYTES
        items = [_known(handles, folder, name, item, small, recent) for folder, name, item in found]
    return Inventory(path, tuple(sorted(items, key=attrgetter("name"))))


def differences(store: VaultStore, before: Inventory, listed: Listed) -> Iterator[tuple[str, str]]:
    """What is not as it was, as the path of an entry and what became of it. Reads the files that are known by their hash."""
    old = {item.name: item for item in before.items}
    with FolderHandles(store) as handles:
        for folder, name, item in _entries(handles, before.path, listed):
            known = old.pop(item.name, None)
            if known is None:
                yield _full(before.path, item.name), "is new"
            elif _differs(known, item) or (
                not item.link
                and known.hash is not None
                and known.hash != _hash(handles, folder, name)
            ):
                yield _full(before.path, item.name), "has changed"
    for name in old:
        yield _full(before.path, name), "is gone"


def file_stamps(store: VaultStore) -> dict[str, tuple[int, ...]]:
    """Every file, link and folder of the vault by its path, hidden ones too, with what tells that it is another one: size, times, inode, mode.

    Of a folder only that it is there. Nothing is read; what cannot be looked at is left out.
    """
    found: dict[str, tuple[int, ...]] = {}
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(os.path.join(store.real_path, folder)) as entries:
                for entry in entries:
                    status, path = entry.stat(follow_symlinks=False), f"{folder}{entry.name}"
                    if stat.S_ISDIR(status.st_mode):
                        waiting.append(f"{path}/")
                        found[path] = ()
                    else:
                        found[path] = (
                            status.st_size,
                            status.st_mtime_ns,
                            status.st_ctime_ns,
                            status.st_ino,
                            status.st_mode,
                        )
        except OSError:
            continue
    return found


def _entries(
    handles: FolderHandles, path: VaultPath, listed: Listed
) -> Iterator[tuple[VaultPath, str, InventoryItem]]:
    """The entries, not read yet. What is gone by now is left out."""
    for folder, names in listed:
        prefix = (
            ""
            if folder.text == path.text
            else f"{folder.text[len(path.text) + 1 :]}/"
            if folder.within(path)
            else None
        )
        for name in names:
            try:
                status = os.stat(name, dir_fd=handles.get(folder), follow_symlinks=False)
                target = (
                    os.readlink(name, dir_fd=handles.get(folder))
                    if stat.S_ISLNK(status.st_mode)
                    else None
                )
            except OSError:
                continue
            below = "" if prefix is None else prefix + name
            if target is not None:
                yield folder, name, InventoryItem(below, "other", link=True, hash=target)
            elif stat.S_ISREG(status.st_mode):
                yield (
                    folder,
                    name,
                    InventoryItem(
                        below,
                        "file",
                        size=status.st_size,
                        times=(status.st_mtime_ns, status.st_ctime_ns),
                    ),
                )
            else:
                yield folder, name, InventoryItem(below, kind_of(status.st_mode))


def _known(
    handles: FolderHandles,
    folder: VaultPath,
    name: str,
    item: InventoryItem,
    small: bool,
    recent: int,
) -> InventoryItem:
    """The item with what it is to be known by."""
    if item.times is None or item.size > HASHED_FILE or not (small or max(item.times) >= recent):
        return item
    found = _hash(handles, folder, name)
    return replace(item, hash=found, times=None if small and found is not None else item.times)


def _differs(old: InventoryItem, new: InventoryItem) -> bool:
    """Whether an entry is another one, as far as that is known without reading a file."""
    if (old.kind, old.link, old.size) != (new.kind, new.link, new.size):
        return True
    return old.hash != new.hash if new.link else old.times is not None and old.times != new.times


def _hash(handles: FolderHandles, folder: VaultPath, name: str) -> str | None:
    try:
        content = content_of(handles.get(folder), name)
    except OSError:
        return None
    return None if content is None else content.hash


def _full(path: VaultPath, name: str) -> str:
    return f"{path.text}/{name}" if name else path.text
