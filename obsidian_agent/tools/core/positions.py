"""Places in a note as an editor counts them (0-based line, UTF-16 column), and where a place is after the note was edited.

Obsidian's editor shows no byte order mark and takes `\\r\\n` for one line end, so neither counts in a column.
"""

from __future__ import annotations

from bisect import bisect_right
from difflib import SequenceMatcher

from obsidian_agent.tools.core.tool import Position
from obsidian_agent.vault.text import BOM

_MATCHER_LIMIT = 4_000_000
"""Largest product of line counts that is compared line by line; beyond it a changed part counts as replaced as a whole."""

Opcode = tuple[str, int, int, int, int]


def utf16_length(text: str) -> int:
    """The number of UTF-16 code units, which is how Obsidian counts characters."""
    return len(text) if text.isascii() else len(text) + sum(char > "\uffff" for char in text)


def offset_of(text: str, position: Position) -> int | None:
    """The index in `text` of an editor's position, or None when the text has no such place."""
    start = 0
    for _ in range(position.line):
        start = text.find("\n", start) + 1
        if not start:
            return None
    if position.line == 0 and text.startswith(BOM):
        start = 1
    end = text.find("\n", start)
    line = text[start : len(text) if end < 0 else end].removesuffix("\r")
    column = _column_index(line, position.ch)
    return None if column is None else start + column


def _column_index(line: str, units: int) -> int | None:
    if units < 0:
        return None
    if line.isascii():
        return units if units <= len(line) else None
    seen = 0
    for index, char in enumerate(line):
        if seen >= units:
            return index if seen == units else None
        seen += 2 if char > "\uffff" else 1
    return len(line) if seen == units else None


def position_of(text: str, offset: int) -> Position:
    """The editor's position of an index in `text`."""
    start = text.rfind("\n", 0, offset) + 1
    if start == 0 and text.startswith(BOM) and offset:
        start = 1
    return Position(text.count("\n", 0, offset), utf16_length(text[start:offset]))


def shifted(before: str, after: str, start: int, end: int) -> tuple[int, int] | None:
    """Where the range of `before` is in `after`, or None when what it covers was edited. An empty range is a place between characters.

    The versions are compared line by line; inside changed lines, what they share at their start and at their end counts as kept.
    """
    if before == after:
        return start, end
    old, new = _Lines(before), _Lines(after)
    first, last = old.line_at(start), old.line_at(end)
    codes = _opcodes(old.keys, new.keys)
    touched = [code for code in codes if code[1] <= last and code[2] > first]
    if len(touched) == 1 and touched[0][0] == "equal":
        _, old_first, _, new_first, _ = touched[0]
        return start + _line_shift(old, new, first, old_first, new_first), end + _line_shift(old, new, last, old_first, new_first)
    old_from, old_to = old.starts[touched[0][1]], old.end_of(touched[-1][2] - 1)
    new_from, new_to = _new_span(new, touched[0][3], touched[-1][4])
    return _shifted_inside(before[old_from:old_to], after[new_from:new_to], start - old_from, end - old_from, new_from)


def _line_shift(old: _Lines, new: _Lines, line: int, old_first: int, new_first: int) -> int:
    return new.starts[new_first + line - old_first] - old.starts[line]


def _new_span(new: _Lines, first: int, behind: int) -> tuple[int, int]:
    if first < behind:
        return new.starts[first], new.end_of(behind - 1)
    place = new.starts[first] if first < len(new.starts) else new.end_of(first - 1)
    return place, place


def _shifted_inside(old: str, new: str, start: int, end: int, new_from: int) -> tuple[int, int] | None:
    if new.startswith(old[:end]):
        return new_from + start, new_from + end
    if new.endswith(old[start:]):
        move = len(new) - len(old) + new_from
        return start + move, end + move
    return None


class _Lines:
    """The lines of a text: where each starts, and its content without the line end."""

    def __init__(self, text: str) -> None:
        self.keys: list[str] = []
        self.starts: list[int] = []
        self._length = len(text)
        place = 0
        for line in text.split("\n"):
            self.starts.append(place)
            self.keys.append(line.removesuffix("\r"))
            place += len(line) + 1

    def line_at(self, offset: int) -> int:
        """The line that an offset is on."""
        return bisect_right(self.starts, offset) - 1

    def end_of(self, line: int) -> int:
        """Where the next line starts, or the end of the text."""
        return self.starts[line + 1] if line + 1 < len(self.starts) else self._length


def _opcodes(old: list[str], new: list[str]) -> list[Opcode]:
    """As `SequenceMatcher.get_opcodes`, but common lines at both ends are found first, and a huge changed part is one replacement."""
    head = 0
    shortest = min(len(old), len(new))
    while head < shortest and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < shortest - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    old_middle, new_middle = old[head : len(old) - tail], new[head : len(new) - tail]
    codes: list[Opcode] = [("equal", 0, head, 0, head)] if head else []
    if old_middle and new_middle and len(old_middle) * len(new_middle) <= _MATCHER_LIMIT:
        inner = SequenceMatcher(None, old_middle, new_middle, autojunk=False).get_opcodes()
        codes += ((tag, i1 + head, i2 + head, j1 + head, j2 + head) for tag, i1, i2, j1, j2 in inner)
    elif old_middle or new_middle:
        codes.append(("replace", head, len(old) - tail, head, len(new) - tail))
    if tail:
        codes.append(("equal", len(old) - tail, len(old), len(new) - tail, len(new)))
    return codes
