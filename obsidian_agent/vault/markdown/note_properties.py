"""Links, tags and aliases in the properties of a note.

A property is a link if it is a quoted string that is exactly one wikilink; an unquoted one is a
YAML list. The property `tags` holds a list of tags, or one tag; several in one string are none.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from obsidian_agent.expression import expression
from obsidian_agent.vault.frontmatter.properties import parse_block
from obsidian_agent.vault.markdown.blocks import LineFinder
from obsidian_agent.vault.markdown.model import Link, NoteTag

_QUOTED: Final = expression(rb"""(["'])[ \t]*+(\[\[([^\[\]\n]++)\]\])[ \t]*+\1""")
_WIKILINK: Final = expression(r"[ \t]*\[\[([^\[\]\n]+)\]\][ \t]*")
_BEFORE_VALUE: Final = frozenset(b":-,[{\n")
_AFTER_VALUE: Final = frozenset(b"\n\r,]#}")
_DOUBLE_ESCAPE: Final = expression(r'\\(["\\/])')
_SEPARATED: Final = expression(r"[\s,]")
_TAGS_KEY: Final = expression(rb"^[ \t{]*[\"']?(tags)[\"']?[ \t]*:", re.IGNORECASE | re.MULTILINE)
_NEXT_KEY: Final = expression(rb"^[^\s\-#\]}]", re.MULTILINE)


def property_links(
    data: bytes, start: int, end: int, values: Mapping[str, Any], *, broken: bool
) -> list[Link]:
    """Return the links in the YAML block between two offsets, in order.

    A `broken` block has no `values`; everything in it that looks like a link is returned.
    """
    candidates = [
        match for match in _QUOTED.finditer(data, start, end) if _is_value(data, match, start, end)
    ]
    if broken:
        lines = LineFinder(data)
        return [_link(data, match, None, lines) for match in candidates]
    links = _links_of_values(data, candidates, list(_wikilinks(values, "")))
    if len(links) < len(candidates):
        # Of a property that occurs twice, `values` has only the last value: read every entry.
        block = parse_block(data[start:end].decode())
        entries = block.entries if block else ()
        strings = [
            wikilink
            for entry in entries
            for wikilink in _wikilinks(entry.node.value, entry.key or "?")
        ]
        links = _links_of_values(data, candidates, strings)
    return links


def _links_of_values(
    data: bytes, candidates: Sequence[re.Match[bytes]], wikilinks: list[tuple[str, str]]
) -> list[Link]:
    """Return the candidates that are among the wikilinks of the parsed values.

    A quoted string in a comment looks like a value and is none. Candidates and wikilinks are both
    in the order of the block.
    """
    links: list[Link] = []
    lines = LineFinder(data)
    indices: dict[str, list[int]] = {}
    for index, (_, text) in enumerate(wikilinks):
        indices.setdefault(text, []).append(index)
    next_index = 0
    for match in candidates:
        equal = indices.get(_unquoted(match), [])
        if (following := bisect_left(equal, next_index)) < len(equal):
            links.append(_link(data, match, wikilinks[equal[following]][0], lines))
            next_index = equal[following] + 1
    return links


def _is_value(data: bytes, quoted: re.Match[bytes], block_start: int, block_end: int) -> bool:
    """Return True if a quoted string is a whole value, by the characters before and after it."""
    start, end = quoted.span()
    before = data[max(block_start, start - 200) : start].rstrip(b" \t")[-1:] or b"\n"
    after = data[end : end + 200].lstrip(b" \t")[:1] if end < block_end else b"\n"
    return before[0] in _BEFORE_VALUE and (not after or after[0] in _AFTER_VALUE)


def _link(data: bytes, match: re.Match[bytes], key: str | None, lines: LineFinder) -> Link:
    text = _unquoted(match)
    raw = match[3]
    pipe = text.find("|")
    path, display = (text[:pipe], text[pipe + 1 :]) if pipe > 0 else (text, None)
    path, mark, subpath = path.partition("#")
    stops = [position for position in (raw.find(b"#"), raw.find(b"|", 1)) if position >= 0]
    piece = raw[: min(stops, default=len(raw))]
    if pipe > 0:
        piece = piece.removesuffix(b"\\")
    target_start = match.start(3) + len(piece) - len(piece.lstrip())
    return Link(
        kind="property",
        target=path.removesuffix("\\").strip(),
        subpath=(mark + subpath).rstrip(),
        display=display,
        start=match.start(),
        end=match.end(),
        target_start=target_start,
        target_end=max(target_start, match.start(3) + len(piece.rstrip())),
        line=lines.number(match.start()),
        form="double-quoted" if match[1] == b'"' else "single-quoted",
        key=key,
    )


def _unquoted(match: re.Match[bytes]) -> str:
    """Return the text between the brackets, without the escapes of the quoted string."""
    text = match[3].decode()
    if match[1] == b'"':
        return _DOUBLE_ESCAPE.sub(r"\1", text) if "\\" in text else text
    return text.replace("''", "'")


def _wikilinks(value: Any, key: str) -> Iterator[tuple[str, str]]:
    """Yield the strings in a value that are one wikilink: location, and text in the brackets."""
    match value:
        case str():
            if "[[" in value and (wikilink := _WIKILINK.fullmatch(value)):
                yield key, wikilink[1]
        case Mapping():
            for name, member in value.items():
                yield from _wikilinks(member, f"{key}.{name}" if key else str(name))
        case list():
            for index, member in enumerate(value):
                yield from _wikilinks(member, f"{key}.{index}")


def aliases(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the aliases of a note."""
    value = values.get("aliases")
    listed = value if isinstance(value, list) else [value]
    return tuple(
        str(alias).strip()
        for alias in listed
        if alias is not None and not isinstance(alias, (dict, list)) and str(alias).strip()
    )


def property_tags(
    data: bytes, start: int, end: int, values: Mapping[str, Any]
) -> Iterator[NoteTag]:
    """Yield the tags in the YAML block between two offsets."""
    for names in _tag_lists(values):
        yield from _locate_tags(data, start, end, names)


def property_tag_names(block: str, values: Mapping[str, Any]) -> list[str]:
    """Return the names of the tags that `property_tags` would yield for a block."""
    names = [name for names in _tag_lists(values) for name in names]
    if not names or block.startswith("tags:") or "\ntags:" in block:
        return names
    raw = block.encode()
    return names if _tags_key(raw, 0, len(raw)) else []


def _tag_lists(values: Mapping[str, Any]) -> Iterator[list[str]]:
    for key in values:
        # The length is checked first, because this runs for every property of a vault.
        if len(key) != 4 or key.lower() != "tags":
            continue
        names = [text for text in map(_tag_text, _listed(values[key])) if text]
        if names:
            yield names


def _listed(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    if value is None or (isinstance(value, str) and _SEPARATED.search(value.strip())):
        return []
    return [value]


def _tag_text(value: Any) -> str:
    if value is None or isinstance(value, (dict, list)):
        return ""
    return str(value).strip().lstrip("#")


def _tags_key(data: bytes, start: int, end: int) -> re.Match[bytes] | None:
    """Return the match of the key `tags`, if the block has one."""
    key = data.find(b"tags", start, end)
    if key >= 0:
        match = _TAGS_KEY.match(data, data.rfind(b"\n", 0, key) + 1, end)
        if match is not None and match.start(1) == key:
            return match
    return _TAGS_KEY.search(data, start, end)


def _locate_tags(data: bytes, start: int, end: int, names: list[str]) -> Iterator[NoteTag]:
    """Yield tags with their positions, or with that of the key where the text is not found."""
    key = _tags_key(data, start, end)
    if key is None:
        return
    lines = LineFinder(data)
    line = lines.number(key.start(1))
    position = key.end()
    following = _NEXT_KEY.search(data, position + 1, end)
    stop = following.start() if following else end
    for name in names:
        raw = name.encode()
        at = data.find(raw, position, stop)
        if at < 0:
            yield NoteTag(name, key.start(1), key.end(1), line, in_properties=True)
            continue
        position = at + len(raw)
        yield NoteTag(name, at, position, lines.number(at), in_properties=True)
