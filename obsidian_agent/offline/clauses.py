"""The orders of a sentence: “tick off the tiles in Roof and move it to Archive”.

An order begins behind a comma, a full stop or a word such as “and” or “then”, with a verb of the
menu. Behind a colon there are no further orders, and none in quotes or within a name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from obsidian_agent.expression import unicode_expression
from obsidian_agent.offline.sentence import Sentence, is_within
from obsidian_agent.offline.words import JOINED, Stretch, Word, senses_of, tokens, words

MAX_CLAUSES: Final = 3
"""Orders that are read in one sentence."""

_VERBS: Final = (
    "add change copy create delete insert link make mark merge move postpone put remove rename "
    "replace set sort split tag tick"
)
_ORDERS: Final = frozenset(words(_VERBS))
"""The senses of the verbs that begin an order."""
_THEN: Final = (
    r"(?<!\p{L})(?:then|after(?:wards?|\sthat)|danach|dann|anschließend|puis|ensuite|après|luego"
    r"|después|poi|dopo|depois|potem|pak|потом|затем)(?!\p{L})|然后|然後|接着|之后|そして|その後|그리고"
)
_JOINT: Final = unicode_expression(
    r"(?i)\s*(?:[,;.](?=\s)|[\n。，；、])\s*(?:(?:and|und|et|e|y|i|и)(?!\p{L})\s*)?"
    rf"(?:(?:{_THEN})\s*)?|\s+(?:and|und|et|e|y|i|и)\s+(?:(?:{_THEN})\s*)?|\s*(?:{_THEN})\s*[并]?"
)
_LATER: Final = unicode_expression(rf"(?i){_THEN}")
_COLON: Final = unicode_expression(r"：|:(?=\s|[^\x00-\x7f])")
_PLEASE: Final = "please also bitte auch noch además aussi inoltre também ещё"
_POLITE: Final = frozenset(_PLEASE.split())
"""The words before the verb of a later order."""
_ENCLITIC: Final = unicode_expression(r"(?i)(?<verb>\p{L}{2,}?)-?(?:l[oaei]s?|gli)")
"""A verb with its object in one word: “muévelo”, “ponle”, “spostala”."""
_IT: Final = "it them both ihn ihm ihr ihnen beide loro eles elas её ее его их"
_PRONOUNS: Final = frozenset(_IT.split())
_ITS: Final = "its their dessen deren su sus suo sua son sa ses"
_POSSESSIVES: Final = frozenset(_ITS.split())
_JOINED_PRONOUNS: Final = unicode_expression("它们?|それら?|これら?|그것")
_ALL: Final = "the all die alle les los las tutti le i"
_ARTICLES: Final = frozenset(_ALL.split())
"""The words before a number that stands for notes: “delete the three”."""
_COUNTS: Final[Mapping[str, int]] = {
    word: count
    for count, listed in enumerate(
        ("two zwei dos deux due", "three drei tres trois tre", "four"), 2
    )
    for word in listed.split()
}


class BackReference(Stretch, frozen=True):
    """A word for the notes of an order before it, and their number if it is one."""

    count: int | None = None
    verb: str = ""
    """The verb without the word, if both are one word."""
    owns: bool = False
    """True for a possessive: “its status”."""


class Clause(Struct, frozen=True):
    """An order of a sentence, and its words for the notes of an order before it."""

    start: int
    text: str
    references: tuple[BackReference, ...] = ()

    def with_notes(self, names: Sequence[str]) -> str:
        """Return the order with names in place of the references, or blanks without names."""
        text = self.text
        listed = " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
        for number, part in reversed(list(enumerate(self.references))):
            put = listed if not number and not part.owns else ""
            text = f"{text[: part.start]}{' '.join((part.verb, put)).strip()}{text[part.end :]}"
        return text


def divisions(parsed: Sentence) -> Iterator[tuple[Clause, ...]]:
    """Yield the ways to divide a sentence into orders: first with all of them, then with two."""
    joints = list(_joints(parsed))
    if not joints or len(joints) >= MAX_CLAUSES:
        return
    yield _divided(parsed, joints)
    if len(joints) > 1:
        yield from (_divided(parsed, [joint]) for joint in joints)


def _divided(parsed: Sentence, joints: Sequence[Stretch]) -> tuple[Clause, ...]:
    starts = [0, *(joint.end for joint in joints)]
    ends = [*(joint.start for joint in joints), len(parsed.text)]
    first, *later = (
        Clause(start, parsed.text[start:end].strip(" .。"))
        for start, end in zip(starts, ends, strict=True)
    )
    return (first, *map(_later, later))


def _joints(parsed: Sentence) -> Iterator[Stretch]:
    """Yield the places where another order begins."""
    colon = _COLON.search(parsed.bare)
    end = colon.start() if colon is not None else len(parsed.bare)
    matches = [
        match
        for match in _JOINT.finditer(parsed.bare[:end])
        if match[0].strip() or "\n" in match[0]
    ]
    for match in matches:
        if is_within(Stretch(match.end() - 1, match.end(), ""), parsed.names):
            continue
        stop = next((one.start() for one in matches if one.start() >= match.end()), end)
        clause = _spoken(parsed, match.end(), stop)
        # Behind a comma or “and” a verb with a capital is a name: “Copy, Move and Delete”.
        is_inner = match[0].strip()[:1] not in (".", "。", ";", "；", "")
        is_capital = parsed.bare[match.end() : match.end() + 1].isupper()
        if is_inner and is_capital and _is_order(clause[:1]):
            continue
        if _has_order(_spoken(parsed, 0, match.start())) and _is_order(clause):
            yield Stretch(match.start(), match.end(), match[0])


def _spoken(parsed: Sentence, start: int, end: int) -> list[Word]:
    """Return the words of a part of a sentence that are in no name.

    The particle of a verb stands at the end of its own order: “Hak X ab und …”.
    """
    own = {start + word.start: word for word in tokens(parsed.bare[start:end])}
    return [
        replace(word, senses=word.senses | own[word.start].senses)
        for word in parsed.tokens
        if word.start in own and not is_within(word, parsed.names)
    ]


def _has_order(spoken: Sequence[Word]) -> bool:
    return any(word.senses & _ORDERS for word in spoken)


def _is_order(clause: Sequence[Word]) -> bool:
    """Return whether words begin with a verb, or end with one, as in German and Japanese."""
    if any(JOINED.match(word.text) for word in clause):
        return _has_order(clause)
    content = [word for word in clause if word.text not in _POLITE]
    return any(_order(word) for word in (*content[:1], *content[1:][-1:]))


def _order(word: Word) -> str:
    """Return the verb that a word is or begins with, or ""."""
    enclitic = _ENCLITIC.fullmatch(word.text)
    if enclitic is not None and senses_of(enclitic["verb"]) & _ORDERS:
        return str(enclitic["verb"])
    return word.text if word.senses & _ORDERS else ""


def _later(clause: Clause) -> Clause:
    """Return a later order without its words for “then”, and with its references."""
    text = _LATER.sub(lambda match: " " * len(match[0]), clause.text).strip()
    spoken = tokens(text)
    references: list[BackReference] = []
    for word in spoken[:1]:
        verb = _order(word)
        if verb and verb != word.text:
            references.append(BackReference(word.start, word.end, word.text, verb=verb))
    if not any(JOINED.match(word.text) for word in spoken):
        references += (
            BackReference(word.start, word.end, word.text, owns=word.text in _POSSESSIVES)
            for word in spoken
            if word.text in _PRONOUNS | _POSSESSIVES
        )
    else:
        references += (
            BackReference(match.start(), match.end(), match[0])
            for match in _JOINED_PRONOUNS.finditer(text)
        )
    for article, number in pairwise(spoken):
        count = _COUNTS.get(number.text)
        if article.text in _ARTICLES and count and number is spoken[-1]:
            references.append(BackReference(article.start, number.end, number.text, count=count))
    return Clause(clause.start, text, tuple(references))
