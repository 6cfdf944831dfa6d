"""The likeliest recipes for a sentence: BM25 over titles, descriptions and examples, the vault's names and slots replaced by their kinds.

There is nothing to learn and no index to build but counts of a few hundred words. A word that the menu does not have stands for those that
it means (`vocabulary.json`), or for the one that it is nearest to. Names of the vault and quoted texts fill the form.
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
"""Actions that are offered: a person looks at three."""
_PLAIN_WORD: Final = unicode_expression(r"[\p{L}\p{N}]+")
# The usual constants of BM25: how fast a word that is said again counts less, and how much long texts pay for their length.
_K1: Final = 1.2
_B: Final = 0.6
_TITLE: Final = 2  # so many times the words of a title count
_MEANT: Final = 0.8  # what a word counts that stands for one of the menu,
_NEAR: Final = 0.7  # one that is only written like it,
_KIND: Final = (
    0.5  # and what may be of a kind: a text a new name, a day a condition or what is to be written
)
_LOOKED_AT: Final = 16  # of so many recipes the form is filled in:
_LACKING: Final = 0.9  # each input that stays empty,
_UNUSED: Final = (
    0.8  # and each name or text that finds no place, makes it less likely that one is meant
)
# What people do most, for sentences that all recipes fit alike.
_FIRST: Final = ("new-note", "add-text", "find-notes", "recent-notes", "list-tags")

_SIGNS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("note", "alias", "entry", "template", "notes", "file", "linksTo"), "‹note›"),
    **dict.fromkeys(("folder", "outside"), "‹folder›"),
    **dict.fromkeys(("tag", "tags"), "‹tag›"),
    **dict.fromkeys(("property", "properties"), "‹property›"),
    **dict.fromkeys(("date", "before", "since"), "‹date›"),
    "value": "‹value›",
    "number": "‹number›",
}
"""What stands for a name of the vault, and for a slot that takes one; for any other slot, and a quoted text, `‹text›`."""

_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("note", "template"), ("note", "alias")),
    "entry": ("note", "alias", "folder", "file"),
    **{kind: (kind,) for kind in ("folder", "tag", "property", "value")},
}
_MADE: Final = frozenset({"newNote", "newName", "folder", "tag"})
_FREE: Final = frozenset({"folder", "newNote", "newName", "value", "text", "list", "heading"})
"""The kinds of names that an input of a kind takes; the kinds that take a name that is to be made, and those that take a quoted text."""

# What a quoted text may be.
_TEXT: Final[Mapping[str, float]] = {
    "‹text›": 1,
    "‹folder›": _KIND,
    "‹tag›": _KIND,
    "‹value›": _KIND,
}


@dataclass(frozen=True, slots=True)
class RecipeSuggestion:
    """A recipe that may be meant, with the values that the sentence has for it, and the inputs that still need one."""

    recipe: Recipe
    values: Mapping[str, Any]
    missing: tuple[str, ...]
    score: float
    worded: bool = True
    """Whether any word of the sentence is one of the recipe's: else only the kinds of the names in it speak for it, or nothing."""


