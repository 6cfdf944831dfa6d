"""Headings and sections of notes: list, rename, shift and move them; links follow."""

from __future__ import annotations

import re
from typing import Final

from pydantic import Field, model_validator

from obsidian_agent.errors import Problem, ToolError
from obsidian_agent.tools.core.lookup import (
    content_change,
    find_file,
    open_note,
    read_text,
    without_properties,
)
from obsidian_agent.tools.core.models import INTO, Items, TextOrPath, ToolModel, Whole
from obsidian_agent.tools.core.tool import LongText, PathText, Proposal, Risk, ToolContext, tool
from obsidian_agent.tools.links import links as anchors
from obsidian_agent.tools.links.links import (
    LinkDestination,
    heading_key,
    link_heading,
    redirect_links,
    subpath_keys,
)
from obsidian_agent.vault.markdown import edits
from obsidian_agent.vault.markdown.edits import Heading
from obsidian_agent.vault.paths.path import PathUse, VaultPath
from obsidian_agent.vault.paths.rules import slug
from obsidian_agent.vault.text import decode, encode, newline_of, with_newlines
from obsidian_agent.vault.views.changes import ModifyFile

_ATX: Final = re.compile(r"(?P<lead>[ \t]{0,3})(?P<marks>#{1,6})(?P<rest>[ \t].*|)$", re.DOTALL)

_CLOSING: Final = re.compile(r"[ \t]+#+[ \t]*$")


class ParseHeadingsInput(TextOrPath):
    level: Whole | None = Field(
        default=None, ge=1, le=6, description="Only headings of this level."
    )


class HeadingItem(ToolModel):
    text: str
    level: int
    slug: str
    content: str = Field(
        description="The text below it, up to the next heading of its level or a higher one, "
        "without leading and trailing blank lines."
    )
    line: int = Field(description="From 1.")


@tool("util.parseHeadings", Risk.READ_ONLY)
def parse_headings(args: ParseHeadingsInput, ctx: ToolContext) -> Proposal[Items[HeadingItem]]:
    """List the headings of a text or a file, with the content below each."""
    text = args.read(ctx)
    items = [
        HeadingItem(
            text=heading.text,
            level=heading.level,
            slug=slug(heading.text),
            content=_without_blank_lines(text[heading.end : heading.section_end]),
            line=heading.line,
        )
        for heading in edits.headings(text)
        if args.level is None or heading.level == args.level
    ]
    return Proposal(Items.of(items))


def _without_blank_lines(body: str) -> str:
    lines = body.split("\n")
    filled = [number for number, line in enumerate(lines) if line.strip()]
    return "\n".join(lines[filled[0] : filled[-1] + 1]).removesuffix("\r") if filled else ""


class OutlineInput(TextOrPath):
    min_level: Whole = Field(default=1, ge=1, le=6)
    max_level: Whole = Field(default=6, ge=1, le=6)
    skip: list[str] = Field(
        default=[], description="Headings to omit, such as that of the outline itself."
    )
    skip_title: bool = Field(
        default=False,
        description="Omit the first heading if it is the only one of the highest level.",
    )
    links: bool = Field(default=True, description="Items as links to the headings; else as text.")


class OutlineOutput(ToolModel):
    text: str
    count: int
    title: str = Field(
        description="The heading that is the note's title: "
        'the only one of its level, before all others; "" without one.'
    )
    bare: bool = Field(description="Whether there is no title.")


@tool("util.outline", Risk.READ_ONLY)
def outline(args: OutlineInput, ctx: ToolContext) -> Proposal[OutlineOutput]:
    """Make a table of contents: an indented list of links to the headings of a note."""
    skipped = {heading.casefold() for heading in args.skip}
    headings = edits.headings(args.read(ctx))
    levels = [heading.level for heading in headings]
    title = (
        bool(headings)
        and len(headings) > 1
        and levels[0] == min(levels)
        and levels.count(levels[0]) == 1
    )
    listed = [
        heading
        for heading in headings[int(args.skip_title and title) :]
        if args.min_level <= heading.level <= args.max_level
        and heading.text
        and heading.text.casefold() not in skipped
    ]
    top = min((heading.level for heading in listed), default=1)
    lines = [
        f"{'    ' * (heading.level - top)}- {_item(heading.text, args.links)}" for heading in listed
    ]
    own = headings[0].text if title else ""
    return Proposal(OutlineOutput(text="\n".join(lines), count=len(lines), title=own, bare=not own))


def _item(heading: str, link: bool) -> str:
    """Return a link to a heading of the same note.

    Characters that would end the link are dropped; Obsidian finds the heading all the same.
    """
    if not link:
        return heading
    target = "".join(" " if character in "#|^[]" else character for character in heading)
    display = heading.replace("[[", "").replace("]]", "").replace("|", "-")
    target = " ".join(target.split())
    return f"[[#{target}]]" if target == heading else f"[[#{target}|{display}]]"


