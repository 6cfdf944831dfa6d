"""The surroundings of a sentence: the day, the open note, and the names in the vault's index.

Names are compared without case and in Unicode normal form.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Literal, get_args

from msgspec import Struct

from obsidian_agent.errors import VaultError
from obsidian_agent.expression import expression
from obsidian_agent.offline.words import folded
from obsidian_agent.tools.core.tool import RunContext
from obsidian_agent.vault.index.index import VaultIndex
from obsidian_agent.vault.links.resolve import name_key
from obsidian_agent.vault.paths.path import ROOT, PathUse, VaultPath, parse
from obsidian_agent.vault.views.view import VaultView

NameKind = Literal["folder", "tag", "property", "value", "note", "alias", "file"]
_ALL: Final[frozenset[NameKind]] = frozenset(get_args(NameKind))
_OF_NOTES: Final[frozenset[NameKind]] = frozenset({"tag", "property", "value"})

_MAX_VALUE: Final = 60
_NAMED_ELSEWHERE: Final = frozenset({"tags", "tag", "aliases", "alias"})
"""Properties whose values are names of another kind."""
_MISSPELLED: Final[frozenset[NameKind]] = frozenset({"note", "folder", "tag", "property"})
_MIN_SPELLED: Final = 5
"""Letters of a name that may be misspelled."""
_DIGITS: Final = expression(r"\d")
_START: Final = 4
"""The first letters that all forms of a word have."""
_NUMBERED: Final = expression(r"[\W\d_]*[\W_](?=[^\W\d_])(.+)")
_WORDS: Final = expression(r"\w+")
_LINK: Final = expression(r"\s*\[\[([^\[\]\n|#]+)(?:[|#][^\[\]\n]*)?\]\]\s*")


class Name(Struct, frozen=True):
    """A name in the vault.

    `value` is a path, a tag without `#`, a property, or a value of `property`.
    """

    kind: NameKind
    value: Any
    property: str | None = None


class VaultNames(Struct, dict=True):
    """The names of a vault.

    Notes and files are looked up in its index. Names that the index cannot look up are read once,
    when they are first needed.
    """

    index: VaultIndex
    _top: tuple[str, ...] = ()
    """Folders in the vault's root, including empty ones."""

    def find(self, text: str, *kinds: NameKind) -> tuple[Name, ...]:
        """Return the names equal to a text, of these kinds or of any.

        If a note has the name, aliases with the same name are omitted.
        """
        key = key_of(text)
        if not key:
            return ()
        names = [
            name
            for name in self._candidates(key, frozenset(kinds) or _ALL)
            if not kinds or name.kind in kinds
        ]
        by_name = any(name.kind == "note" for name in names)
        return tuple(name for name in names if not by_name or name.kind != "alias")

    def inflected(self, word: str) -> tuple[Name, ...]:
        """Return the names of which a word is another form: “chapters”.

        A form of a property's name is that property.
        """
        forms = _forms(key_of(word))
        names = dict.fromkeys(name for form in forms for name in self._by_form.get(form, ()))
        owners = tuple(name for name in names if name.kind == "property")
        return owners or tuple(names)

    def inflected_notes(self, word: str) -> tuple[Name, ...]:
        """Return the notes of whose name, if that is one word, a word is another form."""
        forms = _forms(key_of(word))
        notes = (path for path in self.index.files() if path.is_note and path.stem.isalpha())
        return tuple(
            Name("note", path.text)
            for path in notes
            if not forms.isdisjoint(_forms(key_of(path.stem)))
        )

    @cached_property
    def _by_form(self) -> Mapping[str, Sequence[Name]]:
        """The names of one word by their forms."""
        by_form: dict[str, list[Name]] = {}
        for names in (self._facts_by_key, self._folders_by_key):
            for key, same in names.items():
                if key.isalpha():
                    for form in _forms(key):
                        by_form.setdefault(form, []).extend(same)
        return by_form

    def partly(self, words: str) -> tuple[Name, ...]:
        """Return the only note in whose name some words are in a row: “kitchen planning”."""
        key = _word_key(words)
        paths = self._paths_by_word.get(key.partition(" ")[0], ())
        having = [path for path in paths if f" {key} " in f" {_word_key(path.stem)} "]
        return (Name("note", having[0].text),) if len(having) == 1 else ()

    def holding(self, spoken: Sequence[str]) -> tuple[Name, ...]:
        """Return the only note in whose name all these words are, in any order and form."""
        paths: set[VaultPath] | None = None
        for word in spoken:
            key = _word_key(word)
            forms = _forms(key)
            same = {
                path
                for other, having in self._words_by_start.get(key[:_START], {}).items()
                if other == key or not forms.isdisjoint(_forms(other))
                for path in having
            }
            paths = same if paths is None else paths & same
        return (Name("note", paths.pop().text),) if paths and len(paths) == 1 else ()

    @cached_property
    def _words_by_start(self) -> Mapping[str, Mapping[str, Sequence[VaultPath]]]:
        """The words in the names of notes, each with the notes, by their first letters."""
        by_start: dict[str, dict[str, Sequence[VaultPath]]] = {}
        for word, paths in self._paths_by_word.items():
            by_start.setdefault(word[:_START], {})[word] = paths
        return by_start

    def unnumbered(self, text: str) -> tuple[Name, ...]:
        """Return the only folder whose name is a text behind a number or a sign: “4 Archive”."""
        key = key_of(text)
        same = [
            folder
            for folder in self.folders
            if (numbered := _NUMBERED.fullmatch(folder.rpartition("/")[2]))
            and key_of(numbered[1]) == key
        ]
        return (Name("folder", same[0]),) if len(same) == 1 else ()

    def near(self, words: str) -> tuple[Name, ...]:
        """Return the names of the only spelling that is like some words.

        That is one without the accents, or with one letter more, less, other or exchanged. Numbers,
        and names of fewer than five letters, are never misspelled.
        """
        # Lazy: most sentences spell the names of the vault right.
        from rapidfuzz import process
        from rapidfuzz.distance import OSA

        plain = folded(key_of(words))
        keys, is_long = self._by_spelling.get(plain, frozenset()), len(plain) >= _MIN_SPELLED
        if not keys and is_long and not _DIGITS.search(plain):
            similar = process.extract(
                plain, self._spellings, scorer=OSA.distance, score_cutoff=1, limit=2
            )
            keys = frozenset().union(*(self._by_spelling[spelling] for spelling, *_ in similar))
        names = [name for key in keys for name in self._candidates(key, _MISSPELLED)]
        return tuple(one for one in names if one.kind in _MISSPELLED) if len(keys) == 1 else ()

    @cached_property
    def _by_spelling(self) -> Mapping[str, frozenset[str]]:
        """The keys of notes, folders, tags and properties, by their letters without accents."""
        stems = (path.stem for path in self.index.files() if path.is_note)
        folders = (path.rpartition("/")[2] for path in self.folders)
        keys: dict[str, set[str]] = {}
        for text in (*stems, *folders, *self.tags, *self.properties):
            keys.setdefault(folded(key_of(text)), set()).add(key_of(text))
        return {spelling: frozenset(same) for spelling, same in keys.items()}

    @cached_property
    def _spellings(self) -> Sequence[str]:
        return [one for one in self._by_spelling if len(one) >= _MIN_SPELLED]

    def count_with(self, word: str) -> int:
        """Return the number of notes with a word in their name."""
        return len(self._paths_by_word.get(_word_key(word), ()))

    @cached_property
    def _paths_by_word(self) -> Mapping[str, Sequence[VaultPath]]:
        """The notes by the words of their names."""
        by_word: dict[str, list[VaultPath]] = {}
        for path in self.index.files():
            for word in set(_word_key(path.stem).split()) if path.is_note else ():
                by_word.setdefault(word, []).append(path)
        return by_word

    def _candidates(self, key: str, kinds: frozenset[NameKind]) -> Iterator[Name]:
        """Yield the names with a key, including these kinds.

        Kinds that need a pass over the whole vault are read only if requested.
        """
        yield from self._files(key)
        if "folder" in kinds:
            yield from self._folders_by_key.get(key, ())
        if not kinds.isdisjoint(_OF_NOTES):
            yield from self._facts_by_key.get(key, ())
        if "alias" in kinds:
            yield from self._aliases_by_key.get(key, ())

    @property
    def properties(self) -> Mapping[str, Mapping[str, Any]]:
        """The properties, each with its values by the text that a user would write."""
        return self._facts[1]

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags as first written, sorted, without `#`."""
        return self._facts[0]

    @cached_property
    def folders(self) -> tuple[str, ...]:
        """The paths of the folders, sorted."""
        folders = {*self._top, *(path.text.rpartition("/")[0] for path in self.index.files())}
        parts = (folder.split("/") for folder in folders)
        return tuple(
            sorted(
                {"/".join(path[:count]) for path in parts for count in range(1, len(path) + 1)}
                - {""}
            )
        )

    def _files(self, key: str) -> Iterator[Name]:
        """Yield notes and other files by name or path, with or without `.md`."""
        for path in self.index.files_named(name_key(key)):
            full = key_of(path.text)
            if key in (
                full,
                full.removesuffix(".md"),
                key_of(path.name),
                key_of(path.stem) if path.is_note else full,
            ):
                yield Name("note" if path.is_note else "file", path.text)

    @cached_property
    def _facts(self) -> tuple[tuple[str, ...], dict[str, dict[str, Any]]]:
        """The tags and properties, from one pass over the index."""
        tags: dict[str, None] = {}
        properties: dict[str, dict[str, Any]] = {}
        known: set[tuple[str, Any]] = set()
        for facts in (self.index.facts(path) for path in self.index.files() if path.is_note):
            tags.update(dict.fromkeys(facts.tags))
            for name, value in facts.properties.items():
                # Most notes only repeat values of others, which one lookup in a set detects.
                for item in value if isinstance(value, list) else (value,):
                    if isinstance(item, Hashable) and (name, item) not in known:
                        known.add((name, item))
                        values = properties.setdefault(name, {})
                        text = (
                            display_text(item) if name.casefold() not in _NAMED_ELSEWHERE else None
                        )
                        if text is not None and len(text) <= _MAX_VALUE and "://" not in text:
                            values.setdefault(text, item)
        return tuple(sorted({tag.casefold(): tag for tag in reversed(tags)}.values())), properties

    @cached_property
    def _folders_by_key(self) -> Mapping[str, Sequence[Name]]:
        return _by_key(
            (Name("folder", folder), text)
            for folder in self.folders
            for text in (folder.rpartition("/")[2], folder)
        )

    @cached_property
    def _aliases_by_key(self) -> Mapping[str, Sequence[Name]]:
        return _by_key((Name("alias", path.text), alias) for alias, path in self.index.aliases())

    @cached_property
    def _facts_by_key(self) -> Mapping[str, Sequence[Name]]:
        def named() -> Iterator[tuple[Name, str]]:
            for tag in self.tags:
                yield from ((Name("tag", tag), text) for text in (tag, f"#{tag}"))
            for name, values in self.properties.items():
                yield Name("property", name), name
                yield from ((Name("value", value, name), text) for text, value in values.items())

        return _by_key(named())


def _by_key(named: Iterable[tuple[Name, str]]) -> Mapping[str, Sequence[Name]]:
    """Group names by the key of their text, without repetitions."""
    grouped: dict[str, dict[Name, None]] = {}
    for name, text in named:
        if key := key_of(text):
            grouped.setdefault(key, {})[name] = None
    return {key: tuple(names) for key, names in grouped.items()}


class Surroundings(Struct, frozen=True, dict=True):
    """A vault at one moment, and the context of a run."""

    view: VaultView
    context: RunContext
    known: VaultNames | None = None
    """Names that were read earlier, valid while the index is the same."""

    @cached_property
    def names(self) -> VaultNames:
        """The names of the vault, from its index. May block."""
        index = self.view.index
        if self.known is not None and self.known.index is index:
            return self.known
        return VaultNames(
            index,
            tuple(entry.path.text for entry in self.view.children(ROOT) if entry.kind == "folder"),
        )

    @property
    def active_file(self) -> str | None:
        """The path of the open note."""
        return self.context.active_file.text if self.context.active_file is not None else None


def key_of(text: str) -> str:
    """Return the key that is equal for equivalent spellings of a name."""
    plain = text if text.isascii() else unicodedata.normalize("NFC", text).replace("’", "'")
    return " ".join(plain.casefold().split())


def _word_key(text: str) -> str:
    """Return the key of a text without the signs between its words."""
    return " ".join(_WORDS.findall(key_of(text)))


def display_text(value: Any) -> str | None:
    """Return a property's value as a user would write it, a link as its target's name.

    Return None for lists, objects and blank text.
    """
    if isinstance(value, int | float):
        return str(value).lower()  # true, false
    if not isinstance(value, str) or not value.strip():
        return None
    link = _LINK.fullmatch(value)
    if not link:
        return value
    return str(link[1]).rpartition("/")[2].removesuffix(".md").strip()


def _forms(key: str) -> set[str]:
    """Return a key, and the key without each ending that inflection may have added."""
    from obsidian_agent.vault.index.word_query import ENDINGS, MIN_STEM

    stems = {key[: -len(ending)] for ending in ENDINGS if key.endswith(ending)}
    return {key, *(stem for stem in stems if len(stem) >= MIN_STEM)}


def folder_exists(view: VaultView, path: str) -> bool:
    """Return True if the folder exists, even if it is empty."""
    try:
        entry = view.locate(parse(path, PathUse.FOLDER))
    except VaultError:
        return False
    return entry is not None and entry.kind == "folder"
