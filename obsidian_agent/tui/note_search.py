"""Finding a note by a few letters of its name: parts of names first, then of paths, then letters in order, then near misses."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

LIMIT = 200


class NoteSearch:
    """Searches a fixed list of paths. Not thread-safe; made to be called in a thread, one call at a time."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        self._lower = [path.lower().removesuffix(".md") for path in paths]

    def find(self, query: str) -> list[str]:
        """The best matches, best first, at most `LIMIT`; the first notes for an empty query."""
        words = query.lower().split()
        if not words:
            return list(self._paths[:LIMIT])
        ranked = [(rank, index) for index, text in enumerate(self._lower) if (rank := _rank(text, words)) is not None]
        if not ranked:
            return self._near_misses(query)
        return [self._paths[index] for _, index in heapq.nsmallest(LIMIT, ranked)]

    def _near_misses(self, query: str) -> list[str]:
        from rapidfuzz import fuzz, process

        found = process.extract(query.lower(), self._lower, scorer=fuzz.partial_ratio, limit=20, score_cutoff=70)
        return [self._paths[index] for _, _, index in found]


def _rank(text: str, words: Sequence[str]) -> tuple[int, int, int] | None:
    """Smaller is better: (how it matches, where, how long the path is); None when it does not."""
    start = text.rfind("/") + 1
    kind = 0
    first = len(text)
    for word in words:
        at = text.find(word, start)
        if at >= 0:
            kind = max(kind, 0 if at == start else 1)
            first = min(first, at - start)
        elif word in text:
            kind = max(kind, 2)
        elif _in_order(text, word):
            kind = max(kind, 3)
        else:
            return None
    return (kind, first, len(text))


def _in_order(text: str, letters: str) -> bool:
    at = -1
    for letter in letters:
        at = text.find(letter, at + 1)
        if at < 0:
            return False
    return True
