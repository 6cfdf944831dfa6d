"""`vault.addValues` and `vault.removeValues`: values of a property that is a list; the others stay."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from obsidian_agent.errors import Problem
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

# --- vault.removeValues -------------------------------------------------------------------------------------------------------


class RemoveValuesInput(ToolModel):
    path: PathText = Field(min_length=1)
    property: str = Field(
        min_length=1, description="Such as authors. The last value that goes leaves an empty list; a single one goes as a whole."
    )
    values: list[Any] = Field(min_length=1, description="In any case; a link by its text or target.")


def _remove_values(args: RemoveValuesInput, ctx: ToolContext) -> Proposal:
    path = find_file(ctx.view, args.path, PathUse.UPDATE)
    text = read_text(ctx.view, path)
    there = frontmatter.read(text).get(args.property)
    values = list(there) if isinstance(there, list) else [] if there is None or there == "" else [there]
    unwanted = {_key(value) for value in args.values}
    kept = [value for value in values if _key(value) not in unwanted]
    if len(kept) == len(values):
        missing = Problem("TEXT_NOT_FOUND", f"{path} has none of these values in {args.property}.", path=path.text)
        return Proposal(AddValuesOutput(path=path.text, values=values, changed=False), warnings=(missing,))
    whole = not isinstance(there, list)
    changed = frontmatter.edit(text, set={args.property: None if whole else kept})
    return Proposal(AddValuesOutput(path=path.text, values=kept, changed=True), (ModifyFile(path, encode(changed)),))


def _key(value: Any) -> str:
    text = str(value).strip().casefold()
    if text.startswith("[[") and text.endswith("]]"):
        return text[2:-2].partition("|")[0].partition("#")[0].rpartition("/")[2].strip()
    return text


REMOVE_VALUES = Tool(
    name="vault.removeValues",
    summary="Take values out of a property that is a list, such as aliases or authors; for tags use vault.setFrontmatter.",
    risk=Risk.WRITES,
    input=RemoveValuesInput,
    output=AddValuesOutput,
    propose=_remove_values,
)
