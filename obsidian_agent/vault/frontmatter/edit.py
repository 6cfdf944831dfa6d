"""Edits of the lines between the fences: three ways to the same result, each proven before it counts.

A block that is simple (yaml_simple.py) is edited property by property, and only what is new is parsed again, because nothing else can
have changed its meaning. Any other block is parsed whole before and after. A block in braces is edited one property at a time.

What an edit of properties is asked to do: its arguments checked, and which values differ from what is there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from obsidian_agent.errors import ToolError
from obsidian_agent.vault.frontmatter import tags as frontmatter_tags
from obsidian_agent.vault.frontmatter import yaml_flow, yaml_scalars, yaml_splice
from obsidian_agent.vault.frontmatter.yaml_nodes import Block, Entry, invalid, parse
from obsidian_agent.vault.frontmatter.yaml_scalars import Region
from obsidian_agent.vault.frontmatter.yaml_splice import Layout, Splice

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


_Expected = Sequence[tuple[str | None, Any]]


def edit_block(block: str, wish: Wish, newline: str) -> str:
    """The block with the wish fulfilled. Raises `VaultError` FRONTMATTER_INVALID when it cannot be read or the result not be proven."""
    regions = yaml_scalars.split(block)
    if regions is not None:
        return _edit_regions(block, regions, wish, newline)
    parsed = parse(block)
    if parsed is None:
        raise invalid("What stands between the first two --- lines is text, not properties.")
    return _edit_braces(block, parsed, wish) if parsed.flow else _edit_lines(block, parsed, wish, newline)


def new_lines(properties: Mapping[str, Any], newline: str, column: int = 0) -> str:
    """Lines for new properties, proven. Raises `ToolError` ARGUMENT_INVALID for a name that none can have."""
    for key in properties:
        check_new_key(key)
    lines = "".join(yaml_splice.write_entry(key, value, Layout(newline, column)) for key, value in properties.items())
    _prove(lines, list(properties.items()))
    return lines


# --- a simple block -----------------------------------------------------------------------------------------------------------------


def _edit_regions(block: str, regions: Sequence[Region], wish: Wish, newline: str) -> str:
    keys = wish.keys
    named: dict[str, tuple[Region, Entry]] = {}
    for region in regions:
        if region.key in keys:
            if region.key in named:
                raise _ambiguous(region.key)
            named[region.key] = region, _only_entry(block[region.start : region.end])
    targets = wish.targets({key: entry.node.value for key, (_, entry) in named.items()})
    layout = Layout(newline, 0)
    splices: list[Splice] = []
    proof: list[str] = []
    for key, (region, entry) in named.items():
        text = block[region.start : region.end]
        if key in wish.remove:
            text = yaml_splice.apply(text, [yaml_splice.remove(text, entry, layout)])
        elif key in targets:
            text = yaml_splice.apply(text, yaml_splice.replace(text, entry, targets[key], layout))
            proof.append(text)
        else:
            continue
        splices.append(Splice(region.start, region.end, text))
    if proof:
        _prove("".join(proof), [(key, targets[key]) for key in named if key in targets])
    new = {key: value for key, value in targets.items() if key not in named}
    return yaml_splice.apply(block, splices) + (new_lines(new, newline) if new else "")


def _only_entry(text: str) -> Entry:
    parsed = parse(text)
    if parsed is None or len(parsed.entries) != 1:
        raise invalid("The properties cannot be told apart.")
    return parsed.entries[0]


# --- any other block ----------------------------------------------------------------------------------------------------------------


def _edit_lines(block: str, parsed: Block, wish: Wish, newline: str) -> str:
    named = _named(parsed, wish)
    targets = wish.targets({key: entry.node.value for key, entry in named.items()})
    layout = Layout(newline, parsed.column)
    splices = [
        yaml_splice.remove(block, entry, layout, above.start if above else None)
        for above, entry in zip((None, *parsed.entries), parsed.entries, strict=False)
        if entry.key is not None and entry.key in wish.remove
    ]
    for key in targets:
        if key in named:
            splices += yaml_splice.replace(block, named[key], targets[key], layout)
    new = {key: value for key, value in targets.items() if key not in named}
    if not splices and not new:
        return block
    changed = yaml_splice.apply(block, splices) + (new_lines(new, newline, parsed.column) if new else "")
    _prove(changed, _expected(parsed, targets, wish))
    return changed


def _edit_braces(block: str, parsed: Block, wish: Wish) -> str:
    named = _named(parsed, wish)
    targets = wish.targets({key: entry.node.value for key, entry in named.items()})
    expected = _expected(parsed, targets, wish)
    for key in [*(key for key in named if key in wish.remove), *targets]:
        position = next((number for number, entry in enumerate(parsed.entries) if entry.key == key), None)
        if position is None:
            check_new_key(key)
            splices = yaml_flow.insert(block, parsed, key, targets[key])
        elif key in wish.remove:
            splices = [yaml_flow.remove(parsed, position)]
        else:
            splices = yaml_flow.replace(block, parsed.entries[position], targets[key])
        block = yaml_splice.apply(block, splices)
        again = parse(block)
        if again is None:
            raise invalid("The properties cannot be changed safely.")
        parsed = again
    _prove(block, expected)
    return block


def _named(parsed: Block, wish: Wish) -> dict[str, Entry]:
    """The entries that the edit is about, by key."""
    keys = wish.keys
    named: dict[str, Entry] = {}
    for entry in parsed.entries:
        if entry.key is not None and entry.key in keys:
            if entry.key in named:
                raise _ambiguous(entry.key)
            named[entry.key] = entry
    return named


def _expected(parsed: Block, targets: Mapping[str, Any], wish: Wish) -> _Expected:
    """Every property in order, with the value that it must have after the edit."""
    kept = [entry for entry in parsed.entries if entry.key is None or entry.key not in wish.remove]
    there = {entry.key for entry in kept}
    changed = [(entry.key, targets[entry.key] if entry.key is not None and entry.key in targets else entry.node.value) for entry in kept]
    return [*changed, *((key, value) for key, value in targets.items() if key not in there)]


# --- proof --------------------------------------------------------------------------------------------------------------------------


def _prove(block: str, expected: _Expected) -> None:
    """Parses a new block and compares it, property by property and in order, with what it must say."""
    parsed = parse(block)
    found = parsed.entries if parsed else ()
    if len(found) != len(expected) or not all(
        entry.key == key and same(entry.node.value, value) for entry, (key, value) in zip(found, expected, strict=True)
    ):
        raise invalid("The change cannot be made without changing what another property says.")


def _ambiguous(key: str) -> Exception:
    return invalid(f"The property “{key}” is there more than once, so it is not clear which one is meant.")
