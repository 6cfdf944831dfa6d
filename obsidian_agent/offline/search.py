"""A search for recipes by sentence: BM25 over titles, descriptions and examples.

Names of the vault and slots are replaced by their kinds. The index is a count of a few hundred
words. A word that no recipe uses counts as its synonyms (`vocabulary.json`), or as the most similar
word. Names of the vault and quoted texts fill the form.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from obsidian_agent.dataclass import dataclass, replace
from obsidian_agent.expression import unicode_expression
from obsidian_agent.offline.names import Name, Surroundings, display_text
from obsidian_agent.offline.note_set import ACTIVE, InvalidValue, NoteSet, Term, without_templates
from obsidian_agent.offline.recipe import SLOT, Input, Kind, Recipe, packaged
from obsidian_agent.offline.sentence import (
    FUNCTION_WORDS,
    JOINED,
    WORD,
    NameMatch,
    Sentence,
    beginning,
    joined_words,
    meanings,
    stem,
    word_before,
    words,
)
from obsidian_agent.offline.values import read

MAX_SUGGESTIONS: Final = 3
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
_KIND: Final = 0.5
"""The weight of a possible kind: a text may be a new name, a day a condition or a value."""
_CANDIDATES: Final = 16
"""Recipes whose forms are filled."""
_LACKING: Final = 0.9
"""The factor for each input without a value."""
_UNUSED: Final = 0.8
"""The factor for each name or text that no input uses."""
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

_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("note", "template"), ("note", "alias")),
    "entry": ("note", "alias", "folder", "file"),
    **{kind: (kind,) for kind in ("folder", "tag", "property", "value")},
}
"""The kinds of names that an input accepts, by its kind."""
_NEW_KINDS: Final = frozenset({"newNote", "newName", "folder", "tag"})
"""The kinds of inputs that accept a new name."""
_TEXT_KINDS: Final = frozenset({"folder", "newNote", "newName", "value", "text", "list", "heading"})
"""The kinds of inputs that accept a quoted text."""
_TEXT: Final[Mapping[str, float]] = {
    "‹text›": 1,
    "‹folder›": _KIND,
    "‹tag›": _KIND,
    "‹value›": _KIND,
}
"""The possible kinds of a quoted text."""


@dataclass(frozen=True, slots=True)
class RecipeSuggestion:
    """A recipe that may match, with its values from the sentence and the names of missing ones."""

    recipe: Recipe
    values: Mapping[str, Any]
    missing: tuple[str, ...]
    score: float
    worded: bool = True
    """True if the recipe and the sentence share a word, not only kinds of names."""


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
        self._roles = _folder_roles(self.recipes)

    def nearest(
        self, sentence: str, around: Surroundings, most: int = MAX_SUGGESTIONS
    ) -> list[RecipeSuggestion]:
        """Return the most likely recipes, best first: `most` of them, even if none is similar."""
        parsed = Sentence(beginning(sentence), around, self.common)
        spoken = self._term_weights(_bare_words(parsed))
        meant = [*spoken, *_kinds(parsed)]
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
            kinds = {spec.kind for spec in recipe.inputs.values()}
            rest = _Rest.of(parsed, kinds, self._roles[number])
            values = rest.values(recipe)
            missing = recipe.missing(values)
            score = scores[number] * _LACKING ** len(missing) * _UNUSED ** len(rest)
            suggestions.append(
                RecipeSuggestion(
                    recipe, values, missing, score, self._score(spoken, self._counts[number]) > 0
                )
            )
        return sorted(suggestions, key=lambda suggestion: -suggestion.score)[:most]

    def ranked(self, text: str) -> list[tuple[float, Recipe]]:
        """Return all recipes with scores by words alone, without names of a vault."""
        spoken = self._term_weights(text)
        scores = (self._score(spoken, counts) for counts in self._counts)
        return sorted(zip(scores, self.recipes, strict=True), key=lambda pair: -pair[0])

    def _term_weights(self, text: str) -> list[Mapping[str, float]]:
        """Return for each word the terms that it may mean, with weights."""
        plain_words = [
            *dict.fromkeys(
                match[0].casefold() for match in WORD.finditer(text) if not JOINED.match(match[0])
            )
        ]
        spoken: list[Mapping[str, float]] = []
        for word in (*plain_words, *dict.fromkeys(joined_words(text))):
            own = stem(word)
            if own in FUNCTION_WORDS:
                continue
            other = dict.fromkeys(meanings(word), _SYNONYM)
            if not other and own not in self._weights and (near := self._similar_word(own)):
                other = {near: _SIMILAR}
            spoken.append({**other, own: 1})
        return spoken

    def _similar_word(self, word: str) -> str | None:
        """Return the menu's word with the most similar spelling, if any."""
        if len(word) < 4 or not word.isascii():
            return None
        from rapidfuzz import fuzz, process

        best = process.extractOne(
            word,
            [term for term in self._weights if len(term) > 3],
            scorer=fuzz.ratio,
            score_cutoff=80,
        )
        return str(best[0]) if best else None

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


