"""List items and tasks of a note, or of a piece of one such as a selection."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from obsidian_agent.vault.markdown_lines import ITEM, Line, scan

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


def bullets(text: str) -> list[Bullet]:
    """The list items, bulleted and numbered, in order. Items in code and comments, and items without text, are left out."""
    return [
        Bullet(content, text[line.start : line.end], line.depth or 0, None if status is None else status != " ")
        for line, content, status in _items(text)
        if content
    ]


def tasks(text: str) -> list[Task]:
    """The list items that have a checkbox, in order, those in quotes and callouts too."""
    return [Task(content, status, line.number) for line, content, status in _items(text) if status is not None]


def _items(text: str) -> Iterator[tuple[Line, str, str | None]]:
    for line in scan(text, dedent=_common_indent(text)):
        found = ITEM.match(line.body) if line.depth is not None else None
        if found is None:
            continue
        box = _CHECKBOX.match(found["rest"])
        content = found["rest"][box.end() :] if box else found["rest"]
        yield line, _BLOCK_ID.sub("", content.strip()).rstrip(), box["status"] if box else None


def _common_indent(text: str) -> int:
    """Columns by which all lines are indented: a selection may be from the middle of a list."""
    columns = (len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip()) for line in text.splitlines() if line.strip())
    return min(columns, default=0)
