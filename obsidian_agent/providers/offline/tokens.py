"""An instruction as tokens: words, quoted names, wikilinks, tags and marks, each with its place in the text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import regex

from obsidian_agent.providers.offline.lexicon import stem

TokenKind = Literal["word", "quoted", "link", "tag", "mark"]

_PATTERN = regex.compile(
    r"""
    !?\[\[(?P<link>[^\[\]\n]+)\]\]
    | (?P<q>["“”„«`]) (?P<double>[^"“”„«»`\n]+) ["”“»`]
    | (?<![\w'’]) ['‘] (?P<single>[^\n]+?) ['’] (?![\w])
    | \#(?P<tag>[\p{L}\p{N}\p{So}_/\-]+)
    | (?P<word> (?<!\S)-\d[\d.]*\b | (?<!\S)(?i:prof|dr|mr|mrs|ms)\.(?=\s+\p{L})
        | \.{1,2}/(?:\S*[\w/])? | [A-Za-z]:[\\/]\S*[\w\\/] | (?<!\S)\.\w\S*[\w/] | ~/\S*\w | /\S*\w | \w+://\S*\w | [\w\p{So}][^\s,;:!?()"“”«»=\[\]]*[\w/\p{So}] | [\w\p{So}] )
    | (?P<mark>\S)
    """,
    regex.VERBOSE,
)
_ASKED = regex.compile(r"(what|who|where|when|which|how|that)['’]s", regex.IGNORECASE)
"""A question word, or "that", which has swallowed its "is"."""

_DIGITS = regex.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Token:
    """One token. `text` is what it says, without quotes, brackets or `#`; `start` and `end` are offsets in the instruction."""

    kind: TokenKind
    text: str
    start: int
    end: int
    lower: str = ""
    """The word without case and with straight apostrophes; "" for anything else."""
    stem: str = ""
    """The comparable form of a word; "" for anything else, so that names in quotes are never taken for words of a phrase."""


def _word(text: str, start: int, end: int) -> Token:
    return Token("word", text, start, end, text.casefold().replace("’", "'"), stem(text))


def tokenise(text: str) -> tuple[Token, ...]:
    """Tokens in order. A `#123` is no tag (Obsidian wants a non-digit), so it is a mark and a word."""
    found: list[Token] = []
    for match in _PATTERN.finditer(text):
        found.extend(_tokens(match))
    return tuple(found)


def _tokens(match: regex.Match[str]) -> list[Token]:
    start, end = match.span()
    if match["link"] is not None:
        return [Token("link", _target(match["link"]), start, end)]
    for group in ("double", "single"):
        if match[group] is not None:
            return [Token("quoted", match[group].strip(), start, end)]
    if match["tag"] is not None:
        if _DIGITS.fullmatch(match["tag"]):
            return [Token("mark", "#", start, start + 1), _word(match["tag"], start + 1, end)]
        return [Token("tag", match["tag"], start, end)]
    if match["word"] is not None:
        asked = _ASKED.fullmatch(match["word"])
        if asked is not None:
            middle = start + len(asked[1])
            return [_word(asked[1], start, middle), _word("is", middle, end)]
        return [_word(match["word"], start, end)]
    return [Token("mark", match["mark"], start, end)]


def _target(inner: str) -> str:
    return inner.split("|", 1)[0].split("#", 1)[0].strip()
