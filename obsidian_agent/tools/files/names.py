"""New names: of files by a pattern, and short ones from titles."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from obsidian_agent.errors import ToolError
from obsidian_agent.tools.core.filters import FilterContext, LinkWriter, ListTemplate
from obsidian_agent.tools.core.models import ToolModel, Whole, path_of
from obsidian_agent.tools.core.tool import Proposal, Risk, ToolContext, tool
from obsidian_agent.vault.paths.path import PathUse, parse
from obsidian_agent.vault.paths.rules import clean_component, slug


class NewNamesInput(ToolModel):
    items: list[Any] = Field(description="The files of another step, as vault.find returns them.")
    pattern: str = Field(
        default="{name}",
        min_length=1,
        description="The new name without extension: {name}, {index}, "
        "{mtimeMs|date:YYYY-MM-DD}, {frontmatter.KEY}.",
    )
    find: str | None = Field(
        default=None, min_length=1, description="A text to replace in the name first; case counts."
    )
    replace: str = ""


class NewName(ToolModel):
    path: str
    to: str


class NewNamesOutput(ToolModel):
    items: list[NewName] = Field(description="The files with another name; the folder stays.")
    count: int


@tool("util.newNames", Risk.READ_ONLY)
def new_names(args: NewNamesInput, ctx: ToolContext) -> Proposal[NewNamesOutput]:
    """Suggest new names for files by a pattern; files that keep their name are omitted."""
    template = ListTemplate(args.pattern, FilterContext(LinkWriter(ctx.view), ctx.run.now))
    names: list[NewName] = []
    for index, item in enumerate([item for item in args.items if item is not None], 1):
        path = parse(path_of(item), PathUse.READ)
        name = path.stem.replace(args.find, args.replace) if args.find is not None else path.stem
        fields = {
            **(item if isinstance(item, dict) else {}),
            "name": name,
            "folder": path.parent.name,
        }
        filled = template.fill(fields, index).strip()
        if not filled:
            raise ToolError(f"The new name of {path} would be empty.", path=path.text)
        new = f"{clean_component(filled)}{path.suffix}"
        to = new if path.parent.is_root else f"{path.parent.text}/{new}"
        if to != path.text:
            names.append(NewName(path=path.text, to=to))
    return Proposal(NewNamesOutput(items=names, count=len(names)))


class SlugifyInput(ToolModel):
    title: str
    separator: str = "-"
    max_length: Whole | None = Field(default=None, ge=1)


class SlugifyOutput(ToolModel):
    slug: str


@tool("util.slugifyTitle", Risk.READ_ONLY)
def slugify_title(args: SlugifyInput, ctx: ToolContext) -> Proposal[SlugifyOutput]:
    """Make a short lower-case name from a title."""
    return Proposal(SlugifyOutput(slug=slug(args.title, args.separator, args.max_length)))
