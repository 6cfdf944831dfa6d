"""The storage format of actions and file contents: compressed parts of a few hundred files.

A part is two blobs: its actions as JSON with the list of its images, and the concatenated images.
The before- and after-image of a file are neighbours, so the second one compresses to almost
nothing. Each part is self-contained, has a checksum, and stores equal contents once.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Final, assert_never

from msgspec import Struct

from obsidian_agent.errors import JournalError, PathRefused
from obsidian_agent.journal.records import StoredAction
from obsidian_agent.vault.paths import path as paths
from obsidian_agent.vault.paths.path import ROOT, VaultPath
from obsidian_agent.vault.transaction.actions import (
    Action,
    FileMetadata,
    MoveEntry,
    PutFile,
    PutFolder,
)

MAX_ACTIONS: Final = 512
MAX_BYTES: Final = 1 << 18
"""Uncompressed size of a part. Parts are compressed while the next files are read, so only the
last one, for which the run waits, has to be small."""
CACHED_BYTES: Final = 64 << 20
"""Bytes of unpacked contents that stay in memory while a record is read."""

_LEVEL: Final = 1


class Part(Struct, frozen=True):
    """A part as stored. `checksum` covers both compressed blobs."""

    actions: bytes
    images: bytes
    checksum: int


class PartBuilder:
    """A collector of actions and images for one part."""

    def __init__(self) -> None:
        self._rows: list[list[Any]] = []
        self._index: dict[str, int] = {}
        self._images: list[bytes] = []
        self.size = 0
        """Bytes of the contents added so far."""

    def add(self, action: Action, origin: int, images: Iterable[tuple[str, bytes]]) -> None:
        """Add an action with the contents that it refers to, each with its hash."""
        self._rows.append(_row(action, origin))
        for hash, data in images:
            if hash not in self._index:
                self._index[hash] = len(data)
                self._images.append(data)
                self.size += len(data)

    @property
    def is_full(self) -> bool:
        """True if the part should be packed."""
        return len(self._rows) >= MAX_ACTIONS or self.size >= MAX_BYTES

    @property
    def is_empty(self) -> bool:
        """True if nothing was added."""
        return not self._rows

    def pack(self) -> Part:
        """Compress the part. May run in another thread; the builder is unusable afterwards."""
        document = {"actions": self._rows, "images": list(self._index.items())}
        actions = zlib.compress(
            json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode(), _LEVEL
        )
        images = zlib.compress(b"".join(self._images), _LEVEL)
        return Part(actions, images, zlib.crc32(images, zlib.crc32(actions)))


class StoredPart:
    """The unpacked actions of a part. Raise JournalError if they are damaged."""

    def __init__(self, blob: bytes) -> None:
        try:
            document = json.loads(zlib.decompress(blob))
            self._rows: list[list[Any]] = document["actions"]
            self._images: list[tuple[str, int]] = document["images"]
        except (zlib.error, ValueError, KeyError, TypeError) as error:
            raise damaged() from error

    def actions(self, first: int) -> list[StoredAction]:
        """Return the actions, numbered from `first`."""
        try:
            return [
                StoredAction(number, row[0], _action(row))
                for number, row in enumerate(self._rows, first)
            ]
        except (ValueError, IndexError, TypeError, PathRefused) as error:
            raise damaged() from error

    def images(self) -> Iterator[tuple[str, int, int]]:
        """Yield hash, start and end of each content in the part's unpacked images."""
        end = 0
        for hash, size in self._images:
            yield hash, end, end + size
            end += size


def damaged() -> JournalError:
    """Return the error for a record that cannot be read."""
    return JournalError(
        "The journal's record of this run is damaged, so the run cannot be undone or recovered.",
        code="JOURNAL_DAMAGED",
        hint="Other runs are not affected. You can restore the journal folder from a backup.",
    )


