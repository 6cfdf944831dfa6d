"""Lines of a note by kind: list items with their nested lines, table rows, headings, and others.

New lines adapt to their surroundings, above all in lists (`vault.addLines`); others are removed or
replaced (`vault.takeLines`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

from msgspec import Struct
from pydantic import Field, model_validator

from obsidian_agent.errors import Problem, ToolError
from obsidian_agent.tools.core.lookup import open_note
from obsidian_agent.tools.core.models import INTO, ToolModel, Whole
from obsidian_agent.tools.core.patterns import whole_words
from obsidian_agent.tools.core.tool import LongText, PathText, Proposal, Risk, ToolContext, tool
from obsidian_agent.vault.markdown import edits
from obsidian_agent.vault.markdown.lines import Line, scan
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.text import BOM, encode, newline_of, split_lines
from obsidian_agent.vault.views.changes import ModifyFile, content_hash

LineKind = Literal["item", "task", "row", "heading", "text"]

_INDENT: Final = re.compile(r"[ \t]*")
_ITEM: Final = re.compile(
    r"(?P<indent>[ \t]*)(?P<marker>[-*+]|(?P<number>\d{1,9})(?P<dot>[.)]))(?P<gap>[ \t]+)"
    r"(?P<box>\[[^\]\r\n]\][ \t]+)?"
)
TABLE_RULE: Final = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?")
_SMALL: Final = frozenset((
    "a", "an", "the", "about", "of", "on", "in", "for", "to", "with", "and",
    "my", "that", "which", "line", "bullet", "item", "task", "row", "point", "entry",
))  # fmt: skip
"""Words without meaning for a search."""
_WORD: Final = re.compile(r"\w+")
_TAB: Final = 4


_DEFAULT_MARKER: Final = "-"

_KINDS: Final[dict[str, tuple[LineKind, ...]]] = {
    "line": ("item", "task", "row", "text"),
    "item": ("item", "task"),
    "task": ("task",),
    "row": ("row",),
}


class ListMark(Struct, frozen=True):
    """The beginning of a list item.

    It has an indentation, a marker (`-`, `1.`), the spaces after it, and the checkbox with its
    spaces, or "".
    """

    indent: str
    marker: str
    gap: str
    box: str

    @classmethod
    def of(cls, line: str) -> ListMark | None:
        """Return the mark of a line, or `None` if it is not a list item."""
        match = _ITEM.match(line)
        return (
            None
            if match is None
            else cls(match["indent"], match["marker"], match["gap"], match["box"] or "")
        )

    @property
    def text(self) -> str:
        """The whole mark."""
        return f"{self.indent}{self.marker}{self.gap}{self.box}"

    @property
    def numbered(self) -> bool:
        """True if the marker is a number."""
        return self.marker[:1].isdecimal()

    def next(self) -> ListMark:
        """Return the mark of the following item: the next number, or the same mark."""
        return self.with_number(int(self.marker[:-1]) + 1) if self.numbered else self

    def with_number(self, number: int) -> ListMark:
        """Return the same mark with another number."""
        return ListMark(self.indent, f"{number}{self.marker[-1]}", self.gap, self.box)


class Blocks(Struct, frozen=True):
    """The lines of a note with their line endings and their scan (`scanned[n]` is line n + 1)."""

    lines: list[str]
    scanned: Sequence[Line]
    headings: frozenset[int]
    """The line numbers of headings."""
    rows: frozenset[int]
    """The line numbers of table rows, without header and delimiter row."""

    @classmethod
    def of(cls, text: str) -> Blocks:
        """Return the lines of a text. A byte order mark stays in the first one."""
        lines = split_lines(text)
        scanned = scan(text)
        headings = frozenset(
            number
            for heading in edits.headings(text)
            for number in range(
                heading.line,
                heading.line
                + text.count("\n", heading.start, heading.end)
                + (text[heading.end - 1] != "\n"),
            )
        )
        return cls(lines, scanned, headings, frozenset(_rows(scanned)))

    def kind(self, number: int) -> LineKind | None:
        """Return the kind of a line, counted from 1.

        Blank lines, delimiter rows of tables, code, comments and properties have none.
        """
        line = self.scanned[number - 1]
        if line.hidden or not line.body.strip():
            return None
        if number in self.headings:
            return "heading"
        if line.depth is not None:
            mark = ListMark.of(line.body)
            return "task" if mark is not None and mark.box else "item"
        if number in self.rows:
            return "row"
        return None if TABLE_RULE.fullmatch(line.body) and "|" in line.body else "text"

    def whole(self, number: int) -> range:
        """Return the line numbers of a list item with its nested lines, or of any other line.

        Nested lines are indented deeper and end at a blank line.
        """
        own = columns(self.lines[number - 1])
        end = number + 1
        if self.scanned[number - 1].depth is not None:
            while (
                end <= len(self.lines)
                and self.lines[end - 1].strip()
                and columns(self.lines[end - 1]) > own
            ):
                end += 1
        return range(number, end)

    def holding(self, text: str, numbers: Iterable[int], kinds: Sequence[LineKind]) -> list[int]:
        """Return the lines of these kinds that contain a text as whole words, ignoring case.

        If no line does, return those with all of its words.
        """
        candidates = [
            number for number in numbers if number <= len(self.lines) and self.kind(number) in kinds
        ]
        pattern = whole_words(text)
        matches = [number for number in candidates if pattern.search(self.lines[number - 1])]
        words = _words(text)
        return matches or [
            number for number in candidates if words and words <= _words(self.lines[number - 1])
        ]


def section_lines(text: str, heading: str | None) -> range:
    """Return the line numbers of a section's body, or of all lines.

    Raise MARKER_NOT_FOUND if the heading does not exist.
    """
    if heading is None:
        return range(1, len(split_lines(text)) + 1)
    section = edits.section(text, heading)
    first = text.count("\n", 0, section.start) + 1
    last = text.count("\n", 0, section.text_end)
    return range(
        first, last + 1 + (section.text_end > 0 and not text[: section.text_end].endswith("\n"))
    )


def columns(line: str) -> int:
    """Return the width of a line's indentation."""
    indent = _INDENT.match(line)
    return len(indent[0].expandtabs(_TAB)) if indent else 0


