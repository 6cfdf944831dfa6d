"""Finding files by name, a key at a time: letters in their order, the best hits first.

A file is a hit when its path holds the letters of each word of the query in their order and what holds them is close enough to the query.
Which files can hold them is told by one 64-bit mask a file and then by regular expressions; only what is left is scored. As a query grows
only the hits of the shorter one are looked at again. Case and accents do not count. Nothing found that way, and the query may be
misspelled: then the names most like it are hits.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from rapidfuzz import fuzz, process

CLOSE: Final = 60.0
"""Least score of a hit, of 100."""

MISSPELLED: Final = 75.0
"""Least likeness of a name to a query that no name holds."""

_MARKS: Final = re.compile("[\u0300-\u036f]")
_WORDS: Final = re.compile(r"[^\W_]+")


class NameHit(NamedTuple):
    """A file and how well its name answers the query, from 0 to 100."""

    path: str
    score: float


@dataclass(frozen=True, slots=True)
class NameHits:
    """The best hits, in order, and how many there are in all."""

    hits: tuple[NameHit, ...]
    total: int


def folded(text: str) -> str:
    """What two spellings of a name have in common for search: no case, no accents."""
    if text.isascii():
        return text.lower()
    plain = _MARKS.sub("", unicodedata.normalize("NFD", text.casefold()))
    return unicodedata.normalize("NFC", plain)


class NameSearch:
    """The paths of one state of a vault, ready to be searched. Not for several threads at once."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = list(paths)
        self._folded = [folded(_shown(path)) for path in self._paths]
        self._masks = array("Q", map(_mask, self._folded))
        self._last = ""
        self._last_hits: Sequence[int] | None = None

    def search(self, query: str, limit: int | None = None) -> NameHits:
        """The hits for a query, best first, `limit` of them at most (None: all). A query without letters has none."""
        wanted = " ".join(folded(query).split())
        if not wanted:
            return NameHits((), 0)
        candidates = self._candidates(wanted)
        scored = self._scored(wanted, candidates)
        if not scored:
            scored = self._alike(wanted)
        scored.sort()
        best = scored if limit is None else scored[:limit]
        return NameHits(tuple(NameHit(path, round(-score, 1)) for score, _, path in best), len(scored))

    def _candidates(self, wanted: str) -> Sequence[int]:
        """The files that hold the letters of each word of the query in their order."""
        pool: Iterable[int] = range(len(self._paths))
        if self._last_hits is not None and wanted.startswith(self._last):
            pool = self._last_hits
        mask, masks = _mask(wanted), self._masks
        texts = self._folded
        found = [at for at in pool if masks[at] & mask == mask]
        for word in sorted(wanted.split(), key=len, reverse=True):
            holds = re.compile(_in_order(word)).search
            found = [at for at in found if holds(texts[at])]
        self._last, self._last_hits = wanted, found
        return found

    def _scored(self, wanted: str, candidates: Sequence[int]) -> list[tuple[float, int, str]]:
        words = wanted.split()
        found = []
        for at in candidates:
            text = self._folded[at]
            score = _score(wanted, words, text)
            if score >= CLOSE:
                found.append((-score, len(text), self._paths[at]))
        return found

    def _alike(self, wanted: str) -> list[tuple[float, int, str]]:
        if len(wanted) < 4:
            return []
        names = [text.rpartition("/")[2] for text in self._folded]
        alike = process.extract(wanted, names, scorer=fuzz.ratio, score_cutoff=MISSPELLED, limit=None)
        return [(-score * CLOSE / 100, len(names[at]), self._paths[at]) for _, score, at in alike]


def _shown(path: str) -> str:
    """The path as people name it: notes without their extension."""
    return path[:-3] if path[-3:].lower() == ".md" else path


def _mask(text: str) -> int:
    """One bit for each character; characters share bits, and a blank has none."""
    mask = 0
    for character in set(text):
        if character != " ":
            mask |= 1 << (ord(character) & 63)
    return mask


def _in_order(word: str) -> str:
    """A pattern for the letters of a word in their order, without backtracking."""
    pattern = re.escape(word[0])
    for letter in word[1:]:
        pattern += f"[^{re.escape(letter)}]*+{re.escape(letter)}"
    return pattern


def _score(wanted: str, words: Sequence[str], text: str) -> float:
    """How well a path answers: the whole query at the best place first, then its words, then its letters."""
    name = text.rpartition("/")[2]
    at = name.find(wanted)
    if at == 0:
        return 100.0 if len(name) == len(wanted) else 95.0
    if at > 0:
        return 90.0 if not name[at - 1].isalnum() else 85.0
    if len(words) > 1 and all(word in name for word in words):
        return 80.0
    if wanted in text:
        return 75.0
    if len(words) > 1 and all(word in text for word in words):
        return 70.0
    initials = "".join([word[0] for word in _WORDS.findall(name)])
    if "".join(words) in initials:
        return 68.0
    return fuzz.partial_ratio(wanted, name) * 0.7
