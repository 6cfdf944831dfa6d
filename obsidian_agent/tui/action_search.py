"""Ranking of the actions that hold the words typed into the action list."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from msgspec import Struct

FEWEST_LETTERS = 3
"""Letters that a word needs to name an action that deletes."""

_SLOT = re.compile(r"\{(\w+)[^}]*\}")
_WORD = re.compile(r"\w+")


class Action(Struct, frozen=True):
    """The searchable texts of one action. `examples` are sentences and aliases."""

    key: str
    title: str
    subject: str
    description: str = ""
    examples: Sequence[str] = ()
    deletes: bool = False
    own: bool = False


def ranked(typed: str, actions: Sequence[Action], recent: Sequence[str] = ()) -> list[Action]:
    """Return the actions that hold every word of `typed`, best first.

    The start of the title counts most, then words of the title, examples and aliases, and the
    description. Among equals those that delete come last, the user's own first, then the `recent`
    ones. An action that deletes comes last of all unless a word of three letters or more starts
    its title.
    """
    words = typed.casefold().split()

    def rank(action: Action) -> tuple[bool, int, bool, bool, int]:
        last_used = recent.index(action.key) if action.key in recent else len(recent)
        return (
            action.deletes and not _is_named(action, words),
            _tier(action, words),
            action.deletes,
            not action.own,
            last_used,
        )

    return sorted((action for action in actions if _holds(action, words)), key=rank)


def _holds(action: Action, words: Collection[str]) -> bool:
    texts = (action.subject, action.title, action.description, *action.examples)
    folded = " ".join(texts).casefold()
    return all(word in folded for word in words)


def _is_named(action: Action, words: Collection[str]) -> bool:
    title = action.title.casefold()
    return any(len(word) >= FEWEST_LETTERS and title.startswith(word) for word in words)


def _tier(action: Action, words: Sequence[str]) -> int:
    """Return the rank of the best text that holds the words, 0 for the start of the title."""
    typed = " ".join(words)
    title = action.title.casefold()
    examples = [_SLOT.sub(r"\1", example).casefold() for example in action.examples]
    if title.startswith(typed):
        return 0
    if _has_words(title, words):
        return 1
    if any(example.startswith(typed) for example in examples):
        return 2
    if any(_has_words(example, words) for example in examples):
        return 3
    return 4


def _has_words(text: str, words: Collection[str]) -> bool:
    """Return whether every word begins a word of the text."""
    text_words = _WORD.findall(text)
    return all(any(other.startswith(word) for other in text_words) for word in words)
