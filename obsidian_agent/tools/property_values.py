"""`vault.addValues`: values for a property that is a list; those that are there stay."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from obsidian_agent.tools.base import PathText, Proposal, Risk, Tool, ToolContext, ToolModel
from obsidian_agent.tools.notes import find_file, read_text
from obsidian_agent.vault import frontmatter
from obsidian_agent.vault.changes import ModifyFile
from obsidian_agent.vault.paths import PathUse
from obsidian_agent.vault.text import encode


class AddValuesInput(ToolModel):
    path: PathText = Field(min_length=1)
    property: str = Field(min_length=1, description="Such as aliases; a single value that is there becomes the first of the list.")
    values: list[Any] = Field(min_length=1, description="Those that are in the list already are not added again.")


class AddValuesOutput(ToolModel):
    path: str
    values: list[Any] = Field(description="The whole list.")
    changed: bool


def _add_values(args: AddValuesInput, ctx: ToolContext) -> Proposal:
    path = find_file(ctx.view, args.path, PathUse.UPDATE)
    text = read_text(ctx.view, path)
    there = frontmatter.read(text).get(args.property)
    values = list(there) if isinstance(there, list) else [] if there is None or there == "" else [there]
    new = [value for number, value in enumerate(args.values) if value not in values and value not in args.values[:number]]
    if not new:
        return Proposal(AddValuesOutput(path=path.text, values=values, changed=False))
    changed = frontmatter.edit(text, set={args.property: [*values, *new]})
    return Proposal(AddValuesOutput(path=path.text, values=[*values, *new], changed=True), (ModifyFile(path, encode(changed)),))


ADD_VALUES = Tool(
    name="vault.addValues",
    summary="Add values to a property that is a list, such as aliases or authors; for tags use vault.setFrontmatter.",
    risk=Risk.WRITES,
    input=AddValuesInput,
    output=AddValuesOutput,
    propose=_add_values,
)
