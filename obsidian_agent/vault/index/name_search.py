"""Search for files by name while the user types, best match first.

A file matches if its path or one of its aliases holds the query, or all words of it in any order.
One search over the joined names finds these. If they are few, a file also matches if its name has
the initials of the query, or its letters in order and close together; a 64-bit mask per name limits
the candidates. If nothing matches, the query may be misspelled: then the names that have its
letters, or are most similar, match. Case and accents are ignored. A file is one match, with the
best of its scores.
"""

# rapidfuzz is imported where it is used, because opening an index must not load it.

from __future__ import annotations

import heapq
import re
import unicodedata
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import accumulate, islice
from typing import Final, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

INITIALS: Final = 68.0
"""Score of a name with the initials of the query."""

NEAR: Final = 85.0
"""Minimum similarity of a name that has the query's letters in order."""

SHARE: Final = 0.7
"""Share of that similarity that is the score."""

LOOSE: Final = 60.0
"""Minimum similarity of such a name if there is no other match."""

MISSPELLED: Final = 75.0
"""Minimum similarity of a name to a query that no name holds."""

MISSPELLED_SHARE: Final = 0.6
"""Share of that similarity that is the score."""

FEW: Final = 20
"""Number of matches below which names that do not hold the query can match too."""

MAX_BEGINNING: Final = 500
"""Names that begin with a query, of which `best` reads no more."""

_MIN_LETTERS_MISSPELLED: Final = 4
_MIN_LETTERS_NEAR: Final = 7
"""Minimum length of a query that a name can be near without holding it."""

_FIRSTS: Final = re.compile(r"(?<![^\W_])[^\W_]")
_MARKS: Final = re.compile("[\u0300-\u036f]")

_Scored: TypeAlias = tuple[float, int, str, str]
"""Negative score, length of the name, path and alias: they sort best first."""


class NameHit(NamedTuple):
    """A file that matches, with a score from 0 to 100.

    `alias` is set if an alias matches better than the path.
    """

    path: str
    score: float
    alias: str | None = None


class NameHits(Struct, frozen=True):
    """The best matches in order, and the number of all matches."""

    hits: tuple[NameHit, ...]
    total: int


class NameFinder(Protocol):
    """A `NameSearch`, or several as one."""

    def search(self, query: str, limit: int | None = None, *, similar: bool = True) -> NameHits:
        """Return the matches of a query, as `NameSearch.search` does."""
        ...


def fold_name(text: str) -> str:
    """Return the form of a name that is compared: without case and accents."""
    if text.isascii():
        return text.lower()
    plain = _MARKS.sub("", unicodedata.normalize("NFD", text.casefold()))
    return unicodedata.normalize("NFC", plain)


