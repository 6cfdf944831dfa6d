"""How the room that a model has is divided: what is said to it always, instructions, notes, history, and its reply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from obsidian_agent.agent.context.items import ContextItem

UNKNOWN_WINDOW: Final = 32_768
"""Tokens, for a model whose window nobody knows: less than any current model has, more than our own prompt needs."""
USUAL_REPLY: Final = 4_096
FULL: Final = 0.8
"""From this share of the room on, older turns are summarised."""
INSTRUCTIONS_SHARE: Final = 0.2
CONTEXT_SHARE: Final = 0.5
SMALLEST_PIECE: Final = 100
"""Tokens. Less of a note says nothing."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Tokens for each part; they add up to `window`, and none is negative. `system` counts the functions on offer too."""

    window: int
    system: int
    instructions: int
    context: int
    history: int
    reply: int


@dataclass(frozen=True, slots=True)
class Use:
    """What a request takes, by part, of a model's window; `known`: the window is the model's own, not a guess."""

    window: int
    system: int = 0
    instructions: int = 0
    context: int = 0
    history: int = 0
    reply: int = 0
    known: bool = True

    @property
    def prompt(self) -> int:
        """What goes out."""
        return self.system + self.instructions + self.context + self.history

    @property
    def share(self) -> float:
        """How full the window is, from 0.0 (more than 1.0: too full), the room for the reply included."""
        return (self.prompt + self.reply) / self.window if self.window else 1.0

    @property
    def full(self) -> bool:
        """Whether older turns are to be summarised."""
        return self.share >= FULL


def divide(window: int, system: int, *, instructions: int = 0, reply: int | None = None) -> Budget:
    """Divide a window. `instructions` is what they would take, `reply` what the person wants to leave for it."""
    window = max(0, window)
    for_reply = min(reply or USUAL_REPLY, window // 4)
    for_system = min(system, window - for_reply)
    left = window - for_reply - for_system
    for_instructions = min(instructions, int(left * INSTRUCTIONS_SHARE))
    left -= for_instructions
    for_context = int(left * CONTEXT_SHARE)
    return Budget(window, for_system, for_instructions, for_context, left - for_context, for_reply)


def fitting(items: Sequence[ContextItem], room: int) -> tuple[tuple[ContextItem, ...], int]:
    """As much of the items as there is room for, in their order, and how many are left out. The last one may be cut."""
    kept: list[ContextItem] = []
    for item in items:
        if item.tokens > room and room < SMALLEST_PIECE:
            continue
        piece = item.shortened(room)
        if piece.text or not item.text:
            kept.append(piece)
            room -= piece.tokens
    return tuple(kept), len(items) - len(kept)
