"""The words of a search: which of them count, how they match, and where a text answers best.

Words too common to distinguish notes do not count, unless the query has no others. A word matches
the beginning of a word, so that results appear while the query is being typed, and other forms of
the same word for less. In scripts without spaces each two neighbouring characters are a word.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from msgspec import Struct

from obsidian_agent.expression import expression
from obsidian_agent.vault.index.stop_words import STOP_WORDS
from obsidian_agent.vault.index.text_search import Needle, exact_needle, folded_needle

FORM: Final = 0.6
"""Share of its weight that another form of a word counts for: “exercise” for “exercises”."""

MAX_WORDS: Final = 16
"""Words of a query that are searched; the rest of a longer text is ignored."""

MAX_LENGTH: Final = 64
"""Characters of a word that are compared. Longer ones are data, not language."""

MAX_KEYWORDS: Final = 3
"""Words of a query up to which a note is expected to hold them all."""

PASSAGE: Final = 200
"""Characters of a line that can be its best passage."""

_PROPERTY: Final = 0.3
"""Share of a line's score if it is one of the properties: prose answers better."""

_TITLE: Final = 0.8
"""Share of a line's score if it is a heading."""

_HEADING: Final = 0.3
"""Share that the words of a line's heading add to its score."""

_FORMS: Final = """
ingen ungen ings ing ung ies ied ern es ed er en em os as is s e n y a o i
ovém ovi ovou ové ách ech ích ého ému ami ům ou í ě ů
ами ями ого его ому ему ыми ими ые ие ый ий ой ая яя ов ев ах ях ам ям ом ем ы и а я у ю е о ь
"""
ENDINGS: Final = tuple(sorted(_FORMS.split(), key=len, reverse=True))
"""Endings that differ between the forms of a word, in the languages above, longest first."""

MAX_FORM: Final = 3
"""Characters that another form of a word adds to its stem at most."""

MIN_STEM: Final = 4
_MIN_RUN: Final = 3
"""Characters of ASCII that a needle needs to be selective."""

_JOINED: Final = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD: Final = expression(rf"[{_JOINED}]+|[^\W{_JOINED}]+")
_IN_JOINED: Final = expression(f"[{_JOINED}]")
_KANA: Final = re.compile("[\u3040-\u309f]+")
"""Hiragana, in which Japanese writes its particles and endings."""

_QUOTED: Final = re.compile(r"\"([^\"]+)\"|“([^”]+)”|„([^“”]+)[“”]|«([^»]+)»|「([^」]+)」")
HEADING: Final = re.compile(r"##{0,5}[ \t]+(.*?)[ \t#]*$", re.MULTILINE)
_HEADINGS: Final = re.compile(rf"\n{HEADING.pattern}", re.MULTILINE)
"""All headings of a text behind a newline. `re` skips quickly to plain text."""
_BARE_KEY: Final = re.compile(r"\s*(?:-\s*)?[\w .\"'-]*:\s*(?:[|>][+-]?)?\s*$|\s*(?:---|-)?\s*$")


class QueryWord(Struct, frozen=True, kw_only=True):
    """A word of a query, folded.

    `exact` matches words that begin with it, `form` its other forms, which begin with `stem`.
    `needles` are alternatives of which every note with a match holds one (no needles: every note
    must be read).
    """

    text: str
    stem: str | None
    exact: re.Pattern[str]
    form: re.Pattern[str] | None
    needles: tuple[Needle, ...]

    def count(self, folded: str) -> float:
        """Return how often the word is in a folded text. Another form counts for less."""
        if (self.stem or self.text) not in folded:
            return 0
        exact = len(self.exact.findall(folded))
        if self.form is None:
            return exact
        return exact + FORM * max(len(self.form.findall(folded)) - exact, 0)


class Passage(NamedTuple):
    """The passage of a text that holds most of a query.

    `line` counts from 1. `start` and `end` are offsets in the line `text`. `heading` is the one
    above it, without its marks, or empty.
    """

    line: int
    text: str
    start: int
    end: int
    heading: str


