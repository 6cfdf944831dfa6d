"""Modifiers around the head of a description of notes: before it ("untagged"), behind it ("in Projects"), in brackets, and exceptions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from obsidian_agent.providers.offline import phrases, set_modifiers, set_relations, type_nouns
from obsidian_agent.providers.offline.lexicon import stem, word_set
from obsidian_agent.providers.offline.readings import Reading, Surroundings
from obsidian_agent.providers.offline.set_holes import SetHoles
from obsidian_agent.providers.offline.set_modifiers import Modifier, both
from obsidian_agent.providers.offline.strict import Part, Walked, openings, walk

FREE = word_set("my all the and or of our every each notes note files pages from in")
"""Words of a description that say nothing about which notes it means."""

_MOST_MODIFIERS = 5
_MOST_ALIKE = 3
"""Ways to read modifiers up to the same place."""

_NESTED_TOO = Modifier(
    phrases.parse(
        "[and|also|including|with|incl] [all|any|the|its|their] (subtags|nested tags|sub tags|child tags|nested ones|tags (below|under) it) "
        "[(like|such as) {tags}] [count|counts|are (included|meant)|included|belong to it] [as well|too|also]"
    ).segments[0],
    lambda values: {},
)
"""What tags mean anyway."""

_EXCEPT = phrases.parse("[,] [but] (except|excepting|excluding|not|other than|apart from) [for|in|from|under]").segments[0]
_UNLESS = phrases.parse("[,] (unless|if not|but not if|but not when|except (if|when|where)) (it|they)").segments[0]
_BUT = phrases.parse("[,] but [not]").segments[0]
_WHOLE_KINDS = frozenset(("all", "every", "everything", "each", "any", "anything", "whatever"))
_NAMED_AGAIN = frozenset(("the", "those", "these", "my", "any", "that", "this"))
_FAR = 16
_EXCEPT_WORDS = frozenset(("except", "excepting", "excluding", "other", "apart", "but"))
_PROPERTY_IN_BRACKETS = Modifier(
    phrases.parse("[with|the] {property} [of|=|:|is] {values}").segments[0], lambda values: set_modifiers.of_property(values)
)


class SetClauses:
    """Reads modifiers in one instruction; what was read from a token on is kept. `exempt` reads what an exception leaves out."""

    def __init__(self, holes: SetHoles, around: Surroundings, exempt: Callable[[int, int], Reading | None]) -> None:
        self._holes = holes
        self._tokens = holes.tokens
        self._exempt = exempt
        self._behind: dict[int, list[Part]] = {}
        self._further: dict[int, list[Part]] = {}
        self._front: dict[int, list[Part]] = {}
        self._constants = (("weekAgo", Part(0, set_modifiers.week_ago(around.today))),)

    def in_front(self, at: int) -> Iterator[Part]:
        """What stands before a head: nothing, or up to two modifiers."""
        yield Part(at, {})
        for first in self._before_head(at):
            yield first
            for second in self._before_head(first.end):
                yield Part(second.end, both(first.value, second.value), first.cost + second.cost, first.doubt or second.doubt)

    def modified(self, head: Part, kind: str) -> Iterator[Part]:
        """A head with up to some modifiers behind it, exceptions last; the value has the `kind` of what is meant."""
        seen: Counter[tuple[int, int]] = Counter()
        open_parts = [(head, 0)]
        while open_parts:
            part, count = open_parts.pop()
            yield Part(part.end, {"where": part.value, "kind": kind}, part.cost, part.doubt)
            yield from self._excepted(part, kind)
            if count == _MOST_MODIFIERS:
                continue
            for at, joined_on in self._joints(part.end):
                for more in (*self._modifiers(at), *(self._elliptic(at) if joined_on and count else ())):
                    if seen[more.end, count] < _MOST_ALIKE or more.cost == 0:
                        seen[more.end, count] += 1
                        joined = Part(more.end, both(part.value, more.value), part.cost + more.cost, part.doubt or more.doubt)
                        open_parts.append((joined, count + 1))

    def alone(self, at: int) -> Iterator[Part]:
        """Modifiers without a head, behind "unless it …"."""
        yield from (Part(part.end, {"where": part.value, "kind": "any"}, part.cost, part.doubt) for part in self._modifiers(at))

    def bracketed(self, start: int) -> Iterator[Part]:
        """Words that only brackets make clear: "my movies, shows and video games (categories Movies, Shows and Games)"."""
        opening = next((at for at in range(start, len(self._tokens)) if self._tokens[at].text == "("), None)
        if opening is None or not 0 < opening - start <= 12 or not self._holes.words(start, opening).described:
            return
        fronts = [part for part in self.in_front(self._behind_determiners(start)) if part.end < opening]
        if not fronts:
            return
        front = max(fronts, key=lambda part: part.end)
        for part in self._in_brackets(opening):
            said = {stem(word) for value in _texts(part.value) for word in value.casefold().split()}
            strange = sum(
                token.kind == "word" and token.lower not in FREE and token.stem not in said for token in self._tokens[front.end : opening]
            )
            where = both(front.value, part.value) if set(map(stem, _words(front.value))) - said else part.value
            cost = part.cost + 0.1 * strange + (front.cost if where is not part.value else 0.0)
            yield from self.modified(Part(part.end, where, cost, part.doubt or front.doubt), "notes")

    def _behind_determiners(self, at: int) -> int:
        while at < len(self._tokens) and self._tokens[at].lower in FREE:
            at += 1
        return at

    def _before_head(self, at: int) -> list[Part]:
        if at not in self._front:
            self._front[at] = [part for modifier in set_modifiers.before() for part in self._apply(modifier, at)]
            if at + 1 < len(self._tokens) and self._tokens[at].lower == "daily":
                self._front[at].append(Part(at + 1, dict(self._holes.index.names.daily_set)))
        return self._front[at]

    def _joints(self, at: int) -> Iterator[tuple[int, bool]]:
        """Where a further modifier may begin: here, or behind a comma, an "and" or both; and whether something joins it."""
        yield at, False
        for text in (",", "and", "but", "that", "which"):
            if at < len(self._tokens) and (self._tokens[at].lower or self._tokens[at].text) == text:
                at += 1
                yield at, True

    def _elliptic(self, at: int) -> list[Part]:
        """What goes on a modifier without its first words: "with sleep under 6 and run true"."""
        if at not in self._further:
            self._further[at] = [part for modifier in set_relations.elliptic() for part in self._apply(modifier, at)]
        return self._further[at]

    def _modifiers(self, at: int) -> list[Part]:
        if at not in self._behind:
            token = self._tokens[at] if at < len(self._tokens) else None
            known = _beginning(token.stem or token.text) if token is not None else ()
            self._behind[at] = [part for modifier in known for part in self._apply(modifier, at)]
            if at < len(self._tokens) and self._tokens[at].text == "(":
                self._behind[at] += self._in_brackets(at)
            self._behind[at].sort(key=lambda part: part.cost)
        return self._behind[at]

    def _apply(self, modifier: Modifier, at: int) -> Iterator[Part]:
        for walked in walk(modifier.phrase, self._tokens, Walked(at, self._constants), self._holes.read):
            if walked.end > at:
                cost = walked.cost + modifier.cost
                yield Part(walked.end, modifier.where(walked.values), cost, next(iter(walked.doubts), None))

    def _in_brackets(self, at: int) -> Iterator[Part]:
        """ "(tagged #x)", "(categories Movies and Shows)": a modifier, or a property and its values."""
        closing = next((end for end in range(at + 1, len(self._tokens)) if self._tokens[end].text == ")"), None)
        if closing is None:
            return
        for part in [*self._modifiers(at + 1), *self._apply(_PROPERTY_IN_BRACKETS, at + 1), *self._apply(_NESTED_TOO, at + 1)]:
            if part.end == closing:
                yield Part(closing + 1, part.value, part.cost, part.doubt)

    def _excepted(self, part: Part, kind: str) -> Iterator[Part]:
        """What "except …" and "unless it is …" take away again."""
        for walked in walk(_UNLESS, self._tokens, Walked(part.end), self._holes.read):
            for more in self._modifiers(walked.end):
                where = both(part.value, {"not": more.value})
                yield Part(more.end, {"where": where, "kind": kind}, part.cost + more.cost, part.doubt or more.doubt)
        for begin in self._exceptions(part.end):
            for end in range(begin + 1, min(begin + 12, len(self._tokens)) + 1):
                left_out = self._exempt(begin, end)
                if left_out is not None:
                    ways = [left_out.value] if left_out.value is not None else list(left_out.choices)
                    where = both(part.value, {"not": type_nouns.one_of([way["where"] for way in ways])})
                    yield Part(end, {"where": where, "kind": kind}, part.cost + left_out.cost, part.doubt or left_out.doubt)

    def _exceptions(self, at: int) -> Iterator[int]:
        """Where begins what is left out: behind "except", or behind "but" of all that was named ("every note but the ones in Old")."""
        for walked in walk(_EXCEPT, self._tokens, Walked(at), self._holes.read):
            said = {token.lower for token in self._tokens[at : walked.end]}
            if walked.end > at and said & _EXCEPT_WORDS and walked.end < len(self._tokens):
                yield walked.end
        whole = any(token.lower in _WHOLE_KINDS for token in self._tokens[max(0, at - _FAR) : at])
        for walked in walk(_BUT, self._tokens, Walked(at), self._holes.read) if whole else ():
            if walked.end < len(self._tokens) and self._tokens[walked.end].lower in _NAMED_AGAIN:
                yield walked.end


@lru_cache(maxsize=4096)
def _beginning(word: str) -> tuple[Modifier, ...]:
    """The modifiers behind a head that may begin with a word or mark."""
    known = (*set_modifiers.behind(), *set_relations.behind())
    return tuple(each for each in known if (begins := openings(each.phrase)) is None or word in begins)


def _words(value: Any) -> set[str]:
    """All words in a condition."""
    return {word for text in _texts(value) for word in text.casefold().split()}


def _texts(value: Any) -> Iterator[str]:
    """All texts in a condition."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
