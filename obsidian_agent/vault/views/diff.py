"""Unified diffs of net changes: exact, and fast enough for ten thousand of them.

Lines end at "\\n" only, so a "\\r" stays visible as part of its line. The lines that two texts
share at their start and end are removed before difflib compares the rest; most edits of notes leave
a line or two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from difflib import Match, SequenceMatcher
from itertools import accumulate

from msgspec import Struct

CONTEXT = 3
DIFFLIB_LIMIT = 3_000
"""Maximum number of lines of a changed region that difflib compares, because it is quadratic.

Larger regions are displayed as removed and added completely.
"""

DIFFLIB_WORK = 3_000_000
"""Maximum number of comparisons by difflib for one file. Many equal lines need more.

Their region is displayed as removed and added completely.
"""

NO_NEWLINE = "\\ No newline at end of file\n"

Opcode = tuple[str, int, int, int, int]


def unified_diff(before: bytes | None, after: bytes | None, old_name: str, new_name: str) -> str:
    """Return the unified diff of two contents. None: the file does not exist on that side.

    Return "" if they are equal or one of them is not UTF-8.
    """
    try:
        old = _lines(before)
        new = _lines(after)
    except UnicodeDecodeError:
        return ""
    if old == new:
        return ""
    parts = [
        f"--- {'/dev/null' if before is None else old_name}\n",
        f"+++ {'/dev/null' if after is None else new_name}\n",
    ]
    for group in _hunks(_opcodes(old, new)):
        _render(group, old, new, parts)
    return "".join(parts)


class TextEdit(Struct, frozen=True):
    """A run of changed lines: at line `start` (from 0), `old` lines are replaced by `new` ones.

    The lines have their ends.
    """

    start: int
    old: tuple[str, ...]
    new: tuple[str, ...]


def text_edits(before: bytes, after: bytes) -> list[TextEdit]:
    """Return the edits from one text to another, in the order and number of their diff's runs.

    Return none if one of them is not UTF-8.
    """
    try:
        old, new = _lines(before), _lines(after)
    except UnicodeDecodeError:
        return []
    return [
        TextEdit(i1, tuple(old[i1:i2]), tuple(new[j1:j2]))
        for _, i1, i2, j1, j2 in _opcodes(old, new)
    ]


def without_edits(before: bytes, after: bytes, left_out: Collection[TextEdit]) -> bytes:
    """Return `after` without some of its edits: these lines are as in `before`."""
    edits = text_edits(before, after)
    if not any(edit in left_out for edit in edits):
        return after
    old = _lines(before)
    lines: list[str] = []
    at = 0
    for edit in edits:
        lines += old[at : edit.start]
        lines += edit.old if edit in left_out else edit.new
        at = edit.start + len(edit.old)
    return "".join([*lines, *old[at:]]).encode()


def _lines(data: bytes | None) -> list[str]:
    if not data:
        return []
    lines = data.decode("utf-8").split("\n")
    last = lines.pop()
    ended = [line + "\n" for line in lines]
    return [*ended, last] if last else ended


def _opcodes(old: Sequence[str], new: Sequence[str]) -> list[Opcode]:
    """Return the changed regions as difflib opcodes, without "equal"."""
    start, limit = 0, min(len(old), len(new))
    while start < limit and old[start] == new[start]:
        start += 1
    end = 0
    while end < limit - start and old[-1 - end] == new[-1 - end]:
        end += 1
    a, b = old[start : len(old) - end], new[start : len(new) - end]
    if len(a) == len(b):
        changed = [
            index
            for index, (mine, theirs) in enumerate(zip(a, b, strict=True), start)
            if mine != theirs
        ]
        if {old[index] for index in changed}.isdisjoint(new[index] for index in changed):
            return _edited_in_place(changed)
    if not a or not b or max(len(a), len(b)) > DIFFLIB_LIMIT:
        return [("replace", start, start + len(a), start, start + len(b))]
    try:
        codes = _BoundedMatcher(a, b).get_opcodes()
    except _TooAlike:
        return [("replace", start, start + len(a), start, start + len(b))]
    return [
        (tag, i1 + start, i2 + start, j1 + start, j2 + start)
        for tag, i1, i2, j1, j2 in codes
        if tag != "equal"
    ]


class _TooAlike(Exception):
    """Too many lines of both sides are equal."""


class _BoundedMatcher(SequenceMatcher[str]):
    """A matcher that raises `_TooAlike` after `DIFFLIB_WORK` comparisons of lines."""

    def __init__(self, a: Sequence[str], b: Sequence[str]) -> None:
        super().__init__(None, a, b, autojunk=False)
        counts = Counter(b)
        self._work_until = list(accumulate((counts[line] for line in a), initial=0))
        self._work = 0

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> Match:
        self._work += self._work_until[-1 if ahi is None else ahi] - self._work_until[alo]
        if self._work > DIFFLIB_WORK:
            raise _TooAlike
        return super().find_longest_match(alo, ahi, blo, bhi)


def _edited_in_place(changed: Sequence[int]) -> list[Opcode]:
    """Return the opcodes of lines that were edited in place, given by their numbers.

    difflib would return the same at ten times the cost.
    """
    codes: list[Opcode] = []
    for at in changed:
        first = codes.pop()[1] if codes and codes[-1][2] == at else at
        codes.append(("replace", first, at + 1, first, at + 1))
    return codes


def _hunks(codes: list[Opcode]) -> Iterator[list[Opcode]]:
    """Group changed regions whose context would touch."""
    group: list[Opcode] = []
    for code in codes:
        if group and code[1] - group[-1][2] > 2 * CONTEXT:
            yield group
            group = []
        group.append(code)
    if group:
        yield group


def _render(group: list[Opcode], old: Sequence[str], new: Sequence[str], parts: list[str]) -> None:
    first, last = group[0], group[-1]
    lead = min(CONTEXT, first[1], first[3])
    tail = min(CONTEXT, len(old) - last[2])
    i, stop = first[1] - lead, last[2] + tail
    j, new_stop = first[3] - lead, last[4] + tail
    parts.append(f"@@ -{_range(i, stop)} +{_range(j, new_stop)} @@\n")
    for _, i1, i2, j1, j2 in group:
        _add_lines(" ", old[i:i1], parts)
        _add_lines("-", old[i1:i2], parts)
        _add_lines("+", new[j1:j2], parts)
        i = i2
    _add_lines(" ", old[i:stop], parts)


def _add_lines(sign: str, lines: Sequence[str], parts: list[str]) -> None:
    for line in lines:
        if line.endswith("\n"):
            parts.append(sign + line)
        else:
            parts.append(f"{sign}{line}\n{NO_NEWLINE}")


def _range(start: int, stop: int) -> str:
    length = stop - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"