@dataclass(frozen=True, slots=True)
class _FolderRoles:
    """The words before a folder that make it the destination, and those that make it a filter."""

    destination: frozenset[str] = frozenset()
    filter: frozenset[str] = frozenset()


def _folder_roles(recipes: Sequence[Recipe]) -> list[_FolderRoles]:
    """Return the roles for each recipe: by its own examples first, then by those of others."""
    destinations = [_words_before(recipe, _is_destination) for recipe in recipes]
    filters = [_words_before(recipe, _is_filter) for recipe in recipes]
    notes = [_words_before(recipe, _is_notes) for recipe in recipes]
    all_destinations = frozenset().union(*destinations)
    all_filters = frozenset().union(*filters)
    return [
        _FolderRoles(
            destination=(destination | (all_destinations - all_filters)) - own,
            filter=((own | (all_filters - all_destinations)) - destination) if own else frozenset(),
        )
        for destination, own in zip(destinations, notes, strict=True)
    ]


def _words_before(recipe: Recipe, counts: Callable[[Input, str | None], bool]) -> frozenset[str]:
    return frozenset(
        word
        for example in recipe.examples
        for slot in SLOT.finditer(example)
        if counts(recipe.inputs[slot[1]], slot[2])
        and (word := word_before(SLOT.sub("!", example[: slot.start()]), len(example)))
    )


def _is_destination(spec: Input, slot: str | None) -> bool:
    return spec.kind == "folder"


def _is_filter(spec: Input, slot: str | None) -> bool:
    return slot in ("folder", "outside")


def _is_notes(spec: Input, slot: str | None) -> bool:
    return spec.kind == "notes"


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


def _bare_words(parsed: Sentence) -> str:
    """Return the sentence with spaces in place of names and days."""
    text = parsed.bare
    for span in (*parsed.names, *parsed.days):
        text = f"{text[: span.start]}{' ' * (span.end - span.start)}{text[span.end :]}"
    return text


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


