"""How actions and file contents are kept: in parts of a few hundred files, each compressed as one.

A part is two blobs: its actions as JSON with the list of its images, and the images one behind the other. Before- and after-image of a file
are neighbours, so the second costs next to nothing. A part is complete in itself, has a checksum, and equal contents in it are kept once.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, assert_never

from obsidian_agent.errors import JournalError, PathRefused
from obsidian_agent.journal.records import StoredAction
from obsidian_agent.vault import paths
from obsidian_agent.vault.actions import Action, MoveEntry, PutFile, PutFolder
from obsidian_agent.vault.paths import ROOT, VaultPath

MAX_ACTIONS: Final = 512
MAX_BYTES: Final = 1 << 20
_LEVEL: Final = 1


@dataclass(frozen=True, slots=True)
class Part:
    """A part as stored. `checksum` covers both blobs as they are."""

    actions: bytes
    images: bytes
    checksum: int


class PartBuilder:
    """Collects actions and images until they make a part."""

    def __init__(self) -> None:
        self._rows: list[list[Any]] = []
        self._index: dict[str, int] = {}
        self._images: list[bytes] = []
        self.size = 0
        """Bytes of the contents added so far."""

    def add(self, action: Action, origin: int, images: Iterable[tuple[str, bytes]]) -> None:
        """An action with the contents it is about, each with its hash."""
        self._rows.append([origin, *_row(action)])
        for hash, data in images:
            if hash not in self._index:
                self._index[hash] = len(data)
                self._images.append(data)
                self.size += len(data)

    @property
    def full(self) -> bool:
        """Whether it is time to pack."""
        return len(self._rows) >= MAX_ACTIONS or self.size >= MAX_BYTES

    @property
    def empty(self) -> bool:
        """Whether nothing was added."""
        return not self._rows

    def pack(self) -> Part:
        """The stored form. Safe to call in another thread; the builder is of no use afterwards."""
        document = {"actions": self._rows, "images": list(self._index.items())}
        actions = zlib.compress(json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode(), _LEVEL)
        images = zlib.compress(b"".join(self._images), _LEVEL)
        return Part(actions, images, zlib.crc32(images, zlib.crc32(actions)))


@dataclass(frozen=True, slots=True)
class PartIndex:
    """The actions of a part, and where each image lies in its unpacked images: hash to (start, end)."""

    actions: tuple[StoredAction, ...]
    images: dict[str, tuple[int, int]]


def read_actions(blob: bytes, first: int) -> PartIndex:
    """Unpack the actions of a part whose first action has number `first`. JournalError when it is damaged."""
    try:
        document = json.loads(zlib.decompress(blob))
        actions = tuple(StoredAction(first + at, row[0], _action(row[1:])) for at, row in enumerate(document["actions"]))
        images, end = dict[str, tuple[int, int]](), 0
        for hash, size in document["images"]:
            images[hash] = (end, end + size)
            end += size
    except (zlib.error, ValueError, KeyError, IndexError, TypeError, PathRefused) as error:
        raise damaged() from error
    return PartIndex(actions, images)


def damaged() -> JournalError:
    """The error for a record that cannot be read back."""
    return JournalError(
        "The journal is damaged at this run, so it cannot be undone or recovered.",
        code="JOURNAL_DAMAGED",
        hint="Other runs are not affected; a backup of the journal folder would help.",
    )


class ImageSource:
    """The contents kept with some parts, by hash; unpacked parts are kept for a moment only."""

    def __init__(self, where: dict[str, tuple[int, int, int]], load: Callable[[int], tuple[bytes, bytes, int]]) -> None:
        """`where`: hash to (part, start, end); `load`: part to (actions, images, checksum) as stored."""
        self._where = where
        self._load = load
        self._unpacked = lru_cache(maxsize=3)(self._unpack)

    def find(self, hash: str) -> bytes | None:
        """The content with this hash, or None when it is not kept here or is damaged."""
        place = self._where.get(hash)
        if place is None:
            return None
        part, start, end = place
        images = self._unpacked(part)
        data = images[start:end] if images is not None else None
        return data if data is not None and hashlib.sha256(data).hexdigest() == hash else None

    def get(self, hash: str) -> bytes:
        """The content with this hash. JournalError when it is not kept or damaged."""
        data = self.find(hash)
        if data is None:
            raise damaged()
        return data

    def _unpack(self, part: int) -> bytes | None:
        actions, images, checksum = self._load(part)
        if zlib.crc32(images, zlib.crc32(actions)) != checksum:
            return None
        try:
            return zlib.decompress(images)
        except zlib.error:
            return None


def _row(action: Action) -> list[Any]:
    match action:
        case PutFile(path, before, after, mode):
            return ["file", path.text, before, after, mode]
        case PutFolder(path, made):
            return ["folder", path.text, made]
        case MoveEntry(path, new_path, folder, hash, inode):
            return ["move", path.text, new_path.text, folder, hash, inode]
        case _:
            assert_never(action)


def _action(row: list[Any]) -> Action:
    match row:
        case ["file", str(path), before, after, mode]:
            return PutFile(stored_path(path), before, after, mode)
        case ["folder", str(path), bool(made)]:
            return PutFolder(stored_path(path), made)
        case ["move", str(path), str(new_path), bool(folder), hash, inode]:
            return MoveEntry(stored_path(path), stored_path(new_path), folder, hash, tuple(inode) if inode else None)
        case _:
            raise ValueError("no action of this journal")


def stored_path(text: str) -> VaultPath:
    """A path that was written down by its text, exactly; judged again as an entry on disk."""
    if text == paths.TRASH:
        return paths.trash_path()
    folder, slash, name = text.rpartition("/")
    if folder == paths.TRASH:
        return paths.trash_path(name)
    return paths.from_disk(_stored_folder(folder) if slash else ROOT, name)


_stored_folder = lru_cache(maxsize=4096)(stored_path)
