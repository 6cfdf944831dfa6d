"""Holes that are phrases themselves: "rating of 4 or more", "led by Anna", "Tom attended"; each gives the condition that it stands for.

What is read in their inner holes decides, with the vault's properties, whether they say anything: "led by Anna" does where a property
resembles "led" and has Anna as a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from obsidian_agent.providers.offline import bounds, phrases, relations, type_nouns
from obsidian_agent.providers.offline.bounds import Bounds
from obsidian_agent.providers.offline.dates import one_day
from obsidian_agent.providers.offline.lexicon import word_set
from obsidian_agent.providers.offline.names import NameIndex
from obsidian_agent.providers.offline.phrases import Node
from obsidian_agent.providers.offline.relations import Where
from obsidian_agent.providers.offline.set_modifiers import either
from obsidian_agent.providers.offline.strict import Part, ReadHole, Walked, walk
from obsidian_agent.providers.offline.tokens import Token

Values = Mapping[str, Any]
Make = Callable[[Values, NameIndex], Any]

_MAKING = word_set("written made created directed recorded published authored composed wrote made hosted presented")
_ATTENDING = word_set("attended attend attends joined visited participated")
_COMPARING = word_set(
    "over under above below more less fewer at up between exceeding beyond no not longer shorter heavier bigger smaller >  < ≥ ≤"
)
_LEADS = word_set(
    "before after since between from in on of during within for until up by no not prior earlier later older newer starting dated"
)
_NAMES = word_set("name title filename")
_MOST_VALUES = 200


@dataclass(frozen=True, slots=True)
class _Way:
    phrase: str
    make: Make
    leads: frozenset[str] = frozenset()
    """The words of which one must come first; none: any."""


def _limited(values: Values, index: NameIndex) -> Where | None:
    return bounds.of_property(values["property"], values["bounds"], index.held)


def _at_least(values: Values, index: NameIndex) -> Where | None:
    return bounds.of_property(values["property"], Bounds(low=values["number"]), index.held)


def _at_most(values: Values, index: NameIndex) -> Where | None:
    return bounds.of_property(values["property"], Bounds(high=values["number"]), index.held)


def _as(values: Values, index: NameIndex) -> Where | None:
    """Who is what: "Tom is the lead"."""
    return relations.tied(*values["ties"], names=[values["property"]])


def _rated(values: Values, index: NameIndex) -> Where | None:
    return bounds.of_property(values["measured"], values["bounds"], index.held)


def _one_of_two(values: Values, index: NameIndex) -> Where | None:
    """One of two numbers: "rated 4 or 5"."""
    name = values.get("measured") or values["property"]
    ways = [bounds.of_property(name, Bounds(values[each], values[each]), index.held) for each in ("number", "other")]
    found = [each for each in ways if each is not None]
    return either(found) if len(found) == len(ways) else None


def _when(values: Values, index: NameIndex) -> Where | None:
    """A note's own day within bounds; where notes have years instead, those."""
    found: Bounds = values["bounds"]
    if not found.dated:
        return None
    return type_nouns.one_of([*_years(found, index), bounds.dated(found)])


def _in_years(values: Values, index: NameIndex) -> Where | None:
    """The same where notes have years."""
    found: Bounds = values["bounds"]
    years = _years(found, index) if found.dated else []
    return type_nouns.one_of([*years, bounds.dated(found)]) if years else None


def _in_years_each(values: Values, index: NameIndex) -> Where | None:
    """Several years: "2020 or 2021"."""
    spans = values["spans"][1]
    ways = [_years(Bounds(span, span), index) for span in spans] if len(spans) > 1 else []
    return type_nouns.one_of([either(list(each)) for each in zip(*ways, strict=False)]) if ways and all(ways) else None


def _years(found: Bounds, index: NameIndex) -> list[Where]:
    numbered = found.in_years()
    ways = [bounds.of_property(name, numbered, index.held) for name in index.held.years] if numbered is not None else []
    return [each for each in ways if each is not None]


def _any(values: Values, index: NameIndex) -> Where | None:
    return relations.tied(*values["ties"])


def _explained(values: Values, index: NameIndex) -> Where | None:
    return relations.tied(*values["ties"], names=[values["bracketed"]])


def _explained_bounds(values: Values, index: NameIndex) -> Where | None:
    return bounds.of_property(values["bracketed"], values["bounds"], index.held)


def _on_days(values: Values, index: NameIndex) -> Where | None:
    """Days of one month: "3 and 4 November"."""
    span = values["span"]
    if span.day is None:
        return None
    try:
        numbered = [span.day.replace(day=values[name]) for name in ("number", "other") if name in values]
    except (TypeError, ValueError):
        return None
    return either([bounds.dated(Bounds(day, day)) for day in (*map(one_day, numbered), span)])


def _subject(values: Values, index: NameIndex) -> Where | None:
    return relations.tied(*values["ties"], names=relations.names_for("subject", index))


def _by(values: Values, index: NameIndex) -> Where | None:
    """Who made something; where no property says that, who has to do with it."""
    return relations.tied(*values["ties"], names=relations.names_for("maker", index)) or relations.tied(*values["ties"])


