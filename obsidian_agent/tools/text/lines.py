"""Lines of notes: new ones that fit in where they go, above all among list items; and lines, items and rows taken out or replaced."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from pydantic import Field, model_validator

from obsidian_agent.errors import Problem, ToolError
from obsidian_agent.tools.core.lookup import open_note
from obsidian_agent.tools.core.models import ToolModel, Whole
from obsidian_agent.tools.core.tool import LongText, PathText, Proposal, Risk, ToolContext, tool
from obsidian_agent.tools.links import anchors
from obsidian_agent.tools.text.blocks import Blocks, LineKind, Mark, dedented, indented, renumbered, section_lines
from obsidian_agent.vault.markdown import edits
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.text import BOM, encode, newline_of
from obsidian_agent.vault.views.changes import ModifyFile, content_hash

_DEFAULT: Final = "-"


class AddedLinesOutput(ToolModel):
    path: str
    line: int = Field(description="Where the new text begins, from 1.")
    changed: bool
    hash: str


def _proposal(path: VaultPath, before: str, after: str, line: int) -> Proposal[AddedLinesOutput]:
    data = encode(after)
    output = AddedLinesOutput(path=path.text, line=line, changed=after != before, hash=content_hash(data))
    return Proposal(output, (ModifyFile(path, data),) if after != before else ())


class AddLinesInput(ToolModel):
    path: PathText = Field(min_length=1)
    content: LongText = Field(min_length=1, description="List items get the marker and indentation of the list that they join.")
    heading: str | None = Field(
        default=None, description="In the section below this heading (its text, without #); without one in the whole note."
    )
    at: Literal["end", "start"] = "end"
    as_item: bool | Literal["pure"] = Field(
        default=False,
        description="true: text without a marker becomes a list item where it joins a list; pure: only where all that is there is one list.",
    )


@tool("vault.addLines", Risk.WRITES)
def add_lines(args: AddLinesInput, ctx: ToolContext) -> Proposal[AddedLinesOutput]:
    """Add text at the end or start of a note or section; list items take the marker and indentation of the list that they join."""
    args = args if args.heading else args.model_copy(update={"heading": None})
    path, text = open_note(ctx, args.path)
    blocks = Blocks.of(text)
    numbers = section_lines(text, args.heading)
    content = args.content.replace("\r\n", "\n").rstrip("\n")
    neighbour = _neighbour(blocks, numbers, last=args.at == "end")
    as_item = args.as_item is True or (args.as_item == "pure" and "\n" not in content and _is_list(blocks, numbers))
    if neighbour is None or not (as_item or Mark.of(content) is not None):
        return _add_text(path, text, _in_marker_style(content, blocks), args)
    mark = Mark.of(blocks.lines[neighbour - 1])
    assert mark is not None
    if args.at == "end":
        line, mark = blocks.whole(neighbour).stop, mark.next()
    else:
        line = neighbour
    if Mark.of(content) is None and all(each.box for each in _outer_marks(blocks, numbers)):
        content = f"- [ ] {content}"
    lines = _insert_lines(blocks.lines, line, _as_items(content, mark), newline_of(text))
    renumbered(lines, line)
    return _proposal(path, text, "".join(lines), line)


def _is_list(blocks: Blocks, numbers: range) -> bool:
    """Whether these lines are a list, but for headings and blank lines; tables, code and text are none."""
    filled = [
        number for number in numbers if number <= len(blocks.lines) and blocks.lines[number - 1].strip() and number not in blocks.headings
    ]
    body = [number for number in filled if not _is_property(blocks, number)]
    inside = {each for number in body if _is_outer(blocks, number) for each in blocks.whole(number)}
    return bool(body) and inside.issuperset(body)


def _is_property(blocks: Blocks, number: int) -> bool:
    """Whether a line belongs to the properties, which only blank lines and themselves can stand before."""
    return all(line.hidden or not line.body.strip() for line in blocks.scanned[:number]) and blocks.scanned[0].body.strip() == "---"


def _outer_marks(blocks: Blocks, numbers: range) -> list[Mark]:
    found = (Mark.of(blocks.lines[number - 1]) for number in numbers if number <= len(blocks.lines) and _is_outer(blocks, number))
    return [mark for mark in found if mark is not None]


def _add_text(path: VaultPath, text: str, content: str, args: AddLinesInput) -> Proposal[AddedLinesOutput]:
    """What `vault.updateFile` does with mode append or prepend."""
    content += "\n"
    if args.at == "end":
        after = edits.append(text, content) if args.heading is None else edits.append_to_section(text, args.heading, content)
    elif args.heading is None:
        after = edits.prepend_below_frontmatter(text, content)
    else:
        after = edits.prepend_below_heading(text, args.heading, content)
    same = next((at for at, (old, new) in enumerate(zip(text, after, strict=False)) if old != new), min(len(text), len(after)))
    return _proposal(path, text, after, after.count("\n", 0, same) + 1)


def _neighbour(blocks: Blocks, numbers: range, *, last: bool) -> int | None:
    """The list item of the outermost level that new ones would join: that of the list which these lines end with (or begin with)."""
    filled = [number for number in numbers if number <= len(blocks.lines) and blocks.lines[number - 1].strip()]
    shown = [number for number in filled if not (blocks.scanned[number - 1].hidden and not last)]
    outer = [number for number in shown if _is_outer(blocks, number)]
    if not outer:
        return None
    if last:
        return outer[-1] if filled[-1] in blocks.whole(outer[-1]) else None
    return outer[0] if shown[0] == outer[0] else None


def _is_outer(blocks: Blocks, number: int) -> bool:
    line = blocks.scanned[number - 1]
    return line.depth == 0 and not line.quotes and Mark.of(blocks.lines[number - 1].removeprefix(BOM)) is not None


def _as_items(content: str, mark: Mark) -> list[str]:
    """The lines of content as items with this mark; what is nested in them moves along. A checkbox is the content's own."""
    made: list[str] = []
    for line in content.split("\n"):
        own = Mark.of(line)
        if own is not None and not own.indent:
            mark = mark.next() if made else mark
            made.append(f"{mark.indent}{mark.marker}{mark.gap}{own.box}{line[len(own.text) :]}")
        elif not made:
            made.append(f"{mark.indent}{mark.marker}{mark.gap}{line}")
        else:
            made.append(indented(line, mark.indent))
    return made