class WordQuery:
    """The words and phrases of a query."""

    def __init__(self, query: str) -> None:
        folded = query.casefold()
        quoted = [next(filter(None, groups)) for groups in _QUOTED.findall(folded)]
        unquoted = _QUOTED.sub(" ", folded)
        words = _words(unquoted)
        content = [word for word in words if word not in STOP_WORDS and not _KANA.fullmatch(word)]
        for phrase in quoted:
            content += _words(phrase)
        chosen = list(dict.fromkeys(content or words))[:MAX_WORDS]
        self.words: Sequence[QueryWord] = [_query_word(word) for word in chosen]
        self.is_keywords: bool = len(chosen) <= MAX_KEYWORDS and content == words
        """True for a few words without common ones, such as `budget march`."""
        phrases = [" ".join(phrase.split()) for phrase in quoted]
        self.quoted: Sequence[str] = [phrase for phrase in phrases if phrase]
        """Texts in quotation marks."""
        if len(words) > 1 and not quoted:
            phrases.append(" ".join(unquoted.split()).rstrip(" ?!.。？！"))
        self.phrases: Sequence[str] = [phrase for phrase in phrases if phrase]
        """Texts that rank a note first: quoted ones, else the whole query."""

    def __bool__(self) -> bool:
        return bool(self.words)

    @cached_property
    def phrase_needles(self) -> Sequence[tuple[Needle, ...]]:
        """The needles of each quoted text, as alternatives."""
        return [_needles(phrase) for phrase in self.quoted]

    def passage(self, text: str, weights: Sequence[float]) -> Passage:
        """Return the passage of a note that holds most of the query, by the weights of its words.

        If the words are only in the note's name or in names of properties, it is the first line of
        its text.
        """
        return _Passages(self, text, weights).best()


class _Passages:
    """The lines of a text and the words of a query in them."""

    def __init__(self, query: WordQuery, text: str, weights: Sequence[float]) -> None:
        self._lines = text.split("\n")
        self._starts: list[int] = []
        at = 0
        for line in self._lines:
            self._starts.append(at)
            at += len(line) + 1
        self._body = 0
        if text.startswith(("---", "\ufeff---")):
            # Imported here, because a search that finds nothing should not wait for it.
            from obsidian_agent.vault.frontmatter.properties import find_frontmatter

            front = find_frontmatter(text)
            self._body = 0 if front is None else self._line_at(front.body_start - 1) + 1
        self._weights = weights
        self._hits: dict[int, list[tuple[int, int, int, float]]] = {}
        folded = text.casefold()
        origin = None
        if len(folded) != len(text):
            # Folding can lengthen a text: ß is ss.
            origin = [index for index, char in enumerate(text) for _ in char.casefold()]
        for number, word in enumerate(query.words):
            for pattern, share in ((word.exact, 1.0), (word.form, FORM)):
                for match in pattern.finditer(folded) if pattern is not None else ():
                    start, end = match.start(), match.end()
                    if origin is not None:
                        start, end = origin[start], origin[end - 1] + 1
                    row = self._line_at(start)
                    offset = start - self._starts[row]
                    self._hits.setdefault(row, []).append(
                        (offset, offset + end - start, number, share)
                    )

    def best(self) -> Passage:
        """Return the best passage."""
        scores = {
            row: score for row, hits in self._hits.items() if (score := self._score(row, hits))
        }
        if not scores:
            rows = range(self._body, len(self._lines))
            row = next((row for row in rows if self._lines[row].strip()), 0)
            return self._passage(row, 0, 0)
        row = max(scores, key=lambda row: (round(scores[row], 6), -row))
        start, end = self._window(self._hits[row])
        return self._passage(row, start, end)

    def _passage(self, row: int, start: int, end: int) -> Passage:
        text = self._lines[row].rstrip("\r")
        return Passage(
            row + 1, text, min(start, len(text)), min(end, len(text)), self._heading(row)
        )

    def _score(self, row: int, hits: Sequence[tuple[int, int, int, float]]) -> float:
        if row < self._body:
            if _BARE_KEY.match(self._lines[row]):
                return 0.0
            return _PROPERTY * self._sum(_shares(hits))
        shares = _shares(hits)
        score = self._sum(shares)
        above = self._heading_row(row)
        if above == row:
            return _TITLE * score
        if above is not None:
            from_heading = _shares(self._hits.get(above, ()))
            score += _HEADING * self._sum(
                {number: share for number, share in from_heading.items() if number not in shares}
            )
        return score

    def _sum(self, shares: dict[int, float]) -> float:
        return sum(self._weights[number] * share for number, share in shares.items())

    def _window(self, hits: Sequence[tuple[int, int, int, float]]) -> tuple[int, int]:
        """Return the part of a line, of limited length, with most of the query."""
        ordered = sorted(hits)
        best, window = -1.0, (0, 0)
        for position, (start, _, _, _) in enumerate(ordered):
            inside = [hit for hit in ordered[position : position + 50] if hit[1] <= start + PASSAGE]
            score = self._sum(_shares(inside))
            if score > best + 1e-9:
                best, window = score, (start, max((hit[1] for hit in inside), default=start))
        return window

    def _line_at(self, offset: int) -> int:
        return bisect_right(self._starts, offset) - 1

    @cached_property
    def _heading_rows(self) -> list[int]:
        return [
            row
            for row, line in enumerate(self._lines)
            if row >= self._body and line.startswith("#") and HEADING.match(line)
        ]

    def _heading_row(self, row: int) -> int | None:
        position = bisect_right(self._heading_rows, row) - 1
        return self._heading_rows[position] if position >= 0 else None

    def _heading(self, row: int) -> str:
        above = self._heading_row(row)
        match = HEADING.match(self._lines[above].rstrip("\r")) if above is not None else None
        return match[1].strip() if match is not None else ""


