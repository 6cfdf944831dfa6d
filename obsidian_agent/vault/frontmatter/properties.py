"""The properties of a note: finding their block, reading it, and edits that change nothing else.

The block starts on the first line, after an optional byte order mark, with ``---`` and ends with
the next line that is ``---``. Both lines may end in blanks. If the first line is ``---`` and there
is no second one, the note has no properties and none are written: a new block would hide the
intended one.

An edit splices the text of single values (yaml_splice.py) and is then verified: the new block is
parsed, and unless every property has its expected value the edit is refused with
FRONTMATTER_INVALID. Python's YAML writers are never used on notes, because they drop comments,
quotes and order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from obsidian_agent.errors import ToolError
from obsidian_agent.expression import expression
from obsidian_agent.vault.frontmatter import yaml_scalars, yaml_splice
from obsidian_agent.vault.frontmatter.yaml_scalars import invalid
from obsidian_agent.vault.frontmatter.yaml_splice import Layout
from obsidian_agent.vault.text import BOM, newline_of

if TYPE_CHECKING:
    from obsidian_agent.vault.frontmatter.yaml_nodes import Block, YamlEntry

_OPENING = expression(r"\ufeff?(---[ \t]*\r?\n)")
_CLOSING = expression(r"---(?<![^\n]---)[ \t]*\r?(?:\n|\Z)")
_UNUSABLE_FENCE = expression(r"\ufeff?---[ \t]*(?:\r|\n|\Z)")

_KEY_HAZARD = expression(r"^\s|\s$|:\s|:$|[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")
_MAX_KEY_LENGTH = 200
_MAX_VALUE_DEPTH = 30
_MISSING: Any = object()

_TAGS = "tags"
"""The only property that holds tags. Obsidian no longer reads the singular."""

_SEPARATORS = expression(r"[,\s]+")
_NOT_IN_TAGS = expression(r"[\s,#\x00-\x1f\x7f]")

_Expected = Sequence[tuple[str | None, Any]]


class Frontmatter(Struct, frozen=True):
    """The position of a block of properties, as offsets in the note's text."""

    start: int
    """Start of the opening fence."""
    body_start: int
    """Start of the line below the closing fence."""
    content_start: int
    content_end: int
    """Start and end of the lines between the fences."""


def find_frontmatter(text: str) -> Frontmatter | None:
    """Return the position of the block, or None. An unclosed block is none."""
    opening = _OPENING.match(text)
    if opening is None:
        return None
    closing = _CLOSING.search(text, opening.end())
    if closing is None:
        return None
    return Frontmatter(
        start=opening.start(1),
        body_start=closing.end(),
        content_start=opening.end(),
        content_end=closing.start(),
    )


def read_properties(text: str) -> dict[str, Any]:
    """Return the properties as JSON-safe values, as Obsidian reads them.

    Dates, ``yes`` and ``12:30`` are text. Of duplicate properties the last one counts. Raises
    `VaultError` FRONTMATTER_INVALID for a block that is not YAML or too large.
    """
    front = find_frontmatter(text)
    return {} if front is None else read_block(text[front.content_start : front.content_end])


def read_block(block: str) -> dict[str, Any]:
    """Return the properties in the lines between the fences. Raises like `read_properties`."""
    simple = yaml_scalars.read(block)
    if simple is not None:
        return simple
    parsed = parse_block(block)
    if parsed is None:
        return {}
    return {entry.key: entry.node.value for entry in parsed.entries if entry.key is not None}


def parse_block(block: str) -> Block | None:
    """Parse the lines between the fences, with the position of each property.

    Returns None if they are YAML but not a mapping. Raises `VaultError` FRONTMATTER_INVALID if they
    are not YAML.
    """
    from obsidian_agent.vault.frontmatter.yaml_nodes import parse

    return parse(block)


