"""Comparison of the texts of two notes, apart from their properties, by their words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from obsidian_agent.errors import Problem
from obsidian_agent.health.names import has_placeholder, without_id
from obsidian_agent.vault.frontmatter.properties import find_frontmatter
from obsidian_agent.vault.index.digest import BLANKS, BOM, MIN_PROSE, body_of, body_start
from obsidian_agent.vault.links.spelling import spelling_key

SIMILAR: Final = 0.9
"""Share of words that near-identical texts have in common."""
_HEADING: Final = re.compile(rb"#{1,6}(?:[ \t]+(?P<text>[^\n]*?))?[ \t#]*")
TITLE: Final = re.compile(r"^# +(.+?)[ \t#]*\r?$", re.MULTILINE)
_WORD: Final = re.compile(r"\w+")


def is_empty(data: bytes, name: str, properties: Mapping[str, Any]) -> bool:
    """Return whether a note has no text but its name, and no property with a value."""
    if body := body_of(data):
        heading = _HEADING.fullmatch(body)
        if heading is None:
            return False
        text = (heading["text"] or b"").decode("utf-8", "replace")
        if text and spelling_key(text) not in map(spelling_key, (name, without_id(name))):
            return False
    if properties:
        return all(value in (None, "", []) for value in properties.values())
    # Properties that cannot be read are a text, too.
    return not data[: body_start(data)].removeprefix(BOM).strip(BLANKS + b"-")


def is_form(data: bytes | Problem) -> bool:
    """Return whether the properties or the title of a note are filled in later."""
    if isinstance(data, Problem):
        return False
    text = data.decode("utf-8", "replace")
    front, title = find_frontmatter(text), TITLE.search(text)
    head = text[: front.body_start] if front is not None else ""
    return has_placeholder(head + title[1] if title is not None else head)


def words_of(body: bytes) -> Counter[str]:
    """Return how often each word is in a text, without case."""
    return Counter(_WORD.findall(body.decode("utf-8", "replace").casefold()))


def are_versions(one: bytes, other: bytes) -> bool:
    """Return whether two texts are the same one, or what was added to one is the difference."""
    if min(len(one), len(other)) < MIN_PROSE:
        return False
    if one == other:
        return True
    first, second = words_of(one), words_of(other)
    shorter, longer = sorted((first.total(), second.total()))
    # What was added to one side leaves the words of the other in it.
    return shorter >= longer / 2 and (first & second).total() >= SIMILAR * shorter
