"""Nouns and adjectives that a vault gives a meaning: "the movies", "all meeting notes", "active projects", "posts by Ada".

A noun may be the name of a folder, a tag, or a value of a property. Where it may be several, a condition holds them as `oneOf`, which
`expanded` turns into the plain conditions that a person chooses among.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any

from obsidian_agent.providers.offline.kin import kin
from obsidian_agent.providers.offline.lexicon import FOLDER_NOUNS, NOTE_NOUNS, stem, word_set
from obsidian_agent.providers.offline.names import Closeness, NameIndex

ONE_OF = "oneOf"
MOST_MEANINGS = 4
_MOST_WAYS = 12

_TYPES = word_set("category categories type types kind kinds class classes art typ tipo")
_STATES = word_set("status state stage phase progress priority mood")
_MAKERS = word_set("author authors artist artists director directors creator creators writer writers maker by composer host hosts speaker")
NEVER = (
    NOTE_NOUNS
    | FOLDER_NOUNS
    | word_set(
        "task tasks todo todos tag tags link links heading headings section sections property properties field fields list lists bullet bullets "
        "item items line lines word words row rows backlink backlinks alias aliases text texts name names vault change changes template"
    )
)
"""Nouns that people use for parts of notes, whatever folders and tags a vault has."""

Where = dict[str, Any]


def one_of(meanings: Sequence[Where]) -> Where:
    """Conditions of which one is meant, as one."""
    return meanings[0] if len(meanings) == 1 else {ONE_OF: list(meanings[:MOST_MEANINGS])}


def expanded(where: Any) -> list[Any]:
    """The plain conditions that one with `oneOf` may mean, the first being the likeliest; at most some."""
    if isinstance(where, list):
        return [list(way) for way in islice(product(*(expanded(each) for each in where)), _MOST_WAYS)]
    if not isinstance(where, Mapping):
        return [where]
    ways: list[Where] = [{}]
    for key, value in where.items():
        options = [way for each in value for way in expanded(each)] if key == ONE_OF else [{key: way} for way in expanded(value)]
        ways = [_joined(way, option) for way in ways for option in options][:_MOST_WAYS]
    return ways


def _joined(way: Where, option: Where) -> Where:
    if way.keys().isdisjoint(option):
        return way | option
    return {"all": [way, option]}


def joint(items: Sequence[Sequence[Where]]) -> list[Where]:
    """What several nouns mean together ("movies and shows"): the meanings of one sort that all of them have."""
    found: list[Where] = []
    for sort in dict.fromkeys(_sort(meaning) for meaning in items[0]):
        ways = [[meaning for meaning in meanings if _sort(meaning) == sort] for meanings in items]
        if all(len(way) == 1 for way in ways):
            found.append({"any": [way[0] for way in ways]})
    return found


def _sort(meaning: Where) -> tuple[str, ...]:
    key, value = next(iter(meaning.items()))
    return (key, *value) if isinstance(value, Mapping) else (key,)


def kinds(words: str, index: NameIndex) -> Iterator[Where]:
    """What a noun may mean as a kind of note: a folder, a tag, a value of a property that holds kinds, else of any property.

    The template of a kind is none of it.
    """
    if words not in index.kinds:
        index.kinds[words] = list(_all_kinds(words, index)) if NEVER.isdisjoint(words.casefold().split()) else []
    yield from index.kinds[words]


def _all_kinds(words: str, index: NameIndex) -> Iterator[Where]:
    found = list(_kinds(words, index))
    yield from found
    if not found:
        found = [meaning for form in (*_singulars(words), *_plurals(words)) for meaning in _kinds(form, index)]
        yield from found
    if not found:
        akin = [meaning for other in sorted(kin(words)) for meaning in _kinds(other, index, akin=True)]
        yield from (meaning for at, meaning in enumerate(akin) if meaning not in akin[:at])


def inflected(words: str, index: NameIndex) -> bool:
    """Whether a noun is no English plural, but the form of one that a vault has in the singular: "Suppen" where notes have "Suppe"."""
    return not any(True for _ in _kinds(words, index)) and any(True for form in _singulars(words) for _ in _kinds(form, index))


def collective(words: str, meanings: Sequence[Where]) -> bool:
    """Whether a folder or a tag is called just so: then its name says all that is in it."""
    said = words.casefold()
    folders = [str(each["folder"]).rpartition("/")[2].casefold() for each in meanings if "folder" in each]
    return said in folders or (not folders and any(said == str(each["tag"]).casefold() for each in meanings if "tag" in each))


def of_values(meanings: Sequence[Where]) -> bool:
    """Whether a noun is a value of a property, and nothing else."""
    return all("property" in each for each in meanings)


def _singulars(words: str) -> Iterator[str]:
    """Forms without an ending that makes a plural in other languages than English."""
    folded = words.casefold()
    yield from (words[: -len(ending)] for ending in ("en", "n", "e", "er") if folded.endswith(ending) and len(words) > len(ending) + 2)


def _plurals(words: str) -> Iterator[str]:
    """Forms with such an ending: "Rezept" may be the folder Rezepte."""
    yield from (f"{words}{ending}" for ending in ("e", "en", "n", "er") if len(words) > 2)


def _kinds(words: str, index: NameIndex, *, akin: bool = False) -> Iterator[Where]:
    """What this very noun may mean. One that is only `akin` to what was said is no value of any property."""
    folders = index.find(words, ("folder",))
    if folders is not None and folders.closeness <= Closeness.STEMS:
        yield from ({"folder": path} for path in folders.paths)
    templates: Where = {"not": {"folder": index.names.templates}} if index.names.templates else {}
    tag = index.tag(words) or index.tag(stem(words)) or index.tag(f"{stem(words)}s")
    if tag is not None:
        yield {"tag": tag, **templates}
    valued = index.valued(words)
    kinds_of = [each for each in valued if each[0].casefold() in _TYPES]
    yield from ({"property": {name: value}, **templates} for name, value in kinds_of or (() if akin else valued))


def states(words: str, index: NameIndex) -> Iterator[Where]:
    """What an adjective may mean: a value of a property, of one that holds states before others; else a tag."""
    valued = index.valued(words)
    stated = [each for each in valued if each[0].casefold() in _STATES]
    if words.casefold() in NEVER and not stated:
        return
    for name, value in stated or valued:
        yield {"property": {name: value}}
    if not valued:
        yield from _checkboxes(words, index)
    tag = index.tag(words) if not stated else None
    if tag is not None:
        yield {"tag": tag}


def negated(words: str, index: NameIndex) -> Iterator[Where]:
    """What it may mean that something is not so: "not read" is anything but `read`, what notes call `unread`, or an unticked checkbox."""
    for meaning in states(words, index):
        for name in meaning.get("property", ()):
            opposite = index.value(name, f"un{words}") or index.value(name, f"not {words}")
            if opposite is not None:
                yield {"property": {name: opposite[0]}}
            elif meaning["property"][name] is True:
                yield {"property": {name: False}}  # only where it is unticked, not where it is missing
        yield {"not": meaning}


def attributes(words: str, index: NameIndex) -> Iterator[Where]:
    """What a word before a noun may say: a state, or the folder ("biology lectures")."""
    found = list(states(words, index))
    yield from found
    if words.casefold() not in NEVER and not any("tag" in each for each in found):
        folders = index.find(words, ("folder",))
        if folders is not None and folders.closeness <= Closeness.EXACT:
            yield from ({"folder": path} for path in folders.paths)


def _checkboxes(words: str, index: NameIndex) -> Iterator[Where]:
    """What "paid" and "unpaid" say of notes with a checkbox "paid"."""
    folded = words.casefold()
    for said, wanted in ((folded, True), (folded.removeprefix("un"), False)):
        name = index.property(said) if wanted or said != folded else None
        held = index.names.properties.get(name, {}) if name is not None else {}
        if held and all(isinstance(value, bool) for value in held.values()):
            yield {"property": {name: wanted}}


def makers(words: str, index: NameIndex) -> Iterator[Where]:
    """Who made something: a value of a property that holds authors."""
    yield from ({"property": {name: value}} for name, value in index.valued(words) if name.casefold() in _MAKERS)


def told(where: Mapping[str, Any]) -> str:
    """A condition as a person would say it, for choosing among several."""
    parts = [_told(key, value) for key, value in where.items()]
    return " and ".join(part for part in parts if part) or "all notes"


def _told(key: str, value: Any) -> str:
    match key, value:
        case "folder", str():
            return f"in {value or 'the vault'}"
        case "tag", str() | list():
            return "tagged " + " or ".join(f"#{tag}" for tag in ([value] if isinstance(value, str) else value))
        case "property", Mapping():
            return " and ".join(f"{name}: {_plain(each)}" for name, each in value.items())
        case "not", Mapping():
            return f"not {told(value)}"
        case ("all" | "any") as joint, list():
            return (" and " if joint == "all" else " or ").join(told(each) for each in value)
        case "name", str():
            return f"named {value}"
        case _:
            return ""


def _plain(value: Any) -> str:
    return " or ".join(map(str, value)) if isinstance(value, list) else "none" if value is None else str(value)
