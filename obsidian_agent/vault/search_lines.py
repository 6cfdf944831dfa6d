"""The lines of a text in which a hit can be, without a look at the others."""

from __future__ import annotations

from collections.abc import Iterator

from obsidian_agent.vault.search_needle import Needle, folds_oddly
from obsidian_agent.vault.text import split_lines


def lines_with(text: str, needle: Needle | None) -> Iterator[tuple[int, str]]:
    """Number (from 1) and text, without line end, of each line that may hold a needle; of every line for None."""
    searched = None if needle is None else _searched(text, needle)
    if searched is None or needle is None:
        for number, line in enumerate(split_lines(text), start=1):
            yield number, line.removesuffix("\n").removesuffix("\r")
        return
    wanted = needle.data.decode("utf-8", "surrogatepass")
    number, counted = 1, 0
    at = searched.find(wanted)
    while at >= 0:
        start = text.rfind("\n", 0, at) + 1
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        number += text.count("\n", counted, start)
        counted = start
        yield number, text[start:end].removesuffix("\r")
        at = searched.find(wanted, end)


def _searched(text: str, needle: Needle) -> str | None:
    """What the needle is to be looked for in, place by place as the text; None when there is no such thing."""
    if not needle.lower:
        return text
    if not text.isascii() and folds_oddly(text.encode("utf-8", "surrogatepass")):
        return None
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else None
