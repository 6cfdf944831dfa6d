"""Holes that properties fill: their names, their values, and the verbs and names that speak of them."""

from __future__ import annotations

import regex

from obsidian_agent.providers.offline import relations
from obsidian_agent.providers.offline.ground import NO_TEXT, Ground
from obsidian_agent.providers.offline.lexicon import word_set
from obsidian_agent.providers.offline.stretch import Stretch
from obsidian_agent.providers.offline.strict import Part

_SAID_AS_SUCH = frozenset(("tags", "tag", "aliases", "alias", "cssclasses"))
_SHORTEST_VERB = 3
_NO_VERBS = NO_TEXT | word_set("since before after until during within between over under above below about than more less")
_OR = regex.compile(r"\s+(?:and|or)\s+")


def named(words: Stretch, ground: Ground) -> Part | None:
    said = words.quoted or words.raw
    name = ground.index.property(said) or ground.index.property(f"{said}es")
    if name is None and words.quoted is None and len(words) > 1 and words.last.lower == "date":
        name = ground.index.property(said[: words.part(words.start, words.end - 1).last.end - words.first.start])
    return Part(words.end, name) if name is not None and name.casefold() not in ("tags", "tag") else None


def value(words: Stretch, ground: Ground) -> Part | None:
    of = ground.of
    if of is None:
        return None
    known = relations.value_of(of, words.quoted or words.raw, ground.index)
    if known is not None:
        return Part(words.end, known[0])
    return Part(words.end, words.quoted, 0.3, f"no note has “{words.quoted}” as {of}") if words.quoted is not None else None


def valued(words: Stretch, ground: Ground) -> Part | None:
    """A value before the name of its property: "gold tier"."""
    if not words.plain:
        return None
    if len(words) == 1:
        return _hyphened(words, ground)
    for at in range(words.start + 1, words.end):
        name = ground.index.property(words.part(at, words.end).raw)
        said = _OR.split(words.part(words.start, at).raw)
        found = [ground.index.value(name, each) for each in said] if name is not None else []
        values = [value for each in found if each is not None for value in (each[0] if isinstance(each[0], list) else [each[0]])]
        if found and all(each is not None for each in found):
            return Part(words.end, {"property": {name: values[0] if len(values) == 1 else values}})
    return None


def _hyphened(words: Stretch, ground: Ground) -> Part | None:
    """The same in one word: "high-priority"."""
    value_said, _, said = words.raw.rpartition("-")
    name = ground.index.property(said) if value_said else None
    value = ground.index.value(name, value_said.replace("-", " ")) if name is not None else None
    return Part(words.end, {"property": {name: value[0]}}) if value is not None else None


def due_on(words: Stretch, ground: Ground) -> Part | None:
    """The one property that holds when something is due."""
    if words.first.lower != "due":
        return None
    names = {name for said in ("due", "due date", "deadline") if (name := ground.index.property(said)) is not None}
    return Part(words.end, names.pop()) if len(names) == 1 else None


def measured(words: Stretch, ground: Ground) -> Part | None:
    """The one property that a verb speaks of: "rated" of `rating`, "due" of `deadline`."""
    due = due_on(words, ground)
    if due is not None:
        return due
    verb = words.first
    if verb.kind != "word" or len(verb.lower) < _SHORTEST_VERB or verb.lower in _NO_VERBS:
        return None
    held = ground.index.held
    names = [name for name in held.resembling(verb.lower) if name.casefold() not in _SAID_AS_SUCH and held.sort(name) != "truth"]
    exact = [name for name in names if name.casefold() == verb.lower]
    found = exact or names
    return Part(words.end, found[0]) if len(found) == 1 else None


def checked(words: Stretch, ground: Ground) -> Part | None:
    """The one checkbox that a verb speaks of: "ran" of `run`."""
    lower = words.first.lower
    if words.first.kind != "word" or len(lower) < _SHORTEST_VERB or lower in NO_TEXT:
        return None
    held = ground.index.held
    names = [name for name in held.resembling(lower) if held.sort(name) == "truth"]
    return Part(words.end, names[0]) if len(names) == 1 else None


def verb(words: Stretch, ground: Ground) -> Part | None:
    lower = words.first.lower
    return Part(words.end, lower) if len(lower) >= _SHORTEST_VERB and lower.isalpha() and lower not in _NO_VERBS else None


def tie(words: Stretch, ground: Ground) -> Part | None:
    if words.first.kind == "word" and words.first.lower in NO_TEXT:
        return None
    found = relations.tie(words, ground.index)
    named = {name: values for name, values in found.items() if ground.index.held.sort(name) == "text"} if found is not None else {}
    return Part(words.end, named) if named else None
