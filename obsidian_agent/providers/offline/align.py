"""Alignment of an instruction with a phrase: the cheapest way to explain its tokens by the phrase's words and slots.

Costs count doubt: nothing for a word that fits, much for a word of the instruction that nothing explains. What is cheap enough is sure
(matcher.py), so an instruction that says more than the recipe does can never be taken for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache, reduce
from itertools import accumulate
from typing import TypeVar, assert_never

from obsidian_agent.providers.offline.lexicon import FILLERS, NEGATIONS, PREPOSITIONS
from obsidian_agent.providers.offline.phrases import Choice, Maybe, Needed, Node, Phrase, Sequence, Slot, Word, needed, slots_in
from obsidian_agent.providers.offline.readings import Reading
from obsidian_agent.providers.offline.tokens import Token

TYPO = 0.3
MISSING_SLOT = 0.6
VAGUE = 0.7
_WORDS_ABSENT = 0.5
_MUST_ABSENT = 2.5
_LONGEST_GAP = 8


@dataclass(frozen=True, slots=True)
class Alignment:
    """A way to explain tokens. `unexplained` are indexes of tokens with meaning that nothing took; `words` counts phrase words found."""

    cost: float = 0.0
    words: int = 0
    readings: tuple[tuple[str, Reading], ...] = ()
    unexplained: tuple[int, ...] = ()
    typos: int = 0
    missing: tuple[str, ...] = ()

    def plus(self, other: Alignment) -> Alignment:
        """Both, one after the other."""
        if other is NOTHING:
            return self
        if self is NOTHING:
            return other
        return Alignment(
            self.cost + other.cost,
            self.words + other.words,
            self.readings + other.readings,
            self.unexplained + other.unexplained,
            self.typos + other.typos,
            self.missing + other.missing,
        )


NOTHING = Alignment()
"""Nothing said, nothing doubted."""

Ends = dict[int, Alignment]
Key = TypeVar("Key")
ReadSlot = Callable[[Slot, int, int], Reading | None]


class TokenTable:
    """The tokens of an instruction, with what leaving them out costs and where words occur. Shared by all phrases that are tried."""

    def __init__(self, tokens: tuple[Token, ...], typos: Mapping[int, frozenset[str]]) -> None:
        self.tokens = tokens
        self._typos = typos
        self._prices = [skipping(token) for token in tokens]
        self._sums = [0.0, *accumulate(self._prices)]
        self._hits: dict[int, list[tuple[int, float]]] = {}

    def gap(self, start: int, end: int) -> Alignment:
        """What it costs to leave tokens `start` to `end` (exclusive) unexplained."""
        if start == end:
            return NOTHING
        cost = self._sums[end] - self._sums[start]
        left = tuple(position for position in range(start, end) if self._prices[position] >= 1) if cost >= 1 else ()
        return Alignment(cost=cost, unexplained=left)

    def gap_cost(self, start: int, end: int) -> float:
        """The cost alone."""
        return self._sums[end] - self._sums[start]

    def hits(self, word: Word) -> list[tuple[int, float]]:
        """Where a word of a phrase occurs, with the doubt of a slip."""
        key = id(word)  # equal words of all phrases are one object
        if key not in self._hits:
            found = ((position, self._doubt(word, position)) for position in range(len(self.tokens)))
            self._hits[key] = [(position, doubt) for position, doubt in found if doubt is not None]
        return self._hits[key]

    def _doubt(self, word: Word, position: int) -> float | None:
        token = self.tokens[position]
        if token.kind == "mark":
            return 0.0 if token.text == word.text else None
        if token.stem and token.stem in word.stems:
            return 0.0
        return TYPO if word.stems & self._typos.get(position, frozenset()) else None


class Aligner:
    """Aligns one instruction with the phrases of one recipe, whose slots `read` and `longest` know.

    Slots in `given` have a value already, so that leaving them out costs nothing. What costs more than `most` is not followed.
    """

    def __init__(
        self, table: TokenTable, read: ReadSlot, longest: Callable[[Slot], int], given: Collection[str] = (), most: float = math.inf
    ) -> None:
        self._most = most
        self._table = table
        self._tokens = table.tokens
        self._read = read
        self._longest = longest
        self._given = given
        self._kept: dict[tuple[int, int], Ends] = {}

    def align(self, phrase: Phrase) -> Alignment | None:
        """The cheapest alignment of all tokens with all segments of the phrase in any order, or None."""
        count = len(self._tokens)
        everything = (1 << len(phrase.segments)) - 1
        states: dict[tuple[int, int], Alignment] = {(0, 0): Alignment(cost=VAGUE) if phrase.vague else NOTHING}
        absent = [self._absent(segment) for segment in phrase.segments]
        best: Alignment | None = None
        for position in range(count + 1):
            for mask in range(everything + 1):
                state = states.get((position, mask))
                if state is None or (best is not None and state.cost >= best.cost):
                    continue
                for number, segment in enumerate(phrase.segments):
                    if not mask >> number & 1:
                        for end, part in self._run(segment, position).items():
                            _keep(states, (end, mask | 1 << number), state.plus(part), self._most)
                rest = [absent[number] for number in range(len(absent)) if not mask >> number & 1]
                cost = state.cost + self._table.gap_cost(position, count) + sum(each.cost for each in rest)
                if state.words and cost <= self._most and (best is None or cost < best.cost):
                    best = reduce(Alignment.plus, rest, state.plus(self._table.gap(position, count)))
        return best

    def _run(self, node: Node, start: int) -> Ends:
        key = (id(node), start)
        if key not in self._kept:
            self._kept[key] = self._fresh(node, start)
        return self._kept[key]

    def _fresh(self, node: Node, start: int) -> Ends:
        match node:
            case Word():
                return self._word(node, start)
            case Slot():
                return self._slot(node, start)
            case Sequence(parts):
                ends: Ends = {start: NOTHING}
                for part in parts:
                    following: Ends = {}
                    for position, state in ends.items():
                        for end, piece in self._run(part, position).items():
                            _keep(following, end, state.plus(piece), self._most)
                    ends = following
                return ends
            case Choice(options):
                ends = {}
                for option in options:
                    for end, piece in self._run(option, start).items():
                        _keep(ends, end, piece, self._most)
                return ends
            case Maybe(part):
                ends = {start: NOTHING}
                for end, piece in self._run(part, start).items():
                    if end > start:
                        _keep(ends, end, piece, self._most)
                return ends
            case _:
                assert_never(node)

    def _word(self, word: Word, start: int) -> Ends:
        ends: Ends = {} if word.must else {start: Alignment(cost=_weight(word))}
        for position, doubt in self._table.hits(word):
            if start <= position < start + _LONGEST_GAP and self._table.gap_cost(start, position) <= self._most:
                piece = Alignment(cost=doubt, words=1, typos=int(doubt > 0))
                _keep(ends, position + 1, self._table.gap(start, position).plus(piece) if position > start else piece, self._most)
        return ends

    def _slot(self, slot: Slot, start: int) -> Ends:
        ends: Ends = {}
        count = len(self._tokens)
        opening = start
        while opening < count and self._tokens[opening].kind == "mark":
            opening += 1
        for end in range(opening + 1, min(opening + self._longest(slot), count) + 1):
            reading = self._read(slot, opening, end)
            if reading is not None:
                _keep(ends, end, Alignment(cost=reading.cost, readings=((slot.name, reading),)), self._most)
        _keep(ends, start, NOTHING if slot.name in self._given else Alignment(cost=MISSING_SLOT, missing=(slot.name,)), self._most)
        return ends

    def _absent(self, segment: Node) -> Alignment:
        """The cost of a segment that the instruction does not have."""
        if isinstance(segment, Maybe):
            return NOTHING
        slots = tuple(slots_in(segment))
        missing = tuple(name for name in slots if name not in self._given)
        cost = MISSING_SLOT * len(missing) if slots else _words_absent(segment)
        return Alignment(cost=cost, missing=missing)


@dataclass(frozen=True, slots=True)
class _Outline:
    """What a segment wants: the stems for each of its words, those that tell something, and what leaving it out costs."""

    wanted: tuple[Needed, ...]
    telling: tuple[Needed, ...]
    absence: float
    counts: bool


@cache
def _outlines(phrase: Phrase) -> tuple[_Outline, ...]:
    return tuple(
        _Outline(
            wanted,
            tuple(each for each in wanted if not each.stems <= PREPOSITIONS),
            _cost_of_absence(segment),
            bool(wanted) or isinstance(segment, Maybe),
        )
        for segment, wanted in ((segment, needed(segment)) for segment in phrase.segments)
    )


def worth_trying(phrase: Phrase, said: Collection[str], most: float) -> bool:
    """Whether a phrase may fit when only these stems are said: enough of its telling words are, and what is missing does not cost too much.

    A part that lacks a word which must occur counts as left out; at least one part with words must be there.
    """
    telling = present = 0
    cost = VAGUE if phrase.vague else 0.0
    best = most + 1
    for outline in _outlines(phrase):
        missing = [each for each in outline.wanted if each.stems.isdisjoint(said)]
        absence = outline.absence
        presence = most + 1 if any(each.must for each in missing) else sum(0.35 if each.stems <= PREPOSITIONS else 1.3 for each in missing)
        telling += len(outline.telling)
        present += sum(each not in missing for each in outline.telling) if missing else len(outline.telling)
        cost += min(presence, absence)
        best = min(best, presence - min(presence, absence)) if outline.counts else best
    return cost + best <= most and (not telling or present * 2 > telling - 1)


def _cost_of_absence(segment: Node) -> float:
    if isinstance(segment, Maybe):
        return 0.0
    slots = tuple(slots_in(segment))
    return MISSING_SLOT * len(slots) if slots else _words_absent(segment)


def _words_absent(segment: Node) -> float:
    """What it costs to leave out a segment of words: much when one of them must occur."""
    return _MUST_ABSENT if any(each.must for each in needed(segment)) else _WORDS_ABSENT


def skipping(token: Token) -> float:
    """What it costs to leave a token of the instruction unexplained."""
    if token.kind == "mark":
        return 0.0
    if token.kind != "word" or token.lower in NEGATIONS:
        return 2.0
    if token.lower in FILLERS:
        return 0.03
    if token.lower == "also":
        return 0.2
    return 0.25 if token.lower in PREPOSITIONS else 1.0


def _weight(word: Word) -> float:
    return 0.35 if word.text in PREPOSITIONS else 1.3


def _keep(states: dict[Key, Alignment], key: Key, state: Alignment, most: float) -> None:
    if state.cost <= most and (key not in states or state.cost < states[key].cost):
        states[key] = state
