"""Where each property of a YAML block stands and what it means, from libyaml's events with their marks.

Offsets count characters of the block that was given. Nothing is constructed from tags, merge keys are not expanded, and aliases may not make
the values larger than `_MOST_NODES`. Imported when it is needed: most blocks are simple (yaml_scalars.py), and the library takes as long to
import as all of this package's reading.
"""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple, NoReturn

import yaml

from obsidian_agent.vault.frontmatter.yaml_scalars import LONGEST_BLOCK, invalid, resolve

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


def parse(block: str) -> Block | None:
    """The properties of a block. None when it holds something that is no mapping; `VaultError` FRONTMATTER_INVALID when it is no YAML."""
    if len(block) > LONGEST_BLOCK:
        raise invalid(f"The properties are longer than {LONGEST_BLOCK} characters.")
    return _Parser(block).block()


_MOST_NODES = 50_000
_DEEPEST = 60

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SCALAR: Any = yaml.ScalarEvent
_ALIAS: Any = yaml.AliasEvent
_LIST: Any = yaml.SequenceStartEvent
_LIST_END: Any = yaml.SequenceEndEvent
_MAPPING: Any = yaml.MappingStartEvent
_MAPPING_END: Any = yaml.MappingEndEvent
_STREAM_END: Any = yaml.StreamEndEvent
_TEXT_TAGS = frozenset(("!", "tag:yaml.org,2002:str"))

# YAML 1.1 ends lines at these three, YAML 1.2 and Obsidian do not; stand-ins of the same length make libyaml agree.
_OLD_LINE_ENDS = re.compile("[\x85\u2028\u2029]")
_STAND_INS = str.maketrans("\x85\u2028\u2029", "\ufdd0\ufdd1\ufdd2")
_ORIGINALS = str.maketrans("\ufdd0\ufdd1\ufdd2", "\x85\u2028\u2029")
_BLOCK_HEADER = re.compile(r"(?:[&!]\S*[ \t]+)*[|>]([-+0-9]*)")


class _Parser:
    """One pass over the events of one block."""

    __slots__ = ("_anchors", "_count", "_next", "_swapped", "_text")

    def __init__(self, text: str) -> None:
        self._swapped = _OLD_LINE_ENDS.search(text) is not None
        if self._swapped and text != text.translate(_ORIGINALS):
            raise invalid(
                "The properties hold characters that Unicode keeps for internal use (U+FDD0 to U+FDD2)."
            )
        self._text = text.translate(_STAND_INS) if self._swapped else text
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
            where = f" in line {mark.line + 2} of the note" if mark else ""
            raise invalid(
                f"The properties are not valid YAML: {error.problem or error.context}{where}."
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
        entries: list[Entry] = []
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

    def _entry(self, event: Any) -> Entry:
        if type(event) is _SCALAR:
            if event.anchor is not None:
                self._anchors[event.anchor] = (event.value, 1)
            key: str | None = self._original(event.value)
            start, end = event.start_mark.index, event.end_mark.index
        else:
            key = None
            start, end = self._node(event, 1)[:2]
        return Entry(key, start, end, self._node(self._next(), 1))

    def _node(self, event: Any, depth: int) -> Node:
        self._count += 1
        kind = type(event)
        if kind is _SCALAR:
            return self._scalar(event)
        if depth > _DEEPEST or self._count > _MOST_NODES:
            self._too_much()
        if kind is _ALIAS:
            return self._alias(event)
        before = self._count
        node = self._list(event, depth) if kind is _LIST else self._mapping(event, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = (node.value, self._count - before + 1)
        return node

    def _scalar(self, event: Any) -> Node:
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
        return Node(start, end, value, style)

    def _end_of_block_scalar(self, start: int, end: int) -> int:
        """Behind the last line that has content; with the indicator ``+`` the blank lines below are content."""
        text = self._text
        header = _BLOCK_HEADER.match(text, start)
        if header is None:
            raise invalid("The properties hold a block of text whose beginning cannot be found.")
        if "+" in header[1]:
            return max(
                header.end(),
                end
                - (2 if text.endswith("\r\n", 0, end) else 1 if text.endswith("\n", 0, end) else 0),
            )
        kept = len(text[:end].rstrip())
        if kept <= header.end():
            return header.end()
        line_end = text.find("\n", kept)
        line_end = end if line_end < 0 else line_end
        return line_end - 1 if text[line_end - 1] == "\r" else line_end

    def _alias(self, event: Any) -> Node:
        known = self._anchors.get(event.anchor)
        if known is None:
            raise invalid(
                f"The properties use the alias *{event.anchor}, which is not defined before it."
            )
        value, size = known
        self._count += size
        if self._count > _MOST_NODES:
            self._too_much()
        return Node(event.start_mark.index, event.end_mark.index, value, "alias")

    def _list(self, event: Any, depth: int) -> Node:
        items: list[Node] = []
        child: Any = self._next()
        while type(child) is not _LIST_END:
            items.append(self._node(child, depth + 1))
            child = self._next()
        if event.flow_style:
            return Node(
                event.start_mark.index,
                child.end_mark.index,
                [item.value for item in items],
                "flow",
                tuple(items),
            )
        end = items[-1].end if items else event.end_mark.index
        return Node(
            event.start_mark.index, end, [item.value for item in items], "block", tuple(items)
        )

    def _mapping(self, event: Any, depth: int) -> Node:
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
            return Node(event.start_mark.index, child.end_mark.index, value, "flow")
        return Node(event.start_mark.index, end, value, "block")

    def _original(self, text: str) -> str:
        return text.translate(_ORIGINALS) if self._swapped else text

    def _too_much(self) -> NoReturn:
        raise invalid(
            f"The properties are nested deeper than {_DEEPEST} or hold more than {_MOST_NODES} values, aliases counted in full."
        )
