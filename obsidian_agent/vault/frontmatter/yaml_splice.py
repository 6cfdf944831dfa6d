"""Minimal edits of a YAML block that change properties and preserve everything else.

Comments, spacing, order and quotes of all other properties stay. The functions return splices of
the block's text, which do not overlap within a property. The caller must parse the result to verify
it, as properties.py does. A block that is a single mapping in braces, as in JSON, is edited one
property at a time, and new text gets double quotes.
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
    from obsidian_agent.vault.frontmatter.yaml_nodes import Block, YamlEntry, YamlNode

_COLON = expression(r"[ \t]*:")
_PROPERTIES = expression(r"[ \t]*((?:[&!]\S*[ \t]*)+)")
_HEADER = expression(r"(?:[&!]\S*[ \t]+)*[|>][-+0-9]*")
_BLOCK_TEXT = expression(r"[|>][-+0-9]*[ \t]*(?:\#.*)?\r?$", re.MULTILINE)
_BELOW = expression(r"(?:[ \t]*\r?\n|[ \t]+#[^\n]*\n)*")
_ONE_PIECE = frozenset(("plain", "'", '"', "flow", "alias"))
_DASH_LINE = expression(r"^[ ]*-", re.MULTILINE)
_BRACE_COLON = expression(r"\s*:[ \t]?")
_MAX_COMPARED = 4_000
"""Items of two lists together. Of longer lists only the common start is compared, because the
comparison takes quadratic time."""

Splice = Edit[str]


class Layout(NamedTuple):
    """The layout of new lines of a block."""

    newline: str
    column: int
    """Number of blanks before each key."""


def apply(text: str, splices: Iterable[Splice]) -> str:
    """Apply splices. Raises `VaultError` FRONTMATTER_INVALID if they overlap."""
    try:
        return apply_edits(text, splices)
    except ValueError:
        raise invalid("The properties cannot be changed one by one.") from None


def write_key(key: str, *, quoted: bool = False) -> str:
    """Return a property's name as YAML."""
    return write_text(key, flow=quoted, quote='"' if quoted else "")


def write_flow(value: Any, *, quote: Quote = "", dates: bool = False) -> str:
    """Return any JSON value on one line. With `quote` all texts and keys are quoted."""
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
    """Return a list or map in block style, one item per line, each preceded by a line end."""
    lead = layout.newline + " " * indent
    if isinstance(value, Mapping):
        return "".join(
            f"{lead}{write_key(key)}:{_after_colon(item)}" for key, item in value.items()
        )
    return "".join(f"{lead}- {_inline(item, dates=dates)}" for item in value)


def write_entry(key: str, value: Any, layout: Layout) -> str:
    """Return the lines of a new property. Dates are unquoted, as Obsidian writes them."""
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


def replace(block: str, entry: YamlEntry, value: Any, layout: Layout) -> list[Splice]:
    """Set a property, in its current style (block or flow list, quotes) if the value permits it."""
    colon = _colon(block, entry, layout)
    node = entry.node
    if isinstance(value, list | tuple):
        if node.items and node.style == "block":
            return _replace_block_items(block, colon, node, value)
        if node.items is not None and node.style == "flow":
            return replace_flow_items(block, node, value)
        if value:
            dates = _has_plain_date(node)
            lines = write_lines(value, layout, layout.column + 2, dates=dates)
            return _replace_by_lines(block, colon, node, lines)
    is_flow_map = node.style == "flow" and node.items is None
    if isinstance(value, Mapping) and value and not is_flow_map:
        lines = write_lines(value, layout, _child_indent(block, node, layout))
        return _replace_by_lines(block, colon, node, lines)
    text = ""
    if value is not None:
        text = _inline(value, quote=_quote_of(node), dates=_has_plain_date(node))
    return _replace_inline(block, colon, node, text)


