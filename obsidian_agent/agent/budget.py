"""How the room that a model has is divided, and about how many tokens a text takes: 15 % off at most on prose, code and JSON.

Every model family cuts text differently, and their tables take megabytes; what matters here is that a budget holds and a gauge moves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from obsidian_agent.dataclass import dataclass
from obsidian_agent.providers.base import ChatMessage, ToolOffer

MESSAGE: Final = 4
"""Tokens that a message takes besides its text."""

_PIECE: Final = re.compile(r"[A-Za-z]+|\d{1,3}|[^\W\d_A-Za-z]+|[^\w\s]+|_+|\n+\s*|[ \t]{2,}")
_USUAL_WORD: Final = 6
_LETTERS: Final = 4.4
"""Letters of a token in the rest of a long word."""
_MARKS: Final = 3.4
_LATIN: Final = 3.2
_OTHER: Final = 2.2
_IDEOGRAPHS: Final = "\u2e80"
_LATIN_END: Final = "\u0250"


def estimate(text: str) -> int:
    return int(sum(map(_weight, _PIECE.findall(text))) + 0.999)


def estimate_messages(messages: Iterable[ChatMessage]) -> int:
    return sum(MESSAGE + _remembered(message.text) + sum(8 + estimate(call.arguments) for call in message.calls) for message in messages)


def estimate_offers(offers: Iterable[ToolOffer]) -> int:
    return sum(_of_offer(offer.name, offer.description, str(offer.parameters)) for offer in offers)


@lru_cache(maxsize=2048)
def _remembered(text: str) -> int:
    return estimate(text)


@lru_cache(maxsize=64)
def _of_offer(name: str, description: str, parameters: str) -> int:
    return 8 + estimate(name) + estimate(description) + estimate(parameters)


def _weight(piece: str) -> float:
    first, length = piece[0], len(piece)
    if first.isascii():
        if first.isalpha():
            return 1.0 if length <= _USUAL_WORD else 1 + (length - _USUAL_WORD) / _LETTERS
        return 1.0 if first.isdigit() or first.isspace() else max(1.0, length / _MARKS)
    if first >= _IDEOGRAPHS:
        return length * 1.05
    return length / _OTHER if first >= _LATIN_END else max(1.0, length / _LATIN)


UNKNOWN_WINDOW: Final = 32_768
"""Tokens, for a model whose window nobody knows: less than any current model has, more than our own prompt needs."""
USUAL_REPLY: Final = 4_096
"""Tokens that are kept for an answer when nobody said how long it may be."""
FULL: Final = 0.8
"""From this share of the room on, older turns are summarised."""
INSTRUCTIONS_SHARE: Final = 0.2
CONTEXT_SHARE: Final = 0.5
"""Of the room: what the vault's instructions may take, and the notes that go along."""


@dataclass(frozen=True, slots=True)
class Use:
    """Tokens by part: what a request takes of a model's window, or may take. `system` counts the functions on offer too.

    `known`: the window is the model's own, not a guess.
    """

    window: int
    system: int = 0
    instructions: int = 0
    context: int = 0
    history: int = 0
    reply: int = 0
    known: bool = True

    @property
    def prompt(self) -> int:
        return self.system + self.instructions + self.context + self.history

    @property
    def share(self) -> float:
        """How full the window is, from 0.0 (more than 1.0: too full), the room for the reply included."""
        return (self.prompt + self.reply) / self.window if self.window else 1.0

    @property
    def full(self) -> bool:
        """Whether older turns are to be summarised."""
        return self.share >= FULL


def divide(window: int, system: int, *, instructions: int = 0, reply: int | None = None) -> Use:
    """A window divided into parts that add up to it, none negative. `instructions` is what they would take, `reply` what the person wants to leave for it."""
    window = max(0, window)
    for_reply = min(reply or USUAL_REPLY, window // 4)
    for_system = min(system, window - for_reply)
    left = window - for_reply - for_system
    for_instructions = min(instructions, int(left * INSTRUCTIONS_SHARE))
    left -= for_instructions
    for_context = int(left * CONTEXT_SHARE)
    return Use(window, for_system, for_instructions, for_context, left - for_context, for_reply)
