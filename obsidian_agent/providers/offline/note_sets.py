"""Descriptions of notes: "all notes tagged #x in Projects", "everything older than a month", "Q1 to Q4 2022", "my books (category Books)".

A description is read from a token on, with every place where it may end; the value of a reading is what `vault.find` takes: a `where`
and a `kind` ("any" where the words leave it open whether files other than notes are meant). Heads are read by `noun_phrases`, modifiers by
`set_clauses` with the phrases of `set_modifiers`, and what stands in those by `set_holes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from obsidian_agent.providers.offline import type_nouns
from obsidian_agent.providers.offline.bare_names import bare
from obsidian_agent.providers.offline.name_lists import NameLists
from obsidian_agent.providers.offline.names import NameIndex
from obsidian_agent.providers.offline.noun_phrases import ONE, NounPhrases
from obsidian_agent.providers.offline.readings import Reading, Surroundings
from obsidian_agent.providers.offline.set_clauses import SetClauses
from obsidian_agent.providers.offline.set_holes import SetHoles
from obsidian_agent.providers.offline.set_modifiers import either
from obsidian_agent.providers.offline.strict import Part, Walked
from obsidian_agent.providers.offline.tokens import Token

_NEARLY = 0.3
_MOST_OTHERS = 3
_DESCRIBED = 0.1
"""The doubt about a single note that is described where notes are rather named."""


class NoteSets:
    """Reads descriptions in one instruction. What was read from a token on is kept."""

    def __init__(self, text: str, tokens: tuple[Token, ...], index: NameIndex, around: Surroundings) -> None:
        self._holes = SetHoles(text, tokens, index, around)
        self._clauses = SetClauses(self._holes, around, self.exempt)
        self._phrases = NounPhrases(self._holes, self._clauses, NameLists(text, tokens, index))
        self._sets: dict[int, dict[int, Reading]] = {}
        self._exempt: dict[int, dict[int, Reading]] = {}

    def notes(self, start: int, end: int) -> Reading | None:
        """A description of notes in tokens `start` to `end` (exclusive)."""
        if start not in self._sets:
            self._sets[start] = self._readings(start, self._phrases.described(start))
        found = self._sets[start].get(end)
        return found if found is None else self._singled(found)

    def single(self, start: int, end: int) -> bool:
        """Whether tokens `start` to `end` (exclusive) describe one note."""
        found = self._sets.get(start, {}).get(end)
        return found is not None and (found.choices or (found.value,))[0]["kind"] == ONE

    def note(self, start: int, end: int) -> Reading | None:
        """The one note that tokens `start` to `end` (exclusive) describe: "the book I am reading"."""
        found = self.notes(start, end)
        if found is None or found.value is None or found.issue is not None or not self.single(start, end):
            return None
        meant = self._holes.index.meant(found.value)
        return Reading(found.cost + _DESCRIBED, next(iter(meant)), found.text) if meant is not None and len(meant) == 1 else None

    def place(self, start: int, end: int) -> Reading | None:
        """A description of notes, or folders by their bare names: "in Projects and Meetings"."""
        part = self._folders(start, end)
        described = self.notes(start, end)
        if part is None or (described is not None and described.issue is None and described.cost < part.cost):
            return described
        value = {"where": either([{"folder": folder} for folder in part.value]), "kind": "notes"}
        return Reading(part.cost, value, self._holes.words(start, end).raw, issue="near" if part.doubt else None, doubt=part.doubt)

    def folders(self, start: int, end: int) -> Reading | None:
        """Folders alone, as a condition."""
        part = self._folders(start, end)
        if part is None or part.doubt is not None:
            return None
        value = {"where": either([{"folder": folder} for folder in part.value]), "kind": "any"}
        return Reading(part.cost + 0.1, value, self._holes.words(start, end).raw)

    def exempt(self, start: int, end: int) -> Reading | None:
        """What is to be left out: a description, or the bare name of a folder, a tag, a property's value or a note."""
        if start not in self._exempt:
            parts = (*self._phrases.described(start), *bare(self._holes, start), *self._clauses.alone(start))
            self._exempt[start] = {end: _all_ways(reading) for end, reading in self._readings(start, parts).items()}
        return self._exempt[start].get(end)

    def nothing(self, found: Reading) -> bool:
        """Whether no note fits a description, as far as can be told."""
        return all(self._holes.index.meant(way) == frozenset() for way in (*(found.choices or (found.value,)), *found.otherwise))

    def _singled(self, found: Reading) -> Reading:
        """A description of a single note as one that means exactly one; what means several is doubted."""
        ways = found.choices or (found.value,)
        if ways[0]["kind"] != ONE:
            return found
        meant = [({**way, "kind": "notes"}, self._holes.index.meant({**way, "kind": "notes"})) for way in ways]
        single = {paths: way for way, paths in meant if paths is None or len(paths) == 1}
        if len(single) == 1:
            return replace(found, value=next(iter(single.values())), choices=(), issue="near" if found.doubt else None)
        if single:
            return replace(found, value=None, choices=tuple(single.values()), issue="ambiguous")
        doubt = found.doubt or f"“{found.text}” is not one note"
        return replace(found, value=meant[0][0], choices=(), issue="near", cost=found.cost + 0.6, doubt=doubt)

    def _folders(self, start: int, end: int) -> Part | None:
        return next((part for part in self._holes.read("folders", start, Walked(start)) if part.end == end), None)

    def _readings(self, start: int, parts: Iterable[Part]) -> dict[int, Reading]:
        found: dict[int, list[Part]] = {}
        for part in parts:
            found.setdefault(part.end, []).append(part)
        return {end: _reading(self._holes.words(start, end).raw, sorted(ways, key=lambda way: way.cost)) for end, ways in found.items()}


def _reading(raw: str, parts: Sequence[Part]) -> Reading:
    """A description as a reading; one that a word of leaves open is a choice, and what is hardly less likely is kept."""
    part = parts[0]
    others = [each for each in parts[1:] if each.doubt is None and each.cost <= part.cost + _NEARLY and each.value != part.value]
    otherwise = tuple(
        {**each.value, "where": where} for each in others[:_MOST_OTHERS] for where in type_nouns.expanded(each.value["where"])
    )
    return replace(_first_reading(raw, part), otherwise=otherwise)


def _first_reading(raw: str, part: Part) -> Reading:
    ways = [{**part.value, "where": where} for where in type_nouns.expanded(part.value["where"])]
    if len(ways) > 1:
        return Reading(part.cost, None, raw, issue="ambiguous", choices=tuple(ways), doubt=part.doubt)
    return Reading(part.cost, ways[0], raw, issue="near" if part.doubt else None, doubt=part.doubt)


def _all_ways(reading: Reading) -> Reading:
    """Of what is left out everything that it may mean."""
    if reading.value is not None or not reading.choices:
        return reading
    value = {"where": either([choice["where"] for choice in reading.choices]), "kind": "any"}
    return Reading(reading.cost, value, reading.text, issue="near" if reading.doubt else None, doubt=reading.doubt)
