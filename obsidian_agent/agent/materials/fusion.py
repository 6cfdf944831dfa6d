"""How notes that go along are put into one message. Whatever the way, their text is fenced and labelled as data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Final, Literal, Protocol

from obsidian_agent.agent.foreign import fence, neutral
from obsidian_agent.agent.materials.items import ContextItem

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
