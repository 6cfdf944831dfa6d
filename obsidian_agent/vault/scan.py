"""A note in one pass over its bytes: properties, links, tags, headings, block ids and tasks, and where they are.

It reads a note as Obsidian does and parses no more of Markdown than that takes: regular expressions that begin with a plain character find
what can matter, and only a note in which the end of a block decides what is hidden goes through the block structure line by line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from obsidian_agent.errors import VaultError
from obsidian_agent.vault import frontmatter, scan_outline, scan_quick
from obsidian_agent.vault.markdown_headings import headings_of
from obsidian_agent.vault.markdown_lines import Line
from obsidian_agent.vault.markdown_lines import scan as scan_lines
from obsidian_agent.vault.markdown_lists import tasks_of
from obsidian_agent.vault.scan_blocks import NeedsBlocks, flat_tables, line_starts, regions
from obsidian_agent.vault.scan_inline import InlineScanner
from obsidian_agent.vault.scan_model import BlockId, FrontmatterSpan, Link, NoteHeading, NoteTag, NoteTask, ScannedNote
from obsidian_agent.vault.scan_properties import aliases, property_links, property_tag_names, property_tags
from obsidian_agent.vault.text import decode

__all__ = [
    "BlockId",
    "FrontmatterSpan",
    "Link",
    "Names",
    "NoteHeading",
    "NoteTag",
    "NoteTask",
    "ScannedNote",
    "links_in",
    "links_where",
    "names_in",
    "names_of",
    "scan",
    "scan_by_blocks",
    "scan_lossy",
    "scan_text",
]

_BOM = b"\xef\xbb\xbf"


def scan(data: bytes, path: str = "the note") -> ScannedNote:
    """What is in a note. Raises `VaultError` NOT_TEXT, naming `path`, when the bytes are not UTF-8."""
    return _scan(data, decode(data, path), properties=True)


def scan_lossy(data: bytes) -> ScannedNote:
    """What is in a note, as Obsidian reads it: bytes that are not UTF-8 become U+FFFD, and then `lossy` is true."""
    try:
        return _scan(data, data.decode(), properties=True)
    except UnicodeDecodeError:
        text = data.decode(errors="replace")
        return _scan(text.encode(), text, properties=True, lossy=True)


def links_in(data: bytes) -> tuple[Link, ...]:
    """The links of a note as `scan_lossy` finds them, in half the time."""
    try:
        text = data.decode()
        front = frontmatter.span(text) if data.startswith((b"---", _BOM)) else None
        if front is None:
            start = 3 if data.startswith(_BOM) else 0
        elif text.find("[[", front.content_start, front.content_end) >= 0:
            return scan_lossy(data).links
        else:
            start = front.body_start if len(data) == len(text) else len(text[: front.body_start].encode())
        inline = InlineScanner(data, tables=flat_tables(data, start))
        inline.scan(start, len(data))
    except (UnicodeDecodeError, NeedsBlocks):
        return scan_lossy(data).links
    return tuple(inline.links)


def links_where(data: bytes, wanted: Callable[[str], bool]) -> tuple[Link, ...]:
    """Those of `links_in` whose targets are wanted, faster where few are."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\ufeff"
    front = frontmatter.span(text) if text.startswith("---") else None
    if not text.startswith("\ufeff") and (front is None or text.find("[[", 0, front.content_end) < 0):
        found = scan_quick.links_where(data, text, front.body_start if front else 0, wanted)
        if found is not None:
            return tuple(found)
    return tuple(link for link in links_in(data) if wanted(link.target))


class Names(NamedTuple):
    """What an index keeps of a note: of links the targets that are not empty, of tags the names, in order, and no places."""

    targets: tuple[str, ...]
    tags: tuple[str, ...]
    aliases: tuple[str, ...]
    properties: Mapping[str, Any]
    lossy: bool


