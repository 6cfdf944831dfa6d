"""A unified diff as lines with numbers, the words that differ, and how long lines wrap. No widgets here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal

from rich.cells import cell_len

from obsidian_agent import terminal_text
from obsidian_agent.dataclass import dataclass

LineKind = Literal["add", "del", "same", "hunk", "note"]
WORD_LIMIT = 2_000
"""Pairs of longer lines get no word marks: comparing them costs more than it helps."""

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)")
_WORDS = re.compile(r"\w+|\s+|.")


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line: `old` and `new` are 1-based line numbers where the line exists on that side; `pair` is the index of its counterpart."""

    kind: LineKind
    text: str
    old: int | None = None
    new: int | None = None
    pair: int | None = None


@dataclass(frozen=True, slots=True)
class Diff:
    """All lines of a diff, with counts of added and removed lines."""

    lines: tuple[DiffLine, ...] = ()
    added: int = 0
    removed: int = 0

    def changes(self) -> list[int]:
        """Indices where a run of changed lines begins."""
        kinds = [line.kind in ("add", "del") for line in self.lines]
        return [index for index, changed in enumerate(kinds) if changed and (index == 0 or not kinds[index - 1])]


def parse(text: str) -> Diff:
    """Read a unified diff of one file. Its texts become safe to show; file headers are left out."""
    lines: list[DiffLine] = []
    old = new = old_left = new_left = 0
    # Only "\n" ends a line: other line breaks belong to the text and are shown as symbols.
    for raw in text.removesuffix("\n").split("\n") if text else ():
        if hunk := _HUNK.match(raw):
            old, new = int(hunk[1]), int(hunk[3])
            old_left, new_left = int(hunk[2] or 1), int(hunk[4] or 1)
            lines.append(DiffLine("hunk", terminal_text.line(f"Line {max(new, 1)}{hunk[5]}")))
            continue
        sign, body = raw[:1], raw[1:]
        if sign == "\\":
            lines.append(DiffLine("note", "no newline at the end"))
        elif old_left <= 0 and new_left <= 0:
            continue
        elif sign == "+":
            lines.append(DiffLine("add", _safe(body), None, new))
            new, new_left = new + 1, new_left - 1
        elif sign == "-":
            lines.append(DiffLine("del", _safe(body), old, None))
            old, old_left = old + 1, old_left - 1
        else:
            lines.append(DiffLine("same", _safe(body), old, new))
            old, new, old_left, new_left = old + 1, new + 1, old_left - 1, new_left - 1
    return Diff(tuple(_paired(lines)), sum(line.kind == "add" for line in lines), sum(line.kind == "del" for line in lines))


def _safe(text: str) -> str:
    return terminal_text.line(text.expandtabs(4)) if "\t" in text else terminal_text.line(text)


def _paired(lines: Sequence[DiffLine]) -> Iterator[DiffLine]:
    """Give the n-th removed line of a run the n-th added line after it as its counterpart."""
    pairs: dict[int, int] = {}
    index = 0
    while index < len(lines):
        if lines[index].kind != "del":
            index += 1
            continue
        start = index
        while index < len(lines) and lines[index].kind == "del":
            index += 1
        middle = index
        while index < len(lines) and lines[index].kind == "add":
            index += 1
        for step in range(min(middle - start, index - middle)):
            pairs[start + step] = middle + step
            pairs[middle + step] = start + step
    for at, line in enumerate(lines):
        yield DiffLine(line.kind, line.text, line.old, line.new, pairs[at]) if at in pairs else line


def word_marks(text: str, other: str) -> list[tuple[int, int]]:
    """Spans of `text` that differ from `other`, by words; none when the lines have too little in common to compare."""
    if max(len(text), len(other)) > WORD_LIMIT:
        return []
    mine, theirs = _WORDS.findall(text), _WORDS.findall(other)
    matcher = SequenceMatcher(None, mine, theirs, autojunk=False)
    if matcher.ratio() < 0.4:
        return []
    starts = [0]
    for word in mine:
        starts.append(starts[-1] + len(word))
    return [(starts[i1], starts[i2]) for tag, i1, i2, _, _ in matcher.get_opcodes() if tag != "equal" and i2 > i1]


def wrap(text: str, width: int) -> list[tuple[int, int]]:
    """Where a line breaks so that each part fits into `width` cells: after blanks where possible. Always at least one part."""
    if len(text) * 2 <= width or width < 2 or (text.isascii() and len(text) <= width):
        return [(0, len(text))]
    parts: list[tuple[int, int]] = []
    start = cells = 0
    blank = 0
    for index, char in enumerate(text):
        size = 1 if char.isascii() else cell_len(char)
        while cells + size > width:
            cut = blank if blank > start else index
            parts.append((start, cut))
            start, cells = cut, cell_len(text[cut:index])
        cells += size
        if char == " ":
            blank = index + 1
    parts.append((start, len(text)))
    return parts
