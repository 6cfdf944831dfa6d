"""Properties of a note: where the block is, what it says, and edits that change nothing else.

An edit splices the text of single values (yaml_splice.py) and then proves itself: the new block is parsed and every property must mean
what it should, else the edit is refused with FRONTMATTER_INVALID and nothing changed. Python's YAML writers are never used on notes:
they would drop comments, quotes and order.

The block begins in the first line (a byte order mark may precede it) with ``---`` and ends with the next line that is ``---``; both may
have blanks behind. A note whose first line is ``---`` and that has no second one has no properties, and none are written to it: a block
above would hide what was meant as one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from obsidian_agent.vault.frontmatter import yaml_scalars
from obsidian_agent.vault.frontmatter.edit import Wish, edit_block, new_lines
from obsidian_agent.vault.frontmatter.yaml_nodes import invalid, parse
from obsidian_agent.vault.markdown.text import BOM, newline_of

_OPENING = re.compile(r"\ufeff?(---[ \t]*\r?\n)")
_CLOSING = re.compile(r"^---[ \t]*\r?(?:\n|\Z)", re.MULTILINE)
_UNUSABLE_FENCE = re.compile(r"\ufeff?---[ \t]*(?:\r|\n|\Z)")


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
    return {} if front is None else read_block(text[front.content_start : front.content_end])


def read_block(block: str) -> dict[str, Any]:
    """The properties in the lines between the fences. Raises as `read` does."""
    simple = yaml_scalars.read(block)
    if simple is not None:
        return simple
    parsed = parse(block)
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
    wish = Wish.checked(set or {}, remove, add_tags, remove_tags)
    if not wish.keys:
        return text
    front = span(text)
    if front is None:
        return _with_new_block(text, wish)
    block = text[front.content_start : front.content_end]
    newline = "\r\n" if text.startswith("\r\n", front.content_start - 2) else "\n"
    changed = edit_block(block, wish, newline)
    if changed == block:
        return text
    if _CLOSING.search(changed):
        raise invalid("The change would end the properties before the line that ends them now.")
    return text[: front.content_start] + changed + text[front.content_end :]


def dump(properties: Mapping[str, Any], newline: str) -> str:
    """The lines of a new block, without its fences: each property as Obsidian would write it. Raises ARGUMENT_INVALID as `edit` does."""
    return new_lines(Wish.checked(properties, (), (), ()).set, newline)


def merge_new(content: str, properties: Mapping[str, Any]) -> str:
    """Content of a new note with properties: in the block it has, or in a new one above it."""
    return edit(content, set=properties)


def _with_new_block(text: str, wish: Wish) -> str:
    targets = wish.targets({})
    if not targets:
        return text
    if _UNUSABLE_FENCE.match(text):
        raise invalid("The note begins with a --- line that no second one closes, so it is not clear where its properties end.")
    newline = newline_of(text)
    mark = BOM if text.startswith(BOM) else ""
    return f"{mark}---{newline}{new_lines(targets, newline)}---{newline}{text[len(mark) :]}"
