"""The names of a vault: folders, tags, properties, values of properties, notes and their aliases, and where a sentence says one.

They are taken from the vault's index. Case and Unicode form do not count; in a sentence the longest name wins, whatever the language.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import regex

from obsidian_agent.errors import VaultError
from obsidian_agent.vault.index import VaultIndex, index_of
from obsidian_agent.vault.paths import ROOT
from obsidian_agent.vault.view import VaultView

NameKind = Literal["folder", "tag", "property", "value", "note", "alias", "file"]

_LONGEST_VALUE: Final = 60
_LONGEST: Final = 12
"""Words of a name, at most."""

_WORD: Final = regex.compile(r"#?[\p{L}\p{N}\p{M}_]+(?:['’][\p{L}]+)?")
_JOINED: Final = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}]")
_LINK: Final = regex.compile(r"\s*\[\[([^\[\]\n|#]+)(?:[|#][^\[\]\n]*)?\]\]\s*")
_ARTICLES: Final = ("the ", "my ")


@dataclass(frozen=True, slots=True)
class Name:
    """Something of the vault that has a name. `value`: path, tag without `#`, property, or the value itself, of `property`."""

    kind: NameKind
    value: Any
    property: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """A stretch of a sentence that is a name of the vault, and all that it may name."""

    start: int
    end: int
    text: str
    names: tuple[Name, ...]


@dataclass
class Names:
    """All names, by what two spellings of one have in common."""

    by_key: dict[str, list[Name]] = field(default_factory=dict)
    properties: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Name -> the values that notes have for it, by how a person would write them."""
    folders: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    @classmethod
    def of(cls, view: VaultView) -> Names:
        """The names of a vault as it is. May block."""
        index, names = index_of(view), cls()
        folders = {entry.path.text for entry in view.children(ROOT) if entry.kind == "folder"}
        tags: dict[str, str] = {}
        for path in index.files():
            parent = path.parent
            while not parent.is_root and parent.text not in folders:
                folders.add(parent.text)
                parent = parent.parent
            if path.is_note:
                names._add("note", path.text, path.stem, path.text.removesuffix(".md"), path.text)
                names._learn(index, path, tags)
            else:
                names._add("file", path.text, path.name, path.text)
        for folder in folders:
            names._add("folder", folder, folder.rpartition("/")[2], folder)
        for tag in tags.values():
            names._add("tag", tag, tag, f"#{tag}")
        for name, values in names.properties.items():
            names._add("property", name, name)
            for said, value in values.items():
                names._add("value", value, said, of=name)
        for alias, path in index.aliases():
            names._add("alias", path.text, alias)
        names.folders, names.tags = tuple(sorted(folders)), tuple(sorted(tags.values()))
        return names

    def find(self, text: str, *kinds: NameKind) -> tuple[Name, ...]:
        """What a whole text names, of these kinds (none given: of any). Of a note and an alias the note counts."""
        found = [name for name in self.by_key.get(key_of(text), ()) if not kinds or name.kind in kinds]
        own = [name for name in found if name.kind != "alias"]
        return tuple(own or found)

    def in_sentence(self, sentence: str, common: Collection[str] = ()) -> tuple[Found, ...]:
        """The longest names in a sentence, from the left, none within another.

        Words in `common` (lower case) are names only where they are written as the name is, with a capital letter.
        """
        starts, ends = _edges(sentence)
        found: list[Found] = []
        done = 0
        for number, start in enumerate(starts):
            if start < done:
                continue
            for end in reversed([end for end in ends if end > start][:_LONGEST]):
                text = sentence[start:end]
                names = self.by_key.get(key_of(text), [])
                if names and _told(text, names, common, first=number == 0):
                    found.append(Found(start, end, text, tuple(names)))
                    done = end
                    break
        return tuple(found)

    def _learn(self, index: VaultIndex, path: Any, tags: dict[str, str]) -> None:
        facts = index.facts(path)
        for tag in facts.tags:
            tags.setdefault(tag.casefold(), tag)
        for name, value in facts.properties.items():
            values = self.properties.setdefault(name, {})
            for each in value if isinstance(value, list) else [value]:
                said = said_of(each)
                if said is not None and len(said) <= _LONGEST_VALUE:
                    values.setdefault(said, each if not isinstance(each, str) else said)

    def _add(self, kind: NameKind, value: Any, *texts: str, of: str | None = None) -> None:
        for text in dict.fromkeys(map(key_of, texts)):
            if text:
                self.by_key.setdefault(text, []).append(Name(kind, value, of))


def key_of(text: str) -> str:
    """What two spellings of a name have in common."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().replace("’", "'").split())


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
    from obsidian_agent.vault.paths import PathUse, parse

    try:
        entry = view.locate(parse(path, PathUse.FOLDER))
    except VaultError:
        return False
    return entry is not None and entry.kind == "folder"


def _edges(sentence: str) -> tuple[list[int], list[int]]:
    """Where names may begin and end: at words, and at each character of scripts that write without blanks."""
    words = list(_WORD.finditer(sentence))
    joined = [match.start() for match in _JOINED.finditer(sentence)]
    starts = {match.start() for match in words} | {match.start() + 1 for match in words if match[0].startswith("#")} | set(joined)
    ends = {match.end() for match in words} | {place + 1 for place in joined} | set(_closing(sentence, words))
    return sorted(starts), sorted(ends)


def _closing(sentence: str, words: Iterable[Any]) -> Iterator[int]:
    """Names may end with a sign: `(draft)`, `C++`, `What?`."""
    for match in words:
        end = match.end()
        while end < len(sentence) and sentence[end] in ")]!?+%*.":
            end += 1
            yield end


def _told(text: str, names: list[Name], common: Collection[str], *, first: bool) -> bool:
    """Whether a stretch of a sentence is meant as a name: numbers alone and letters alone are not, nor common words as they come."""
    bare = text.strip()
    if len(bare) < 2 and not _JOINED.match(bare):
        return False
    if bare.replace(".", "").isdigit():
        return False
    if bare.casefold() not in common:
        return True
    return not first and bare != bare.lower()