def indented(line: str, prefix: str) -> str:
    """Return the line with a prefix; a blank line stays unchanged."""
    return prefix + line if line.strip() else line


def dedented(lines: Sequence[str]) -> str:
    """Join lines without the indentation of the first one and without line endings."""
    indent = _INDENT.match(lines[0])
    prefix = indent[0] if indent else ""
    return "\n".join(line.rstrip("\r\n").removeprefix(prefix) for line in lines)


def renumber(lines: list[str], number: int) -> None:
    """Renumber a list without gaps from the item at line `number` (from 1) on.

    That item may have been inserted just before.
    """
    blocks = Blocks.of("".join(lines))
    first = ListMark.of(lines[number - 1]) if number <= len(lines) else None
    if first is None or not first.numbered:
        return
    at, count = number, int(first.marker[:-1])
    while at <= len(lines):
        mark = ListMark.of(lines[at - 1])
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
        elif (
            "|" in above.body
            and "|" in line.body
            and TABLE_RULE.fullmatch(line.body)
            and not above.hidden
        ):
            inside = True


def _words(text: str) -> frozenset[str]:
    """Return the significant words of a text, without case and plural."""
    words = (word.casefold() for word in _WORD.findall(text))
    return frozenset(
        word.removesuffix("s") if len(word) > 3 else word for word in words if word not in _SMALL
    )


class AddedLinesOutput(ToolModel):
    path: str
    line: int = Field(description="The first line of the new text, from 1.")
    changed: bool
    hash: str


def _proposal(path: VaultPath, before: str, after: str, line: int) -> Proposal[AddedLinesOutput]:
    data = encode(after)
    output = AddedLinesOutput(
        path=path.text, line=line, changed=after != before, hash=content_hash(data)
    )
    return Proposal(output, (ModifyFile(path, data),) if after != before else ())


class HeadedText(ToolModel):
    heading: str = Field(description="Empty: in the whole note.")
    text: LongText


class AddLinesInput(ToolModel):
    path: PathText = Field(min_length=1)
    content: LongText | None = Field(
        default=None,
        min_length=1,
        description="List items get the marker and indentation of the list that they join.",
    )
    groups: list[HeadedText] | None = Field(
        default=None, description="Instead of content, such as the groups of vault.takeTasks."
    )
    heading: str | None = Field(
        default=None,
        description="In the section below this heading (its text, without #); "
        "by default in the whole note.",
    )
    at: Literal["end", "start"] = "end"
    as_item: bool | Literal["pure", "lines"] = Field(
        default=False,
        description="true: text without a marker becomes a list item if it joins a list; "
        "pure: only if the section or note is one list; lines: each line becomes an item.",
    )

    @model_validator(mode="after")
    def _one_source(self) -> AddLinesInput:
        if (self.content is None) == (self.groups is None):
            raise ValueError("give exactly one of content and groups")
        return self


