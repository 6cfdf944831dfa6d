"""Three-way merge of a file and its conflict copy: the text by lines, properties by key.

No line is lost silently: one is left out only if the common base has it and one side removed it.
What both sides changed differently stays twice, in git's conflict marks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, Final, NamedTuple

from merge3 import Merge3
from msgspec import Struct

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.vault.frontmatter.properties import (
    edit_properties,
    find_frontmatter,
    read_properties,
    same,
)
from obsidian_agent.vault.text import newline_of, split_lines, with_newlines

_MISSING: Final = object()
_MIN_LIKENESS: Final = 0.5
"""The share of lines that a base has in common with the copy."""


class Merged(Struct, frozen=True):
    """A merged text. `is_clean`: the base is known, and no change overlaps with another."""

    text: str
    is_clean: bool


class _Undecided(Exception):
    """Both sides changed a property, or it cannot be merged by key."""


def common_base(versions: Sequence[str], own: str, copy: str) -> str | None:
    """Return the earlier version that a copy comes from: the most similar one, the older on a tie.

    `versions` are those of the file, the newest first; the newest is often its present text `own`.
    Return None if that is the most similar, because then the copy may be older or newer, and if all
    of them are too different.
    """
    best, best_ratio = None, _MIN_LIKENESS
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(split_lines(with_newlines(copy, "\n")))
    for version in versions:
        matcher.set_seq1(split_lines(with_newlines(version, "\n")))
        ratio = matcher.ratio()
        if ratio >= best_ratio:
            best, best_ratio = version, ratio
    if best is not None and with_newlines(best, "\n") == with_newlines(own, "\n"):
        return None
    return best


def merge_texts(own: str, copy: str, base: str | None, names: tuple[str, str]) -> Merged:
    """Merge a file with its copy, whose `names` are in the marks of conflicts.

    Properties that cannot be merged by key are merged as lines. The line ends are those of `own`.
    """
    newline = newline_of(own)
    copy = with_newlines(copy, newline)
    old = None if base is None else with_newlines(base, newline)
    try:
        head = _merged_properties(own, copy, old)
    except (_Undecided, ObsidianAgentError):
        head = ""
    else:
        own, copy = _body(own), _body(copy)
        old = None if old is None else _body(old)
    own_lines, copy_lines = split_lines(own), split_lines(copy)
    # Without a base, the common lines serve as one: no line counts as removed.
    base_lines = _common_lines(own_lines, copy_lines) if old is None else split_lines(old)
    merge = _LineMerge(base_lines, own_lines, copy_lines, newline, names)
    text = head + "".join(merge.lines())
    return Merged(text, base is not None and merge.conflicts == 0)


def _body(text: str) -> str:
    front = find_frontmatter(text)
    return text if front is None else text[front.body_start :]


def _merged_properties(own: str, copy: str, base: str | None) -> str:
    """Return the block of properties of both sides, "" if there is none."""
    front = find_frontmatter(own)
    if not _comments(copy) <= _comments(own):
        raise _Undecided
    mine, theirs = read_properties(own), read_properties(copy)
    old = read_properties(base) if base is not None else {}
    changes: dict[str, Any] = {}
    removed: list[str] = []
    for key in dict.fromkeys([*mine, *theirs]):
        before = old.get(key, _MISSING)
        value = _merged_value(mine.get(key, _MISSING), theirs.get(key, _MISSING), before)
        if value is _MISSING and key in mine:
            removed.append(key)
        elif value is not _MISSING and not (key in mine and same(mine[key], value)):
            changes[key] = value
    text = own[: front.body_start] if front is not None else ""
    if changes or removed:
        text = edit_properties(text, set=changes, remove=removed)
    return text


def _comments(text: str) -> set[str]:
    front = find_frontmatter(text)
    block = text[: front.body_start] if front is not None else ""
    return {line.strip() for line in block.splitlines() if "#" in line}


def _merged_value(mine: Any, theirs: Any, before: Any) -> Any:
    """Return the value of a property after a merge. Raise _Undecided if both sides changed it."""
    if _equal(mine, theirs) or _equal(theirs, before):
        return mine
    if _equal(mine, before):
        return theirs
    if isinstance(mine, list) and isinstance(theirs, list):
        old = before if isinstance(before, list) else []
        remaining = [value for value in mine if value in theirs or value not in old]
        return remaining + [value for value in theirs if value not in mine and value not in old]
    raise _Undecided


def _equal(one: Any, other: Any) -> bool:
    if one is _MISSING or other is _MISSING:
        return one is other
    return same(one, other)


def _common_lines(own: Sequence[str], copy: Sequence[str]) -> list[str]:
    blocks = SequenceMatcher(None, own, copy, autojunk=False).get_matching_blocks()
    return [line for block in blocks for line in own[block.a : block.a + block.size]]


class _LineMerge:
    """The merge of three lists of lines. `conflicts` counts the marked ones in `lines()`."""

    def __init__(
        self,
        base: Sequence[str],
        own: Sequence[str],
        copy: Sequence[str],
        newline: str,
        names: tuple[str, str],
    ) -> None:
        self._base, self._own, self._copy = base, own, copy
        self._newline = newline
        self._names = names
        self.conflicts = 0

    def lines(self) -> Iterator[str]:
        """Yield the merged lines."""
        last = ""
        for line in self._regions():
            if last and not last.endswith("\n"):
                last += self._newline
            if last:
                yield last
            last = line
        if last:
            yield last

    def _regions(self) -> Iterator[str]:
        for kind, *span in Merge3(self._base, self._own, self._copy).merge_regions():
            match kind:
                case "unchanged":
                    yield from self._base[span[0] : span[1]]
                case "a" | "same":
                    yield from self._own[span[0] : span[1]]
                case "b":
                    yield from self._copy[span[0] : span[1]]
                case _:
                    base = self._base[span[0] : span[1]]
                    own, copy = self._own[span[2] : span[3]], self._copy[span[4] : span[5]]
                    combined = _combined(base, own, copy)
                    yield from self._conflict(own, copy) if combined is None else combined

    def _conflict(self, own: Sequence[str], copy: Sequence[str]) -> list[str]:
        """Return both versions of some lines in the marks of a conflict."""
        self.conflicts += 1
        return [
            f"<<<<<<< {self._names[0]}{self._newline}",
            *own,
            f"======={self._newline}",
            *copy,
            f">>>>>>> {self._names[1]}{self._newline}",
        ]


class _LineEdit(NamedTuple):
    """New lines for the lines of a base from `start` to `end`."""

    start: int
    end: int
    lines: tuple[str, ...]


def _combined(base: Sequence[str], own: Sequence[str], copy: Sequence[str]) -> list[str] | None:
    """Return lines with the edits of both sides, or None if two edits concern the same lines.

    Edits of neighbouring lines are not a conflict, unlike for `Merge3`.
    """
    if not base:
        return None
    edits = sorted({*_line_edits(base, own), *_line_edits(base, copy)})
    combined: list[str] = []
    position, last = 0, None
    for edit in edits:
        if edit.start < position or (last is not None and last[:2] == edit[:2]):
            return None
        combined += base[position : edit.start]
        combined += edit.lines
        position, last = edit.end, edit
    return combined + list(base[position:])


def _line_edits(base: Sequence[str], lines: Sequence[str]) -> Iterator[_LineEdit]:
    opcodes = SequenceMatcher(None, base, lines, autojunk=False).get_opcodes()
    for tag, start, end, new_start, new_end in opcodes:
        if tag != "equal":
            yield _LineEdit(start, end, tuple(lines[new_start:new_end]))
