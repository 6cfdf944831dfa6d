"""The difference of two texts as an editor takes it: a few replaced places, in UTF-16 units, as small as is cheap to find out."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import accumulate, groupby
from os.path import commonprefix
from typing import Final

from obsidian_agent.obsidian.companion_client import TextChange

_MOST_PAIRS: Final = 250_000
"""Pairs of lines up to which the lines that differ are compared closely."""

_Hunk = tuple[int, int, int, int]
"""From and to in the old text, from and to in the new one, in characters."""


def text_changes(old: str, new: str) -> list[TextChange]:
    """What leads from `old` to `new`: ascending, not overlapping, offsets in `old`. [] for equal texts."""
    changes: list[TextChange] = []
    at = units = 0
    for start, end, new_start, new_end in _hunks(old, new):
        units += _units(old[at:start])
        length = _units(old[start:end])
        changes.append((units, units + length, new[new_start:new_end]))
        at, units = end, units + length
    return changes


def _hunks(old: str, new: str) -> Iterator[_Hunk]:
    start, end, _, new_end = _cut(old, new, (0, len(old), 0, len(new)))
    lines, new_lines = old[start:end].splitlines(keepends=True), new[start:new_end].splitlines(keepends=True)
    places = list(accumulate(map(len, lines), initial=start))
    new_places = list(accumulate(map(len, new_lines), initial=start))
    for first, last, new_first, new_last in _blocks(lines, new_lines):
        yield _cut(old, new, (places[first], places[last], new_places[new_first], new_places[new_last]))


def _cut(old: str, new: str, hunk: _Hunk) -> _Hunk:
    """The hunk without what is equal at its beginning and its end."""
    start, end, new_start, new_end = hunk
    one, other = old[start:end], new[new_start:new_end]
    ahead = len(commonprefix([one, other]))
    behind = len(commonprefix([one[ahead:][::-1], other[ahead:][::-1]]))
    return start + ahead, end - behind, new_start + ahead, new_end - behind


def _blocks(lines: list[str], new_lines: list[str]) -> Iterator[_Hunk]:
    """The runs of lines that differ. Lines that only changed in their place are found by going along both; else few are compared closely."""
    if len(lines) == len(new_lines):
        differ = [one != other for one, other in zip(lines, new_lines, strict=True)]
        for is_different, run in groupby(range(len(lines)), key=differ.__getitem__):
            if is_different:
                at = list(run)
                yield at[0], at[-1] + 1, at[0], at[-1] + 1
    elif len(lines) * len(new_lines) <= _MOST_PAIRS:
        for what, first, last, new_first, new_last in SequenceMatcher(None, lines, new_lines, autojunk=False).get_opcodes():
            if what != "equal":
                yield first, last, new_first, new_last
    else:
        yield 0, len(lines), 0, len(new_lines)


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2