@tool("vault.addLines", Risk.WRITES)
def add_lines(args: AddLinesInput, ctx: ToolContext) -> Proposal[AddedLinesOutput]:
    """Add text at the end or start of a note or section.

    List items get the marker and indentation of the list that they join.
    """
    path, before = open_note(ctx, args.path)
    text, line = before, 1
    for group in args.groups or ():
        text, line = _add(text, group.text, group.heading or args.heading, args)
    if args.content is not None:
        text, line = _add(text, args.content, args.heading, args)
    return _proposal(path, before, text, line)


def _add(text: str, content: str, heading: str | None, args: AddLinesInput) -> tuple[str, int]:
    """Return the text with content added to a section or the whole note, and its first line."""
    heading = _as_written(text, heading) if heading else None
    blocks = Blocks.of(text)
    numbers = section_lines(text, heading)
    content = content.replace("\r\n", "\n").rstrip("\n")
    neighbour = _neighbour(blocks, numbers, last=args.at == "end")
    if args.as_item == "lines":
        marks = _outer_marks(blocks, numbers)
        box = "[ ] " if marks and all(mark.box for mark in marks) else ""
        content = "\n".join(f"- {box}{line}" for line in content.split("\n") if line.strip())
    as_item = args.as_item is True or (
        args.as_item == "pure" and "\n" not in content and _is_list(blocks, numbers)
    )
    if neighbour is None or not (as_item or ListMark.of(content) is not None):
        return _add_text(text, _in_marker_style(content, blocks), heading, args.at)
    mark = ListMark.of(blocks.lines[neighbour - 1])
    assert mark is not None
    if args.at == "end":
        line, mark = blocks.whole(neighbour).stop, mark.next()
    else:
        line = neighbour
    if ListMark.of(content) is None and all(mark.box for mark in _outer_marks(blocks, numbers)):
        content = f"- [ ] {content}"
    lines = _insert_lines(blocks.lines, line, _as_items(content, mark), newline_of(text))
    renumber(lines, line)
    return "".join(lines), line


def _as_written(text: str, heading: str) -> str:
    """Return a heading in the letters of the note, as a link of Obsidian finds it."""
    known = [one.text for one in edits.headings(text)]
    alike = [one for one in known if one.casefold() == heading.strip().casefold()]
    return alike[0] if alike and heading not in known else heading


def _is_list(blocks: Blocks, numbers: range) -> bool:
    """Return whether these lines are one list, apart from headings and blank lines.

    Tables, code and text are not.
    """
    filled = [
        number
        for number in numbers
        if number <= len(blocks.lines)
        and blocks.lines[number - 1].strip()
        and number not in blocks.headings
    ]
    body = [number for number in filled if not _is_property(blocks, number)]
    inside = {
        inner for number in body if _is_outer(blocks, number) for inner in blocks.whole(number)
    }
    return bool(body) and inside.issuperset(body)


def _is_property(blocks: Blocks, number: int) -> bool:
    """Return whether a line belongs to the properties at the beginning of the note."""
    return (
        all(line.hidden or not line.body.strip() for line in blocks.scanned[:number])
        and blocks.scanned[0].body.strip() == "---"
    )


def _outer_marks(blocks: Blocks, numbers: range) -> list[ListMark]:
    marks = (
        ListMark.of(blocks.lines[number - 1])
        for number in numbers
        if number <= len(blocks.lines) and _is_outer(blocks, number)
    )
    return [mark for mark in marks if mark is not None]


def _add_text(
    text: str, content: str, heading: str | None, at: Literal["end", "start"]
) -> tuple[str, int]:
    """Add text as `vault.updateFile` does with mode append or prepend."""
    content += "\n"
    if at == "end":
        after = (
            edits.append(text, content)
            if heading is None
            else edits.append_to_section(text, heading, content)
        )
    elif heading is None:
        after = edits.prepend_below_frontmatter(text, content)
    else:
        after = edits.prepend_below_heading(text, heading, content)
    same = next(
        (index for index, (old, new) in enumerate(zip(text, after, strict=False)) if old != new),
        min(len(text), len(after)),
    )
    return after, after.count("\n", 0, same) + 1


