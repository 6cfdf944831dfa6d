"""`vault.takeLines`: lines, list items and rows taken out of a note, or replaced where they stand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from pydantic import Field, model_validator

from obsidian_agent.errors import Problem, ToolError
from obsidian_agent.tools import carrying
from obsidian_agent.tools.base import LongText, PathText, Proposal, Risk, Tool, ToolContext, ToolModel, Whole
from obsidian_agent.tools.blocks import Blocks, LineKind, Mark, dedented, renumbered
from obsidian_agent.tools.notes import find_file, read_text
from obsidian_agent.vault.changes import ModifyFile
from obsidian_agent.vault.paths import PathUse, VaultPath
from obsidian_agent.vault.text import encode, newline_of

_KINDS: Final[dict[str, tuple[LineKind, ...]]] = {
    "line": ("item", "task", "row", "text"),
    "item": ("item", "task"),
    "task": ("task",),
    "row": ("row",),
}


class TakeLinesInput(ToolModel):
    path: PathText = Field(min_length=1)
    text: str | None = Field(default=None, min_length=1, description="Lines that hold this text as whole words, or else all of its words.")
    line: Whole | None = Field(default=None, ge=1, description="Or the line of this number, from 1; with heading: from its first line.")
    kind: Literal["line", "item", "task", "row"] = Field(default="line", description="Only list items, tasks, or rows of tables.")
    heading: str | None = Field(default=None, description="Only below this heading (its text, without #).")
    expect_count: Whole | None = Field(default=None, ge=0, description="How many lines there must be; the first step to say which.")
    replacement: LongText | None = Field(
        default=None, description="A text in its place; a list item keeps its marker, checkbox and what is nested in it."
    )

    into: PathText | None = Field(default=None, description=carrying.INTO)

    @model_validator(mode="after")
    def _one_way(self) -> TakeLinesInput:
        if (self.text is None) == (self.line is None):
            raise ValueError("give exactly one of text and line")
        return self


class TakenLine(ToolModel):
    text: str = Field(description="Without list marker and checkbox.")
    raw: str = Field(description="The line and what is nested below it, without its indentation.")


class TakeLinesOutput(ToolModel):
    path: str
    items: list[TakenLine]
    text: str = Field(description="All of them, without a line end behind the last.")
    count: int


def _take_lines(args: TakeLinesInput, ctx: ToolContext) -> Proposal:
    path = find_file(ctx.view, args.path, PathUse.UPDATE)
    text = read_text(ctx.view, path)
    blocks = Blocks.of(text)
    found = _found(args, path, text, blocks)
    if args.expect_count is not None and len(found) != args.expect_count:
        message = f"{path} has {len(found)} such lines, not {args.expect_count}."
        raise ToolError(message, code="COUNT_MISMATCH", path=path.text, hint="Say more of the line.")
    items = [_told([blocks.lines[each - 1] for each in blocks.whole(number)]) for number in found]
    lines = _replaced(blocks, found, args.replacement, newline_of(text)) if args.replacement is not None else _without(blocks, found)
    warnings = () if found else (Problem("TEXT_NOT_FOUND", f"No such line of {path} holds “{args.text}”.", path=path.text),)
    carried = carrying.taken("\n".join(item.raw for item in items), "".join(lines), path, carrying.destination(args.into, ctx), ctx)
    changes = (ModifyFile(path, encode(carried.rest)), *carried.changes) if carried.rest != text else ()
    output = TakeLinesOutput(path=path.text, items=items, text=carried.text, count=len(items))
    return Proposal(output, changes, (*warnings, *carried.problems))


def _found(args: TakeLinesInput, path: VaultPath, text: str, blocks: Blocks) -> list[int]:
    """The lines that are meant; what is nested in one that is meant goes with it."""
    numbers = blocks.within(text, args.heading)
    if args.line is not None:
        number = numbers.start + args.line - 1
        if number not in numbers or number > len(blocks.lines) or blocks.kind(number) not in _KINDS[args.kind]:
            raise ToolError(f"{path} has no such line {args.line}.", code="MARKER_NOT_FOUND", path=path.text)
        return [number]
    found = blocks.holding(args.text or "", numbers, _KINDS[args.kind])
    if not found and args.expect_count:
        raise ToolError(f"No such line of {path} holds “{args.text}”.", code="MARKER_NOT_FOUND", path=path.text)
    inner = {each for number in found for each in blocks.whole(number)[1:]}
    return [number for number in found if number not in inner]


def _told(lines: list[str]) -> TakenLine:
    mark = Mark.of(lines[0])
    return TakenLine(text=lines[0][len(mark.text) if mark else 0 :].strip(), raw=dedented(lines))


def _replaced(blocks: Blocks, found: Iterable[int], replacement: str, newline: str) -> list[str]:
    lines = [*blocks.lines]
    for number in found:
        old = lines[number - 1]
        mark, own = Mark.of(old), Mark.of(replacement)
        lead = "" if mark is None else mark.indent if own is not None else mark.text
        if mark is None and blocks.kind(number) == "text":
            lead = old[: len(old) - len(old.lstrip(" \t>"))]
        ending = newline if old.endswith("\n") else ""
        lines[number - 1] = lead + replacement.strip("\r\n").replace("\r\n", "\n").replace("\n", newline) + ending
    return lines


def _without(blocks: Blocks, found: list[int]) -> list[str]:
    """The other lines. Where a paragraph goes, one of the blank lines around it goes too; numbers of a list close up."""
    gone = {each for number in found for each in blocks.whole(number)}
    for number in found:
        last = blocks.whole(number).stop
        alone = _is_blank(blocks, number - 1) and _is_blank(blocks, last)
        if alone and number > 1 and last <= len(blocks.lines):
            gone.add(last)
    lines = [line for number, line in enumerate(blocks.lines, 1) if number not in gone]
    if lines and blocks.lines and not blocks.lines[-1].endswith("\n"):
        lines[-1] = lines[-1].rstrip("\r\n")
    for number in found:
        mark = Mark.of(blocks.lines[number - 1])
        if mark is not None and mark.numbered:
            _close_up(lines, number - sum(each < number for each in gone), mark)
    return lines


def _close_up(lines: list[str], number: int, taken: Mark) -> None:
    """Lets the item that is now at a taken one's place have its number, and those behind it follow."""
    mark = Mark.of(lines[number - 1]) if 0 < number <= len(lines) else None
    if mark is not None and mark.numbered and mark.indent == taken.indent:
        count = int(taken.marker[:-1])
        lines[number - 1] = mark.with_number(count).text + lines[number - 1][len(mark.text) :]
        renumbered(lines, number)


def _is_blank(blocks: Blocks, number: int) -> bool:
    """Whether a line is blank, or outside of the note."""
    return not 1 <= number <= len(blocks.lines) or not blocks.lines[number - 1].strip()


TAKE_LINES = Tool(
    name="vault.takeLines",
    summary="Take lines, list items (with what is nested in them) or rows of tables out of a note, found by their text, or replace them.",
    risk=Risk.WRITES,
    input=TakeLinesInput,
    output=TakeLinesOutput,
    propose=_take_lines,
)
