"""What an instruction is about, put first or in front of an 's: "Kompost: tags", "MOC – markdown links to wikilinks", "fix Start's broken links".

The name goes behind the rest ("tags in Kompost", "fix the broken links in Start"). Only what the vault has by that name is a topic.
"""

from __future__ import annotations

from collections.abc import Iterator

import regex

from obsidian_agent.providers.offline.framing import masked
from obsidian_agent.providers.offline.lexicon import IMPERATIVES
from obsidian_agent.providers.offline.names import Closeness, NameIndex

_TOPIC = regex.compile(r"(?s)^\s*(?:[Ii]n\s+)?(?P<name>[^:;!?\n]{2,80}?)\s*(?::|\s[–—-])\s+(?P<rest>\S.*?)\s*[.!?]*\s*$")
_VERB = regex.compile(r"(?is)^(?:please\s+)?(?P<verb>[\w-]+)\s+(?P<rest>(?:to|into|in|under|as|from|with|away)\b.*)$")
_PRONOUN = regex.compile(r"(?i)\b(?:it|its|this|that|them|they|their|which|whose|his|her|those)\b")
_HELD = regex.compile(
    r"(?i)^(?:(?:all|every|own|other|broken|dead|unresolved|dangling|markdown|wiki|internal|external|inline|current)\s+)*"
    r"(?:links?|wikilinks?|backlinks?|tags?|hashtags?|properties|frontmatter|metadata|yaml|fields|headings?|sections?|tasks?|todos?|aliases)\b"
)
_OWNED = regex.compile(r"(?<=\p{L})['’]s?\s+")
_WORD = regex.compile(r"[^\s]+")


def topics(message: str, index: NameIndex) -> Iterator[str]:
    """Other wordings with the topic behind; none when the message has no such topic."""
    yield from filter(None, (_first(message, index), _owned(message, index)))


def _known(name: str, index: NameIndex) -> bool:
    found = index.find(name.strip("[]'\"“”` "), ("note", "folder"))
    return found is not None and found.closeness <= Closeness.STEMS


def _first(message: str, index: NameIndex) -> str | None:
    match = _TOPIC.match(masked(message))
    if match is None:
        return None
    name, rest = (message[slice(*match.span(each))] for each in ("name", "rest"))
    name = regex.sub(r"(?i)^the note\s+", "", name)
    if not _known(name, index):
        return None
    acts = _VERB.match(masked(rest))
    if acts is not None and acts["verb"].lower() in IMPERATIVES:
        return f"{acts['verb']} {name} {rest[acts.start('rest') :]}"
    return None if _PRONOUN.search(masked(rest)) else f"{rest} in {name}"


def _owned(message: str, index: NameIndex) -> str | None:
    """ "Fix Start's broken links" as "fix the broken links in Start"."""
    for mark in _OWNED.finditer(masked(message)):
        held = _HELD.match(message[mark.end() :])
        if held is None:
            continue
        starts = [word.start() for word in _WORD.finditer(message[: mark.start()])][-8:]
        for start in starts:
            if _known(message[start : mark.start()], index):
                name, noun = message[start : mark.start()], held[0]
                return f"{message[:start]}the {noun} in {name}{message[mark.end() + len(noun) :]}"
    return None
