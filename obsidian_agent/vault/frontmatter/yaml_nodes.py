"""Parsing of YAML blocks to properties with their positions, from libyaml's events.

Offsets count characters of the block. Nothing is constructed from tags, merge keys are not
expanded, and aliases may not expand the values beyond `_MAX_NODES`. This module is imported on
demand: most blocks are simple (yaml_scalars.py), and importing the library takes as long as
everything else that reading needs.
"""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple, NoReturn

import yaml

from obsidian_agent.vault.frontmatter.yaml_scalars import MAX_BLOCK_LENGTH, invalid, resolve

Style = Literal["plain", "'", '"', "|", ">", "empty", "alias", "flow", "block"]

_MAX_NODES = 50_000
_MAX_DEPTH = 60

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SCALAR: Any = yaml.ScalarEvent
_ALIAS: Any = yaml.AliasEvent
_LIST: Any = yaml.SequenceStartEvent
_LIST_END: Any = yaml.SequenceEndEvent
_MAPPING: Any = yaml.MappingStartEvent
_MAPPING_END: Any = yaml.MappingEndEvent
_STREAM_END: Any = yaml.StreamEndEvent
_TEXT_TAGS = frozenset(("!", "tag:yaml.org,2002:str"))

# YAML 1.1 ends lines at these three characters, YAML 1.2 and Obsidian do not. Placeholders of the
# same length make libyaml agree.
_OLD_LINE_ENDS = re.compile("[\x85\u2028\u2029]")
_PLACEHOLDERS = str.maketrans("\x85\u2028\u2029", "\ufdd0\ufdd1\ufdd2")
_ORIGINALS = str.maketrans("\ufdd0\ufdd1\ufdd2", "\x85\u2028\u2029")
_BLOCK_HEADER = re.compile(r"(?:[&!]\S*[ \t]+)*[|>]([-+0-9]*)")


class YamlNode(NamedTuple):
    """A value and its position. A named tuple, because every edit creates very many of them."""

    start: int
    """The first character, including an anchor or tag; of an empty value the end of the colon."""
    end: int
    """The end of the value, without line ends that belong to no value."""
    value: Any
    """A JSON-safe value; None if empty."""
    style: Style
    items: tuple[YamlNode, ...] | None = None
    """The items of a list, else None."""


class YamlEntry(NamedTuple):
    """A property. `key` is None if the key is not a scalar."""

    key: str | None
    start: int
    key_end: int
    node: YamlNode


class Block(NamedTuple):
    """A parsed block of properties."""

    entries: tuple[YamlEntry, ...]
    column: int
    """Number of blanks before each key."""
    flow: tuple[int, int] | None
    """The span of the braces if the block is a single flow mapping (JSON), else None."""


def parse(block: str) -> Block | None:
    """Parse a block. Returns None if it is YAML but not a mapping.

    Raises `VaultError` FRONTMATTER_INVALID if it is not YAML.
    """
    if len(block) > MAX_BLOCK_LENGTH:
        raise invalid(f"The properties are longer than {MAX_BLOCK_LENGTH} characters.")
    return _Parser(block).block()


