"""The property `tags`: which tags it names, and the list it becomes when some are added or removed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from obsidian_agent.errors import ToolError
from obsidian_agent.vault.frontmatter.yaml_nodes import invalid

PROPERTY = "tags"
"""The only property that holds tags; Obsidian no longer reads the singular."""

_SEPARATORS = re.compile(r"[,\s]+")
_NOT_IN_TAGS = re.compile(r"[\s,#\x00-\x1f\x7f]")


def clean(tag: str) -> str:
    """A tag without its ``#``. Raises `ToolError` ARGUMENT_INVALID for what Obsidian would not take for a tag."""
    name = tag.strip().removeprefix("#")
    if not name or name.isdigit() or _NOT_IN_TAGS.search(name):
        raise ToolError(f"“{tag}” is no tag: a tag has no spaces, commas or further # and at least one character that is no digit.")
    return name


def change(current: Any, add: Sequence[str], remove: Sequence[str]) -> list[Any] | None:
    """The new list of tags, or None when nothing changes.

    Tags are compared without case and without ``#``; what is there keeps its spelling and place. One text becomes a list of the tags
    in it. Raises FRONTMATTER_INVALID when the property holds a map.
    """
    if isinstance(current, dict):
        raise invalid(f"The property “{PROPERTY}” holds a map, not tags.")
    old = _as_list(current)
    gone = {folded(tag) for tag in remove}
    kept = [tag for tag in old if folded(tag) not in gone]
    known = {folded(tag) for tag in kept}
    new: list[str] = []
    for tag in add:
        if folded(tag) not in known:
            known.add(folded(tag))
            new.append(tag)
    return [*kept, *new] if new or len(kept) != len(old) else None


def _as_list(value: Any) -> list[Any]:
    match value:
        case None:
            return []
        case list():
            return value
        case str():
            return [tag for tag in _SEPARATORS.split(value) if tag]
        case _:
            return [value]


def folded(tag: Any) -> str:
    """What two spellings of one tag have in common: no ``#``, no case."""
    return str(tag).strip().removeprefix("#").casefold()
