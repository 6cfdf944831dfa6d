"""The scan of a note: properties, links, tags, headings, block ids and tasks, with their positions.

A note is read as Obsidian reads it, in one pass over its bytes, and no more of Markdown is parsed
than that requires. Only a note in which the end of a block decides what is hidden is read line by
line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote_to_bytes

from obsidian_agent.errors import VaultError
from obsidian_agent.expression import expression
from obsidian_agent.vault.frontmatter.properties import find_frontmatter, read_block
from obsidian_agent.vault.markdown import blocks
from obsidian_agent.vault.markdown.blocks import (
    NeedsBlocks,
    flat_tables,
    line_starts,
    regions,
)
from obsidian_agent.vault.markdown.inline import InlineScanner
from obsidian_agent.vault.markdown.lines import Line, headings_of, tasks_of
from obsidian_agent.vault.markdown.lines import scan as scan_lines
from obsidian_agent.vault.markdown.model import (
    BlockId,
    FrontmatterSpan,
    Link,
    NoteHeading,
    NoteTag,
    NoteTask,
    ScannedNote,
)
from obsidian_agent.vault.markdown.note_properties import (
    aliases,
    property_links,
    property_tag_names,
    property_tags,
)
from obsidian_agent.vault.markdown.targets import links_where as quick_links_where
from obsidian_agent.vault.markdown.targets import targets_and_tags
from obsidian_agent.vault.text import BOM, decode

_BOM: Final = BOM.encode()
_LABEL: Final = rb"\ {0,3}\[(?!\^)[^\[\]\n]+\]:[ \t]*"
_DEFINITION: Final = expression(_LABEL + rb"\S", re.VERBOSE)
_ANCHOR: Final = expression(
    rb"^" + _LABEL + rb"""(\#\S*)[ \t]*(?:"[^"\n]*"|'[^'\n]*'|\([^()\n]*\))?[ \t]*\r?$""",
    re.VERBOSE | re.MULTILINE,
)
_NO_PARAGRAPH: Final = expression(rb"\s*\Z|\ {0,3}\#{1,6}\s", re.VERBOSE)

_Elements = tuple[list[Link], list[NoteTag], list[NoteHeading], list[BlockId], list[NoteTask]]


class Names(NamedTuple):
    """The names in a note, in order and without positions, for an index."""

    targets: tuple[str, ...]
    """The targets of the links to other files."""
    tags: tuple[str, ...]
    aliases: tuple[str, ...]
    properties: Mapping[str, Any]
    lossy: bool


def scan(data: bytes, path: str = "the note") -> ScannedNote:
    """Scan a note. Raises `VaultError` NOT_TEXT, which names `path`, if it is not UTF-8."""
    return _scan(data, decode(data, path), properties=True)


def scan_lossy(data: bytes) -> ScannedNote:
    """Scan a note as Obsidian reads it: invalid UTF-8 becomes U+FFFD, and `lossy` is True then."""
    try:
        return _scan(data, data.decode(), properties=True)
    except UnicodeDecodeError:
        text = data.decode(errors="replace")
        return _scan(text.encode(), text, properties=True, lossy=True)


def scan_by_blocks(data: bytes) -> ScannedNote:
    """Scan a note line by line, even if `scan` would not need to. The result is the same."""
    return _scan(data, decode(data, "the note"), properties=True, flat=False)


def scan_text(text: str) -> ScannedNote:
    """Scan a text without properties, such as a card of a canvas. Offsets count its UTF-8 bytes."""
    return _scan(text.encode(errors="replace"), text, properties=False)


def links_in(data: bytes) -> tuple[Link, ...]:
    """Return the links of `scan_lossy`, in half the time."""
    try:
        text = data.decode()
        front = find_frontmatter(text) if data.startswith((b"---", _BOM)) else None
        if front is None:
            start = len(_BOM) if data.startswith(_BOM) else 0
        elif text.find("[[", front.content_start, front.content_end) >= 0:
            return scan_lossy(data).links
        elif len(data) == len(text):
            start = front.body_start
        else:
            start = len(text[: front.body_start].encode())
        inline = InlineScanner(data, tables=flat_tables(data, start))
        inline.scan(start, len(data))
    except (UnicodeDecodeError, NeedsBlocks):
        return scan_lossy(data).links
    return tuple(inline.links)


