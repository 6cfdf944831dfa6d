"""What a scan finds in a note. Offsets count bytes of the file, lines count from 1.

Named tuples, because a large vault has a million of these and they are made on every start without an index.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from obsidian_agent.dataclass import dataclass

LinkKind = Literal[
    "wikilink",
    "embed",
    "markdown",
    "markdown-embed",
    "property",
    "canvas",
    "base",
    "definition",
    "html",
    "uri",
]
"""`[[a]]`, `![[a]]`, `[t](a.md)`, `![t](a.png)`, a property that is a wikilink, a file card of a canvas, a file that a base names; and what
is no link of the graph (`references.py`): `[t]: a.md`, `<a href="a.md">`, `obsidian://open?file=a`."""

LinkForm = Literal["plain", "angle", "table", "single-quoted", "double-quoted", "json"]
"""What the target's text is written in: nothing special; `<...>`; a table, whose pipe is `\\|`; a quoted YAML or JSON string."""

MARKDOWN_KINDS = frozenset(("markdown", "markdown-embed"))


class Link(NamedTuple):
    """A link to a file of the vault, or to a place in the note itself (then `target` is empty)."""

    kind: LinkKind
    target: str
    """The path part as it is looked up: trimmed, without backslashes of a table, percent-decoded in a Markdown link."""
    subpath: str
    """`#heading`, `#^block`, or ""; decoded as `target` is."""
    display: str | None
    """The text to show, as written; None when there is none."""
    start: int
    end: int
    """The whole link, brackets and quotes of a property included."""
    target_start: int
    target_end: int
    """The bytes of the file that `target` was read from."""
    line: int
    form: LinkForm = "plain"
    key: str | None = None
    """Of a property: its name and the way into its value, as `related.0`; None when the properties cannot be read."""

    @property
    def display_text(self) -> str:
        """The text that Obsidian shows: the display text, else `Note > Heading`."""
        if self.display is not None:
            return self.display
        return " > ".join(part for part in (self.target + self.subpath).split("#") if part)

    @property
    def is_reference(self) -> bool:
        """Whether it is no link of the graph, but a definition, an attribute of HTML or an address of Obsidian."""
        return self.kind == "definition" or self.kind == "html" or self.kind == "uri"

    @property
    def is_markdown(self) -> bool:
        """Whether it is written as a Markdown link."""
        return self.kind in MARKDOWN_KINDS


class NoteTag(NamedTuple):
    """A tag without its `#`. `start` is at the `#` (of a property: at the tag's text, or the property if that cannot be found)."""

    name: str
    start: int
    end: int
    line: int
    in_properties: bool = False


class NoteHeading(NamedTuple):
    """A heading; `start` to `end` are its own line or lines without the last line end."""

    text: str
    level: int
    line: int
    start: int
    end: int


class NoteTask(NamedTuple):
    """A list item with a checkbox: its text without block id, and the one character between the brackets."""

    status: str
    text: str
    line: int


class BlockId(NamedTuple):
    """The name of a block, without its `^`; `start` is at the `^`."""

    name: str
    start: int
    end: int
    line: int


class FrontmatterSpan(NamedTuple):
    """The opening fence, what is between the fences, and the first byte below the closing one."""

    start: int
    content_start: int
    content_end: int
    body_start: int


@dataclass(frozen=True, slots=True)
class ScannedNote:
    """Everything in a note that others can refer to, or that refers to others, in the order of the note."""

    frontmatter: FrontmatterSpan | None
    properties: Mapping[str, Any]
    """JSON-safe values; empty when there are none or they are no YAML."""
    properties_broken: bool
    """Whether there are properties that are no YAML."""
    links: tuple[Link, ...]
    tags: tuple[NoteTag, ...]
    headings: tuple[NoteHeading, ...]
    blocks: tuple[BlockId, ...]
    tasks: tuple[NoteTask, ...]
    aliases: tuple[str, ...]
    lossy: bool = False
    """Whether the bytes are not UTF-8: wrong ones were replaced, so that offsets do not fit the file."""