@dataclass(slots=True)
class _Rest:
    """The unused names, texts and days of a sentence."""

    around: Surroundings
    names: list[NameMatch]
    texts: list[str]
    days: list[str]
    destinations: Collection[int]
    """Positions of folder names that are destinations."""
    filters: Collection[int]
    """Positions of folder names that are filters."""

    @classmethod
    def of(cls, parsed: Sentence, kinds: Collection[Kind], roles: _FolderRoles) -> _Rest:
        """Return the parts for inputs of these kinds.

        Templates are included only for inputs that need one, or if their folder is mentioned.
        """
        folder = parsed.around.context.notes.templates or "Templates"
        named = any(
            name.value == folder or match.text.startswith(f"{folder}/")
            for match in parsed.names
            for name in match.names
        )
        names = list(parsed.names)
        if not named and "template" not in kinds:
            filtered = [
                replace(
                    match,
                    names=tuple(
                        name for name in match.names if not str(name.value).startswith(f"{folder}/")
                    ),
                )
                for match in names
            ]
            names = [match for match in filtered if match.names]
        # A quoted text in a condition is no text to write, and a day within a name is no day.
        owned = [match for match in parsed.names if match.bound or match.negated]
        texts = [
            quote.text
            for quote in parsed.quotes
            if not any(match.start <= quote.start < match.end for match in owned)
        ]
        days = [
            day.text
            for day in parsed.days
            if not any(match.start <= day.start < match.end for match in parsed.names)
        ]
        before = {match.start: word_before(parsed.bare, match.start) for match in names}
        return cls(
            around=parsed.around,
            names=_split_pair(names) if "value" in kinds else names,
            texts=texts,
            days=days,
            destinations={start for start, word in before.items() if word in roles.destination},
            filters={start for start, word in before.items() if word in roles.filter},
        )

    def __len__(self) -> int:
        named = [match.text for match in self.names if not match.new]
        return len(named) + len([text for text in self.texts if text not in named])

    def values(self, recipe: Recipe) -> dict[str, Any]:
        """Return the values of the inputs that are clear.

        An input for a folder is filled before a description of notes.
        """
        values: dict[str, Any] = {}
        for spec in sorted(
            recipe.inputs.values(), key=lambda spec: (spec.kind == "notes", bool(spec.of))
        ):
            value = self._value(spec, values)
            if value is not None:
                values[spec.name] = value
        return {name: values[name] for name in recipe.inputs if name in values}

    def _value(self, spec: Input, values: Mapping[str, Any]) -> Any:
        match spec.kind:
            case "date":
                return self.days.pop(0) if self.days else None
            case "notes":
                described = self._described()
                return without_templates(described, self.around) if described.terms else None
            case "tags" | "properties":
                one = spec.model_copy(update={"kind": "tag" if spec.kind == "tags" else "property"})
                return list(dict.fromkeys(iter(lambda: self._read(one, values), None))) or None
            case _:
                return self._read(
                    spec,
                    {spec.of: ACTIVE, **values} if spec.kind == "heading" and spec.of else values,
                )

    def _read(self, spec: Input, others: Mapping[str, Any]) -> Any:
        """Return the value of the first unused name or quoted text that fits the input."""
        kinds = _NAMES.get(spec.kind, ())
        free = [
            match
            for match in self.names
            if not match.negated
            and not match.bound
            and not (spec.kind == "folder" and match.start in self.filters)
        ]
        fitting = [
            match
            for match in free
            if any(name.kind in kinds for name in match.names)
            or (match.new and spec.kind in _NEW_KINDS and not kinds)
        ]
        named = [
            (match.text, not match.new)
            for match in fitting
            if not match.new or spec.kind in _NEW_KINDS
        ]
        texts = [(text, False) for text in self.texts if spec.kind in _TEXT_KINDS]
        for text, known in (
            [*reversed(named), *texts] if spec.kind == "folder" else [*texts, *named]
        ):
            try:
                value = read(spec, text, self.around, others, known=known)
            except InvalidValue:
                continue
            self.texts = [other for other in self.texts if other != text]
            self.names = [match for match in self.names if match.text != text]
            return value
        return None

    def _described(self) -> NoteSet:
        """Return the remaining names as a description of notes.

        An excluded name is excluded in each of its meanings.
        """
        notes: list[Term] = []
        terms: list[Term] = []
        remaining: list[NameMatch] = []
        for match in self.names:
            senses = _senses(match)
            folder = f"{senses[0].value}/" if senses and senses[0].key == "folder" else ""
            if match.new or (
                folder
                and not match.negated
                and (
                    match.start in self.destinations
                    or not all(term.value.startswith(folder) for term in notes)
                )
            ):
                # It is new, or a destination, or a note outside of it is named.
                remaining.append(match)
            elif match.negated:
                specific = [term for term in senses if term.key != "property"]
                terms += (
                    replace(term, negated=True)
                    for term in specific or [term for term in senses if term.op == ":"] or senses
                )
            elif senses and senses[0].key == "note":
                notes.append(senses[0])
            elif senses and (match.bound or senses[0].key != "property" or senses[0].op == "has"):
                terms.append(senses[0])
            elif terms and terms[-1].property:
                terms[-1] = next(
                    (term for term in senses if term.property == terms[-1].property), terms[-1]
                )
        self.names = remaining
        return NoteSet(tuple(dict.fromkeys((*notes, *terms))))


def _split_pair(names: list[NameMatch]) -> list[NameMatch]:
    """Split the first property with a value in two, if no property is mentioned alone.

    For an action that sets a property they are the values to set, not a condition.
    """
    index = next(
        (index for index, match in enumerate(names) if match.bound and not match.negated), None
    )
    if index is None or any(
        name.kind == "property" for match in names for name in match.names if not match.negated
    ):
        return names
    match = names[index]
    owners = tuple(Name("property", name.property) for name in match.names)
    texts = str(owners[0].value), display_text(match.names[0].value) or ""
    pair = (
        replace(match, text=texts[0], names=owners, bound=False),
        replace(match, text=texts[1], bound=False),
    )
    return [*names[:index], *pair, *names[index + 1 :]]


def _senses(match: NameMatch) -> list[Term]:
    """Return the meanings of a name in a description, most likely first.

    The order is: tag with `#`, folder, note, property, value, tag without `#`. An ambiguous folder
    name has no meaning.
    """
    tags = [Term("tag", name.value) for name in match.names if name.kind == "tag"]
    folders = [Term("folder", name.value) for name in match.names if name.kind == "folder"]
    if len(folders) > 1:
        return []
    notes = [Term("note", name.value) for name in match.names if name.kind in ("note", "alias")]
    having = [
        Term("property", None, "has", name.value) for name in match.names if name.kind == "property"
    ]
    values = [
        Term("property", name.value, ":", name.property)
        for name in match.names
        if name.kind == "value"
    ]
    first, last = (tags, []) if match.text.startswith("#") else ([], tags)
    return [*first, *folders, *notes, *having, *values, *last]