def edit_properties(
    text: str,
    *,
    set: Mapping[str, Any] | None = None,
    remove: Sequence[str] = (),
    add_tags: Sequence[str] = (),
    remove_tags: Sequence[str] = (),
) -> str:
    """Return the text with properties set or removed and tags added or removed.

    Everything else stays the same; if the properties already have these values, so does the whole
    text. Values are JSON: texts, numbers, booleans, null, lists, maps. Tags may have a ``#``. New
    properties are added at the end, in a new block where there is none.

    Raises `ToolError` ARGUMENT_INVALID for contradictory arguments and values that cannot be
    written, and `VaultError` FRONTMATTER_INVALID if the block cannot be read or the edit cannot be
    verified.
    """
    request = EditRequest.checked(set or {}, remove, add_tags, remove_tags)
    if not request.keys:
        return text
    front = find_frontmatter(text)
    if front is None:
        return _with_new_block(text, request)
    block = text[front.content_start : front.content_end]
    newline = "\r\n" if text.startswith("\r\n", front.content_start - 2) else "\n"
    changed = edit_block(block, request, newline)
    if changed == block:
        return text
    if _CLOSING.search(changed):
        raise invalid("The change would end the properties too early, at a --- line of its own.")
    return text[: front.content_start] + changed + text[front.content_end :]


def _with_new_block(text: str, request: EditRequest) -> str:
    targets = request.targets({})
    if not targets:
        return text
    if _UNUSABLE_FENCE.match(text):
        raise invalid(
            "The note starts with a --- line that is not closed by a second one, "
            "so the end of its properties is unknown."
        )
    newline = newline_of(text)
    lines = _new_lines(targets, newline)
    _verify(lines, list(targets.items()))
    mark = BOM if text.startswith(BOM) else ""
    return f"{mark}---{newline}{lines}---{newline}{text[len(mark) :]}"


class EditRequest(Struct, frozen=True):
    """The checked arguments of an edit."""

    set: Mapping[str, Any]
    remove: frozenset[str]
    add_tags: tuple[str, ...]
    """Without ``#``."""
    remove_tags: tuple[str, ...]

    @classmethod
    def checked(
        cls,
        values: Mapping[str, Any],
        remove: Sequence[str],
        add_tags: Sequence[str],
        remove_tags: Sequence[str],
    ) -> EditRequest:
        """Create a request. Raises `ToolError` ARGUMENT_INVALID for contradictory arguments."""
        for key, value in values.items():
            _check_value(key, value, 0)
        request = cls(
            values, frozenset(remove), tuple(clean_tag(tag) for tag in add_tags), tuple(remove_tags)
        )
        request._check_contradictions()
        return request

    @property
    def keys(self) -> frozenset[str]:
        """Every property that the edit concerns."""
        tags = (_TAGS,) if self.add_tags or self.remove_tags else ()
        return self.remove.union(self.set, tags)

    def targets(self, current: Mapping[str, Any]) -> dict[str, Any]:
        """Return the properties that need a value other than the current one, in request order."""
        targets = {
            key: value
            for key, value in self.set.items()
            if not same(current.get(key, _MISSING), value)
        }
        if (self.add_tags or self.remove_tags) and _TAGS not in self.remove:
            tags = changed_tags(
                self.set.get(_TAGS, current.get(_TAGS)), self.add_tags, self.remove_tags
            )
            if tags is not None:
                targets.pop(_TAGS, None)
                if not same(current.get(_TAGS, _MISSING), tags):
                    targets[_TAGS] = tags
        return targets

    def _check_contradictions(self) -> None:
        both = sorted(self.remove & self.set.keys())
        if both:
            raise ToolError(
                f"The property “{both[0]}” is both set and removed; leave out one of the two."
            )
        if self.add_tags and _TAGS in self.remove:
            raise ToolError(
                "The property “tags” is removed and gets tags; leave out one of the two."
            )
        dropped = {folded_tag(tag) for tag in self.remove_tags}
        for tag in self.add_tags:
            if folded_tag(tag) in dropped:
                raise ToolError(
                    f"The tag “{tag}” is both added and removed; leave out one of the two."
                )