def query_words(query: str) -> list[str]:
    """Return the distinct words of a query that count, case-folded."""
    return [word.text for word in WordQuery(query).words]


def headings_of(text: str) -> list[str]:
    """Return the headings of a text without their marks."""
    return _HEADINGS.findall(f"\n{text}")


def words_of(folded: str) -> Iterator[str]:
    """Yield the words of a folded text that a word of a query can match, as often as they occur.

    In scripts without spaces these are every two neighbouring characters, and the last one.
    """
    for run in _WORD.findall(folded):
        if _IN_JOINED.match(run):
            for at in range(len(run)):
                yield run[at : at + 2]
        else:
            yield run[:MAX_LENGTH]


def _shares(hits: Sequence[tuple[int, int, int, float]]) -> dict[int, float]:
    shares: dict[int, float] = {}
    for _, _, number, share in hits:
        shares[number] = max(share, shares.get(number, 0.0))
    return shares


def _words(folded: str) -> list[str]:
    words = []
    for run in _WORD.findall(folded):
        if not _IN_JOINED.match(run) or len(run) <= 2:
            words.append(run[:MAX_LENGTH])
        else:
            words += [run[at : at + 2] for at in range(len(run) - 1)]
    return words


def _query_word(word: str) -> QueryWord:
    escaped = re.escape(word)
    if _IN_JOINED.match(word):
        return QueryWord(
            text=word, stem=None, exact=re.compile(escaped), form=None, needles=_needles(word)
        )
    # Each pattern starts with plain text, because `re` skips to that quickly.
    exact = re.compile(rf"{escaped}(?<!\w{escaped})")
    stem = _stem(word)
    if stem is None:
        return QueryWord(text=word, stem=None, exact=exact, form=None, needles=_needles(word))
    escaped = re.escape(stem)
    form = re.compile(rf"{escaped}(?<!\w{escaped})\w{{0,{MAX_FORM}}}(?!\w)")
    return QueryWord(text=word, stem=stem, exact=exact, form=form, needles=_needles(stem))


def _stem(word: str) -> str | None:
    """Return a word without its ending, or None if it has none or is short."""
    for ending in ENDINGS:
        if len(word) - len(ending) >= MIN_STEM and word.endswith(ending):
            return word[: -len(ending)]
    return None


def _needles(folded: str) -> tuple[Needle, ...]:
    """Return alternative needles for a folded text, none if every note must be read."""
    needle = folded_needle(folded)
    if needle is not None and (folded.isascii() or not needle.lower):
        return (needle,)
    if needle is not None and len(needle.data.strip()) >= _MIN_RUN:
        return (needle,)
    # Lower case works on ASCII only: other letters are searched in the spellings that people use.
    spellings = dict.fromkeys((folded, folded.capitalize(), folded.upper(), folded.title()))
    needles = [exact_needle(spelling) for spelling in spellings]
    return tuple(needle for needle in needles if needle is not None)
