"""Looking for bytes in the packs of texts: one search over a mapped file instead of opening very many notes.

The lines of a text in which a hit can be, without a look at the others.
"""

from __future__ import annotations

import mmap
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

from obsidian_agent.vault.index.needle import Needle, folds_oddly
from obsidian_agent.vault.index.snapshot import Snapshot
from obsidian_agent.vault.index.snapshot_file import FOLDS_ODDLY, LOSSY
from obsidian_agent.vault.text import split_lines

CHUNK: Final = 1 << 18
"""Bytes that are lower-cased at a time: they stay in the processor's cache."""


class _Pack(NamedTuple):
    data: mmap.mmap | bytes
    ids: array[int]
    starts: array[int]


class Packs:
    """The texts of the notes of a snapshot, in a folder. Every method raises OSError when a pack is gone: then the notes must be read."""

    def __init__(self, snapshot: Snapshot, folder: Path) -> None:
        self._snapshot = snapshot
        self._folder = folder

    @cached_property
    def _packs(self) -> list[_Pack]:
        snapshot = self._snapshot
        return [_Pack(_mapped(self._folder / name), *snapshot.texts_in(number)) for number, name in enumerate(snapshot.packs)]

    def text(self, file: int) -> bytes:
        """The bytes of a note."""
        pack, start, size = self._snapshot.packed(file)
        return self._packs[pack].data[start : start + size] if size else b""

    def holding(self, needle: Needle, cancelled: Callable[[], bool] = lambda: False) -> list[int]:
        """The ids, ascending, of all notes that hold a needle, and of those of which that cannot be told so."""
        found: set[int] = set()
        for pack in self._packs:
            found.update(_hits(pack, needle, cancelled))
        odd = LOSSY | FOLDS_ODDLY if needle.lower else LOSSY
        flags = self._snapshot.flags
        found.update(file for file in range(len(flags)) if flags[file] & odd)
        return sorted(found)

    def first(self, needle: Needle, cancelled: Callable[[], bool] = lambda: False) -> Iterator[int]:
        """As `holding`, one after the other as they are found, pack by pack; without those of which it cannot be told."""
        for pack in self._packs:
            yield from _hits(pack, needle, cancelled)


def _hits(pack: _Pack, needle: Needle, cancelled: Callable[[], bool]) -> Iterator[int]:
    """The notes of a pack with a needle, each once: the next look begins behind the note of the last hit."""
    data, ids, starts = pack
    wanted, total = needle.data, len(data)
    overlap = len(wanted) - 1
    step = CHUNK if needle.lower else CHUNK << 5
    behind = 0
    for chunk in range(0, total, step):
        if cancelled():
            return
        end = min(chunk + step + overlap, total)
        if behind >= end:
            continue
        base = max(chunk, behind)
        if needle.lower:
            piece: mmap.mmap | bytes = data[base:end].lower()
            offset, limit, at = base, end - base, 0
        else:
            piece, offset, limit, at = data, 0, end, base
        at = piece.find(wanted, at, limit)
        while at >= 0:
            place = bisect_right(starts, offset + at) - 1
            behind = starts[place + 1] if place + 1 < len(starts) else total
            # A pack may begin with texts that are no longer valid.
            if place >= 0:
                yield ids[place]
            at = piece.find(wanted, behind - offset, limit) if behind - offset < limit else -1


def _mapped(path: Path) -> mmap.mmap | bytes:
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        if not size:
            return b""
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def lines_with(text: str, needle: Needle | None) -> Iterator[tuple[int, str]]:
    """Number (from 1) and text, without line end, of each line that may hold a needle; of every line for None."""
    searched = None if needle is None else _searched(text, needle)
    if searched is None or needle is None:
        for number, line in enumerate(split_lines(text), start=1):
            yield number, line.removesuffix("\n").removesuffix("\r")
        return
    wanted = needle.data.decode("utf-8", "surrogatepass")
    number, counted = 1, 0
    at = searched.find(wanted)
    while at >= 0:
        start = text.rfind("\n", 0, at) + 1
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        number += text.count("\n", counted, start)
        counted = start
        yield number, text[start:end].removesuffix("\r")
        at = searched.find(wanted, end)


def _searched(text: str, needle: Needle) -> str | None:
    """What the needle is to be looked for in, place by place as the text; None when there is no such thing."""
    if not needle.lower:
        return text
    if not text.isascii() and folds_oddly(text.encode("utf-8", "surrogatepass")):
        return None
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else None
