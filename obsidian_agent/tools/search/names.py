"""Tools that find files by name and notes by tag: `vault.searchName`, `vault.searchTag`."""

from __future__ import annotations

from pydantic import Field

from obsidian_agent.tools.core.conditions import tagged
from obsidian_agent.tools.core.lookup import SparseOutput, page, unread
from obsidian_agent.tools.core.tool import Proposal, Risk, ToolContext, ToolModel, Whole, tool
from obsidian_agent.vault.index.index import index_of
from obsidian_agent.vault.index.name_search import NameHit
from obsidian_agent.vault.paths.path import ROOT
from obsidian_agent.vault.paths.rules import extension


class FindInput(ToolModel):
    query: str = Field(min_length=1)
    limit: Whole | None = Field(default=None, ge=0, description="At most so many items; all when absent.")
    offset: Whole = Field(default=0, ge=0)


class FoundFile(SparseOutput):
    path: str
    name: str = Field(description="Without folder and extension.")
    score: float | None = Field(default=None, description="From 0 to 100.")
    alias: str | None = Field(default=None, description="The alias of the note that answers the query, where its path does less.")


class FindOutput(ToolModel):
    items: list[FoundFile]
    total: int
    has_more: bool


@tool("vault.searchName", Risk.READ_ONLY, aliases=("search_vault_by_name",))
def search_name(args: FindInput, ctx: ToolContext) -> Proposal[FindOutput]:
    """Find files by name or alias, best hits first; letters may be missing. For an exact condition use vault.query."""
    wanted = None if args.limit is None else args.offset + args.limit
    found = index_of(ctx.view).names().search(args.query, wanted)
    hits, _ = page(found.hits, args.limit, args.offset)
    items = [FoundFile(path=hit.path, name=_stem(hit.path), score=hit.score, **_alias(hit)) for hit in hits]
    return Proposal(FindOutput(items=items, total=found.total, has_more=args.offset + len(items) < found.total))


def _stem(path: str) -> str:
    name = path.rpartition("/")[2]
    return name[: len(name) - len(extension(name))]


def _alias(hit: NameHit) -> dict[str, str]:
    return {} if hit.alias is None else {"alias": hit.alias}


@tool("vault.searchTag", Risk.READ_ONLY, aliases=("search_vault_by_tag",))
def search_tag(args: FindInput, ctx: ToolContext) -> Proposal[FindOutput]:
    """Find the notes with a tag, in properties or text; nested tags are included."""
    index = index_of(ctx.view)
    found = tagged(index, args.query, ROOT)
    shown, more = page(found, args.limit, args.offset)
    items = [FoundFile(path=path.text, name=path.stem) for path in shown]
    return Proposal(FindOutput(items=items, total=len(found), has_more=more), warnings=unread(index))
