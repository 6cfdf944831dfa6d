"""Three-way merge of a file and its conflict copy: the text by lines, properties by key.

No line is lost silently: one is left out only if the common base has it and one side removed it.
What both sides changed differently stays twice, in git's conflict marks; of a property, the value
of the file stays. Blanks at the ends of lines are those of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import cached_property
from itertools import product, takewhile
from operator import itemgetter
from typing import Any, Final

from merge3 import Merge3
from msgspec import Struct

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.vault.frontmatter.properties import (
    edit_properties,
    find_frontmatter,
    read_properties,
    same,
)
from obsidian_agent.vault.markdown.lines import scan
from obsidian_agent.vault.text import newline_of, split_lines, with_newlines

_MISSING: Final = object()
_ITEM: Final = re.compile(r"(?P<indent>[ \t]*)(?:[-*+]|\d{1,9}[.)])[ \t]+\S")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?…]) (?=\S)|(?<=[-*+] \[.\]) (?=\S)")
_SIMILAR: Final = 75
"""The likeness, of at most 100, of a line and what an edit added of it."""
_MAX_PAIRS: Final = 2_000
_Span = tuple[int, int]
"""The first line of a range, and the one behind it."""

_MIN_LIKENESS: Final = 0.5
"""The share of lines that a base has in common with the copy."""


class Merged(Struct, frozen=True):
    """A merged text. `is_clean`: the base is known, and no change overlaps with another.

    `has_marks`: lines stay twice. `has_other_properties`: some of the copy are left out.
    """

    text: str
    is_clean: bool
    has_marks: bool = False
    has_other_properties: bool = False


class _Undecided(Exception):
    """Both sides changed a property."""


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

    The line ends are those of `own`.
    """
    newline = newline_of(own)
    copy = with_newlines(copy, newline)
    old = None if base is None else with_newlines(base, newline)
    try:
        head, is_decided = _merged_properties(own, copy, old)
    except ObsidianAgentError:
        head, is_decided = _head(own), _head(own) == _head(copy)
    own_lines = split_lines(_body(own))
    copy_lines = _with_blanks_of(own_lines, split_lines(_body(copy)))
    old_lines = None if old is None else _with_blanks_of(own_lines, split_lines(_body(old)))
    merge = _LineMerge(old_lines, own_lines, copy_lines, newline, names)
    text = head + "".join(merge.lines())
    return Merged(
        text,
        is_clean=base is not None and merge.conflicts == 0 and is_decided,
        has_marks=merge.conflicts > 0,
        has_other_properties=not is_decided,
    )


def is_same_text(own: str, copy: str) -> bool:
    """Return whether two texts differ at most in line ends, and in blanks before those."""
    return _without_blanks(split_lines(own.rstrip())) == _without_blanks(split_lines(copy.rstrip()))


def _without_blanks(lines: Sequence[str]) -> list[str]:
    return [line.rstrip() for line in lines]


def _with_blanks_of(own: Sequence[str], lines: Sequence[str]) -> list[str]:
    """Return lines with the blanks at their ends that the same lines of the file have."""
    matcher = SequenceMatcher(None, _without_blanks(own), _without_blanks(lines), autojunk=False)
    result = list(lines)
    for block in matcher.get_matching_blocks():
        result[block.b : block.b + block.size] = own[block.a : block.a + block.size]
    return result


def _head(text: str) -> str:
    """Return the block of properties, "" if there is none."""
    front = find_frontmatter(text)
    return "" if front is None else text[: front.body_start]


def _body(text: str) -> str:
    return text[len(_head(text)) :]


def _merged_properties(own: str, copy: str, base: str | None) -> tuple[str, bool]:
    """Return the block of properties of both sides, and whether it has all of them.

    Where both sides have a value of their own, it is that of `own`.
    """
    is_decided = _comments(copy) <= _comments(own)
    mine, theirs = read_properties(own), read_properties(copy)
    old = read_properties(base) if base is not None else {}
    changes: dict[str, Any] = {}
    removed: list[str] = []
    for key in dict.fromkeys([*mine, *theirs]):
        before = old.get(key, _MISSING)
        value = mine.get(key, _MISSING)
        try:
            value = _merged_value(value, theirs.get(key, _MISSING), before)
        except _Undecided:
            is_decided = False
        if value is _MISSING and key in mine:
            removed.append(key)
        elif value is not _MISSING and not (key in mine and same(mine[key], value)):
            changes[key] = value
    text = _head(own)
    if changes or removed:
        text = edit_properties(text, set=changes, remove=removed)
    return text, is_decided


def _comments(text: str) -> set[str]:
    return {line.strip() for line in _head(text).splitlines() if "#" in line}


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
        base: Sequence[str] | None,
        own: Sequence[str],
        copy: Sequence[str],
        newline: str,
        names: tuple[str, str],
    ) -> None:
        # Without a base, the common lines serve as one: no line counts as removed.
        self._base = _common_lines(own, copy) if base is None else base
        self._has_base = base is not None
        self._own, self._copy = own, copy
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
                    is_text = self._has_base and self._code.isdisjoint(range(span[2], span[3]))
                    combined = _combined(base, own, copy) if is_text else None
                    yield from self._conflict(own, copy) if combined is None else combined

    @cached_property
    def _code(self) -> set[int]:
        """The lines of the file in which each line depends on the others."""
        return {line.number - 1 for line in scan("".join(self._own)) if line.hidden}

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


