"""`vault.find`: the files that meet a condition, however it is put together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, Self

from pydantic import Field

from obsidian_agent.errors import ToolError
from obsidian_agent.tools.core.conditions import Condition, Judge, own_day
from obsidian_agent.tools.core.lookup import page, value_of
from obsidian_agent.tools.core.tool import Proposal, Risk, ToolContext, ToolModel, Whole, tool
from obsidian_agent.vault.paths.path import VaultPath

_PROPERTY = "frontmatter."
ORDERS: Final = "path (default), name, modified, created, day, size or frontmatter.KEY; with - in front the other way round."
"""How answers can be ordered, for the schemas of the tools that do."""
_NEVER_ATTACHED = frozenset((".canvas", ".base"))


class FindInput(ToolModel):
    where: Condition = Field(default=Condition(), description="What must hold of them; everything when absent.")
    kind: Literal["notes", "attachments", "files"] = Field(
        default="notes", description="Notes; all files that are neither notes, canvases nor bases; or every file."
    )
    sort: str | None = Field(default=None, description=ORDERS)
    limit: Whole | None = Field(default=None, ge=0, description="At most so many, after sorting; all when absent.")


class FoundBriefly(ToolModel):
    path: str
    name: str = Field(description="Without folder and extension.")
    folder: str
    frontmatter: dict[str, Any]
    tags: list[str]
    mtime_ms: float
    size: int = Field(description="In bytes.")

    @classmethod
    def of(cls, path: VaultPath, ctx: ToolContext, judge: Judge, **more: str) -> Self:
        """What is told of a file that was found."""
        facts, stat = judge.index.facts(path), ctx.view.stat(path)
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


class FoundNote(FoundBriefly):
    file: str = Field(description="The name with its extension.")
    extension: str = Field(description="Without dot, in lower case.")


class FindOutput(ToolModel):
    files: list[FoundNote]
    count: int = Field(description="The number of files in this answer.")
    has_more: bool


@tool("vault.find", Risk.READ_ONLY)
def find(args: FindInput, ctx: ToolContext) -> Proposal[FindOutput]:
    """The files that meet a condition: folder, tag, property, name, text, dates, links, tasks, joined by all, any and not."""
    judge = Judge(ctx)
    fits = judge.check(args.where)
    found = [path for path in judge.index.files() if _is_kind(path, args.kind) and fits(path)]
    shown, more = page(ordered(found, args.sort, ctx, judge), args.limit, 0)
    files = [FoundNote.of(path, ctx, judge, file=path.name, extension=path.suffix.lower().lstrip(".")) for path in shown]
    return Proposal(FindOutput(files=files, count=len(files), has_more=more), warnings=judge.warnings())


def _is_kind(path: VaultPath, kind: str) -> bool:
    match kind:
        case "notes":
            return path.is_note
        case "attachments":
            return not path.is_note and path.suffix.lower() not in _NEVER_ATTACHED
        case _:
            return True


def ordered(paths: list[VaultPath], sort: str | None, ctx: ToolContext, judge: Judge) -> list[VaultPath]:
    """The files in the order asked for (None: by path); equal ones by path, those without the value last, whichever way round."""
    sort = sort or "path"
    key, reverse = (sort[1:], True) if sort.startswith("-") else (sort, False)
    measures: dict[str, Callable[[VaultPath], Any]] = {
        "path": lambda path: path.text,
        "name": lambda path: path.stem.casefold(),
        "modified": lambda path: ctx.view.stat(path).mtime_ms,
        "created": judge.made,
        "size": lambda path: ctx.view.stat(path).size,
        "day": lambda path: own_day(path, judge.index),
    }
    if key.startswith(_PROPERTY) and len(key) > len(_PROPERTY):
        measures[key] = lambda path: _comparable(value_of(judge.index.facts(path).properties, key.removeprefix(_PROPERTY)))
    if key not in measures:
        raise ToolError(f"{sort!r} is no order.", hint="Use path, name, modified, created, day, size or frontmatter.KEY, or - and one.")
    values = {path: measures[key](path) for path in sorted(paths)}
    with_value = [path for path, value in values.items() if value is not None]
    with_value.sort(key=lambda path: values[path], reverse=reverse)
    return with_value + [path for path, value in values.items() if value is None]


def _comparable(value: Any) -> tuple[int, float, str] | None:
    """Numbers before texts; a list by its first value."""
    if isinstance(value, list):
        value = value[0] if value else None
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 1, 0.0, str(value).casefold()
    return 0, float(value), ""
