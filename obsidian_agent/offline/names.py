"""The names of a vault, from its index: folders, tags, properties, values of properties, notes and their aliases.

Case and Unicode form do not count.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal

import regex

from obsidian_agent.errors import VaultError
from obsidian_agent.vault.index.index import VaultIndex
from obsidian_agent.vault.links.resolve import name_key
from obsidian_agent.vault.paths.path import ROOT
from obsidian_agent.vault.views.view import VaultView

NameKind = Literal["folder", "tag", "property", "value", "note", "alias", "file"]

_LONGEST_VALUE: Final = 60
_NAMED_ELSEWHERE: Final = frozenset({"tags", "tag", "aliases", "alias"})
"""Properties whose values are names of another kind."""

_LINK: Final = regex.compile(r"\s*\[\[([^\[\]\n|#]+)(?:[|#][^\[\]\n]*)?\]\]\s*")


@dataclass(frozen=True, slots=True)
class Name:
    """Something of the vault that has a name. `value`: path, tag without `#`, property, or the value itself, of `property`."""

    kind: NameKind
    value: Any
    property: str | None = None


@dataclass
class Names:
    """All names of a vault. Notes and files are looked up in its index; what it has no order for is read once, when first asked for."""

    index: VaultIndex
    _top: tuple[str, ...] = ()
    """Folders right in the vault, also empty ones."""

    @classmethod
    def of(cls, view: VaultView) -> Names:
        """The names of a vault as it is. May block."""
        return cls(view.index, tuple(entry.path.text for entry in view.children(ROOT) if entry.kind == "folder"))

    def find(self, text: str, *kinds: NameKind) -> tuple[Name, ...]:
        """What a whole text names, of these kinds (none given: of any). Of a note and an alias the note counts."""
        key = key_of(text)
        if not key:
            return ()
        found = [name for name in (*self._files(key), *self._read.by_key.get(key, ())) if not kinds or name.kind in kinds]
        by_name = any(name.kind == "note" for name in found)
        return tuple(name for name in found if not by_name or name.kind != "alias")

    @property
    def properties(self) -> Mapping[str, Mapping[str, Any]]:
        """Properties, with the values that notes have for each, by how a person would write them."""
        return self._read.properties

    @property
    def folders(self) -> tuple[str, ...]:
        """The paths of the folders, sorted."""
        return self._read.folders

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags as first written, sorted, without `#`."""
        return self._read.tags

    def _files(self, key: str) -> Iterator[Name]:
        """Notes and other files of a name or path, with or without the ending of a note."""
        for path in self.index.named(name_key(key)):
            full = key_of(path.text)
            if key in (full, full.removesuffix(".md"), key_of(path.name), key_of(path.stem) if path.is_note else full):
                yield Name("note" if path.is_note else "file", path.text)

    @cached_property
    def _read(self) -> _Read:
        return _Read.of(self.index, self._top)


@dataclass
class _Read:
    """What one look through the index gives: folders, tags, properties with their values, aliases."""

    by_key: dict[str, list[Name]] = field(default_factory=dict)
    properties: dict[str, dict[str, Any]] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    @classmethod
    def of(cls, index: VaultIndex, top: Iterable[str]) -> _Read:
        read = cls()
        folders = set(top)
        spelled: dict[str, None] = {}
        known: set[tuple[str, Any]] = set()
        for path in index.files():
            folders.add(path.text.rpartition("/")[0])
            if path.is_note:
                facts = index.facts(path)
                spelled.update(dict.fromkeys(facts.tags))
                for name, value in facts.properties.items():
                    # Most notes only repeat what others have: that is told by a look into one set.
                    for each in value if isinstance(value, list) else (value,):
                        if isinstance(each, Hashable) and (name, each) not in known:
                            known.add((name, each))
                            read._learn(name, each)
        read.folders = tuple(sorted({part for folder in folders for part in _with_parents(folder)} - {""}))
        read.tags = tuple(sorted({tag.casefold(): tag for tag in reversed(spelled)}.values()))
        read._name(index)
        return read

    def _learn(self, name: str, value: Any) -> None:
        values = self.properties.setdefault(name, {})
        said = said_of(value) if name.casefold() not in _NAMED_ELSEWHERE else None
        if said is not None and len(said) <= _LONGEST_VALUE and "://" not in said:
            values.setdefault(said, said if isinstance(value, str) else value)

    def _name(self, index: VaultIndex) -> None:
        for folder in self.folders:
            self._add("folder", folder, folder.rpartition("/")[2], folder)
        for tag in self.tags:
            self._add("tag", tag, tag, f"#{tag}")
        for name, values in self.properties.items():
            self._add("property", name, name)
            for said, value in values.items():
                self._add("value", value, said, of=name)
        for alias, path in index.aliases():
            self._add("alias", path.text, alias)

    def _add(self, kind: NameKind, value: Any, *texts: str, of: str | None = None) -> None:
        for text in {key_of(text) for text in texts}:
            if text:
                self.by_key.setdefault(text, []).append(Name(kind, value, of))


def _with_parents(folder: str) -> Iterator[str]:
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]


def key_of(text: str) -> str:
    """What two spellings of a name have in common."""
    plain = text if text.isascii() else unicodedata.normalize("NFC", text).replace("’", "'")
    return " ".join(plain.casefold().split())


def said_of(value: Any) -> str | None:
    """How a person would write the value of a property; None for what has no short name. A link is called by its target."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str) or not value.strip():
        return None
    link = _LINK.fullmatch(value)
    return str(link[1]).rpartition("/")[2].removesuffix(".md").strip() if link else value


def folder_exists(view: VaultView, path: str) -> bool:
    """Whether there is such a folder, empty ones among them."""
    from obsidian_agent.vault.paths.path import PathUse, parse

    try:
        entry = view.locate(parse(path, PathUse.FOLDER))
    except VaultError:
        return False
    return entry is not None and entry.kind == "folder"
