"""The tool that changes properties: `vault.setFrontmatter`."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from obsidian_agent.errors import ObsidianAgentError, ToolError
from obsidian_agent.tools.base import PathText, Proposal, Risk, Tool, ToolContext, ToolModel
from obsidian_agent.tools.notes import find_file, read_text
from obsidian_agent.vault import frontmatter
from obsidian_agent.vault.changes import FileChange, ModifyFile
from obsidian_agent.vault.paths import PathUse
from obsidian_agent.vault.text import encode


class SetFrontmatterInput(ToolModel):
    path: PathText = Field(min_length=1, description="A Markdown file.")
    set: dict[str, Any] = Field(default_factory=dict, description="New values by property: text, number, true, false, null, list or map.")
    remove: list[str] = Field(default_factory=list, description="Properties to take away, with their values.")
    add_tags: list[str] = Field(default_factory=list, description="Tags to add to the property tags, with or without #.")
    remove_tags: list[str] = Field(default_factory=list, description="Tags to take out of the property tags.")


class SetFrontmatterOutput(ToolModel):
    path: str
    changed: bool


def _set_frontmatter(args: SetFrontmatterInput, ctx: ToolContext) -> Proposal:
    path = find_file(ctx.view, args.path, PathUse.UPDATE)
    if not path.is_note:
        raise ToolError(f"{path} is no Markdown file, so it has no properties.", path=path.text)
    before = read_text(ctx.view, path)
    try:
        after = frontmatter.edit(before, set=args.set, remove=args.remove, add_tags=args.add_tags, remove_tags=args.remove_tags)
    except ObsidianAgentError as error:
        error.path = path.text
        raise
    changes: tuple[FileChange, ...] = () if after == before else (ModifyFile(path, encode(after)),)
    return Proposal(SetFrontmatterOutput(path=path.text, changed=bool(changes)), changes)


SET_FRONTMATTER = Tool(
    name="vault.setFrontmatter",
    summary="Set and remove properties of a note, add and remove its tags; no other character changes.",
    risk=Risk.WRITES,
    input=SetFrontmatterInput,
    output=SetFrontmatterOutput,
    propose=_set_frontmatter,
)
