"""Mentions of a note by its names, and links in their place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import regex

from obsidian_agent.expression import expression
from obsidian_agent.vault.markdown import edits
from obsidian_agent.vault.markdown.lines import scan
from obsidian_agent.vault.markdown.note import links_in
from obsidian_agent.vault.text import encode

_PROTECTED: Final = expression(
    r"!?\[\[[^\[\]\n]*\]\]|!?\[[^\[\]\n]*\]\([^()\n]*\)|`[^`\n]*`|<[^<>\n]*>|\S+://\S+"
    r"|\[\^[^\]\n]*\]|#[^\s#]\S*|\[[^\[\]\n]*\]\[[^\[\]\n]*\]|\[[^\[\]\n]+\]:[ \t]*\S[^\n]*"
)
"""Words that are not plain text: links and their definitions, code, addresses, footnotes, tags."""


def mention_pattern(names: list[str], *, ignore_case: bool = True) -> regex.Pattern[str]:
    """Return a pattern for any of the names, long ones first, as whole words."""
    alternatives = (
        r"[ \t]+".join(map(regex.escape, name.split()))
        for name in sorted(names, key=len, reverse=True)
    )
    flags = regex.IGNORECASE | regex.FULLCASE if ignore_case else 0
    return regex.compile(rf"(?<![\w/#])(?:{'|'.join(alternatives)})(?![\w/])", flags)


def with_links(
    text: str, pattern: regex.Pattern[str], name: str, *, first: bool, markdown: bool = False
) -> tuple[str, int]:
    """Return the text with links to `name` instead of mentions, and their number.

    A mention stays unchanged if a link would not work there, for example in code.
    """
    remaining = list(_mentions(text, pattern))
    while True:
        mentions = remaining[:1] if first else remaining
        content, positions = _linked_text(text, mentions, name, markdown=markdown)
        linked = {link.start for link in links_in(encode(content))}
        ineffective = {
            mention.start()
            for mention, at in zip(mentions, positions, strict=True)
            if at not in linked
        }
        if not ineffective:
            return content, len(mentions)
        remaining = [mention for mention in remaining if mention.start() not in ineffective]


def _mentions(text: str, pattern: regex.Pattern[str]) -> Iterator[regex.Match[str]]:
    """Yield the mentions in paragraphs, lists, quotes and tables.

    Headings, links, code, addresses and tags are excluded.
    """
    matches = list(pattern.finditer(text))
    if not matches:
        return
    headings = [(heading.start, heading.end) for heading in edits.headings(text)]
    position = 0
    for line in scan(text, stop=matches[-1].end()):
        here = position
        while position < len(matches) and matches[position].start() < line.end:
            position += 1
        if here == position or line.hidden:
            continue
        if any(start <= line.start < end for start, end in headings):
            continue
        protected = [match.span() for match in _PROTECTED.finditer(text, line.start, line.end)]
        for match in matches[here:position]:
            if not any(start < match.end() and match.start() < end for start, end in protected):
                yield match


def _linked_text(
    text: str, mentions: list[regex.Match[str]], name: str, *, markdown: bool
) -> tuple[str, list[int]]:
    """Return the text with the links, and the offset of each link in its bytes."""
    pieces: list[str] = []
    positions: list[int] = []
    end = size = 0
    for mention in mentions:
        before = text[end : mention.start()]
        line = text[text.rfind("\n", 0, mention.start()) + 1 : mention.start()]
        link = f"[[{name}{link_separator(line)}{mention[0]}]]"
        if markdown:
            link = f"[{mention[0]}]({name})"
        elif mention[0] == name:
            link = f"[[{name}]]"
        positions.append(size + len(before.encode()))
        size = positions[-1] + len(link.encode())
        pieces += before, link
        end = mention.end()
    return "".join([*pieces, text[end:]]), positions


def link_separator(line: str) -> str:
    """Return the separator of target and text for a link after this part of a line.

    In a table a bare `|` would end the cell.
    """
    return "\\|" if line.lstrip(" \t>").startswith("|") else "|"
