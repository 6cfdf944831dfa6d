"""List items and tasks of a note, or of a piece of one such as a selection."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from obsidian_agent.vault.markdown.lines import ITEM, Line, scan

_CHECKBOX = re.compile(r"\[(?P<status>[^\]\r\n])\](?:[ \t]+|$)")
_BLOCK_ID = re.compile(r"(?:^|[ \t]+)\^[A-Za-z0-9-]+$")


@dataclass(frozen=True, slots=True)
class Bullet:
    """A list item. `text` is without marker, checkbox and block id; `raw` is the whole line without its line end.

    `depth` counts from 0; `checked` is None without a checkbox, and true for every mark in it but a blank.
    """

    text: str
    raw: str
    depth: int
    checked: bool | None


@dataclass(frozen=True, slots=True)
class Task:
    """A list item with a checkbox: its text, the one character in the checkbox, and its line from 1."""

    text: str
    status: str
    line: int


class Item(NamedTuple):
    """What a list item says: `text` as in `Bullet`, and the one character in its checkbox, None without one."""

    text: str
    status: str | None


def bullets(text: str) -> list[Bullet]:
    """The list items, bulleted and numbered, in order. Items in code and comments, and items without text, are left out."""
    return [
        Bullet(item.text, text[line.start : line.end], line.depth or 0, None if item.status is None else item.status != " ")
        for line, item in _items(scan(text, dedent=_common_indent(text)))
        if item.text
    ]


def tasks(text: str) -> list[Task]:
    """The list items that have a checkbox, in order, those in quotes and callouts too."""
    return tasks_of(scan(text, dedent=_common_indent(text)))


def tasks_of(lines: Sequence[Line]) -> list[Task]:
    """The list items that have a checkbox among the lines of a note."""
    return [Task(item.text, item.status, line.number) for line, item in _items(lines) if item.status is not None]


def read_item(body: str) -> Item | None:
    """What the line of a list item says, given without indentation and quote marks; None for a line that is none."""
    found = ITEM.match(body)
    if found is None:
        return None
    box = _CHECKBOX.match(found["rest"])
    content = found["rest"][box.end() :] if box else found["rest"]
    return Item(without_block_id(content), box["status"] if box else None)


def without_block_id(text: str) -> str:
    """The text of an item without blanks around it, and without the block id at its end."""
    text = text.strip()
    return _BLOCK_ID.sub("", text).rstrip() if "^" in text else text


def _items(lines: Sequence[Line]) -> Iterator[tuple[Line, Item]]:
    for line in lines:
        if line.depth is not None and (item := read_item(line.body)):
            yield line, item


def _common_indent(text: str) -> int:
    """Columns by which all lines are indented: a selection may be from the middle of a list."""
    columns = (len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip()) for line in text.split("\n") if line.strip())
    return min(columns, default=0)
