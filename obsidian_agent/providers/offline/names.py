"""Names of a vault as people say them: "the meeting notes folder" is `Meetings`, "HOME dashboard" is `00 - Dashboard/HOME.md`."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import IntEnum
from functools import cached_property, lru_cache
from typing import Any, Literal, Protocol
from unicodedata import normalize

import regex
from rapidfuzz import fuzz, process

from obsidian_agent.providers.offline.lexicon import DETERMINERS, FOLDER_NOUNS, NOTE_NOUNS, stem
from obsidian_agent.providers.offline.property_index import PropertyIndex

NameSort = Literal["note", "folder", "file"]
_WORDS = regex.compile(r"[\p{L}\p{N}]+(?:['’]\p{L}+)?")
_NOUNS = frozenset(stem(word) for word in DETERMINERS | NOTE_NOUNS | FOLDER_NOUNS)
_OUTSIDE = regex.compile(r"\.\.(?:[/\\]|$)|[/~][\p{L}/\\.]|[A-Za-z]:[/\\]|[^\s]*[/\\]\.\.(?:[/\\]|$)")
_PROTECTED = regex.compile(r"(?:[^\s]*[/\\])?\.\p{L}")
_NUMBERED = regex.compile(r"\d[\d.:-]{3,}[ _.:-]+(?P<name>\p{L}.*)")
_DASH = regex.compile(r" [-–—] |: ")
_NEAR = 70
_NO_KINDS = frozenset(("tags", "tag", "aliases", "alias", "cssclasses", "cssclass"))
"""Properties that Obsidian gives a meaning of their own: what stands in them is said as such."""


class VaultNames(Protocol):
    """What the matcher asks about a vault: names only. Paths are vault paths as text."""

    @property
    def notes(self) -> Sequence[str]:
        """Paths of the Markdown notes."""
        ...

    @property
    def files(self) -> Sequence[str]:
        """Paths of all other files."""
        ...

    @property
    def folders(self) -> Sequence[str]:
        """Paths of the folders, without the root."""
        ...

    @property
    def aliases(self) -> Mapping[str, str]:
        """Other names of notes, by the note that has them to itself: alias -> path."""
        ...

    def headings(self, note: str) -> Sequence[str]:
        """Texts of a note's headings, in order; none when it cannot be read."""
        ...

    def levels(self, note: str) -> Sequence[int]:
        """Levels of a note's headings, in order."""
        ...

    def lines(self, note: str) -> Sequence[str] | None:
        """The lines of a note; None when it cannot be told."""
        ...

    def daily_note(self, day: date) -> str:
        """Where the daily note of a day belongs, by the vault's own settings."""
        ...

    @property
    def daily_set(self) -> Mapping[str, Any]:
        """The condition of `vault.find` that daily notes meet."""
        ...

    @property
    def daily_template(self) -> str | None:
        """The template that the vault's own settings name for daily notes."""
        ...

    @property
    def tags(self) -> Sequence[str]:
        """All tags, without `#`."""
        ...

    @property
    def properties(self) -> Mapping[str, Mapping[str, Any]]:
        """All properties: by name, their values by what a person would call them (a link by the text that it shows)."""
        ...

    @property
    def templates(self) -> str | None:
        """The folder of templates by the vault's own settings."""
        ...

    def meant(self, described: Mapping[str, Any]) -> frozenset[str] | None:
        """The paths that a description of notes means (`where` and `kind` of `vault.find`), or None when it cannot be told."""
        ...


class Closeness(IntEnum):
    """How well a name fits, best first. Below STEMS the reading must be confirmed."""

    EXACT = 0
    STEMS = 1
    LOOSE = 2
    NEAR = 3


@dataclass(frozen=True, slots=True)
class Found:
    """Paths that a name may mean, all equally close."""

    paths: tuple[str, ...]
    closeness: Closeness


@dataclass(frozen=True, slots=True)
class _Words:
    """An entry by its words: those of its own name, and those of the folders above it."""

    path: str
    own: frozenset[str]
    above: frozenset[str]


