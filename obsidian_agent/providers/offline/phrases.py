"""Example phrases of a recipe, as trees that the aligner walks.

The notation is a sentence with holes: `(a|b c)` one of several, `[x]` may be left out, ` / ` between parts that may come in any order.
`{slot}` is a hole, `{slot!}` one that takes any words (after "called"), `{slot?}` one that takes no bare words but a path. A word that
heads a class of the lexicon stands for the class, `^word` only for itself; `word!` must occur, while other words may be missing at a
price. `@name` stands for a group of ways that many phrases share (phrase_groups.py). A phrase that begins with `~` may mean something
else too: it is never sure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal

import regex

from obsidian_agent.providers.offline.lexicon import members, stem
from obsidian_agent.providers.offline.phrase_groups import expanded


@dataclass(frozen=True, slots=True, eq=False)
class Word:
    """A word of the phrase, as the stems that may stand for it."""

    text: str
    stems: frozenset[str]
    must: bool = False


Takes = Literal["name", "any", "exact"]
"""What bare words a hole takes: those that look like a name, any (the phrase said that a name follows), or only a path or text as such."""


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """A hole."""

    name: str
    takes: Takes = "name"


@dataclass(frozen=True, slots=True, eq=False)
class Sequence:
    """Parts one after another."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """One of several parts."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Maybe:
    """A part that may be left out."""

    part: Node


Node = Word | Slot | Sequence | Choice | Maybe


@dataclass(frozen=True, slots=True, eq=False)
class Phrase:
    """Segments in any order. Each text is read once, so phrases are compared as objects."""

    text: str
    segments: tuple[Node, ...]
    vague: bool = False

    @property
    def slots(self) -> frozenset[str]:
        """Names of all holes."""
        return frozenset(name for segment in self.segments for name in slots_in(segment))


class PhraseError(ValueError):
    """A phrase that cannot be read; the message shows it."""


_TAKES: Mapping[str, Takes] = {"": "name", "!": "any", "?": "exact"}
_PIECE = regex.compile(r"\{(?P<slot>[A-Za-z][A-Za-z0-9_]*)(?P<takes>[!?]?)\}|(?P<mark>[()\[\]|/])|(?P<word>[^\s()\[\]|/{}]+)|(?P<bad>\S)")


@lru_cache(maxsize=4096)
def parse(text: str) -> Phrase:
    """Read a phrase; `PhraseError` when its brackets don't match."""
    vague = text.startswith("~")
    written = expanded(text)
    pieces = _PIECE.findall(written, int(vague))
    reader = _Reader(text, pieces)
    segments = [reader.sequence()]
    while reader.take("/"):
        segments.append(reader.sequence())
    if not reader.done or any(isinstance(segment, Sequence) and not segment.parts for segment in segments):
        raise PhraseError(f"The phrase {text!r} cannot be read: a bracket is not matched, or a part between / is empty.")
    return Phrase(text, tuple(segments), vague)


def slots_in(node: Node) -> Iterator[str]:
    """Names of the holes below a node."""
    match node:
        case Slot(name=name):
            yield name
        case Sequence(parts) | Choice(parts):
            for part in parts:
                yield from slots_in(part)
        case Maybe(part):
            yield from slots_in(part)
        case Word():
            return


@cache
def words_in(node: Node) -> frozenset[str]:
    """The stems of all words below a node."""
    match node:
        case Word(stems=stems):
            return stems
        case Sequence(parts) | Choice(parts):
            return frozenset().union(*map(words_in, parts))
        case Maybe(part):
            return words_in(part)
        case Slot():
            return frozenset()


@dataclass(frozen=True, slots=True)
class Needed:
    """Stems of which one is wanted where a phrase has a word; `must`: without one the part does not fit at all."""

    stems: frozenset[str]
    must: bool


@cache
def needed(node: Node) -> tuple[Needed, ...]:
    """What is wanted for each word that cannot be left out; of several ways the one that wants least."""
    match node:
        case Word(stems=stems, must=must):
            return (Needed(stems, must),)
        case Sequence(parts):
            return tuple(each for part in parts for each in needed(part))
        case Choice(options):
            wanted = [needed(option) for option in options]
            fewest = min(map(len, wanted))
            return (
                tuple(
                    Needed(frozenset().union(*(each[at].stems for each in wanted)), all(each[at].must for each in wanted))
                    for at in range(fewest)
                )
                if fewest == max(map(len, wanted))
                else _any_of(wanted)
                if fewest
                else ()
            )
        case Maybe() | Slot():
            return ()


def _any_of(wanted: list[tuple[Needed, ...]]) -> tuple[Needed, ...]:
    """One word of any way; one that must occur where every way has such a word."""
    if all(any(each.must for each in way) for way in wanted):
        return (Needed(frozenset().union(*(each.stems for way in wanted for each in way if each.must)), True),)
    every = [each for way in wanted for each in way]
    return (Needed(frozenset().union(*(each.stems for each in every)), False),)


_SHARED: dict[tuple[object, ...], Node] = {}
"""One object for equal nodes, so that phrases which share parts are aligned once where they do, and compared as objects."""


def _word(said: str) -> Node:
    key = ("word", said)
    if key not in _SHARED:
        word = said.removesuffix("!")
        stems = frozenset((stem(word[1:]),)) if word.startswith("^") else members(word)
        _SHARED[key] = Word(word.removeprefix("^"), stems, word != said)
    return _SHARED[key]


def _slot(name: str, takes: str) -> Node:
    key = ("slot", name, takes)
    return _SHARED.get(key) or _SHARED.setdefault(key, Slot(name, _TAKES[takes]))


def _sequence(parts: list[Node]) -> Node:
    key = ("sequence", *map(id, parts))
    return _SHARED.get(key) or _SHARED.setdefault(key, Sequence(tuple(parts)))


def _choice(options: list[Node]) -> Node:
    key = ("choice", *map(id, options))
    return _SHARED.get(key) or _SHARED.setdefault(key, Choice(tuple(options)))


def _maybe(part: Node) -> Node:
    key = ("maybe", id(part))
    return _SHARED.get(key) or _SHARED.setdefault(key, Maybe(part))


class _Reader:
    """Recursive descent over the pieces of one phrase: (slot, takes, mark, word, bad), one of them filled."""

    def __init__(self, text: str, pieces: list[tuple[str, str, str, str, str]]) -> None:
        self._text = text
        self._pieces = pieces
        self._at = 0

    @property
    def done(self) -> bool:
        return self._at == len(self._pieces)

    def take(self, mark: str) -> bool:
        if not self.done and self._pieces[self._at][2] == mark:
            self._at += 1
            return True
        return False

    def sequence(self) -> Node:
        parts: list[Node] = []
        while self._at < len(self._pieces):
            slot, takes, mark, word, bad = self._pieces[self._at]
            if bad:
                raise PhraseError(f"The phrase {self._text!r} cannot be read at {bad!r}.")
            if slot:
                parts.append(_slot(slot, takes))
            elif word:
                parts.append(_word(word))
            elif mark in "([":
                parts.append(self._group(mark))
                continue
            else:
                break
            self._at += 1
        return parts[0] if len(parts) == 1 else _sequence(parts)

    def _group(self, opening: str) -> Node:
        self._at += 1
        options = [self.sequence()]
        while self.take("|"):
            options.append(self.sequence())
        if not self.take(")" if opening == "(" else "]"):
            raise PhraseError(f"The phrase {self._text!r} cannot be read: a bracket is not closed.")
        inner = options[0] if len(options) == 1 else _choice(options)
        return _maybe(inner) if opening == "[" else inner
