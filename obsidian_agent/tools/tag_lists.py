"""`vault.listTags`: the tags of the vault or of some notes, with the number of notes that have them."""

from __future__ import annotations

from pydantic import Field

from obsidian_agent.tools.base import Proposal, Risk, Tool, ToolContext, ToolModel
from obsidian_agent.tools.finding import unread
from obsidian_agent.tools.sources import NotesInput
from obsidian_agent.vault.index import index_of
from obsidian_agent.vault.index_facts import tag_key


class ListTagsInput(NotesInput):
    pass


class CountedTag(ToolModel):
    tag: str = Field(description="Without #, in the spelling that comes first.")
    count: int = Field(description="The number of notes.")


class ListTagsOutput(ToolModel):
    items: list[CountedTag]
    count: int


def _list_tags(args: ListTagsInput, ctx: ToolContext) -> Proposal:
    index = index_of(ctx.view)
    names: dict[str, str] = {}
    counts: dict[str, int] = {}
    for path in args.notes(ctx):
        for tag in index.facts(path).tags:
            key = tag_key(tag)
            names.setdefault(key, tag)
            counts[key] = counts.get(key, 0) + 1
    items = [CountedTag(tag=names[key], count=counts[key]) for key in sorted(names)]
    return Proposal(ListTagsOutput(items=items, count=len(items)), warnings=unread(index))


LIST_TAGS = Tool(
    name="vault.listTags",
    summary="The tags of the vault, a folder or some notes, in alphabetical order, with the number of notes that have each.",
    risk=Risk.READ_ONLY,
    input=ListTagsInput,
    output=ListTagsOutput,
    propose=_list_tags,
)
