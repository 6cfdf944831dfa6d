"""`vault.query`: the notes that meet all of some conditions."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import Field

from obsidian_agent.errors import Problem, ToolError
from obsidian_agent.tools.base import PathText, Proposal, Risk, Tool, ToolContext, ToolModel, Whole
from obsidian_agent.tools.finding import tagged, unread
from obsidian_agent.tools.moments import moment_ms
from obsidian_agent.tools.notes import find_folder
from obsidian_agent.tools.properties_match import PropertyFilter, value_of
from obsidian_agent.tools.reading import page
from obsidian_agent.tools.search import searched
from obsidian_agent.vault.index import VaultIndex, index_of
from obsidian_agent.vault.paths import VaultPath
from obsidian_agent.vault.search_needle import folded_needle
from obsidian_agent.vault.view import FileStat, VaultView

_WHEN = "A date (YYYY-MM-DD, that is its beginning) or an ISO date and time."
_PROPERTY = "frontmatter."


class QueryInput(ToolModel):
    folder: PathText | None = Field(default=None, description="Only notes below it; the vault when absent.")
    tag: str | None = Field(default=None, min_length=1, description="With or without #; nested tags are included.")
    frontmatter: dict[str, Any] | None = Field(
        default=None, description="Property: the value it equals or, as a list, holds; a link by its target; null: it has none."
    )
    name: str | None = Field(default=None, min_length=1, description="A part of the name, in any case, or a pattern with * and ?.")
    text: str | None = Field(default=None, min_length=1, description="A text that the note holds, in any case.")
    modified_before: str | None = Field(default=None, description=_WHEN)
    modified_after: str | None = Field(default=None, description="As modifiedBefore; the moment itself is included.")
    created_before: str | None = Field(default=None, description="As modifiedBefore.")
    sort: str | None = Field(
        default=None, description="path (default), name, modified, created, size or frontmatter.KEY; with - in front the other way round."
    )
    limit: Whole | None = Field(default=None, ge=0, description="At most so many notes; all when absent.")
    offset: Whole = Field(default=0, ge=0)


class QueriedNote(ToolModel):
    path: str
    name: str = Field(description="Without folder and extension.")
    folder: str
    frontmatter: dict[str, Any]
    tags: list[str]
    mtime_ms: float
    size: int = Field(description="In bytes.")


class QueryOutput(ToolModel):
    files: list[QueriedNote]
    count: int = Field(description="The number of notes in this answer.")
    has_more: bool


def _query(args: QueryInput, ctx: ToolContext) -> Proposal:
    search = _Search(args, ctx)
    found = search.sorted(search.matching())
    shown, more = page(found, args.limit, args.offset)
    files = [search.told(path) for path in shown]
    return Proposal(QueryOutput(files=files, count=len(files), has_more=more), warnings=search.warnings())


class _Search:
    """One question: the cheap conditions first, so that few notes are read."""

    def __init__(self, args: QueryInput, ctx: ToolContext) -> None:
        self._args = args
        self._view: VaultView = ctx.view
        self._index: VaultIndex = index_of(ctx.view)
        self._folder = find_folder(ctx.view, args.folder)
        zone = ctx.run.now
        self._modified_before = moment_ms(args.modified_before, zone, "modifiedBefore")
        self._modified_after = moment_ms(args.modified_after, zone, "modifiedAfter")
        self._created_before = moment_ms(args.created_before, zone, "createdBefore")
        self._filters = [PropertyFilter(key, value, self._index) for key, value in (args.frontmatter or {}).items()]
        self._unread: list[Problem] = []

    def matching(self) -> list[VaultPath]:
        """The notes that meet every condition, sorted by path."""
        found: Iterable[VaultPath] = self._index.notes(self._folder)
        if self._args.tag is not None:
            found = tagged(self._index, self._args.tag, self._folder)
        if self._args.name is not None:
            wanted = _name_pattern(self._args.name)
            found = (path for path in found if fnmatch.fnmatchcase(path.stem.casefold(), wanted))
        if any(limit is not None for limit in (self._modified_before, self._modified_after, self._created_before)):
            found = (path for path in found if self._in_time(self._view.stat(path)))
        if self._filters:
            found = (path for path in found if all(each.fits(path) for each in self._filters))
        if self._args.text is not None:
            found = self._holding(found, self._args.text)
        return list(found)

    def _in_time(self, stat: FileStat) -> bool:
        return (
            (self._modified_before is None or stat.mtime_ms < self._modified_before)
            and (self._modified_after is None or stat.mtime_ms >= self._modified_after)
            and (self._created_before is None or stat.created_ms < self._created_before)
        )

    def _holding(self, paths: Iterable[VaultPath], text: str) -> Iterator[VaultPath]:
        wanted = text.casefold()
        asked = set(paths)
        for path, content in searched(self._index, self._folder, folded_needle(text), self._unread):
            if path in asked and wanted in content.casefold():
                yield path

    def sorted(self, paths: list[VaultPath]) -> list[VaultPath]:
        """The notes in the order asked for; equal ones by path."""
        sort = self._args.sort or "path"
        key, reverse = (sort[1:], True) if sort.startswith("-") else (sort, False)
        match key:
            case "path":
                return paths[::-1] if reverse else paths
            case "name":
                return sorted(paths, key=lambda path: path.stem.casefold(), reverse=reverse)
            case "modified":
                return sorted(paths, key=lambda path: self._view.stat(path).mtime_ms, reverse=reverse)
            case "created":
                return sorted(paths, key=lambda path: self._view.stat(path).created_ms, reverse=reverse)
            case "size":
                return sorted(paths, key=lambda path: self._view.stat(path).size, reverse=reverse)
            case _ if key.startswith(_PROPERTY) and len(key) > len(_PROPERTY):
                return self._by_property(paths, key.removeprefix(_PROPERTY), reverse=reverse)
            case _:
                raise ToolError(f"{sort!r} is no order.", hint="Use path, name, modified, created, size or frontmatter.KEY, or - and one.")

    def _by_property(self, paths: list[VaultPath], key: str, *, reverse: bool) -> list[VaultPath]:
        """Numbers before texts; notes without the property last, whichever way round."""
        values = {path: value_of(self._index.facts(path).properties, key) for path in paths}
        with_value = [path for path in paths if values[path] is not None]
        ordered = sorted(with_value, key=lambda path: _order(values[path]), reverse=reverse)
        return ordered + [path for path in paths if values[path] is None]

    def told(self, path: VaultPath) -> QueriedNote:
        """What the answer says of a note."""
        facts, stat = self._index.facts(path), self._view.stat(path)
        return QueriedNote(
            path=path.text,
            name=path.stem,
            folder=path.parent.text,
            frontmatter=dict(facts.properties),
            tags=list(facts.tags),
            mtime_ms=stat.mtime_ms,
            size=stat.size,
        )

    def warnings(self) -> tuple[Problem, ...]:
        """Notes of which nothing is known, where that can have left them out."""
        if self._args.tag is None and not self._filters:
            return tuple(self._unread)
        return (*unread(self._index, [path for path in self._index.problems if self._is_asked(path)]), *self._unread)

    def _is_asked(self, path: str) -> bool:
        return path.startswith(f"{self._folder.text}/") if self._folder.text else True


def _name_pattern(name: str) -> str:
    """A pattern for case-folded names; without wildcards a part of the name is enough."""
    wanted = name.casefold().removesuffix(".md")
    escaped = wanted.replace("[", "[[]")
    return escaped if "*" in wanted or "?" in wanted else f"*{escaped}*"


def _order(value: Any) -> tuple[int, float, str]:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 1, 0.0, str(value).casefold()
    return 0, float(value), ""


QUERY = Tool(
    name="vault.query",
    summary="The notes that meet all conditions: folder, tag, properties, name, text, dates.",
    risk=Risk.READ_ONLY,
    input=QueryInput,
    output=QueryOutput,
    propose=_query,
)
