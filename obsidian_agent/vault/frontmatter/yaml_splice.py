"""The smallest edits of a YAML block that give properties new values: comments, spacing, order and quotes of everything else stay.

Each function answers splices on the block's text: `(start, end, replacement)`. They never overlap within one property. Whether the
result means what it should is for the caller to prove by parsing it (properties.py does). Properties that are written as one mapping in
braces, as JSON, are edited one at a time, texts always in double quotes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, NamedTuple

from obsidian_agent.expression import expression
from obsidian_agent.vault.frontmatter.yaml_scalars import (
    Quote,
    invalid,
    is_date,
    is_plain,
    write_scalar,
    write_text,
)
from obsidian_agent.vault.text import Edit
from obsidian_agent.vault.text import apply as apply_edits

if TYPE_CHECKING:
    from obsidian_agent.vault.frontmatter.yaml_nodes import Block, Entry, Node

_COLON = expression(r"[ \t]*:")
_PROPERTIES = expression(r"[ \t]*((?:[&!]\S*[ \t]*)+)")
_HEADER = expression(r"(?:[&!]\S*[ \t]+)*[|>][-+0-9]*")
_BLOCK_TEXT = expression(r"[|>][-+0-9]*[ \t]*(?:\#.*)?\r?$", re.MULTILINE)
_BELOW = expression(r"(?:[ \t]*\r?\n|[ \t]+#[^\n]*\n)*")
_ONE_PIECE = frozenset(("plain", "'", '"', "flow", "alias"))
_MOST_COMPARED = 4_000
"""Items of two lists together; longer ones are compared at their beginnings alone, because finding what moved takes quadratic time."""

_DASH_LINE = expression(r"^[ ]*-", re.MULTILINE)


Splice = Edit[str]


class Layout(NamedTuple):
    """What new lines of a block look like."""

    newline: str
    column: int
    """Blanks before every key."""


def apply(text: str, splices: Iterable[Splice]) -> str:
    """The text with all splices done. FRONTMATTER_INVALID when they overlap."""
    try:
        return apply_edits(text, splices)
    except ValueError:
        raise invalid("The properties cannot be changed one by one.") from None


# --- writing ------------------------------------------------------------------------------------------------------------------


def write_key(key: str, *, quoted: bool = False) -> str:
    """A property's name as YAML."""
    return write_text(key, flow=quoted, quote='"' if quoted else "")


def write_flow(value: Any, *, quote: Quote = "", dates: bool = False) -> str:
    """Any JSON value on one line, in brackets where it has parts. With `quote` every text (and key) is quoted: JSON, in short."""
    if isinstance(value, Mapping):
        pairs = (
            f"{write_text(key, flow=True, quote=quote)}: {write_flow(item, quote=quote)}"
            for key, item in value.items()
        )
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(write_flow(item, quote=quote, dates=dates) for item in value) + "]"
    return write_scalar(value, flow=True, quote=quote, dates=dates)


def write_lines(value: Any, layout: Layout, indent: int, *, dates: bool = False) -> str:
    """A list or map in block style, one part a line, each line with a line end in front."""
    lead = layout.newline + " " * indent
    if isinstance(value, Mapping):
        return "".join(
            f"{lead}{write_key(key)}:{_after_colon(item)}" for key, item in value.items()
        )
    return "".join(f"{lead}- {_inline(item, dates=dates)}" for item in value)


def write_entry(key: str, value: Any, layout: Layout) -> str:
    """A new property at the end of a block: its lines, each with its line end behind. Dates stand plain, as Obsidian writes them."""
    name = " " * layout.column + write_key(key)
    if _has_lines(value):
        return f"{name}:{write_lines(value, layout, layout.column + 2, dates=True)}{layout.newline}"
    return f"{name}:{_after_colon(value, dates=True)}{layout.newline}"


def _has_lines(value: Any) -> bool:
    return isinstance(value, Mapping | list | tuple) and len(value) > 0


def _after_colon(value: Any, *, quote: Quote = "", dates: bool = False) -> str:
    if value is None:
        return ""
    return " " + _inline(value, quote=quote, dates=dates)


def _inline(value: Any, *, quote: Quote = "", dates: bool = False) -> str:
    if isinstance(value, Mapping | list | tuple):
        return write_flow(value, dates=dates)
    return write_scalar(value, quote=quote, dates=dates)


# --- one property of a block mapping --------------------------------------------------------------------------------------------


