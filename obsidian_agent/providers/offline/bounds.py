"""Amounts and days compared: "4 or more", "at least 20", "between 10 and 50", "before 2020", "since March"; and what they say of a property."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from obsidian_agent.providers.offline import phrases
from obsidian_agent.providers.offline.dates import Span
from obsidian_agent.providers.offline.phrases import Node
from obsidian_agent.providers.offline.property_index import PropertyIndex
from obsidian_agent.providers.offline.strict import Part, ReadHole, Walked, walk
from obsidian_agent.providers.offline.tokens import Token

Value = int | float | Span


@dataclass(frozen=True, slots=True)
class Bounds:
    """From `low` to `high`, both included unless `beyond` (after, above) or `short` (before, below) says otherwise; None: open there."""

    low: Value | None = None
    high: Value | None = None
    beyond: bool = False
    short: bool = False

    @property
    def dated(self) -> bool:
        """Whether the ends are days."""
        return isinstance(self.low if self.low is not None else self.high, Span)

    def days(self) -> tuple[str | None, str | None]:
        """The first day, and the one behind the last."""
        first = (self.low.end if self.beyond else self.low.start) if isinstance(self.low, Span) else None
        last = (self.high.start if self.short else self.high.end) if isinstance(self.high, Span) else None
        return (first.isoformat() if first else None), (last.isoformat() if last else None)

    def in_years(self) -> Bounds | None:
        """The same in numbers of years; None where an end is not the first or last day of one."""
        ends = [None if each is None else _whole_years(each) for each in (self.low, self.high)]
        low, high = ends
        if (self.low is not None and low is None) or (self.high is not None and high is None):
            return None
        return Bounds(
            low[1 if self.beyond else 0] if low else None, high[0 if self.short else 1] if high else None, self.beyond, self.short
        )


def of_property(name: str, bounds: Bounds, properties: PropertyIndex) -> dict[str, Any] | None:
    """A property within bounds, as a condition; None where such bounds say nothing of its values."""
    sort = properties.sort(name)
    if bounds.dated:
        if sort != "date":
            return None
        first, behind = bounds.days()
        ends: tuple[tuple[str, Any], ...] = (("atLeast", first), ("below", behind))
    else:
        if sort != "number":
            return None
        ends = (("above" if bounds.beyond else "atLeast", bounds.low), ("below" if bounds.short else "atMost", bounds.high))
    return {field: {name: end} for field, end in ends if end is not None} or None


def dated(bounds: Bounds) -> dict[str, Any]:
    """A note's own day within bounds, as a condition."""
    first, behind = bounds.days()
    return {field: day for field, day in (("datedAfter", first), ("datedBefore", behind)) if day is not None}


def _whole_years(end: Value) -> tuple[int, int] | None:
    """The first and the last year of a span of whole years."""
    if not isinstance(end, Span) or end.start is None or end.end is None:
        return None
    whole = (end.start.month, end.start.day) == (1, 1) == (end.end.month, end.end.day)
    return (end.start.year, end.end.year - 1) if whole else None


def _equal(values: Mapping[str, Any], name: str) -> Bounds:
    return Bounds(values[name], values[name])


def _both(values: Mapping[str, Any], name: str) -> Bounds:
    return Bounds(values[name], values["other"])


_LARGER = "(more|higher|above|better|up|greater|over|longer|bigger|larger|later|newer|after)"
_SMALLER = "(less|lower|below|worse|fewer|under|shorter|smaller|earlier|older|before)"
_ABOVE = "(above|over|beyond|exceeding|>|(more|greater|higher|better|bigger|larger|longer|later|newer|heavier) than|more expensive than|(after|past))"
_BELOW = "(below|under|<|(less|lower|fewer|smaller|worse|shorter|earlier|older|lighter|cheaper) than|(before|until|prior to))"
_LEAST = "(at least|(no|not) (less|fewer|lower) than|not (under|below)|minimum [of]|a minimum of|> =|≥)"
_MOST = "(at most|no more than|not (more|longer|higher) than|not (over|above)|no longer than|up to|maximum [of]|a maximum of|< =|≤)"

_TABLE: tuple[tuple[str, Callable[[Mapping[str, Any]], Bounds]], ...] = (
    ("[of|is|are|was|=|:|exactly] {number}", lambda values: _equal(values, "number")),
    (f"[of|is|are|from] {{number}} (or|and) {_LARGER}", lambda values: Bounds(low=values["number"])),
    ("[of|is] {number} +", lambda values: Bounds(low=values["number"])),
    (f"[of|is|are] {{number}} (or|and) {_SMALLER}", lambda values: Bounds(high=values["number"])),
    (f"[of|is|are] {_LEAST} {{number}}", lambda values: Bounds(low=values["number"])),
    (f"[of|is|are] {_MOST} {{number}}", lambda values: Bounds(high=values["number"])),
    (f"[of|is|are] {_ABOVE} {{number}}", lambda values: Bounds(low=values["number"], beyond=True)),
    (f"[of|is|are] {_BELOW} {{number}}", lambda values: Bounds(high=values["number"], short=True)),
    ("[of|is|are|somewhere] (between|from) {number} (and|to|-|–) {other}", lambda values: Bounds(values["number"], values["other"])),
    ("[on|in|of|is|during|within|from|for|dated|=|:] {span}", lambda values: _equal(values, "span")),
    (f"[from|in|of] {{span}} (or|and) {_LARGER}", lambda values: Bounds(low=values["span"])),
    (f"[from|in|of] {{span}} (or|and) {_SMALLER}", lambda values: Bounds(high=values["span"])),
    ("[from] (before|earlier than|prior to|until|older than) {span}", lambda values: Bounds(high=values["span"], short=True)),
    ("[from] (after|later than|newer than) {span}", lambda values: Bounds(low=values["span"], beyond=True)),
    ("(by|no later than|not later than|at the latest by|up to) [the end of] {span}", lambda values: Bounds(high=values["span"])),
    ("on or (after|later than) {span}", lambda values: Bounds(low=values["span"])),
    ("on or (before|earlier than) {span}", lambda values: Bounds(high=values["span"])),
    ("[from] (since|starting [in|on|from]) {span}", lambda values: Bounds(low=values["span"])),
    ("from {span} (on|onward|onwards)", lambda values: Bounds(low=values["span"])),
    ("(between|from) {span} (and|to|-|–) {until}", lambda values: Bounds(values["span"], values["until"])),
)


@cache
def _compared() -> tuple[tuple[Node, Callable[[Mapping[str, Any]], Bounds]], ...]:
    return tuple((phrases.parse(text).segments[0], made) for text, made in _TABLE)


def read(start: int, tokens: tuple[Token, ...], hole: ReadHole) -> Iterator[Part]:
    """The comparisons that begin at a token; `hole` reads {number} and {other}, {span} and {until}."""
    for phrase, made in _compared():
        for walked in walk(phrase, tokens, Walked(start), hole):
            bounds = made(walked.values)
            ends = (bounds.low, bounds.high)
            if all(each is not None for each in ends) and isinstance(ends[0], Span) != isinstance(ends[1], Span):
                continue
            yield Part(walked.end, bounds, walked.cost)
