"""Walking a phrase over tokens word by word: no gaps, no slips. For the small phrases that descriptions of notes are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, assert_never

from obsidian_agent.providers.offline.lexicon import stem
from obsidian_agent.providers.offline.phrases import Choice, Maybe, Node, Sequence, Slot, Word
from obsidian_agent.providers.offline.tokens import Token


@dataclass(frozen=True, slots=True)
class Part:
    """What tokens up to `end` (exclusive) may mean. `cost` is the doubt; `doubt` says what a person should confirm."""

    end: int
    value: Any
    cost: float = 0.0
    doubt: str | None = None


@dataclass(frozen=True, slots=True)
class Walked:
    """A way through a phrase: where it ends, and what was read in its holes."""

    end: int
    parts: tuple[tuple[str, Part], ...] = ()

    @property
    def cost(self) -> float:
        """The doubt of all parts."""
        return sum(part.cost for _, part in self.parts)

    @property
    def values(self) -> dict[str, Any]:
        """The values by hole."""
        return {name: part.value for name, part in self.parts}

    @property
    def doubts(self) -> tuple[str, ...]:
        """What is to be confirmed."""
        return tuple(part.doubt for _, part in self.parts if part.doubt is not None)


ReadHole = Callable[[str, int, Walked], Iterable[Part]]
"""What may stand in a hole from a token on, given what was read before it."""


def walk(node: Node, tokens: tuple[Token, ...], start: Walked, read: ReadHole) -> Iterator[Walked]:
    """Every way through the phrase from where `start` ends."""
    begins = openings(node)
    if begins is not None and (start.end >= len(tokens) or (tokens[start.end].stem or tokens[start.end].text) not in begins):
        return
    match node:
        case Word():
            if start.end < len(tokens) and _is(word=node, token=tokens[start.end]):
                yield Walked(start.end + 1, start.parts)
        case Slot(name=name):
            if start.end < len(tokens):
                for part in read(name, start.end, start):
                    yield Walked(part.end, (*start.parts, (name, part)))
        case Sequence(parts):
            yield from _sequence(parts, 0, tokens, start, read)
        case Choice(options):
            for option in options:
                yield from walk(option, tokens, start, read)
        case Maybe(part):
            yield start
            yield from (end for end in walk(part, tokens, start, read) if end.end > start.end)
        case _:
            assert_never(node)


_OPENINGS: dict[int, tuple[Node, frozenset[str] | None]] = {}
"""By the identity of nodes, which live as long as the phrases that they are parts of: comparing them would cost more than it saves."""


def openings(node: Node) -> frozenset[str] | None:
    """The stems and marks of which one must come first; None where that cannot be told, as a hole or nothing may come."""
    known = _OPENINGS.get(id(node))
    if known is None or known[0] is not node:
        known = _OPENINGS[id(node)] = (node, _first(node)[0])
    return known[1]


def _first(node: Node) -> tuple[frozenset[str] | None, bool]:
    """What may come first, and whether nothing may come at all (then the former is None)."""
    match node:
        case Word():
            return frozenset((stem(node.text), node.text)), False
        case Slot():
            return None, False
        case Choice(options):
            found = [_first(option) for option in options]
            return (
                (None, any(empty for _, empty in found))
                if any(each is None for each, _ in found)
                else (_union(each for each, _ in found), False)
            )
        case Maybe():
            return None, True
        case Sequence(parts):
            return _first_of(parts)
        case _:
            assert_never(node)


def _first_of(parts: tuple[Node, ...]) -> tuple[frozenset[str] | None, bool]:
    begins: frozenset[str] = frozenset()
    for part in parts:
        inner = part.part if isinstance(part, Maybe) else part
        found, empty = _first(inner)
        if found is None:
            return None, empty
        begins |= found
        if inner is part:
            return begins, False
    return None, True


def _union(sets: Iterable[frozenset[str] | None]) -> frozenset[str]:
    return frozenset().union(*(each for each in sets if each is not None))


def _sequence(parts: tuple[Node, ...], at: int, tokens: tuple[Token, ...], start: Walked, read: ReadHole) -> Iterator[Walked]:
    if at == len(parts):
        yield start
        return
    for state in walk(parts[at], tokens, start, read):
        yield from _sequence(parts, at + 1, tokens, state, read)


def _is(*, word: Word, token: Token) -> bool:
    """Whether a token is the very word, in singular or plural; classes of words don't count here."""
    return token.text == word.text if token.kind == "mark" else bool(token.stem) and token.stem == stem(word.text)
