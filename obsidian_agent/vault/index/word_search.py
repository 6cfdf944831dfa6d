"""Ranking of notes by the words they hold.

Notes with all words of the query are ranked by BM25; if no note has all of them, notes with any.
There is no inverted index: a search over the packed texts finds the notes with a word, and only
these are read and counted. A word of the query matches the beginning of a word, so that results
appear while the query is being typed.

Source of the formula: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and
Beyond" (2009).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import Problem
from obsidian_agent.vault.index.index import NoteContent, VaultIndex
from obsidian_agent.vault.index.text_search import folded_needle
from obsidian_agent.vault.paths.path import VaultPath

SATURATION: Final = 1.2
"""The k1 of BM25."""

LENGTH: Final = 0.75
"""The b of BM25."""

IN_NAME: Final = 2.0
"""What a word in the note's name adds, as a share of its maximum weight in the text."""

_WORD: Final = re.compile(r"\w+")


class RankedNote(NamedTuple):
    """A note, its score (higher is better), and the offset of the first word in its text."""

    path: VaultPath
    score: float
    first: int


@dataclass(slots=True)
class _WordCounts:
    path: VaultPath
    name: str
    length: int
    counts: list[int]
    first: int


def query_words(query: str) -> list[str]:
    """Return the distinct words of a query, case-folded."""
    return list(dict.fromkeys(_WORD.findall(query.casefold())))


def rank_notes(
    index: VaultIndex,
    folder: VaultPath,
    query: str,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> list[RankedNote]:
    """Return the notes below a folder that match a query, best first.

    Notes that cannot be read are skipped.
    """
    words = query_words(query)
    if not words:
        return []
    needles = [needle for word in words if (needle := folded_needle(word)) is not None]
    patterns = [_beginning(word) for word in words]
    counted = _count_all(index.texts(folder, *needles), patterns, is_cancelled)
    matches = [note for note in counted.values() if all(note.counts)]
    if not matches:
        if len(needles) > 1:
            for needle in needles:
                counted |= _count_all(index.texts(folder, needle), patterns, is_cancelled)
        matches = sorted(counted.values(), key=attrgetter("path.text"))
    return [] if is_cancelled() else _score(matches, words, max(index.note_count(folder), 1))


def _count_all(
    notes: Iterator[NoteContent],
    patterns: Sequence[re.Pattern[str]],
    is_cancelled: Callable[[], bool],
) -> dict[str, _WordCounts]:
    counted: dict[str, _WordCounts] = {}
    for path, data in notes:
        if is_cancelled():
            return {}
        if isinstance(data, Problem):
            continue
        counts = _count(path, data.decode(errors="replace"), patterns)
        if counts is not None:
            counted[path.text] = counts
    return counted


def _count(path: VaultPath, text: str, patterns: Sequence[re.Pattern[str]]) -> _WordCounts | None:
    folded, name = text.casefold(), path.stem.casefold()
    counts = [len(pattern.findall(folded)) + len(pattern.findall(name)) for pattern in patterns]
    if not any(counts):
        return None
    # Folding can lengthen a text; then the offset, and with it the excerpt, is slightly off.
    firsts = [match.start() for pattern in patterns if (match := pattern.search(folded))]
    return _WordCounts(path, name, len(text), counts, min(firsts, default=0))


def _beginning(word: str) -> re.Pattern[str]:
    """Return a pattern for words that begin with a word.

    The pattern starts with plain text, because `re` skips to that quickly.
    """
    return re.compile(rf"{re.escape(word)}(?<!\w{re.escape(word)})")


def _score(notes: list[_WordCounts], words: list[str], total: int) -> list[RankedNote]:
    if not notes:
        return []
    average = sum(note.length for note in notes) / len(notes) or 1.0
    frequencies = [
        sum(1 for note in notes if note.counts[position]) for position in range(len(words))
    ]
    weights = [
        math.log(1 + (total - min(frequency, total) + 0.5) / (frequency + 0.5))
        for frequency in frequencies
    ]
    ranked = []
    for note in notes:
        norm = SATURATION * (1 - LENGTH + LENGTH * note.length / average)
        score = 0.0
        for word, weight, count in zip(words, weights, note.counts, strict=True):
            score += weight * count * (SATURATION + 1) / (count + norm)
            score += weight * IN_NAME if word in note.name else 0.0
        ranked.append(RankedNote(note.path, score, min(note.first, note.length)))
    # Sorting by numbers only is fast, so other threads are not blocked for long. The sort is
    # stable: notes with equal scores stay sorted by path.
    ranked.sort(key=attrgetter("score"), reverse=True)
    return ranked