class NameIndex:
    """Looks names up in a vault, each way of looking prepared at its first use. What was found is kept."""

    def __init__(self, names: VaultNames) -> None:
        self.names = names
        self._found: dict[tuple[str, tuple[NameSort, ...]], Found | None] = {}
        self._above: dict[str, tuple[str, ...]] = {}
        self._named_alike: dict[str, str | None] = {}
        self._meant: dict[str, frozenset[str] | None] = {}

    def find(self, text: str, sorts: Sequence[NameSort]) -> Found | None:
        """The entries that `text` names: as written (path, path without extension, or bare name, case ignored), else by their words."""
        key = (_fold(text).strip("/"), tuple(sorts))
        if key not in self._found:
            self._found[key] = self._look_up(*key) if key[0] else None
        return self._found[key]

    def _look_up(self, key: str, sorts: tuple[NameSort, ...]) -> Found | None:
        if names_out_of_bounds(key):
            return None
        if "/" in key:  # a path is meant as it is written
            written = {path: None for sort in sorts for path in self._exact(sort, key)}
            return Found(tuple(written), Closeness.EXACT) if written else None
        ways = (
            (Closeness.EXACT, self._exact),
            (Closeness.EXACT, self._by_alias),
            (Closeness.STEMS, self._by_stems),
            (Closeness.STEMS, self._by_part),
            (Closeness.LOOSE, self._by_parts),
        )
        for closeness, lookup in ways:
            found = {path: None for sort in sorts for path in lookup(sort, key)}
            if found:
                return Found(tuple(found), closeness)
        return None

    def meant(self, described: Mapping[str, Any]) -> frozenset[str] | None:
        """What `VaultNames.meant` says of a description of notes; asked once."""
        described = {**described, "kind": "notes" if described["kind"] == "any" else described["kind"]}
        key = json.dumps(described, sort_keys=True, default=str)
        if key not in self._meant:
            self._meant[key] = self.names.meant(described)
        return self._meant[key]

    def nearest(self, text: str, sorts: Iterable[NameSort], limit: int = 3) -> tuple[str, ...]:
        """Paths whose names look like `text`, best first: what was perhaps meant."""
        choices = {path: _fold(_bare(path)) for sort in sorts for path in self._paths(sort)}
        found = process.extract(_fold(_bare(text)), choices, scorer=fuzz.WRatio, limit=limit, score_cutoff=_NEAR)
        return tuple(path for _, _, path in found)

    def tag(self, text: str) -> str | None:
        """The tag that `text` names, in the vault's spelling; one that only has nested ones counts too."""
        return self._tags.get(_fold(text).strip("#/ "))

    def property(self, text: str) -> str | None:
        """The property that `text` names, singular or plural: the "due date" may be "due"."""
        key = _fold(text).strip()
        for each in (key, " ".join(stem(word) for word in key.split()), _SAID_OF_VALUES.sub("", key)):
            if each in self._properties:
                return self._properties[each]
        return None

    def value(self, name: str, text: str) -> tuple[Any] | None:
        """The value of a property that `text` names, in a tuple of one; a list when notes spell it in several ways."""
        values = self._values.get(name, {})
        key = _fold(text).strip()
        for each in (key, " ".join(stem(word) for word in key.split())):
            if each in values:
                return (values[each],)
        return None

    def valued(self, text: str) -> list[tuple[str, Any]]:
        """The properties that have a value of this name, with it."""
        key = _fold(text).strip()
        stems = " ".join(stem(word) for word in key.split())
        found = {**self._by_value.get(stems, {}), **self._by_value.get(key, {})}
        return [(name, found[name]) for name in self._values if name in found] if len(found) > 1 else list(found.items())

    @cached_property
    def held(self) -> PropertyIndex:
        """The properties by what verbs, parts of values and amounts say of them."""
        return PropertyIndex(self.names.properties)

    def held_in_names(self, text: str) -> str | None:
        """The words of `text`, in singular or plural, as at least two notes have them one after another in their names; None otherwise."""
        wanted = f" {' '.join(stem(word) for word in _WORDS.findall(_fold(text)))} "
        if wanted not in self._named_alike:
            said = _fold(text)
            ways = [way for way in dict.fromkeys((said, said.removesuffix("s"), wanted.strip())) if way]
            named = [name for name, stems in self._name_words if wanted in stems]
            fitting = next((way for way in ways if sum(way in name for name in named) == len(named)), None)
            self._named_alike[wanted] = fitting if len(named) > 1 and wanted.strip() else None
        return self._named_alike[wanted]

    @cached_property
    def _name_words(self) -> list[tuple[str, str]]:
        """The names of notes, and the stems of their words between blanks."""
        names = (_fold(_bare(path)) for path in self.names.notes)
        return [(name, f" {' '.join(stem(word) for word in _WORDS.findall(name))} ") for name in names]

    @cached_property
    def _tags(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for tag in self.names.tags:
            parts = tag.split("/")
            for count in range(len(parts), 0, -1):
                found.setdefault(_fold("/".join(parts[:count])), "/".join(parts[:count]))
        return found

    @cached_property
    def _properties(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for name in self.names.properties:
            found.setdefault(_fold(name), name)
        for name in self.names.properties:
            found.setdefault(" ".join(stem(word) for word in _fold(name).split()), name)
        return found

    @cached_property
    def _by_value(self) -> dict[str, dict[str, Any]]:
        """Properties with their value, by what it is called."""
        found: dict[str, dict[str, Any]] = defaultdict(dict)
        for name, values in self._values.items():
            if name.casefold() not in _NO_KINDS:
                for said, value in values.items():
                    found[said][name] = value
        return found

    @cached_property
    def kinds(self) -> dict[str, list[dict[str, Any]]]:
        """What nouns were found to mean as kinds of notes."""
        return {}

    @cached_property
    def _values(self) -> dict[str, dict[str, Any]]:
        tables: dict[str, dict[str, Any]] = {}
        for name, values in self.names.properties.items():
            table: dict[str, Any] = {}
            for said, value in values.items():  # spelt differently by different notes: all of them are meant
                table[_fold(said)] = [*_listed(table[_fold(said)]), value] if _fold(said) in table else value
            stems = {" ".join(stem(word) for word in said.split()): value for said, value in table.items()}
            tables[name] = stems | table
        return tables

    def _paths(self, sort: NameSort) -> Sequence[str]:
        match sort:
            case "note":
                return self.names.notes
            case "folder":
                return self.names.folders
            case "file":
                return self.names.files

    def _exact(self, sort: NameSort, key: str) -> Sequence[str]:
        by_path, by_name = self._tables[sort]
        if key in by_path:
            return by_path[key]
        named = by_name.get(key.rpartition("/")[2], ())
        return (
            [path for path in named if _fold(path).removesuffix(".md").endswith(("/" + key).removesuffix(".md"))] if "/" in key else named
        )

    def _by_alias(self, sort: NameSort, key: str) -> Sequence[str]:
        return [self._aliases[key]] if sort == "note" and key in self._aliases else []

    @cached_property
    def _aliases(self) -> dict[str, str]:
        return {_fold(alias): path for alias, path in self.names.aliases.items()}

    def _by_stems(self, sort: NameSort, key: str) -> Sequence[str]:
        return self._stem_tables[sort].get(_stems(key), ())

    def _by_part(self, sort: NameSort, key: str) -> Sequence[str]:
        """Notes by a part of their names: behind a number or a day, before or behind a dash ("Sato 2019 - Pan traps")."""
        return self._name_parts.get(key.removesuffix(".md"), ()) if sort == "note" else ()

    @cached_property
    def _name_parts(self) -> dict[str, list[str]]:
        table: dict[str, list[str]] = defaultdict(list)
        for path in self.names.notes:
            name = _fold(_bare(path))
            match = _NUMBERED.fullmatch(name)
            if match is not None:
                table[match["name"]].append(path)
            for part in _DASH.split(name) if _DASH.search(name) else ():
                table[part.strip()].append(path)
        return table

    def _by_parts(self, sort: NameSort, key: str) -> Sequence[str]:
        """Entries whose own name is part of the words said, the other words being names of their folders."""
        said = frozenset(_stems(key))
        if len(said) < 2:
            return ()
        near = (each for word in sorted(said) for each in self._by_word[sort].get(word, ()))
        return list(dict.fromkeys(each.path for each in near if each.own <= said <= each.own | each.above))

    @cached_property
    def _tables(self) -> dict[NameSort, tuple[dict[str, list[str]], dict[str, list[str]]]]:
        return {sort: self._table(sort) for sort in ("note", "folder", "file")}

    def _table(self, sort: NameSort) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
        by_path: dict[str, list[str]] = defaultdict(list)
        by_name: dict[str, list[str]] = defaultdict(list)
        for path in self._paths(sort):
            folded = _fold(path)
            by_path[folded].append(path)
            name = folded.rpartition("/")[2]
            by_name[name].append(path)
            if sort == "note":
                by_path[folded.removesuffix(".md")].append(path)
                by_name[name.removesuffix(".md")].append(path)
        return by_path, by_name

    @cached_property
    def _stem_tables(self) -> dict[NameSort, dict[tuple[str, ...], list[str]]]:
        return {sort: self._stem_table(sort) for sort in ("note", "folder", "file")}

    def _stem_table(self, sort: NameSort) -> dict[tuple[str, ...], list[str]]:
        table: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for path in self._paths(sort):
            own = _stems(_fold(_bare(path)))
            if own:
                table[own].append(path)
                above = self._folder_stems(path.rpartition("/")[0])
                if above:
                    table[above + own].append(path)
        return table

    @cached_property
    def _by_word(self) -> dict[NameSort, dict[str, list[_Words]]]:
        """Entries by the first word of their names: who is named has said that one too."""
        tables: dict[NameSort, dict[str, list[_Words]]] = {"note": {}, "folder": {}, "file": {}}
        for sort, table in tables.items():
            for path in self._paths(sort):
                own = _stems(_fold(_bare(path)))
                if own:
                    above = frozenset(self._folder_stems(path.rpartition("/")[0]))
                    telling = [word for word in own if not word.isdigit()]
                    for words in (own, telling) if telling and len(telling) < len(own) else (own,):
                        table.setdefault(words[0], []).append(_Words(path, frozenset(words), above | frozenset(own)))
        return tables

    def _folder_stems(self, folder: str) -> tuple[str, ...]:
        if folder not in self._above:
            self._above[folder] = _stems(_fold(folder))
        return self._above[folder]


_SAID_OF_VALUES = regex.compile(r" (?:dates?|values?|fields?|propert(?:y|ies))$")
"""What people add to a property's name."""


def names_out_of_bounds(text: str) -> str | None:
    """The code with which the gate refuses a path that is outside of the vault or protected in it; None for any other text."""
    if _OUTSIDE.match(text) is not None:
        return "PATH_OUTSIDE_VAULT"
    return "PATH_NOT_ALLOWED" if _PROTECTED.match(text) is not None else None


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _fold(text: str) -> str:
    return normalize("NFC", text).casefold()


def _bare(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".md")


@lru_cache(maxsize=65536)
def _stems(text: str) -> tuple[str, ...]:
    """The words of a name without articles, nouns like "folder", and the numbers that sort folders ("00 - Dashboard")."""
    words = [stem(word) for word in _WORDS.findall(text)]
    telling = [word for word in words if word not in _NOUNS]
    named = (
        [word for word in telling if not word.isdigit()] if len(telling) > 1 and telling[0].isdigit() and len(telling[0]) < 4 else telling
    )
    return tuple(named)
