"""The lines of a unified diff as data for the screen, safe to display."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from obsidian_agent import terminal_text

LineKind = Literal["add", "del", "same", "hunk", "note"]
WORD_LIMIT = 2_000
"""Characters beyond which lines get no word marks, as comparing them is too slow."""

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)")
_WORDS = re.compile(r"\w+|\s+|.")


class DiffLine(Struct, frozen=True):
    """A line with its 1-based number on each side, None where it does not exist.

    `pair` is the index of its counterpart on the other side.
    """

    kind: LineKind
    text: str
    old: int | None = None
    new: int | None = None
    pair: int | None = None


class Diff(Struct, frozen=True):
    """The lines of a diff with the counts of added and removed ones."""

    lines: tuple[DiffLine, ...] = ()
    added: int = 0
    removed: int = 0

    def changes(self) -> list[int]:
        """Return the indices at which a run of changed lines starts."""
        return [start for start, _ in self.runs()]

    def runs(self) -> list[tuple[int, int]]:
        """Return the runs of changed lines, each as its first index and the index after it."""
        runs: list[tuple[int, int]] = []
        start: int | None = None
        for index, line in enumerate(self.lines):
            if line.kind in ("add", "del"):
                start = index if start is None else start
            elif start is not None and line.kind != "note":
                runs.append((start, index))
                start = None
        if start is not None:
            runs.append((start, len(self.lines)))
        return runs

    def substitutions(self) -> tuple[tuple[str, str], ...]:
        """Return what is replaced by what, each pair once.

        Of two lines that replace each other these are the words that differ; a line without a
        counterpart is replaced by "", or replaces it.
        """
        pairs: dict[tuple[str, str], None] = {}
        for line in self.lines:
            if line.kind == "del":
                new = "" if line.pair is None else self.lines[line.pair].text
                pairs[_differing_words(line.text, new) if new else (line.text, "")] = None
            elif line.kind == "add" and line.pair is None:
                pairs["", line.text] = None
        return tuple(pairs)


def joined(parts: Sequence[Diff]) -> Diff:
    """Return several diffs one after the other as one."""
    lines: list[DiffLine] = []
    for part in parts:
        start = len(lines)
        lines += [
            line if line.pair is None else replace(line, pair=line.pair + start)
            for line in part.lines
        ]
    return Diff(
        tuple(lines), sum(part.added for part in parts), sum(part.removed for part in parts)
    )


def parse_diff(text: str) -> Diff:
    """Parse a unified diff of one file without its headers, and make its texts safe to display."""
    lines: list[DiffLine] = []
    old = new = old_left = new_left = 0
    # Only "\n" ends a line: other line breaks belong to the text and are displayed as symbols.
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
    lines = list(_paired(_without_end_change(lines)))
    if any(line.text.endswith("\r") for line in lines):
        lines = _with_marked_ends(lines)
    return Diff(
        tuple(lines),
        sum(line.kind == "add" for line in lines),
        sum(line.kind == "del" for line in lines),
    )


def _safe(text: str) -> str:
    """Return a line as it is displayed. A "\\r" at its end stays until the ends are compared."""
    bare = text.removesuffix("\r")
    return terminal_text.line(bare.expandtabs(4)) + text[len(bare) :]


def _without_end_change(lines: list[DiffLine]) -> list[DiffLine]:
    """Join the last line of a text without a final newline with itself, if lines follow it now.

    A unified diff removes and adds such a line, although only its end is new.
    """
    for index in range(len(lines) - 3):
        removed, note, added, following = lines[index : index + 4]
        if (
            (removed.kind, note.kind, added.kind, following.kind) == ("del", "note", "add", "add")
            and removed.text == added.text.removesuffix("\r")
            and (index == 0 or lines[index - 1].kind != "del")
        ):
            same = DiffLine("same", added.text, removed.old, added.new)
            return [*lines[:index], same, *lines[index + 3 :]]
    return lines


def _with_marked_ends(lines: Sequence[DiffLine]) -> list[DiffLine]:
    """Return the lines without "\\r" at their ends, and with a note if most of the text has it.

    The end of a changed line is marked if it differs from that of the line it replaces, or from
    most lines of the text before.
    """
    ends = [_end(lines, index) for index in range(len(lines))]
    before = [end for line, end in zip(lines, ends, strict=True) if line.kind in ("same", "del")]
    usual = "␍" if before.count("␍") > before.count("␊") else "␊"
    if not any(before):
        usual = "␍" if ends.count("␍") > ends.count("␊") else "␊"
    marked = []
    for line, end in zip(lines, ends, strict=True):
        other = end if line.pair is None else ends[line.pair] or end
        is_odd = line.kind in ("add", "del") and end is not None and {end, other} != {usual}
        text = line.text.removesuffix("\r")
        marked.append(replace(line, text=f"{text}{end}" if is_odd else text))
    if usual == "␊":
        return marked
    shifted = [line if line.pair is None else replace(line, pair=line.pair + 1) for line in marked]
    return [DiffLine("note", "CRLF line ends"), *shifted]


def _end(lines: Sequence[DiffLine], index: int) -> str | None:
    """Return the symbol for the end of a line; None for the last line of a text without one."""
    following = lines[index + 1] if index + 1 < len(lines) else None
    if lines[index].kind not in ("add", "del", "same"):
        return None
    if following is not None and following.kind == "note":
        return None
    return "␍" if lines[index].text.endswith("\r") else "␊"


def _differing_words(old: str, new: str) -> tuple[str, str]:
    """Return the parts of two lines without their equal words at the start and the end."""
    mine, theirs = _WORDS.findall(old), _WORDS.findall(new)
    start, limit = 0, min(len(mine), len(theirs))
    while start < limit and mine[start] == theirs[start]:
        start += 1
    end = 0
    while end < limit - start and mine[-1 - end] == theirs[-1 - end]:
        end += 1
    return "".join(mine[start : len(mine) - end]), "".join(theirs[start : len(theirs) - end])


def _paired(lines: Sequence[DiffLine]) -> Iterator[DiffLine]:
    """Pair the n-th removed line of a run with the n-th added line after it."""
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
    for index, line in enumerate(lines):
        yield replace(line, pair=pairs[index]) if index in pairs else line


def word_marks(text: str, other: str) -> list[tuple[int, int]]:
    """Return the spans of words in `text` that differ from `other`.

    There are none if the lines have too little in common.
    """
    if max(len(text), len(other)) > WORD_LIMIT:
        return []
    mine, theirs = _WORDS.findall(text), _WORDS.findall(other)
    matcher = SequenceMatcher(None, mine, theirs, autojunk=False)
    if matcher.ratio() < 0.4:
        return []
    starts = [0]
    for word in mine:
        starts.append(starts[-1] + len(word))
    return [
        (starts[i1], starts[i2])
        for tag, i1, i2, _, _ in matcher.get_opcodes()
        if tag != "equal" and i2 > i1
    ]
