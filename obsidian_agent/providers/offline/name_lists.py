"""Several names in one breath: "A, B and C", "Q1 to Q4 2022", "the 2021 and 2022 reports"."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, timedelta
from typing import Any

import regex

from obsidian_agent.providers.offline.lexicon import DETERMINERS, NOTE_NOUNS
from obsidian_agent.providers.offline.names import Closeness, NameIndex
from obsidian_agent.providers.offline.strict import Part
from obsidian_agent.providers.offline.tokens import Token

LONGEST_ITEM = 8
MOST_ITEMS = 30
_CHEAP = {Closeness.EXACT: 0.0, Closeness.STEMS: 0.1, Closeness.LOOSE: 0.3}
_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december")
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERED = regex.compile(r"(\D*)(\d{1,4})")
_THROUGH = frozenset(("to", "-", "–", "—", "until", "till", "through", "thru"))
_LONGEST_RANGE = 60

ReadItem = Callable[[int], Iterable[Part]]


def separators(tokens: Sequence[Token], start: int, words: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Where the next item of a list may begin, and the word that joins it: a comma ("") or one of `words`, or both."""
    at = start
    if at < len(tokens) and tokens[at].text == "," and tokens[at].kind == "mark":
        at += 1
        yield at, ""
    if at < len(tokens) and (tokens[at].lower in words or tokens[at].text == "&"):
        yield at + 1, "or" if tokens[at].lower == "or" else "and"


def listed(tokens: Sequence[Token], start: int, read: ReadItem, words: frozenset[str] = frozenset(("and", "or"))) -> Iterator[Part]:
    """Every list that begins at a token, one item being a list too; the value is (joining word, items)."""
    open_lists: list[tuple[int, str, tuple[Any, ...], float, str | None]] = [
        (part.end, "", (part.value,), part.cost, part.doubt) for part in read(start)
    ]
    while open_lists:
        end, joint, items, cost, doubt = open_lists.pop()
        yield Part(end, (joint, items), cost, doubt)
        if len(items) < MOST_ITEMS:
            for following, word in separators(tokens, end, words):
                for part in read(following):
                    open_lists.append((part.end, word or joint, (*items, part.value), cost + part.cost, doubt or part.doubt))