class Menu:
    """Recipes, ready to be searched. `common`: their own words, which in a sentence are names only where they are written so."""

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
        """The likeliest recipes, best first. Always so many, if there are: whoever asks gets something to go on with."""
        said = Sentence(beginning(sentence), around, self.common)
        spoken = self._spoken(_bare_words(said))
        meant = [*spoken, *_kinds(said)]
        scores = [self._score(meant, counts) for counts in self._counts]
        first = [
            _FIRST.index(recipe.name) if recipe.name in _FIRST else len(_FIRST)
            for recipe in self.recipes
        ]
        order = sorted(
            range(len(scores)), key=lambda number: (-scores[number], first[number], number)
        )
        found = []
        for number in order[: max(_LOOKED_AT, most)]:
            recipe = self.recipes[number]
            kinds = {wanted.kind for wanted in recipe.inputs.values()}
            rest = _Rest.of(said, kinds, self._roles[number])
            values = rest.values(recipe)
            missing = recipe.missing(values)
            score = scores[number] * _LACKING ** len(missing) * _UNUSED ** len(rest)
            found.append(
                RecipeSuggestion(
                    recipe, values, missing, score, self._score(spoken, self._counts[number]) > 0
                )
            )
        return sorted(found, key=lambda each: -each.score)[:most]

    def ranked(self, text: str) -> list[tuple[float, Recipe]]:
        """All recipes by their words alone, without a look at any vault."""
        spoken = self._spoken(text)
        scores = (self._score(spoken, counts) for counts in self._counts)
        return sorted(zip(scores, self.recipes, strict=True), key=lambda each: -each[0])

    def _spoken(self, text: str) -> list[Mapping[str, float]]:
        """For each word what it may stand for in the menu, and how much that counts."""
        said = [
            *dict.fromkeys(
                found[0].casefold() for found in WORD.finditer(text) if not JOINED.match(found[0])
            )
        ]
        spoken: list[Mapping[str, float]] = []
        for word in (*said, *dict.fromkeys(joined_words(text))):
            own = stem(word)
            if own in FUNCTION_WORDS:
                continue
            other = dict.fromkeys(meanings(word), _MEANT)
            if not other and own not in self._weights and (near := self._near(own)):
                other = {near: _NEAR}
            spoken.append({**other, own: 1})
        return spoken

    def _near(self, word: str) -> str | None:
        """The word of the menu that an unknown one is a misspelling or another form of."""
        if len(word) < 4 or not word.isascii():
            return None
        from rapidfuzz import fuzz, process

        found = process.extractOne(
            word,
            [term for term in self._weights if len(term) > 3],
            scorer=fuzz.ratio,
            score_cutoff=80,
        )
        return str(found[0]) if found else None

    def _score(self, said: Sequence[Mapping[str, float]], counts: Counter[str]) -> float:
        length = 1 - _B + _B * counts.total() / self._mean

        def worth(term: str) -> float:
            return self._weights[term] * counts[term] * (_K1 + 1) / (counts[term] + _K1 * length)

        return sum(
            max(
                (share * worth(term) for term, share in each.items() if term in counts), default=0.0
            )
            for each in said
        )


@dataclass(frozen=True, slots=True)
class _FolderRoles:
    """The words before a folder that make it the destination, and those that make it a filter."""

    destination: frozenset[str] = frozenset()
    filter: frozenset[str] = frozenset()


def _folder_roles(recipes: Sequence[Recipe]) -> list[_FolderRoles]:
    """Return the roles for each recipe. The recipe's own examples decide, then those of the others."""
    places = [_words_before(recipe, _is_place) for recipe in recipes]
    filters = [_words_before(recipe, _is_filter) for recipe in recipes]
    notes = [_words_before(recipe, _is_notes) for recipe in recipes]
    all_places = frozenset().union(*places)
    all_filters = frozenset().union(*filters)
    return [
        _FolderRoles(
            destination=(place | (all_places - all_filters)) - own,
            filter=((own | (all_filters - all_places)) - place) if own else frozenset(),
        )
        for place, own in zip(places, notes, strict=True)
    ]


def _words_before(recipe: Recipe, counts: Callable[[Input, str | None], bool]) -> frozenset[str]:
    return frozenset(
        word
        for example in recipe.examples
        for slot in SLOT.finditer(example)
        if counts(recipe.inputs[slot[1]], slot[2])
        and (word := word_before(SLOT.sub("!", example[: slot.start()]), len(example)))
    )


def _is_place(wanted: Input, slot: str | None) -> bool:
    return wanted.kind == "folder"


def _is_filter(wanted: Input, slot: str | None) -> bool:
    return slot in ("folder", "outside")


def _is_notes(wanted: Input, slot: str | None) -> bool:
    return wanted.kind == "notes"


@cache
def packaged_menu() -> Menu:
    """The menu of the recipes that ship."""
    return Menu(packaged())