def replace(block: str, entry: Entry, value: Any, layout: Layout) -> list[Splice]:
    """The property gets a value; its style (list in lines or in brackets, quotes) is kept where it fits the new value."""
    colon = _colon(block, entry, layout)
    node = entry.node
    if isinstance(value, list | tuple):
        if node.items and node.style == "block":
            return _replace_block_items(block, colon, node, value)
        if node.items is not None and node.style == "flow":
            return replace_flow_items(block, node, value)
        if value:
            return _put_lines(
                block,
                colon,
                node,
                write_lines(value, layout, layout.column + 2, dates=_takes_dates(node)),
            )
    if isinstance(value, Mapping) and value and not (node.style == "flow" and node.items is None):
        return _put_lines(
            block, colon, node, write_lines(value, layout, _child_indent(block, node, layout))
        )
    return _put_inline(
        block,
        colon,
        node,
        "" if value is None else _inline(value, quote=_quote_of(node), dates=_takes_dates(node)),
    )


def remove(block: str, entry: Entry, layout: Layout, above: int | None = None) -> Splice:
    """The property's lines go, with what stands behind its value on the last one; comments on their own lines stay.

    `above` is where the property above it begins: when that ends in a block of text, blank lines and indented comments below the removed
    one go too, because they would become text.
    """
    _colon(block, entry, layout)
    end = _next_line(block, max(entry.node.end, entry.key_end))
    if above is not None and _BLOCK_TEXT.search(block, above, entry.start):
        below = _BELOW.match(block, end)
        end = below.end() if below else end
    return Splice(entry.start - layout.column, end, "")


def _colon(block: str, entry: Entry, layout: Layout) -> int:
    """The place behind the colon of a key that begins its own line; other keys are not for splicing."""
    start = entry.start - layout.column
    found = _COLON.match(block, entry.key_end)
    alone = (
        start >= 0
        and (start == 0 or block[start - 1] == "\n")
        and not block[start : entry.start].strip(" ")
    )
    if found is None or not alone:
        raise invalid(
            f"The property “{entry.key}” is written in a way that cannot be changed safely."
        )
    return found.end()


def _put_inline(block: str, colon: int, node: Node, text: str) -> list[Splice]:
    """Puts a one-line value (or nothing) in the place of the old one; a comment behind it stays."""
    if node.style in _ONE_PIECE or _begins_at_dash(block, colon, node):
        return [Splice(node.start, node.end, text) if text else Splice(colon, node.end, "")]
    if node.style in ("|", ">"):
        header_end, line_end = _header(block, node)
        return [
            Splice(node.start if text else colon, header_end, text),
            Splice(line_end, node.end, ""),
        ]
    lead = _put_behind_colon(block, colon, _properties_end(block, colon, node), text)
    if node.style == "empty":
        return [lead]
    return [lead, Splice(_line_end(block, colon), node.end, "")]


def _begins_at_dash(block: str, dash_end: int, node: Node) -> bool:
    """Whether a list or map begins in the line of the dash before it (``- - a``), with no anchor or tag between."""
    return (
        node.style == "block"
        and node.start < _line_end(block, dash_end)
        and block[node.start] not in "&!"
    )


def _put_behind_colon(block: str, colon: int, old_end: int, text: str) -> Splice:
    """Puts a one-line value behind a colon or dash where there is none but perhaps an anchor or tag; a comment keeps a blank before it."""
    end = old_end
    while block.startswith((" ", "\t"), end):
        end += 1
    blanks = block[old_end:end]
    value = f" {text}" if text else ""
    if block.startswith("#", end):
        return Splice(colon, end, value + (blanks or " "))
    return Splice(colon, end, value + (blanks[1:] if text else blanks))


def _put_lines(block: str, colon: int, node: Node, lines: str) -> list[Splice]:
    """Puts a value of several lines below the key; a comment behind the old value stays on the key's line."""
    if node.style in _ONE_PIECE:
        line_end = _line_end(block, node.end)
        return [Splice(colon, node.end, ""), Splice(line_end, line_end, lines)]
    if node.style in ("|", ">"):
        header_end, line_end = _header(block, node)
        return [Splice(colon, header_end, ""), Splice(line_end, node.end, lines)]
    line_end = _line_end(block, colon)
    splices = [Splice(colon, _properties_end(block, colon, node), "")]
    return [*splices, Splice(line_end, line_end if node.style == "empty" else node.end, lines)]