def links_where(data: bytes, matches: Callable[[str], bool]) -> tuple[Link, ...]:
    """Return the links of `links_in` whose target `matches`, faster if there are few."""
    links: list[Link] | None = None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = BOM
    front = find_frontmatter(text) if text.startswith("---") else None
    if not text.startswith(BOM):
        links = quick_links_where(data, text, front.body_start if front else 0, matches)
    if links is None:
        return tuple(link for link in links_in(data) if matches(link.target))
    if front is not None and text.find("[[", 0, front.content_end) >= 0:
        span, values, broken = _frontmatter(data, text)
        assert span is not None
        in_properties = property_links(
            data, span.content_start, span.content_end, values, broken=broken
        )
        links = [*(link for link in in_properties if matches(link.target)), *links]
    return tuple(links)


def links_to(data: bytes, targets: Collection[str]) -> tuple[Link, ...]:
    """Return the links of `links_in` with some targets, each of which is known to be in the note.

    It is much faster if each of these targets is written once, in a wikilink below the properties.
    """
    written = {target: data.find(b"[[" + target) for target in map(str.encode, targets)}
    body = data.find(b"\n---", 1) if data.startswith(b"---") else 0
    is_clear = body >= 0 and min(written.values(), default=0) >= body
    is_clear = is_clear and b"]:" not in data and b"\\![[" not in data
    plain = data
    if is_clear and b"](" in data:
        # In a Markdown link, a target may be percent-encoded or have backslashes.
        is_clear = b"\\" not in data and not any(b"%" in target for target in written)
        plain = unquote_to_bytes(data)
    if is_clear and all(data.count(target) == plain.count(target) == 1 for target in written):
        inline = InlineScanner(data)
        for at in sorted(written.values()):
            inline.scan(at - data.startswith(b"![[", at - 1), data.find(b"]]", at) + 2)
        if {link.target for link in inline.links} == set(targets):
            return tuple(inline.links)
    return links_where(data, targets.__contains__)


