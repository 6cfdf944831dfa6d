"""Ranking notes by the words they hold: BM25 over the notes with all words of the query, or, where no note has all, with any of them.

There is no inverted index: which notes hold a word is told by one search over the packed texts, and only these are read and counted. A word
counts wherever a word begins with it, so that a query can still be typed.

Source of the formula: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009).
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
LENGTH: Final = 0.75
"""BM25's k1 and b."""

IN_NAME: Final = 2.0
"""What a word in the note's name adds, as a share of the most that it can weigh in the text."""

_WORD: Final = re.compile(r"\w+")


class RankedNote(NamedTuple):
    """A note, its score (larger is better), and where in its text the first word is (a place in its decoded text)."""

    path: VaultPath
    score: float
    first: int


@dataclass(slots=True)
class _Counted:
    path: VaultPath
    name: str
    length: int
    counts: list[int]
    first: int


def query_words(query: str) -> list[str]:
    """The words of a query, case-folded, each once."""
    return list(dict.fromkeys(_WORD.findall(query.casefold())))


def rank_notes(
    index: VaultIndex, folder: VaultPath, query: str, cancelled: Callable[[], bool] = lambda: False
) -> list[RankedNote]:
    """The notes below a folder that answer a query, best first. Notes that cannot be read are left out."""
    words = query_words(query)
    if not words:
        return []
    needles = [needle for word in words if (needle := folded_needle(word)) is not None]
    patterns = [_beginning(word) for word in words]
    counted = _all_counted(index.texts(folder, *needles), patterns, cancelled)
    found = [each for each in counted.values() if all(each.counts)]
    if not found:
        for needle in needles if len(needles) > 1 else ():
            counted |= _all_counted(index.texts(folder, needle), patterns, cancelled)
        found = sorted(counted.values(), key=attrgetter("path.text"))
    return [] if cancelled() else _scored(found, words, max(index.note_count(folder), 1))


def _all_counted(
    texts: Iterator[NoteContent], patterns: Sequence[re.Pattern[str]], cancelled: Callable[[], bool]
) -> dict[str, _Counted]:
    found: dict[str, _Counted] = {}
    for path, data in texts:
        if cancelled():
            return {}
        if (
            not isinstance(data, Problem)
            and (counted := _counted(path, data.decode(errors="replace"), patterns)) is not None
        ):
            found[path.text] = counted
    return found


def _counted(path: VaultPath, text: str, patterns: Sequence[re.Pattern[str]]) -> _Counted | None:
    folded, name = text.casefold(), path.stem.casefold()
    counts = [len(pattern.findall(folded)) + len(pattern.findall(name)) for pattern in patterns]
    if not any(counts):
        return None
    # Folding can make a text longer; then the place is a little off, and the preview with it.
    firsts = [found.start() for pattern in patterns if (found := pattern.search(folded))]
    return _Counted(path, name, len(text), counts, min(firsts, default=0))


def _beginning(word: str) -> re.Pattern[str]:
    """A pattern for words that begin with a word. It begins with plain text, so that the search can skip to it."""
    return re.compile(rf"{re.escape(word)}(?<!\w{re.escape(word)})")


def _scored(notes: list[_Counted], words: list[str], total: int) -> list[RankedNote]:
    if not notes:
        return []
    average = sum(note.length for note in notes) / len(notes) or 1.0
    holders = [sum(1 for note in notes if note.counts[position]) for position in range(len(words))]
    weights = [math.log(1 + (total - min(count, total) + 0.5) / (count + 0.5)) for count in holders]
    found = []
    for note in notes:
        norm = SATURATION * (1 - LENGTH + LENGTH * note.length / average)
        score = 0.0
        for word, weight, count in zip(words, weights, note.counts, strict=True):
            score += weight * count * (SATURATION + 1) / (count + norm)
            score += weight * IN_NAME if word in note.name else 0.0
        found.append(RankedNote(note.path, score, min(note.first, note.length)))
    # By numbers alone, which is quick, and holds nothing else up for long: notes of one score stay as they came, sorted by path.
    found.sort(key=attrgetter("score"), reverse=True)
    return found
