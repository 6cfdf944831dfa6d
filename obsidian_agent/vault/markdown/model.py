"""The elements of a scanned note: links, tags, headings, tasks and block ids.

Offsets count bytes of the file, lines count from 1. The elements are named tuples, because a large
vault has a million of them and every start without an index creates them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from msgspec import Struct

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
"""`[[a]]`, `![[a]]`, `[t](a.md)`, `![t](a.png)`, a property that is a wikilink, a file card of a
canvas, a file that a base names. The last three are references, which are not in the link graph
(`references.py`): `[t]: a.md`, `<a href="a.md">`, `obsidian://open?file=a`."""

LinkForm = Literal["plain", "angle", "table", "single-quoted", "double-quoted", "json"]
"""The syntax around the target: none; `<...>`; a table, where the pipe is written `\\|`; a quoted
YAML string; a JSON string."""

MARKDOWN_KINDS = frozenset(("markdown", "markdown-embed"))


class Link(NamedTuple):
    """A link to a file of the vault, or within the note itself (then `target` is empty).

    `start` to `end` is the whole link, including brackets, and the quotes of a property.
    `target_start` to `target_end` are the bytes from which `target` was read.
    """

    kind: LinkKind
    target: str
    """The path to resolve: trimmed, without backslashes of a table; percent-decoded in a Markdown
    link."""
    subpath: str
    """`#heading`, `#^block`, or ""; decoded like `target`."""
    display: str | None
    """The display text as written, if the link has one."""
    start: int
    end: int
    target_start: int
    target_end: int
    line: int
    form: LinkForm = "plain"
    key: str | None = None
    """The location of a property link, such as `related.0`; None if the properties are invalid."""

    @property
    def display_text(self) -> str:
        """The text that Obsidian displays: the display text, else `Note > Heading`."""
        if self.display is not None:
            return self.display
        return " > ".join(part for part in (self.target + self.subpath).split("#") if part)

    @property
    def is_reference(self) -> bool:
        """True for a definition, an HTML attribute or a URI, which are not in the link graph."""
        return self.kind == "definition" or self.kind == "html" or self.kind == "uri"

    @property
    def is_markdown(self) -> bool:
        """True for Markdown links and embeds."""
        return self.kind in MARKDOWN_KINDS


class NoteTag(NamedTuple):
    """A tag, without its `#` in `name`.

    `start` is the position of the `#`. For a tag in properties it is the position of its text, or
    of the property if the text cannot be located.
    """

    name: str
    start: int
    end: int
    line: int
    in_properties: bool = False


class NoteHeading(NamedTuple):
    """A heading. `start` to `end` are its own line or lines, without the last line end."""

    text: str
    level: int
    line: int
    start: int
    end: int


class NoteTask(NamedTuple):
    """A list item with a checkbox. `status` is the one character between the brackets."""

    status: str
    text: str
    """The text of the item without its block id."""
    line: int


class BlockId(NamedTuple):
    """The id of a block, without its `^` in `name`. `start` is the position of the `^`."""

    name: str
    start: int
    end: int
    line: int


class FrontmatterSpan(NamedTuple):
    """The positions of the opening fence, of the YAML between the fences, and of the body."""

    start: int
    content_start: int
    content_end: int
    body_start: int


class ScannedNote(Struct, frozen=True, kw_only=True):
    """Everything in a note that can refer to others or be referred to, in the order of the note."""

    frontmatter: FrontmatterSpan | None
    properties: Mapping[str, Any]
    """JSON-safe values; empty if there are no properties or they are invalid YAML."""
    properties_broken: bool
    """True if the note has properties that are invalid YAML."""
    links: tuple[Link, ...]
    tags: tuple[NoteTag, ...]
    headings: tuple[NoteHeading, ...]
    blocks: tuple[BlockId, ...]
    tasks: tuple[NoteTask, ...]
    aliases: tuple[str, ...]
    lossy: bool = False
    """True if the file is not UTF-8. Bytes were replaced then, so offsets do not fit the file."""