def names_in(data: bytes) -> Names:
    """What `scan_lossy` says of a note, without places, in a quarter of the time."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return names_of(scan_lossy(data))
    front = frontmatter.span(text) if text.startswith("---") else None
    found = scan_quick.targets_and_tags(text, front.body_start if front else 0) if not text.startswith("\ufeff") else None
    if found is None:
        return names_of(scan_lossy(data))
    targets, tags = found
    if front is None:
        return Names(tuple(targets), tuple(tags), (), {}, False)
    block = text[front.content_start : front.content_end]
    try:
        values, broken = frontmatter.read_block(block), False
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
    """The names in a scanned note."""
    links = tuple([link.target for link in note.links if link.target])
    return Names(links, tuple([tag.name for tag in note.tags]), note.aliases, note.properties, note.lossy)


def scan_by_blocks(data: bytes) -> ScannedNote:
    """What `scan` says, found by way of the note's blocks even where it would not need them: slower, and never different."""
    return _scan(data, decode(data, "the note"), properties=True, flat=False)


def scan_text(text: str) -> ScannedNote:
    """What is in a text that has no properties, as in a card of a canvas; offsets count its UTF-8 bytes."""
    return _scan(text.encode(errors="replace"), text, properties=False)


def _scan(data: bytes, text: str, *, properties: bool, lossy: bool = False, flat: bool = True) -> ScannedNote:
    front, values, broken = _frontmatter(data, text) if properties else (None, {}, False)
    start = front.body_start if front else 3 if data.startswith(_BOM) else 0
    try:
        links, tags, headings, blocks, tasks = _flat(data, start) if flat else _deep(data, text, properties)
    except NeedsBlocks:
        links, tags, headings, blocks, tasks = _deep(data, text, properties)
    if front is not None:
        first, last = front.content_start, front.content_end
        if data.find(b"[[", first, last) >= 0:
            links = property_links(data, first, last, values, broken=broken) + links
        if values:
            tags = [*property_tags(data, first, last, values), *tags]
    return ScannedNote(
        front,
        values,
        broken,
        tuple(links),
        tuple(tags),
        tuple(headings),
        tuple(blocks),
        tuple(tasks),
        aliases(values) if values else (),
        lossy,
    )


_Found = tuple[list[Link], list[NoteTag], list[NoteHeading], list[BlockId], list[NoteTask]]


def _flat(data: bytes, start: int) -> _Found:
    inline = InlineScanner(data, tables=flat_tables(data, start))
    inline.scan(start, len(data))
    return (
        inline.links,
        inline.tags,
        list(scan_outline.headings(data, start, inline.headings)),
        list(scan_outline.block_ids(data, start, inline.block_ids)),
        list(scan_outline.tasks(data, inline.boxes)),
    )


def _deep(data: bytes, text: str, properties: bool) -> _Found:
    lines = scan_lines(text, properties=properties)
    starts = line_starts(data, lines, ascii_only=len(data) == len(text))
    found, borders = regions(data, lines, starts)
    inline = InlineScanner(data, borders)
    for region in found:
        if region.comment:
            inline.scan_tags(region.start, region.end)
        else:
            inline.scan(region.start, region.end)
    return (
        inline.links,
        inline.tags,
        [_heading(data, title, level, first, last, starts) for title, level, first, last in headings_of(lines)],
        list(scan_outline.block_ids(data, starts[0], inline.block_ids)),
        [NoteTask(task.status, task.text, task.line) for task in tasks_of(lines)],
    )


def _heading(data: bytes, title: str, level: int, first: Line, last: Line, starts: list[int]) -> NoteHeading:
    start, end = starts[first.number - 1], starts[last.number]
    return NoteHeading(title, level, first.number, start, start + len(data[start:end].rstrip(b"\r\n")))


def _frontmatter(data: bytes, text: str) -> tuple[FrontmatterSpan | None, dict[str, Any], bool]:
    """Where the properties are, what they say, and whether they are no YAML."""
    if not data.startswith((b"---", _BOM)):
        return None, {}, False
    found = frontmatter.span(text)
    if found is None:
        return None, {}, False
    block = text[found.content_start : found.content_end]
    if len(data) == len(text):
        front = FrontmatterSpan(found.start, found.content_start, found.content_end, found.body_start)
    else:
        start = 3 if found.start else 0
        content = start + found.content_start - found.start
        content_end = content + len(block.encode())
        front = FrontmatterSpan(start, content, content_end, content_end + found.body_start - found.content_end)
    try:
        return front, frontmatter.read_block(block), False
    except VaultError:
        return front, {}, True
