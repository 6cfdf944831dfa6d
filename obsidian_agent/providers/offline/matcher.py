"""Which recipes an instruction may mean, with the values it gives for their parameters.

Sure is a reading that explains the whole instruction, fills every slot with something that exists or was plainly named, and has no
rival. Everything else is a candidate for a person to pick, or nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import regex
from rapidfuzz import process
from rapidfuzz.distance import DamerauLevenshtein

from obsidian_agent.providers.offline import phrases
from obsidian_agent.providers.offline.align import Aligner, Alignment, TokenTable, worth_trying
from obsidian_agent.providers.offline.lexicon import FILLERS, NEGATIONS, PREPOSITIONS, QUESTION_OPENERS
from obsidian_agent.providers.offline.names import NameIndex
from obsidian_agent.providers.offline.phrases import Slot
from obsidian_agent.providers.offline.readings import Reading, Surroundings
from obsidian_agent.providers.offline.recipe import SET_KINDS, Recipe, RecipeParameter
from obsidian_agent.providers.offline.resolve import Resolved, resolve
from obsidian_agent.providers.offline.riders import without_riders
from obsidian_agent.providers.offline.slots import SlotReader
from obsidian_agent.providers.offline.tokens import Token, tokenise

SURE_COST = 0.6
LIKELY_COST = 1.9
MARGIN = 0.15
MAX_CANDIDATES = 3
ASIDE_COST = 0.7
"""The doubt about an instruction that something stands beside which is not understood."""

_QUESTION_COST = 2.0
_CLOSE_COST = 2.3
_SURELY = SURE_COST + MARGIN + 0.05
"""A first look goes only as far as it must for a sure reading without a rival; most instructions need no second one."""

_POLITE = regex.compile(
    r"^\s*(?:hi|hey|hello|ok|okay|please|kindly)?[\s,]*(?:can|could|would|will) you(?: please| kindly)?\b", regex.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Match:
    """A recipe that the instruction may mean. `score` is 1 for no doubt; `left_out` is text of the instruction that it does not cover."""

    recipe: Recipe
    resolved: Resolved
    cost: float
    left_out: tuple[str, ...] = ()
    sure: bool = False
    texts: Mapping[str, str] = field(default_factory=dict)
    """What the instruction says for each slot."""

    @property
    def score(self) -> float:
        """Confidence from 0 to 1."""
        return round(math.exp(-self.cost), 3)


def beside(found: Match, asides: Sequence[str]) -> Match:
    """The same as a candidate only, since it does not cover what stands beside the instruction."""
    told = tuple(aside.strip() for aside in asides)
    return replace(found, cost=found.cost + ASIDE_COST, left_out=(*found.left_out, *told), sure=False)


def match(
    instruction: str,
    recipes: Sequence[Recipe],
    index: NameIndex,
    around: Surroundings,
    given: Mapping[str, Any] | None = None,
    *,
    hasty: bool = False,
) -> list[Match]:
    """Readings of the instruction, best first, at most `MAX_CANDIDATES` of them likely; the first may be sure. Empty: nothing is near.

    `given` are values that are known already, by parameter. A destructive recipe is never read through a slip of the pen. A `hasty` look
    finds what is sure, for half the work, and little else.
    """
    polite = _POLITE.match(instruction)
    text = without_riders(instruction)
    if polite is not None:
        text = " " * polite.end() + text[polite.end() :]
    tokens = tokenise(text)
    if not any(token.kind == "word" or token.text == "→" for token in tokens):
        return []
    question = polite is None and (
        next((token.lower for token in tokens if token.kind != "mark"), "") in QUESTION_OPENERS or tokens[-1].text == "?"
    )
    reader = SlotReader(text, tokens, index, around)
    typos = _typos(tokens, _vocabulary(tuple(recipe.spoken for recipe in recipes)))
    said = frozenset(token.stem or token.text for token in tokens if token.stem or token.kind == "mark").union(*typos.values())
    table = TokenTable(tokens, typos)
    judged: list[Match] = []
    for most in (_SURELY,) if hasty else (_SURELY, _CLOSE_COST):
        found: list[Match] = []
        for recipe in recipes:
            alignment = _align(recipe, table, said, reader, given or {}, most)
            if alignment is not None:
                found.extend(
                    _matches(
                        recipe,
                        alignment,
                        text,
                        tokens,
                        given or {},
                        index,
                        _QUESTION_COST if question and recipe.answer is None else 0.0,
                        around.active_file,
                    )
                )
        judged = _judge(sorted(found, key=lambda each: each.cost))
        if judged and judged[0].sure:
            break
    return judged


def _align(
    recipe: Recipe, table: TokenTable, said: frozenset[str], reader: SlotReader, given: Mapping[str, Any], most: float
) -> Alignment | None:
    """The best alignment with any phrase of the recipe."""

    def read(slot: Slot, start: int, end: int) -> Reading | None:
        return None if slot.name in given else reader.read(recipe.parameters[slot.name], slot.takes, start, end)

    def longest(slot: Slot) -> int:
        return reader.longest(recipe.parameters[slot.name].kind)

    aligner = Aligner(table, read, longest, given, most)
    best: Alignment | None = None
    for text in recipe.spoken:
        phrase = phrases.parse(text)
        if worth_trying(phrase, said, most):
            alignment = aligner.align(phrase)
            if alignment is not None and (best is None or alignment.cost < best.cost):
                best = alignment
    return best


def _matches(
    recipe: Recipe,
    alignment: Alignment,
    text: str,
    tokens: tuple[Token, ...],
    given: Mapping[str, Any],
    index: NameIndex,
    doubt: float,
    active: str | None,
) -> list[Match]:
    readings = dict(alignment.readings)
    cost = alignment.cost + doubt + (1.0 if recipe.destructive and alignment.typos else 0.0)
    cost += _whole_vault(recipe, readings) if recipe.answer is None else 0.0
    left_out = _left_out(alignment.unexplained, text, tokens)
    texts = {name: reading.text for name, reading in readings.items()}
    return [
        Match(recipe, resolved, cost + resolved.cost + 0.001 * number, left_out, texts=texts)
        for number, resolved in enumerate(resolve(recipe, readings, given, index, active))
    ]


def _whole_vault(recipe: Recipe, readings: Mapping[str, Reading]) -> float:
    """The doubt that every note of the vault is meant to be changed; none when the vault was named. To delete them all is never sure."""
    if any(recipe.parameters[name].kind == "within" for name in readings):
        return 0.0
    for name, reading in readings.items():
        value = reading.value
        if recipe.parameters[name].kind not in SET_KINDS or not isinstance(value, dict) or not value["where"].keys() <= {"not"}:
            continue
        said = reading.text.casefold()
        if recipe.destructive:
            return 1.0
        if value["kind"] != "attachments" and "vault" not in said and "where" not in said:
            return 0.3 if {"all", "every", "each"} & set(said.split()) else 0.8
    return 0.0


def _left_out(unexplained: tuple[int, ...], text: str, tokens: tuple[Token, ...]) -> tuple[str, ...]:
    """The uncovered words, neighbours joined."""
    runs: list[list[int]] = []
    for position in sorted(set(unexplained)):
        if runs and position == runs[-1][-1] + 1:
            runs[-1].append(position)
        else:
            runs.append([position])
    return tuple(text[tokens[run[0]].start : tokens[run[-1]].end] for run in runs)


def _judge(found: list[Match]) -> list[Match]:
    """The likely ones, the first marked sure when it is; when none is likely, the nearest one alone."""
    likely = [each for each in found if each.cost <= LIKELY_COST]
    if not likely:
        return [each for each in found[:1] if each.cost <= _CLOSE_COST]
    first = likely[0]
    rival = min((each.cost for each in likely[1:] if not _open(each) or _open(first)), default=math.inf)
    clear = first.cost <= SURE_COST and not first.left_out and rival - first.cost >= MARGIN
    if clear and not _open(first):
        first = Match(first.recipe, first.resolved, first.cost, first.left_out, True, first.texts)
    return [first, *likely[1:MAX_CANDIDATES]]


def _open(found: Match) -> bool:
    """Whether something must be chosen or given before it can be done."""
    return bool(found.resolved.missing or found.resolved.doubts)


@lru_cache(maxsize=16)
def _vocabulary(texts: tuple[tuple[str, ...], ...]) -> frozenset[str]:
    """All words that the phrases know, as stems."""
    return frozenset().union(*(phrases.words_in(segment) for each in texts for text in each for segment in phrases.parse(text).segments))


def _typos(tokens: tuple[Token, ...], vocabulary: frozenset[str]) -> dict[int, frozenset[str]]:
    """For words that are no known ones: the known words that differ by a slip (one edit, two in long words; the first letter holds)."""
    found: dict[int, frozenset[str]] = {}
    for position, token in enumerate(tokens):
        stem = token.stem
        if len(stem) < 4 or stem in vocabulary or token.lower in FILLERS | NEGATIONS | PREPOSITIONS:
            continue
        allowed = 1 if len(stem) < 8 else 2
        close = process.extract(stem, vocabulary, scorer=DamerauLevenshtein.distance, score_cutoff=allowed, limit=5)
        words = frozenset(word for word, _, _ in close if len(word) >= 4 and word[0] == stem[0])
        if words:
            found[position] = words
    return found


__all__ = ["Match", "RecipeParameter", "match"]
