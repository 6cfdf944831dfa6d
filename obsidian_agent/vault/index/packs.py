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
from typing import TYPE_CHECKING, Final, NamedTuple

from obsidian_agent.vault.index.columns import FOLDS_TO_ASCII, LONG_TYPE, LOSSY
from obsidian_agent.vault.index.snapshot import Snapshot
from obsidian_agent.vault.index.snapshot_file import UnusableIndex
from obsidian_agent.vault.index.text_search import Needle

if TYPE_CHECKING:
    from obsidian_agent.vault.index.word_query import QueryWord
    from obsidian_agent.vault.index.words import PackedNotes, PackWords, WordCount

WORDS_SUFFIX: Final = ".words"
"""The end of the name of a file with a pack's words, behind the name of the pack."""

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
        self._words: list[tuple[PackWords, dict[int, int]]] | None = None

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
            _release(pack.data)
        uncertain = LOSSY | FOLDS_TO_ASCII if needle.lower else LOSSY
        matches.update(file for file, flags in enumerate(self._snapshot.flags) if flags & uncertain)
        return matches

    def without_words(self) -> list[PackedNotes]:
        """Return the packs whose words are not stored yet (`words.py`)."""
        from obsidian_agent.vault.index.words import PackedNotes

        missing = []
        for number, name in enumerate(self._snapshot.packs):
            if not (self._folder / f"{name}{WORDS_SUFFIX}").exists():
                ids, starts = self._snapshot.texts_in(number)
                sizes = array(LONG_TYPE, [self._snapshot.packed(file).size for file in ids])
                pack = str(self._folder / name)
                missing.append(PackedNotes(pack, starts.tobytes(), sizes.tobytes()))
        return missing

    def word_counts(self, word: QueryWord) -> dict[int, WordCount] | None:
        """Return the ids of the notes with a word; None if the words are not stored."""
        if self._words is None:
            self._words = self._open_words()
        if self._words is None:
            return None
        return {
            ids[start]: count
            for pack, ids in self._words
            for start, count in pack.counts(word).items()
            if start in ids
        }

    def _open_words(self) -> list[tuple[PackWords, dict[int, int]]] | None:
        """Return the words of each pack, and the ids of its notes by their offsets."""
        names = self._snapshot.packs
        if not all((self._folder / f"{name}{WORDS_SUFFIX}").exists() for name in names):
            return None
        from obsidian_agent.vault.index.words import PackWords

        try:
            opened = [PackWords(self._folder / f"{name}{WORDS_SUFFIX}") for name in names]
        except UnusableIndex:
            return None
        return [
            (words, dict(zip(*reversed(self._snapshot.texts_in(number)), strict=True)))
            for number, words in enumerate(opened)
        ]


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


def _release(data: mmap.mmap | bytes) -> None:
    """Give back the memory of a searched pack. The system's cache still holds the file."""
    if isinstance(data, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        data.madvise(mmap.MADV_DONTNEED)


def _map_pack(path: Path) -> mmap.mmap | bytes:
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        if not size:
            return b""
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
