"""Edits of properties that are written as one mapping in braces, as JSON: one property at a time, texts always in double quotes."""

from __future__ import annotations

import re
from typing import Any

from obsidian_agent.vault.frontmatter.yaml_nodes import Block, Entry, invalid
from obsidian_agent.vault.frontmatter.yaml_splice import Splice, replace_flow_items, write_flow, write_key

_COLON = re.compile(r"\s*:[ \t]?")


def replace(block: str, entry: Entry, value: Any) -> list[Splice]:
    """The property gets a value."""
    node = entry.node
    if isinstance(value, list) and node.items is not None:
        return replace_flow_items(block, node, value, quote='"')
    text = write_flow(value, quote='"')
    if node.style != "empty":
        return [Splice(node.start, node.end, text)]
    colon = _COLON.match(block, entry.key_end)
    return [Splice(colon.end(), colon.end(), text)] if colon else [Splice(entry.key_end, entry.key_end, f": {text}")]


def insert(block: str, parsed: Block, key: str, value: Any) -> list[Splice]:
    """A new property before the closing brace, laid out like the one before it."""
    text = write_key(key, quoted=True) + ": " + write_flow(value, quote='"')
    opening, closing = _span(parsed)
    if not parsed.entries:
        return [Splice(opening + 1, closing - 1, text)]
    lead = block[opening + 1 : parsed.entries[0].start]
    last = parsed.entries[-1]
    place = max(last.node.end, last.key_end)
    return [Splice(place, place, f",{lead if lead and not lead.strip() else ' '}{text}")]


def remove(parsed: Block, position: int) -> Splice:
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


def _span(parsed: Block) -> tuple[int, int]:
    if parsed.flow is None:
        raise invalid("The properties are not written in braces.")
    return parsed.flow
