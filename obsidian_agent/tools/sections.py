"""Tools for the sections of a note: `vault.takeSection`, `util.outline`."""

from __future__ import annotations

from pydantic import Field

from obsidian_agent.tools import carrying
from obsidian_agent.tools.base import LongText, PathText, Proposal, Risk, Tool, ToolContext, ToolModel, Whole
from obsidian_agent.tools.notes import find_file, read_text
from obsidian_agent.tools.util import TextOrPath
from obsidian_agent.vault import markdown
from obsidian_agent.vault.changes import ModifyFile
from obsidian_agent.vault.paths import PathUse
from obsidian_agent.vault.text import encode, newline_of, with_newlines

# --- vault.takeSection --------------------------------------------------------------------------------------------------------


class TakeSectionInput(ToolModel):
    path: PathText = Field(min_length=1)
    heading: str = Field(min_length=1, description="The text of its heading, without #; the first one that fits.")
    replacement: LongText | None = Field(default=None, description="A text that takes its place, such as a link to where it goes.")
    into: PathText | None = Field(default=None, description=carrying.INTO)
    as_note: bool = Field(
        default=False, description="With into: the section becomes that note, so links to its own heading lead to the note."
    )


class TakeSectionOutput(ToolModel):
    path: str
    heading: str
    level: int
    text: str = Field(description="The heading and what stands below it, without blank lines at the end.")
    content: str = Field(description="What stands below it, without blank lines at both ends.")


def _take_section(args: TakeSectionInput, ctx: ToolContext) -> Proposal:
    path = find_file(ctx.view, args.path, PathUse.UPDATE)
    text = read_text(ctx.view, path)
    found = markdown.section(text, args.heading)
    start = found.heading.start
    taken = text[start : found.end]
    rest = text[:start] + text[found.end :]
    if args.replacement is not None:
        newline = newline_of(text)
        left = with_newlines(args.replacement.strip("\n"), newline) + newline
        rest = text[:start] + left + (newline if text[found.end :].strip() else "") + text[found.end :]
    carried = carrying.taken(taken, rest, path, carrying.destination(args.into, ctx), ctx, found.heading.text if args.as_note else None)
    output = TakeSectionOutput(
        path=path.text,
        heading=found.heading.text,
        level=found.heading.level,
        text=carried.text.rstrip().replace("\r\n", "\n"),
        content=_below(carried.text).strip("\r\n").rstrip().replace("\r\n", "\n"),
    )
    return Proposal(output, (ModifyFile(path, encode(carried.rest)), *carried.changes), carried.problems)


def _below(section: str) -> str:
    """What stands below the heading that a text begins with."""
    return section[markdown.headings(section)[0].end :]


TAKE_SECTION = Tool(
    name="vault.takeSection",
    summary="Take a section out of a note, with its heading and everything below it, to put it elsewhere; links to its headings can follow.",
    risk=Risk.WRITES,
    input=TakeSectionInput,
    output=TakeSectionOutput,
    propose=_take_section,
)

# --- util.outline -------------------------------------------------------------------------------------------------------------


class OutlineInput(TextOrPath):
    min_level: Whole = Field(default=1, ge=1, le=6)
    max_level: Whole = Field(default=6, ge=1, le=6)
    skip: list[str] = Field(default=[], description="Headings that are left out, such as that of the outline itself.")
    skip_title: bool = Field(default=False, description="Leave out a first heading that is the only one of the highest level.")
    links: bool = Field(default=True, description="Items as links to the headings; else as text.")


class OutlineOutput(ToolModel):
    text: str
    count: int
    title: str = Field(description='The heading that is the note\'s title: the only one of its level, before all others; "" without one.')
    bare: bool = Field(description="Whether there is no title.")


def _outline(args: OutlineInput, ctx: ToolContext) -> Proposal:
    skipped = {heading.casefold() for heading in args.skip}
    there = markdown.headings(args.read(ctx))
    levels = [heading.level for heading in there]
    title = bool(there) and len(there) > 1 and levels[0] == min(levels) and levels.count(levels[0]) == 1
    found = [
        heading
        for heading in there[int(args.skip_title and title) :]
        if args.min_level <= heading.level <= args.max_level and heading.text and heading.text.casefold() not in skipped
    ]
    top = min((heading.level for heading in found), default=1)
    lines = [f"{'    ' * (heading.level - top)}- {_item(heading.text, args.links)}" for heading in found]
    own = there[0].text if title else ""
    return Proposal(OutlineOutput(text="\n".join(lines), count=len(lines), title=own, bare=not own))


def _item(heading: str, link: bool) -> str:
    """A link to a heading of the same note. What would end the link is left out of it; Obsidian finds the heading all the same."""
    if not link:
        return heading
    target = "".join(" " if character in "#|^[]" else character for character in heading)
    shown = heading.replace("[[", "").replace("]]", "").replace("|", "-")
    target = " ".join(target.split())
    return f"[[#{target}]]" if target == heading else f"[[#{target}|{shown}]]"


OUTLINE = Tool(
    name="util.outline",
    summary="The headings of a note as an indented list of links to them: a table of contents.",
    risk=Risk.READ_ONLY,
    input=OutlineInput,
    output=OutlineOutput,
    propose=_outline,
)