class NoteBodyInput(ToolModel):
    path: PathText = Field(min_length=1)
    into: PathText | None = Field(
        default=None,
        description="The note that the text will be put into: its links keep their targets.",
    )


class NoteBodyOutput(ToolModel):
    path: str
    body: str = Field(
        description="The text below the properties, without leading and trailing blank lines."
    )


@tool("util.noteBody", Risk.READ_ONLY)
def note_body(args: NoteBodyInput, ctx: ToolContext) -> Proposal[NoteBodyOutput]:
    """Return the text of a note without its properties."""
    path = find_file(ctx.view, args.path)
    body = anchors.copy_text(
        without_properties(read_text(ctx.view, path)),
        path,
        anchors.find_destination(args.into, ctx),
        ctx,
    )
    return Proposal(NoteBodyOutput(path=path.text, body=body.strip("\r\n")))


class ChangeHeadingInput(ToolModel):
    path: PathText = Field(min_length=1)
    heading: str = Field(min_length=1, description="Its text, without #; the first match counts.")
    to: str | None = Field(
        default=None,
        min_length=1,
        pattern=r"^[^\r\n]*$",
        description="Its new text; links to it follow.",
    )
    level: Whole | None = Field(
        default=None,
        ge=1,
        le=6,
        description="Its new level; the headings in its section keep their relative level.",
    )

    @model_validator(mode="after")
    def _something(self) -> ChangeHeadingInput:
        if self.to is None and self.level is None:
            raise ValueError("give to, level or both")
        return self


class ChangeHeadingOutput(ToolModel):
    path: str
    heading: str
    level: int
    links_updated: int


@tool("vault.changeHeading", Risk.WRITES)
def change_heading(args: ChangeHeadingInput, ctx: ToolContext) -> Proposal[ChangeHeadingOutput]:
    """Give a heading another text or level; links to it follow.

    The headings in its section keep their relative level.
    """
    path, text = open_note(ctx, args.path)
    heading = edits.section(text, args.heading).heading
    level = args.level or heading.level
    title = args.to.strip() if args.to is not None else None
    problems: list[Problem] = []
    files: dict[VaultPath, tuple[bytes, int]] = {}
    if title is not None and heading_key(title) != heading_key(heading.text):
        old = heading_key(heading.text)
        if any(heading_key(other.text) == heading_key(title) for other in edits.headings(text)):
            problems.append(
                Problem(
                    "LINK_PLACE",
                    f"{path} already has a heading “{title}”; links lead to the first one.",
                    path=path.text,
                )
            )
        if sum(heading_key(other.text) == old for other in edits.headings(text)) == 1:
            files = redirect_links(
                ctx, path, lambda subpath: _renamed_destination(path, subpath, old, title), problems
            )
    content = decode(files[path][0], path.text) if path in files else text
    content = _shift_section(content, args.heading, level - heading.level, title)
    count = sum(links for _, links in files.values())
    changes = [ModifyFile(source, data) for source, (data, _) in files.items() if source != path]
    changes += [ModifyFile(path, encode(content))] if content != text else []
    output = ChangeHeadingOutput(
        path=path.text, heading=title or heading.text, level=level, links_updated=count
    )
    return Proposal(output, tuple(changes), tuple(problems))


def _renamed_destination(
    path: VaultPath, subpath: str, old: str, title: str
) -> LinkDestination | None:
    if old not in subpath_keys(subpath):
        return None
    parts = (
        link_heading(title) if heading_key(part) == old and not part.startswith("^") else part
        for part in subpath.split("#")[1:]
    )
    return LinkDestination(path, "#" + "#".join(parts))


def _shift_section(text: str, heading: str, by: int, title: str | None) -> str:
    section = edits.section(text, heading).heading
    inner = [
        inner_heading
        for inner_heading in edits.headings(text)
        if section.start < inner_heading.start < section.section_end
    ]
    for inner_heading in reversed(inner if by else []):
        text = _with_heading(text, inner_heading, min(6, max(1, inner_heading.level + by)), None)
    return (
        _with_heading(text, section, min(6, max(1, section.level + by)), title)
        if by or title is not None
        else text
    )


