"""Properties of a note: where the block is, what it says, and edits that change nothing else.

An edit splices the text of single values (yaml_splice.py) and then proves itself: the new block is parsed and every property must mean
what it should, else the edit is refused with FRONTMATTER_INVALID and nothing changed. Python's YAML writers are never used on notes:
they would drop comments, quotes and order.

The block begins in the first line (a byte order mark may precede it) with ``---`` and ends with the next line that is ``---``; both may
have blanks behind. A note whose first line is ``---`` and that has no second one has no properties, and none are written to it: a block
above would hide what was meant as one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from obsidian_agent.errors import ToolError
from obsidian_agent.vault import frontmatter_tags, yaml_flow, yaml_splice
from obsidian_agent.vault.text import BOM, newline_of
from obsidian_agent.vault.yaml_nodes import Block, Entry, invalid, parse
from obsidian_agent.vault.yaml_splice import Layout, Splice

_OPENING = re.compile(r"\ufeff?(---[ \t]*\r?\n)")
_CLOSING = re.compile(r"^---[ \t]*\r?(?:\n|\Z)", re.MULTILINE)
_UNUSABLE_FENCE = re.compile(r"\ufeff?---[ \t]*(?:\r|\n|\Z)")
_KEY_HAZARD = re.compile(r"^\s|\s$|:\s|:$|[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")
_LONGEST_KEY = 200
_DEEPEST_VALUE = 30
_MISSING: Any = object()


@dataclass(frozen=True, slots=True)
class Frontmatter:
    """Offsets in the text: the opening fence, the first line below the closing fence, and the lines between the fences."""

    start: int
    body_start: int
    content_start: int
    content_end: int


def span(text: str) -> Frontmatter | None:
    """Where the block is, or None when there is none (an unclosed one is none)."""
    opening = _OPENING.match(text)
    if opening is None:
        return None
    closing = _CLOSING.search(text, opening.end())
    return None if closing is None else Frontmatter(opening.start(1), closing.end(), opening.end(), closing.start())


def read(text: str) -> dict[str, Any]:
    """The properties as JSON-safe values, as Obsidian reads them: dates, ``yes`` and ``12:30`` are text. {} when there are none.

    Of a property that is there twice the last one counts. Raises `VaultError` FRONTMATTER_INVALID for a block that is no YAML or
    too large.
    """
    front = span(text)
    if front is None:
        return {}
    parsed = parse(text[front.content_start : front.content_end])
    return {} if parsed is None else {entry.key: entry.node.value for entry in parsed.entries if entry.key is not None}


def edit(
    text: str,
    *,
    set: Mapping[str, Any] | None = None,
    remove: Sequence[str] = (),
    add_tags: Sequence[str] = (),
    remove_tags: Sequence[str] = (),
) -> str:
    """The text with properties set or removed and tags added or removed; nothing else differs, and nothing at all if all is so already.

    Values are JSON: texts, numbers, booleans, null, lists, maps. Tags may have a ``#``. New properties go last; a note without a block
    gets one. Raises `ToolError` ARGUMENT_INVALID for arguments that contradict each other or cannot be written, `VaultError`
    FRONTMATTER_INVALID when the block cannot be read or the edit cannot be proven right.
    """
    wish = _Wish.checked(set or {}, remove, add_tags, remove_tags)
    front = span(text)
    if front is None:
        return _with_new_block(text, wish)
    block = text[front.content_start : front.content_end]
    parsed = parse(block)
    if parsed is None:
        raise invalid("What stands between the first two --- lines is text, not properties.")
    newline = "\r\n" if text.startswith("\r\n", front.content_start - 2) else "\n"
    changed = _edit_braces(block, parsed, wish) if parsed.flow else _edit_lines(block, parsed, wish, newline)
    if changed == block:
        return text
    return text[: front.content_start] + changed + text[front.content_end :]


def dump(properties: Mapping[str, Any], newline: str) -> str:
    """The lines of a new block, without its fences: each property as Obsidian would write it. Raises ARGUMENT_INVALID as `edit` does."""
    wish = _Wish.checked(properties, (), (), ())
    lines = "".join(yaml_splice.write_entry(key, value, Layout(newline, 0)) for key, value in wish.set.items())
    _prove(lines, list(wish.set.items()))
    return lines


def merge_new(content: str, properties: Mapping[str, Any]) -> str:
    """Content of a new note with properties: in the block it has, or in a new one above it."""
    return edit(content, set=properties)


# --- what is wanted ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Wish:
    """Checked arguments of an edit."""

    set: Mapping[str, Any]
    remove: frozenset[str]
    add_tags: tuple[str, ...]
    remove_tags: tuple[str, ...]

    @classmethod
    def checked(cls, values: Mapping[str, Any], remove: Sequence[str], add_tags: Sequence[str], remove_tags: Sequence[str]) -> _Wish:
        for key, value in values.items():
            _check_key(key)
            _check_value(key, value, 0)
        gone = frozenset(remove)
        both = sorted(gone & values.keys())
        if both:
            raise ToolError(f"The property “{both[0]}” is both set and removed; leave out one of the two.")
        add = tuple(frontmatter_tags.clean(tag) for tag in add_tags)
        if add and frontmatter_tags.PROPERTY in gone:
            raise ToolError("The property “tags” is removed and gets tags; leave out one of the two.")
        drop = tuple(remove_tags)
        folded = {tag.strip().removeprefix("#").casefold() for tag in drop}
        for tag in add:
            if tag.casefold() in folded:
                raise ToolError(f"The tag “{tag}” is both added and removed; leave out one of the two.")
        return cls(values, gone, add, drop)

    def targets(self, current: Mapping[str, Any]) -> dict[str, Any]:
        """The properties that must get another value than the one they have, in the order in which they were asked for."""
        wanted = {key: value for key, value in self.set.items() if not same(current.get(key, _MISSING), value)}
        if self.add_tags or self.remove_tags:
            name = frontmatter_tags.PROPERTY
            tags = frontmatter_tags.change(self.set.get(name, current.get(name)), self.add_tags, self.remove_tags)
            if tags is not None and name not in self.remove:
                wanted.pop(name, None)
                if not same(current.get(name, _MISSING), tags):
                    wanted[name] = tags
        return wanted


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal; 1 and 1.0 are, 1 and true are not. The order of a map's keys does not count."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(same(left, right) for left, right in zip(one, other, strict=True))
    return bool(one == other)


def _check_key(key: str) -> None:
    if not key or len(key) > _LONGEST_KEY or _KEY_HAZARD.search(key):
        raise ToolError(f"“{key[:80]}” cannot be a property's name: no blanks around it, no colon with a blank behind, no line ends, 1 to {_LONGEST_KEY} characters.")


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
            raise ToolError(f"The value of “{key}” is a {type(value).__name__}; a property holds text, numbers, true, false, null, lists and maps.")


# --- edits ------------------------------------------------------------------------------------------------------------------------


def _with_new_block(text: str, wish: _Wish) -> str:
    targets = wish.targets({})
    if not targets:
        return text
    if _UNUSABLE_FENCE.match(text):
        raise invalid("The note begins with a --- line that no second one closes, so it is not clear where its properties end.")
    newline = newline_of(text)
    mark = BOM if text.startswith(BOM) else ""
    return f"{mark}---{newline}{dump(targets, newline)}---{newline}{text[len(mark) :]}"


def _edit_lines(block: str, parsed: Block, wish: _Wish, newline: str) -> str:
    current = _by_key(parsed, wish)
    targets = wish.targets({key: entry.node.value for key, entry in current.items()})
    gone = [entry for key, entry in current.items() if key in wish.remove]
    if not targets and not gone:
        return block
    layout = Layout(newline, parsed.column)
    splices: list[Splice] = [yaml_splice.remove(block, entry, layout) for entry in gone]
    new: list[str] = []
    for key, value in targets.items():
        if key in current:
            splices += yaml_splice.replace(block, current[key], value, layout)
        else:
            new.append(yaml_splice.write_entry(key, value, layout))
    changed = yaml_splice.apply(block, splices) + "".join(new)
    _prove(changed, _expected(parsed, targets, wish))
    return changed


def _edit_braces(block: str, parsed: Block, wish: _Wish) -> str:
    current = _by_key(parsed, wish)
    targets = wish.targets({key: entry.node.value for key, entry in current.items()})
    expected = _expected(parsed, targets, wish)
    for key in [*(key for key in current if key in wish.remove), *targets]:
        position = next((number for number, entry in enumerate(parsed.entries) if entry.key == key), None)
        if position is None:
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


def _by_key(parsed: Block, wish: _Wish) -> dict[str, Entry]:
    """The entries by key; one that the edit names must not be there twice."""
    named = wish.set.keys() | wish.remove
    if wish.add_tags or wish.remove_tags:
        named = named | {frontmatter_tags.PROPERTY}
    entries: dict[str, Entry] = {}
    for entry in parsed.entries:
        if entry.key is None:
            continue
        if entry.key in entries and entry.key in named:
            raise invalid(f"The property “{entry.key}” is there more than once, so it is not clear which one is meant.")
        entries[entry.key] = entry
    return entries


def _expected(parsed: Block, targets: Mapping[str, Any], wish: _Wish) -> list[tuple[str | None, Any]]:
    kept = [(entry.key, entry.node.value) for entry in parsed.entries if entry.key not in wish.remove]
    there = {key for key, _ in kept}
    return [*((key, targets.get(key, value) if key is not None else value) for key, value in kept), *(item for item in targets.items() if item[0] not in there)]


def _prove(block: str, expected: Sequence[tuple[str | None, Any]]) -> None:
    """Parses a new block and compares it, property by property and in order, with what it must say."""
    parsed = parse(block)
    found = [] if parsed is None else parsed.entries
    right = parsed is not None and len(found) == len(expected) and _CLOSING.search(block) is None
    if not right or not all(entry.key == key and same(entry.node.value, value) for entry, (key, value) in zip(found, expected, strict=True)):
        raise invalid("The change could not be made without changing what another property says.")
