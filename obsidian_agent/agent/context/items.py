"""One thing that goes along with a message, and why it does.

How notes that go along are put into one message. Whatever the way, their text is fenced and labelled as data.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from itertools import groupby
from types import MappingProxyType
from typing import Final, Literal, Protocol

from obsidian_agent.agent.context.tokens import estimate
from obsidian_agent.agent.privacy.consent import Level, ShareItem
from obsidian_agent.agent.privacy.untrusted_text import fence, neutral
from obsidian_agent.vault.paths.path import VaultPath


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


FusionName = Literal["plain", "structured"]


class Fusion(Protocol):
    """A way of putting notes into a message."""

    def fuse(self, items: Sequence[ContextItem], mark: str) -> str:
        """The notes as text, "" for none; `mark` is the request's mark for fences."""
        ...


class Plain:
    """One note after the other."""

    def fuse(self, items: Sequence[ContextItem], mark: str) -> str:
        """See `Fusion`."""
        return "\n\n".join(_fenced(item, mark) for item in items)


class Structured:
    """A list of what there is, then the notes under headings that say why they are there."""

    def fuse(self, items: Sequence[ContextItem], mark: str) -> str:
        """See `Fusion`."""
        if not items:
            return ""
        listed = "\n".join(f"{number}. {_name(item)}, {item.why.value}" for number, item in enumerate(items, start=1))
        parts = ["# Notes that go along", fence("list of the notes below", listed, mark)]
        for why, group in groupby(items, key=lambda item: item.why):
            parts.append(f"## Because each {why.value}" if why.value.startswith(("is", "has", "fits")) else f"## Because {why.value}")
            parts += [_fenced(item, mark) for item in group]
        return "\n\n".join(parts)


FUSIONS: Final[Mapping[FusionName, Fusion]] = MappingProxyType({"plain": Plain(), "structured": Structured()})
"""By the name in the settings."""


def _fenced(item: ContextItem, mark: str) -> str:
    cut = ", CUT: this is its beginning" if item.cut else ""
    return fence(f"content of {_name(item)} ({item.why.value}{cut})", item.text, mark)


def _name(item: ContextItem) -> str:
    return neutral(json.dumps(item.path.text, ensure_ascii=False))
