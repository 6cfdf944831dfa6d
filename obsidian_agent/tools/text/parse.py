"""Tools that turn text into items and items into text; they change nothing."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from obsidian_agent.tools.core.filters import FilterContext
from obsidian_agent.tools.core.lookup import SparseOutput, find_file, read_text
from obsidian_agent.tools.core.tool import LongText, PathText, Proposal, Risk, ToolContext, ToolModel, Whole, tool
from obsidian_agent.tools.files.templates import ListTemplate
from obsidian_agent.tools.links.convert import LinkWriter
from obsidian_agent.vault.markdown import edits


class ParseBulletsInput(ToolModel):
    text: LongText


class BulletItem(SparseOutput):
    text: str = Field(description="Without marker, checkbox and block id.")
    raw: str = Field(description="The whole line.")
    depth: int = Field(description="From 0.")
    slug: str
    checked: bool | None = Field(default=None, description="Absent without a checkbox.")


class ParseBulletsOutput(ToolModel):
    items: list[BulletItem]
    count: int


@tool("util.parseMarkdownBullets", Risk.READ_ONLY)
def parse_bullets(args: ParseBulletsInput, ctx: ToolContext) -> Proposal[ParseBulletsOutput]:
    """The list items of a text, bulleted and numbered."""
    items = [
        BulletItem(text=bullet.text, raw=bullet.raw, depth=bullet.depth, slug=edits.slug(bullet.text), checked=bullet.checked)
        for bullet in edits.bullets(args.text)
    ]
    return Proposal(ParseBulletsOutput(items=items, count=len(items)))


class TextOrPath(ToolModel):
    text: LongText | None = None
    path: PathText | None = None

    @model_validator(mode="after")
    def _one_source(self) -> TextOrPath:
        if (self.text is None) == (self.path is None):
            raise ValueError("give exactly one of text and path")
        return self

    def read(self, ctx: ToolContext) -> str:
        """The text itself, or that of the file at `path`."""
        if self.path is None:
            return self.text or ""
        return read_text(ctx.view, find_file(ctx.view, self.path))


class ParseHeadingsInput(TextOrPath):
    level: Whole | None = Field(default=None, ge=1, le=6, description="Only headings of this level.")


class HeadingItem(ToolModel):
    text: str
    level: int
    slug: str
    content: str = Field(
        description="What stands below it, up to the next heading of its level or a higher one, without blank lines at both ends."
    )
    line: int = Field(description="From 1.")


class ParseHeadingsOutput(ToolModel):
    items: list[HeadingItem]
    count: int


@tool("util.parseHeadings", Risk.READ_ONLY)
def parse_headings(args: ParseHeadingsInput, ctx: ToolContext) -> Proposal[ParseHeadingsOutput]:
    """The headings of a text or a file, with what stands below each."""
    text = args.read(ctx)
    items = [
        HeadingItem(
            text=heading.text,
            level=heading.level,
            slug=edits.slug(heading.text),
            content=_without_blank_lines(text[heading.end : heading.section_end]),
            line=heading.line,
        )
        for heading in edits.headings(text)
        if args.level is None or heading.level == args.level
    ]
    return Proposal(ParseHeadingsOutput(items=items, count=len(items)))


def _without_blank_lines(body: str) -> str:
    lines = body.split("\n")
    filled = [number for number, line in enumerate(lines) if line.strip()]
    return "\n".join(lines[filled[0] : filled[-1] + 1]).removesuffix("\r") if filled else ""


class TaskItem(ToolModel):
    text: str
    status: str = Field(description="The character in the checkbox: a blank is open, x is done.")
    line: int = Field(description="From 1.")


class ParseTasksOutput(ToolModel):
    items: list[TaskItem]
    count: int


@tool("util.parseTasks", Risk.READ_ONLY)
def parse_tasks(args: TextOrPath, ctx: ToolContext) -> Proposal[ParseTasksOutput]:
    """The list items with a checkbox of a text or a file."""
    items = [TaskItem(text=task.text, status=task.status, line=task.line) for task in edits.tasks(args.read(ctx))]
    return Proposal(ParseTasksOutput(items=items, count=len(items)))


class FormatListInput(ToolModel):
    items: list[Any]
    template: LongText = Field(description="One item: {field}, {field|filter}, {item} and {index} (from 0), such as - {path|link}")
    separator: str = "\n"


class FormatListOutput(ToolModel):
    text: str
    count: int


@tool("util.formatList", Risk.READ_ONLY)
def format_list(args: FormatListInput, ctx: ToolContext) -> Proposal[FormatListOutput]:
    """Join items into one text; items that are null (skipped instances) are left out."""
    template = ListTemplate(args.template, FilterContext(LinkWriter(ctx.view), ctx.run.now))
    texts = [template.fill(item, index) for index, item in enumerate(args.items) if item is not None]
    return Proposal(FormatListOutput(text=args.separator.join(texts), count=len(texts)))


class SlugifyInput(ToolModel):
    title: str
    separator: str = "-"
    max_length: Whole | None = Field(default=None, ge=1)


class SlugifyOutput(ToolModel):
    slug: str


@tool("util.slugifyTitle", Risk.READ_ONLY)
def slugify_title(args: SlugifyInput, ctx: ToolContext) -> Proposal[SlugifyOutput]:
    """A short lower-case name made from a title."""
    return Proposal(SlugifyOutput(slug=edits.slug(args.title, args.separator, args.max_length)))
