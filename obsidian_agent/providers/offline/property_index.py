"""Properties of a vault by what people call them and their values: "rated" is `rating`, "Okafor" one of the `authors`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal
from unicodedata import normalize

import regex

from obsidian_agent.providers.offline.lexicon import stem

Sort = Literal["number", "date", "truth", "text"]

_WORDS = regex.compile(r"[\p{L}\p{N}]+(?:['’]\p{L}+)?")
_SEVERAL_IN_ONE = regex.compile(r"\s*(?:[;/&|]|\band\b)\s*")
_DATE = regex.compile(r"\d{4}-\d{2}-\d{2}(?!\d)")
_NUMBER = regex.compile(r"-?\d{1,15}(?:\.\d{1,10})?")
_YEAR = regex.compile(r"(?:1[5-9]|20)\d\d")
_YEARS = frozenset(("year", "published", "released", "publication", "pubyear", "jahr", "année", "año", "anno"))
_VOWELS = regex.compile(r"[aeiouyäöü]+")
_IRREGULAR = {"taught": "teach", "wrote": "write", "written": "write", "born": "birthday", "made": "maker", "lasting": "duration"}
_ENDINGS = ("ing", "ed", "es", "en", "e", "d", "s", "n", "t")
_SHORTEST = 4


@dataclass(frozen=True, slots=True)
class Held:
    """Values of a property that hold the words said; `several`: they may be of different people or things."""

    name: str
    values: tuple[Any, ...]
    several: bool = False


class PropertyIndex:
    """Looks properties and values up, each way of looking prepared at its first use. `properties`: as `VaultNames` has them."""

    def __init__(self, properties: Mapping[str, Mapping[str, Any]]) -> None:
        self._properties = properties

    def partly(self, text: str) -> list[Held]:
        """The properties with values of which the words are a part: "Okafor" in "Chen, Y.; Okafor, C."."""
        words = _words(text)
        found: dict[str, list[str]] = {}
        if words:
            for name, said in self._by_word.get(words[0], ()):
                if set(words) <= set(_words(said)):
                    found.setdefault(name, []).append(said)
        return [self._held(name, words, said) for name, said in found.items()]

    def sort(self, name: str) -> Sort:
        """What most values of a property are."""
        return self._sorts.get(name, "text")

    @cached_property
    def years(self) -> tuple[str, ...]:
        """The properties that hold years."""
        found = []
        for name, values in self._properties.items():
            said = [text for text in values if text]
            numbered = bool(said) and all(_YEAR.fullmatch(text) for text in said)
            if numbered and (name.casefold() in _YEARS or len(said) > 2):
                found.append(name)
        return tuple(found)

    def resembling(self, word: str) -> tuple[str, ...]:
        """The properties that a verb or an adjective speaks of: "led" of `lead`, "rated" of `rating`, "attended" of `attendees`."""
        return _resembling(_fold(word), tuple(self._properties))

    def _held(self, name: str, words: Sequence[str], said: Sequence[str]) -> Held:
        parts = {part for text in said for part in _SEVERAL_IN_ONE.split(text.casefold()) if set(words) <= set(_words(part))}
        return Held(name, tuple(self._properties[name][text] for text in said), several=len(parts) > 1)

    @cached_property
    def _by_word(self) -> dict[str, list[tuple[str, str]]]:
        found: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for name, values in self._properties.items():
            for said in values:
                for word in dict.fromkeys(_words(said)):
                    found[word].append((name, said))
        return found

    @cached_property
    def _sorts(self) -> dict[str, Sort]:
        return {name: _sort(values) for name, values in self._properties.items()}


def _sort(values: Mapping[str, Any]) -> Sort:
    sorts = [_sort_of(value) for value in values.values()]
    for sort in ("number", "date", "truth"):
        if sorts and 2 * sorts.count(sort) > len(sorts):
            return sort
    return "text"


def _sort_of(value: Any) -> Sort:
    match value:
        case bool():
            return "truth"
        case int() | float():
            return "number"
        case str() if _DATE.match(value):
            return "date"
        case str() if _NUMBER.fullmatch(value):
            return "number"
        case _:
            return "text"


@lru_cache(maxsize=1024)
def _resembling(word: str, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if any(_alike(each, part) for each in _bases(word) for part in (_fold(name), stem(_fold(name)))))


def _bases(word: str) -> Iterator[str]:
    """A word, and what is left of it without the endings of verbs."""
    yield word
    if word in _IRREGULAR:
        yield _IRREGULAR[word]
    yield from (word[: -len(ending)] for ending in _ENDINGS if word.endswith(ending) and len(word) > len(ending) + 2)


def _alike(base: str, name: str) -> bool:
    """Equal, with a long beginning in common that is most of one of them, or with the same consonants around other vowels."""
    if base == name:
        return True
    common = next((at for at, (one, other) in enumerate(zip(base, name, strict=False)) if one != other), min(len(base), len(name)))
    if common >= _SHORTEST or (common >= _SHORTEST - 1 and common == len(base)):
        return common == len(base) or len(name) - common < _SHORTEST
    bones = _VOWELS.sub("", base)
    return len(bones) > 1 and base[0] == name[0] and bones == _VOWELS.sub("", name) and abs(len(base) - len(name)) < 2


def _fold(text: str) -> str:
    return normalize("NFC", text).casefold()


@lru_cache(maxsize=65536)
def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORDS.findall(_fold(text)))
