"""The words of the notes in a pack, and how often each note has them: an inverted index.

With it a search neither scans the packs nor reads the notes it ranks. It lies beside its pack and
never changes, as the pack does. It takes longer to make than an index, so only programs that stay
open make it, in another process (`IndexKeeper.prepare_words`). Every search uses it once it is
there.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct

from obsidian_agent.vault.index.columns import (
    ID_TYPE,
    LONG_TYPE,
    IdListColumn,
    TextColumn,
    encode_id_lists,
    encode_texts,
    read_numbers,
)
from obsidian_agent.vault.index.gc_pause import gc_paused
from obsidian_agent.vault.index.packs import WORDS_SUFFIX
from obsidian_agent.vault.index.snapshot_file import read_sections, write_sections
from obsidian_agent.vault.index.stop_words import STOP_WORDS
from obsidian_agent.vault.index.word_query import FORM, MAX_FORM, QueryWord, words_of
from obsidian_agent.vault.index.worker import serve

_LAST: Final = "\U0010ffff"
_MAX_COUNT: Final = 255
_NICENESS: Final = 10


class PackedNotes(NamedTuple):
    """A pack, and the offsets and sizes of its notes as the bytes of arrays of `LONG_TYPE`."""

    pack: str
    starts: bytes
    sizes: bytes


class WordCount(Struct, frozen=True, gc=False):
    """The number of times that a word is in a note, and the length of the note in characters."""

    occurrences: float
    length: int


class PackWords:
    """The words of one pack. Its notes are named by their offsets in the pack."""

    def __init__(self, file: Path) -> None:
        """Open the file. Raise UnusableIndex if there is none."""
        sections = read_sections(file)
        self._words = TextColumn(sections, "words")
        self._notes = IdListColumn(sections, "notes")
        self._counts = read_numbers(sections, "counts", "B")
        self._starts = read_numbers(sections, "starts", LONG_TYPE)
        self._lengths = read_numbers(sections, "lengths", LONG_TYPE)

    def counts(self, word: QueryWord) -> dict[int, WordCount]:
        """Return the notes with a word of a query, as `QueryWord.count` counts it."""
        exact: dict[int, float] = defaultdict(float)
        forms: dict[int, float] = defaultdict(float)
        for row, _ in self._beginning_with(word.text):
            self._add(row, exact)
        if word.stem is not None:
            for row, text in self._beginning_with(word.stem):
                if len(text) <= len(word.stem) + MAX_FORM:
                    self._add(row, forms)
        totals = dict(exact)
        for note, count in forms.items():
            totals[note] = exact[note] + FORM * max(count - exact[note], 0)
        starts, lengths = self._starts, self._lengths
        return {
            starts[note]: WordCount(count, lengths[note]) for note, count in totals.items() if count
        }

    def _beginning_with(self, prefix: str) -> Iterator[tuple[int, str]]:
        """Yield the rows and texts of the words that begin with a text."""
        rows = range(len(self._words))
        first = bisect_left(rows, prefix, key=self._words.__getitem__)
        for row in range(first, bisect_left(rows, prefix + _LAST, key=self._words.__getitem__)):
            yield row, self._words[row]

    def _add(self, row: int, totals: dict[int, float]) -> None:
        start, end = self._notes.bounds(row)
        for note, count in zip(self._notes[row], self._counts[start:end], strict=True):
            totals[note] += count


def write_words(notes: PackedNotes) -> None:
    """Write the words of a pack into the file beside it. Raise OSError."""
    starts, sizes = array(LONG_TYPE, notes.starts), array(LONG_TYPE, notes.sizes)
    lengths = array(LONG_TYPE)
    ids: dict[str, array[int]] = {}
    counts: dict[str, bytearray] = {}
    with open(notes.pack, "rb") as pack, gc_paused():
        for note, (start, size) in enumerate(zip(starts, sizes, strict=True)):
            pack.seek(start)
            text = pack.read(size).decode(errors="replace")
            lengths.append(len(text))
            for word, count in Counter(words_of(text.casefold())).items():
                if word in STOP_WORDS:
                    continue
                if word not in ids:
                    ids[word], counts[word] = array(ID_TYPE), bytearray()
                ids[word].append(note)
                counts[word].append(min(count, _MAX_COUNT))
    words = sorted(ids)
    write_sections(
        Path(notes.pack + WORDS_SUFFIX),
        {
            **encode_texts("words", words),
            **encode_id_lists("notes", [ids[word].tobytes() for word in words]),
            "counts": [bytes(counts[word]) for word in words],
            "starts": [notes.starts],
            "lengths": [lengths.tobytes()],
        },
    )


def _main(task: Sequence[tuple[str, bytes, bytes]], _: Callable[[object], None]) -> bool:
    """Write the words of some packs in a worker process, at low priority."""
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    for pack in task:
        write_words(PackedNotes(*pack))
    return True


if __name__ == "__main__":
    serve(_main)
