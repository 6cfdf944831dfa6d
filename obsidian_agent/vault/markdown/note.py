"""A note in one pass over its bytes: properties, links, tags, headings, block ids and tasks, and where they are.

It reads a note as Obsidian does and parses no more of Markdown than that takes: regular expressions that begin with a plain character find
what can matter, and only a note in which the end of a block decides what is hidden goes through the block structure line by line.

A property links when it is a quoted string that is exactly one wikilink; a bare one is a YAML list. The property `tags` holds tags, a list
or one of them; several in one string are none.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from obsidian_agent.errors import VaultError
from obsidian_agent.expression import expression
from obsidian_agent.vault.frontmatter.properties import find_frontmatter, parse_block, read_block
from obsidian_agent.vault.markdown import blocks
from obsidian_agent.vault.markdown.blocks import (
    LineFinder,
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
from obsidian_agent.vault.markdown.targets import links_where as quick_links_where
from obsidian_agent.vault.markdown.targets import targets_and_tags
from obsidian_agent.vault.text import decode

_QUOTED: Final = expression(rb"""(["'])[ \t]*+(\[\[([^\[\]\n]++)\]\])[ \t]*+\1""")
_WIKILINK: Final = expression(r"[ \t]*\[\[([^\[\]\n]+)\]\][ \t]*")
_BEFORE: Final = frozenset(b":-,[{\n")
_BEHIND: Final = frozenset(b"\n\r,]#}")
_DOUBLE_ESCAPE: Final = expression(r'\\(["\\/])')
_SEPARATED: Final = expression(r"[\s,]")
_TAGS_KEY: Final = expression(rb"^[ \t{]*[\"']?(tags)[\"']?[ \t]*:", re.IGNORECASE | re.MULTILINE)
_NEXT_KEY: Final = expression(rb"^[^\s\-#\]}]", re.MULTILINE)


def property_links(
    data: bytes, start: int, end: int, values: Mapping[str, Any], *, broken: bool
) -> list[Link]:
    """The links in the block between two offsets, in order. Of a `broken` block, which has no `values`, whatever looks like one."""
    found = [
        match
        for match in _QUOTED.finditer(data, start, end)
        if _is_value(data, start, match.start(), match.end(), end)
    ]
    if broken:
        lines = LineFinder(data)
        return [_link(data, match, None, lines) for match in found]
    links = _matched(data, found, list(_strings(values, "")))
    if len(links) < len(found):
        # The dictionary lacks what a property that is there twice said first.
        block = parse_block(data[start:end].decode())
        entries = block.entries if block else ()
        links = _matched(
            data,
            found,
            [
                string
                for entry in entries
                for string in _strings(entry.node.value, entry.key or "?")
            ],
        )
    return links


def _matched(
    data: bytes, found: Sequence[re.Match[bytes]], strings: list[tuple[str, str]]
) -> list[Link]:
    """The links among what looks like one that are the value of some property; both in the order of the block."""
    links: list[Link] = []
    lines = LineFinder(data)
    places: dict[str, list[int]] = {}
    for place, (_, text) in enumerate(strings):
        places.setdefault(text, []).append(place)
    position = 0
    for match in found:
        same = places.get(_unquoted(match), [])
        if (following := bisect_left(same, position)) < len(same):
            links.append(_link(data, match, strings[same[following]][0], lines))
            position = same[following] + 1
    return links


def _is_value(data: bytes, first: int, start: int, end: int, last: int) -> bool:
    before = data[max(first, start - 200) : start].rstrip(b" \t")[-1:] or b"\n"
    behind = data[end : end + 200].lstrip(b" \t")[:1] if end < last else b"\n"
    return before[0] in _BEFORE and (not behind or behind[0] in _BEHIND)


def _link(data: bytes, found: re.Match[bytes], key: str | None, lines: LineFinder) -> Link:
    text = _unquoted(found)
    pipe = text.find("|")
    path, display = (text[:pipe], text[pipe + 1 :]) if pipe > 0 else (text, None)
    path, mark, subpath = path.partition("#")
    raw = found[3]
    stop = min(
        (place for place in (raw.find(b"#"), raw.find(b"|", 1)) if place >= 0), default=len(raw)
    )
    piece = raw[:stop].removesuffix(b"\\") if pipe > 0 else raw[:stop]
    first = found.start(3) + len(piece) - len(piece.lstrip())
    return Link(
        "property",
        path.removesuffix("\\").strip(),
        (mark + subpath).rstrip(),
        display,
        found.start(),
        found.end(),
        first,
        max(first, found.start(3) + len(piece.rstrip())),
        lines.number(found.start()),
        "double-quoted" if found[1] == b'"' else "single-quoted",
        key,
    )


def _unquoted(found: re.Match[bytes]) -> str:
    """What is between the brackets, the escapes of the quoted string undone."""
    text = found[3].decode()
    if found[1] == b'"':
        return _DOUBLE_ESCAPE.sub(r"\1", text) if "\\" in text else text
    return text.replace("''", "'")


def _strings(value: Any, key: str) -> Iterator[tuple[str, str]]:
    """Every string below a value that is one wikilink: the way to it and what is between the brackets."""
    match value:
        case str():
            if "[[" in value and (found := _WIKILINK.fullmatch(value)):
                yield key, found[1]
        case Mapping():
            for name, member in value.items():
                yield from _strings(member, f"{key}.{name}" if key else str(name))
        case list():
            for index, member in enumerate(value):
                yield from _strings(member, f"{key}.{index}")


def aliases(values: Mapping[str, Any]) -> tuple[str, ...]:
    """The other names of the note."""
    found = values.get("aliases")
    listed = found if isinstance(found, list) else [found]
    return tuple(
        str(alias).strip()
        for alias in listed
        if alias is not None and not isinstance(alias, (dict, list)) and str(alias).strip()
    )


def property_tags(
    data: bytes, start: int, end: int, values: Mapping[str, Any]
) -> Iterator[NoteTag]:
    """The tags of the block between two offsets."""
    for names in _tag_lists(values):
        yield from _placed(data, start, end, names)


def property_tag_names(block: str, values: Mapping[str, Any]) -> list[str]:
    """The names of the tags that `property_tags` finds in a block, without their places."""
    names = [name for names in _tag_lists(values) for name in names]
    if not names or block.startswith("tags:") or "\ntags:" in block:
        return names
    raw = block.encode()
    return names if _tags_key(raw, 0, len(raw)) else []


def _tag_lists(values: Mapping[str, Any]) -> Iterator[list[str]]:
    for key in values:
        if (
            len(key) == 4
            and key.lower() == "tags"
            and (names := [text for text in map(_tag_text, _listed(values[key])) if text])
        ):
            yield names


def _listed(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    if value is None or (isinstance(value, str) and _SEPARATED.search(value.strip())):
        return []
    return [value]


def _tag_text(value: Any) -> str:
    return (
        "" if value is None or isinstance(value, (dict, list)) else str(value).strip().lstrip("#")
    )


def _tags_key(data: bytes, start: int, end: int) -> re.Match[bytes] | None:
    """The key of the property that holds tags."""
    key = data.find(b"tags", start, end)
    found = _TAGS_KEY.match(data, data.rfind(b"\n", 0, key) + 1, end) if key >= 0 else None
    return (
        found if found is not None and found.start(1) == key else _TAGS_KEY.search(data, start, end)
    )


def _placed(data: bytes, start: int, end: int, names: list[str]) -> Iterator[NoteTag]:
    found = _tags_key(data, start, end)
    if found is None:
        return
    lines = LineFinder(data)
    line = lines.number(found.start(1))
    position = found.end()
    following = _NEXT_KEY.search(data, position + 1, end)
    stop = following.start() if following else end
    for name in names:
        raw = name.encode()
        at = data.find(raw, position, stop)
        if at < 0:
            yield NoteTag(name, found.start(1), found.end(1), line, in_properties=True)
            continue
        position = at + len(raw)
        yield NoteTag(name, at, position, lines.number(at), in_properties=True)


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
        front = find_frontmatter(text) if data.startswith((b"---", _BOM)) else None
        if front is None:
            start = 3 if data.startswith(_BOM) else 0
        elif text.find("[[", front.content_start, front.content_end) >= 0:
            return scan_lossy(data).links
        else:
            start = (
                front.body_start
                if len(data) == len(text)
                else len(text[: front.body_start].encode())
            )
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
    front = find_frontmatter(text) if text.startswith("---") else None
    found = (
        None
        if text.startswith("\ufeff")
        else quick_links_where(data, text, front.body_start if front else 0, wanted)
    )
    if found is None:
        return tuple(link for link in links_in(data) if wanted(link.target))
    if front is not None and text.find("[[", 0, front.content_end) >= 0:
        span, values, broken = _frontmatter(data, text)
        assert span is not None
        links = property_links(data, span.content_start, span.content_end, values, broken=broken)
        found = [*(link for link in links if wanted(link.target)), *found]
    return tuple(found)


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
    front = find_frontmatter(text) if text.startswith("---") else None
    found = (
        targets_and_tags(text, front.body_start if front else 0)
        if not text.startswith("\ufeff")
        else None
    )
    if found is None:
        return names_of(scan_lossy(data))
    targets, tags = found
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
    """The names in a scanned note."""
    links = tuple([link.target for link in note.links if link.target])
    return Names(
        links, tuple([tag.name for tag in note.tags]), note.aliases, note.properties, note.lossy
    )


def scan_by_blocks(data: bytes) -> ScannedNote:
    """What `scan` says, found by way of the note's blocks even where it would not need them: slower, and never different."""
    return _scan(data, decode(data, "the note"), properties=True, flat=False)


def scan_text(text: str) -> ScannedNote:
    """What is in a text that has no properties, as in a card of a canvas; offsets count its UTF-8 bytes."""
    return _scan(text.encode(errors="replace"), text, properties=False)


def _scan(
    data: bytes, text: str, *, properties: bool, lossy: bool = False, flat: bool = True
) -> ScannedNote:
    front, values, broken = _frontmatter(data, text) if properties else (None, {}, False)
    start = front.body_start if front else 3 if data.startswith(_BOM) else 0
    try:
        links, tags, headings, blocks, tasks = (
            _flat(data, start) if flat else _deep(data, text, properties)
        )
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
        list(blocks.headings(data, start, inline.headings)),
        list(blocks.block_ids(data, start, inline.block_ids)),
        list(blocks.tasks(data, inline.boxes)),
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
        [
            _heading(data, title, level, first, last, starts)
            for title, level, first, last in headings_of(lines)
        ],
        list(blocks.block_ids(data, starts[0], inline.block_ids)),
        tasks_of(lines),
    )


def _heading(
    data: bytes, title: str, level: int, first: Line, last: Line, starts: list[int]
) -> NoteHeading:
    start, end = starts[first.number - 1], starts[last.number]
    return NoteHeading(
        title, level, first.number, start, start + len(data[start:end].rstrip(b"\r\n"))
    )


def _frontmatter(data: bytes, text: str) -> tuple[FrontmatterSpan | None, dict[str, Any], bool]:
    """Where the properties are, what they say, and whether they are no YAML."""
    if not data.startswith((b"---", _BOM)):
        return None, {}, False
    found = find_frontmatter(text)
    if found is None:
        return None, {}, False
    block = text[found.content_start : found.content_end]
    if len(data) == len(text):
        front = FrontmatterSpan(
            found.start, found.content_start, found.content_end, found.body_start
        )
    else:
        start = 3 if found.start else 0
        content = start + found.content_start - found.start
        content_end = content + len(block.encode())
        front = FrontmatterSpan(
            start, content, content_end, content_end + found.body_start - found.content_end
        )
    try:
        return front, read_block(block), False
    except VaultError:
        return front, {}, True
