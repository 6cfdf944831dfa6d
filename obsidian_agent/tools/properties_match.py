"""When a property has a value: equal, in its list, or a link to the same file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from obsidian_agent.vault.index import VaultIndex
from obsidian_agent.vault.paths import VaultPath
from obsidian_agent.vault.resolve import link_key

_LINK: Final = re.compile(r"\s*\[\[([^\[\]\n]+)\]\]\s*")
_NOTE: Final = ".md"


def value_of(properties: Mapping[str, Any], key: str) -> Any:
    """A property's value; where no name is spelled so, that of the one which differs in case alone; None when there is none."""
    if key in properties:
        return properties[key]
    folded = key.casefold()
    return next((value for name, value in properties.items() if name.casefold() == folded), None)


class PropertyFilter:
    """One property and the value it must have. Text is compared exactly, links by the file they lead to."""

    def __init__(self, key: str, wanted: Any, index: VaultIndex) -> None:
        self._key = key
        self._wanted = wanted
        self._index = index
        self._wanted_target = _target(wanted) if isinstance(wanted, str) else None

    def fits(self, path: VaultPath) -> bool:
        """Whether a note meets the condition."""
        value = value_of(self._index.facts(path).properties, self._key)
        if self._wanted is None:
            return value is None
        if _equal(value, self._wanted):
            return True
        members = value if isinstance(value, list) else [value]
        return any(_equal(member, self._wanted) or self._is_link(member, path) for member in members)

    def _is_link(self, value: Any, source: VaultPath) -> bool:
        """Whether a value is a link to what is wanted: a link to the same file, its path, or its name."""
        if not isinstance(value, str) or not isinstance(self._wanted, str):
            return False
        target = _target(value)
        if target is None:
            return self._wanted_target is not None and link_key(value) == link_key(self._wanted_target)
        wanted = link_key((self._wanted_target or self._wanted).strip()).removesuffix(_NOTE)
        if link_key(target).removesuffix(_NOTE) == wanted:
            return True
        file = self._index.resolve(target, source)
        if file is None:
            return False
        if self._wanted_target is not None:
            return self._index.resolve(self._wanted_target, source) == file
        path = link_key(file.text).removesuffix(_NOTE)
        return path == wanted or path.rpartition("/")[2] == wanted


def _target(text: str) -> str | None:
    """The target of a text that is exactly one wikilink, without heading and display text."""
    found = _LINK.fullmatch(text)
    if found is None:
        return None
    return found[1].partition("|")[0].partition("#")[0].strip() or None


def _equal(value: Any, wanted: Any) -> bool:
    """Equal and of one kind (true is not 1); a number or truth value also equals its text."""
    if isinstance(wanted, str) and isinstance(value, (bool, int, float)):
        return json.dumps(value) == wanted.strip()
    if isinstance(value, bool) != isinstance(wanted, bool):
        return False
    return bool(value == wanted)
