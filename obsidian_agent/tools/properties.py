"""Properties of notes, values of lists, and Dataview's inline fields (`key:: value`)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from pydantic import Field

from obsidian_agent.errors import ObsidianAgentError, Problem, ToolError, VaultError
from obsidian_agent.tools.core.lookup import (
    content_change,
    find_file,
    open_note,
    read_text,
)
from obsidian_agent.tools.core.models import NotesInput, ToolModel
from obsidian_agent.tools.core.query_updates import update_queries
from obsidian_agent.tools.core.tool import PathText, Proposal, Risk, ToolContext, tool
from obsidian_agent.vault.frontmatter.properties import (
    check_new_key,
    edit_properties,
    find_frontmatter,
    read_properties,
)
from obsidian_agent.vault.frontmatter.yaml_nodes import parse
from obsidian_agent.vault.markdown import edits
from obsidian_agent.vault.markdown.lines import scan
from obsidian_agent.vault.paths import path as paths
from obsidian_agent.vault.paths.path import PathUse
from obsidian_agent.vault.refactor.query_renames import (
    PropertyInQueries,
    ValueInQueries,
)
from obsidian_agent.vault.text import encode
from obsidian_agent.vault.views.changes import ModifyFile

_FIELD: Final = re.compile(
    r"[ \t]*(?:[-*+][ \t]+)?(?P<key>[^\W\d_][\w /-]{0,60}?)::(?=[ \t\r\n]|\Z)"
    r"[ \t]*(?P<value>[^\r\n]*?)[ \t]*\r?\n?",
    re.UNICODE,
)
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d{0,14})(?:\.\d{1,10})?")
_LINKS: Final = re.compile(r"\[\[[^\[\]]+\]\](?:[ \t]*,[ \t]*\[\[[^\[\]]+\]\])+")


class SetFrontmatterInput(ToolModel):
    path: PathText = Field(min_length=1, description="A Markdown file.")
    set: dict[str, Any] = Field(
        default_factory=dict,
        description="New values by property: text, number, true, false, null, list or map.",
    )
    remove: list[str] = Field(
        default_factory=list, description="Properties to remove, with their values."
    )
    add_tags: list[str] = Field(
        default_factory=list, description="Tags to add to the property tags, with or without #."
    )
    remove_tags: list[str] = Field(
        default_factory=list, description="Tags to remove from the property tags."
    )


class SetFrontmatterOutput(ToolModel):
    path: str
    changed: bool


@tool("vault.setFrontmatter", Risk.WRITES)
def set_frontmatter(args: SetFrontmatterInput, ctx: ToolContext) -> Proposal[SetFrontmatterOutput]:
    """Set and remove properties of a note, add and remove its tags; no other character changes."""
    path = find_file(ctx.view, args.path, PathUse.UPDATE)
    if not path.is_note:
        raise ToolError(f"{path} is not a Markdown file, so it has no properties.", path=path.text)
    before = read_text(ctx.view, path)
    try:
        after = edit_properties(
            before,
            set=args.set,
            remove=args.remove,
            add_tags=args.add_tags,
            remove_tags=args.remove_tags,
        )
    except ObsidianAgentError as error:
        error.path = path.text
        raise
    return Proposal(
        SetFrontmatterOutput(path=path.text, changed=after != before),
        content_change(path, before, after),
    )


class AddValuesInput(ToolModel):
    path: PathText = Field(min_length=1)
    property: str = Field(
        min_length=1,
        description="Such as aliases; an existing single value becomes the first of the list.",
    )
    values: list[Any] = Field(
        min_length=1, description="Values that the list already has are not added again."
    )


class AddValuesOutput(ToolModel):
    path: str
    values: list[Any] = Field(description="The whole list.")
    changed: bool


@tool("vault.addValues", Risk.WRITES)
def add_values(args: AddValuesInput, ctx: ToolContext) -> Proposal[AddValuesOutput]:
    """Add values to a list property, such as aliases or authors.

    For tags use vault.setFrontmatter.
    """
    path, text = open_note(ctx, args.path)
    values = _as_list(read_properties(text).get(args.property))
    new = [
        value
        for number, value in enumerate(args.values)
        if value not in values and value not in args.values[:number]
    ]
    changed = edit_properties(text, set={args.property: [*values, *new]}) if new else text
    return Proposal(
        AddValuesOutput(path=path.text, values=[*values, *new], changed=bool(new)),
        content_change(path, text, changed),
    )


class TakePropertiesInput(ToolModel):
    path: PathText = Field(min_length=1, description="The note that gets the properties.")
    from_: PathText = Field(alias="from", min_length=1)


class TakePropertiesOutput(ToolModel):
    path: str
    properties: list[str] = Field(description="The properties that were added or completed.")
    changed: bool


@tool("vault.takeProperties", Risk.WRITES)
def take_properties(args: TakePropertiesInput, ctx: ToolContext) -> Proposal[TakePropertiesOutput]:
    """Add the properties, tags and aliases of another note.

    Lists are joined; other values that the note has already stay.
    """
    path, text = open_note(ctx, args.path)
    _, source_text = open_note(ctx, args.from_)
    own, other = read_properties(text), read_properties(source_text)
    keys = {key.casefold(): key for key in own}
    new: dict[str, Any] = {}
    conflicting: list[str] = []
    for key, value in other.items():
        key = keys.get(key.casefold(), key)
        current = _as_list(own.get(key))
        missing = [item for item in _as_list(value) if item not in current]
        if not missing:
            continue
        if not current:
            new[key] = value
        elif isinstance(value, list) or isinstance(own[key], list) or key == "tags":
            new[key] = [*current, *missing]
        else:
            conflicting.append(key)
    changed = edit_properties(text, set=new) if new else text
    warnings = tuple(
        Problem("FILE_EXISTS", f"{path} has its own {key}, which stays.", path=path.text)
        for key in conflicting
    )
    return Proposal(
        TakePropertiesOutput(path=path.text, properties=list(new), changed=bool(new)),
        content_change(path, text, changed),
        warnings=warnings,
    )


class PropertyFromHeadingInput(ToolModel):
    path: PathText = Field(min_length=1)
    property: str = Field(min_length=1)


@tool("vault.propertyFromHeading", Risk.WRITES)
def property_from_heading(
    args: PropertyFromHeadingInput, ctx: ToolContext
) -> Proposal[SetFrontmatterOutput]:
    """Set a property of a note to the text of its first heading, if it has one."""
    path, text = open_note(ctx, args.path)
    heading = next(iter(edits.headings(text)), None)
    changed = edit_properties(text, set={args.property: heading.text}) if heading else text
    return Proposal(
        SetFrontmatterOutput(path=path.text, changed=changed != text),
        content_change(path, text, changed),
    )


class RemoveValuesInput(ToolModel):
    path: PathText = Field(min_length=1)
    property: str = Field(
        min_length=1,
        description="Such as authors. A list may become empty; "
        "a property with a single value is removed.",
    )
    values: list[Any] = Field(
        min_length=1, description="Ignoring case; a link by its text or target."
    )


@tool("vault.removeValues", Risk.WRITES)
def remove_values(args: RemoveValuesInput, ctx: ToolContext) -> Proposal[AddValuesOutput]:
    """Remove values from a list property, such as aliases or authors.

    For tags use vault.setFrontmatter.
    """
    path, text = open_note(ctx, args.path)
    current = read_properties(text).get(args.property)
    values = _as_list(current)
    unwanted = {_key(value) for value in args.values}
    remaining = [value for value in values if _key(value) not in unwanted]
    if len(remaining) == len(values):
        missing = Problem(
            "TEXT_NOT_FOUND", f"{path} has none of these values in {args.property}.", path=path.text
        )
        return Proposal(
            AddValuesOutput(path=path.text, values=values, changed=False), warnings=(missing,)
        )
    changed = edit_properties(
        text, set={args.property: remaining if isinstance(current, list) else None}
    )
    return Proposal(
        AddValuesOutput(path=path.text, values=remaining, changed=True),
        content_change(path, text, changed),
    )


def _as_list(value: Any) -> list[Any]:
    if isinstance(value, list):
        return list(value)
    return [] if value is None or value == "" else [value]


def _key(value: Any) -> str:
    text = str(value).strip().casefold()
    if text.startswith("[[") and text.endswith("]]"):
        return text[2:-2].partition("|")[0].partition("#")[0].rpartition("/")[2].strip()
    return text


class RenamePropertyInput(NotesInput):
    from_: str = Field(alias="from", min_length=1, description="The property's name; case counts.")
    to: str = Field(min_length=1)


class RenamePropertyOutput(ToolModel):
    files: list[str] = Field(description="The notes and bases that were changed.")
    total: int


@tool("vault.renameProperty", Risk.WRITES)
def rename_property(args: RenamePropertyInput, ctx: ToolContext) -> Proposal[RenamePropertyOutput]:
    """Rename a property in a note, some notes or a folder; its value and position stay.

    Queries follow when it is renamed in the whole vault. A note that has both names is skipped.
    """
    check_new_key(args.to)
    index = ctx.view.index
    files: list[str] = []
    changes: list[ModifyFile] = []
    warnings: list[Problem] = []
    for path in args.notes(ctx):
        if args.from_ not in index.facts(path).properties:
            continue
        paths.parse(path.text, PathUse.UPDATE)
        text = read_text(ctx.view, path)
        properties = read_properties(text)
        if args.from_ not in properties:
            continue
        if args.to in properties:
            message = f"{path} has both “{args.from_}” and “{args.to}”, so it is skipped."
            warnings.append(Problem("PROPERTY_EXISTS", message, path=path.text))
            continue
        files.append(path.text)
        changes.append(ModifyFile(path, encode(_renamed(text, args.from_, args.to))))
        ctx.show(changes)
    rename = PropertyInQueries(args.from_, args.to)
    is_partial = args.path is not None or args.files is not None or bool(args.folder)
    queries = update_queries(ctx, rename, changes, is_partial=is_partial or bool(warnings))
    files += sorted(path.text for path in queries.counts if path.text not in files)
    warnings += queries.warnings
    if not files and not warnings:
        warnings.append(
            Problem(
                "TEXT_NOT_FOUND", f"No note has the property “{args.from_}”, so nothing is renamed."
            )
        )
    return Proposal(
        RenamePropertyOutput(files=files, total=len(files)), queries.changes, tuple(warnings)
    )


class RenameValueInput(NotesInput):
    property: str = Field(min_length=1, description="The property's name, ignoring case.")
    from_: list[str] = Field(
        alias="from",
        min_length=1,
        description="The texts that are replaced, as the value or in a list; case counts.",
    )
    to: str = Field(min_length=1, description="A list gets it once.")


@tool("vault.renameValue", Risk.WRITES)
def rename_value(args: RenameValueInput, ctx: ToolContext) -> Proposal[RenamePropertyOutput]:
    """Rename values of a property in a note, some notes or a folder, or merge several into one.

    Queries follow when they are renamed in the whole vault. A note whose properties cannot be
    changed safely is skipped. For tags use vault.renameTag.
    """
    name = args.property.casefold()
    if name in ("tag", "tags"):
        raise ToolError("Tags are renamed with vault.renameTag.", code="ARGUMENT_INVALID")
    index = ctx.view.index
    old = frozenset(args.from_) - {args.to}
    files: list[str] = []
    changes: list[ModifyFile] = []
    warnings: list[Problem] = []
    for path in args.notes(ctx):
        values = _replaced_values(index.facts(path).properties, name, old, args.to)
        if not values:
            continue
        path = paths.parse(path.text, PathUse.UPDATE)
        text = read_text(ctx.view, path)
        values = _replaced_values(read_properties(text), name, old, args.to)
        try:
            changed = edit_properties(text, set=values)
        except VaultError as error:
            message = f"{path} is skipped: {error.message}"
            warnings.append(Problem(error.code, message, path=path.text))
            continue
        changes.append(ModifyFile(path, encode(changed)))
        files.append(path.text)
        ctx.show(changes)
    rename = ValueInQueries(args.property, old, args.to)
    is_partial = args.path is not None or args.files is not None or bool(args.folder)
    queries = update_queries(ctx, rename, changes, is_partial=is_partial or bool(warnings))
    files = sorted({*files, *(path.text for path in queries.counts)})
    warnings += queries.warnings
    if not files and not warnings:
        listed = ", ".join(f"“{value}”" for value in args.from_)
        message = f"No note has {listed} in “{args.property}”, so nothing is renamed."
        warnings.append(Problem("TEXT_NOT_FOUND", message))
    output = RenamePropertyOutput(files=files, total=len(files))
    return Proposal(output, queries.changes, tuple(warnings))


def _replaced_values(
    properties: Mapping[str, Any], name: str, old: frozenset[str], new: str
) -> dict[str, Any]:
    """Return the properties of this name that change, with their new values."""
    replaced: dict[str, Any] = {}
    for key, value in properties.items():
        if key.casefold() != name:
            continue
        if isinstance(value, str) and value in old:
            replaced[key] = new
        elif isinstance(value, list):
            items: list[Any] = []
            for item in value:
                renamed = new if isinstance(item, str) and item in old else item
                if renamed is item or new not in (*items, *value):
                    items.append(renamed)
            if items != value:
                replaced[key] = items
    return replaced


def _renamed(text: str, old: str, new: str) -> str:
    """Return the text of a note with a property renamed.

    Raise ToolError FRONTMATTER_INVALID unless only its name provably changes.
    """
    front = find_frontmatter(text)
    block = parse(text[front.content_start : front.content_end]) if front is not None else None
    if front is None or block is None:
        raise ToolError("The note has no properties.", code="FRONTMATTER_INVALID")
    before = read_properties(text)
    entries = [entry for entry in block.entries if entry.key == old]
    if len(entries) == 1:
        start, end = (
            front.content_start + entries[0].start,
            front.content_start + entries[0].key_end,
        )
        quoted = json.dumps(new, ensure_ascii=False)
        for name in (quoted,) if text[start] == '"' else (new, quoted):
            changed = text[:start] + name + text[end:]
            after = _read(changed)
            if after is not None and list(after.items()) == [
                (new if key == old else key, value) for key, value in before.items()
            ]:
                return changed
    raise ToolError(
        f"The property “{old}” cannot be renamed safely.",
        code="FRONTMATTER_INVALID",
        hint="Rename it by hand.",
    )


def _read(text: str) -> dict[str, object] | None:
    try:
        return read_properties(text)
    except VaultError:
        return None


class InlineInput(ToolModel):
    path: PathText = Field(min_length=1)
    fields: list[str] | None = Field(default=None, description="Only these; by default all.")
    keep: bool = Field(default=False, description="Leave the lines in the text.")


class InlineOutput(ToolModel):
    path: str
    properties: dict[str, Any] = Field(description="The properties that were set.")
    count: int


@tool("vault.inlineToProperties", Risk.WRITES)
def inline_to_properties(args: InlineInput, ctx: ToolContext) -> Proposal[InlineOutput]:
    """Turn inline fields (key:: value on a line of its own) into properties.

    Existing properties stay unchanged.
    """
    path, text = open_note(ctx, args.path)
    requested = None if args.fields is None else {name.casefold() for name in args.fields}
    known = {key.casefold() for key in read_properties(text)}
    values: dict[str, list[Any]] = {}
    spans: list[tuple[int, int]] = []
    existing: list[str] = []
    for line in scan(text):
        match = (
            None if line.hidden or line.quotes else _FIELD.fullmatch(text, line.start, line.next)
        )
        if match is None or (
            requested is not None and match["key"].strip().casefold() not in requested
        ):
            continue
        key = match["key"].strip()
        if key.casefold() in known:
            existing.append(key)
            continue
        values.setdefault(
            next((name for name in values if name.casefold() == key.casefold()), key), []
        ).extend(_values(match["value"]))
        spans.append((line.start, line.next))
    properties = {key: _one_or_all(members) for key, members in values.items()}
    changed = (
        edit_properties(text if args.keep else _without(text, spans), set=properties)
        if properties
        else text
    )
    warnings = tuple(
        Problem(
            "PROPERTY_EXISTS",
            f"{path} already has the property “{key}”, so the field in its text stays.",
            path=path.text,
        )
        for key in dict.fromkeys(existing)
    )
    output = InlineOutput(path=path.text, properties=properties, count=len(properties))
    return Proposal(output, content_change(path, text, changed), warnings)


def _values(text: str) -> list[Any]:
    """Return the values of a field as a property has them.

    Numbers and booleans have their types, several links are a list, all else is text.
    """
    if _LINKS.fullmatch(text):
        return re.findall(r"\[\[[^\[\]]+\]\]", text)
    if text.casefold() in ("true", "false"):
        return [text.casefold() == "true"]
    if _NUMBER.fullmatch(text):
        return [float(text) if "." in text else int(text)]
    return [text] if text else []


def _one_or_all(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else values or None


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    for start, end in reversed(spans):
        text = text[:start] + text[end:]
    return text
