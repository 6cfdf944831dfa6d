"""`vault.query`: the notes that meet all of some conditions, in the plainer words of the plan language; `vault.find` judges them."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from obsidian_agent.tools.core.conditions import WHEN, Condition, Judge, PropertyFilter
from obsidian_agent.tools.core.lookup import find_folder, page
from obsidian_agent.tools.core.tool import PathText, Proposal, Risk, ToolContext, ToolModel, Whole, tool
from obsidian_agent.tools.search.find import ORDERS, FoundBriefly, ordered
from obsidian_agent.vault.index.needle import folded_needle


class QueryInput(ToolModel):
    folder: PathText | None = Field(default=None, description="Only notes below it; the vault when absent.")
    tag: str | None = Field(default=None, min_length=1, description="With or without #; nested tags are included.")
    frontmatter: dict[str, Any] | None = Field(
        default=None, description="Property: the value it equals or, as a list, holds; a link by its target; null: it has none."
    )
    name: str | None = Field(default=None, min_length=1, description="A part of the name, in any case, or a pattern with * and ?.")
    text: str | None = Field(default=None, min_length=1, description="A text that the note holds, in any case.")
    modified_before: str | None = Field(default=None, description=WHEN)
    modified_after: str | None = Field(default=None, description="As modifiedBefore; the moment itself is included.")
    created_before: str | None = Field(
        default=None, description="As modifiedBefore; by its property created where that is a date, else by the file's own time."
    )
    created_after: str | None = None
    sort: str | None = Field(default=None, description=ORDERS)
    limit: Whole | None = Field(default=None, ge=0, description="At most so many notes; all when absent.")
    offset: Whole = Field(default=0, ge=0)


class QueryOutput(ToolModel):
    files: list[FoundBriefly]
    count: int = Field(description="The number of notes in this answer.")
    has_more: bool


@tool("vault.query", Risk.READ_ONLY)
def query(args: QueryInput, ctx: ToolContext) -> Proposal[QueryOutput]:
    """The notes that meet all conditions: folder, tag, properties, name, text, dates."""
    judge = Judge(ctx)
    folder = find_folder(ctx.view, args.folder)
    shared = ("tag", "name", "modified_before", "modified_after", "created_before", "created_after")
    fits = judge.check(Condition(**{name: getattr(args, name) for name in shared}))
    found = [path for path in judge.index.notes(folder) if fits(path)]
    for key, value in (args.frontmatter or {}).items():
        judge.asked_facts = True
        wanted = PropertyFilter(key, value, judge.index)
        found = [path for path in found if wanted.fits(path)]
    if args.text is not None:
        text = args.text.casefold()
        holding = judge.holding(folder, folded_needle(args.text), lambda content: text in content.casefold())
        found = [path for path in found if path in holding]
    shown, more = page(ordered(found, args.sort, ctx, judge), args.limit, args.offset)
    files = [FoundBriefly.of(path, ctx, judge) for path in shown]
    below = "" if folder.is_root else f"{folder.text}/"
    warnings = tuple(problem for problem in judge.warnings() if (problem.path or "").startswith(below))
    return Proposal(QueryOutput(files=files, count=len(files), has_more=more), warnings=warnings)
