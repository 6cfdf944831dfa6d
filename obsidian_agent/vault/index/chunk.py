"""Scanning some files of a vault: what the index keeps of each, and the texts of the notes in a new pack."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from obsidian_agent.errors import VaultError
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.filesystem.walk import FILE_FLAGS, NOFOLLOW
from obsidian_agent.vault.index.facts import KnownPaths, canvas_facts, note_facts, pack_facts, tag_key, target_name
from obsidian_agent.vault.index.gc_policy import no_collection
from obsidian_agent.vault.index.needle import folds_oddly
from obsidian_agent.vault.index.snapshot_file import FAILED, FOLDS_ODDLY, IDS, LONG, LOSSY, REFERS
from obsidian_agent.vault.links.graph import CANVAS
from obsidian_agent.vault.scan.note import names_in

REPORTED: Final = 250
"""Files after which progress is told."""

_AT_ONCE: Final = 1 << 16
_BUFFERED: Final = 1 << 20


class Part(NamedTuple):
    """What is found in some files, in columns; lists of numbers are bytes of arrays (`IDS`; `LONG` for `starts` and `sizes`).

    `tagged`, `sources` and `aliases` are as in `Records`, as plain tuples: this travels between processes.
    """

    facts: bytes
    fact_sizes: bytes
    starts: bytes
    sizes: bytes
    flags: bytes
    tagged: list[tuple[str, bytes]]
    sources: list[tuple[str, str, bytes]]
    aliases: list[tuple[int, str]]


def scan_part(real_path: str, ids: Sequence[int], paths: Sequence[str], pack: str, report: Callable[[int], None]) -> Part:
    """Scan notes and canvases of the vault at `real_path`; their texts go into the file `pack`. `report` is told how many are done."""
    with no_collection(), VaultStore.open(real_path) as store, open(pack, "wb", opener=_private) as file:
        reader = _Reader(store)
        part = _Scanning()
        try:
            for count, (number, text) in enumerate(zip(ids, paths, strict=True)):
                if count % REPORTED == 0:
                    report(count)
                part.add(number, text, reader.read(text))
                if part.pending_size > _BUFFERED:
                    file.writelines(part.taken())
        finally:
            reader.close()
        file.writelines(part.taken())
        file.flush()
        os.fsync(file.fileno())
        return part.done()


class _Scanning:
    def __init__(self) -> None:
        self._facts: list[bytes] = []
        self._starts, self._sizes, self._flags = array(LONG), array(LONG), bytearray()
        self._tagged: dict[str, array[int]] = {}
        self._sources: dict[str, array[int]] = {}
        self._aliases: list[tuple[int, str]] = []
        self._pending: list[bytes] = []
        self._end = 0
        self.pending_size = 0

    def add(self, number: int, text: str, data: bytes | None) -> None:
        if data is None:
            self._row(b"", 0, FAILED)
            return
        is_canvas = text[-len(CANVAS) :].lower() == CANVAS
        facts = canvas_facts(data) if is_canvas else note_facts(names_in(data), data)
        if not is_canvas:
            self._pending += (data, b"\n")
            self.pending_size += len(data) + 1
        flags = (LOSSY if facts.lossy else 0) | (FOLDS_ODDLY if folds_oddly(data) else 0) | (REFERS if facts.references else 0)
        self._row(pack_facts(facts), 0 if is_canvas else len(data), flags)
        self._end += 0 if is_canvas else len(data) + 1
        for alias in facts.aliases:
            self._aliases.append((number, alias))
        for name in facts.tags:
            _note(self._tagged, tag_key(name), number)
        for target in facts.targets:
            _note(self._sources, target, number)

    def _row(self, facts: bytes, size: int, flags: int) -> None:
        self._facts.append(facts)
        self._starts.append(self._end)
        self._sizes.append(size)
        self._flags.append(flags)

    def taken(self) -> list[bytes]:
        """The texts that have not been written yet."""
        pending, self._pending, self.pending_size = self._pending, [], 0
        return pending

    def done(self) -> Part:
        return Part(
            b"".join(self._facts),
            array(IDS, map(len, self._facts)).tobytes(),
            self._starts.tobytes(),
            self._sizes.tobytes(),
            bytes(self._flags),
            sorted((key, ids.tobytes()) for key, ids in self._tagged.items()),
            sorted((target_name(target), target, ids.tobytes()) for target, ids in self._sources.items()),
            sorted(self._aliases),
        )


def _note(lists: dict[str, array[int]], key: str, number: int) -> None:
    known = lists.get(key)
    if known is None:
        lists[key] = array(IDS, (number,))
    elif known[-1] != number:
        known.append(number)


class _Reader:
    """Reads files in the order of their folders, over one handle a folder. What is not a plain file goes through the store."""

    def __init__(self, store: VaultStore) -> None:
        self._store = store
        self._path = KnownPaths()
        self._folder: str | None = None
        self._handle = -1

    def read(self, text: str) -> bytes | None:
        """The bytes of a file; None when it cannot be read."""
        folder, _, name = text.rpartition("/")
        try:
            if folder != self._folder:
                self._enter(folder, text)
            if self._handle >= 0 and (data := self._plain(name)):
                return data
            return self._store.read(self._path(text))
        except VaultError:
            return None

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
        self._folder, self._handle = None, -1

    def _enter(self, folder: str, text: str) -> None:
        self.close()
        if self._store.root_fd >= 0:
            self._handle = self._store.open_folder(self._path(text).parent)
        self._folder = folder

    def _plain(self, name: str) -> bytes:
        """The bytes of a small file; none when it is not one, is empty, or is a link."""
        try:
            handle = os.open(name, FILE_FLAGS | NOFOLLOW, dir_fd=self._handle)
        except OSError:
            return b""
        try:
            data = os.read(handle, _AT_ONCE)
        except OSError:
            return b""
        finally:
            os.close(handle)
        return data if len(data) < _AT_ONCE else b""


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_BINARY", 0), 0o600)