def same(one: Any, other: Any) -> bool:
    """Return True if two JSON values are equal. 1 equals 1.0 but not true; key order is ignored."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(
            same(value, other[key]) for key, value in one.items()
        )
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(
            same(left, right) for left, right in zip(one, other, strict=True)
        )
    return bool(one == other)


def check_new_key(key: str) -> None:
    """Raise `ToolError` ARGUMENT_INVALID for an invalid name of a new property.

    Existing properties may have any name.
    """
    if not key or len(key) > _MAX_KEY_LENGTH or _KEY_HAZARD.search(key):
        raise ToolError(
            f"“{key[:80]}” cannot be a property's name.",
            hint=(
                f"A name has 1 to {_MAX_KEY_LENGTH} characters, no blanks around it, no line ends, "
                "and no colon before a blank or at its end."
            ),
        )


def _check_value(key: str, value: Any, depth: int) -> None:
    if depth > _MAX_VALUE_DEPTH:
        raise ToolError(f"The value of “{key}” is nested deeper than {_MAX_VALUE_DEPTH}.")
    match value:
        case None | bool() | int():
            return
        case float():
            if not math.isfinite(value):
                raise ToolError(
                    f"The value of “{key}” is {value}; a property can only hold finite numbers."
                )
        case str():
            if not value.isascii() and any(
                "\ud800" <= character <= "\udfff" for character in value
            ):
                raise ToolError(
                    f"The value of “{key}” holds an unpaired surrogate, which cannot be written."
                )
        case list() | tuple():
            for item in value:
                _check_value(key, item, depth + 1)
        case Mapping():
            for name, item in value.items():
                if not isinstance(name, str):
                    raise ToolError(f"The value of “{key}” has a name that is not text: {name!r}.")
                _check_value(key, name, depth + 1)
                _check_value(key, item, depth + 1)
        case _:
            kind = type(value).__name__
            raise ToolError(
                f"The value of “{key}” is a {kind}; a property holds text, numbers, true, false, "
                "null, lists and maps."
            )


def edit_block(block: str, request: EditRequest, newline: str) -> str:
    """Return the block with the request applied.

    Raises `VaultError` FRONTMATTER_INVALID if it cannot be read or the result cannot be verified.
    """
    parsed = parse_block(block)
    if parsed is None:
        raise invalid("The first two --- lines enclose text, not properties.")
    if parsed.flow:
        return _edit_braces(block, parsed, request)
    return _edit_lines(block, parsed, request, newline)


def _new_lines(properties: Mapping[str, Any], newline: str, column: int = 0) -> str:
    """Return lines for new properties. Raises `ToolError` ARGUMENT_INVALID for an invalid name."""
    for key in properties:
        check_new_key(key)
    return "".join(
        yaml_splice.write_entry(key, value, Layout(newline, column))
        for key, value in properties.items()
    )


def _edit_lines(block: str, parsed: Block, request: EditRequest, newline: str) -> str:
    named = _named(parsed, request)
    targets = request.targets({key: entry.node.value for key, entry in named.items()})
    layout = Layout(newline, parsed.column)
    splices = [
        yaml_splice.remove(block, entry, layout, previous.start if previous else None)
        for previous, entry in zip((None, *parsed.entries), parsed.entries, strict=False)
        if entry.key is not None and entry.key in request.remove
    ]
    for key in targets:
        if key in named:
            splices += yaml_splice.replace(block, named[key], targets[key], layout)
    new = {key: value for key, value in targets.items() if key not in named}
    if not splices and not new:
        return block
    changed = yaml_splice.apply(block, splices) + _new_lines(new, newline, parsed.column)
    _verify(changed, _expected(parsed, targets, request))
    return changed


def _edit_braces(block: str, parsed: Block, request: EditRequest) -> str:
    named = _named(parsed, request)
    targets = request.targets({key: entry.node.value for key, entry in named.items()})
    expected = _expected(parsed, targets, request)
    for key in [*(key for key in named if key in request.remove), *targets]:
        keys = [entry.key for entry in parsed.entries]
        position = keys.index(key) if key in keys else None
        if position is None:
            check_new_key(key)
            splices = yaml_splice.insert_in_braces(block, parsed, key, targets[key])
        elif key in request.remove:
            splices = [yaml_splice.remove_in_braces(parsed, position)]
        else:
            splices = yaml_splice.replace_in_braces(block, parsed.entries[position], targets[key])
        block = yaml_splice.apply(block, splices)
        reparsed = parse_block(block)
        if reparsed is None:
            raise invalid("The properties cannot be changed safely.")
        parsed = reparsed
    _verify(block, expected)
    return block


def _named(parsed: Block, request: EditRequest) -> dict[str, YamlEntry]:
    """Return the entries that the edit concerns, by key."""
    keys = request.keys
    named: dict[str, YamlEntry] = {}
    for entry in parsed.entries:
        if entry.key is not None and entry.key in keys:
            if entry.key in named:
                raise invalid(
                    f"The note has the property “{entry.key}” more than once, "
                    "so it is unclear which one is meant."
                )
            named[entry.key] = entry
    return named


def _expected(parsed: Block, targets: Mapping[str, Any], request: EditRequest) -> _Expected:
    """Return every property in order, with its value after the edit."""
    result: list[tuple[str | None, Any]] = []
    for entry in parsed.entries:
        if entry.key is None:
            result.append((None, entry.node.value))
        elif entry.key not in request.remove:
            result.append((entry.key, targets.get(entry.key, entry.node.value)))
    existing = {key for key, _ in result}
    result += [(key, value) for key, value in targets.items() if key not in existing]
    return result


def _verify(block: str, expected: _Expected) -> None:
    """Read a new block and compare it with the expected properties and their order."""
    simple = yaml_scalars.read(block)
    actual: _Expected
    if simple is not None and len(simple) == len(expected):
        actual = list(simple.items())
    else:
        parsed = parse_block(block)
        actual = [(entry.key, entry.node.value) for entry in parsed.entries] if parsed else []
    same_keys = [key for key, _ in actual] == [key for key, _ in expected]
    if not same_keys or not all(
        same(value, target) for (_, value), (_, target) in zip(actual, expected, strict=True)
    ):
        raise invalid("The change would also change the value of another property.")


def clean_tag(tag: str) -> str:
    """Return a tag without its ``#``. Raises `ToolError` ARGUMENT_INVALID for an invalid tag."""
    name = tag.strip().removeprefix("#")
    if not name or name.isdigit() or _NOT_IN_TAGS.search(name):
        raise ToolError(
            f"“{tag}” is not a valid tag: a tag has no spaces, commas or further # "
            "and at least one character other than a digit."
        )
    return name


