"""The arguments of the tools of the MCP server, with the descriptions that clients read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import BaseModel, Field, field_validator, model_validator

from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.tools.core.models import ToolModel, Whole
from obsidian_agent.tools.files.periodic import Period
from obsidian_agent.tools.text.tasks import checked_day

MAX_ROWS: Final = 200
"""Rows of a list in one answer."""
MAX_HITS: Final = 50
"""Notes in one answer of a search."""
MAX_NOTES: Final = 20
"""Notes that are read in one call."""
MAX_QUERY: Final = 1_000
"""Characters of a query."""
NO_DEFINITIONS: Final[Mapping[str, Any]] = {}

_NOTE: Final = "Path in the vault; a note may be named without .md, or by its name or alias alone."
_FOLDER: Final = "Only notes below this folder; by default the whole vault."
_OFFSET: Final = "Number of results to skip: the next page starts at offset + limit."


class NoteInput(ToolModel):
    path: str = Field(min_length=1, description=_NOTE)


class PageInput(ToolModel):
    limit: Whole = Field(default=50, ge=1, le=MAX_ROWS, description="Maximum number of results.")
    offset: Whole = Field(default=0, ge=0, description=_OFFSET)


class SearchNotesInput(ToolModel):
    query: str = Field(
        default="",
        max_length=MAX_QUERY,
        description="Words in any order; a text in double quotes must be together. "
        "Without a query, the filters list notes.",
    )
    folder: str | None = Field(default=None, description=_FOLDER)
    tag: str | list[str] | None = Field(
        default=None, description="Has one of these tags, with or without #; nested tags count."
    )
    properties: dict[str, Any] | None = Field(
        default=None,
        description="Property: the value it has or, as a list, contains; null: it is missing.",
    )
    sort: Literal["best", "modified", "path"] | None = Field(
        default=None,
        description="best: best match first, the default with a query; "
        "modified: latest first, the default without one; path.",
    )
    limit: Whole = Field(default=10, ge=1, le=MAX_HITS, description="Maximum number of notes.")
    offset: Whole = Field(default=0, ge=0, description=_OFFSET)


class ReadNoteInput(NoteInput):
    section: str | None = Field(
        default=None, min_length=1, description="Only the section below this heading."
    )
    offset: Whole = Field(
        default=0, ge=0, description="nextOffset of the page before, for a long note."
    )

    @model_validator(mode="after")
    def _one_part(self) -> ReadNoteInput:
        if self.section is not None and self.offset:
            raise ValueError("give only one of section and offset")
        return self


class ReadNotesInput(ToolModel):
    paths: list[str] = Field(min_length=1, max_length=MAX_NOTES, description=_NOTE)


class ListDirectoryInput(ToolModel):
    path: str = Field(default="", description="A folder; by default the vault's root.")
    limit: Whole = Field(default=100, ge=1, le=1_000, description="Maximum number of files.")
    offset: Whole = Field(default=0, ge=0, description=_OFFSET)


class BacklinksInput(NoteInput, PageInput):
    pass


class OverviewInput(ToolModel):
    folder: str | None = Field(default=None, description=_FOLDER)


class TasksInput(PageInput):
    folder: str | None = Field(default=None, description=_FOLDER)
    path: str | None = Field(default=None, description="Only the tasks of this note.")
    status: Literal["open", "done", "all"] = Field(
        default="open", description="open: neither done nor cancelled."
    )
    text: str | None = Field(
        default=None, min_length=1, description="Contains this text as whole words, ignoring case."
    )
    tag: str | None = Field(
        default=None, min_length=1, description="Has this tag, or one nested below it, in its line."
    )
    due_before: str | None = Field(default=None, description="Due before this day (YYYY-MM-DD).")
    due_after: str | None = Field(default=None, description="Due on this day or later.")

    _check = field_validator("due_before", "due_after")(checked_day)


class PeriodicNoteInput(ToolModel):
    period: Period = Field(default="day", description="The daily, weekly … note.")
    offset: Whole = Field(
        default=0, ge=-400, le=400, description="0: the current one, 1: the next, -1: the last."
    )


class AnyPlanInput(ToolModel):
    plan: dict[str, Any] = Field(description="An ActionPlan, as for propose_plan.")


class PlanInput(AnyPlanInput):
    plan: dict[str, Any] = Field(description="An ActionPlan; get_plan_language explains it.")


class PlanLanguageInput(ToolModel):
    tools: list[str] = Field(
        default_factory=list,
        max_length=MAX_NOTES,
        description="Names of plan tools to describe in full; none: the language with examples.",
    )


class CreateInput(ToolModel):
    path: str = Field(
        min_length=1, description="Path of the new note; .md is added. Folders are created."
    )
    content: str = Field(description="Its text, without properties.")
    properties: dict[str, Any] = Field(default_factory=dict, description="Its properties.")


class AppendInput(NoteInput):
    content: str = Field(min_length=1, description="The text to add, as Markdown.")
    heading: str | None = Field(
        default=None,
        min_length=1,
        description="Add at the end of the section below this heading; by default of the note.",
    )


class PropertiesInput(NoteInput):
    set: dict[str, Any] = Field(default_factory=dict, description="Properties and their values.")
    remove: list[str] = Field(default_factory=list, description="Properties to remove.")
    add_tags: list[str] = Field(default_factory=list, description="Tags, with or without #.")
    remove_tags: list[str] = Field(default_factory=list, description="Tags, with or without #.")

    @model_validator(mode="after")
    def _some_change(self) -> PropertiesInput:
        if not (self.set or self.remove or self.add_tags or self.remove_tags):
            raise ValueError("give at least one of set, remove, addTags and removeTags")
        return self


class MoveInput(ToolModel):
    path: str = Field(min_length=1, description=f"The note to move or rename. {_NOTE}")
    to: str = Field(
        min_length=1, description="Its whole new path, or a folder with a slash at the end."
    )


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON Schema of arguments, without what only repeats the names of fields."""
    if model is PlanInput:
        schema: dict[str, Any] = _compact(PlanInput.model_json_schema(by_alias=True))
        plan = ActionPlan.model_json_schema(by_alias=True)
        definitions = plan.pop("$defs")
        described = schema["properties"]["plan"]["description"]
        schema["properties"]["plan"] = _compact(plan, definitions) | {"description": described}
        return schema
    schema = model.model_json_schema(by_alias=True)
    compact: dict[str, Any] = _compact(schema, schema.pop("$defs", {}))
    compact.pop("description", None)
    return compact


def _compact(schema: Any, definitions: Mapping[str, Any] = NO_DEFINITIONS) -> Any:
    """Inline definitions; drop titles, nulls, and defaults that are empty."""
    match schema:
        case {"$ref": str(reference), **more}:
            name = reference.rpartition("/")[2]
            return _compact({**definitions[name], **more}, definitions)
        case {"anyOf": list(options), **more}:
            others: list[Any] = [option for option in options if option != {"type": "null"}]
            if len(others) == 1:
                return _compact({**others[0], **more}, definitions)
            return _fields({"anyOf": others, **more}, definitions)
        case dict():
            return _fields(schema, definitions)
        case list():
            return [_compact(item, definitions) for item in schema]
        case _:
            return schema


def _fields(schema: Mapping[Any, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    compact: dict[str, Any] = {}
    for name, value in schema.items():
        if name == "properties":
            compact[name] = {key: _compact(below, definitions) for key, below in value.items()}
        elif name == "title" or (name == "default" and value in (None, "", [], {})):
            continue
        else:
            compact[name] = _compact(value, definitions)
    return compact