class ImageSource:
    """The contents stored with some parts, by hash."""

    def __init__(self, load: Callable[[int], tuple[bytes, bytes, int] | None]) -> None:
        """Create a source without parts.

        `load` returns the actions, images and checksum of a part as stored, or None if its images
        were deleted.
        """
        self._load = load
        self._positions: dict[str, tuple[int, int, int]] = {}
        self._unpacked: dict[int, bytes | None] = {}

    def add(self, part: int, stored: StoredPart) -> None:
        """Add the contents of a part."""
        for hash, start, end in stored.images():
            self._positions[hash] = (part, start, end)

    def has(self, hash: str) -> bool:
        """Return True if the content is stored and the checksum of its part is right."""
        position = self._positions.get(hash)
        return position is not None and self._part(position[0]) is not None

    def find(self, hash: str) -> bytes | None:
        """Return the content with this hash, or None if it is not stored or is damaged."""
        position = self._positions.get(hash)
        if position is None:
            return None
        part, start, end = position
        images = self._part(part)
        if images is None:
            return None
        data = images[start:end]
        return data if hashlib.sha256(data).hexdigest() == hash else None

    def get(self, hash: str) -> bytes:
        """Return the content with this hash. Raise JournalError if it is not stored or damaged."""
        data = self.find(hash)
        if data is None:
            raise damaged()
        return data

    def for_action(self, action: Action) -> bytes:
        """Return the content that an action writes, b"" if it writes none.

        Raise JournalError as `get` does.
        """
        if isinstance(action, PutFile) and action.after is not None:
            return self.get(action.after)
        return b""

    def _part(self, part: int) -> bytes | None:
        if part not in self._unpacked:
            images = self._unpack(part)
            while self._unpacked and self._cached_bytes() + len(images or b"") > CACHED_BYTES:
                del self._unpacked[next(iter(self._unpacked))]
            self._unpacked[part] = images
        return self._unpacked[part]

    def _cached_bytes(self) -> int:
        return sum(len(images or b"") for images in self._unpacked.values())

    def _unpack(self, part: int) -> bytes | None:
        stored = self._load(part)
        if stored is None:
            return None
        actions, images, checksum = stored
        if zlib.crc32(images, zlib.crc32(actions)) != checksum:
            return None
        try:
            return zlib.decompress(images)
        except zlib.error:
            return None


def _row(action: Action, origin: int) -> list[Any]:
    match action:
        case PutFile():
            row = [origin, "file", action.path.text, action.before, action.after, action.mode]
            if action.was is action.becomes is None and not action.held:
                return row
            row += [_stamp_row(action.was), _stamp_row(action.becomes)]
            if action.held:
                row.append(True)
            return row
        case PutFolder():
            return [origin, "folder", action.path.text, action.created]
        case MoveEntry():
            return [
                origin,
                "move",
                action.path.text,
                action.new_path.text,
                action.folder,
                action.hash,
                action.inode,
            ]
        case _:
            assert_never(action)


def _action(row: list[Any]) -> Action:
    match row:
        case [int(), "file", str(path), before, after, mode]:
            return PutFile(stored_path(path), before, after, mode)
        case [int(), "file", str(path), before, after, mode, was, becomes, *held]:
            return PutFile(
                stored_path(path),
                before,
                after,
                mode,
                was=_stamp(was),
                becomes=_stamp(becomes),
                held=held == [True],
            )
        case [int(), "folder", str(path), bool(created)]:
            return PutFolder(stored_path(path), created)
        case [int(), "move", str(path), str(new_path), bool(folder), hash, inode]:
            return MoveEntry(
                path=stored_path(path),
                new_path=stored_path(new_path),
                folder=folder,
                hash=hash,
                inode=tuple(inode) if inode else None,
            )
        case _:
            raise ValueError("unknown action")


def _stamp_row(stamp: FileMetadata | None) -> list[Any] | None:
    return None if stamp is None else [stamp.modified_ns, stamp.born_ns, stamp.inode]


def _stamp(row: list[Any] | None) -> FileMetadata | None:
    if row is None:
        return None
    modified, born, inode = row
    return FileMetadata(modified, born, tuple(inode) if inode else None)


def stored_path(text: str) -> VaultPath:
    """Return the path with this stored text, validated like an entry on disk."""
    if text == paths.TRASH:
        return paths.trash_path()
    folder, slash, name = text.rpartition("/")
    if folder == paths.TRASH:
        return paths.trash_path(name)
    return paths.from_disk(_stored_folder(folder) if slash else ROOT, name)


_stored_folder = lru_cache(maxsize=4096)(stored_path)