def changed_tags(current: Any, add: Sequence[str], remove: Sequence[str]) -> list[Any] | None:
    """Return the new list of tags, or None if nothing changes.

    Tags are compared without case and ``#``. Existing tags keep their spelling and position, and a
    single text becomes a list of the tags in it. Raises `VaultError` FRONTMATTER_INVALID if the
    property holds a map.
    """
    if isinstance(current, dict):
        raise invalid(f"The property “{_TAGS}” holds a map, not tags.")
    old = _tags_in(current)
    removed = {folded_tag(tag) for tag in remove}
    remaining = [tag for tag in old if folded_tag(tag) not in removed]
    existing = {folded_tag(tag) for tag in remaining}
    new: list[str] = []
    for tag in add:
        if folded_tag(tag) not in existing:
            existing.add(folded_tag(tag))
            new.append(tag)
    if not new and len(remaining) == len(old):
        return None
    return [*remaining, *new]


def _tags_in(value: Any) -> list[Any]:
    match value:
        case None:
            return []
        case list():
            return value
        case str():
            return [tag for tag in _SEPARATORS.split(value) if tag]
        case _:
            return [value]


def folded_tag(tag: Any) -> str:
    """Return the form that is equal for all spellings of a tag: without ``#`` and case."""
    return str(tag).strip().removeprefix("#").casefold()
