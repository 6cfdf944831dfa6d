"""Where each property of a YAML block stands and what it means. Offsets count characters of the block that was given."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from obsidian_agent.errors import VaultError
from obsidian_agent.vault.yaml_simple import LONGEST_BLOCK

Style = Literal["plain", "'", '"', "|", ">", "empty", "alias", "flow", "block"]


class Node(NamedTuple):
    """A value and its place. Named tuples, because a vault has a hundred thousand of them and they are made on every edit."""

    start: int
    """First character, an anchor or tag included; for an empty value the place behind the colon or dash."""
    end: int
    """Behind the last character; line ends that belong to no value are not in it."""
    value: Any
    """JSON-safe; None for what is empty."""
    style: Style
    items: tuple[Node, ...] | None = None
    """The items of a list, else None."""


class Entry(NamedTuple):
    """A property. `key` is None when the key is no scalar."""

    key: str | None
    start: int
    key_end: int
    node: Node


class Block(NamedTuple):
    """A parsed block. `flow` is the span of the braces when the block is one flow mapping (JSON), else None."""

    entries: tuple[Entry, ...]
    column: int
    flow: tuple[int, int] | None
    linked: bool
    """Whether it has anchors or aliases, so that its properties depend on each other."""


def invalid(message: str, hint: str | None = "Correct the properties by hand first; the note is left as it is.") -> VaultError:
    """The one error of properties that cannot be read or changed."""
    return VaultError(message, code="FRONTMATTER_INVALID", hint=hint)


def parse(block: str) -> Block | None:
    """The properties of a block. None when it holds something that is no mapping; `VaultError` FRONTMATTER_INVALID when it is no YAML."""
    if len(block) > LONGEST_BLOCK:
        raise invalid(f"The properties are longer than {LONGEST_BLOCK} characters.")
    # Imported here: most blocks are simple (yaml_simple.py), and the library takes as long to import as all of this package's reading.
    from obsidian_agent.vault.yaml_events import Parser

    return Parser(block).block()
