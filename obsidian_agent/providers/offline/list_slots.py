"""Slots that hold several things: tags, properties, names of new notes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from obsidian_agent.providers.offline import doubts, word_slots
from obsidian_agent.providers.offline.lexicon import CALLED, DETERMINERS, NOTE_NOUNS, PREPOSITIONS
from obsidian_agent.providers.offline.names import NameIndex
from obsidian_agent.providers.offline.readings import Reading
from obsidian_agent.providers.offline.stretch import Stretch

_TAG_NOUNS = frozenset(("the", "tags", "tag", "hashtags", "hashtag"))
_PROPERTY_NOUNS = frozenset(("properties", "property", "fields", "field", "keys", "key"))
_COUNTS = frozenset(("two", "three", "four", "five", "six", "new", "empty", ":"))


def tags(words: Stretch, *, free: bool) -> Reading | None:
    """One or several tags, without their #."""
    inner = words.trimmed(_TAG_NOUNS, _TAG_NOUNS)
    if inner.first.lower in _TAG_NOUNS | PREPOSITIONS:
        return None
    said = free or any(word in _TAG_NOUNS - DETERMINERS for word in words.lowers)
    return _listed(inner, lambda part: word_slots.tag(part, free=said))


def known_properties(words: Stretch, index: NameIndex) -> Reading | None:
    """One or several properties that notes of the vault have."""
    return _listed(words.trimmed(DETERMINERS | _PROPERTY_NOUNS, _PROPERTY_NOUNS), lambda part: known_property(part, index))


def known_property(words: Stretch, index: NameIndex) -> Reading | None:
    """A property that notes of the vault have, as it is spelled there; an unknown one is a doubt."""
    nouns = _PROPERTY_NOUNS | {"frontmatter", "metadata"}
    inner = words.trimmed(DETERMINERS | nouns | CALLED, nouns)
    name = inner.quoted or inner.raw
    found = index.property(name)
    if found is not None:
        return Reading(0.3 if found.casefold() in _TAG_NOUNS and words.quoted is None else 0.0, found, name)
    said = word_slots.property_name(words, free=False)
    if said is None:
        return None
    return Reading(said.cost + 0.5, said.value, name, issue="near", doubt=f"no note has the property “{said.value}”")


def names(words: Stretch) -> Reading | None:
    """The names of several new notes."""
    return _listed(words.trimmed(DETERMINERS | NOTE_NOUNS | CALLED | _COUNTS), _name, least=2)


def _name(words: Stretch) -> Reading | None:
    if (name := words.quoted) is not None:
        return Reading(0.0, name, name)
    if not words.plain or len(words) > 5 or words.first.lower in DETERMINERS:
        return None
    capital = words.first.text[:1].isupper() or words.first.text[:1].isdigit()
    doubt = 0.3 * sum(token.lower in PREPOSITIONS for token in words) + doubts.as_name(words)
    return Reading((0.05 if capital else 0.7 + 0.1 * len(words)) + doubt, words.raw, words.raw)


def _listed(words: Stretch, read: Callable[[Stretch], Reading | None], least: int = 1) -> Reading | None:
    """Items between commas and "and"."""
    found = [read(part) for part in _parts(words)]
    readings = [each for each in found if each is not None]
    if len(readings) < least or len(readings) < len(found):
        return None
    doubt = next((each.doubt for each in readings if each.doubt is not None), None)
    values = [each.value for each in readings]
    return Reading(sum(each.cost for each in readings), values, words.raw, issue="near" if doubt else None, doubt=doubt)


def _parts(words: Stretch) -> Iterator[Stretch]:
    start = words.start
    for at in range(words.start, words.end):
        token = words.tokens[at]
        if token.text in (",", "&") or token.lower == "and":
            if at > start:
                yield words.part(start, at)
            start = at + 1
    if start < words.end:
        yield words.part(start, words.end)
