"""Reading slots: which value a stretch of tokens gives for a parameter, by the parameter's kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from obsidian_agent.providers.offline import name_slots, word_slots
from obsidian_agent.providers.offline.names import NameIndex
from obsidian_agent.providers.offline.note_sets import NoteSets
from obsidian_agent.providers.offline.phrases import Takes
from obsidian_agent.providers.offline.readings import Reading, Surroundings
from obsidian_agent.providers.offline.recipe import RecipeParameter, SetKind, SlotKind, WordKind
from obsidian_agent.providers.offline.stretch import Stretch
from obsidian_agent.providers.offline.tokens import Token

_LONGEST: Mapping[SlotKind, int] = {
    **{"tag": 4, "number": 3, "level": 3, "property": 5, "value": 10, "date": 7, "before": 10, "text": 40, "tags": 16, "properties": 16},
    **{"span": 7, "sort": 6, "notes": 50, "anyNotes": 50, "files": 50, "exempt": 24},
}
_LONGEST_NAMED = name_slots.LONGEST_NAME + 6
"""A name with its article, noun and "called"."""


class SlotReader:
    """Reads slots of one instruction. Readings depend only on the kind and the stretch, and are kept."""

    def __init__(self, text: str, tokens: tuple[Token, ...], index: NameIndex, around: Surroundings) -> None:
        self._text = text
        self._tokens = tokens
        self._index = index
        self._around = around
        self._sets = NoteSets(text, tokens, index, around)
        self._kept: dict[tuple[SlotKind, bool, Takes, int, int], Reading | None] = {}

    def longest(self, kind: SlotKind) -> int:
        """The most tokens that a slot of this kind may take."""
        return _LONGEST.get(kind, _LONGEST_NAMED)

    def read(self, parameter: RecipeParameter, takes: Takes, start: int, end: int) -> Reading | None:
        """The reading of tokens `start` to `end` (exclusive), or None when they cannot be one.

        `takes` says which bare words will do: after "called" they are less doubtful.
        """
        key = (parameter.kind, parameter.existing, takes, start, end)
        if key not in self._kept:
            words = Stretch(self._text, self._tokens, start, end)
            possible = not words.ragged and (takes != "exact" or words.exact)
            self._kept[key] = self._reading(words, parameter.kind, parameter.existing, takes == "any") if possible else None
        return self._kept[key]

    def _reading(self, words: Stretch, kind: SlotKind, existing: bool, free: bool) -> Reading | None:
        match kind:
            case "note":
                return name_slots.note(words, self._index, self._around)
            case "entry":
                return name_slots.entry(words, self._index, self._around)
            case "folder":
                return name_slots.folder(words, self._index, self._around, existing=existing, free=free)
            case "destination":
                return name_slots.destination(words, self._index, self._around)
            case "template":
                return name_slots.template(words, self._index)
            case "macro":
                return name_slots.macro(words, self._around)
            case "path":
                return name_slots.path(words, self._index, free=free)
            case "newName":
                return name_slots.new_name(words)
            case "notes" | "anyNotes" | "files" | "exempt":
                return self._set_reading(words, kind)
            case _:
                return self._word_reading(words, kind, free)

    def _set_reading(self, words: Stretch, kind: SetKind) -> Reading | None:
        match kind:
            case "exempt":
                return self._sets.exempt(words.start, words.end)
            case "files":
                return self._sets.notes(words.start, words.end)
            case "notes" | "anyNotes":
                found = self._sets.notes(words.start, words.end)
                if found is not None and found.value["kind"] == "attachments":
                    return None
                single = name_slots.note(words, self._index, self._around) if kind == "anyNotes" else None
                return min((each for each in (found, single) if each is not None), key=lambda each: each.cost, default=None)
            case _:
                assert_never(kind)

    def _word_reading(self, words: Stretch, kind: WordKind, free: bool) -> Reading | None:
        match kind:
            case "text":
                return word_slots.text(words, free=free)
            case "heading" | "newHeading":
                return word_slots.heading(words)
            case "tag":
                return word_slots.tag(words, free=free)
            case "tags":
                return word_slots.tags(words, free=free)
            case "property":
                return word_slots.property_name(words, free=free)
            case "properties":
                return word_slots.properties(words, free=free)
            case "span":
                return word_slots.span(words, self._around)
            case "sort":
                return word_slots.order(words, self._index)
            case "value":
                return word_slots.value(words, self._around)
            case "number" | "level":
                return word_slots.number(words)
            case "date":
                return word_slots.day(words, self._around)
            case "before":
                return word_slots.before(words, self._around)
            case _:
                assert_never(kind)
