"""Ranges of a text, found again in a later version of it."""

from __future__ import annotations

from bisect import bisect_right
from difflib import SequenceMatcher

_MATCHER_LIMIT = 4_000_000
"""The largest product of line counts that is compared line by line.

Beyond it a changed part counts as replaced as a whole.
"""
Opcode = tuple[str, int, int, int, int]


def shift_range(before: str, after: str, start: int, end: int) -> tuple[int, int] | None:
    """Return the range in `after` that corresponds to one in `before`, or `None` if it was edited.

    An empty range is a position between characters. The versions are compared line by line; inside
    changed lines, the common prefix and suffix count as unchanged.
    """
    if before == after:
        return start, end
    old, new = _Lines(before), _Lines(after)
    first, last = old.line_at(start), old.line_at(end)
    codes = _opcodes(old.keys, new.keys)
    touched = [code for code in codes if code[1] <= last and code[2] > first]
    if len(touched) == 1 and touched[0][0] == "equal":
        _, old_first, _, new_first, _ = touched[0]
        return start + _line_shift(old, new, first, old_first, new_first), end + _line_shift(
            old, new, last, old_first, new_first
        )
    old_from, old_to = old.starts[touched[0][1]], old.end_of(touched[-1][2] - 1)
    new_from, new_to = _new_span(new, touched[0][3], touched[-1][4])
    return _shifted_inside(
        before[old_from:old_to], after[new_from:new_to], start - old_from, end - old_from, new_from
    )


def _line_shift(old: _Lines, new: _Lines, line: int, old_first: int, new_first: int) -> int:
    return new.starts[new_first + line - old_first] - old.starts[line]


def _new_span(new: _Lines, first: int, end: int) -> tuple[int, int]:
    if first < end:
        return new.starts[first], new.end_of(end - 1)
    position = new.starts[first] if first < len(new.starts) else new.end_of(first - 1)
    return position, position


def _shifted_inside(
    old: str, new: str, start: int, end: int, new_from: int
) -> tuple[int, int] | None:
    if new.startswith(old[:end]):
        return new_from + start, new_from + end
    if new.endswith(old[start:]):
        move = len(new) - len(old) + new_from
        return start + move, end + move
    return None


class _Lines:
    """The lines of a text: their start positions, and their contents without line endings."""

    def __init__(self, text: str) -> None:
        self.keys: list[str] = []
        self.starts: list[int] = []
        self._length = len(text)
        position = 0
        for line in text.split("\n"):
            self.starts.append(position)
            self.keys.append(line.removesuffix("\r"))
            position += len(line) + 1

    def line_at(self, offset: int) -> int:
        """Return the line of an offset."""
        return bisect_right(self.starts, offset) - 1

    def end_of(self, line: int) -> int:
        """Return the start of the next line, or the end of the text."""
        return self.starts[line + 1] if line + 1 < len(self.starts) else self._length


def _opcodes(old: list[str], new: list[str]) -> list[Opcode]:
    """Compute the opcodes of `SequenceMatcher.get_opcodes`, faster.

    Common lines at both ends are skipped first, and a huge changed part is one replacement.
    """
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
        codes += (
            (tag, i1 + head, i2 + head, j1 + head, j2 + head) for tag, i1, i2, j1, j2 in inner
        )
    elif old_middle or new_middle:
        codes.append(("replace", head, len(old) - tail, head, len(new) - tail))
    if tail:
        codes.append(("equal", len(old) - tail, len(old), len(new) - tail, len(new)))
    return codes