def names_in(data: bytes) -> Names:
    """Return the names in `scan_lossy` of a note, in a quarter of the time."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return names_of(scan_lossy(data))
    if text.startswith(BOM):
        return names_of(scan_lossy(data))
    front = find_frontmatter(text) if text.startswith("---") else None
    names = targets_and_tags(text, front.body_start if front else 0)
    if names is None:
        return names_of(scan_lossy(data))
    targets, tags = names
    if front is None:
        return Names(tuple(targets), tuple(tags), (), {}, False)
    block = text[front.content_start : front.content_end]
    try:
        values, broken = read_block(block), False
    except VaultError:
        values, broken = {}, True
    if "[[" in block:
        raw = block.encode()
        links = [link.target for link in property_links(raw, 0, len(raw), values, broken=broken)]
        targets = [*filter(None, links), *targets]
    if values:
        tags = property_tag_names(block, values) + tags
    return Names(tuple(targets), tuple(tags), aliases(values) if values else (), values, False)


def names_of(note: ScannedNote) -> Names:
    """Return the names in a scanned note."""
    return Names(
        targets=tuple([link.target for link in note.links if link.target]),
        tags=tuple([tag.name for tag in note.tags]),
        aliases=note.aliases,
        properties=note.properties,
        lossy=note.lossy,
    )


def _scan(
    data: bytes, text: str, *, properties: bool, lossy: bool = False, flat: bool = True
) -> ScannedNote:
    front, values, broken = _frontmatter(data, text) if properties else (None, {}, False)
    start = 0
    if front is not None:
        start = front.body_start
    elif data.startswith(_BOM):
        start = len(_BOM)
    try:
        elements = _flat_elements(data, start) if flat else _elements(data, text, properties)
    except NeedsBlocks:
        elements = _elements(data, text, properties)
    links, tags, headings, block_ids, tasks = elements
    if tags and data.find(b"]:", start) >= 0:
        tags = _without_anchors(data, start, tags)
    if front is not None:
        first, last = front.content_start, front.content_end
        if data.find(b"[[", first, last) >= 0:
            links = property_links(data, first, last, values, broken=broken) + links
        if values:
            tags = [*property_tags(data, first, last, values), *tags]
    return ScannedNote(
        frontmatter=front,
        properties=values,
        properties_broken=broken,
        links=tuple(links),
        tags=tuple(tags),
        headings=tuple(headings),
        blocks=tuple(block_ids),
        tasks=tuple(tasks),
        aliases=aliases(values) if values else (),
        lossy=lossy,
    )


def _without_anchors(data: bytes, start: int, tags: list[NoteTag]) -> list[NoteTag]:
    """Return the tags without those that are the destination of a definition (`[label]: #top`).

    A definition cannot continue a paragraph.
    """
    begins: dict[int, bool] = {start: True}
    anchors: set[int] = set()
    for match in _ANCHOR.finditer(data, start):
        lines = [match.start()]
        while lines[-1] not in begins:
            above = max(start, data.rfind(b"\n", start, lines[-1] - 1) + 1)
            line = data[above : lines[-1]]
            if _DEFINITION.match(line):
                lines.append(above)
            else:
                begins[lines[-1]] = _NO_PARAGRAPH.match(line) is not None
        begins |= dict.fromkeys(lines, begins[lines[-1]])
        if begins[match.start()]:
            anchors.add(match.start(1))
    return [tag for tag in tags if tag.start not in anchors]


def _flat_elements(data: bytes, start: int) -> _Elements:
    """Return the elements of a note below its properties. Raises NeedsBlocks if it is not flat."""
    inline = InlineScanner(data, tables=flat_tables(data, start))
    inline.scan(start, len(data))
    return (
        inline.links,
        inline.tags,
        list(blocks.headings(data, start, inline.headings)),
        list(blocks.block_ids(data, start, inline.block_ids)),
        list(blocks.tasks(data, inline.boxes)),
    )


def _elements(data: bytes, text: str, properties: bool) -> _Elements:
    """Return the elements of any note below its properties, by its block structure."""
    lines = scan_lines(text, properties=properties)
    starts = line_starts(data, lines, ascii_only=len(data) == len(text))
    visible, borders = regions(data, lines, starts)
    inline = InlineScanner(data, borders)
    for region in visible:
        if region.comment:
            inline.scan_tags(region.start, region.end)
        else:
            inline.scan(region.start, region.end)
    headings = [
        NoteHeading(title, level, first.number, *_heading_span(data, first, last, starts))
        for title, level, first, last in headings_of(lines)
    ]
    block_ids = list(blocks.block_ids(data, starts[0], inline.block_ids))
    return inline.links, inline.tags, headings, block_ids, tasks_of(lines)


def _heading_span(data: bytes, first: Line, last: Line, starts: list[int]) -> tuple[int, int]:
    start, end = starts[first.number - 1], starts[last.number]
    return start, start + len(data[start:end].rstrip(b"\r\n"))


def _frontmatter(data: bytes, text: str) -> tuple[FrontmatterSpan | None, dict[str, Any], bool]:
    """Return the positions of the properties, their values, and whether they are invalid YAML."""
    if not data.startswith((b"---", _BOM)):
        return None, {}, False
    front = find_frontmatter(text)
    if front is None:
        return None, {}, False
    block = text[front.content_start : front.content_end]
    if len(data) == len(text):
        span = FrontmatterSpan(
            front.start, front.content_start, front.content_end, front.body_start
        )
    else:
        start = len(_BOM) if front.start else 0
        content = start + front.content_start - front.start
        content_end = content + len(block.encode())
        body = content_end + front.body_start - front.content_end
        span = FrontmatterSpan(start, content, content_end, body)
    try:
        return span, read_block(block), False
    except VaultError:
        return span, {}, True