def _neighbour(blocks: Blocks, numbers: range, *, last: bool) -> int | None:
    """Return the outermost list item that new items would join.

    It belongs to the list that these lines end with (or begin with, unless `last`).
    """
    filled = [
        number
        for number in numbers
        if number <= len(blocks.lines) and blocks.lines[number - 1].strip()
    ]
    visible = [number for number in filled if not (blocks.scanned[number - 1].hidden and not last)]
    outer = [number for number in visible if _is_outer(blocks, number)]
    if not outer:
        return None
    if last:
        return outer[-1] if filled[-1] in blocks.whole(outer[-1]) else None
    return outer[0] if visible[0] == outer[0] else None


def _is_outer(blocks: Blocks, number: int) -> bool:
    line = blocks.scanned[number - 1]
    return (
        line.depth == 0
        and not line.quotes
        and ListMark.of(blocks.lines[number - 1].removeprefix(BOM)) is not None
    )


def _as_items(content: str, mark: ListMark) -> list[str]:
    """Return the lines of content as items with this mark; nested lines move along.

    A checkbox is the content's own.
    """
    items: list[str] = []
    for line in content.split("\n"):
        own = ListMark.of(line)
        if own is not None and not own.indent:
            mark = mark.next() if items else mark
            items.append(f"{mark.indent}{mark.marker}{mark.gap}{own.box}{line[len(own.text) :]}")
        elif not items:
            items.append(f"{mark.indent}{mark.marker}{mark.gap}{line}")
        else:
            items.append(indented(line, mark.indent))
    return items


def _in_marker_style(content: str, blocks: Blocks) -> str:
    """Return the content with the most common bullet of the note; for bullets that join no list."""
    markers = [
        mark.marker
        for line in blocks.scanned
        if line.depth is not None
        and (mark := ListMark.of(line.body)) is not None
        and not mark.numbered
    ]
    usual = max(dict.fromkeys(markers), key=markers.count, default=_DEFAULT_MARKER)
    lines = []
    for line in content.split("\n"):
        own = ListMark.of(line)
        bullet = own is not None and not own.numbered and own.marker == _DEFAULT_MARKER
        lines.append(
            f"{own.indent}{usual}{line[len(own.indent) + 1 :]}"
            if own is not None and bullet
            else line
        )
    return "\n".join(lines)


def _insert_lines(lines: list[str], number: int, new: list[str], newline: str) -> list[str]:
    """Return the lines with new ones before a line, all of them with line endings."""
    result = [*lines]
    if number > len(result) and result and not result[-1].endswith("\n"):
        result[-1] += newline
    result[number - 1 : number - 1] = [line + newline for line in new]
    return result


class TakeLinesInput(ToolModel):
    path: PathText = Field(min_length=1)
    text: str | None = Field(
        default=None,
        min_length=1,
        description="Lines that contain this text as whole words, or else all of its words.",
    )
    line: Whole | None = Field(
        default=None,
        ge=1,
        description="Instead of text: a line number from 1; with heading, from its first line.",
    )
    kind: Literal["line", "item", "task", "row"] = Field(
        default="line", description="Only list items, tasks, or rows of tables."
    )
    heading: str | None = Field(
        default=None, description="Only below this heading (its text, without #)."
    )
    expect_count: Whole | None = Field(
        default=None, ge=0, description="The required number of matching lines."
    )
    replacement: LongText | None = Field(
        default=None,
        description="A text to replace it; "
        "a list item keeps its marker, checkbox and nested lines.",
    )
    into: PathText | None = Field(default=None, description=INTO)

    @model_validator(mode="after")
    def _one_selector(self) -> TakeLinesInput:
        if (self.text is None) == (self.line is None):
            raise ValueError("give exactly one of text and line")
        return self


class TakenLine(ToolModel):
    text: str = Field(description="Without list marker and checkbox.")
    raw: str = Field(description="The line and its nested lines, without its indentation.")


class TakeLinesOutput(ToolModel):
    path: str
    items: list[TakenLine]
    text: str = Field(description="All of them, without a line break at the end.")
    count: int


