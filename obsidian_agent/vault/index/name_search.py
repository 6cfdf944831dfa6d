"""Finding files by name, a key at a time: the best hits first.

A file is a hit when its path, or one of its aliases, holds the query, or every word of it in any order: one look through all of them at once
tells. Only when these
are few, files are hits too whose name has the initials of the query, or its letters in their order and is close to it; which ones these can
be is told by one 64-bit mask each. Case and accents do not count. Nothing found that way, and the query may be misspelled: then the names
that have its letters, or are most like it, are hits. A file is one hit, with the better of its scores.
"""

# rapidfuzz is imported where it is used: reading an index must not pay for it.

from __future__ import annotations

import heapq
import re
import unicodedata
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import cached_property
from itertools import accumulate
from typing import Final, NamedTuple, Protocol, TypeAlias

from obsidian_agent.dataclass import dataclass

INITIALS: Final = 68.0
NEAR: Final = 85.0
SHARE: Final = 0.7
"""Score of a name with the query's initials; least likeness of a name that has its letters, and the share of it that is the score."""

LOOSE: Final = 60.0
"""Least likeness of such a name when there is no other hit."""

MISSPELLED: Final = 75.0
MISSPELLED_SHARE: Final = 0.6
"""Least likeness of a name to a query that no name holds, and the share of it that is the score."""

FEW: Final = 20
"""With fewer hits than this the query need not be in a path as it is."""

_LONG_ENOUGH: Final = 4
_LONG_FOR_NEAR: Final = 7
"""Letters of a query from which on a name can be near it without holding it."""

_FIRSTS: Final = re.compile(r"(?<![^\W_])[^\W_]")
_MARKS: Final = re.compile("[\u0300-\u036f]")


_Scored: TypeAlias = tuple[float, int, str, str]
"""Score (a smaller one is better), length of the text, path, alias."""


class NameHit(NamedTuple):
    """A file and how well its name answers the query, from 0 to 100; `alias` is the one that does so better than its path."""

    path: str
    score: float
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class NameHits:
    """The best hits, in order, and how many there are in all."""

    hits: tuple[NameHit, ...]
    total: int


class NameFinder(Protocol):
    """A `NameSearch`, or several as one."""

    def search(self, query: str, limit: int | None = None) -> NameHits:
        """See `NameSearch.search`."""
        ...


def fold_name(text: str) -> str:
    """What two spellings of a name have in common for search: no case, no accents."""
    if text.isascii():
        return text.lower()
    plain = _MARKS.sub("", unicodedata.normalize("NFD", text.casefold()))
    return unicodedata.normalize("NFC", plain)


