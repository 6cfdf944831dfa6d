"""A search for recipes by sentence: the words and kinds of values that both have in common.

Each word counts by how few recipes have it. Names of the vault and slots are replaced by their
kinds, and a word also counts as its synonyms in `vocabulary.json`. The forms of the best recipes
are filled, and what they lack or leave unused counts against them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise, takewhile
from typing import Any, Final

from msgspec import Struct, field

from obsidian_agent.expression import unicode_expression
from obsidian_agent.offline.filling import REMOVALS, Filling
from obsidian_agent.offline.names import Surroundings
from obsidian_agent.offline.note_set import ACTIVE, NoteSet
from obsidian_agent.offline.recipe import MAX_SUGGESTIONS, SLOT, Recipe, packaged
from obsidian_agent.offline.sentence import Sentence, is_within, without_assurances
from obsidian_agent.offline.words import (
    END,
    FUNCTION_WORDS,
    JOINED,
    WORD,
    Stretch,
    Word,
    beginning,
    meanings,
    stem,
    tokens,
    words,
)

_ASSIGNED: Final = unicode_expression(r":\s+[\p{L}\p{N}]")
# The usual constants of BM25: the saturation of repeated words, and the penalty for long texts.
_K1: Final = 1.2
_B: Final = 0.6
_TITLE: Final = 2
"""The weight of words in a title."""
_SYNONYM: Final = 0.8
"""The weight of a synonym."""
_KIND: Final = 0.5
"""The weight of a possible kind: a text may be a new name, a day a condition or a value."""
_CANDIDATES: Final = 16
"""Recipes whose forms are filled."""
_LACKING: Final = 0.9
"""The factor for each input without a value, and for each part or phrase that no input uses."""
_GUESSED: Final = 0.97
"""The factor for each value from a phrase without quotes."""
_UNNAMED: Final = 0.3
"""The share of the score that depends on the words of the title."""
_UNMET: Final = 0.5
"""The factor for recipes that need a selection or an open note, if there is none."""
_ASSUMED: Final = 0.85
"""The factor for recipes that apply to the open note because the sentence names none."""
_TOO_WIDE: Final = 0.4
"""The factor for a change of all notes, if the sentence limits them by words that are not used."""
_ANSWER: Final = 1.4
"""The factor for recipes that answer, if the sentence is a question."""
_FIRST_VERB: Final = 1.3
"""The weight of the first word that a title begins with."""
_LATER: Final = 0.6
"""The weight of words in later clauses."""
_CLOSE: Final = 0.8
"""The share of the first score from which a complete suggestion with the same verb is first."""
_STATED: Final = 0.3
"""The factor for recipes that answer or remove, if the sentence states what shall be."""
_OF_TASK: Final = 2.5
"""The factor for a recipe whose values are those of a task in the vault."""
_FAR_BEHIND: Final = 0.4
"""The share of the best score below which an action is not offered."""
_FIRST: Final = ("new-note", "add-text", "find-notes", "recent-notes", "list-tags")
"""The most frequent actions, first among recipes with equal scores."""

_SIGNS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("note", "alias", "entry", "template", "notes", "file", "linksTo"), "‹note›"),
    **dict.fromkeys(("folder", "outside"), "‹folder›"),
    **dict.fromkeys(("tag", "tags"), "‹tag›"),
    **dict.fromkeys(("property", "properties"), "‹property›"),
    **dict.fromkeys(("date", "before", "since"), "‹date›"),
    "value": "‹value›",
    "number": "‹number›",
}
"""The terms for names of the vault and their slots; other slots and quoted texts are `‹text›`."""
_TEXT: Final = {"‹text›": 1, **dict.fromkeys(("‹folder›", "‹tag›", "‹value›"), _KIND)}
"""The possible kinds of a quoted text."""

Terms = Mapping[str, float]
"""The terms that a word or a name may mean, with weights."""

_GIVE_TERMS: Final[Terms] = {"set": 1, "add": 1}
_MOVE_TERMS: Final[Terms] = {"move": 1}
_BECOME_TERMS: Final[Terms] = {"set": 1, "chang": 1, "renam": 1}
"""The terms of the verb of a statement: “gets the tag X”, “should be in X”, “should be X”."""
_WHERE: Final = frozenset({"in", "to", "from"})
"""The senses of words beside a place."""
_NEEDED: Final[Mapping[str, frozenset[str]]] = {
    "vault.postponeTasks": frozenset({"task", "overdue", "all"}),
    "vault.renameProperty": frozenset({"renam", "nam", "name", "call", "property"}),
}
"""The senses of words without which a sentence means another action: to set a property."""


class RecipeSuggestion(Struct, frozen=True, kw_only=True):
    """A recipe that may match, with its values from the sentence and the names of missing ones."""

    recipe: Recipe
    values: Mapping[str, Any]
    missing: tuple[str, ...]
    score: float
    worded: bool = True
    """True if the recipe and the sentence share a word, not only kinds of names."""

    complete: bool = False
    """True if no value is missing and no word of the sentence is unused."""

    guesses: Mapping[str, str] = field(default_factory=dict)
    """The phrases without quotes that were read as values, by input."""

    assumed: str | None = None
    """The input that is the open note because the sentence names no notes."""

    unused: Sequence[str] = ()
    """The parts of the sentence that neither choose the recipe nor are a value."""


class Menu:
    """Searchable recipes. `common` are their own words, for `Sentence`."""

    def __init__(self, recipes: Sequence[Recipe]) -> None:
        self.recipes = recipes
        self._counts = [Counter(_terms(recipe)) for recipe in recipes]
        used = Counter(term for counts in self._counts for term in counts)
        self._weights = {
            term: math.log(1 + (len(recipes) - count + 0.5) / (count + 0.5))
            for term, count in used.items()
        }
        self._mean = sum(counts.total() for counts in self._counts) / max(len(recipes), 1)
        texts = (SLOT.sub(" ", text) for one in recipes for text in (one.title, *one.examples))
        self.common = frozenset(
            match[0].casefold() for text in texts for match in WORD.finditer(text)
        )
        self._verbs = frozenset(words(recipe.title)[0] for recipe in recipes if recipe.title)

    def nearest(
        self, sentence: str, around: Surroundings, most: int = MAX_SUGGESTIONS
    ) -> list[RecipeSuggestion]:
        """Return the most likely recipes, best first: `most` of them, even if none is similar."""
        parsed = Sentence(without_assurances(beginning(sentence)), around, self.common)
        spoken, kinds = self._spoken(parsed), list(_kinds(parsed))
        scores = [self._score([*spoken, *kinds], counts) for counts in self._counts]
        first = {name: number for number, name in enumerate(_FIRST, -len(_FIRST))}
        order = sorted(
            range(len(scores)),
            key=lambda number: (-scores[number], first.get(self.recipes[number].name, number)),
        )
        # A question is read before it is taken for a change.
        likely = self.recipes[order[0]] if any(scores) else None
        reads = parsed.asks and likely is not None and not _is_asked_for(parsed, likely)
        if reads:
            order.sort(key=lambda number: self.recipes[number].answer is None)
        suggestions = [
            self._suggestion(parsed, number, spoken, kinds)
            for number in order[: max(_CANDIDATES, most)]
        ]
        meant = [one for one in suggestions if not _is_unsaid(parsed, one)]
        meant.sort(key=lambda one: (reads and one.recipe.answer is None, -one.score))
        # Where another verb comes between, it is open what is meant: “put Soup away”.
        of_verb = takewhile(lambda one: _verb(one) == _verb(meant[0]), meant[1:])
        rivals = (one for one in of_verb if meant[0].missing and _is_equal(one, meant[0]))
        if (rival := next(rivals, None)) is not None:
            meant.remove(rival)
            meant.insert(0, rival)
        # Of actions that lack a value, one has another verb: “put X away” may also move it.
        others = (one for one in meant[most:] if _verb(one) != _verb(meant[0]))
        is_open = all(one.missing and _verb(one) == _verb(meant[0]) for one in meant[:most])
        if is_open and (other := next(others, None)) is not None:
            meant.insert(most - 1, other)
        return meant[:most]

    def _suggestion(
        self, parsed: Sentence, number: int, spoken: Sequence[Terms], kinds: Sequence[Terms]
    ) -> RecipeSuggestion:
        """Return a recipe with the values of a sentence."""
        recipe, counts, context = self.recipes[number], self._counts[number], parsed.around.context
        filling = Filling(parsed, recipe)
        values, missing, unused = filling.values, recipe.gaps(filling.values), filling.unused
        # The words of a value or a condition do not choose the action.
        own = self._spoken(parsed, filling.phrases) if filling.phrases else spoken
        score = self._score([*own, *kinds], counts)
        score *= _LACKING ** (len(missing) + len(filling.lost) + len(unused))
        score *= _GUESSED ** len(filling.guesses)
        score *= 1 - _UNNAMED * (1 - self._mentioned_part(recipe, own, values))
        is_selected = context.selection is not None and bool(context.selection.text.strip())
        is_open = parsed.around.active_file is not None
        lacks = {"selection": not is_selected, "activeFile": not is_open}
        assumed = {name for name, value in recipe.defaults.items() if value == ACTIVE}
        factors = {
            _UNMET: any(lacks[need] for need in recipe.needs),
            _ASSUMED: bool(assumed - values.keys()) or filling.assumed in recipe.missing({}),
            _ANSWER: recipe.answer is not None and parsed.asks,
            _OF_TASK: filling.is_known,
            _STATED: recipe.answer is not None and parsed.predicate is not None,
            _TOO_WIDE: filling.is_too_wide
            and any(
                spec.kind == "notes" and spec.optional and name not in values
                for name, spec in recipe.inputs.items()
            ),
        }
        return RecipeSuggestion(
            recipe=recipe,
            values=values,
            missing=missing,
            score=score * math.prod(factor for factor, holds in factors.items() if holds),
            worded=self._score(spoken, counts) > 0,
            complete=not (missing or filling.lost or unused),
            assumed=filling.assumed,
            unused=filling.doubts,
            guesses={
                name: phrase.text for name, phrase in filling.guesses.items() if name in values
            },
        )

    @staticmethod
    def likely(suggestions: Sequence[RecipeSuggestion]) -> list[RecipeSuggestion]:
        """Return the suggestions without those far behind a first one that is complete."""
        first = suggestions[0] if suggestions else None
        if first is None or not first.complete or not first.worded:
            return list(suggestions)
        return [other for other in suggestions if other.score >= _FAR_BEHIND * first.score]

    def ranked(self, text: str) -> list[tuple[float, Recipe]]:
        """Return all recipes with scores by words alone, without names of a vault."""
        spoken = list(_term_weights(tokens(text)).values())
        scores = (self._score(spoken, counts) for counts in self._counts)
        return sorted(zip(scores, self.recipes, strict=True), key=lambda pair: -pair[0])

    def _spoken(self, parsed: Sentence, read: Sequence[Stretch] = ()) -> list[Terms]:
        """Return the terms of a sentence without names, days and the parts `read`.

        The first verb weighs more, and the words of later clauses weigh less.
        """
        # “In the folder X” tells where, and names no action, unless it is asked what is there.
        is_order = not parsed.asks or any("could" in word.senses for word in parsed.tokens)
        labels = [
            word
            for word in parsed.tokens
            if "folder" in word.senses and is_order
            for match in parsed.labelled_by(word)
            if _is_place(parsed, min(word.start, match.start), max(word.end, match.end))
        ]
        # “Daily note” names a template, and also what to make.
        folder = parsed.around.context.notes.templates or "Templates"
        names = [
            match
            for match in parsed.names
            if not all(str(name.value).startswith(f"{folder}/") for name in match.names)
            or ((after := parsed.after(match.end)) is not None and "template" in after.senses)
        ]
        of_task = parsed.line.words if parsed.line is not None else ()
        if of_task:  # “done” may be a tag too
            names = [match for match in names if match.text.casefold() not in ("done", "due")]
        without = (*names, *parsed.days, *read, *labels, *of_task)
        spoken = [word for word in parsed.tokens if not is_within(word, without)]
        weights = _term_weights(spoken)
        if parsed.predicate is not None:
            weights[parsed.predicate.text] = _stated(parsed, parsed.predicate)
        if parsed.exchange is not None:
            weights["instead"] = {"replac" if parsed.exchange.property is None else "set": 1}
        if parsed.template is not None:
            weights["template"] = {"templat": 1}
        verb = next(
            (one for one in spoken if not self._verbs.isdisjoint(weights.get(one.text, ()))), None
        )
        if verb is None:
            return list(weights.values())
        clause = END.search(parsed.bare, verb.end)
        main = {word.text for word in spoken if clause is None or word.start < clause.start()}
        return [
            {
                term: weight
                * (1 if word in main else _LATER)
                * (_FIRST_VERB if word == verb.text and term in self._verbs else 1)
                for term, weight in terms.items()
            }
            for word, terms in weights.items()
        ]

    def _mentioned_part(
        self, recipe: Recipe, spoken: Sequence[Terms], values: Mapping[str, Any]
    ) -> float:
        """Return how much a sentence mentions of a recipe's title or an example, from 0 to 1.

        Only examples whose inputs have values count.
        """
        mentioned = {term for terms in spoken for term in terms}
        examples = (
            example
            for example in recipe.examples
            if all(slot[1] in values for slot in SLOT.finditer(example))
        )
        best = 0.0
        for text in (recipe.title, *examples):
            weights = {
                word: self._weights[word]
                for word in words(SLOT.sub(" ", text))
                if word not in FUNCTION_WORDS
            }
            shared = sum(weight for word, weight in weights.items() if word in mentioned)
            best = max(best, shared / (sum(weights.values()) or 1))
        return best

    def _score(self, meant: Sequence[Terms], counts: Counter[str]) -> float:
        length = _K1 * (1 - _B + _B * counts.total() / self._mean)

        def worth(term: str) -> float:
            return self._weights[term] * counts[term] * (_K1 + 1) / (counts[term] + length)

        return sum(
            max((share * worth(term) for term, share in terms.items() if term in counts), default=0)
            for terms in meant
        )


@cache
def packaged_menu() -> Menu:
    """Return the menu of the built-in recipes."""
    return Menu(packaged())


def _is_equal(one: RecipeSuggestion, other: RecipeSuggestion) -> bool:
    """Return True for a complete suggestion with about the score of another."""
    return one.complete and one.score >= _CLOSE * other.score


def _verb(suggestion: RecipeSuggestion) -> Sequence[str]:
    return words(suggestion.recipe.title)[:1]


def _is_asked_for(parsed: Sentence, recipe: Recipe) -> bool:
    """Return True if a question names the verb of an action: “Could you move X to Y?”."""
    verb = words(recipe.title)[0] if recipe.title else ""
    is_which = any(word.senses & {"which", "count"} for word in parsed.tokens[:1])
    return not is_which and any(
        verb in word.senses and not is_within(word, parsed.names) for word in parsed.tokens
    )


def _is_place(parsed: Sentence, start: int, end: int) -> bool:
    """Return True for a name that tells where, by the word before it or the particle behind it."""
    before, after = parsed.cue(start), parsed.after(end)
    if before is not None and (before.is_small or before.senses & _WHERE):
        return True
    return after is not None and after.start == end and bool(after.senses & _WHERE)


def _stated(parsed: Sentence, verb: Word) -> Terms:
    """Return what the verb of a statement means for what it is about."""
    behind = [word for word in parsed.tokens if word.start >= verb.start]
    if any(word.senses & {"get", "have"} for word in behind):
        return _GIVE_TERMS
    if "belong" in verb.senses:
        return _MOVE_TERMS
    name = next((match for match in parsed.names if match.start > verb.start), None)
    cue = parsed.cue(name.start) if name is not None else None
    is_place = name is not None and bool(name.of_kinds("folder"))
    is_place = is_place or any("folder" in word.senses for word in behind)
    return (
        _MOVE_TERMS if is_place and cue is not None and cue.senses & {"in", "to"} else _BECOME_TERMS
    )


def _is_unsaid(parsed: Sentence, suggestion: RecipeSuggestion) -> bool:
    """Return True for a removal, or a change of tasks or a name, that no word means.

    All tags are removed only if the sentence says that, or which note.
    """
    recipe, values = suggestion.recipe, suggestion.values
    for tool, needed in _NEEDED.items():
        if tool in recipe.tools and not any(word.senses & needed for word in parsed.tokens):
            return True
    if words(recipe.title)[0] in REMOVALS and not any(
        word.senses & REMOVALS and not is_within(word, parsed.names) for word in parsed.tokens
    ):
        return True
    lists = [name for name, spec in recipe.inputs.items() if spec.kind == "tags" and spec.optional]
    if "vault.removeTags" not in recipe.tools or not lists or values.keys() & set(lists):
        return False
    spoken = [word.senses for word in parsed.tokens if not word.is_small or "all" in word.senses]
    if any("all" in one and "tag" in other for one, other in pairwise(spoken)):
        return False
    notes = [value for value in values.values() if isinstance(value, NoteSet)]
    is_named = any(term.key == "note" for value in notes for term in value.terms)
    return not (is_named and any("tag" in senses for senses in spoken))


def _terms(recipe: Recipe) -> Iterator[str]:
    for text in (*[recipe.title] * _TITLE, recipe.description):
        yield from words(text)
    for text in recipe.examples:
        for slot in SLOT.finditer(text):
            yield _SIGNS.get(slot[2] or recipe.inputs[slot[1]].kind, "‹text›")
        yield from words(SLOT.sub(" ", text))


def _term_weights(spoken: Sequence[Word]) -> dict[str, Terms]:
    """Return for each word the terms that it may mean, with weights."""
    return {
        word.text: {**dict.fromkeys(word.senses - FUNCTION_WORDS, _SYNONYM), stem(word.text): 1}
        for word in spoken
        if not word.is_small and not (len(word.senses) == 1 and JOINED.match(word.text))
    }


def _kinds(parsed: Sentence) -> Iterator[Terms]:
    """Yield the terms for each kind of name, text or day in a sentence."""
    is_name = parsed.around.names.find
    kinds: list[Terms] = []
    kinds += [_TEXT for quote in parsed.quotes if not is_name(quote.text)][:1]
    for match in parsed.names:
        kinds.append(dict.fromkeys((_SIGNS[name.kind] for name in match.names), 1))
        kinds += [{"‹property›": 1}] if match.bound else []
    kinds += [{"‹date›": _KIND} for _ in parsed.days[:1]]
    yield from (kind for number, kind in enumerate(kinds) if kind not in kinds[:number])
    for word in parsed.tokens:  # a new property with its value: “reviewed: true”
        is_new = not is_within(word, parsed.names) and not meanings(word.text)
        if is_new and _ASSIGNED.match(parsed.bare, word.end):
            yield {"‹property›": 1}
            yield {"‹value›": 1}
            return
