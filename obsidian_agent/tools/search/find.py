"""Tools that find files by conditions.

`vault.query` is a simpler form of `vault.find`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, Self

from pydantic import Field

from obsidian_agent.errors import ToolError
from obsidian_agent.tools.core.lookup import (
    find_folder,
    page,
    sort_key,
    value_of,
)
from obsidian_agent.tools.core.models import ToolModel, Whole
from obsidian_agent.tools.core.tool import PathText, Proposal, Risk, ToolContext, tool
from obsidian_agent.tools.search.conditions import WHEN, Condition, Matcher, PropertyFilter, day_of
from obsidian_agent.vault.index.text_search import folded_needle
from obsidian_agent.vault.paths.path import VaultPath

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
        holding = matcher.notes_with(
            folder, folded_needle(args.text), lambda content: text in content.casefold()
        )
        matches = [path for path in matches if path in holding]
    selected, more = page(sort_files(matches, args.sort, ctx, matcher), args.limit, args.offset)
    files = [FileSummary.of(path, ctx, matcher) for path in selected]
    return Proposal(
        QueryOutput(files=files, count=len(files), has_more=more), warnings=matcher.warnings(where)
    )
