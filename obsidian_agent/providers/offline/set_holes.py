"""What may stand in the holes of a modifier's phrase ({folders}, {tags}, {property}, {values}, {span}, …), read against the vault."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal, assert_never

import regex

from obsidian_agent.providers.offline import compound_holes, dates, name_slots, property_holes, type_nouns, word_slots
from obsidian_agent.providers.offline.ground import NO_TEXT, Ground
from obsidian_agent.providers.offline.lexicon import word_set
from obsidian_agent.providers.offline.name_lists import listed
from obsidian_agent.providers.offline.names import NameIndex, names_out_of_bounds
from obsidian_agent.providers.offline.readings import Surroundings
from obsidian_agent.providers.offline.set_modifiers import Where
from obsidian_agent.providers.offline.stretch import Stretch
from obsidian_agent.providers.offline.strict import Part, Walked
from obsidian_agent.providers.offline.tokens import Token

LONGEST_NAME = 8
"""Tokens of a bare name at most."""

_LONGEST_TEXT = 6
_NUMBER = regex.compile(r"-?\d{1,15}(?:\.\d{1,10})?")
_YEAR = regex.compile(r"(?:19|20)\d\d")
_YEARS = word_set("year published released publication pubyear jahr année año anno")
_UNITS = word_set(
    "minutes minute min mins hours hour h days weeks months years pages stars points euros euro eur usd dollars € $ percent % kg g km m minuten stunden seiten sterne"
)
_JOINED = frozenset(("and", "or", "both", "either"))

ReadWords = Callable[[Stretch], Part | None]


class SetHoles:
    """Reads holes in one instruction; what was read from a token on is kept."""

    def __init__(self, text: str, tokens: tuple[Token, ...], index: NameIndex, around: Surroundings) -> None:
        self.tokens = tokens
        self.index = index
        self._text = text
        self._around = around
        self._kept: dict[tuple[str, int, str | None], list[Part]] = {}

    def words(self, start: int, end: int) -> Stretch:
        """Tokens `start` to `end` (exclusive)."""
        return Stretch(self._text, self.tokens, start, end)

    def each(self, start: int, longest: int, read: ReadWords) -> Iterator[Part]:
        """What `read` makes of the stretches of at most `longest` tokens that begin at a token."""
        for end in range(start + 1, min(start + longest, len(self.tokens)) + 1):
            words = self.words(start, end)
            if not words.ragged and (part := read(words)) is not None:
                yield part

    def read(self, name: str, start: int, before: Walked) -> list[Part]:
        """What may stand in a hole from a token on, given what was read before it."""
        of = before.values.get("property") if name == "values" else None
        key = (name, start, of)
        if key not in self._kept:
            self._kept[key] = list(self._fresh(name, start, of))
        return self._kept[key]

    def _fresh(self, name: str, start: int, of: str | None) -> Iterator[Part]:
        if compound_holes.known(name):
            yield from compound_holes.read(name, start, self.tokens, self.index, self.read)
            return
        if name == "bracketed":
            yield from self._bracketed(start)
            return
        hole = _HOLES[name]
        ground = Ground(self.index, self._around, of)

        def items(at: int) -> list[Part]:
            return list(self.each(at, hole.longest, lambda words: hole.read(words, ground)))

        match hole.holds:
            case "one":
                yield from items(start)
            case "list":
                yield from listed(self.tokens, start, items)
            case "items":
                yield from (Part(part.end, part.value[1], part.cost, part.doubt) for part in listed(self.tokens, start, items))
            case _:
                assert_never(hole.holds)

    def _bracketed(self, start: int) -> Iterator[Part]:
        """A property in brackets: "(dauer)", "(property rating)"."""
        if self.tokens[start].text != "(":
            return
        for end in range(start + 2, min(start + 6, len(self.tokens))):
            if self.tokens[end].text == ")":
                inner = self.words(start + 1, end).trimmed(("the", "property", "field", "by", "see", "as"), ("property", "field"))
                found = None if inner.ragged else property_holes.named(inner, Ground(self.index, self._around, None))
                if found is not None:
                    yield Part(end + 1, found.value)
                return


def _folder(words: Stretch, ground: Ground) -> Part | None:
    reading = name_slots.folder(words, ground.index, ground.around, existing=True, free=False)
    if reading is None or reading.issue in ("unknown", "inactive") or reading.value == "" or names_out_of_bounds(reading.text) is not None:
        return None
    if reading.issue == "ambiguous":
        doubt = f"“{reading.text}” may be {' or '.join(reading.choices[:3])}"
        return Part(words.end, reading.choices[0], reading.cost + 0.3, doubt)
    return Part(words.end, reading.value, reading.cost)


def _tag(words: Stretch, ground: Ground, *, marked: bool = False) -> Part | None:
    if marked and words.last.kind != "tag":
        return None
    reading = word_slots.tag(words, free=True)
    if reading is None:
        return None
    known = ground.index.tag(reading.value)
    if known is not None:
        return Part(words.end, known)
    plain = len(words) == 1 and words.last.lower not in NO_TEXT
    if words.last.kind == "tag" or words.quoted is not None or plain:
        return Part(words.end, reading.value, 0.3, f"no note has the tag #{reading.value}")
    return None


def _note(words: Stretch, ground: Ground) -> Part | None:
    reading = name_slots.note(words, ground.index, ground.around)
    if reading is None or reading.value is None or reading.issue is not None:
        return None
    return Part(words.end, reading.value, reading.cost)


def _span(words: Stretch, ground: Ground) -> Part | None:
    span = dates.parse(words.raw, ground.around.today)
    return Part(words.end, span) if span is not None else None


def _before(words: Stretch, ground: Ground) -> Part | None:
    said = words.spoken.removeprefix("is ").removeprefix("are ")
    if {"before", "until"} & set(
        words.lowers[:2] if words.first.lower in ("from", "dated", "created") else words.lowers[:1]
    ) or dates.parse(said.removeprefix("older than "), ground.around.today):
        return None
    cutoff = dates.parse_cutoff(words.raw, ground.around.today)
    return Part(words.end, cutoff.isoformat()) if cutoff is not None else None


def _said(words: Stretch, ground: Ground) -> Part | None:
    """A text, in quotes or bare."""
    if words.quoted is not None:
        return Part(words.end, words.quoted)
    if not all(token.kind in ("word", "tag") or token.text in "-'’&+" for token in words) or words.first.lower in NO_TEXT:
        return None
    if words.last.lower in NO_TEXT:
        return None
    return Part(words.end, words.raw, 0.02 * len(words) + 0.15 * sum(token.lower in NO_TEXT for token in words))


def _one_text(words: Stretch, ground: Ground) -> Part | None:
    """A text without "and" and "or", which join it to others."""
    return None if _JOINED & set(words.lowers) else _said(words, ground)


def _meant(words: Stretch, ground: Ground, read: Callable[[str, NameIndex], Iterator[Where]]) -> Part | None:
    """What a word stands for in this vault."""
    if words.quoted is None and (not words.plain or words.last.lower in NO_TEXT):
        return None
    meanings = list(read(words.quoted or words.raw, ground.index))
    return Part(words.end, type_nouns.one_of(meanings)) if meanings else None


def _day(words: Stretch, ground: Ground) -> Part | None:
    span = dates.parse(words.raw, ground.around.today)
    return Part(words.end, span) if span is not None and span.day is not None else None


def _yearly(words: Stretch, ground: Ground) -> Part | None:
    """A year by a property that holds years, or as days."""
    found = _year(words, ground)
    if found is None:
        return None
    text, span = found.value
    meanings = [{"property": {name: value}} for name, value in ground.index.valued(text) if name.casefold() in _YEARS]
    dated = {"datedAfter": span.start.isoformat(), "datedBefore": span.end.isoformat()}
    return Part(words.end, type_nouns.one_of([*meanings, dated])) if meanings else None


def _number(words: Stretch, ground: Ground) -> Part | None:
    text = words.first.text
    if len(words) == 2 and words.last.lower not in _UNITS:
        return None
    return Part(words.end, float(text) if "." in text else int(text)) if _NUMBER.fullmatch(text) else None


def _year(words: Stretch, ground: Ground) -> Part | None:
    span = dates.parse(words.raw, ground.around.today) if _YEAR.fullmatch(words.first.text) else None
    return Part(words.end, (words.first.text, span)) if span is not None else None


@dataclass(frozen=True, slots=True)
class _Hole:
    """How a hole is read: stretches of at most `longest` tokens, one of them, a list of them (joining word, items), or a list's items alone."""

    longest: int
    read: Callable[[Stretch, Ground], Part | None]
    holds: Literal["one", "list", "items"] = "one"


