"""The properties of a note: where their block is, what it says, and edits that change nothing else.

The block begins in the first line (a byte order mark may precede it) with ``---`` and ends with the next line that is ``---``; both may
have blanks behind. A note whose first line is ``---`` and that has no second one has no properties, and none are written to it: a block
above would hide what was meant as one.

An edit splices the text of single values (yaml_splice.py) and then proves itself: the new block is read, and every property must mean what
it should, else the edit is refused with FRONTMATTER_INVALID and nothing changed. Python's YAML writers are never used on notes: they would drop comments, quotes and order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import ToolError
from obsidian_agent.expression import expression
from obsidian_agent.vault.frontmatter import yaml_scalars, yaml_splice
from obsidian_agent.vault.frontmatter.yaml_scalars import invalid
from obsidian_agent.vault.frontmatter.yaml_splice import Layout
from obsidian_agent.vault.text import BOM, newline_of

if TYPE_CHECKING:
    from obsidian_agent.vault.frontmatter.yaml_nodes import Block, Entry

_OPENING = expression(r"\ufeff?(---[ \t]*\r?\n)")
_CLOSING = expression(r"---(?<![^\n]---)[ \t]*\r?(?:\n|\Z)")
_UNUSABLE_FENCE = expression(r"\ufeff?---[ \t]*(?:\r|\n|\Z)")


@dataclass(frozen=True, slots=True)
class Frontmatter:
    """Offsets in the text: the opening fence, the first line below the closing fence, and the lines between the fences."""

    start: int
    body_start: int
    content_start: int
    content_end: int


def find_frontmatter(text: str) -> Frontmatter | None:
    """Where the block is, or None when there is none (an unclosed one is none)."""
    opening = _OPENING.match(text)
    if opening is None:
        return None
    closing = _CLOSING.search(text, opening.end())
    return (
        None
        if closing is None
        else Frontmatter(opening.start(1), closing.end(), opening.end(), closing.start())
    )


def read_properties(text: str) -> dict[str, Any]:
    """The properties as JSON-safe values, as Obsidian reads them: dates, ``yes`` and ``12:30`` are text. {} when there are none.

    Of a property that is there twice the last one counts. Raises `VaultError` FRONTMATTER_INVALID for a block that is no YAML or
    too large.
    """
    front = find_frontmatter(text)
    return {} if front is None else read_block(text[front.content_start : front.content_end])


def read_block(block: str) -> dict[str, Any]:
    """The properties in the lines between the fences. Raises as `read_properties` does."""
    simple = yaml_scalars.read(block)
    if simple is not None:
        return simple
    parsed = parse_block(block)
    return (
        {}
        if parsed is None
        else {entry.key: entry.node.value for entry in parsed.entries if entry.key is not None}
    )


def parse_block(block: str) -> Block | None:
    """Where each property in the lines between the fences stands; None for what is no mapping. FRONTMATTER_INVALID when it is no YAML."""
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
    """The text with properties set or removed and tags added or removed; nothing else differs, and nothing at all if all is so already.

    Values are JSON: texts, numbers, booleans, null, lists, maps. Tags may have a ``#``. New properties go last; a note without a block
    gets one. Raises `ToolError` ARGUMENT_INVALID for arguments that contradict each other or cannot be written, `VaultError`
    FRONTMATTER_INVALID when the block cannot be read or the edit cannot be proven right.
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
        raise invalid("The change would end the properties before the line that ends them now.")
    return text[: front.content_start] + changed + text[front.content_end :]


def _with_new_block(text: str, request: EditRequest) -> str:
    targets = request.targets({})
    if not targets:
        return text
    if _UNUSABLE_FENCE.match(text):
        raise invalid(
            "The note begins with a --- line that no second one closes, so it is not clear where its properties end."
        )
    newline = newline_of(text)
    lines = _new_lines(targets, newline)
    _prove(lines, list(targets.items()))
    mark = BOM if text.startswith(BOM) else ""
    return f"{mark}---{newline}{lines}---{newline}{text[len(mark) :]}"


# --- what is asked for -------------------------------------------------------------------------------------------------------------

_KEY_HAZARD = expression(r"^\s|\s$|:\s|:$|[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")
_LONGEST_KEY = 200
_DEEPEST_VALUE = 30
_MISSING: Any = object()


