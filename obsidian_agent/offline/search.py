"""The likeliest recipes for a sentence: BM25 over titles, descriptions and examples, the vault's names and slots replaced by their kinds.

There is nothing to learn and no index to build but counts of a few hundred words. Names of the vault and quoted texts fill the form.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import regex

from obsidian_agent.offline import dates
from obsidian_agent.offline.names import Found, Name, Names, in_context, key_of
from obsidian_agent.offline.note_set import ACTIVE, Key, NoteSet, Term, Unread, without_templates
from obsidian_agent.offline.reader import quoted, quotes
from obsidian_agent.offline.recipe import SLOT, Input, Recipe
from obsidian_agent.offline.surroundings import Surroundings
from obsidian_agent.offline.values import headings, read
from obsidian_agent.offline.words import FUNCTION_WORDS, JOINED, words

MOST: Final = 3
_K1: Final = 1.2
_B: Final = 0.6
"""The usual constants of BM25: how fast a word that is said again counts less, and how much long texts pay for their length."""

_TITLE: Final = 2
"""So many times the words of a title count."""

_LOOKED_AT: Final = 12
_LACKING: Final = 0.85
"""Of so many recipes the form is filled in: each input that stays empty makes it less likely that one is meant."""

_FIRST: Final = ("new-note", "add-text", "find-notes", "recent-notes", "list-tags")
"""What people do most, for sentences that all recipes fit alike."""

_SIGNS: Final[Mapping[str, str]] = {
    "note": "‹note›",
    "alias": "‹note›",
    "entry": "‹note›",
    "template": "‹note›",
    "notes": "‹note›",
    "file": "‹note›",
    "folder": "‹folder›",
    "except": "‹folder›",
    "tag": "‹tag›",
    "tags": "‹tag›",
    "property": "‹property›",
    "properties": "‹property›",
    "value": "‹value›",
    "linksTo": "‹note›",
    "date": "‹date›",
    "before": "‹date›",
    "after": "‹date›",
    "number": "‹number›",
}
"""What stands for a name of the vault, and for a slot that takes one; for any other slot, and a quoted text, `‹text›`."""

_HELD: Final = "\ue000"
"""What stands for each character of a quoted text: no word, and no name."""

_TAG: Final = regex.compile(r"(?<!\S)#([\p{L}\p{N}_/-]*[\p{L}_][\p{L}\p{N}_/-]*)")
_TOKEN: Final = regex.compile(rf"(?<![\w#/-])\w+(?:[/-]\w+)+(?![/-]?\w)(?<![{JOINED}])")
_DAY: Final = regex.compile(r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)|\b(?:today|tomorrow|yesterday)\b", regex.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A recipe that may be meant, with the values that the sentence has for it, and the inputs that still need one."""

    recipe: Recipe
    values: Mapping[str, Any]
    missing: tuple[str, ...]
    score: float
    worded: bool = True
    """Whether any word of the sentence is one of the recipe's: else only the kinds of the names in it speak for it, or nothing."""


@dataclass(slots=True)
class _Said:
    """What a sentence holds besides words: names, quoted texts, days; and what of it is not used yet."""

    names: list[Found]
    texts: list[str]
    days: list[str]
    counted: Counter[str]
    templates: str
    """Where notes are no targets: the folder of templates, where the sentence does not name it, with a slash."""


