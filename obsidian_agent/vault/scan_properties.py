"""Links, tags and aliases in the properties of a note, with their places.

A property links when it is a quoted string that is exactly one wikilink; a bare one is a YAML list. The property `tags` holds tags, a list
or one of them; several in one string are none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from obsidian_agent.vault.scan_model import Link, NoteTag
from obsidian_agent.vault.yaml_nodes import parse

_QUOTED: Final = re.compile(rb"""(["'])[ \t]*+(\[\[([^\[\]\n]++)\]\])[ \t]*+\1""")
_WIKILINK: Final = re.compile(r"[ \t]*\[\[([^\[\]\n]+)\]\][ \t]*")
_BEFORE: Final = frozenset(b":-,[{\n")
_BEHIND: Final = frozenset(b"\n\r,]#}")
_DOUBLE_ESCAPE: Final = re.compile(r'\\(["\\/])')
_SEPARATED: Final = re.compile(r"[\s,]")
_TAGS_KEY: Final = re.compile(rb"^[ \t{]*[\"']?(tags)[\"']?[ \t]*:", re.IGNORECASE | re.MULTILINE)
_NEXT_KEY: Final = re.compile(rb"^[^\s\-#\]}]", re.MULTILINE)


def property_links(data: bytes, start: int, end: int, values: Mapping[str, Any], *, broken: bool) -> list[Link]:
    """The links in the block between two offsets, in order. Of a `broken` block, which has no `values`, whatever looks like one."""
    found = [match for match in _QUOTED.finditer(data, start, end) if _is_value(data, start, match.start(), match.end(), end)]
    if broken:
        return [_link(data, match, None) for match in found]
    links = _matched(data, found, list(_strings(values, "")))
    if len(links) < len(found):
        # The dictionary lacks what a property that is there twice said first.
        block = parse(data[start:end].decode())
        entries = block.entries if block else ()
        links = _matched(data, found, [string for entry in entries for string in _strings(entry.node.value, entry.key or "?")])
    return links


def _matched(data: bytes, found: Sequence[re.Match[bytes]], strings: list[tuple[str, str]]) -> list[Link]:
    """The links among what looks like one that are the value of some property; both in the order of the block."""
    links: list[Link] = []
    position = 0
    for match in found:
        text = _unquoted(match)
        index = next((index for index in range(position, len(strings)) if strings[index][1] == text), None)
        if index is not None:
            links.append(_link(data, match, strings[index][0]))
            position = index + 1
    return links


def _is_value(data: bytes, first: int, start: int, end: int, last: int) -> bool:
    before = data[first:start].rstrip(b" \t")[-1:] or b"\n"
    behind = data[end : end + 200].lstrip(b" \t")[:1] if end < last else b"\n"
    return before[0] in _BEFORE and (not behind or behind[0] in _BEHIND)


def _link(data: bytes, found: re.Match[bytes], key: str | None) -> Link:
    text = _unquoted(found)
    pipe = text.find("|")
    path, display = (text[:pipe], text[pipe + 1 :]) if pipe > 0 else (text, None)
    path, mark, subpath = path.partition("#")
    raw = found[3]
    stop = min((place for place in (raw.find(b"#"), raw.find(b"|", 1)) if place >= 0), default=len(raw))
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
        data.count(b"\n", 0, found.start()) + 1,
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
    return tuple(str(alias).strip() for alias in listed if alias is not None and not isinstance(alias, (dict, list)) and str(alias).strip())


def property_tags(data: bytes, start: int, end: int, values: Mapping[str, Any]) -> Iterator[NoteTag]:
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
        if len(key) == 4 and key.lower() == "tags" and (names := [text for text in map(_tag_text, _listed(values[key])) if text]):
            yield names


def _listed(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    if value is None or (isinstance(value, str) and _SEPARATED.search(value.strip())):
        return []
    return [value]


def _tag_text(value: Any) -> str:
    return "" if value is None or isinstance(value, (dict, list)) else str(value).strip().lstrip("#")


def _tags_key(data: bytes, start: int, end: int) -> re.Match[bytes] | None:
    """The key of the property that holds tags."""
    key = data.find(b"tags", start, end)
    found = _TAGS_KEY.match(data, data.rfind(b"\n", 0, key) + 1, end) if key >= 0 else None
    return found if found is not None and found.start(1) == key else _TAGS_KEY.search(data, start, end)


def _placed(data: bytes, start: int, end: int, names: list[str]) -> Iterator[NoteTag]:
    found = _tags_key(data, start, end)
    if found is None:
        return
    line = data.count(b"\n", 0, found.start(1)) + 1
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
        yield NoteTag(name, at, position, line + data.count(b"\n", found.start(1), at), in_properties=True)