class ShiftHeadingsInput(ToolModel):
    path: PathText = Field(min_length=1)
    by: Whole | None = Field(
        default=None,
        ge=-5,
        le=5,
        description="Levels: 1 turns every # into ##, -1 does the opposite.",
    )
    from_level: Whole | None = Field(
        default=None, ge=1, le=6, description="Instead of by: only the headings of this level …"
    )
    to_level: Whole | None = Field(default=None, ge=1, le=6, description="… to this one.")

    @model_validator(mode="after")
    def _one_method(self) -> ShiftHeadingsInput:
        if (self.by is None) == (self.from_level is None) or (self.from_level is None) != (
            self.to_level is None
        ):
            raise ValueError("give by, or fromLevel and toLevel")
        return self


class ShiftHeadingsOutput(ToolModel):
    path: str
    count: int


@tool("vault.shiftHeadings", Risk.WRITES)
def shift_headings(args: ShiftHeadingsInput, ctx: ToolContext) -> Proposal[ShiftHeadingsOutput]:
    """Shift the levels of all headings of a note, or give the headings of one level another one."""
    path = find_file(ctx.view, args.path, PathUse.UPDATE)
    text = after = read_text(ctx.view, path)
    affected = [
        heading
        for heading in edits.headings(text)
        if args.from_level is None or heading.level == args.from_level
    ]
    for heading in reversed(affected):
        level = args.to_level if args.to_level is not None else heading.level + (args.by or 0)
        if not 1 <= level <= 6:
            message = f"“{heading.text}” would get level {level}; levels are 1 to 6."
            raise ToolError(
                message,
                path=path.text,
                hint="Shift by fewer levels, or only headings of one level.",
            )
        after = _with_heading(after, heading, level, None)
    return Proposal(
        ShiftHeadingsOutput(path=path.text, count=len(affected)), content_change(path, text, after)
    )


def _with_heading(text: str, heading: Heading, level: int, title: str | None) -> str:
    """Return the text with one heading changed; the underline of a setext heading is dropped."""
    newline = newline_of(text)
    whole = text[heading.start : heading.end]
    first, ended, _ = whole.partition("\n")
    line = _heading_line(first.rstrip("\r") if _ATX.match(first) else heading.text, level, title)
    return (
        text[: heading.start]
        + line
        + (newline if ended or whole.endswith("\n") else "")
        + text[heading.end :]
    )


def _heading_line(line: str, level: int, text: str | None) -> str:
    """Return the line of a heading, without line ending, with another level and perhaps text.

    Setext headings become ATX headings.
    """
    match = _ATX.match(line)
    if match is None:
        return f"{'#' * level} {line.strip() if text is None else text}"
    rest = (
        match["rest"]
        if text is None
        else f" {text}{closing[0] if (closing := _CLOSING.search(match['rest'])) else ''}"
    )
    return f"{match['lead']}{'#' * level}{rest}"


class TakeSectionInput(ToolModel):
    path: PathText = Field(min_length=1)
    heading: str = Field(
        min_length=1, description="The text of its heading, without #; the first match counts."
    )
    replacement: LongText | None = Field(
        default=None, description="A text to replace it, such as a link to its new note."
    )
    into: PathText | None = Field(default=None, description=INTO)
    as_note: bool = Field(
        default=False,
        description="With into: the section becomes that note, "
        "so links to its own heading lead to the note.",
    )


class TakeSectionOutput(ToolModel):
    path: str
    heading: str
    level: int
    text: str = Field(
        description="The heading and the text below it, without trailing blank lines."
    )
    content: str = Field(description="The text below it, without leading and trailing blank lines.")


@tool("vault.takeSection", Risk.WRITES)
def take_section(args: TakeSectionInput, ctx: ToolContext) -> Proposal[TakeSectionOutput]:
    """Move a section out of a note, with its heading and everything below it.

    Its text is returned for later steps; links to its headings can follow.
    """
    path, text = open_note(ctx, args.path)
    section = edits.section(text, args.heading)
    start = section.heading.start
    removed = text[start : section.end]
    rest = text[:start] + text[section.end :]
    if args.replacement is not None:
        newline = newline_of(text)
        replacement = with_newlines(args.replacement.strip("\n"), newline) + newline
        rest = (
            text[:start]
            + replacement
            + (newline if text[section.end :].strip() else "")
            + text[section.end :]
        )
    carried = anchors.move_text(
        removed,
        rest,
        path,
        anchors.find_destination(args.into, ctx),
        ctx,
        title=section.heading.text if args.as_note else None,
    )
    output = TakeSectionOutput(
        path=path.text,
        heading=section.heading.text,
        level=section.heading.level,
        text=carried.text.rstrip().replace("\r\n", "\n"),
        content=_body_of(carried.text).strip("\r\n").rstrip().replace("\r\n", "\n"),
    )
    return Proposal(
        output, (ModifyFile(path, encode(carried.rest)), *carried.changes), carried.problems
    )


def _body_of(section: str) -> str:
    """Return the text below the heading that a section begins with."""
    return section[edits.headings(section)[0].end :]
