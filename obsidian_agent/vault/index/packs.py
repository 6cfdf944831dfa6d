"""Packs: files that hold the texts of a snapshot's notes one after the other.

A search runs over a few mapped files instead of opening very many notes.
"""

from __future__ import annotations

import mmap
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

from obsidian_agent.vault.index.columns import FOLDS_TO_ASCII, LOSSY
from obsidian_agent.vault.index.snapshot import Snapshot
from obsidian_agent.vault.index.text_search import Needle

CHUNK: Final = 1 << 18
"""Number of bytes that are lower-cased at a time, so that they stay in the processor's cache."""


class _Pack(NamedTuple):
    data: mmap.mmap | bytes
    ids: array[int]
    starts: array[int]


class Packs:
    """The texts of the notes of a snapshot, in a folder.

    Every method raises OSError if a pack is missing. The notes must then be read themselves.
    """

    def __init__(self, snapshot: Snapshot, folder: Path) -> None:
        self._snapshot = snapshot
        self._folder = folder

    @cached_property
    def _packs(self) -> list[_Pack]:
        snapshot = self._snapshot
        return [
            _Pack(_map_pack(self._folder / name), *snapshot.texts_in(number))
            for number, name in enumerate(snapshot.packs)
        ]

    def text(self, file: int) -> bytes:
        """Return the bytes of a note."""
        pack, start, size = self._snapshot.packed(file)
        return self._packs[pack].data[start : start + size] if size else b""

    def candidates(self, needle: Needle) -> set[int]:
        """Return the ids of all notes that hold a needle, and of those that must be read to know.

        The latter are notes that are not UTF-8 or whose characters fold in unusual ways.
        """
        matches: set[int] = set()
        for pack in self._packs:
            matches.update(_search(pack, needle))
        uncertain = LOSSY | FOLDS_TO_ASCII if needle.lower else LOSSY
        matches.update(file for file, flags in enumerate(self._snapshot.flags) if flags & uncertain)
        return matches


def _search(pack: _Pack, needle: Needle) -> Iterator[int]:
    """Yield each note of a pack that holds a needle once.

    After a match, the search continues at the start of the next note.
    """
    data, ids, starts = pack
    pattern, total = needle.data, len(data)
    overlap = len(pattern) - 1
    step = CHUNK if needle.lower else CHUNK << 5
    next_note = 0
    for chunk in range(0, total, step):
        end = min(chunk + step + overlap, total)
        if next_note >= end:
            continue
        base = max(chunk, next_note)
        if needle.lower:
            piece: mmap.mmap | bytes = data[base:end].lower()
            offset, limit, at = base, end - base, 0
        else:
            piece, offset, limit, at = data, 0, end, base
        at = piece.find(pattern, at, limit)
        while at >= 0:
            row = bisect_right(starts, offset + at) - 1
            next_note = starts[row + 1] if row + 1 < len(starts) else total
            # A pack may begin with texts that are no longer valid.
            if row >= 0:
                yield ids[row]
            at = (
                piece.find(pattern, next_note - offset, limit) if next_note - offset < limit else -1
            )


def _map_pack(path: Path) -> mmap.mmap | bytes:
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        if not size:
            return b""
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