class NameSearch:
    """A search over the paths of one state of a vault, and over aliases of its notes."""

    def __init__(self, paths: Iterable[str], aliases: Iterable[tuple[str, str]] = ()) -> None:
        """Prepare the search. `aliases` are pairs of an alias and the path of its note."""
        # Rows up to `_path_count` are paths, the others are aliases, with the paths of their notes.
        self._paths = list(paths)
        self._path_count = len(self._paths)
        self._aliases: list[str] = []
        for alias, path in aliases:
            self._aliases.append(alias)
            self._paths.append(path)
        self._folded = [
            fold_name(_without_extension(path)) for path in self._paths[: self._path_count]
        ]
        # A slash in an alias does not separate folders.
        self._folded += [
            fold_name(" ".join(alias.replace("/", " ").split())) for alias in self._aliases
        ]
        self._joined, self._starts = _join_lines(self._folded)

    def search(self, query: str, limit: int | None = None, *, similar: bool = True) -> NameHits:
        """Return the matches of a query, best first, at most `limit` of them (None: all).

        A query without letters matches nothing. Without `similar` a match holds every word.
        """
        return search_parts([(self, frozenset())], query, limit, similar=similar)

    def best(self, query: str, limit: int) -> tuple[NameHit, ...]:
        """Return the first matches, as `search` does, but without counting all of them.

        If enough names begin with the query, no others are read, and of many not all: a search for
        two letters takes longer than a key may.
        """
        folded = " ".join(fold_name(query).split())
        rows: list[int] = []
        if folded and not self._aliases:
            rows = list(islice(self._rows_beginning_with(folded), MAX_BEGINNING))
        if len(rows) < limit:
            return self.search(query, limit).hits
        texts = self._folded
        scored = [
            self._scored(row, _score(folded, (), texts[row]), len(texts[row])) for row in rows
        ]
        best = heapq.nsmallest(limit, scored)
        return tuple(NameHit(path, -score) for score, _, path, _ in best)

    @property
    def has_aliases(self) -> bool:
        """True if a file can match under several names."""
        return bool(self._aliases)

    def holding(
        self, query: str, words: list[str], excluded: Set[str]
    ) -> tuple[list[_Scored], set[int]]:
        """Return the matches that hold every word, and their rows."""
        rows = self._rows_holding(words)
        if excluded:
            rows = [row for row in rows if self._paths[row] not in excluded]
        texts = self._folded
        return [
            self._scored(row, _score(query, words, texts[row]), len(texts[row])) for row in rows
        ], set(rows)

    def near(
        self, query: str, words: list[str], known: set[int], excluded: Set[str]
    ) -> list[_Scored]:
        """Return further matches, by initials or by letters in order and close together.

        The rows in `known` are left out.
        """
        scores = dict.fromkeys(self._rows_with_initials("".join(words)), INITIALS)
        if len(query) >= _MIN_LETTERS_NEAR:
            for row, score in self._similar(query, words, NEAR):
                scores.setdefault(row, score)
        texts, paths = self._folded, self._paths
        return [
            self._scored(row, score, len(texts[row]))
            for row, score in scores.items()
            if row not in known and paths[row] not in excluded
        ]

    def loose(self, query: str, words: list[str], excluded: Set[str]) -> list[_Scored]:
        """Return the matches that have the letters of each word in order, from a word's start."""
        return [
            self._scored(row, score, len(self._folded[row]))
            for row, score in self._similar(query, words, LOOSE)
            if self._paths[row] not in excluded
        ]

    def misspelled(self, query: str, excluded: Set[str]) -> list[_Scored]:
        """Return the matches whose names are most similar to a query that may be misspelled."""
        from rapidfuzz import fuzz, process

        if len(query) < _MIN_LETTERS_MISSPELLED:
            return []
        # For each length of a name: how many characters of the query it can lack at most, and how
        # many of the query's letters it must have at least, to be similar enough.
        size, mask = len(query), _mask(query)
        share, longest = 1 - MISSPELLED / 100, int(size * (200 / MISSPELLED - 1))
        max_missing = {
            length: int((share * (size + length) + size - length) / 2)
            for length in range(longest + 1)
        }
        min_letters = {
            length: mask.bit_count() - missing
            for length, missing in max_missing.items()
            if length + missing >= size
        }
        masks = self._masks
        candidates = [
            row
            for length, least in min_letters.items()
            for row in self._rows_by_length.get(length, ())
            if (masks[row] & mask).bit_count() >= least
        ]
        names = {row: self._folded[row].rpartition("/")[2] for row in candidates}
        similar = process.extract(
            query, names, scorer=fuzz.ratio, score_cutoff=MISSPELLED, limit=None
        )
        return [
            self._scored(row, score * MISSPELLED_SHARE, len(names[row]))
            for _, score, row in similar
            if self._paths[row] not in excluded
        ]

    def _scored(self, row: int, score: float, length: int) -> _Scored:
        alias = self._aliases[row - self._path_count] if row >= self._path_count else ""
        return -score, length, self._paths[row], alias

    def _rows_holding(self, words: list[str]) -> list[int]:
        longest = max(words, key=len)
        rows = list(_find_rows(longest, self._joined, self._starts))
        others = [word for word in words if word != longest]
        if not others:
            return rows
        return [row for row in rows if all(word in self._folded[row] for word in others)]

    def _rows_beginning_with(self, query: str) -> Iterator[int]:
        """Yield the rows of names that begin with a text, each once."""
        texts = self._folded
        if texts and "/" not in texts[0] and texts[0].startswith(query):
            yield 0
        for before in ("\n", "/"):
            for row in _find_rows(before + query, self._joined, self._starts, len(before)):
                at = texts[row].rfind("/") + 1
                if (at > 0) == (before == "/") and texts[row].startswith(query, at):
                    yield row

    def _similar(
        self, query: str, words: list[str], min_similarity: float
    ) -> list[tuple[int, float]]:
        """Return the rows and scores of names that have the letters of the query in order."""
        from rapidfuzz import fuzz, process

        mask, masks, texts = _mask(query), self._masks, self._folded
        least = max(mask.bit_count(), *map(len, words))
        names = {
            row: texts[row].rpartition("/")[2]
            for length, rows in self._rows_by_length.items()
            if length >= least
            for row in rows
            if masks[row] & mask == mask
        }
        for word in words:
            matches = re.compile(_letters_in_order(word)).search
            names = {row: name for row, name in names.items() if matches(name)}
        if min_similarity < NEAR:
            starts = [re.compile(rf"(?:^|[\W_]){_letters_in_order(word)}").search for word in words]
            names = {
                row: name for row, name in names.items() if all(start(name) for start in starts)
            }
        similar = process.extract(
            query, names, scorer=fuzz.partial_ratio, score_cutoff=min_similarity, limit=None
        )
        return [(row, score * SHARE) for _, score, row in similar]

    def _rows_with_initials(self, letters: str) -> Iterator[int]:
        """Yield the rows of names with consecutive words that begin with these letters."""
        return _find_rows(letters, *self._initials)

    @cached_property
    def _initials(self) -> tuple[str, array[int]]:
        """The first letters of the words of all names, joined, and where each name's begin."""
        return _join_lines(
            ["".join(_FIRSTS.findall(text, text.rfind("/") + 1)) for text in self._folded]
        )

    @cached_property
    def _masks(self) -> array[int]:
        """The letters of each name without its folders, as masks (`_mask`)."""
        return array("Q", [_mask(text[text.rfind("/") + 1 :]) for text in self._folded])

    @cached_property
    def _rows_by_length(self) -> Mapping[int, array[int]]:
        """The rows of the names of each length, without their folders."""
        rows: dict[int, array[int]] = {}
        for row, text in enumerate(self._folded):
            rows.setdefault(len(text) - text.rfind("/") - 1, array("I")).append(row)
        return rows