def _done(values: Values, index: NameIndex) -> Where | None:
    verb = values["verb"]
    names: Sequence[str] = index.held.resembling(verb)
    if not names and verb in _MAKING:
        names = relations.names_for("maker", index) or ()
    if not names and verb in _ATTENDING:
        names = relations.names_for("presence", index) or ()
    return relations.tied(*values["ties"], names=names)


def _there(values: Values, index: NameIndex) -> Where | None:
    return relations.tied(*values["ties"], names=relations.names_for("presence", index))


def _spelt(begins: bool) -> Make:
    """Values that begin with a text, or hold it; the vault's own are listed."""

    def make(values: Values, index: NameIndex) -> Where | None:
        wanted = str(values["text"]).casefold()
        if values["property"].casefold() in _NAMES:
            return None
        held = index.names.properties.get(values["property"], {})
        fitting = [value for said, value in held.items() if (said.casefold().startswith(wanted) if begins else wanted in said.casefold())]
        return {"property": {values["property"]: fitting}} if 0 < len(fitting) <= _MOST_VALUES else None

    return make


_WAYS: Mapping[str, tuple[_Way, ...]] = {
    "limited": (
        _Way("{property} [is|are|was|were|value|=|:] {bounds}", _limited),
        _Way("{property} [of|is|are] [either] {number} or {other}", _one_of_two),
    ),
    "amount": (
        _Way("{bounds} {property}", _limited),
        _Way("{number} {property} (or|and) (more|over|above|up)", _at_least),
        _Way("{number} {property} (or|and) (less|fewer|under|below)", _at_most),
    ),
    "rated": (_Way("{measured} {bounds}", _rated), _Way("{measured} [either] {number} or {other}", _one_of_two)),
    "inYears": (_Way("{bounds}", _in_years, leads=_LEADS),),
    "inYearsEach": (_Way("{spans}", _in_years_each),),
    "compared": (_Way("{bounds} {property}", _limited, leads=_COMPARING),),
    "when": (_Way("{bounds}", _when, leads=_LEADS),),
    "explained": (
        _Way("[{verb}] {bounds} {bracketed}", _explained_bounds),
        _Way("{verb} [by|with|for|from|in|of|at|to] {ties} {bracketed}", _explained),
    ),
    "onDays": (_Way("{number} (and|or) {span}", _on_days), _Way("{number} , {other} [,] (and|or) {span}", _on_days)),
    "tied": (_Way("{ties}", _any),),
    "subject": (_Way("[the] {ties}", _subject),),
    "doneBy": (
        _Way("by [both|either] {ties}", _by),
        _Way("{verb} (by|to|with|for|in|at|from|on) [both|either] {ties}", _done),
    ),
    "doing": (
        _Way("{ties} [has|have|had|is|are|was|were] [all|both] {verb} [in|at|to]", _done),
        _Way("(did|do|does|has|have|had|is|are|was|were) {ties} [all|both] {verb} [in|at|to]", _done),
        _Way("(is|are|was|were) {ties} [all|both] (at|in|there|present|part of)", _there),
        _Way("{ties} [both|all] (was|were|is|are|has been|have been) (at|in|there|present|invited to|part of)", _there),
        _Way("{ties} (is|are|was|were) [the|a|an|their|its] {property}", _as),
        _Way("{ties} (took part|takes part|participated|participates|was present|were present) [in|at]", _there),
    ),
    "notDoing": (
        _Way("{ties} (did not|didn't|does not|doesn't|do not|don't|has not|hasn't|have not|haven't|never) {verb}", _done),
        _Way("{ties} (was not|wasn't|were not|weren't|is not|isn't) (at|in|there|present)", _there),
        _Way("{ties} (missed|misses|was missing at|was absent from)", _there),
    ),
    "spelt": (
        _Way("{property} (starts|start|begins|begin|starting|beginning) with {text}", _spelt(True)),
        _Way("[the] {property} [that] (contains|contain|containing|includes|include) {text}", _spelt(False)),
    ),
}  # fmt: skip


@cache
def _parsed(name: str) -> tuple[tuple[Node, _Way], ...]:
    return tuple((phrases.parse(way.phrase).segments[0], way) for way in _WAYS[name])


def known(name: str) -> bool:
    """Whether a hole is a phrase itself."""
    return name in _WAYS or name == "bounds"


def read(name: str, start: int, tokens: tuple[Token, ...], index: NameIndex, hole: ReadHole) -> Iterator[Part]:
    """What such a hole may be from a token on."""
    if name == "bounds":
        yield from bounds.read(start, tokens, hole)
        return
    for phrase, way in _parsed(name):
        if way.leads and (tokens[start].lower or tokens[start].text) not in way.leads:
            continue
        for walked in walk(phrase, tokens, Walked(start), hole):
            value = way.make(walked.values, index)
            if value is not None:
                yield Part(walked.end, value, walked.cost, next(iter(walked.doubts), None))
