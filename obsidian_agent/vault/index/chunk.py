"""The scan of one chunk of a vault's files, in this process or in a worker.

The texts of the chunk's notes are written into one pack, which is the search engine's copy of the
vault. What the snapshot stores of each file is returned in columns.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from obsidian_agent.errors import VaultError
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.filesystem.walk import FILE_FLAGS, NOFOLLOW
from obsidian_agent.vault.index.columns import (
    FAILED,
    FOLDS_TO_ASCII,
    ID_TYPE,
    LONG_TYPE,
    LOSSY,
    REFERS,
)
from obsidian_agent.vault.index.gc_pause import gc_paused
from obsidian_agent.vault.index.index import (
    PathCache,
    canvas_facts,
    note_facts,
    pack_facts,
    tag_key,
)
from obsidian_agent.vault.index.text_search import folds_to_ascii
from obsidian_agent.vault.index.worker import serve
from obsidian_agent.vault.links.resolve import target_name
from obsidian_agent.vault.markdown.canvas import CANVAS
from obsidian_agent.vault.markdown.note import names_in

PROGRESS_FILES: Final = 250
"""Number of files between two reports of progress."""

_SMALL_FILE: Final = 1 << 16
_BUFFERED: Final = 1 << 20


class Chunk(NamedTuple):
    """The results of one scan, in columns.

    Columns of numbers are the bytes of arrays: of `LONG_TYPE` for `starts` and `sizes`, else of
    `ID_TYPE`. `tagged`, `sources` and `aliases` are as in `Records`, but plain tuples, because they
    are sent between processes.
    """

    facts: bytes
    fact_sizes: bytes
    starts: bytes
    sizes: bytes
    flags: bytes
    tagged: list[tuple[str, bytes]]
    sources: list[tuple[str, str, bytes]]
    aliases: list[tuple[int, str]]


def scan_chunk(
    real_path: str,
    ids: Sequence[int],
    paths: Sequence[str],
    pack: str,
    on_progress: Callable[[int], None],
) -> Chunk:
    """Scan notes and canvases of the vault at `real_path`, and write the notes' texts to `pack`.

    `on_progress` receives the number of files scanned so far.
    """
    with (
        gc_paused(),
        VaultStore.open(real_path) as store,
        open(pack, "wb", opener=_open_private) as file,
    ):
        reader = _FolderReader(store)
        builder = _ChunkBuilder()
        try:
            for count, (number, path) in enumerate(zip(ids, paths, strict=True)):
                if count % PROGRESS_FILES == 0:
                    on_progress(count)
                builder.add(number, path, reader.read(path))
                if builder.pending_size > _BUFFERED:
                    file.writelines(builder.drain())
        finally:
            reader.close()
        file.writelines(builder.drain())
        file.flush()
        os.fsync(file.fileno())
        return builder.build()


class _ChunkBuilder:
    def __init__(self) -> None:
        self._facts: list[bytes] = []
        self._starts, self._sizes = array(LONG_TYPE), array(LONG_TYPE)
        self._flags = bytearray()
        self._tagged: dict[str, array[int]] = {}
        self._sources: dict[str, array[int]] = {}
        self._aliases: list[tuple[int, str]] = []
        self._pending: list[bytes] = []
        self._end = 0
        self.pending_size = 0

    def add(self, number: int, path: str, data: bytes | None) -> None:
        """Add the file with id `number`; `data` is None if it could not be read."""
        if data is None:
            self._add_row(b"", 0, FAILED)
            return
        if path[-len(CANVAS) :].lower() == CANVAS:
            facts = canvas_facts(data)
            size = stored_size = 0
        else:
            facts = note_facts(names_in(data), data)
            size = len(data)
            stored_size = size + 1
            self._pending += (data, b"\n")
            self.pending_size += stored_size
        flags = (
            (LOSSY if facts.lossy else 0)
            | (FOLDS_TO_ASCII if folds_to_ascii(data) else 0)
            | (REFERS if facts.references else 0)
        )
        self._add_row(pack_facts(facts), size, flags)
        self._end += stored_size
        for alias in facts.aliases:
            self._aliases.append((number, alias))
        for name in facts.tags:
            self._tagged.setdefault(tag_key(name), array(ID_TYPE)).append(number)
        for target in facts.targets:
            self._sources.setdefault(target, array(ID_TYPE)).append(number)

    def _add_row(self, facts: bytes, size: int, flags: int) -> None:
        self._facts.append(facts)
        self._starts.append(self._end)
        self._sizes.append(size)
        self._flags.append(flags)

    def drain(self) -> list[bytes]:
        """Return the texts that are not written yet, and clear them."""
        pending = self._pending
        self._pending = []
        self.pending_size = 0
        return pending

    def build(self) -> Chunk:
        return Chunk(
            facts=b"".join(self._facts),
            fact_sizes=array(ID_TYPE, map(len, self._facts)).tobytes(),
            starts=self._starts.tobytes(),
            sizes=self._sizes.tobytes(),
            flags=bytes(self._flags),
            tagged=sorted((key, ids.tobytes()) for key, ids in self._tagged.items()),
            sources=sorted(
                (target_name(target), target, ids.tobytes())
                for target, ids in self._sources.items()
            ),
            aliases=sorted(self._aliases),
        )


class _FolderReader:
    """A reader of files in the order of their folders, with one open handle per folder.

    Large files, empty ones and links are read through the store.
    """

    def __init__(self, store: VaultStore) -> None:
        self._store = store
        self._vault_path = PathCache()
        self._folder: str | None = None
        self._handle = -1

    def read(self, path: str) -> bytes | None:
        """Return the bytes of a file, or None if it cannot be read."""
        folder, _, name = path.rpartition("/")
        try:
            if folder != self._folder:
                self._enter(folder, path)
            if self._handle >= 0 and (data := self._read_small(name)):
                return data
            return self._store.read(self._vault_path(path))
        except VaultError:
            return None

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
        self._folder, self._handle = None, -1

    def _enter(self, folder: str, path: str) -> None:
        self.close()
        if self._store.root_fd >= 0:
            self._handle = self._store.open_folder(self._vault_path(path).parent)
        self._folder = folder

    def _read_small(self, name: str) -> bytes:
        """Return the bytes of a small plain file. Empty if it is large, a link, or unreadable."""
        try:
            handle = os.open(name, FILE_FLAGS | NOFOLLOW, dir_fd=self._handle)
        except OSError:
            return b""
        try:
            data = os.read(handle, _SMALL_FILE)
        except OSError:
            return b""
        finally:
            os.close(handle)
        return data if len(data) < _SMALL_FILE else b""


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_BINARY", 0), 0o600)


def _main(
    job: tuple[str, list[int], list[str], str], on_progress: Callable[[int], None]
) -> tuple[object, ...]:
    return tuple(scan_chunk(*job, on_progress=on_progress))


if __name__ == "__main__":
    serve(_main)