def _combined(base: Sequence[str], own: Sequence[str], copy: Sequence[str]) -> list[str] | None:
    """Return lines with the edits of both sides, or None if two edits concern the same lines.

    Edits of neighbouring lines are not a conflict, unlike for `Merge3`, nor are those of different
    sentences of a line, and lines that both sides add at one place.
    """
    edits = _line_edits(base, own)
    for span, edit in _line_edits(base, copy).items():
        old = base[span[0] : span[1]]
        joined = _joined(old, edits[span], edit) if span in edits else edit
        if joined is None:
            return None
        edits[span] = joined
    combined: list[str] = []
    position = 0
    for (start, end), lines in sorted(edits.items()):
        if start < position:
            return None
        combined += base[position:start]
        combined += lines
        position = end
    return combined + list(base[position:])


def _joined(old: Sequence[str], own: Sequence[str], copy: Sequence[str]) -> Sequence[str] | None:
    """Return the lines that both sides put in the place of old ones, or None if they contradict."""
    if own == copy:
        return own
    if old:
        return _joined_sentences(old, own, copy)
    before = _common_start(own, copy)
    after = _common_start(own[before:][::-1], copy[before:][::-1])
    first, second = own[before : len(own) - after], copy[before : len(copy) - after]
    if not (_are_items(first, second) or _are_different(first, second)):
        return None
    return [*own[: len(own) - after], *second, *own[len(own) - after :]]


def _joined_sentences(*versions: Sequence[str]) -> list[str] | None:
    """Return a line with the edits of both sides, or None if two concern the same sentence.

    A paragraph is one line, and so are a checkbox and its task.
    """
    if any(len(lines) != 1 for lines in versions):
        return None
    base, own, copy = (_SENTENCE_END.split(line.rstrip("\r\n")) for (line,) in versions)
    sentences = _combined(base, own, copy) if max(map(len, (base, own, copy))) > 1 else None
    line = versions[1][0]
    return None if sentences is None else [" ".join(sentences) + line[len(line.rstrip("\r\n")) :]]


def _common_start(own: Sequence[str], copy: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(own, copy, strict=False)))


def _are_items(own: Sequence[str], copy: Sequence[str]) -> bool:
    """Return whether lines are items of one list, or items within those."""
    items = [_ITEM.match(line) for line in (*own, *copy)]
    levels = [len(item["indent"].expandtabs(4)) for item in items if item is not None]
    is_list = bool(own and copy) and len(levels) == len(items)
    return is_list and levels[0] == levels[len(own)] == min(levels)


def _are_different(own: Sequence[str], copy: Sequence[str]) -> bool:
    """Return whether no line is another version of one of the other side."""
    from rapidfuzz import fuzz

    if len(own) * len(copy) > _MAX_PAIRS:
        return False
    pairs = product(filter(str.strip, own), filter(str.strip, copy))
    return all(fuzz.ratio(*pair) < _SIMILAR for pair in pairs)


def _line_edits(base: Sequence[str], lines: Sequence[str]) -> dict[_Span, Sequence[str]]:
    """Return the new lines for each range of lines of a base, which is empty for an insertion."""
    opcodes = SequenceMatcher(None, base, lines, autojunk=False).get_opcodes()
    edits: dict[_Span, Sequence[str]] = {}
    for tag, start, end, new_start, new_end in opcodes:
        if tag != "equal":
            edits |= _parts(start, base[start:end], lines[new_start:new_end])
    return edits


def _parts(
    start: int, old: Sequence[str], new: Sequence[str]
) -> Iterator[tuple[_Span, Sequence[str]]]:
    """Yield an edit for each line that became a similar one, and one for the lines between."""
    done = added = 0
    for at, position in (*_similar_lines(old, new), (len(old), len(new))):
        if done < at or added < position:
            yield (start + done, start + at), new[added:position]
        if at < len(old):
            yield (start + at, start + at + 1), [new[position]]
        done, added = at + 1, position + 1


def _similar_lines(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return the positions of lines that are alike, in order, so that they are most alike."""
    if len(old) * len(new) > _MAX_PAIRS:
        return []
    from rapidfuzz import fuzz

    best: list[list[tuple[float, list[tuple[int, int]]]]] = [[(0.0, [])] * (len(new) + 1)]
    for row, line in enumerate(old):
        above, here = best[-1], [(0.0, list[tuple[int, int]]())]
        for column, other in enumerate(new):
            choices = [above[column + 1], here[column]]
            if (likeness := fuzz.ratio(line, other)) >= _SIMILAR:
                score, pairs = above[column]
                choices.append((score + likeness, [*pairs, (row, column)]))
            here.append(max(choices, key=itemgetter(0)))
        best.append(here)
    return best[-1][-1][1]