def remove(block: str, entry: YamlEntry, layout: Layout, previous: int | None = None) -> Splice:
    """Remove a property's lines, including a comment after its value. Other comments stay.

    `previous` is the start of the property above. If that ends in a block of text, blank lines and
    indented comments below the removed property are removed as well: they would become text.
    """
    _colon(block, entry, layout)
    end = _next_line(block, max(entry.node.end, entry.key_end))
    if previous is not None and _BLOCK_TEXT.search(block, previous, entry.start):
        below = _BELOW.match(block, end)
        end = below.end() if below else end
    return Splice(entry.start - layout.column, end, "")


def _colon(block: str, entry: YamlEntry, layout: Layout) -> int:
    """Return the end of the colon of a key that starts its line. Other keys cannot be spliced."""
    start = entry.start - layout.column
    colon = _COLON.match(block, entry.key_end)
    starts_line = (
        start >= 0
        and (start == 0 or block[start - 1] == "\n")
        and not block[start : entry.start].strip(" ")
    )
    if colon is None or not starts_line:
        raise invalid(
            f"The property “{entry.key}” is written in a way that cannot be changed safely."
        )
    return colon.end()


def _replace_inline(block: str, colon: int, node: YamlNode, text: str) -> list[Splice]:
    """Replace a value by one on a single line, or by nothing. A comment after it stays."""
    if node.style in _ONE_PIECE or _starts_at_dash(block, colon, node):
        return [Splice(node.start, node.end, text) if text else Splice(colon, node.end, "")]
    if node.style in ("|", ">"):
        header_end, line_end = _header(block, node)
        return [
            Splice(node.start if text else colon, header_end, text),
            Splice(line_end, node.end, ""),
        ]
    lead = _insert_after_colon(block, colon, _properties_end(block, colon, node), text)
    if node.style == "empty":
        return [lead]
    return [lead, Splice(_line_end(block, colon), node.end, "")]


def _starts_at_dash(block: str, dash_end: int, node: YamlNode) -> bool:
    """Return True if a list or map starts on the line of its dash (``- - a``), without anchor."""
    return (
        node.style == "block"
        and node.start < _line_end(block, dash_end)
        and block[node.start] not in "&!"
    )


def _insert_after_colon(block: str, colon: int, old_end: int, text: str) -> Splice:
    """Insert a one-line value after a colon or dash, replacing an anchor or tag.

    A comment keeps a blank before it.
    """
    end = old_end
    while block.startswith((" ", "\t"), end):
        end += 1
    blanks = block[old_end:end]
    value = f" {text}" if text else ""
    if block.startswith("#", end):
        return Splice(colon, end, value + (blanks or " "))
    return Splice(colon, end, value + (blanks[1:] if text else blanks))


def _replace_by_lines(block: str, colon: int, node: YamlNode, lines: str) -> list[Splice]:
    """Replace a value by lines below the key. A comment after it stays on the key's line."""
    if node.style in _ONE_PIECE:
        line_end = _line_end(block, node.end)
        return [Splice(colon, node.end, ""), Splice(line_end, line_end, lines)]
    if node.style in ("|", ">"):
        header_end, line_end = _header(block, node)
        return [Splice(colon, header_end, ""), Splice(line_end, node.end, lines)]
    line_end = _line_end(block, colon)
    splices = [Splice(colon, _properties_end(block, colon, node), "")]
    return [*splices, Splice(line_end, line_end if node.style == "empty" else node.end, lines)]


def _header(block: str, node: YamlNode) -> tuple[int, int]:
    """Return the ends of a block scalar's indicator and of its line."""
    header = _HEADER.match(block, node.start)
    if header is None:
        raise invalid("The properties hold a block of text whose start cannot be located.")
    return header.end(), _line_end(block, header.end())


def _properties_end(block: str, colon: int, node: YamlNode) -> int:
    """Return the end of the anchor and tag between a colon and the lines of its value."""
    properties = _PROPERTIES.match(block, colon) if node.style == "block" else None
    return colon + len(properties.group().rstrip()) if properties else colon


