"""Words: how a sentence is cut into them, what two forms of one have in common, and what those of other languages mean in the menu."""

from __future__ import annotations

import json
import unicodedata
from functools import cache
from importlib import resources
from typing import Final

import regex

JOINED: Final = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}"
"""Scripts that write words, or words and their particles, without blanks: each character is looked at alone."""

WORD: Final = regex.compile(rf"[[\p{{L}}\p{{N}}\p{{M}}]--[{JOINED}]]+(?:['’]\p{{L}}+)?|[{JOINED}]", regex.VERSION1)

_FUNCTION: Final = (
    "a an the of in on at to for from by with and or into onto as it its is are be that which this these those them they there i me my you your "
    "please can could would so do does"
)
FUNCTION_WORDS: Final = frozenset(_FUNCTION.split())
"""Words that carry no wish of their own, so that nothing needs to cover them. English only, and short on purpose: a word that is missing
here makes a plan a question, one too many lets a wrong plan pass."""

_NEGATIONS: Final = (
    "not no except excepting excluding exclude without but besides unless nor isn't aren't don't doesn't hasn't haven't cannot never outside "
    "nicht ohne ausser sans sauf excepté sin excepto salvo senza tranne eccetto bez kromě не без кроме"
)
NEGATIONS: Final = frozenset(_NEGATIONS.split())
"""Words that turn round the name right behind them. Here a language that is missing, or a word too few, makes of what is to be left alone the
very thing that is meant; a word too many only leaves something out and says so. So the short ones of other languages are among them."""

_BETWEEN: Final = "tag folder note file property have has name call in dans en im in der den dem le la el los v во в"
BETWEEN: Final = frozenset(_BETWEEN.split())
"""Stems of words that may stand between such a word and the name: not tagged #done, outside the folder Projects."""


def words(text: str) -> list[str]:
    """The words of a text, in lower case, as stems."""
    return [stem(found[0]) for found in WORD.finditer(text)]


def stem(word: str) -> str:
    """A word without the endings that English puts to most: tasks, tagged, linking. Other words come back as they are, in lower case."""
    bare = word.casefold().replace("’", "'").removesuffix("'s")
    if not bare.isascii() or len(bare) < 4:
        return bare
    if bare.endswith("ies") and len(bare) > 4:
        return bare[:-3] + "y"
    for ending in ("ing", "ed"):
        if bare.endswith(ending) and len(bare) - len(ending) >= 3:
            bare = bare[: -len(ending)]
            if bare[-1] == bare[-2]:
                return bare[:-1] if len(bare) > 3 and bare[-1] not in "sl" else bare
            return bare + "e" if len(bare) == 3 else bare
    if bare.endswith("s") and not bare.endswith("ss"):
        bare = bare[:-1]
    return bare.removesuffix("e") if len(bare) > 4 else bare


def meanings(word: str) -> frozenset[str]:
    """The words of the menu, as stems, that a word of the vocabulary stands for: those of its longest entry that the word begins with."""
    plain, known = _plain(word), vocabulary()
    # A short entry is the whole word; where words are written without blanks, it may stand anywhere.
    begins = (plain[:length] for length in range(len(plain), 3, -1))
    return next((known[part] for part in (plain, stem(plain), *begins) if part in known), frozenset())


def joined_words(text: str) -> list[str]:
    """The words of the vocabulary in a text that is written without blanks, the longest from the left."""
    found: list[str] = []
    for stretch in _STRETCH.findall(_plain(text)):
        place = 0
        while place < len(stretch):
            word = next((stretch[place:end] for end in range(place + _LONGEST_JOINED, place, -1) if stretch[place:end] in vocabulary()), "")
            found += [word] if word else []
            place += len(word) or 1
    return found


_STRETCH: Final = regex.compile(f"[{JOINED}]+")
_LONGEST_JOINED: Final = 5


def _plain(word: str) -> str:
    """Without case and accents."""
    return "".join(char for char in unicodedata.normalize("NFKD", word.casefold()) if not unicodedata.combining(char))


@cache
def vocabulary() -> dict[str, frozenset[str]]:
    """What the words of `vocabulary.json` stand for: it lists, by a word of the menu, how else people call the same thing."""
    listed: dict[str, str] = json.loads(resources.files("obsidian_agent.offline").joinpath("vocabulary.json").read_text(encoding="utf-8"))
    known: dict[str, set[str]] = {}
    for head, others in listed.items():
        for other in others.split():
            known.setdefault(_plain(other), set()).add(stem(head))
    return {word: frozenset(heads) for word, heads in known.items()}
