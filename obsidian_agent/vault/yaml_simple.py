"""The YAML that nearly every note has, recognised line by line: ten times faster than a parser, and silent about everything else.

A simple block is ``key: value`` lines whose value is one plain or quoted text without escapes, a list of such in brackets, or a list of
such on the lines below; besides there are only blank lines and comments. Such a block means the same to YAML 1.1 and 1.2, and its
properties do not depend on each other: the lines from one key to the next can be read, changed and removed on their own. What is not
clearly of this kind is left to libyaml (yaml_nodes.py).
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from obsidian_agent.vault.yaml_scalar import resolve

LONGEST_BLOCK = 1 << 20
"""Characters; a longer block is refused by everything that reads one."""

_LONGEST_KEY = 200
_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff"
_END = r"\r?\n"
_COMMENT = rf"\#[^\n{_CONTROLS}]*+"
_REST = rf"(?:[ ]++(?:{_COMMENT})?)?{_END}"
_FIRST = rf"[^\s\-?:,\[\]{{}}\#&*!|>'\"%@`{_CONTROLS}]"
_PLAIN = rf"{_FIRST}(?:[^\s:\#{_CONTROLS}]|:(?=\S)|(?<=\S)\#|[ ]++(?=[^\s\#:]|:\S))*+"
_DOUBLE = rf'"[^"\\\t\n{_CONTROLS}]*+"'
_SINGLE = rf"'[^'\t\n{_CONTROLS}]*+'"
_INNER = rf"[^\s,\[\]{{}}:\#?\"'{_CONTROLS}]"
_FLOW_ITEM = rf"(?:{_DOUBLE}|{_SINGLE}|{_FIRST}(?:{_INNER}|[ ]++(?={_INNER}))*+)"
_LINE_ITEM = rf"(?:{_DOUBLE}|{_SINGLE}|{_PLAIN})"

_BETWEEN = rf"(?:[ ]*+(?:{_COMMENT})?{_END})*+"

_LEAD = re.compile(_BETWEEN)
_ENTRY = re.compile(
    rf"""(?P<key>\w(?:[\w./]|[ \-]++(?=[\w./]))*+)[ ]*+:
    (?:[ ]++(?:(?P<plain>{_PLAIN})|(?P<quoted>{_DOUBLE}|{_SINGLE})|(?P<flow>\[[ ]*+(?:{_FLOW_ITEM}(?:[ ]*+,[ ]*+{_FLOW_ITEM})*+)?[ ]*+\]))
        {_REST}
      |{_REST}(?P<lines>(?P<pad>[ ]*+)-[ ]++{_LINE_ITEM}{_REST}(?:(?P=pad)-[ ]++{_LINE_ITEM}{_REST})*+)?
    ){_BETWEEN}""",
    re.VERBOSE,
)
_FLOW_ITEMS = re.compile(rf"(?P<quoted>{_DOUBLE}|{_SINGLE})|(?P<plain>{_FIRST}(?:{_INNER}|[ ]++(?={_INNER}))*+)")
_LINE_ITEMS = re.compile(rf"[ ]*+-[ ]++(?:(?P<quoted>{_DOUBLE}|{_SINGLE})|(?P<plain>{_PLAIN})){_REST}")


class Region(NamedTuple):
    """A property and the lines up to the next one, with the blank lines and comments that follow it."""

    key: str
    start: int
    end: int


def split(block: str) -> list[Region] | None:
    """The regions of a simple block in order, None when the block is not simple."""
    if len(block) > LONGEST_BLOCK:
        return None
    found: list[Region] = []
    position = _start(block)
    while position < len(block):
        entry = _ENTRY.match(block, position)
        if entry is None or len(key := entry["key"]) > _LONGEST_KEY:
            return None
        found.append(Region(key, position, position := entry.end()))
    return found


def read(block: str) -> dict[str, Any] | None:
    """The properties of a simple block, of equal keys the last one; None when the block is not simple."""
    if len(block) > LONGEST_BLOCK:
        return None
    found: dict[str, Any] = {}
    items: list[Any] | None = None
    above: str | None = None
    pad: str | None = None
    lines = block.split("\n")
    if lines.pop():
        return None
    for text in lines:
        line = _known.get(text) or _judged(text)
        if line.kind == "entry":
            value = line.value
            found[line.name] = value.copy() if type(value) is list else value
            above = None
        elif line.kind == "item":
            # A list stands directly below its key, each item as far to the right as the first.
            if above is None or (items is not None and line.name != pad):
                return None
            if items is None:
                items, pad = [], line.name
                found[above] = items
            items.append(line.value)
            continue
        elif line.kind == "key":
            above = line.name
            found[above] = None
        elif line.kind == "blank":
            above = None
        else:
            return None
        items = None
    return found


class _Line(NamedTuple):
    """A line on its own: an `entry` (key and value), a `key` whose value is below it, an `item` of a list, `blank` (or a comment), or
    `other`. `name` is the key, or the blanks before an item."""

    kind: str
    name: str = ""
    value: Any = None


_KEPT = 20_000
_LONG = 200

_known: dict[str, _Line] = {}
"""What lines are, for those that were seen: most lines of properties are in very many notes."""


def _judged(text: str) -> _Line:
    line = _judge(f"{text}\n")
    if len(text) < _LONG:
        if len(_known) >= _KEPT:
            _known.clear()
        _known[text] = line
    return line


def _judge(text: str) -> _Line:
    if _LEAD.fullmatch(text):
        return _Line("blank")
    if entry := _ENTRY.fullmatch(text):
        if len(entry["key"]) > _LONGEST_KEY:
            return _Line("other")
        if any(entry.group("plain", "quoted", "flow")):
            return _Line("entry", entry["key"], _value(entry))
        return _Line("key", entry["key"])
    if item := _LINE_ITEMS.fullmatch(text):
        return _Line("item", text[: len(text) - len(text.lstrip(" "))], _item(item))
    return _Line("other")


def _start(block: str) -> int:
    lead = _LEAD.match(block)
    return lead.end() if lead else 0


def _value(entry: re.Match[str]) -> Any:
    plain, quoted, flow, lines = entry.group("plain", "quoted", "flow", "lines")
    if plain is not None:
        return resolve(plain)
    if quoted is not None:
        return quoted[1:-1]
    if flow is not None:
        return [_item(item) for item in _FLOW_ITEMS.finditer(flow)]
    if lines is not None:
        return [_item(item) for item in _LINE_ITEMS.finditer(lines)]
    return None


def _item(item: re.Match[str]) -> Any:
    quoted = item["quoted"]
    return resolve(item["plain"]) if quoted is None else quoted[1:-1]
