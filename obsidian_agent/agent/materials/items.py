"""One thing that goes along with a message, and why it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from obsidian_agent.agent.materials.tokens import estimate
from obsidian_agent.agent.sharing import Level, ShareItem
from obsidian_agent.vault.paths import VaultPath


class Why(Enum):
    """Why it goes along, what matters most first."""

    MENTIONED = "you mentioned it"
    IN_FOLDER = "in a folder that you mentioned"
    WITH_TAG = "has a tag that you mentioned"
    OPEN = "is open"
    FOUND = "fits your words"


ASKED_FOR = frozenset({Why.MENTIONED, Why.IN_FOLDER, Why.WITH_TAG, Why.OPEN})
"""What the person has asked for is asked about where no rule settles it; what was merely found goes along only where one does."""


@dataclass(frozen=True)
class ContextItem:
    """A note that may go along. `text` is of it what would be sent; `cut` says that this is not all. `size` in bytes is the file's."""

    path: VaultPath
    why: Why
    text: str
    size: int
    cut: bool = False
    score: float = 0.0

    @cached_property
    def tokens(self) -> int:
        """About how many tokens it takes."""
        return estimate(self.text)

    def share_item(self) -> ShareItem:
        """It as a question about sharing shows it."""
        return ShareItem(self.path, Level.TEXT, self.size, self.tokens, self.why.value)

    def shortened(self, tokens: int) -> ContextItem:
        """Its beginning, cut at the end of a line if there is one, in about so many tokens."""
        if self.tokens <= tokens:
            return self
        kept = beginning(self.text, tokens)
        return ContextItem(self.path, self.why, kept, self.size, True, self.score)


@dataclass(frozen=True, slots=True)
class Missed:
    """A mention that means nothing in the vault, with the nearest thing that there is."""

    text: str
    nearest: str | None = None


@dataclass(frozen=True, slots=True)
class Gathered:
    """What may go along with a message, the most important first, and which mentions mean nothing. `more`: notes that were left out."""

    items: tuple[ContextItem, ...] = ()
    missed: tuple[Missed, ...] = ()
    more: int = 0


def beginning(text: str, tokens: int) -> str:
    """The beginning of a text in about so many tokens, cut at the end of a line where there is one."""
    if tokens <= 0:
        return ""
    length = _largest(len(text), lambda length: estimate(text[:length]) <= tokens)
    kept = text[:length]
    line = kept.rfind("\n")
    return kept[: line + 1] if line > length // 2 else kept


def _largest(most: int, fits: Callable[[int], bool]) -> int:
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