@dataclass
class Menu:
    """Recipes, ready to be searched."""

    recipes: Sequence[Recipe]
    _counts: list[Counter[str]] = field(init=False)
    _weights: dict[str, float] = field(init=False)
    _mean: float = field(init=False)
    common: frozenset[str] = field(init=False)
    """The words of the menu itself: in a sentence they are names only where they are written so."""

    def __post_init__(self) -> None:
        self._counts = [Counter(_terms(recipe)) for recipe in self.recipes]
        used = Counter(term for counts in self._counts for term in counts)
        total = len(self.recipes)
        self._weights = {term: math.log(1 + (total - count + 0.5) / (count + 0.5)) for term, count in used.items()}
        self._mean = sum(counts.total() for counts in self._counts) / max(total, 1)
        self.common = frozenset(
            word.casefold() for recipe in self.recipes for text in (recipe.title, *recipe.examples) for word in _plain_words(text)
        )

    def nearest(self, sentence: str, around: Surroundings, most: int = MOST) -> list[Suggestion]:
        """The likeliest recipes, best first. Always so many, if there are: whoever asks gets something to go on with."""
        said = self._said(sentence, around)
        scores = [self._score(said.counted, counts) for counts in self._counts]
        first = [_FIRST.index(recipe.name) if recipe.name in _FIRST else len(_FIRST) for recipe in self.recipes]
        order = sorted(range(len(scores)), key=lambda number: (-scores[number], first[number], number))
        found = [self._suggested(number, said, around, scores[number]) for number in order[: max(_LOOKED_AT, most)]]
        return sorted(found, key=lambda each: -each.score)[:most]

    def ranked(self, text: str) -> list[tuple[float, Recipe]]:
        """All recipes by their words alone, without a look at any vault."""
        counted = Counter(words(text))
        return sorted(
            ((self._score(counted, counts), recipe) for counts, recipe in zip(self._counts, self.recipes, strict=True)),
            key=lambda each: -each[0],
        )

    def _score(self, said: Counter[str], counts: Counter[str]) -> float:
        length = 1 - _B + _B * counts.total() / self._mean
        return sum(self._weights[term] * counts[term] * (_K1 + 1) / (counts[term] + _K1 * length) for term in said if term in counts)

    def _suggested(self, number: int, said: _Said, around: Surroundings, score: float) -> Suggestion:
        recipe = self.recipes[number]
        values = _values(recipe, replace(said, names=list(said.names), texts=list(said.texts), days=list(said.days)), around)
        missing = tuple(name for name, wanted in recipe.inputs.items() if wanted.needed and name not in values)
        worded = any(term in self._counts[number] for term in said.counted if not term.startswith("‹"))
        return Suggestion(recipe, values, missing, score * _LACKING ** len(missing), worded)

    def _said(self, sentence: str, around: Surroundings) -> _Said:
        texts = list(quoted(sentence))
        rest = sentence
        found: list[Found] = []
        for text, place in zip(texts, quotes(sentence), strict=True):
            start, end = place.span()
            rest = f"{rest[:start]}{_HELD * (end - start)}{rest[end:]}"
            if names := around.names.find(text):
                found.append(Found(start, end, text, names))
        found += around.names.in_sentence(rest, self.common)
        taken = {place for each in found for place in range(each.start, each.end)}
        # A tag says that it is one, also where no note has it yet.
        found += [Found(tag.start(), tag.end(), tag[0], (Name("tag", tag[1]),)) for tag in _TAG.finditer(rest) if tag.start() not in taken]
        found += _new(rest, around.names)
        found = list(in_context(rest, sorted(found, key=lambda each: each.start)))
        folder = around.context.notes.templates or "Templates"
        named = any(name.value == folder or each.text.startswith(f"{folder}/") for each in found for name in each.names)
        counted: Counter[str] = Counter(["‹text›"] * len(texts))
        days: list[str] = []
        pieces: list[str] = []
        end = 0
        for each in (*found, Found(len(rest), len(rest), "", ())):
            pieces.append(rest[end : each.start])
            end = each.end
            counted.update({_SIGNS[name.kind] for name in each.names} | ({"‹property›"} if each.bound else set()))
        for piece in pieces:
            for text in _DAY.findall(piece):
                day = dates.parse(text, around.context.now.date())
                if day is not None:
                    days.append(day.isoformat())
                    counted["‹date›"] += 1
            counted.update(word for word in words(piece) if word not in FUNCTION_WORDS)
        # A text in quotes that belongs to a condition is not there to be written.
        texts = [
            text
            for text, place in zip(texts, quotes(sentence), strict=True)
            if not any((each.bound or each.negated) and each.start <= place.start() < each.end for each in found)
        ]
        return _Said(found, texts, days, counted, "" if named else f"{folder}/")


def _terms(recipe: Recipe) -> Iterator[str]:
    for text in (*[recipe.title] * _TITLE, recipe.description):
        yield from words(text)
    for text in recipe.examples:
        for found in SLOT.finditer(text):
            name, slot = found[1], found[2]
            yield _SIGNS.get(slot or recipe.inputs[name].kind, "‹text›")
        yield from words(SLOT.sub(" ", text))


def _new(sentence: str, names: Names) -> Iterator[Found]:
    """Tokens that are no names, but begin with one: a folder or tag to be made below it."""
    for token in _TOKEN.finditer(sentence):
        if names.find(token[0]):
            continue
        for sign in reversed(list(regex.finditer("[/-]", token[0]))):
            known = [name for name in names.find(token[0][: sign.start()], "tag", "folder") if name.kind == "tag" or sign[0] == "/"]
            if known:
                made = tuple(replace(name, value=f"{name.value}{token[0][sign.start() :]}") for name in known)
                yield Found(token.start(), token.end(), token[0], made, new=True)
                break


def _plain_words(text: str) -> list[str]:
    return list(regex.findall(r"[\p{L}\p{N}]+", SLOT.sub(" ", text)))


def _values(recipe: Recipe, said: _Said, around: Surroundings) -> dict[str, Any]:
    """The inputs that what the sentence holds is clear for. A folder goes to an input of its own before it describes notes."""
    values: dict[str, Any] = {}
    if any(wanted.kind == "value" for wanted in recipe.inputs.values()):
        _unbind(said)
    for wanted in sorted(recipe.inputs.values(), key=lambda each: (each.kind == "notes", bool(each.of))):
        value = _value(wanted, said, values, around)
        if value is not None:
            values[wanted.name] = value
    return {name: values[name] for name in recipe.inputs if name in values}