class NameLists:
    """Lists of notes by their names."""

    def __init__(self, text: str, tokens: Sequence[Token], index: NameIndex) -> None:
        self._text = text
        self._tokens = tokens
        self._index = index
        self._items: dict[int, list[Part]] = {}

    def at(self, start: int) -> Iterator[Part]:
        """The lists of at least two notes that begin at a token; the value is their paths, each once."""
        begin = start
        while begin < len(self._tokens) and (self._tokens[begin].lower in DETERMINERS or self._tokens[begin].lower in NOTE_NOUNS):
            begin += 1
        for part in listed(self._tokens, begin, self.item, frozenset(("and",))):
            joint, paths = part.value
            if len(set(paths)) > 1 and joint:
                yield Part(self._after_noun(part.end), tuple(dict.fromkeys(paths)), part.cost)
        yield from self._ranges(begin)
        yield from self._sharing(begin)

    def item(self, start: int) -> list[Part]:
        """The single notes that are named from a token on."""
        if start not in self._items:
            self._items[start] = [
                Part(end, found[0], found[1])
                for end in range(start + 1, min(start + LONGEST_ITEM, len(self._tokens)) + 1)
                if (found := self._named(self._raw(start, end), start, end)) is not None
            ]
        return self._items[start]

    def _named(self, name: str, start: int, end: int) -> tuple[str, float] | None:
        first, last = self._tokens[start], self._tokens[end - 1]
        if end - start == 1 and first.kind in ("quoted", "link"):
            name = first.text
        elif (
            first.kind != "word"
            or last.kind == "mark"
            or any(token.text == "," for token in self._tokens[start:end])
            or last.lower in DETERMINERS
            or first.lower in ("and", "to")
        ):
            return None
        found = self._index.find(name, ("note",))
        if found is None or len(found.paths) != 1:
            return None
        return found.paths[0], _CHEAP[found.closeness]

    def _ranges(self, start: int) -> Iterator[Part]:
        """ "Q1 to Q4 2022", "Chapter 1 to 5", "Chapter 1 to Chapter 5", "2026-03-01 to 2026-03-07"."""
        for first in range(start, min(start + 4, len(self._tokens))):
            through = first + 1
            if through >= len(self._tokens) or self._tokens[through].text.lower() not in _THROUGH:
                continue
            prefix = [token.text for token in self._tokens[start:first]]
            last = through + 1
            if [token.text.casefold() for token in self._tokens[last : last + len(prefix)]] == [text.casefold() for text in prefix]:
                last += len(prefix)
            if last >= len(self._tokens):
                continue
            names = between(self._tokens[first].text, self._tokens[last].text)
            for end in range(last + 1, min(last + 5, len(self._tokens)) + 1):
                suffix = [token.text for token in self._tokens[last + 1 : end]]
                whole = [" ".join([*prefix, name, *suffix]) for name in names]
                found = self._all(whole)
                if len(found) > 1:
                    missing = [name for name in whole if name not in found]
                    doubt = f"there is no note for {', '.join(missing)}" if missing else None
                    yield Part(self._after_noun(end), tuple(found.values()), 0.3 if missing else 0.0, doubt)

    def _sharing(self, start: int) -> Iterator[Part]:
        """ "Q1, Q2 and Q3 2022": words behind the last item belong to all of them."""
        heads: list[str] = []
        at = start
        while at < len(self._tokens) and self._tokens[at].kind == "word":
            heads.append(self._tokens[at].text)
            following = next(iter(sorted(separators(self._tokens, at + 1, frozenset(("and",))), reverse=True)), None)
            if following is None:
                break
            at = following[0]
        if len(heads) < 2:
            return
        for end in range(at + 2, min(at + 5, len(self._tokens)) + 1):
            suffix = [token.text for token in self._tokens[at + 1 : end]]
            found = self._all([" ".join([head, *suffix]) for head in heads])
            if len(found) == len(heads):
                yield Part(self._after_noun(end), tuple(found.values()))

    def _all(self, names: Sequence[str]) -> dict[str, str]:
        """The notes that the names have, by name."""
        found = {}
        for name in names:
            entry = self._index.find(name, ("note",))
            if entry is not None and len(entry.paths) == 1 and entry.closeness <= Closeness.STEMS:
                found[name] = entry.paths[0]
        return found

    def _after_noun(self, end: int) -> int:
        """Behind a noun that follows the names ("the Q1 and Q2 notes")."""
        return end + 1 if end < len(self._tokens) and self._tokens[end].lower in NOTE_NOUNS else end

    def _raw(self, start: int, end: int) -> str:
        return self._text[self._tokens[start].start : self._tokens[end - 1].end]


def between(first: str, last: str) -> list[str]:
    """The names from one to another: numbers, months, weekdays, days. Empty when they make no series."""
    one, other = _NUMBERED.fullmatch(first), _NUMBERED.fullmatch(last)
    if one and other and (one[1].casefold() == other[1].casefold() or not other[1]):
        low, high, width = int(one[2]), int(other[2]), len(one[2]) if one[2].startswith("0") else 0
        return [f"{one[1]}{number:0{width}}" for number in range(low, high + 1)] if 0 < high - low < _LONGEST_RANGE else []
    for series in (_MONTHS, _DAYS):
        places = [next((at for at, name in enumerate(series) if name == text.casefold()), None) for text in (first, last)]
        if places[0] is not None and places[1] is not None and places[0] < places[1]:
            return [name.capitalize() for name in series[places[0] : places[1] + 1]]
    try:
        begin, end = date.fromisoformat(first), date.fromisoformat(last)
    except ValueError:
        return []
    count = (end - begin).days
    return [(begin + timedelta(days=number)).isoformat() for number in range(count + 1)] if 0 < count < _LONGEST_RANGE else []