@dataclass(frozen=True, slots=True)
class EditRequest:
    """Checked arguments of an edit: values to set by key, keys to remove, tags to add (without #) and to remove."""

    set: Mapping[str, Any]
    remove: frozenset[str]
    add_tags: tuple[str, ...]
    remove_tags: tuple[str, ...]

    @classmethod
    def checked(
        cls,
        values: Mapping[str, Any],
        remove: Sequence[str],
        add_tags: Sequence[str],
        remove_tags: Sequence[str],
    ) -> EditRequest:
        """Raises `ToolError` ARGUMENT_INVALID for arguments that contradict each other or that no note could hold."""
        for key, value in values.items():
            _check_value(key, value, 0)
        request = cls(
            values, frozenset(remove), tuple(clean_tag(tag) for tag in add_tags), tuple(remove_tags)
        )
        request._check_contradictions()
        return request

    @property
    def keys(self) -> frozenset[str]:
        """Every property that the edit is about."""
        tags = (PROPERTY,) if self.add_tags or self.remove_tags else ()
        return self.remove.union(self.set, tags)

    def targets(self, current: Mapping[str, Any]) -> dict[str, Any]:
        """The properties that must get another value than the one they have, in the order in which they were asked for."""
        wanted = {
            key: value
            for key, value in self.set.items()
            if not same(current.get(key, _MISSING), value)
        }
        name = PROPERTY
        if (self.add_tags or self.remove_tags) and name not in self.remove:
            tags = changed_tags(
                self.set.get(name, current.get(name)), self.add_tags, self.remove_tags
            )
            if tags is not None:
                wanted.pop(name, None)
                if not same(current.get(name, _MISSING), tags):
                    wanted[name] = tags
        return wanted

    def _check_contradictions(self) -> None:
        both = sorted(self.remove & self.set.keys())
        if both:
            raise ToolError(
                f"The property “{both[0]}” is both set and removed; leave out one of the two."
            )
        if self.add_tags and PROPERTY in self.remove:
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
    """Whether two JSON values are equal; 1 and 1.0 are, 1 and true are not. The order of a map's keys does not count."""
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
                raise ToolError(
                    f"The value of “{key}” is {value}, which is not a number that a property can hold."
                )
        case str():
            if not value.isascii() and any(
                "\ud800" <= character <= "\udfff" for character in value
            ):
                raise ToolError(
                    f"The value of “{key}” holds half of a surrogate pair, which no file can hold."
                )
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
            raise ToolError(
                f"The value of “{key}” is a {kind}; a property holds text, numbers, true, false, null, lists and maps."
            )


# --- edits of the block ------------------------------------------------------------------------------------------------------------

_Expected = Sequence[tuple[str | None, Any]]


def edit_block(block: str, request: EditRequest, newline: str) -> str:
    """The block with the request fulfilled. Raises `VaultError` FRONTMATTER_INVALID when it cannot be read or the result not be proven."""
    parsed = parse_block(block)
    if parsed is None:
        raise invalid("What stands between the first two --- lines is text, not properties.")
    return (
        _edit_braces(block, parsed, request)
        if parsed.flow
        else _edit_lines(block, parsed, request, newline)
    )


def _new_lines(properties: Mapping[str, Any], newline: str, column: int = 0) -> str:
    """Lines for new properties. Raises `ToolError` ARGUMENT_INVALID for a name that none can have."""
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
        yaml_splice.remove(block, entry, layout, above.start if above else None)
        for above, entry in zip((None, *parsed.entries), parsed.entries, strict=False)
        if entry.key is not None and entry.key in request.remove
    ]
    for key in targets:
        if key in named:
            splices += yaml_splice.replace(block, named[key], targets[key], layout)
    new = {key: value for key, value in targets.items() if key not in named}
    if not splices and not new:
        return block
    changed = yaml_splice.apply(block, splices) + (
        _new_lines(new, newline, parsed.column) if new else ""
    )
    _prove(changed, _expected(parsed, targets, request))
    return changed