class NameSearch:
    """The paths of one state of a vault, and aliases (with the paths of their notes), ready to be searched."""

    def __init__(self, paths: Iterable[str], aliases: Iterable[tuple[str, str]] = ()) -> None:
        self._paths = list(paths)
        self._named = len(self._paths)
        self._aliases: list[str] = []
        for alias, path in aliases:
            self._aliases.append(alias)
            self._paths.append(path)
        self._folded = [fold_name(_shown(path)) for path in self._paths[: self._named]]
        # A slash in an alias is no folder.
        self._folded += [
            fold_name(" ".join(alias.replace("/", " ").split())) for alias in self._aliases
        ]
        self._joined = "\n".join([*self._folded, ""])
        self._starts = array("Q", accumulate(map(_line_length, self._folded[:-1]), initial=0))

    def search(self, query: str, limit: int | None = None) -> NameHits:
        """The hits for a query, best first, `limit` of them at most (None: all). A query without letters has none."""
        return search_parts([(self, frozenset())], query, limit)

    @property
    def has_aliases(self) -> bool:
        """Whether a file can be found under several names."""
        return bool(self._aliases)

    def _hit(self, at: int, score: float, length: int) -> _Scored:
        return (
            -score,
            length,
            self._paths[at],
            self._aliases[at - self._named] if at >= self._named else "",
        )

    def holding(
        self, wanted: str, words: list[str], left_out: Set[str]
    ) -> tuple[list[_Scored], set[int]]:
        """The hits that hold every word, and their places."""
        found = self._holding(words)
        if left_out:
            found = [at for at in found if self._paths[at] not in left_out]
        texts = self._folded
        return [
            self._hit(at, _score(wanted, words, texts[at]), len(texts[at])) for at in found
        ], set(found)

    def _holding(self, words: list[str]) -> list[int]:
        longest = max(words, key=len)
        joined, starts, found = self._joined, self._starts, []
        at = joined.find(longest)
        while at >= 0:
            file = bisect_right(starts, at) - 1
            found.append(file)
            at = joined.find(longest, starts[file + 1]) if file + 1 < len(starts) else -1
        others = [word for word in words if word != longest]
        return (
            [file for file in found if all(word in self._folded[file] for word in others)]
            if others
            else found
        )

    def near(
        self, wanted: str, words: list[str], known: set[int], left_out: Set[str]
    ) -> list[_Scored]:
        """The hits whose names have the query's initials, or its letters in their order and close together, besides those known."""
        scored = dict.fromkeys(self._with_initials("".join(words)), INITIALS)
        if len(wanted) >= _LONG_FOR_NEAR:
            for file, score in self._close(wanted, words, NEAR):
                scored.setdefault(file, score)
        texts, paths = self._folded, self._paths
        return [
            self._hit(file, score, len(texts[file]))
            for file, score in scored.items()
            if file not in known and paths[file] not in left_out
        ]

    def loose(self, wanted: str, words: list[str], left_out: Set[str]) -> list[_Scored]:
        """The hits whose names have the query's letters in their order, from the beginning of a word on."""
        found = self._close(wanted, words, LOOSE)
        return [
            self._hit(file, score, len(self._folded[file]))
            for file, score in found
            if self._paths[file] not in left_out
        ]

    def _close(self, wanted: str, words: list[str], likeness: float) -> list[tuple[int, float]]:
        from rapidfuzz import fuzz, process

        mask, texts = _mask(wanted), self._folded
        names = {
            file: texts[file].rpartition("/")[2]
            for file, letters in enumerate(self._masks)
            if letters & mask == mask
        }
        for word in words:
            holds = re.compile(_in_order(word)).search
            names = {file: name for file, name in names.items() if holds(name)}
        if likeness < NEAR:
            begin = [re.compile(rf"(?:^|[\W_]){_in_order(word)}").search for word in words]
            names = {
                file: name for file, name in names.items() if all(found(name) for found in begin)
            }
        close = process.extract(
            wanted, names, scorer=fuzz.partial_ratio, score_cutoff=likeness, limit=None
        )
        return [(file, score * SHARE) for _, score, file in close]

    def _with_initials(self, letters: str) -> Iterator[int]:
        """The places of names of which some words that follow each other begin with these letters."""
        initials, starts = self._initials
        at = initials.find(letters)
        while at >= 0:
            file = bisect_right(starts, at) - 1
            yield file
            at = initials.find(letters, starts[file + 1]) if file + 1 < len(starts) else -1

    @cached_property
    def _initials(self) -> tuple[str, array[int]]:
        """The first letters of the words of all names, and where those of each name begin."""
        found = ["".join(_FIRSTS.findall(text, text.rfind("/") + 1)) for text in self._folded]
        return "\n".join([*found, ""]), array(
            "Q", accumulate(map(_line_length, found[:-1]), initial=0)
        )

    def alike(self, wanted: str, left_out: Set[str]) -> list[_Scored]:
        """The hits whose names are most like a query that may be misspelled."""
        from rapidfuzz import fuzz, process

        if len(wanted) < _LONG_ENOUGH:
            return []
        # A name of `length` that is so alike lacks at most so many characters of the query, and so many of its letters must be there.
        size, mask = len(wanted), _mask(wanted)
        share, longest = 1 - MISSPELLED / 100, int(size * (200 / MISSPELLED - 1))
        lacking = {
            length: int((share * (size + length) + size - length) / 2)
            for length in range(longest + 1)
        }
        least = {
            length: mask.bit_count() - lacks
            for length, lacks in lacking.items()
            if length + lacks >= size
        }
        able = [
            at
            for at, (length, letters) in enumerate(zip(self._lengths, self._masks, strict=True))
            if length in least and (letters & mask).bit_count() >= least[length]
        ]
        names = {at: self._folded[at].rpartition("/")[2] for at in able}
        alike = process.extract(
            wanted, names, scorer=fuzz.ratio, score_cutoff=MISSPELLED, limit=None
        )
        return [
            self._hit(at, score * MISSPELLED_SHARE, len(names[at]))
            for _, score, at in alike
            if self._paths[at] not in left_out
        ]

    @cached_property
    def _masks(self) -> array[int]:
        """Which letters each name holds, without its folders (`_mask`)."""
        return array("Q", [_mask(text[text.rfind("/") + 1 :]) for text in self._folded])

    @cached_property
    def _lengths(self) -> array[int]:
        """The lengths of all names, without their folders."""
        return array("I", [len(text) - text.rfind("/") - 1 for text in self._folded])


def search_parts(
    parts: Sequence[tuple[NameSearch, Set[str]]], query: str, limit: int | None = None
) -> NameHits:
    """As `NameSearch.search`, of several that are one vault together, each without some paths that are no longer valid there."""
    wanted = " ".join(fold_name(query).split())
    if not wanted:
        return NameHits((), 0)
    words = wanted.split()
    scored: list[_Scored] = []
    known: list[set[int]] = []
    for names, left_out in parts:
        found, places = names.holding(wanted, words, left_out)
        scored += found
        known.append(places)
    if len(scored) < FEW:
        for (names, left_out), places in zip(parts, known, strict=True):
            scored += names.near(wanted, words, places, left_out)
    if not scored:
        for names, left_out in parts:
            scored += [*names.loose(wanted, words, left_out), *names.alike(wanted, left_out)]
    if len(scored) < FEW or any(names.has_aliases for names, _ in parts):
        scored.sort()
        scored = list({hit[2]: hit for hit in reversed(scored)}.values())
    best = (
        heapq.nsmallest(limit, scored)
        if limit is not None and limit < len(scored)
        else sorted(scored)
    )
    return NameHits(
        tuple(NameHit(path, round(-score, 1), alias or None) for score, _, path, alias in best),
        len(scored),
    )


def _line_length(text: str) -> int:
    return len(text) + 1


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
    """How well a path that holds every word answers: the whole query at the best place first."""
    name = text.rpartition("/")[2]
    at = name.find(wanted)
    if at == 0:
        return 100.0 if len(name) == len(wanted) else 95.0
    if at > 0:
        return 90.0 if not name[at - 1].isalnum() else 85.0
    if all(word in name for word in words):
        return 80.0
    return 75.0 if wanted in text else 70.0
