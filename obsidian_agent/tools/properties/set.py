"""`vault.addValues` and `vault.removeValues`: values of a property that is a list; the others stay.

When a property has a value: equal, in its list, or a link to the same file.

The tool that changes properties: `vault.setFrontmatter`.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from obsidian_agent.errors import ObsidianAgentError, Problem, ToolError
from obsidian_agent.tools.core.lookup import find_file, read_text
from obsidian_agent.tools.core.tool import PathText, Proposal, Risk, ToolContext, ToolModel, tool
from obsidian_agent.vault.frontmatter import read
from obsidian_agent.vault.markdown.text import encode
from obsidian_agent.vault.paths.path import PathUse
from obsidian_agent.vault.views.changes import FileChange, ModifyFile


class AddValuesInput(ToolModel):
    path: PathText = Field(min_length=1)
    property: str = Field(min_length=1, description="Such as aliases; a single value that is there becomes the first of the list.")
    values: list[Any] = Field(min_length=1, description="Those that are in the list already are not added again.")


class AddValuesOutput(ToolModel):
    path: str
    values: list[Any] = Field(description="The whole list.")
    changed: bool


@tool("vault.addValues", Risk.WRITES)
def add_values(args: AddValuesInput, ctx: ToolContext) -> Proposal[AddValuesOutput]:
    """Add values to a property that is a list, such as aliases or authors; for tags use vault.setFrontmatter."""
    path = find_file(ctx.view, args.path, PathUse.UPDATE)
    text = read_text(ctx.view, path)
    there = read.read(text).get(args.property)
    values = list(there) if isinstance(there, list) else [] if there is None or there == "" else [there]
    new = [value for number, value in enumerate(args.values) if value not in values and value not in args.values[:number]]
    if not new:
        return Proposal(AddValuesOutput(path=path.text, values=values, changed=False))
    changed = read.edit(text, set={args.property: [*values, *new]})
    return Proposal(AddValuesOutput(path=path.text, values=[*values, *new], changed=True), (ModifyFile(path, encode(changed)),))


class RemoveValuesInput(ToolModel):
    path: PathText = Field(min_length=1)
    property: str = Field(
        min_length=1, description="Such as authors. The last value that goes leaves an empty list; a single one goes as a whole."
    )
    values: list[Any] = Field(min_length=1, description="In any case; a link by its text or target.")


@tool("vault.removeValues", Risk.WRITES)
def remove_values(args: RemoveValuesInput, ctx: ToolContext) -> Proposal[AddValuesOutput]:
    """Take values out of a property that is a list, such as aliases or authors; for tags use vault.setFrontmatter."""
    path = find_file(ctx.view, args.path, PathUse.UPDATE)
    text = read_text(ctx.view, path)
    there = read.read(text).get(args.property)
    values = list(there) if isinstance(there, list) else [] if there is None or there == "" else [there]
    unwanted = {_key(value) for value in args.values}
    kept = [value for value in values if _key(value) not in unwanted]
    if len(kept) == len(values):
        missing = Problem("TEXT_NOT_FOUND", f"{path} has none of these values in {args.property}.", path=path.text)
        return Proposal(AddValuesOutput(path=path.text, values=values, changed=False), warnings=(missing,))
    whole = not isinstance(there, list)
    changed = read.edit(text, set={args.property: None if whole else kept})
    return Proposal(AddValuesOutput(path=path.text, values=kept, changed=True), (ModifyFile(path, encode(changed)),))


def _key(value: Any) -> str:
    text = str(value).strip().casefold()
    if text.startswith("[[") and text.endswith("]]"):
        return text[2:-2].partition("|")[0].partition("#")[0].rpartition("/")[2].strip()
    return text


class SetFrontmatterInput(ToolModel):
    path: PathText = Field(min_length=1, description="A Markdown file.")
    set: dict[str, Any] = Field(default_factory=dict, description="New values by property: text, number, true, false, null, list or map.")
    remove: list[str] = Field(default_factory=list, description="Properties to take away, with their values.")
    add_tags: list[str] = Field(default_factory=list, description="Tags to add to the property tags, with or without #.")
    remove_tags: list[str] = Field(default_factory=list, description="Tags to take out of the property tags.")


class SetFrontmatterOutput(ToolModel):
    path: str
    changed: bool


@tool("vault.setFrontmatter", Risk.WRITES)
def set_frontmatter(args: SetFrontmatterInput, ctx: ToolContext) -> Proposal[SetFrontmatterOutput]:
    """Set and remove properties of a note, add and remove its tags; no other character changes."""
    path = find_file(ctx.view, args.path, PathUse.UPDATE)
    if not path.is_note:
        raise ToolError(f"{path} is no Markdown file, so it has no properties.", path=path.text)
    before = read_text(ctx.view, path)
    try:
        after = read.edit(before, set=args.set, remove=args.remove, add_tags=args.add_tags, remove_tags=args.remove_tags)
    except ObsidianAgentError as error:
        error.path = path.text
        raise
    changes: tuple[FileChange, ...] = () if after == before else (ModifyFile(path, encode(after)),)
    return Proposal(SetFrontmatterOutput(path=path.text, changed=bool(changes)), changes)
