"""What ties notes to people, places and things by a property: "with Priya", "led by Anna", "of client Nordwind", "in Kyoto".

Which property is meant is told by the value: `of` and `with` may speak of any that has it, a verb only of one that it resembles, `by` of
makers. Where several may be meant, a condition holds them as `oneOf`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from obsidian_agent.providers.offline import type_nouns
from obsidian_agent.providers.offline.lexicon import word_set
from obsidian_agent.providers.offline.names import Closeness, NameIndex
from obsidian_agent.providers.offline.set_modifiers import both, either
from obsidian_agent.providers.offline.stretch import Stretch

Where = dict[str, Any]
Tie = Mapping[str, list[Any]]
"""What one name may be: values by property."""

_PEOPLE = word_set(
    "attendees attendee participants participant people persons with guests guest present members member team who invited teilnehmer"
)
_DONE_BY = word_set(
    "author authors artist artists director directors creator creators writer writers maker makers by composer host hosts speaker"
)
_NO_NAMES = word_set("true false none null yes no")


def tie(words: Stretch, index: NameIndex) -> Tie | None:
    """What a name may stand for as a value: as it is written, the name of the note with that alias, or a part of one ("Okafor")."""
    said = words.quoted or words.raw
    if words.quoted is None and (not words.plain or words.last.lower in _NO_NAMES):
        return None
    found: dict[str, list[Any]] = {}
    for name in _spoken(said, index):
        for key, value in index.valued(name):
            found.setdefault(key, []).extend(value if isinstance(value, list) else [value])
    if not found and words.quoted is None and words.first.text[:1].isupper() and len(words) <= 3:
        for held in index.held.partly(said):
            if not held.several:
                found.setdefault(held.name, []).extend(held.values)
    return {key: list(dict.fromkeys(values)) for key, values in found.items()} or None


def value_of(name: str, said: str, index: NameIndex) -> tuple[Any] | None:
    """The value of a property that a name stands for, in a tuple of one: as written, or the name of the note with that alias."""
    for each in _spoken(said, index):
        found = index.value(name, each)
        if found is not None:
            return found
    return None


def _spoken(said: str, index: NameIndex) -> Iterator[str]:
    yield said
    notes = index.find(said, ("note",))
    if notes is not None and len(notes.paths) == 1 and notes.closeness <= Closeness.STEMS:
        name = notes.paths[0].rpartition("/")[2].removesuffix(".md")
        if name.casefold() != said.casefold():
            yield name


def tied(joint: str, ties: Sequence[Tie], *, names: Sequence[str] | None = None, together: bool = False) -> Where | None:
    """Notes with all of some values ("and") or one of them in one property; of `names` only, where they are given.

    "And" may also join what only several notes have ("books by Ada and Ben"), unless the words say that it is `together`.
    """
    shared = [name for name in ties[0] if all(name in each for each in ties) and (names is None or name in names)]
    meanings: list[Where] = []
    for name in shared:
        one = {"property": {name: _flat([value for each in ties for value in each[name]])}}
        if joint == "and" and len(ties) > 1:
            meanings.append(both(*({"property": {name: _flat(each[name])}} for each in ties)))
            meanings += [] if together or name.casefold() in _PEOPLE else [one]
        else:
            meanings.append(one)
    return type_nouns.one_of(meanings) if meanings else None


def _flat(values: Sequence[Any]) -> Any:
    distinct = list(dict.fromkeys(values))
    return distinct[0] if len(distinct) == 1 else distinct


Relation = Literal["any", "maker", "presence", "subject"]


def names_for(relation: Relation, index: NameIndex) -> list[str] | None:
    """The properties that a way to say a relation may mean; None for any."""
    known = index.names.properties
    match relation:
        case "any":
            return None
        case "maker":
            return [name for name in known if name.casefold() in _DONE_BY]
        case "presence":
            return [name for name in known if name.casefold() in _PEOPLE]
        case "subject":
            return [name for name in known if name.casefold() not in _PEOPLE | _DONE_BY]


__all__ = ["Relation", "Tie", "Where", "either", "names_for", "tie", "tied", "value_of"]