def _child_indent(block: str, node: YamlNode, layout: Layout) -> int:
    """Return the indentation of a map's lines: the current one, else two."""
    if node.style == "block" and node.items is None:
        line = block.rfind("\n", 0, node.start) + 1
        if not block[line : node.start].strip(" "):
            return node.start - line
    return layout.column + 2


def _line_end(block: str, position: int) -> int:
    """Return the end of the line of `position`, without the line end."""
    end = block.find("\n", position)
    if end < 0:
        return len(block)
    return end - 1 if end > position and block[end - 1] == "\r" else end


def _next_line(block: str, position: int) -> int:
    end = block.find("\n", position)
    return len(block) if end < 0 else end + 1


def _replace_block_items(
    block: str, colon: int, node: YamlNode, values: Sequence[Any]
) -> list[Splice]:
    """Edit a block list item by item. Lines of unchanged items stay."""
    items = node.items or ()
    start = _first_dash(block, node)
    column = start - _line_start(block, start)
    dashes = [_dash(block, item, column) for item in items]
    newline = "\r\n" if block[_line_end(block, dashes[0])] == "\r" else "\n"
    dates = _has_plain_date(node)
    splices: list[Splice] = []
    for low, high, first, last in _differences([item.value for item in items], values):
        shared = min(high - low, last - first)
        for item, dash, value in zip(
            items[low : low + shared], dashes[low:], values[first : first + shared], strict=False
        ):
            text = _inline(value, quote=_quote_of(item), dates=dates)
            splices += _replace_inline(block, dash + 1, item, text)
        for item, dash in zip(items[low + shared : high], dashes[low + shared : high], strict=True):
            line_end = _next_line(block, max(item.end, dash))
            splices.append(Splice(_line_start(block, dash), line_end, ""))
        if new := values[first + shared : last]:
            previous = low + shared - 1
            quote = _quote_of(items[max(0, previous)])
            if previous >= 0:
                position = _next_line(block, max(items[previous].end, dashes[previous]))
            else:
                position = _line_start(block, dashes[0])
            lines = (
                f"{' ' * column}- {_inline(value, quote=quote, dates=dates)}{newline}"
                for value in new
            )
            splices.append(Splice(position, position, "".join(lines)))
    if not values:
        splices.append(_insert_after_colon(block, colon, _properties_end(block, colon, node), "[]"))
    return splices


def _line_start(block: str, position: int) -> int:
    return block.rfind("\n", 0, position) + 1


def _first_dash(block: str, node: YamlNode) -> int:
    """Return the position of a list's first dash, which an anchor or tag may precede."""
    if block.startswith("-", node.start):
        return node.start
    dash_line = _DASH_LINE.search(block, node.start)
    if dash_line is None:
        raise invalid("The properties hold a list whose start cannot be located.")
    return dash_line.end() - 1


def _dash(block: str, item: YamlNode, column: int) -> int:
    """Return the position of an item's dash: in the list's column, on the item's line or above."""
    line = _line_start(block, item.start)
    while not (block.startswith("-", line + column) and not block[line : line + column].strip(" ")):
        if line == 0:
            raise invalid("The properties hold a list item whose dash cannot be located.")
        line = _line_start(block, line - 1)
    return line + column


def replace_flow_items(
    block: str, node: YamlNode, values: Sequence[Any], *, quote: Quote = ""
) -> list[Splice]:
    """Edit a flow list. Items outside of the changed range stay, moved ones keep their spelling."""
    items = node.items or ()
    spellings = {
        _identity(item.value): block[item.start : item.end]
        for item in items
        if item.end > item.start
    }
    differences = _differences([item.value for item in items], values)
    if not differences:
        return []
    low, _, first, _ = differences[0]
    _, high, _, last = differences[-1]
    if not quote and items:
        quote = _quote_of(items[max(0, low - 1)], flow=True)
    dates = _has_plain_date(node)
    new = ", ".join(
        spellings.get(_identity(value)) or write_flow(value, quote=quote, dates=dates)
        for value in values[first:last]
    )
    if not values or not items:
        opening = block.index("[", node.start)
        return [Splice(opening + 1, node.end - 1, new)]
    if low == high:
        if low == 0:
            return [Splice(items[0].start, items[0].start, f"{new}, ")]
        return [Splice(items[low - 1].end, items[low - 1].end, f", {new}")]
    if first == last:
        if low == 0:
            return [Splice(items[0].start, items[high].start, "")]
        return [Splice(items[low - 1].end, items[high - 1].end, "")]
    return [Splice(items[low].start, items[high - 1].end, new)]


