"""Lines of a note as people count them: list items with what is nested below them, rows of tables, headings, and all others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from obsidian_agent.tools.core.patterns import whole_words
from obsidian_agent.vault.markdown import edits
from obsidian_agent.vault.markdown.lines import Line, scan
from obsidian_agent.vault.text import split_lines

LineKind = Literal["item", "task", "row", "heading", "text"]

_INDENT: Final = re.compile(r"[ \t]*")
_ITEM: Final = re.compile(
    r"(?P<indent>[ \t]*)(?P<marker>[-*+]|(?P<number>\d{1,9})(?P<dot>[.)]))(?P<gap>[ \t]+)(?P<box>\[[^\]\r\n]\][ \t]+)?"
)
TABLE_RULE: Final = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?")
_SMALL: Final = frozenset(
    [
        "a",
        "an",
        "the",
        "about",
        "of",
        "on",
        "in",
        "for",
        "to",
        "with",
        "and",
        "my",
        "that",
        "which",
        "line",
        "bullet",
        "item",
        "task",
        "row",
        "point",
        "entry",
    ],
)
"""Words that tell nothing."""
_WORD: Final = re.compile(r"\w+")
_TAB: Final = 4


@dataclass(frozen=True, slots=True)
class Mark:
    """What begins a list item: its indentation, its marker (`-`, `1.`), the blanks behind that, and its checkbox with blanks, or ""."""

    indent: str
    marker: str
    gap: str
    box: str

    @classmethod
    def of(cls, line: str) -> Mark | None:
        """The mark of a line; None when it is no list item."""
        found = _ITEM.match(line)
        return None if found is None else cls(found["indent"], found["marker"], found["gap"], found["box"] or "")

    @property
    def text(self) -> str:
        """The whole mark."""
        return f"{self.indent}{self.marker}{self.gap}{self.box}"

    @property
    def numbered(self) -> bool:
        """Whether the marker is a number."""
        return self.marker[:1].isdecimal()

    def next(self) -> Mark:
        """The mark of the item behind this one: the following number, or the same."""
        return self.with_number(int(self.marker[:-1]) + 1) if self.numbered else self

    def with_number(self, number: int) -> Mark:
        """The same mark with another number."""
        return Mark(self.indent, f"{number}{self.marker[-1]}", self.gap, self.box)


@dataclass(frozen=True, slots=True)
class Blocks:
    """The lines of a note with their line ends, and what the scan says of them (`scanned[n]` is line n + 1)."""

    lines: list[str]
    scanned: Sequence[Line]
    headings: frozenset[int]
    """Numbers of the lines of headings."""
    rows: frozenset[int]
    """Numbers of the rows of tables, without those above and at the rule."""

    @classmethod
    def of(cls, text: str) -> Blocks:
        """The lines of a text. A byte order mark stays in the first one."""
        lines = split_lines(text)
        scanned = scan(text)
        headings = frozenset(
            number
            for heading in edits.headings(text)
            for number in range(heading.line, heading.line + text.count("\n", heading.start, heading.end) + (text[heading.end - 1] != "\n"))
        )
        return cls(lines, scanned, headings, frozenset(_rows(scanned)))

    def kind(self, number: int) -> LineKind | None:
        """What a line is, counted from 1; None for blank lines, rules of tables, code, comments and properties."""
        line = self.scanned[number - 1]
        if line.hidden or not line.body.strip():
            return None
        if number in self.headings:
            return "heading"
        if line.depth is not None:
            mark = Mark.of(line.body)
            return "task" if mark is not None and mark.box else "item"
        if number in self.rows:
            return "row"
        return None if TABLE_RULE.fullmatch(line.body) and "|" in line.body else "text"

    def whole(self, number: int) -> range:
        """The numbers of a list item's lines: its own, and those below that are indented deeper, up to a blank one. Of another line its own."""
        own = columns(self.lines[number - 1])
        end = number + 1
        if self.scanned[number - 1].depth is not None:
            while end <= len(self.lines) and self.lines[end - 1].strip() and columns(self.lines[end - 1]) > own:
                end += 1
        return range(number, end)

    def holding(self, wanted: str, numbers: Iterable[int], kinds: Sequence[LineKind]) -> list[int]:
        """The lines of these kinds that hold a text as whole words, in any case; when none does, those with all of its words."""
        there = [number for number in numbers if number <= len(self.lines) and self.kind(number) in kinds]
        pattern = whole_words(wanted)
        found = [number for number in there if pattern.search(self.lines[number - 1])]
        words = _words(wanted)
        return found or [number for number in there if words and words <= _words(self.lines[number - 1])]


def section_lines(text: str, heading: str | None) -> range:
    """The numbers of the lines of a section's body, or of all lines. MARKER_NOT_FOUND when there is no such heading."""
    if heading is None:
        return range(1, len(split_lines(text)) + 1)
    section = edits.section(text, heading)
    first = text.count("\n", 0, section.start) + 1
    last = text.count("\n", 0, section.text_end)
    return range(first, last + 1 + (section.text_end > 0 and not text[: section.text_end].endswith("\n")))


def columns(line: str) -> int:
    """The width of a line's indentation."""
    indent = _INDENT.match(line)
    return len(indent[0].expandtabs(_TAB)) if indent else 0


def indented(line: str, prefix: str) -> str:
    """A line behind another indentation; a blank one stays."""
    return prefix + line if line.strip() else line


def dedented(lines: Sequence[str]) -> str:
    """Lines without the indentation of the first one and without line ends, joined."""
    indent = _INDENT.match(lines[0])
    prefix = indent[0] if indent else ""
    return "\n".join(line.rstrip("\r\n").removeprefix(prefix) for line in lines)


def renumbered(lines: list[str], number: int) -> None:
    """Lets the numbers of a list go on without gaps from the item at a line (from 1), which may be one that was just put there."""
    blocks = Blocks.of("".join(lines))
    first = Mark.of(lines[number - 1]) if number <= len(lines) else None
    if first is None or not first.numbered:
        return
    at, count = number, int(first.marker[:-1])
    while at <= len(lines):
        mark = Mark.of(lines[at - 1])
        if mark is None or not mark.numbered or mark.indent != first.indent:
            return
        lines[at - 1] = mark.with_number(count).text + lines[at - 1][len(mark.text) :]
        at, count = blocks.whole(at).stop, count + 1


def _rows(scanned: Sequence[Line]) -> Iterator[int]:
    inside = False
    for above, line in zip(scanned, scanned[1:], strict=False):
        if line.hidden or not line.body.strip():
            inside = False
        elif inside:
            yield line.number
        elif "|" in above.body and "|" in line.body and TABLE_RULE.fullmatch(line.body) and not above.hidden:
            inside = True


def _words(text: str) -> frozenset[str]:
    """The words of a text that tell something, without case and plural."""
    found = (word.casefold() for word in _WORD.findall(text))
    return frozenset(word.removesuffix("s") if len(word) > 3 else word for word in found if word not in _SMALL)
