"""Markdown lists: parse their items, sort them, remove repeated ones, change their markers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal

from msgspec import Struct
from pydantic import Field, model_validator

from obsidian_agent import budget
from obsidian_agent.errors import Problem
from obsidian_agent.tools.core.lookup import content_change, open_note
from obsidian_agent.tools.core.models import Items, SparseOutput, ToolModel
from obsidian_agent.tools.core.tool import LongText, PathText, Proposal, Risk, ToolContext, tool
from obsidian_agent.tools.text.lines import Blocks, ListMark, columns, section_lines
from obsidian_agent.vault.markdown.lines import bullets
from obsidian_agent.vault.paths.rules import slug
from obsidian_agent.vault.text import newline_of

_MARKS: Final = re.compile(r"!?\[\[(?:[^\[\]|]*\|)?|\]\]|[*_`~\"“”'‘’]+")
_PIECE: Final = re.compile(r"\d+|\D+")


class ArrangeOptions(ToolModel):
    sort: Literal["az", "za", "openFirst"] | None = Field(
        default=None,
        description="By their texts, ignoring case and with numbers by size, "
        "or open tasks before done ones.",
    )
    unique: bool = Field(
        default=False,
        description="Remove items that are equal to an earlier one, with their nested lines.",
    )
    marker: Literal["-", "*", "+", "1.", "1)"] | None = Field(
        default=None, description="The marker of all items of the outermost level."
    )
    checkboxes: Literal["add", "remove"] | None = Field(
        default=None, description="Add an open checkbox to the items, or remove it."
    )

    @model_validator(mode="after")
    def _something(self) -> ArrangeOptions:
        if not (self.sort or self.unique or self.marker or self.checkboxes):
            raise ValueError("give at least one of sort, unique, marker and checkboxes")
        return self


class _Item(Struct):
    """An outermost list item with its nested lines, and the blank lines below it.

    The lines include their line endings.
    """

    mark: ListMark
    lines: list[str]
    blank: list[str]

    @property
    def text(self) -> str:
        return self.lines[0][len(self.mark.text) :].strip()


def arrange_text(text: str, numbers: range | None, options: ArrangeOptions) -> tuple[str, int]:
    """Arrange the lists in these lines of a text (`None`: all).

    Return the text and the number of lists. Only items of the outermost level move.
    """
    blocks = Blocks.of(text)
    newline = newline_of(text)
    lines: list[str] = []
    at, count = 1, 0
    for start, items in _find_lists(blocks, numbers or range(1, len(blocks.lines) + 1)):
        lines += blocks.lines[at - 1 : start - 1]
        at = start + sum(len(item.lines) + len(item.blank) for item in items)
        lines += _arrange_items(items, options, newline)
        count += 1
    return "".join([*lines, *blocks.lines[at - 1 :]]), count


def _find_lists(blocks: Blocks, numbers: range) -> Iterator[tuple[int, list[_Item]]]:
    """Yield the lists with the line of their first item.

    Blank lines between items belong to them; other text ends a list.
    """
    at = numbers.start
    while at < numbers.stop:
        budget.check()
        start, items = at, list[_Item]()
        while (
            at < numbers.stop
            and (mark := _outermost_mark(blocks, at, items[0].mark if items else None)) is not None
        ):
            budget.check()
            whole = blocks.whole(at)
            end = whole.stop
            while (
                end < numbers.stop
                and end <= len(blocks.lines)
                and not blocks.lines[end - 1].strip()
            ):
                end += 1
            items.append(
                _Item(
                    mark,
                    [blocks.lines[number - 1] for number in whole],
                    blocks.lines[whole.stop - 1 : end - 1],
                )
            )
            at = end
        if items:
            yield start, items
        else:
            at += 1


def _outermost_mark(blocks: Blocks, number: int, like: ListMark | None) -> ListMark | None:
    """Return the mark of an outermost item that is in the same list as `like`."""
    line = blocks.scanned[number - 1] if number <= len(blocks.lines) else None
    mark = (
        ListMark.of(blocks.lines[number - 1])
        if line is not None and line.depth == 0 and not line.quotes
        else None
    )
    return (
        mark
        if mark is not None
        and (like is None or (mark.indent, mark.numbered) == (like.indent, like.numbered))
        else None
    )


def _arrange_items(items: list[_Item], options: ArrangeOptions, newline: str) -> list[str]:
    first = items[0].mark
    ended = all(line.endswith("\n") for item in items for line in (*item.lines, *item.blank))
    ordered = _sort_items(_without_repetitions(items) if options.unique else items, options)
    blanks = [item.blank for item in items]
    gaps = [*blanks[: len(ordered) - 1], blanks[-1]]
    lines: list[str] = []
    number = (
        int(first.marker[:-1])
        if first.numbered and not (options.marker and options.marker[0] != "1")
        else 1
    )
    for count, (item, gap) in enumerate(zip(ordered, gaps, strict=True)):
        budget.check()
        mark = _new_mark(item.mark, options, number + count)
        lines += _with_mark(item, mark, newline)
        lines += gap
    if not ended and lines:
        lines[-1] = lines[-1].rstrip("\r\n")
    return lines


def _without_repetitions(items: list[_Item]) -> list[_Item]:
    """Drop repeated items: those with the same text, checkbox and nested lines."""
    first: dict[tuple[str, str, str], _Item] = {}
    for item in items:
        first.setdefault((item.text, item.mark.box.strip(), "".join(item.lines[1:]).rstrip()), item)
    return list(first.values())


def _sort_items(items: list[_Item], options: ArrangeOptions) -> list[_Item]:
    match options.sort:
        case "az" | "za":
            return sorted(
                items, key=lambda item: _sort_key(item.text), reverse=options.sort == "za"
            )
        case "openFirst":
            return sorted(items, key=lambda item: bool(item.mark.box) and item.mark.box[1] != " ")
        case None:
            return items


def _sort_key(text: str) -> list[tuple[bool, int, str]]:
    """Return the natural sort key of a text.

    Texts sort as displayed, without formatting and case, numbers by size.
    """
    budget.check()
    plain = _MARKS.sub("", text).casefold().strip()
    return [
        (not piece.isdecimal(), int(piece) if piece.isdecimal() else 0, piece)
        for piece in _PIECE.findall(plain)
    ]


def _new_mark(mark: ListMark, options: ArrangeOptions, number: int) -> ListMark:
    marker = mark.marker
    if options.marker is not None:
        marker = f"{number}{options.marker[-1]}" if options.marker[0] == "1" else options.marker
    elif mark.numbered:
        marker = f"{number}{mark.marker[-1]}"
    box = {"add": mark.box or "[ ] ", "remove": "", None: mark.box}[options.checkboxes]
    return ListMark(mark.indent, marker, mark.gap, box)


def _with_mark(item: _Item, mark: ListMark, newline: str) -> list[str]:
    """Return an item's lines with another mark.

    Nested lines are indented where they would not be nested any more.
    """
    first = mark.text + item.lines[0][len(item.mark.text) :]
    needed = len(f"{mark.indent}{mark.marker} ".expandtabs(4))
    lacking = needed - min(
        (columns(line) for line in item.lines[1:] if line.strip()), default=needed
    )
    wider = len(mark.marker) > len(item.mark.marker)
    moved = [
        " " * lacking + line if wider and lacking > 0 and not line.startswith("\t") else line
        for line in item.lines[1:]
    ]
    return [line if line.endswith("\n") else line + newline for line in (first, *moved)]


class ArrangeListsInput(ArrangeOptions):
    path: PathText = Field(min_length=1)
    heading: str | None = Field(
        default=None, description="Only the lists below this heading (its text, without #)."
    )


class ArrangeListsOutput(ToolModel):
    path: str
    lists: int = Field(description="The number of lists.")
    changed: bool


@tool("vault.arrangeLists", Risk.WRITES)
def arrange_lists(args: ArrangeListsInput, ctx: ToolContext) -> Proposal[ArrangeListsOutput]:
    """Sort the lists of a note or section, remove repeated items, or change their markers.

    Lists can be numbered, and bullets become tasks or the other way round; nested items move along.
    """
    path, text = open_note(ctx, args.path)
    after, lists = arrange_text(text, section_lines(text, args.heading), args)
    output = ArrangeListsOutput(path=path.text, lists=lists, changed=after != text)
    warnings = (
        ()
        if lists
        else (Problem("TEXT_NOT_FOUND", f"{path} has no list to arrange.", path=path.text),)
    )
    return Proposal(output, content_change(path, text, after), warnings)


class ArrangeListInput(ArrangeOptions):
    text: LongText = Field(description="The list, for example the selection.")


class ArrangeListOutput(ToolModel):
    text: str


@tool("util.arrangeList", Risk.READ_ONLY)
def arrange_list(args: ArrangeListInput, ctx: ToolContext) -> Proposal[ArrangeListOutput]:
    """Arrange the lists of a text, such as the selection, as vault.arrangeLists does."""
    return Proposal(ArrangeListOutput(text=arrange_text(args.text, None, args)[0]))


class ParseBulletsInput(ToolModel):
    text: LongText


class BulletItem(SparseOutput):
    text: str = Field(description="Without marker, checkbox and block id.")
    raw: str = Field(description="The whole line.")
    depth: int = Field(description="From 0.")
    slug: str
    checked: bool | None = Field(default=None, description="Absent without a checkbox.")


@tool("util.parseMarkdownBullets", Risk.READ_ONLY)
def parse_bullets(args: ParseBulletsInput, ctx: ToolContext) -> Proposal[Items[BulletItem]]:
    """List the bulleted and numbered items of a text."""
    items = [
        BulletItem(
            text=bullet.text,
            raw=bullet.raw,
            depth=bullet.depth,
            slug=slug(bullet.text),
            checked=bullet.checked,
        )
        for bullet in bullets(args.text)
    ]
    return Proposal(Items.of(items))
