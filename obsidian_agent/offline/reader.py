"""Sentences that are certain: word for word an example of a recipe, with quoted text or names of the vault in its slots.

There is no partial reading, and no word for another: what is not an example is looked for by `search`. Case, blanks, and the sign at the end
do not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import regex

from obsidian_agent.offline.note_set import SLOTS, NoteSet, Unread, with_field, without_templates
from obsidian_agent.offline.recipe import SLOT, Input, Recipe
from obsidian_agent.offline.sentence import quotes
from obsidian_agent.offline.surroundings import Surroundings
from obsidian_agent.offline.values import read

_HELD: Final = regex.compile("\ue000(\\d+)\ue001")
_BLANK: Final = regex.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Reading:
    """A recipe and its values, as the whole of a sentence says them."""

    recipe: Recipe
    values: Mapping[str, Any]


def readings(sentence: str, recipes: Iterable[Recipe], around: Surroundings) -> list[Reading]:
    """All that a sentence is an example of, each once. One is certain; none is no reading at all. A question changes nothing."""
    texts = [each.text for each in quotes(sentence)]
    held = _hold(sentence)
    folded = held.casefold()
    found: list[Reading] = []
    asked = sentence.rstrip().endswith(("?", "？"))
    for recipe in recipes:
        if asked and recipe.answer is None:
            continue
        for example in recipe.examples:
            if all(part in folded for part in _parts(example)[0]):
                found += (reading for reading in _of(example, held, texts, recipe, around) if reading not in found)
    return found


def _hold(sentence: str) -> str:
    """The sentence with a mark in place of each quoted text, blanks made one, and without the sign at its end."""
    made: list[str] = []
    end = 0
    for number, found in enumerate(quotes(sentence)):
        made += sentence[end : found.start], f"\ue000{number}\ue001"
        end = found.end
    return str(_BLANK.sub(" ", "".join([*made, sentence[end:]]).strip())).rstrip(".!?。！？ ")


@lru_cache(maxsize=1024)
def _parts(example: str) -> tuple[tuple[str, ...], tuple[tuple[str, str | None], ...]]:
    """The words between the slots of an example, folded, and the slots. There is one part more than slots."""
    slots = tuple((found[1], found[2]) for found in SLOT.finditer(example))
    pieces = SLOT.split(_BLANK.sub(" ", example.strip().rstrip(".!?")))[::3]
    return tuple(piece.casefold() for piece in pieces), slots


def _of(example: str, sentence: str, texts: list[str], recipe: Recipe, around: Surroundings) -> Iterator[Reading]:
    """The ways in which a sentence is this example."""
    parts, slots = _parts(example)
    for stretches in _splits(sentence, parts):
        try:
            yield Reading(recipe, _values(list(zip(slots, stretches, strict=True)), texts, recipe, around))
        except Unread:
            continue


def _splits(sentence: str, parts: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The ways to find the parts in a sentence in their order, from its beginning to its end; what is between them is not empty."""
    folded = sentence.casefold()
    if len(folded) != len(sentence):
        sentence = folded
    if not folded.startswith(parts[0]):
        return
    if len(parts) == 1:
        if folded == parts[0]:
            yield ()
        return

    def further(place: int, number: int) -> Iterator[tuple[str, ...]]:
        part = parts[number]
        last = number == len(parts) - 1
        at = len(folded) - len(part) if last else folded.find(part, place + 1)
        if last:
            if at > place and folded.endswith(part):
                yield (sentence[place:at],)
            return
        while at != -1:
            for rest in further(at + len(part), number + 1):
                yield (sentence[place:at], *rest)
            at = folded.find(part, at + 1)

    yield from further(len(parts[0]), 1)


def _values(pairs: list[tuple[tuple[str, str | None], str]], texts: list[str], recipe: Recipe, around: Surroundings) -> dict[str, Any]:
    """The values in the slots: those that others depend on first. Raises `Unread`."""
    values: dict[str, Any] = {}
    for (name, field), stretch in sorted(pairs, key=lambda pair: bool(recipe.inputs[pair[0][0]].of)):
        text, known = _text(stretch, texts)
        wanted = recipe.inputs[name]
        if field is None:
            values[name] = read(wanted, text, around, values, known=known)
            continue
        described = values.get(name, NoteSet())
        of = described.terms[-1].property if described.terms else None
        slot = Input(name=field, kind=SLOTS[field][2], description=wanted.description, of="property")
        value = read(slot, text, around, {"property": of}, known=known or slot.kind == "folder")
        values[name] = with_field(described, field, value)
    return {name: without_templates(value, around) if isinstance(value, NoteSet) else value for name, value in values.items()}


def _text(stretch: str, texts: list[str]) -> tuple[str, bool]:
    """The text in a slot, and whether it must be known: what is not in quotes must."""
    held = _HELD.fullmatch(stretch.strip())
    if held is not None:
        return texts[int(held[1])], False
    if "\ue000" in stretch:
        raise Unread("Words and a quoted text in one place.")
    return stretch.strip(), True
