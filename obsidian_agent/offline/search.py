"""A search for recipes by sentence: BM25 over titles, descriptions and examples.

Names of the vault and slots are replaced by their kinds. The index is a count of a few hundred
words. A word that no recipe uses counts as its synonyms (`vocabulary.json`), or as the most similar
word. Names of the vault and quoted texts fill the form.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from msgspec import Struct, field

from obsidian_agent.expression import unicode_expression
from obsidian_agent.offline.filling import Filling, FolderRoles
from obsidian_agent.offline.names import Surroundings
from obsidian_agent.offline.note_set import ACTIVE, SLOTS
from obsidian_agent.offline.parts import END, Parts, is_within
from obsidian_agent.offline.recipe import MAX_SUGGESTIONS, SLOT, Recipe, packaged
from obsidian_agent.offline.sentence import (
    FUNCTION_WORDS,
    JOINED,
    Sentence,
    SentenceWord,
    Stretch,
    beginning,
    folded,
    is_function_word,
    meanings,
    stem,
    tokens,
    vocabulary,
    word_before,
    words,
)

_ASSIGNED: Final = unicode_expression(r":\s+[\p{L}\p{N}]")
_PLAIN_WORD: Final = unicode_expression(r"[\p{L}\p{N}]+")
# The usual constants of BM25: the saturation of repeated words, and the penalty for long texts.
_K1: Final = 1.2
_B: Final = 0.6
_TITLE: Final = 2
"""The weight of words in a title."""
_SYNONYM: Final = 0.8
"""The weight of a synonym."""
_SIMILAR: Final = 0.7
"""The weight of a word with a similar spelling."""
_SIMILARITY: Final = 85
"""The similarity, in percent, of a misspelled word to one of the vocabulary."""
_KIND: Final = 0.5
"""The weight of a possible kind: a text may be a new name, a day a condition or a value."""
_CANDIDATES: Final = 16
"""Recipes whose forms are filled."""
_LACKING: Final = 0.9
"""The factor for each input without a value."""
_UNUSED: Final = 0.8
"""The factor for each name or text that no input uses."""
_GUESSED: Final = 0.97
"""The factor for each value from a phrase without quotes."""
_UNUSED_WORDS: Final = 0.93
"""The factor for each phrase that neither fills an input nor chooses the recipe."""
_COMPLETE: Final = 1.1
"""The factor for recipes that have the values of an example and use every word."""
_UNNAMED: Final = 0.3
"""The share of the score that depends on the words of the title."""
_UNMET: Final = 0.5
"""The factor for recipes that need a selection or an open note, if there is none."""
_ASSUMED: Final = 0.85
"""The factor for recipes that apply to the open note because the sentence names none."""
_ANSWER: Final = 1.4
"""The factor for recipes that answer, if the sentence is a question."""
_FIRST_VERB: Final = 1.3
"""The weight of the first word that a title begins with."""
_LATER: Final = 0.6
"""The weight of words in later clauses."""
_FAR_BEHIND: Final = 0.4
"""The share of the best score below which an action is not offered."""
_ASKING: Final = frozenset({"which", "what", "count"})
"""The senses of the first word of a question."""
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

_FILTERS: Final = (".folder", ".outside")
_FIELDS: Final = tuple(f".{field}" for field in SLOTS)

_TEXT: Final[Mapping[str, float]] = {
    "‹text›": 1,
    "‹folder›": _KIND,
    "‹tag›": _KIND,
    "‹value›": _KIND,
}
"""The possible kinds of a quoted text."""


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

    unused: Sequence[str] = ()
    """The parts of the sentence that neither choose the recipe nor are a value."""


class Menu:
    """Searchable recipes. `common` are their own words, for `Sentence`."""

    def __init__(self, recipes: Sequence[Recipe]) -> None:
        self.recipes = recipes
        self._counts = [Counter(_terms(recipe)) for recipe in self.recipes]
        used = Counter(term for counts in self._counts for term in counts)
        total = len(self.recipes)
        self._weights = {
            term: math.log(1 + (total - count + 0.5) / (count + 0.5))
            for term, count in used.items()
        }
        self._mean = sum(counts.total() for counts in self._counts) / max(total, 1)
        texts = (
            SLOT.sub(" ", text)
            for recipe in self.recipes
            for text in (recipe.title, *recipe.examples)
        )
        self.common = frozenset(
            word.casefold() for text in texts for word in _PLAIN_WORD.findall(text)
        )
        self._verbs = frozenset(words(recipe.title)[0] for recipe in self.recipes if recipe.title)
        self._roles = _folder_roles(self.recipes)

    def nearest(
        self, sentence: str, around: Surroundings, most: int = MAX_SUGGESTIONS
    ) -> list[RecipeSuggestion]:
        """Return the most likely recipes, best first: `most` of them, even if none is similar."""
        parsed = Sentence(beginning(sentence), around, self.common)
        parts = Parts.of(parsed)
        spoken = self._spoken(parts)
        kinds = [*_kinds(parsed), *_assigned(parts)]
        is_question = _asks(parts)
        meant = [*spoken, *kinds]
        selection = around.context.selection
        is_selected = selection is not None and bool(selection.text.strip())
        context = {"selection": is_selected, "activeFile": around.active_file is not None}
        unmet = {need for need, is_met in context.items() if not is_met}
        scores = [self._score(meant, counts) for counts in self._counts]
        first = [
            _FIRST.index(recipe.name) if recipe.name in _FIRST else len(_FIRST)
            for recipe in self.recipes
        ]
        order = sorted(
            range(len(scores)), key=lambda number: (-scores[number], first[number], number)
        )
        suggestions = []
        for number in order[: max(_CANDIDATES, most)]:
            recipe = self.recipes[number]
            filling = Filling(parts, recipe, self._roles[number])
            values = filling.values
            missing = recipe.missing(values)
            # The words of a value or a condition do not choose the action.
            read = [part for part in filling.phrases if part.text]
            own = self._spoken(parts, read) if read else spoken
            score = self._score([*own, *kinds], self._counts[number])
            score *= _LACKING ** len(missing) * _UNUSED ** len(filling.lost)
            score *= _GUESSED ** len(filling.guesses) * _UNUSED_WORDS ** len(filling.unused)
            score *= _UNMET if unmet.intersection(recipe.needs) else 1
            assumed = {name for name, value in recipe.defaults.items() if value == ACTIVE}
            score *= _ASSUMED if assumed - values.keys() else 1
            score *= _ANSWER if is_question and recipe.answer is not None else 1
            score *= 1 - _UNNAMED * (1 - self._mentioned_part(recipe, own, values))
            is_complete = not (missing or filling.lost or filling.unused)
            score *= _COMPLETE if is_complete and _fills_example(recipe, values) else 1
            suggestions.append(
                RecipeSuggestion(
                    recipe=recipe,
                    values=values,
                    missing=missing,
                    score=score,
                    worded=self._score(spoken, self._counts[number]) > 0,
                    complete=is_complete,
                    unused=filling.doubts,
                    guesses={
                        name: phrase.text
                        for name, phrase in filling.guesses.items()
                        if name in values
                    },
                )
            )
        return sorted(suggestions, key=lambda suggestion: -suggestion.score)[:most]

    @staticmethod
    def likely(suggestions: Sequence[RecipeSuggestion]) -> list[RecipeSuggestion]:
        """Return the suggestions without those far behind a first one that is complete."""
        first = suggestions[0] if suggestions else None
        if first is None or not first.complete or not first.worded:
            return list(suggestions)
        return [other for other in suggestions if other.score >= _FAR_BEHIND * first.score]

    def _spoken(self, parts: Parts, read: Sequence[Stretch] = ()) -> list[Mapping[str, float]]:
        """Return the terms of a sentence without names, days and the parts `read`.

        The first verb weighs more, and the words of later clauses weigh less.
        """
        bare, without = parts.parsed.bare, (*parts.parsed.names, *parts.parsed.days, *read)
        # “In the folder X” tells where, and names no action.
        labels = [
            token
            for token in parts.tokens
            if "folder" in token.senses and not _asks(parts)
            for match in parts.labelled_by(token)
            if is_function_word(word_before(bare, min(token.start, match.start)))
        ]
        without = (*without, *labels)
        spoken = [token for token in parts.tokens if not is_within(token, without)]
        weights = self._term_weights(spoken)
        verb = next(
            (one for one in spoken if not self._verbs.isdisjoint(weights.get(one.text, ()))), None
        )
        if verb is None:
            return list(weights.values())
        clause = END.search(bare, verb.end)
        end = clause.start() if clause else len(bare)
        main = {token.text for token in spoken if token.start < end}
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
        self,
        recipe: Recipe,
        spoken: Sequence[Mapping[str, float]],
        values: Mapping[str, Any],
    ) -> float:
        """Return how much a sentence mentions of a recipe's title or an example, from 0 to 1.

        Only examples whose inputs have values count.
        """
        mentioned_terms = {term for alternatives in spoken for term in alternatives}
        best = 0.0
        examples = (
            example
            for example in recipe.examples
            if all(slot[1] in values for slot in SLOT.finditer(example))
        )
        for text in (recipe.title, *examples):
            weights = {
                word: self._weights[word]
                for word in words(SLOT.sub(" ", text))
                if word not in FUNCTION_WORDS
            }
            mentioned = sum(weight for word, weight in weights.items() if word in mentioned_terms)
            best = max(best, mentioned / (sum(weights.values()) or 1))
        return best

    def ranked(self, text: str) -> list[tuple[float, Recipe]]:
        """Return all recipes with scores by words alone, without names of a vault."""
        spoken = list(self._term_weights(tokens(text)).values())
        scores = (self._score(spoken, counts) for counts in self._counts)
        return sorted(zip(scores, self.recipes, strict=True), key=lambda pair: -pair[0])

    def _term_weights(self, spoken: Iterable[SentenceWord]) -> dict[str, Mapping[str, float]]:
        """Return for each word the terms that it may mean, with weights."""
        weights: dict[str, Mapping[str, float]] = {}
        for word in dict.fromkeys(token.text for token in spoken if not token.is_small):
            own, known = stem(word), meanings(word) - FUNCTION_WORDS
            other = dict.fromkeys(known, _SYNONYM)
            if not known and JOINED.match(word):
                continue
            if not known and own not in self._weights:
                other = dict.fromkeys(self._similar_words(word, own), _SIMILAR)
            weights[word] = {**other, own: 1}
        return weights

    def _similar_words(self, word: str, own: str) -> Collection[str]:
        """Return the menu's words for the most similar spelling, in any language of the vocabulary.

        `own` is the stem of the word.
        """
        if len(own) < 4:
            return ()
        from rapidfuzz import fuzz, process

        terms = [term for term in self._weights if len(term) > 3]
        best = process.extractOne(own, terms, scorer=fuzz.ratio, score_cutoff=80)
        if best:
            return (str(best[0]),)
        known = [entry for entry in vocabulary() if len(entry) > 4]
        plain = folded(word)
        best = process.extractOne(plain, known, scorer=fuzz.ratio, score_cutoff=_SIMILARITY)
        return meanings(str(best[0])) - FUNCTION_WORDS if best else ()

    def _score(self, meant: Sequence[Mapping[str, float]], counts: Counter[str]) -> float:
        length = 1 - _B + _B * counts.total() / self._mean

        def worth(term: str) -> float:
            return self._weights[term] * counts[term] * (_K1 + 1) / (counts[term] + _K1 * length)

        return sum(
            max(
                (share * worth(term) for term, share in alternatives.items() if term in counts),
                default=0.0,
            )
            for alternatives in meant
        )


def _asks(parts: Parts) -> bool:
    """Return True if a sentence is a question."""
    asking = any(token.senses & _ASKING for token in parts.tokens[:1])
    return asking or parts.parsed.text.rstrip().endswith(("?", "？"))


def _folder_roles(recipes: Sequence[Recipe]) -> list[FolderRoles]:
    """Return the roles for each recipe: by its own examples first, then by those of others."""
    destinations = [_words_before(recipe, "folder") for recipe in recipes]
    all_destinations = frozenset().union(*destinations)
    all_filters = frozenset().union(*(_words_before(recipe, *_FILTERS) for recipe in recipes))
    roles: list[FolderRoles] = []
    for recipe, destination in zip(recipes, destinations, strict=True):
        own = _words_before(recipe, "notes", *_FIELDS)
        filters = own | (all_filters - all_destinations) if own else own
        elsewhere = all_destinations - all_filters
        roles.append(FolderRoles((destination | elsewhere) - own, filters - destination))
    return roles


def _words_before(recipe: Recipe, *kinds: str) -> frozenset[str]:
    """Return the words before the inputs of a kind, or fields of a description, in examples."""
    return frozenset(
        word
        for example in recipe.examples
        for slot in SLOT.finditer(example)
        if (f".{slot[2]}" if slot[2] else recipe.inputs[slot[1]].kind) in kinds
        if (word := word_before(SLOT.sub("!", example[: slot.start()]), len(example)))
    )


@cache
def packaged_menu() -> Menu:
    """Return the menu of the built-in recipes."""
    return Menu(packaged())


def _terms(recipe: Recipe) -> Iterator[str]:
    for text in (*[recipe.title] * _TITLE, recipe.description):
        yield from words(text)
    for text in recipe.examples:
        for match in SLOT.finditer(text):
            name, slot = match[1], match[2]
            yield _SIGNS.get(slot or recipe.inputs[name].kind, "‹text›")
        yield from words(SLOT.sub(" ", text))


def _fills_example(recipe: Recipe, values: Mapping[str, Any]) -> bool:
    """Return True if the values fill an example. Defaults alone may make a plan without effect."""
    slots = ({slot for slot, _ in SLOT.findall(example)} for example in recipe.examples)
    return any(names <= values.keys() for names in slots)


def _assigned(parts: Parts) -> Iterator[Mapping[str, float]]:
    """Yield the terms of a new property with its value: “reviewed: true”."""
    for token in parts.tokens:
        is_new = not is_within(token, parts.parsed.names) and not meanings(token.text)
        if is_new and _ASSIGNED.match(parts.parsed.bare, token.end):
            yield {"‹property›": 1}
            yield {"‹value›": 1}
            return


def _kinds(parsed: Sentence) -> Iterator[Mapping[str, float]]:
    """Yield the weighted terms for each kind of name, text or day in a sentence."""
    kinds: list[Mapping[str, float]] = [
        _TEXT for quote in parsed.quotes if not parsed.around.names.find(quote.text)
    ][:1]
    for match in parsed.names:
        kinds.append(dict.fromkeys((_SIGNS[name.kind] for name in match.names), 1))
        kinds += [{"‹property›": 1}] if match.bound else []
    kinds += [{"‹date›": _KIND} for _ in parsed.days[:1]]
    yield from (kind for number, kind in enumerate(kinds) if kind not in kinds[:number])
