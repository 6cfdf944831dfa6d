"""Token estimates, and how a model's window is divided.

Estimates are at most 15 % off on prose, code and JSON. Each model family splits text differently
and their tables take megabytes; an estimate is enough for a budget and a gauge.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from msgspec import Struct

from obsidian_agent.providers.base import ChatMessage, ToolOffer

TOKENS_PER_MESSAGE: Final = 4
"""Tokens of a message in addition to those of its text."""

_PIECE: Final = re.compile(r"[A-Za-z]+|\d{1,3}|[^\W\d_A-Za-z]+|[^\w\s]+|_+|\n+\s*|[ \t]{2,}")
_ONE_TOKEN_LETTERS: Final = 6
"""Letters of the longest word that is usually one token."""
_LETTERS_PER_TOKEN: Final = 4.4
"""Of the rest of a longer word."""
_MARKS_PER_TOKEN: Final = 3.4
_LATIN_PER_TOKEN: Final = 3.2
_OTHER_PER_TOKEN: Final = 2.2
_LATIN_END: Final = "\u0250"
_IDEOGRAPHS_START: Final = "\u2e80"
UNKNOWN_WINDOW: Final = 32_768
"""Tokens assumed for a model whose window is unknown.

Less than any current model has, and more than our own prompt needs.
"""
USUAL_REPLY: Final = 4_096
"""Tokens reserved for an answer whose length is not limited by the settings."""
FULL: Final = 0.8
"""The share of the window above which older turns are summarized."""
INSTRUCTIONS_SHARE: Final = 0.2
"""The share of the free window that the vault's instructions may occupy."""
CONTEXT_SHARE: Final = 0.5
"""The share of the remaining window for notes that are sent along with a message."""


def estimate(text: str) -> int:
    """Return about how many tokens a text has."""
    return int(sum(map(_weight, _PIECE.findall(text))) + 0.999)


def estimate_messages(messages: Iterable[ChatMessage]) -> int:
    return sum(
        TOKENS_PER_MESSAGE
        + _cached_estimate(message.text)
        + sum(8 + estimate(call.arguments) for call in message.calls)
        for message in messages
    )


def estimate_offers(offers: Iterable[ToolOffer]) -> int:
    return sum(
        _offer_tokens(offer.name, offer.description, str(offer.parameters)) for offer in offers
    )


@lru_cache(maxsize=2048)
def _cached_estimate(text: str) -> int:
    return estimate(text)


@lru_cache(maxsize=64)
def _offer_tokens(name: str, description: str, parameters: str) -> int:
    return 8 + estimate(name) + estimate(description) + estimate(parameters)


def _weight(piece: str) -> float:
    """Return about how many tokens a piece has, which is of one kind of characters."""
    first, length = piece[0], len(piece)
    if first.isascii():
        if first.isalpha():
            return 1.0 + max(0, length - _ONE_TOKEN_LETTERS) / _LETTERS_PER_TOKEN
        if first.isdigit() or first.isspace():
            return 1.0
        return max(1.0, length / _MARKS_PER_TOKEN)
    if first >= _IDEOGRAPHS_START:
        return length * 1.05
    if first >= _LATIN_END:
        return length / _OTHER_PER_TOKEN
    return max(1.0, length / _LATIN_PER_TOKEN)


class WindowUse(Struct, frozen=True):
    """The use of a model's window by a request, or its budget, in tokens by part.

    `system` includes the functions on offer. Not `known`: the size of the window is assumed.
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
        """The used share of the window, including the reply; more than 1.0 does not fit."""
        if not self.window:
            return 1.0
        return (self.prompt + self.reply) / self.window

    @property
    def full(self) -> bool:
        """True if older turns should be summarized."""
        return self.share >= FULL


def divide(
    window: int, system: int, *, instructions: int = 0, reply: int | None = None
) -> WindowUse:
    """Divide a window into parts that add up to it, none of them negative.

    `instructions` are the tokens that they need, `reply` those that the settings reserve for it.
    """
    window = max(0, window)
    for_reply = min(reply or USUAL_REPLY, window // 4)
    for_system = min(system, window - for_reply)
    remaining = window - for_reply - for_system
    for_instructions = min(instructions, int(remaining * INSTRUCTIONS_SHARE))
    remaining -= for_instructions
    for_context = int(remaining * CONTEXT_SHARE)
    return WindowUse(
        window,
        system=for_system,
        instructions=for_instructions,
        context=for_context,
        history=remaining - for_context,
        reply=for_reply,
    )