class _Parser:
    """A single pass over the events of a block."""

    __slots__ = ("_anchors", "_count", "_next", "_swapped", "_text")

    def __init__(self, text: str) -> None:
        self._swapped = _OLD_LINE_ENDS.search(text) is not None
        if self._swapped and text != text.translate(_ORIGINALS):
            raise invalid(
                "The properties hold characters that Unicode reserves for internal use "
                "(U+FDD0 to U+FDD2)."
            )
        self._text = text.translate(_PLACEHOLDERS) if self._swapped else text
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._count = 0

    def block(self) -> Block | None:
        try:
            loader = _LOADER(self._text)
            try:
                self._next = loader.get_event
                return self._document()
            finally:
                loader.dispose()
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            location = f" in line {mark.line + 2} of the note" if mark else ""
            raise invalid(
                f"The properties are not valid YAML: {error.problem or error.context}{location}."
            ) from error
        except (yaml.YAMLError, UnicodeError) as error:
            raise invalid(
                f"The properties are not valid YAML: {' '.join(str(error).split())}."
            ) from error
        except RecursionError as error:
            raise invalid("The properties are nested too deeply.") from error

    def _document(self) -> Block | None:
        self._next()
        event: Any = self._next()
        if type(event) is _STREAM_END:
            return Block((), 0, None)
        if event.explicit:
            raise invalid("The properties hold a YAML document marker or directive.")
        root: Any = self._next()
        if type(root) is not _MAPPING:
            self._node(root, 0)
            self._end_of_document()
            return None
        entries: list[YamlEntry] = []
        event = self._next()
        while type(event) is not _MAPPING_END:
            entries.append(self._entry(event))
            event = self._next()
        self._end_of_document()
        flow = (root.start_mark.index, event.end_mark.index) if root.flow_style else None
        return Block(tuple(entries), root.start_mark.column, flow)

    def _end_of_document(self) -> None:
        if self._next().explicit or type(self._next()) is not _STREAM_END:
            raise invalid("The properties hold more than one YAML document.")

    def _entry(self, event: Any) -> YamlEntry:
        if type(event) is _SCALAR:
            if event.anchor is not None:
                self._anchors[event.anchor] = (event.value, 1)
            key: str | None = self._original(event.value)
            start, end = event.start_mark.index, event.end_mark.index
        else:
            key = None
            start, end = self._node(event, 1)[:2]
        return YamlEntry(key, start, end, self._node(self._next(), 1))

    def _node(self, event: Any, depth: int) -> YamlNode:
        self._count += 1
        kind = type(event)
        if kind is _SCALAR:
            return self._scalar(event)
        if depth > _MAX_DEPTH or self._count > _MAX_NODES:
            self._refuse_size()
        if kind is _ALIAS:
            return self._alias(event)
        previous = self._count
        node = self._list(event, depth) if kind is _LIST else self._mapping(event, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = (node.value, self._count - previous + 1)
        return node

    def _scalar(self, event: Any) -> YamlNode:
        start, end = event.start_mark.index, event.end_mark.index
        text = self._original(event.value)
        style: Style
        if event.style:
            style = event.style
            value: Any = text
            if style in "|>":
                end = self._end_of_block_scalar(start, end)
        else:
            style = "plain" if end > start else "empty"
            value = text if event.tag in _TEXT_TAGS else resolve(text)
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, 1)
        return YamlNode(start, end, value, style)

    def _end_of_block_scalar(self, start: int, end: int) -> int:
        """Return the end of the last line with content.

        With the indicator ``+`` the blank lines below are content, too.
        """
        text = self._text
        header = _BLOCK_HEADER.match(text, start)
        if header is None:
            raise invalid("The properties hold a block of text whose start cannot be located.")
        if "+" in header[1]:
            if text.endswith("\r\n", 0, end):
                end -= 2
            elif text.endswith("\n", 0, end):
                end -= 1
            return max(header.end(), end)
        content_end = len(text[:end].rstrip())
        if content_end <= header.end():
            return header.end()
        line_end = text.find("\n", content_end)
        line_end = end if line_end < 0 else line_end
        return line_end - 1 if text[line_end - 1] == "\r" else line_end

    def _alias(self, event: Any) -> YamlNode:
        anchored = self._anchors.get(event.anchor)
        if anchored is None:
            raise invalid(f"The properties use the alias *{event.anchor} before its definition.")
        value, size = anchored
        self._count += size
        if self._count > _MAX_NODES:
            self._refuse_size()
        return YamlNode(event.start_mark.index, event.end_mark.index, value, "alias")

    def _list(self, event: Any, depth: int) -> YamlNode:
        items: list[YamlNode] = []
        child: Any = self._next()
        while type(child) is not _LIST_END:
            items.append(self._node(child, depth + 1))
            child = self._next()
        if event.flow_style:
            return YamlNode(
                event.start_mark.index,
                child.end_mark.index,
                [item.value for item in items],
                "flow",
                tuple(items),
            )
        end = items[-1].end if items else event.end_mark.index
        return YamlNode(
            event.start_mark.index, end, [item.value for item in items], "block", tuple(items)
        )

    def _mapping(self, event: Any, depth: int) -> YamlNode:
        value: dict[str, Any] = {}
        end = event.end_mark.index
        child: Any = self._next()
        while type(child) is not _MAPPING_END:
            key = self._node(child, depth + 1)
            content = self._node(self._next(), depth + 1)
            name = child.value if type(child) is _SCALAR else self._text[key.start : key.end]
            value[self._original(name)] = content.value
            end = content.end
            child = self._next()
        if event.flow_style:
            return YamlNode(event.start_mark.index, child.end_mark.index, value, "flow")
        return YamlNode(event.start_mark.index, end, value, "block")

    def _original(self, text: str) -> str:
        return text.translate(_ORIGINALS) if self._swapped else text

    def _refuse_size(self) -> NoReturn:
        raise invalid(
            f"The properties are nested deeper than {_MAX_DEPTH} "
            f"or hold more than {_MAX_NODES} values, with aliases expanded."
        )
