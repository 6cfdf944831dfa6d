"""How actions and file contents are kept: in parts of a few hundred files, each compressed as one.

A part is two blobs: its actions as JSON with the list of its images, and the images one behind the other. Before- and after-image of a file
are neighbours, so the second costs next to nothing. A part is complete in itself, has a checksum, and equal contents in it are kept once.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Final, assert_never

from obsidian_agent.dataclass import dataclass
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
"""Of one part, before it is packed: parts are packed beside the look at the files, so the last one, which a run waits for, is small."""
CACHED_BYTES: Final = 64 << 20
"""Unpacked contents that are kept at hand while a record is read."""

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
        self._rows.append(_row(action, origin))
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
        actions = zlib.compress(
            json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode(), _LEVEL
        )
        images = zlib.compress(b"".join(self._images), _LEVEL)
        return Part(actions, images, zlib.crc32(images, zlib.crc32(actions)))


class StoredPart:
    """A part's actions, unpacked. JournalError when they are damaged."""

    def __init__(self, blob: bytes) -> None:
        try:
            document = json.loads(zlib.decompress(blob))
            self._rows: list[list[Any]] = document["actions"]
            self._images: list[tuple[str, int]] = document["images"]
        except (zlib.error, ValueError, KeyError, TypeError) as error:
            raise damaged() from error

    def actions(self, first: int) -> list[StoredAction]:
        """The actions, numbered from `first`."""
        try:
            return [
                StoredAction(number, row[0], _action(row))
                for number, row in enumerate(self._rows, first)
            ]
        except (ValueError, IndexError, TypeError, PathRefused) as error:
            raise damaged() from error

    def images(self) -> Iterator[tuple[str, int, int]]:
        """Hash, start and end of each content in the part's unpacked images."""
        end = 0
        for hash, size in self._images:
            yield hash, end, end + size
            end += size


def damaged() -> JournalError:
    """The error for a record that cannot be read back."""
    return JournalError(
        "The journal is damaged at this run, so it cannot be undone or recovered.",
        code="JOURNAL_DAMAGED",
        hint="Other runs are not affected; a backup of the journal folder would help.",
    )


class ImageSource:
    """The contents kept with some parts, by hash."""

    def __init__(self, load: Callable[[int], tuple[bytes, bytes, int] | None]) -> None:
        """`load`: the actions, images and checksum of a part as stored, None when its images are no longer kept."""
        self._load = load
        self._where: dict[str, tuple[int, int, int]] = {}
        self._unpacked: dict[int, bytes | None] = {}

    def add(self, part: int, stored: StoredPart) -> None:
        """Give out the contents of a part too."""
        for hash, start, end in stored.images():
            self._where[hash] = (part, start, end)

    def has(self, hash: str) -> bool:
        """Whether the content with this hash is kept, as far as its part's checksum tells."""
        place = self._where.get(hash)
        return place is not None and self._part(place[0]) is not None

    def find(self, hash: str) -> bytes | None:
        """The content with this hash, or None when it is not kept here or is damaged."""
        place = self._where.get(hash)
        if place is None:
            return None
        part, start, end = place
        images = self._part(part)
        data = images[start:end] if images is not None else None
        return data if data is not None and hashlib.sha256(data).hexdigest() == hash else None

    def get(self, hash: str) -> bytes:
        """The content with this hash. JournalError when it is not kept or damaged."""
        data = self.find(hash)
        if data is None:
            raise damaged()
        return data

    def for_action(self, action: Action) -> bytes:
        """The content that a file gets by an action, b"" where it gets none. JournalError as for `get`."""
        return (
            self.get(action.after)
            if isinstance(action, PutFile) and action.after is not None
            else b""
        )

    def _part(self, part: int) -> bytes | None:
        if part not in self._unpacked:
            images = self._unpack(part)
            while (
                self._unpacked
                and sum(len(known or b"") for known in (images, *self._unpacked.values()))
                > CACHED_BYTES
            ):
                del self._unpacked[next(iter(self._unpacked))]
            self._unpacked[part] = images
        return self._unpacked[part]

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
            return [
                *row,
                _stamp_row(action.was),
                _stamp_row(action.becomes),
                *([True] if action.held else []),
            ]
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
                stored_path(path), before, after, mode, _stamp(was), _stamp(becomes), held == [True]
            )
        case [int(), "folder", str(path), bool(made)]:
            return PutFolder(stored_path(path), made)
        case [int(), "move", str(path), str(new_path), bool(folder), hash, inode]:
            return MoveEntry(
                stored_path(path),
                stored_path(new_path),
                folder,
                hash,
                tuple(inode) if inode else None,
            )
        case _:
            raise ValueError("no action of this journal")


def _stamp_row(stamp: FileMetadata | None) -> list[Any] | None:
    return None if stamp is None else [stamp.modified_ns, stamp.born_ns, stamp.inode]


def _stamp(row: list[Any] | None) -> FileMetadata | None:
    if row is None:
        return None
    modified, born, inode = row
    return FileMetadata(modified, born, tuple(inode) if inode else None)


def stored_path(text: str) -> VaultPath:
    """A path that was written down by its text, exactly; judged again as an entry on disk."""
    if text == paths.TRASH:
        return paths.trash_path()
    folder, slash, name = text.rpartition("/")
    if folder == paths.TRASH:
        return paths.trash_path(name)
    return paths.from_disk(_stored_folder(folder) if slash else ROOT, name)


_stored_folder = lru_cache(maxsize=4096)(stored_path)