def search_parts(
    parts: Sequence[tuple[NameSearch, Set[str]]],
    query: str,
    limit: int | None = None,
    *,
    similar: bool = True,
) -> NameHits:
    """Search several parts of one vault, each without some paths that are stale in it.

    Return the same as `NameSearch.search` would for the whole vault.
    """
    query = " ".join(fold_name(query).split())
    if not query:
        return NameHits((), 0)
    words = query.split()
    scored: list[_Scored] = []
    known: list[set[int]] = []
    for names, excluded in parts:
        matches, rows = names.holding(query, words, excluded)
        scored += matches
        known.append(rows)
    if similar and len(scored) < FEW:
        for (names, excluded), rows in zip(parts, known, strict=True):
            scored += names.near(query, words, rows, excluded)
    if similar and not scored:
        for names, excluded in parts:
            scored += names.loose(query, words, excluded)
            scored += names.misspelled(query, excluded)
    if len(scored) < FEW or any(names.has_aliases for names, _ in parts):
        worst_first = sorted(scored, reverse=True)
        scored = list({hit[2]: hit for hit in worst_first}.values())
    if limit is not None and limit < len(scored):
        best = heapq.nsmallest(limit, scored)
    else:
        best = sorted(scored)
    return NameHits(
        tuple(NameHit(path, round(-score, 1), alias or None) for score, _, path, alias in best),
        len(scored),
    )


def _join_lines(lines: list[str]) -> tuple[str, array[int]]:
    """Return the lines, each with a newline, as one text, and the offset of each."""
    starts = array("Q", accumulate(map(_line_length, lines[:-1]), initial=0))
    return "\n".join([*lines, ""]), starts


def _line_length(line: str) -> int:
    return len(line) + 1


def _find_rows(pattern: str, joined: str, starts: array[int], offset: int = 0) -> Iterator[int]:
    """Yield the rows of the joined lines that hold a text, each once.

    `offset` is the number of characters of the text that may belong to the row before.
    """
    at = joined.find(pattern)
    while at >= 0:
        row = bisect_right(starts, at + offset) - 1
        yield row
        at = joined.find(pattern, starts[row + 1] - offset) if row + 1 < len(starts) else -1


def _without_extension(path: str) -> str:
    """Return the path as users know it: notes without `.md`."""
    return path[:-3] if path[-3:].lower() == ".md" else path


def _mask(text: str) -> int:
    """Return a bit for each character but spaces. Several characters share a bit."""
    mask = 0
    for character in set(text):
        if character != " ":
            mask |= 1 << (ord(character) & 63)
    return mask


def _letters_in_order(word: str) -> str:
    """Return a pattern for the letters of a word in order, without backtracking."""
    pattern = re.escape(word[0])
    for letter in word[1:]:
        pattern += f"[^{re.escape(letter)}]*+{re.escape(letter)}"
    return pattern


def _score(query: str, words: Sequence[str], text: str) -> float:
    """Return the score of a path that holds every word; the whole query in the name is best."""
    name = text.rpartition("/")[2]
    at = name.find(query)
    if at == 0:
        return 100.0 if len(name) == len(query) else 95.0
    if at > 0:
        return 90.0 if not name[at - 1].isalnum() else 85.0
    if all(word in name for word in words):
        return 80.0
    return 75.0 if query in text else 70.0
