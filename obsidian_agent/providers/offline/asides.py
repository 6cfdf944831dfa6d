"""What stands beside an instruction: assurances ("My meeting notes can stay as they are.") and remarks.

An aside is never dropped silently. It is harmless when it only asks for what every plan keeps, or names notes that the plan does not
change, which the caller finds out; with any other aside the instruction is but a candidate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import regex

from obsidian_agent.providers.offline.framing import instructs, masked, sentences_in
from obsidian_agent.providers.offline.lexicon import word_set
from obsidian_agent.providers.offline.tokens import tokenise


@dataclass(frozen=True, slots=True)
class Apart:
    """A message without its asides."""

    core: str
    asides: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Kept:
    """What an aside wants kept: `noun` says it. `others`: all of its kind but those that the instruction is about."""

    noun: str
    others: bool = False


_TAIL = regex.compile(
    r"(?i)(?:\s*[,;–—-])?\s+(?:but|and|while|though)\s+(?=(?:please\s+)?(?:(?:keep|leave)\s(?!(?:a|an|only|just)\b)|(?:don['’]t|do not)\s))"
)
_MODAL = r"(?:(?:can|could|should|must|may|shall|will|do|does|have to|has to|need to|needs to|are to|is to)\s+)?(?:(?:all|just|both|still|simply|also)\s+)*"
_STAYS = regex.compile(
    rf"(?i)^(?:and\s+|but\s+)?(?P<noun>\S.*?)\s+{_MODAL}(?:stays?|remains?|keeps?|be left|is left|are left|does not change|do not change|don['’]t change|(?:go|keep) on|continue|survive)\b"
)
_LEAVE = regex.compile(
    r"""(?ix)
    ^ (?: and\s+ | but\s+ | so\s+ )? (?: please\s+ )? (?: i (?: ['’]ll | \s+will | \s+want\s+to | \s+would\s+like\s+to ) \s+ )?
    (?: leave | keep | (?: don['’]t | do\s+not | never ) \s+
        (?: touch | change | modify | alter | move | rename | edit | copy | break | lose | damage ) ) \s+
    (?P<noun> (?! (?: an? | only | just ) \b ) \S.*? ) (?: \s+ (?: itself | themselves ) )?
    (?: \s+ (?: alone | out\s+of\s+(?:it|this) | as\s+(?:it|they)(?:\s+(?:is|are|was|were))? | as\s+is | untouched | unchanged | intact
        | where\s+(?:it|they)\s+(?:is|are|was|were) | in\s+place | there | the\s+same | too | as\s+well ) )?
    (?: \s+ please )? [\s.!]* $
    """
)
_USES = regex.compile(r"(?i)\b(?:uses|used|points)\b")
_REST = regex.compile(r"(?i)^(?:all )?(?:the )?rest\b")
_OTHERS = regex.compile(r"(?i)^(?:(?:all|any|of|the|my|our|their|its)\s+)*(?:other|remaining)\s+(?=\S)")
_COMMA = regex.compile(r"\s*[,;]\s+(?:(?:and|but|so)\s+)?")
_PARTS = regex.compile(r"(?i)\s*,\s*(?:and\s+|or\s+)?|\s+(?:and|or|nor)\s+")
_NEVER_CHANGED = word_set(
    "link links backlinks embeds embed canvas canvases code sample samples snippet snippets block blocks value values heading headings formatting "
    "original originals everything anything nothing rest else "
    "it its them their they those these that this the a an any all of in my our no other others tag tags property properties alias aliases "
    "contents wording shown text web normal way uses used points point too there as well also to already have has had"
)
"""Words that name nothing which a plan for something else would change, and what is said of it."""


def apart(message: str) -> Apart | None:
    """The instruction and what stands beside it; None when there is nothing beside it, or no instruction."""
    core: list[str] = []
    asides: list[str] = []
    for sentence in sentences_in(message):
        if not sentence.strip():
            continue
        if _keeps(sentence) or not instructs(sentence):
            asides.append(sentence)
            continue
        tail = _TAIL.search(masked(sentence))
        core.append(sentence if tail is None or tail.start() == 0 else sentence[: tail.start()])
        if tail is not None and tail.start() > 0:
            asides.append(sentence[tail.end() :])
    return Apart(" ".join(core), tuple(asides)) if core and asides else None


def kept(aside: str) -> tuple[Kept, ...] | None:
    """What an aside wants kept, apart from what every plan keeps; None when it says something else."""
    clauses = list(_split(aside, _COMMA))
    if len(clauses) > 1 and all(map(_says, clauses)):
        return tuple(noun for clause in clauses for noun in kept(clause) or ())
    hidden = masked(aside)
    if _remarks(aside):
        return ()
    found = _LEAVE.match(hidden) or _STAYS.match(hidden)
    if found is None:
        return None
    noun = aside[slice(*found.span("noun"))]
    return tuple(_kept(part) for part in _split(noun, _PARTS) if not _never_changed(part))


def _says(clause: str) -> bool:
    return _remarks(clause) or _LEAVE.match(masked(clause)) is not None or _STAYS.match(masked(clause)) is not None


def _remarks(clause: str) -> bool:
    """Whether a clause only says what uses or links to the notes; without such a verb ("The aliases too.", "No.") it asks for something."""
    return _USES.search(clause) is not None and _never_changed(clause)


def _keeps(sentence: str) -> bool:
    return _LEAVE.match(masked(sentence)) is not None


def _kept(noun: str) -> Kept:
    others = _OTHERS.match(noun)
    return Kept(noun if others is None else noun[others.end() :], others is not None)


def _never_changed(noun: str) -> bool:
    return _REST.match(noun) is not None or all(token.kind == "mark" or token.lower in _NEVER_CHANGED for token in tokenise(noun))


def _split(text: str, joints: regex.Pattern[str]) -> Iterator[str]:
    start = 0
    for joint in joints.finditer(masked(text)):
        yield text[start : joint.start()]
        start = joint.end()
    yield text[start:]