def _value(wanted: Input, said: _Said, values: Mapping[str, Any], around: Surroundings) -> Any:
    match wanted.kind:
        case "note" | "template":
            return _taken(said, "note", "alias", template=wanted.kind == "template")
        case "entry":
            return _taken(said, "note", "alias", "folder", "file")
        case "folder":
            return _taken(said, "folder", last=True)
        case "tag":
            return _taken(said, "tag")
        case "tags":
            return _listed(iter(lambda: _taken(said, "tag"), None))
        case "property":
            return _taken(said, "property")
        case "properties":
            return _listed(iter(lambda: _taken(said, "property"), None))
        case "date":
            return said.days.pop(0) if said.days else None
        case "notes":
            described = _described(said)
            return without_templates(described, around) if described is not None else None
        case "value":
            of = values.get(wanted.of or "")
            text = _text(wanted, said, values, around)
            return _taken(said, "value", of=of) if text is None and isinstance(of, str) else text
        case "heading":
            return _heading(wanted, said, values, around)
        case "text" | "newNote" | "newName" | "list":
            return _text(wanted, said, values, around)
        case _:
            return None


def _taken(said: _Said, *kinds: str, of: str | None = None, last: bool = False, template: bool = False) -> Any:
    """The first (or last) name of these kinds that is not used yet and means one thing; a template only where one is wanted."""
    for found in reversed(said.names) if last else list(said.names):
        if found.negated or found.bound or (found.new and "note" in kinds):
            continue
        fits: list[Name] = [
            name
            for name in found.names
            if name.kind in kinds and (of is None or name.property == of) and (template or not _is_template(name, said))
        ]
        if len({repr(name.value) for name in fits}) == 1:
            said.names.remove(found)
            said.texts = [text for text in said.texts if text != found.text]
            return fits[0].value
    return None


def _unbind(said: _Said) -> None:
    """For an action that sets a property: where none stands alone, the first one with its value is what is set, and no condition."""
    if any(name.kind == "property" for found in said.names for name in found.names if not found.negated):
        return
    for place, found in enumerate(said.names):
        if found.bound and not found.negated:
            owners = tuple(Name("property", name.property) for name in found.names)
            said.names[place : place + 1] = [replace(found, names=owners, bound=False), replace(found, bound=False)]
            return


def _is_template(name: Name, said: _Said) -> bool:
    return bool(said.templates) and name.kind in ("note", "alias", "file") and str(name.value).startswith(said.templates)


def _listed(values: Iterable[Any]) -> list[Any] | None:
    return list(dict.fromkeys(values)) or None


def _described(said: _Said) -> NoteSet | None:
    """All names that are left, as a description; of a name that may be several things a tag with its sign, a folder, a note, in this order.

    What is to be left out is left out as whatever it may be.
    """
    terms: list[Term] = []
    notes: list[Term] = []
    for found in said.names:
        by_kind = {name.kind: name for name in found.names if not _is_template(name, said)}
        if found.new:
            continue
        if found.negated:
            terms += (replace(term, negated=True) for term in _senses(found))
        elif found.bound:
            terms.append(Term("property", found.names[0].value, ":", found.names[0].property))
        elif "tag" in by_kind and (found.text.startswith("#") or len(by_kind) == 1):
            terms.append(Term("tag", by_kind["tag"].value))
        elif "folder" in by_kind:
            terms.append(Term("folder", by_kind["folder"].value))
        elif "note" in by_kind or "alias" in by_kind:
            notes.append(Term("note", (by_kind.get("note") or by_kind["alias"]).value))
        elif "property" in by_kind:
            terms.append(Term("property", None, "has", by_kind["property"].value))
        elif "value" in by_kind:
            last = terms[-1] if terms else None
            if last is not None and last.key == "property" and last.property == by_kind["value"].property:
                terms[-1] = Term("property", by_kind["value"].value, ":", last.property)
    said.names.clear()
    return NoteSet(tuple(dict.fromkeys((*notes, *terms)))) if notes or terms else None


def _senses(found: Found) -> list[Term]:
    """All notes, folders and tags that a name may mean; else its property or value."""
    keys: dict[str, Key] = {"note": "note", "alias": "note", "folder": "folder", "tag": "tag"}
    terms = [Term(keys[name.kind], name.value) for name in found.names if name.kind in keys and not found.bound]
    owned = [Term("property", name.value, ":", name.property) for name in found.names if name.kind == "value"]
    return terms or owned or [Term("property", None, "has", name.value) for name in found.names if name.kind == "property"]


def _text(wanted: Input, said: _Said, values: Mapping[str, Any], around: Surroundings) -> Any:
    """The first quoted text that is not used yet and will do; for a name that is to be made, also one without quotes."""
    new = [found.text for found in said.names if found.new] if wanted.kind in ("newNote", "newName") else []
    for text in (*said.texts, *new):
        said.texts = [each for each in said.texts if each != text]
        said.names = [found for found in said.names if found.text != text]
        try:
            return read(wanted, text, around, values)
        except Unread:
            continue
    return None


def _heading(wanted: Input, said: _Said, values: Mapping[str, Any], around: Surroundings) -> str | None:
    note = values.get(wanted.of or "", ACTIVE)
    if not isinstance(note, str):
        return None
    for heading in headings(note, around):
        if any(key_of(text) == key_of(heading) for text in said.texts):
            said.texts = [text for text in said.texts if key_of(text) != key_of(heading)]
            return str(heading)
    return None