def _edit_braces(block: str, parsed: Block, request: EditRequest) -> str:
    named = _named(parsed, request)
    targets = request.targets({key: entry.node.value for key, entry in named.items()})
    expected = _expected(parsed, targets, request)
    for key in [*(key for key in named if key in request.remove), *targets]:
        position = next(
            (number for number, entry in enumerate(parsed.entries) if entry.key == key), None
        )
        if position is None:
            check_new_key(key)
            splices = yaml_splice.insert_in_braces(block, parsed, key, targets[key])
        elif key in request.remove:
            splices = [yaml_splice.remove_in_braces(parsed, position)]
        else:
            splices = yaml_splice.replace_in_braces(block, parsed.entries[position], targets[key])
        block = yaml_splice.apply(block, splices)
        again = parse_block(block)
        if again is None:
            raise invalid("The properties cannot be changed safely.")
        parsed = again
    _prove(block, expected)
    return block


def _named(parsed: Block, request: EditRequest) -> dict[str, Entry]:
    """The entries that the edit is about, by key."""
    keys = request.keys
    named: dict[str, Entry] = {}
    for entry in parsed.entries:
        if entry.key is not None and entry.key in keys:
            if entry.key in named:
                raise _ambiguous(entry.key)
            named[entry.key] = entry
    return named


def _expected(parsed: Block, targets: Mapping[str, Any], request: EditRequest) -> _Expected:
    """Every property in order, with the value that it must have after the edit."""
    kept = [
        entry for entry in parsed.entries if entry.key is None or entry.key not in request.remove
    ]
    there = {entry.key for entry in kept}
    changed = [
        (
            entry.key,
            targets[entry.key]
            if entry.key is not None and entry.key in targets
            else entry.node.value,
        )
        for entry in kept
    ]
    return [*changed, *((key, value) for key, value in targets.items() if key not in there)]


# --- proof --------------------------------------------------------------------------------------------------------------------------


def _prove(block: str, expected: _Expected) -> None:
    """Reads a new block and compares it, property by property and in order, with what it must say."""
    simple = yaml_scalars.read(block)
    if simple is not None and len(simple) == len(expected):
        found: _Expected = list(simple.items())
    else:
        parsed = parse_block(block)
        found = [(entry.key, entry.node.value) for entry in parsed.entries] if parsed else []
    if [key for key, _ in found] != [key for key, _ in expected] or not all(
        same(value, wanted) for (_, value), (_, wanted) in zip(found, expected, strict=True)
    ):
        raise invalid("The change cannot be made without changing what another property says.")


def _ambiguous(key: str) -> Exception:
    return invalid(
        f"The property “{key}” is there more than once, so it is not clear which one is meant."
    )


# --- the property `tags` ------------------------------------------------------------------------------------------------------------

PROPERTY = "tags"
"""The only property that holds tags; Obsidian no longer reads the singular."""

_SEPARATORS = expression(r"[,\s]+")
_NOT_IN_TAGS = expression(r"[\s,#\x00-\x1f\x7f]")


def clean_tag(tag: str) -> str:
    """A tag without its ``#``. Raises `ToolError` ARGUMENT_INVALID for what Obsidian would not take for a tag."""
    name = tag.strip().removeprefix("#")
    if not name or name.isdigit() or _NOT_IN_TAGS.search(name):
        raise ToolError(
            f"“{tag}” is no tag: a tag has no spaces, commas or further # and at least one character that is no digit."
        )
    return name


def changed_tags(current: Any, add: Sequence[str], remove: Sequence[str]) -> list[Any] | None:
    """The new list of tags, or None when nothing changes.

    Tags are compared without case and without ``#``; what is there keeps its spelling and place. One text becomes a list of the tags
    in it. Raises FRONTMATTER_INVALID when the property holds a map.
    """
    if isinstance(current, dict):
        raise invalid(f"The property “{PROPERTY}” holds a map, not tags.")
    old = _tags_in(current)
    gone = {folded_tag(tag) for tag in remove}
    kept = [tag for tag in old if folded_tag(tag) not in gone]
    known = {folded_tag(tag) for tag in kept}
    new: list[str] = []
    for tag in add:
        if folded_tag(tag) not in known:
            known.add(folded_tag(tag))
            new.append(tag)
    return [*kept, *new] if new or len(kept) != len(old) else None


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
    """What two spellings of one tag have in common: no ``#``, no case."""
    return str(tag).strip().removeprefix("#").casefold()