def _header(block: str, node: Node) -> tuple[int, int]:
    """Ends of a block scalar's indicator and of its line."""
    found = _HEADER.match(block, node.start)
    if found is None:
        raise invalid("The properties hold a block of text whose beginning cannot be found.")
    return found.end(), _line_end(block, found.end())


def _properties_end(block: str, colon: int, node: Node) -> int:
    """Behind the anchor and tag between a colon and a value on the lines below; the colon's place when there are none."""
    found = _PROPERTIES.match(block, colon) if node.style == "block" else None
    return colon + len(found.group().rstrip()) if found else colon


def _child_indent(block: str, node: Node, layout: Layout) -> int:
    """Indentation of a map's lines: the one it has, else two."""
    if node.style == "block" and node.items is None:
        line = block.rfind("\n", 0, node.start) + 1
        if not block[line : node.start].strip(" "):
            return node.start - line
    return layout.column + 2


def _line_end(block: str, position: int) -> int:
    """Where the line of `position` ends, before its line end."""
    end = block.find("\n", position)
    if end < 0:
        return len(block)
    return end - 1 if end > position and block[end - 1] == "\r" else end


def _next_line(block: str, position: int) -> int:
    end = block.find("\n", position)
    return len(block) if end < 0 else end + 1


# --- items ------------------------------------------------------------------------------------------------------------------------


def _replace_block_items(block: str, colon: int, node: Node, values: Sequence[Any]) -> list[Splice]:
    """Edits a list in lines item by item: lines of items that stay are not touched."""
    items = node.items or ()
    start = _first_dash(block, node)
    column = start - _line_start(block, start)
    dashes = [_dash(block, item, column) for item in items]
    newline = "\r\n" if block[_line_end(block, dashes[0])] == "\r" else "\n"
    dates = _takes_dates(node)
    splices: list[Splice] = []
    for low, high, first, last in _differences([item.value for item in items], values):
        shared = min(high - low, last - first)
        for item, dash, value in zip(
            items[low : low + shared], dashes[low:], values[first : first + shared], strict=False
        ):
            splices += _put_inline(
                block, dash + 1, item, _inline(value, quote=_quote_of(item), dates=dates)
            )
        for item, dash in zip(items[low + shared : high], dashes[low + shared : high], strict=True):
            splices.append(
                Splice(_line_start(block, dash), _next_line(block, max(item.end, dash)), "")
            )
        if new := values[first + shared : last]:
            above = low + shared - 1
            quote = _quote_of(items[max(0, above)])
            place = (
                _next_line(block, max(items[above].end, dashes[above]))
                if above >= 0
                else _line_start(block, dashes[0])
            )
            lines = (
                f"{' ' * column}- {_inline(value, quote=quote, dates=dates)}{newline}"
                for value in new
            )
            splices.append(Splice(place, place, "".join(lines)))
    if not values:
        splices.append(_put_behind_colon(block, colon, _properties_end(block, colon, node), "[]"))
    return splices


def _line_start(block: str, position: int) -> int:
    return block.rfind("\n", 0, position) + 1


def _first_dash(block: str, node: Node) -> int:
    """The place of a list's first dash; an anchor or tag of the list stands on a line above."""
    if block.startswith("-", node.start):
        return node.start
    found = _DASH_LINE.search(block, node.start)
    if found is None:
        raise invalid("The properties hold a list whose beginning cannot be found.")
    return found.end() - 1


def _dash(block: str, item: Node, column: int) -> int:
    """The place of an item's dash: in the list's column, in the item's line or above."""
    line = _line_start(block, item.start)
    while not (block.startswith("-", line + column) and not block[line : line + column].strip(" ")):
        if line == 0:
            raise invalid("The properties hold a list item whose dash cannot be found.")
        line = _line_start(block, line - 1)
    return line + column