def _differences(old: Sequence[Any], new: Sequence[Any]) -> list[tuple[int, int, int, int]]:
    """Return the differences `(low, high, first, last)` of two lists, in order.

    Each means that `old[low:high]` becomes `new[first:last]`.
    """
    before, after = [_identity(value) for value in old], [_identity(value) for value in new]
    common = 0
    while common < min(len(before), len(after)) and before[common] == after[common]:
        common += 1
    if common == len(before) == len(after):
        return []
    is_prefix = common in (len(before), len(after))
    if is_prefix or len(before) + len(after) > _MAX_COMPARED:
        return [(common, len(before), common, len(after))]
    matcher = SequenceMatcher(None, before[common:], after[common:], autojunk=False)
    return [
        (common + low, common + high, common + first, common + last)
        for kind, low, high, first, last in matcher.get_opcodes()
        if kind != "equal"
    ]


def _identity(value: Any) -> str:
    return "t" + value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _quote_of(node: YamlNode, *, flow: bool = False) -> Quote:
    """Return the quotes of a scalar that needs none: a style that a new value follows.

    `flow` means that the scalar is in brackets.
    """
    if node.style in ("'", '"') and isinstance(node.value, str) and is_plain(node.value, flow=flow):
        return "'" if node.style == "'" else '"'
    return ""


def _has_plain_date(node: YamlNode) -> bool:
    """Return True if dates may be unquoted: the value is empty, an unquoted date, or has one."""
    if node.items is not None:
        return any(_has_plain_date(item) for item in node.items if item.style == "plain")
    if node.style == "empty":
        return True
    return node.style == "plain" and isinstance(node.value, str) and is_date(node.value)


def replace_in_braces(block: str, entry: YamlEntry, value: Any) -> list[Splice]:
    """Set a property of a mapping in braces."""
    node = entry.node
    if isinstance(value, list) and node.items is not None:
        return replace_flow_items(block, node, value, quote='"')
    text = write_flow(value, quote='"')
    if node.style != "empty":
        return [Splice(node.start, node.end, text)]
    colon = _BRACE_COLON.match(block, entry.key_end)
    if colon is None:
        return [Splice(entry.key_end, entry.key_end, f": {text}")]
    return [Splice(colon.end(), colon.end(), text)]


def insert_in_braces(block: str, parsed: Block, key: str, value: Any) -> list[Splice]:
    """Add a property before the closing brace, in the layout of the one before it."""
    text = write_key(key, quoted=True) + ": " + write_flow(value, quote='"')
    opening, closing = _braces(parsed)
    if not parsed.entries:
        return [Splice(opening + 1, closing - 1, text)]
    lead = block[opening + 1 : parsed.entries[0].start]
    last = parsed.entries[-1]
    end = max(last.node.end, last.key_end)
    separator = lead if lead and not lead.strip() else " "
    return [Splice(end, end, f",{separator}{text}")]


def remove_in_braces(parsed: Block, position: int) -> Splice:
    """Remove the property at a position, with one comma."""
    entries = parsed.entries
    entry = entries[position]
    end = max(entry.node.end, entry.key_end)
    if position + 1 < len(entries):
        return Splice(entry.start, entries[position + 1].start, "")
    if position:
        previous = entries[position - 1]
        return Splice(max(previous.node.end, previous.key_end), end, "")
    return Splice(entry.start, end, "")


def _braces(parsed: Block) -> tuple[int, int]:
    if parsed.flow is None:
        raise invalid("The properties are not written in braces.")
    return parsed.flow