def _terms(recipe: Recipe) -> Iterator[str]:
    for text in (*[recipe.title] * _TITLE, recipe.description):
        yield from words(text)
    for text in recipe.examples:
        for found in SLOT.finditer(text):
            name, slot = found[1], found[2]
            yield _SIGNS.get(slot or recipe.inputs[name].kind, "‹text›")
        yield from words(SLOT.sub(" ", text))


def _bare_words(said: Sentence) -> str:
    """The sentence without its names and days."""
    text = said.bare
    for each in (*said.names, *said.days):
        text = f"{text[: each.start]}{' ' * (each.end - each.start)}{text[each.end :]}"
    return text


def _kinds(said: Sentence) -> Iterator[Mapping[str, float]]:
    """For each kind of name, text or day in a sentence what it may be."""
    found: list[Mapping[str, float]] = [
        _TEXT for each in said.quotes if not said.around.names.find(each.text)
    ][:1]
    for each in said.names:
        found.append(dict.fromkeys((_SIGNS[name.kind] for name in each.names), 1))
        found += [{"‹property›": 1}] if each.bound else []
    found += [{"‹date›": _KIND} for _ in said.days[:1]]
    yield from (each for number, each in enumerate(found) if each not in found[:number])


@dataclass(slots=True)
class _Rest:
    """What a sentence holds besides words and is not used yet."""

    around: Surroundings
    names: list[NameMatch]
    texts: list[str]
    days: list[str]
    destinations: Collection[int]
    """Where the names of folders begin that are where notes go to,"""
    filters: Collection[int]
    """and of those that are where notes are."""

    @classmethod
    def of(cls, said: Sentence, kinds: Collection[Kind], roles: _FolderRoles) -> _Rest:
        """For inputs of these kinds: templates are there only where one is wanted or their folder is named."""
        folder = said.around.context.notes.templates or "Templates"
        named = any(
            name.value == folder or each.text.startswith(f"{folder}/")
            for each in said.names
            for name in each.names
        )
        names = list(said.names)
        if not named and "template" not in kinds:
            kept = [
                replace(
                    each,
                    names=tuple(
                        name for name in each.names if not str(name.value).startswith(f"{folder}/")
                    ),
                )
                for each in names
            ]
            names = [each for each in kept if each.names]
        # A text in quotes that belongs to a condition is not there to be written; a day in a name is none.
        owned = [each for each in said.names if each.bound or each.negated]
        texts = [
            quote.text
            for quote in said.quotes
            if not any(each.start <= quote.start < each.end for each in owned)
        ]
        days = [
            day.text
            for day in said.days
            if not any(each.start <= day.start < each.end for each in said.names)
        ]
        before = {each.start: word_before(said.bare, each.start) for each in names}
        return cls(
            around=said.around,
            names=_apart(names) if "value" in kinds else names,
            texts=texts,
            days=days,
            destinations={start for start, word in before.items() if word in roles.destination},
            filters={start for start, word in before.items() if word in roles.filter},
        )

    def __len__(self) -> int:
        named = [found.text for found in self.names if not found.new]
        return len(named) + len([text for text in self.texts if text not in named])

    def values(self, recipe: Recipe) -> dict[str, Any]:
        """The inputs that it is clear for. A folder goes to an input of its own before it describes notes."""
        values: dict[str, Any] = {}
        for wanted in sorted(
            recipe.inputs.values(), key=lambda each: (each.kind == "notes", bool(each.of))
        ):
            value = self._value(wanted, values)
            if value is not None:
                values[wanted.name] = value
        return {name: values[name] for name in recipe.inputs if name in values}

    def _value(self, wanted: Input, values: Mapping[str, Any]) -> Any:
        match wanted.kind:
            case "date":
                return self.days.pop(0) if self.days else None
            case "notes":
                described = self._described()
                return without_templates(described, self.around) if described.terms else None
            case "tags" | "properties":
                one = wanted.model_copy(
                    update={"kind": "tag" if wanted.kind == "tags" else "property"}
                )
                return list(dict.fromkeys(iter(lambda: self._read(one, values), None))) or None
            case _:
                return self._read(
                    wanted,
                    {wanted.of: ACTIVE, **values}
                    if wanted.kind == "heading" and wanted.of
                    else values,
                )

    def _read(self, wanted: Input, others: Mapping[str, Any]) -> Any:
        """The value of the first name or quoted text that is not used yet and that the input takes."""
        kinds = _NAMES.get(wanted.kind, ())
        free = [
            found
            for found in self.names
            if not found.negated
            and not found.bound
            and not (wanted.kind == "folder" and found.start in self.filters)
        ]
        fitting = [
            each
            for each in free
            if any(name.kind in kinds for name in each.names)
            or (each.new and wanted.kind in _MADE and not kinds)
        ]
        named = [
            (each.text, not each.new) for each in fitting if not each.new or wanted.kind in _MADE
        ]
        texts = [(text, False) for text in self.texts if wanted.kind in _FREE]
        for text, known in (
            [*reversed(named), *texts] if wanted.kind == "folder" else [*texts, *named]
        ):
            try:
                value = read(wanted, text, self.around, others, known=known)
            except InvalidValue:
                continue
            self.texts = [each for each in self.texts if each != text]
            self.names = [found for found in self.names if found.text != text]
            return value
        return None

    def _described(self) -> NoteSet:
        """The names that are left as a description. What is to be left out is left out as whatever it may be."""
        notes: list[Term] = []
        terms: list[Term] = []
        left: list[NameMatch] = []
        for found in self.names:
            senses = _senses(found)
            folder = f"{senses[0].value}/" if senses and senses[0].key == "folder" else ""
            if found.new or (
                folder
                and not found.negated
                and (
                    found.start in self.destinations
                    or not all(term.value.startswith(folder) for term in notes)
                )
            ):
                left.append(
                    found
                )  # It is to be made, or for something else: the note that is named does not lie in it.
            elif found.negated:
                places = [term for term in senses if term.key != "property"]
                terms += (
                    replace(term, negated=True)
                    for term in places or [term for term in senses if term.op == ":"] or senses
                )
            elif senses and senses[0].key == "note":
                notes.append(senses[0])
            elif senses and (found.bound or senses[0].key != "property" or senses[0].op == "has"):
                terms.append(senses[0])
            elif terms and terms[-1].property:
                terms[-1] = next(
                    (term for term in senses if term.property == terms[-1].property), terms[-1]
                )
        self.names = left
        return NoteSet(tuple(dict.fromkeys((*notes, *terms))))


