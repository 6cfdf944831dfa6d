"""What an edit of properties is asked to do: its arguments checked, and which values differ from what is there."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from obsidian_agent.errors import ToolError
from obsidian_agent.vault import frontmatter_tags

_KEY_HAZARD = re.compile(r"^\s|\s$|:\s|:$|[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")
_LONGEST_KEY = 200
_DEEPEST_VALUE = 30
_MISSING: Any = object()


@dataclass(frozen=True, slots=True)
class Wish:
    """Checked arguments of an edit: values to set by key, keys to remove, tags to add (without #) and to remove."""

    set: Mapping[str, Any]
    remove: frozenset[str]
    add_tags: tuple[str, ...]
    remove_tags: tuple[str, ...]

    @classmethod
    def checked(cls, values: Mapping[str, Any], remove: Sequence[str], add_tags: Sequence[str], remove_tags: Sequence[str]) -> Wish:
        """Raises `ToolError` ARGUMENT_INVALID for arguments that contradict each other or that no note could hold."""
        for key, value in values.items():
            _check_value(key, value, 0)
        wish = cls(values, frozenset(remove), tuple(frontmatter_tags.clean(tag) for tag in add_tags), tuple(remove_tags))
        wish._check_contradictions()
        return wish

    @property
    def keys(self) -> frozenset[str]:
        """Every property that the edit is about."""
        tags = (frontmatter_tags.PROPERTY,) if self.add_tags or self.remove_tags else ()
        return self.remove.union(self.set, tags)

    def targets(self, current: Mapping[str, Any]) -> dict[str, Any]:
        """The properties that must get another value than the one they have, in the order in which they were asked for."""
        wanted = {key: value for key, value in self.set.items() if not same(current.get(key, _MISSING), value)}
        name = frontmatter_tags.PROPERTY
        if (self.add_tags or self.remove_tags) and name not in self.remove:
            tags = frontmatter_tags.change(self.set.get(name, current.get(name)), self.add_tags, self.remove_tags)
            if tags is not None:
                wanted.pop(name, None)
                if not same(current.get(name, _MISSING), tags):
                    wanted[name] = tags
        return wanted

    def _check_contradictions(self) -> None:
        both = sorted(self.remove & self.set.keys())
        if both:
            raise ToolError(f"The property “{both[0]}” is both set and removed; leave out one of the two.")
        if self.add_tags and frontmatter_tags.PROPERTY in self.remove:
            raise ToolError("The property “tags” is removed and gets tags; leave out one of the two.")
        dropped = {frontmatter_tags.folded(tag) for tag in self.remove_tags}
        for tag in self.add_tags:
            if frontmatter_tags.folded(tag) in dropped:
                raise ToolError(f"The tag “{tag}” is both added and removed; leave out one of the two.")


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal; 1 and 1.0 are, 1 and true are not. The order of a map's keys does not count."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(same(left, right) for left, right in zip(one, other, strict=True))
    return bool(one == other)


def check_new_key(key: str) -> None:
    """Raises `ToolError` ARGUMENT_INVALID for a name that a new property cannot have. A property that is there may have any name."""
    if not key or len(key) > _LONGEST_KEY or _KEY_HAZARD.search(key):
        raise ToolError(
            f"“{key[:80]}” cannot be a property's name.",
            hint=f"A name has 1 to {_LONGEST_KEY} characters, no blanks around it, no line ends, no colon before a blank or at its end.",
        )


def _check_value(key: str, value: Any, depth: int) -> None:
    if depth > _DEEPEST_VALUE:
        raise ToolError(f"The value of “{key}” is nested deeper than {_DEEPEST_VALUE}.")
    match value:
        case None | bool() | int():
            return
        case float():
            if not math.isfinite(value):
                raise ToolError(f"The value of “{key}” is {value}, which is not a number that a property can hold.")
        case str():
            if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
                raise ToolError(f"The value of “{key}” holds half of a surrogate pair, which no file can hold.")
        case list() | tuple():
            for item in value:
                _check_value(key, item, depth + 1)
        case Mapping():
            for name, item in value.items():
                if not isinstance(name, str):
                    raise ToolError(f"The value of “{key}” has a name that is no text: {name!r}.")
                _check_value(key, name, depth + 1)
                _check_value(key, item, depth + 1)
        case _:
            kind = type(value).__name__
            raise ToolError(f"The value of “{key}” is a {kind}; a property holds text, numbers, true, false, null, lists and maps.")