def replace_flow_items(
    block: str, node: Node, values: Sequence[Any], *, quote: Quote = ""
) -> list[Splice]:
    """Edits a list in brackets: items before the first and behind the last difference are not touched, moved ones keep their spelling."""
    items = node.items or ()
    spelled = {
        _identity(item.value): block[item.start : item.end]
        for item in items
        if item.end > item.start
    }
    differences = _differences([item.value for item in items], values)
    if not differences:
        return []
    low, high, first, last = (
        differences[0][0],
        differences[-1][1],
        differences[0][2],
        differences[-1][3],
    )
    near = quote or (_quote_of(items[max(0, low - 1)], flow=True) if items else "")
    dates = _takes_dates(node)
    new = ", ".join(
        spelled.get(_identity(value)) or write_flow(value, quote=near, dates=dates)
        for value in values[first:last]
    )
    if not values or not items:
        opening = block.index("[", node.start)
        return [Splice(opening + 1, node.end - 1, new)]
    if low == high:
        return [
            Splice(items[low - 1].end, items[low - 1].end, f", {new}")
            if low
            else Splice(items[0].start, items[0].start, f"{new}, ")
        ]
    if first == last:
        return [
            Splice(items[low - 1].end, items[high - 1].end, "")
            if low
            else Splice(items[0].start, items[high].start, "")
        ]
    return [Splice(items[low].start, items[high - 1].end, new)]


def _differences(old: Sequence[Any], new: Sequence[Any]) -> list[tuple[int, int, int, int]]:
    """Where two lists differ, in order: old items low to high became new items first to last."""
    before, after = [_identity(value) for value in old], [_identity(value) for value in new]
    alike = 0
    while alike < min(len(before), len(after)) and before[alike] == after[alike]:
        alike += 1
    if alike == len(before) or alike == len(after):
        return [(alike, len(before), alike, len(after))] if len(before) != len(after) else []
    if len(before) + len(after) > _MOST_COMPARED:
        return [(alike, len(before), alike, len(after))]
    matcher = SequenceMatcher(None, before[alike:], after[alike:], autojunk=False)
    return [
        (alike + low, alike + high, alike + first, alike + last)
        for kind, low, high, first, last in matcher.get_opcodes()
        if kind != "equal"
    ]


def _identity(value: Any) -> str:
    return "t" + value if isinstance(value, str) else json.dumps(value, sort_keys=True)


# --- style ------------------------------------------------------------------------------------------------------------------------


def _quote_of(node: Node, *, flow: bool = False) -> Quote:
    """Return the quotes of a scalar that needs none there (`flow`: in brackets): a style that the new value follows."""
    if node.style in ("'", '"') and isinstance(node.value, str) and is_plain(node.value, flow=flow):
        return "'" if node.style == "'" else '"'
    return ""


def _takes_dates(node: Node) -> bool:
    """Whether a date may stand plain: the value is empty, or a plain date, or a list with one."""
    if node.items is not None:
        return any(_takes_dates(item) for item in node.items if item.style == "plain")
    return node.style == "empty" or (
        node.style == "plain" and isinstance(node.value, str) and is_date(node.value)
    )


# --- one property of a mapping in braces ----------------------------------------------------------------------------------------

_BRACE_COLON = expression(r"\s*:[ \t]?")


def replace_in_braces(block: str, entry: Entry, value: Any) -> list[Splice]:
    """The property gets a value."""
    node = entry.node
    if isinstance(value, list) and node.items is not None:
        return replace_flow_items(block, node, value, quote='"')
    text = write_flow(value, quote='"')
    if node.style != "empty":
        return [Splice(node.start, node.end, text)]
    colon = _BRACE_COLON.match(block, entry.key_end)
    return (
        [Splice(colon.end(), colon.end(), text)]
        if colon
        else [Splice(entry.key_end, entry.key_end, f": {text}")]
    )


def insert_in_braces(block: str, parsed: Block, key: str, value: Any) -> list[Splice]:
    """A new property before the closing brace, laid out like the one before it."""
    text = write_key(key, quoted=True) + ": " + write_flow(value, quote='"')
    opening, closing = _braces(parsed)
    if not parsed.entries:
        return [Splice(opening + 1, closing - 1, text)]
    lead = block[opening + 1 : parsed.entries[0].start]
    last = parsed.entries[-1]
    place = max(last.node.end, last.key_end)
    return [Splice(place, place, f",{lead if lead and not lead.strip() else ' '}{text}")]


def remove_in_braces(parsed: Block, position: int) -> Splice:
    """The property at a position goes, with one comma."""
    entries = parsed.entries
    entry = entries[position]
    end = max(entry.node.end, entry.key_end)
    if position + 1 < len(entries):
        return Splice(entry.start, entries[position + 1].start, "")
    if position:
        before = entries[position - 1]
        return Splice(max(before.node.end, before.key_end), end, "")
    return Splice(entry.start, end, "")


def _braces(parsed: Block) -> tuple[int, int]:
    if parsed.flow is None:
        raise invalid("The properties are not written in braces.")
    return parsed.flow