def _apart(names: list[NameMatch]) -> list[NameMatch]:
    """For an action that sets a property: where none stands alone, the first one with its value is what is set, and no condition."""
    place = next(
        (place for place, found in enumerate(names) if found.bound and not found.negated), None
    )
    if place is None or any(
        name.kind == "property" for found in names for name in found.names if not found.negated
    ):
        return names
    found = names[place]
    owners = tuple(Name("property", name.property) for name in found.names)
    texts = str(owners[0].value), display_text(found.names[0].value) or ""
    pair = (
        replace(found, text=texts[0], names=owners, bound=False),
        replace(found, text=texts[1], bound=False),
    )
    return [*names[:place], *pair, *names[place + 1 :]]


def _senses(found: NameMatch) -> list[Term]:
    """What a name may mean in a description, likeliest first: a tag with its sign, a folder, a note, a property, a value, a tag without.

    The name of several folders means nothing: which one is a question.
    """
    tags = [Term("tag", name.value) for name in found.names if name.kind == "tag"]
    folders = [Term("folder", name.value) for name in found.names if name.kind == "folder"]
    if len(folders) > 1:
        return []
    notes = [Term("note", name.value) for name in found.names if name.kind in ("note", "alias")]
    having = [
        Term("property", None, "has", name.value) for name in found.names if name.kind == "property"
    ]
    values = [
        Term("property", name.value, ":", name.property)
        for name in found.names
        if name.kind == "value"
    ]
    first, last = (tags, []) if found.text.startswith("#") else ([], tags)
    return [*first, *folders, *notes, *having, *values, *last]
