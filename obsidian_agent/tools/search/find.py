"""Tools that find files: by conditions, by name, tag and text, and duplicates.

`vault.query` is a simpler form of `vault.find`.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final, Literal, Self

from pydantic import Field

from obsidian_agent.errors import Problem, ToolError
from obsidian_agent.tools.core.filters import basename
from obsidian_agent.tools.core.lookup import (
    find_folder,
    page,
    sort_key,
    unread_warnings,
    value_of,
    without_properties,
)
from obsidian_agent.tools.core.models import NotesInput, SparseOutput, ToolModel, Whole
from obsidian_agent.tools.core.tool import PathText, Proposal, Risk, ToolContext, tool
from obsidian_agent.tools.search.conditions import WHEN, Condition, Matcher, PropertyFilter, day_of
from obsidian_agent.tools.search.search import LineQuery, preview, read_texts, tagged
from obsidian_agent.vault.index.text_search import folded_needle
from obsidian_agent.vault.paths.path import ROOT, VaultPath

_PROPERTY = "frontmatter."
ORDERS: Final = (
    "path (default), name, modified, created, day, size or frontmatter.KEY; "
    "a leading - reverses the order."
)
"""The possible orders of results, for the schemas of tools that sort."""
_NEVER_ATTACHED = frozenset((".canvas", ".base"))


class FindInput(ToolModel):
    where: Condition = Field(
        default=Condition(), description="The condition; by default all files match."
    )
    kind: Literal["notes", "attachments", "files"] = Field(
        default="notes",
        description="Notes; all files that are neither notes, canvases nor bases; or every file.",
    )
    sort: str | None = Field(default=None, description=ORDERS)
    limit: Whole | None = Field(
        default=None, ge=0, description="The maximum number, after sorting; by default all."
    )


class FileSummary(ToolModel):
    path: str
    name: str = Field(description="Without folder and extension.")
    folder: str
    frontmatter: dict[str, Any]
    tags: list[str]
    mtime_ms: float
    size: int = Field(description="In bytes.")

    @classmethod
    def of(cls, path: VaultPath, ctx: ToolContext, matcher: Matcher, **more: str) -> Self:
        """Return the summary of a file."""
        facts, stat = matcher.index.facts(path), ctx.view.stat(path)
        return cls(
            path=path.text,
            name=path.stem,
            folder=path.parent.text,
            frontmatter=dict(facts.properties),
            tags=list(facts.tags),
            mtime_ms=stat.mtime_ms,
            size=stat.size,
            **more,
        )


class MatchingFile(FileSummary):
    file: str = Field(description="The name with its extension.")
    extension: str = Field(description="Without dot, in lower case.")


class FindOutput(ToolModel):
    files: list[MatchingFile]
    count: int = Field(description="The number of files in this answer.")
    has_more: bool


@tool("vault.find", Risk.READ_ONLY)
def find(args: FindInput, ctx: ToolContext) -> Proposal[FindOutput]:
    """Find the files that meet a condition.

    It combines folder, tag, property, name, text, dates, links and tasks by all, any and not.
    """
    matcher = Matcher(ctx)
    fits = matcher.check(args.where)
    matches = [
        path for path in matcher.candidates(args.where) if _is_kind(path, args.kind) and fits(path)
    ]
    selected, more = page(sort_files(matches, args.sort, ctx, matcher), args.limit, 0)
    files = [
        MatchingFile.of(
            path, ctx, matcher, file=path.name, extension=path.suffix.lower().lstrip(".")
        )
        for path in selected
    ]
    return Proposal(
        FindOutput(files=files, count=len(files), has_more=more),
        warnings=matcher.warnings(args.where),
    )


def _is_kind(path: VaultPath, kind: str) -> bool:
    match kind:
        case "notes":
            return path.is_note
        case "attachments":
            return not path.is_note and path.suffix.lower() not in _NEVER_ATTACHED
        case _:
            return True


def sort_files(
    paths: list[VaultPath], sort: str | None, ctx: ToolContext, matcher: Matcher
) -> list[VaultPath]:
    """Sort the files (`None`: by path); equal ones by path, those without the value always last."""
    sort = sort or "path"
    key, reverse = (sort[1:], True) if sort.startswith("-") else (sort, False)
    measures: dict[str, Callable[[VaultPath], Any]] = {
        "path": lambda path: path.text,
        "name": lambda path: path.stem.casefold(),
        "modified": lambda path: ctx.view.stat(path).mtime_ms,
        "created": matcher.created_ms,
        "size": lambda path: ctx.view.stat(path).size,
        "day": lambda path: day_of(path, matcher.index),
    }
    if key.startswith(_PROPERTY) and len(key) > len(_PROPERTY):
        measures[key] = lambda path: sort_key(
            value_of(matcher.index.facts(path).properties, key.removeprefix(_PROPERTY))
        )
    if key not in measures:
        raise ToolError(
            f"{sort!r} is not a sort order.",
            hint="Use path, name, modified, created, day, size or frontmatter.KEY; "
            "a leading - reverses it.",
        )
    values = {path: measures[key](path) for path in sorted(paths)}
    with_value = [path for path, value in values.items() if value is not None]
    with_value.sort(key=lambda path: values[path], reverse=reverse)
    return with_value + [path for path, value in values.items() if value is None]


class QueryInput(ToolModel):
    folder: PathText | None = Field(
        default=None, description="Only notes below it; by default the whole vault."
    )
    tag: str | None = Field(
        default=None, min_length=1, description="With or without #; nested tags are included."
    )
    frontmatter: dict[str, Any] | None = Field(
        default=None,
        description="Property: the value it equals or, as a list, contains; "
        "a link by its target; null: it is missing.",
    )
    name: str | None = Field(
        default=None,
        min_length=1,
        description="A part of the name, ignoring case, or a pattern with * and ?.",
    )
    text: str | None = Field(
        default=None, min_length=1, description="A text in the note, ignoring case."
    )
    modified_before: str | None = Field(default=None, description=WHEN)
    modified_after: str | None = Field(
        default=None, description="Like modifiedBefore; the time itself is included."
    )
    created_before: str | None = Field(
        default=None,
        description="Like modifiedBefore; uses the property created if that is a date, "
        "else the file's own time.",
    )
    created_after: str | None = None
    sort: str | None = Field(default=None, description=ORDERS)
    limit: Whole | None = Field(
        default=None, ge=0, description="The maximum number of notes; by default all."
    )
    offset: Whole = Field(default=0, ge=0)


class QueryOutput(ToolModel):
    files: list[FileSummary]
    count: int = Field(description="The number of notes in this answer.")
    has_more: bool


@tool("vault.query", Risk.READ_ONLY)
def query(args: QueryInput, ctx: ToolContext) -> Proposal[QueryOutput]:
    """Find the notes that meet all conditions: folder, tag, properties, name, text, dates."""
    matcher = Matcher(ctx)
    folder = find_folder(ctx.view, args.folder)
    shared = (
        "folder",
        "tag",
        "name",
        "modified_before",
        "modified_after",
        "created_before",
        "created_after",
    )
    where = Condition(**{name: getattr(args, name) for name in shared})
    fits = matcher.check(where)
    matches = [path for path in matcher.index.notes(folder) if fits(path)]
    for key, value in (args.frontmatter or {}).items():
        matcher.uses_facts = True
        filter_ = PropertyFilter(key, value, matcher.index)
        matches = [path for path in matches if filter_.fits(path)]
    if args.text is not None:
        text = args.text.casefold()
        holding = matcher.holding(
            folder, folded_needle(args.text), lambda content: text in content.casefold()
        )
        matches = [path for path in matches if path in holding]
    selected, more = page(sort_files(matches, args.sort, ctx, matcher), args.limit, args.offset)
    files = [FileSummary.of(path, ctx, matcher) for path in selected]
    return Proposal(
        QueryOutput(files=files, count=len(files), has_more=more), warnings=matcher.warnings(where)
    )


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


class FindDuplicatesInput(NotesInput):
    by: Literal["content", "name"] = Field(
        default="content",
        description="The text below the properties without surrounding whitespace, or the name.",
    )


class DuplicateNote(ToolModel):
    path: str
    name: str
    group: str = Field(description="The name of the first of its group.")


class DuplicateGroup(ToolModel):
    key: str = Field(description="Their common name, or the name of the first.")
    items: list[DuplicateNote]
    count: int


class FindDuplicatesOutput(ToolModel):
    groups: list[DuplicateGroup]
    count: int
    notes: int = Field(description="The number of notes in all groups.")


@tool("vault.findDuplicates", Risk.READ_ONLY)
def find_duplicates(args: FindDuplicatesInput, ctx: ToolContext) -> Proposal[FindDuplicatesOutput]:
    """Find groups of notes with the same text or the same name.

    Empty texts are ignored.
    """
    problems: list[Problem] = []
    alike: dict[str, list[VaultPath]] = defaultdict(list)
    if args.by == "name":
        for path in args.notes(ctx):
            alike[unicodedata.normalize("NFC", path.stem).casefold()].append(path)
    else:
        for path, text in args.texts(ctx, problems):
            body = without_properties(text).replace("\r\n", "\n").strip("\ufeff \t\n")
            if body:
                alike[body].append(path)
    groups = [_group(paths) for paths in alike.values() if len(paths) > 1]
    groups.sort(key=lambda group: group.key.casefold())
    output = FindDuplicatesOutput(
        groups=groups, count=len(groups), notes=sum(group.count for group in groups)
    )
    return Proposal(output, warnings=tuple(problems))


def _group(paths: list[VaultPath]) -> DuplicateGroup:
    name = paths[0].stem
    notes = [DuplicateNote(path=path.text, name=path.stem, group=name) for path in paths]
    return DuplicateGroup(key=name, items=notes, count=len(notes))