_HOLES: Mapping[str, _Hole] = {
    "folders": _Hole(LONGEST_NAME, _folder, "items"),
    "tags": _Hole(2, _tag, "list"),
    "hashtags": _Hole(2, partial(_tag, marked=True), "list"),
    "values": _Hole(6, property_holes.value, "items"),
    "property": _Hole(4, property_holes.named),
    "note": _Hole(LONGEST_NAME, _note),
    "targets": _Hole(LONGEST_NAME, _note, "list"),
    "span": _Hole(8, _span),
    "before": _Hole(9, _before),
    "text": _Hole(_LONGEST_TEXT, _said),
    "texts": _Hole(_LONGEST_TEXT, _one_text, "list"),
    "state": _Hole(4, partial(_meant, read=type_nouns.states)),
    "kind": _Hole(4, partial(_meant, read=type_nouns.kinds)),
    "maker": _Hole(4, partial(_meant, read=type_nouns.makers)),
    "states": _Hole(4, partial(_meant, read=type_nouns.states), "list"),
    "unstate": _Hole(4, partial(_meant, read=type_nouns.negated)),
    "attributes": _Hole(4, partial(_meant, read=type_nouns.attributes), "list"),
    "yearly": _Hole(1, _yearly),
    "days": _Hole(4, _day, "list"),
    "valued": _Hole(4, property_holes.valued),
    "dueOn": _Hole(1, property_holes.due_on),
    "number": _Hole(2, _number),
    "other": _Hole(2, _number),
    "until": _Hole(8, _span),
    "spans": _Hole(4, _span, "list"),
    "measured": _Hole(1, property_holes.measured),
    "verb": _Hole(1, property_holes.verb),
    "checked": _Hole(1, property_holes.checked),
    "ties": _Hole(5, property_holes.tie, "list"),
    "untags": _Hole(2, _tag, "list"),
    "year": _Hole(1, _year),
}