def _in_marker_style(content: str, blocks: Blocks) -> str:
    """Bullets with the marker that most bullets of the note have, where they join no list."""
    markers = [
        mark.marker for line in blocks.scanned if line.depth is not None and (mark := Mark.of(line.body)) is not None and not mark.numbered
    ]
    usual = max(dict.fromkeys(markers), key=markers.count, default=_DEFAULT)
    made = []
    for line in content.split("\n"):
        own = Mark.of(line)
        bullet = own is not None and not own.numbered and own.marker == _DEFAULT
        made.append(f"{own.indent}{usual}{line[len(own.indent) + 1 :]}" if own is not None and bullet else line)
    return "\n".join(made)


def _insert_lines(lines: list[str], number: int, new: list[str], newline: str) -> list[str]:
    """The lines with new ones before a line, all of them with line ends."""
    made = [*lines]
    if number > len(made) and made and not made[-1].endswith("\n"):
        made[-1] += newline
    made[number - 1 : number - 1] = [line + newline for line in new]
    return made


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

    into: PathText | None = Field(default=None, description=anchors.INTO)

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


@tool("vault.takeLines", Risk.WRITES)
def take_lines(args: TakeLinesInput, ctx: ToolContext) -> Proposal[TakeLinesOutput]:
    """Take lines, list items (with what is nested in them) or rows of tables out of a note, found by their text, or replace them."""
    path, text = open_note(ctx, args.path)
    blocks = Blocks.of(text)
    found = _find_lines(args, path, text, blocks)
    if args.expect_count is not None and len(found) != args.expect_count:
        message = f"{path} has {len(found)} such lines, not {args.expect_count}."
        raise ToolError(message, code="COUNT_MISMATCH", path=path.text, hint="Say more of the line.")
    items = [_taken_line([blocks.lines[each - 1] for each in blocks.whole(number)]) for number in found]
    lines = (
        _replace_lines(blocks, found, args.replacement, newline_of(text)) if args.replacement is not None else _remove_lines(blocks, found)
    )
    warnings = () if found else (Problem("TEXT_NOT_FOUND", f"No such line of {path} holds “{args.text}”.", path=path.text),)
    carried = anchors.move_text("\n".join(item.raw for item in items), "".join(lines), path, anchors.find_destination(args.into, ctx), ctx)
    changes = (ModifyFile(path, encode(carried.rest)), *carried.changes) if carried.rest != text else ()
    output = TakeLinesOutput(path=path.text, items=items, text=carried.text, count=len(items))
    return Proposal(output, changes, (*warnings, *carried.problems))


def _find_lines(args: TakeLinesInput, path: VaultPath, text: str, blocks: Blocks) -> list[int]:
    """The lines that are meant; what is nested in one that is meant goes with it."""
    numbers = section_lines(text, args.heading)
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


def _taken_line(lines: list[str]) -> TakenLine:
    mark = Mark.of(lines[0])
    return TakenLine(text=lines[0][len(mark.text) if mark else 0 :].strip(), raw=dedented(lines))


def _replace_lines(blocks: Blocks, found: Iterable[int], replacement: str, newline: str) -> list[str]:
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


def _remove_lines(blocks: Blocks, found: list[int]) -> list[str]:
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
