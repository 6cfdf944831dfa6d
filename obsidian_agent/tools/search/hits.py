"""Tools that search for a name, a tag or a text."""

from __future__ import annotations

from pydantic import Field

from obsidian_agent.errors import Problem
from obsidian_agent.tools.core.filters import basename
from obsidian_agent.tools.core.lookup import (
    find_folder,
    page,
    tagged,
    unread_warnings,
)
from obsidian_agent.tools.core.models import SparseOutput, ToolModel, Whole
from obsidian_agent.tools.core.tool import PathText, Proposal, Risk, ToolContext, tool
from obsidian_agent.tools.search.search import LineQuery, preview, read_texts
from obsidian_agent.vault.paths.path import ROOT


class SearchInput(ToolModel):
    query: str = Field(min_length=1)
    limit: Whole | None = Field(
        default=None, ge=0, description="The maximum number of items; by default all."
    )
    offset: Whole = Field(default=0, ge=0)


class SearchHit(SparseOutput):
    path: str
    name: str = Field(description="Without folder and extension.")
    score: float | None = Field(default=None, description="From 0 to 100.")
    alias: str | None = Field(
        default=None,
        description="The alias of the note that matches the query better than its path.",
    )


class SearchOutput(ToolModel):
    items: list[SearchHit]
    total: int
    has_more: bool


@tool("vault.searchName", Risk.READ_ONLY, aliases=("search_vault_by_name",))
def search_name(args: SearchInput, ctx: ToolContext) -> Proposal[SearchOutput]:
    """Find files by name or alias, best hits first; letters may be missing.

    For an exact condition use vault.query.
    """
    needed = None if args.limit is None else args.offset + args.limit
    result = ctx.view.index.names().search(args.query, needed)
    hits, _ = page(result.hits, args.limit, args.offset)
    items = [
        SearchHit(path=hit.path, name=basename(hit.path), score=hit.score, alias=hit.alias)
        for hit in hits
    ]
    return Proposal(
        SearchOutput(
            items=items, total=result.total, has_more=args.offset + len(items) < result.total
        )
    )


@tool("vault.searchTag", Risk.READ_ONLY, aliases=("search_vault_by_tag",))
def search_tag(args: SearchInput, ctx: ToolContext) -> Proposal[SearchOutput]:
    """Find the notes with a tag, in properties or text; nested tags are included."""
    index = ctx.view.index
    notes = tagged(index, args.query, ROOT)
    selected, more = page(notes, args.limit, args.offset)
    items = [SearchHit(path=path.text, name=path.stem) for path in selected]
    return Proposal(
        SearchOutput(items=items, total=len(notes), has_more=more), warnings=unread_warnings(index)
    )


class SearchTextInput(ToolModel):
    query: str = Field(
        min_length=1,
        description="A text, or with regex a Python regular expression, matched line by line.",
    )
    folder: PathText | None = Field(default=None, description="By default the whole vault.")
    regex: bool = False
    case_sensitive: bool = False
    limit: Whole | None = Field(
        default=None, ge=0, description="The maximum number of matches; by default all."
    )
    offset: Whole = Field(default=0, ge=0)


class TextMatch(ToolModel):
    path: str
    line: int = Field(description="From 1.")
    preview: str


class SearchTextOutput(ToolModel):
    matches: list[TextMatch]
    total: int = Field(description="The number of matching lines.")
    has_more: bool
    scanned: int = Field(description="The number of notes that were read.")


@tool(
    "vault.searchText",
    Risk.READ_ONLY,
    aliases=("vault_search", "search_vault_by_content", "obsidian.search_vault"),
)
def search_text(args: SearchTextInput, ctx: ToolContext) -> Proposal[SearchTextOutput]:
    """Find the lines of notes (Markdown files) that contain a text or match a pattern."""
    line_query = LineQuery(args.query, regex=args.regex, case_sensitive=args.case_sensitive)
    folder = find_folder(ctx.view, args.folder)
    hits: list[TextMatch] = []
    warnings: list[Problem] = []
    index = ctx.view.index
    for path, text in read_texts(index, folder, line_query.needle, warnings):
        hits += (
            TextMatch(path=path.text, line=number, preview=preview(line, span))
            for number, line, span in line_query.lines(text)
        )
    matches, more = page(hits, args.limit, args.offset)
    scanned = index.note_count(folder) - len(warnings)
    output = SearchTextOutput(
        matches=list(matches), total=len(hits), has_more=more, scanned=scanned
    )
    return Proposal(output, warnings=tuple(warnings))
