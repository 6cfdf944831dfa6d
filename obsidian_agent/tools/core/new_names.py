"""`util.newNames`: other names for files by a pattern, to rename them with."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from obsidian_agent.errors import ToolError
from obsidian_agent.tools.core.filters import FilterContext, LinkWriter, ListTemplate
from obsidian_agent.tools.core.lookup import path_of
from obsidian_agent.tools.core.tool import Proposal, Risk, ToolContext, ToolModel, Whole, tool
from obsidian_agent.vault.markdown import edits
from obsidian_agent.vault.paths.path import PathUse, clean_component, parse


class NewNamesInput(ToolModel):
    items: list[Any] = Field(description="The files of another step, as vault.find gives them.")
    pattern: str = Field(
        default="{name}",
        min_length=1,
        description="The new name without extension: {name}, {index}, {mtimeMs|date:YYYY-MM-DD}, {frontmatter.KEY}.",
    )
    find: str | None = Field(default=None, min_length=1, description="A text to replace in the name first; case counts.")
    replace: str = ""


class NewName(ToolModel):
    path: str
    to: str


class NewNamesOutput(ToolModel):
    items: list[NewName] = Field(description="The files that get another name; the folder stays.")
    count: int


@tool("util.newNames", Risk.READ_ONLY)
def new_names(args: NewNamesInput, ctx: ToolContext) -> Proposal[NewNamesOutput]:
    """Other names for files by a pattern, to rename them with; those whose name would stay are left out."""
    template = ListTemplate(args.pattern, FilterContext(LinkWriter(ctx.view), ctx.run.now))
    made: list[NewName] = []
    for index, item in enumerate([item for item in args.items if item is not None], 1):
        path = parse(path_of(item), PathUse.READ)
        name = path.stem.replace(args.find, args.replace) if args.find is not None else path.stem
        fields = {**(item if isinstance(item, dict) else {}), "name": name, "folder": path.parent.name}
        filled = template.fill(fields, index).strip()
        if not filled:
            raise ToolError(f"{path} would have no name.", path=path.text)
        new = f"{clean_component(filled)}{path.suffix}"
        to = new if path.parent.is_root else f"{path.parent.text}/{new}"
        if to != path.text:
            made.append(NewName(path=path.text, to=to))
    return Proposal(NewNamesOutput(items=made, count=len(made)))


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
