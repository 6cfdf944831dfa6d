"""`vault.removeTags`: tags out of a note, wherever it has them."""

from __future__ import annotations

from pydantic import Field

from obsidian_agent.tools.base import PathText, Proposal, Risk, Tool, ToolContext, ToolModel
from obsidian_agent.tools.notes import find_file
from obsidian_agent.vault.changes import ModifyFile
from obsidian_agent.vault.paths import PathUse
from obsidian_agent.vault.untag import untag


class RemoveTagsInput(ToolModel):
    path: PathText = Field(min_length=1)
    tags: list[str] | None = Field(default=None, description="With or without #; nested tags are others. Without it: all tags.")


class RemoveTagsOutput(ToolModel):
    path: str
    count: int = Field(description="How many were taken out.")
    changed: bool


def _remove_tags(args: RemoveTagsInput, ctx: ToolContext) -> Proposal:
    path = find_file(ctx.view, args.path, PathUse.UPDATE)
    before = ctx.view.read(path)
    after, count = untag(before, args.tags, path.text)
    output = RemoveTagsOutput(path=path.text, count=count, changed=after != before)
    return Proposal(output, (ModifyFile(path, after),) if after != before else ())


REMOVE_TAGS = Tool(
    name="vault.removeTags",
    summary="Take tags out of a note, from its properties and its text; vault.setFrontmatter only knows those in properties.",
    risk=Risk.WRITES,
    input=RemoveTagsInput,
    output=RemoveTagsOutput,
    propose=_remove_tags,
)