@tool("vault.takeLines", Risk.WRITES)
def take_lines(args: TakeLinesInput, ctx: ToolContext) -> Proposal[TakeLinesOutput]:
    """Move lines, list items or table rows out of a note, or replace them.

    They are selected by text or line number, and returned for later steps with their nested lines.
    """
    from obsidian_agent.tools.links import links  # only few plans need it

    path, text = open_note(ctx, args.path)
    blocks = Blocks.of(text)
    numbers = _find_lines(args, path, text, blocks)
    if args.expect_count is not None and len(numbers) != args.expect_count:
        message = f"{path} has {len(numbers)} such lines, not {args.expect_count}."
        raise ToolError(
            message, code="COUNT_MISMATCH", path=path.text, hint="Quote more of the line."
        )
    items = [
        _taken_line([blocks.lines[nested - 1] for nested in blocks.whole(number)])
        for number in numbers
    ]
    lines = (
        _replace_lines(blocks, numbers, args.replacement, newline_of(text))
        if args.replacement is not None
        else _remove_lines(blocks, numbers)
    )
    warnings = (
        ()
        if numbers
        else (
            Problem(
                "TEXT_NOT_FOUND", f"No such line of {path} contains “{args.text}”.", path=path.text
            ),
        )
    )
    carried = links.move_text(
        "\n".join(item.raw for item in items),
        "".join(lines),
        path,
        links.find_destination(args.into, ctx),
        ctx,
    )
    changes = (
        (ModifyFile(path, encode(carried.rest)), *carried.changes) if carried.rest != text else ()
    )
    output = TakeLinesOutput(path=path.text, items=items, text=carried.text, count=len(items))
    return Proposal(output, changes, (*warnings, *carried.problems))


def _find_lines(args: TakeLinesInput, path: VaultPath, text: str, blocks: Blocks) -> list[int]:
    """Return the selected lines, without those nested in another selected one."""
    numbers = section_lines(text, args.heading)
    if args.line is not None:
        number = numbers.start + args.line - 1
        if (
            number not in numbers
            or number > len(blocks.lines)
            or blocks.kind(number) not in _KINDS[args.kind]
        ):
            raise ToolError(
                f"Line {args.line} of {path} does not exist or is of another kind.",
                code="MARKER_NOT_FOUND",
                path=path.text,
            )
        return [number]
    matches = blocks.holding(args.text or "", numbers, _KINDS[args.kind])
    if not matches and args.expect_count:
        raise ToolError(
            f"No such line of {path} contains “{args.text}”.",
            code="MARKER_NOT_FOUND",
            path=path.text,
        )
    inner = {nested for number in matches for nested in blocks.whole(number)[1:]}
    return [number for number in matches if number not in inner]


def _taken_line(lines: list[str]) -> TakenLine:
    mark = ListMark.of(lines[0])
    return TakenLine(text=lines[0][len(mark.text) if mark else 0 :].strip(), raw=dedented(lines))


def _replace_lines(
    blocks: Blocks, numbers: Iterable[int], replacement: str, newline: str
) -> list[str]:
    lines = [*blocks.lines]
    for number in numbers:
        old = lines[number - 1]
        mark, own = ListMark.of(old), ListMark.of(replacement)
        if mark is not None:
            lead = mark.indent if own is not None else mark.text
        elif blocks.kind(number) == "text":
            lead = old[: len(old) - len(old.lstrip(" \t>"))]
        else:
            lead = ""
        ending = newline if old.endswith("\n") else ""
        lines[number - 1] = (
            lead + replacement.strip("\r\n").replace("\r\n", "\n").replace("\n", newline) + ending
        )
    return lines


def _remove_lines(blocks: Blocks, numbers: list[int]) -> list[str]:
    """Return the remaining lines.

    A removed paragraph takes one of its surrounding blank lines with it, and numbered lists close
    up.
    """
    removed = {removed_number for number in numbers for removed_number in blocks.whole(number)}
    for number in numbers:
        last = blocks.whole(number).stop
        alone = _is_blank(blocks, number - 1) and _is_blank(blocks, last)
        if alone and number > 1 and last <= len(blocks.lines):
            removed.add(last)
    lines = [line for number, line in enumerate(blocks.lines, 1) if number not in removed]
    if lines and blocks.lines and not blocks.lines[-1].endswith("\n"):
        lines[-1] = lines[-1].rstrip("\r\n")
    for number in numbers:
        mark = ListMark.of(blocks.lines[number - 1])
        if mark is not None and mark.numbered:
            _close_up(
                lines, number - sum(removed_number < number for removed_number in removed), mark
            )
    return lines


def _close_up(lines: list[str], number: int, removed: ListMark) -> None:
    """Give the item that replaced a removed one its number, and renumber the following ones."""
    mark = ListMark.of(lines[number - 1]) if 0 < number <= len(lines) else None
    if mark is not None and mark.numbered and mark.indent == removed.indent:
        count = int(removed.marker[:-1])
        lines[number - 1] = mark.with_number(count).text + lines[number - 1][len(mark.text) :]
        renumber(lines, number)


def _is_blank(blocks: Blocks, number: int) -> bool:
    """Return whether a line is blank or outside of the note."""
    return not 1 <= number <= len(blocks.lines) or not blocks.lines[number - 1].strip()
