"""`vault.addLines`: new lines that fit in where they go, above all list items among list items."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from obsidian_agent.tools.base import LongText, PathText, Proposal, Risk, Tool, ToolContext, ToolModel
from obsidian_agent.tools.blocks import Blocks, Mark, indented, renumbered
from obsidian_agent.tools.notes import find_file, read_text
from obsidian_agent.vault import markdown
from obsidian_agent.vault.changes import ModifyFile, content_hash
from obsidian_agent.vault.paths import PathUse, VaultPath
from obsidian_agent.vault.text import BOM, encode, newline_of

_DEFAULT: Final = "-"


class AddedLinesOutput(ToolModel):
    path: str
    line: int = Field(description="Where the new text begins, from 1.")
    changed: bool
    hash: str


def _answer(path: VaultPath, before: str, after: str, line: int) -> Proposal:
    data = encode(after)
    output = AddedLinesOutput(path=path.text, line=line, changed=after != before, hash=content_hash(data))
    return Proposal(output, (ModifyFile(path, data),) if after != before else ())


# --- vault.addLines -----------------------------------------------------------------------------------------------------------


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


def add_lines(args: AddLinesInput, ctx: ToolContext) -> Proposal:
    """What `vault.addLines` proposes."""
    args = args if args.heading else args.model_copy(update={"heading": None})
    path = find_file(ctx.view, args.path, PathUse.UPDATE)
    text = read_text(ctx.view, path)
    blocks = Blocks.of(text)
    numbers = blocks.within(text, args.heading)
    content = args.content.replace("\r\n", "\n").rstrip("\n")
    neighbour = _neighbour(blocks, numbers, last=args.at == "end")
    as_item = args.as_item is True or (args.as_item == "pure" and "\n" not in content and _is_list(blocks, numbers))
    if neighbour is None or not (as_item or Mark.of(content) is not None):
        return _plain(path, text, _in_style(content, blocks), args)
    mark = Mark.of(blocks.lines[neighbour - 1])
    assert mark is not None
    if args.at == "end":
        line, mark = blocks.whole(neighbour).stop, mark.next()
    else:
        line = neighbour
    if Mark.of(content) is None and all(each.box for each in _outer_marks(blocks, numbers)):
        content = f"- [ ] {content}"
    lines = _inserted(blocks.lines, line, _items(content, mark), newline_of(text))
    renumbered(lines, line)
    return _answer(path, text, "".join(lines), line)


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


def _plain(path: VaultPath, text: str, content: str, args: AddLinesInput) -> Proposal:
    """What `vault.updateFile` does with mode append or prepend."""
    content += "\n"
    if args.at == "end":
        after = markdown.append(text, content) if args.heading is None else markdown.append_to_section(text, args.heading, content)
    elif args.heading is None:
        after = markdown.prepend_below_frontmatter(text, content)
    else:
        after = markdown.prepend_below_heading(text, args.heading, content)
    same = next((at for at, (old, new) in enumerate(zip(text, after, strict=False)) if old != new), min(len(text), len(after)))
    return _answer(path, text, after, after.count("\n", 0, same) + 1)


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


def _items(content: str, mark: Mark) -> list[str]:
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


def _in_style(content: str, blocks: Blocks) -> str:
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


def _inserted(lines: list[str], number: int, new: list[str], newline: str) -> list[str]:
    """The lines with new ones before a line, all of them with line ends."""
    made = [*lines]
    if number > len(made) and made and not made[-1].endswith("\n"):
        made[-1] += newline
    made[number - 1 : number - 1] = [line + newline for line in new]
    return made


ADD_LINES = Tool(
    name="vault.addLines",
    summary="Add text at the end or start of a note or section; list items take the marker and indentation of the list that they join.",
    risk=Risk.WRITES,
    input=AddLinesInput,
    output=AddedLinesOutput,
    propose=add_lines,
)
