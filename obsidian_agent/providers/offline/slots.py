"""Reading slots: which value a stretch of tokens gives for a parameter, by the parameter's kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from obsidian_agent.providers.offline import list_slots, name_slots, query_slots, word_slots
from obsidian_agent.providers.offline.names import Closeness, NameIndex
from obsidian_agent.providers.offline.note_sets import NoteSets
from obsidian_agent.providers.offline.phrases import Takes
from obsidian_agent.providers.offline.readings import Reading, Surroundings
from obsidian_agent.providers.offline.recipe import QueryKind, RecipeParameter, SetKind, SlotKind, WordKind
from obsidian_agent.providers.offline.stretch import Stretch
from obsidian_agent.providers.offline.tokens import Token

_LONGEST: Mapping[SlotKind, int] = {
    "tag": 4,
    "number": 3,
    "level": 3,
    "property": 5,
    "value": 10,
    "date": 7,
    "otherDay": 7,
    "before": 10,
    "choice": 8,
    "spotted": 14,
    "row": 60,
    "listValue": 10,
    "text": 40,
    "line": 46,
    "tags": 16,
    "knownProperties": 16,
    "knownProperty": 5,
    "span": 7,
    "sort": 8,
    "due": 8,
    "group": 5,
    "status": 4,
    "names": 30,
    "affix": 4,
    "label": 2,
    "notes": 50,
    "anyNotes": 50,
    "files": 50,
    "exempt": 24,
    "within": 12,
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
        if parameter.kind == "choice":
            return word_slots.choice(Stretch(self._text, self._tokens, start, end), parameter.options)
        key = (parameter.kind, parameter.existing, takes, start, end)
        if key not in self._kept:
            words = Stretch(self._text, self._tokens, start, end)
            possible = not words.ragged and (takes != "exact" or words.exact)
            self._kept[key] = self._reading(words, parameter.kind, parameter.existing, takes == "any") if possible else None
        return self._kept[key]

    def _reading(self, words: Stretch, kind: SlotKind, existing: bool, free: bool) -> Reading | None:
        match kind:
            case "note":
                named = name_slots.note(words, self._index, self._around)
                known = named is not None and named.issue != "unknown"
                return named if known else self._sets.note(words.start, words.end) or named
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
            case "newName" | "newLabel":
                return name_slots.new_name(words, self._index)
            case "notes" | "anyNotes" | "files" | "exempt" | "within":
                return self._set_reading(words, kind, free)
            case "tags" | "knownProperties" | "names" | "span" | "due" | "sort" | "group" | "status":
                return self._query_reading(words, kind, free)
            case _:
                return self._word_reading(words, kind, free)

    def _query_reading(self, words: Stretch, kind: QueryKind, free: bool) -> Reading | None:
        match kind:
            case "tags":
                return list_slots.tags(words, free=free)
            case "knownProperties":
                return list_slots.known_properties(words, self._index)
            case "names":
                return list_slots.names(words)
            case "span":
                return query_slots.span(words, self._around)
            case "due":
                return query_slots.due(words, self._around)
            case "sort":
                return query_slots.order(words, self._index)
            case "group":
                return query_slots.group(words, self._index)
            case "status":
                return query_slots.status(words)
            case _:
                assert_never(kind)

    def _set_reading(self, words: Stretch, kind: SetKind, place: bool) -> Reading | None:
        """A description of notes; where the phrase says `{notes!}` ("in …") the bare name of a folder will do."""
        read = self._sets.place if place else self._sets.notes
        match kind:
            case "exempt":
                return self._sets.exempt(words.start, words.end)
            case "within":
                return self._sets.folders(words.start, words.end)
            case "files":
                return read(words.start, words.end)
            case "notes" | "anyNotes":
                found = read(words.start, words.end)
                if found is not None and (found.value or found.choices[0])["kind"] == "attachments":
                    return None
                if kind == "notes" and self._sets.single(words.start, words.end):
                    return None
                single = name_slots.note(words, self._index, self._around) if kind == "anyNotes" else None
                if single is not None and single.issue is None and found is not None and self._sets.nothing(found):
                    return single
                found = self._cut_short(words, found)
                return min((each for each in (found, single) if each is not None), key=lambda each: each.cost, default=None)
            case _:
                assert_never(kind)

    def _cut_short(self, words: Stretch, found: Reading | None) -> Reading | None:
        """Doubt what only says how notes are when the noun follows: "all active" of "all active projects"."""
        where = found.value["where"] if found is not None and isinstance(found.value, dict) else {}
        if found is None or where.keys() != {"property"} or words.end >= len(self._tokens):
            return found
        whole = self._sets.notes(words.start, words.end + 1)
        ways = () if whole is None else whole.choices or (whole.value,)
        return replace(found, cost=found.cost + 0.6) if any(way["where"].keys() > where.keys() for way in ways if way) else found

    def _doubted(self, words: Stretch, found: Reading | None) -> Reading | None:
        """A bare text may be something else: a property and its value ("with status lead"), a note to link to, or several things."""
        if found is None or found.reference is not None or words.quoted is not None or len(words) > 6:
            return found
        sets = len(words) > 1 and self._index.property(words.first.text) is not None
        note = self._index.find(words.raw, ("note",))
        several = any(token.lower == "and" or token.text == "," for token in words)
        other = sets or several or (note is not None and (note.closeness == Closeness.EXACT or len(words) > 1))
        return replace(found, cost=found.cost + 0.6) if other else found

    def _part_reading(self, words: Stretch, kind: WordKind) -> Reading | None:
        """Parts of lists, tables and texts."""
        if kind == "row":
            return word_slots.row(words)
        if kind == "spotted":
            return word_slots.spotted(words)
        found = word_slots.value(words, self._around)
        if found is None or isinstance(found.value, int | float):
            return None
        return replace(found, cost=found.cost + 0.6) if words.first.kind == "tag" else found

    def _word_reading(self, words: Stretch, kind: WordKind, free: bool) -> Reading | None:
        match kind:
            case "text" | "line":
                read = word_slots.text if kind == "text" else word_slots.line
                return self._doubted(words, read(words, free=free))
            case "row" | "listValue" | "spotted":
                return self._part_reading(words, kind)
            case "heading" | "newHeading":
                return word_slots.heading(words)
            case "tag":
                return word_slots.tag(words, free=free)
            case "affix":
                return word_slots.affix(words)
            case "label":
                return word_slots.label(words)
            case "property":
                return word_slots.property_name(words, free=free)
            case "knownProperty":
                return list_slots.known_property(words, self._index)
            case "value":
                return word_slots.value(words, self._around)
            case "number" | "level":
                return word_slots.number(words)
            case "date":
                return word_slots.day(words, self._around)
            case "otherDay":
                found = word_slots.day(words, self._around)
                return None if found is not None and found.value == self._around.today.isoformat() else found
            case "before":
                return word_slots.before(words, self._around)
            case "choice":
                return None  # read with its options
            case _:
                assert_never(kind)
