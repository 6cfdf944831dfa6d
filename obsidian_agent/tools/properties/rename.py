"""`vault.inlineToProperties`: Dataview's inline fields (`key:: value` on a line of its own) as properties of the note.

`vault.renameProperty`: a property under another name, at its place and with its value as written.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from pydantic import Field

from obsidian_agent.errors import Problem, ToolError, VaultError
from obsidian_agent.tools.core.lookup import NotesInput, find_file, read_text
from obsidian_agent.tools.core.tool import PathText, Proposal, Risk, ToolContext, ToolModel, tool
from obsidian_agent.vault.frontmatter import read
from obsidian_agent.vault.frontmatter.edit import check_new_key
from obsidian_agent.vault.frontmatter.yaml_nodes import parse
from obsidian_agent.vault.index.index import index_of
from obsidian_agent.vault.markdown.lines import scan
from obsidian_agent.vault.markdown.text import decode, encode
from obsidian_agent.vault.paths import path as paths
from obsidian_agent.vault.paths.path import PathUse
from obsidian_agent.vault.views.changes import ModifyFile


class RenamePropertyInput(NotesInput):
    from_: str = Field(alias="from", min_length=1, description="The property's name; case counts.")
    to: str = Field(min_length=1)


class RenamePropertyOutput(ToolModel):
    files: list[str] = Field(description="The notes that were changed.")
    total: int


@tool("vault.renameProperty", Risk.WRITES)
def rename_property(args: RenamePropertyInput, ctx: ToolContext) -> Proposal[RenamePropertyOutput]:
    """Rename a property in a note, some notes or a folder; its value and place stay. A note that has both names is left alone."""
    check_new_key(args.to)
    index = index_of(ctx.view)
    files: list[str] = []
    changes: list[ModifyFile] = []
    warnings: list[Problem] = []
    for path in args.notes(ctx):
        if args.from_ not in index.facts(path).properties:
            continue
        paths.parse(path.text, PathUse.UPDATE)
        text = decode(ctx.view.read(path), path.text)
        properties = read.read(text)
        if args.from_ not in properties:
            continue
        if args.to in properties:
            message = f"{path} has both “{args.from_}” and “{args.to}”, so it is left as it is."
            warnings.append(Problem("PROPERTY_EXISTS", message, path=path.text))
            continue
        files.append(path.text)
        changes.append(ModifyFile(path, encode(renamed(text, args.from_, args.to))))
    if not files and not warnings:
        warnings.append(Problem("TEXT_NOT_FOUND", f"No note has the property “{args.from_}”, so nothing is renamed."))
    return Proposal(RenamePropertyOutput(files=files, total=len(files)), tuple(changes), tuple(warnings))


def renamed(text: str, old: str, new: str) -> str:
    """The text of a note with a property renamed. ToolError FRONTMATTER_INVALID when nothing but its name can be told to change."""
    front = read.span(text)
    block = parse(text[front.content_start : front.content_end]) if front is not None else None
    if front is None or block is None:
        raise ToolError("The note has no properties.", code="FRONTMATTER_INVALID")
    before = read.read(text)
    places = [entry for entry in block.entries if entry.key == old]
    if len(places) == 1:
        start, end = front.content_start + places[0].start, front.content_start + places[0].key_end
        quoted = json.dumps(new, ensure_ascii=False)
        for name in (quoted,) if text[start] == '"' else (new, quoted):
            changed = text[:start] + name + text[end:]
            after = _read(changed)
            if after is not None and list(after.items()) == [(new if key == old else key, value) for key, value in before.items()]:
                return changed
    raise ToolError(f"The property “{old}” cannot be renamed safely.", code="FRONTMATTER_INVALID", hint="Rename it by hand.")


def _read(text: str) -> dict[str, object] | None:
    try:
        return read.read(text)
    except VaultError:
        return None


_FIELD: Final = re.compile(
    r"[ \t]*(?:[-*+][ \t]+)?(?P<key>[^\W\d_][\w /-]{0,60}?)::(?=[ \t\r\n]|\Z)[ \t]*(?P<value>[^\r\n]*?)[ \t]*\r?\n?", re.UNICODE
)
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d{0,14})(?:\.\d{1,10})?")
_LINKS: Final = re.compile(r"\[\[[^\[\]]+\]\](?:[ \t]*,[ \t]*\[\[[^\[\]]+\]\])+")


class InlineInput(ToolModel):
    path: PathText = Field(min_length=1)
    fields: list[str] | None = Field(default=None, description="Only these; all when absent.")
    keep: bool = Field(default=False, description="Leave the lines in the text.")


class InlineOutput(ToolModel):
    path: str
    properties: dict[str, Any] = Field(description="What was set.")
    count: int


@tool("vault.inlineToProperties", Risk.WRITES)
def inline_to_properties(args: InlineInput, ctx: ToolContext) -> Proposal[InlineOutput]:
    """Turn inline fields (key:: value on a line of its own) into properties; a property that is there stays as it is."""
    path = find_file(ctx.view, args.path, PathUse.UPDATE)
    text = read_text(ctx.view, path)
    wanted = None if args.fields is None else {name.casefold() for name in args.fields}
    there = {key.casefold() for key in read.read(text)}
    values: dict[str, list[Any]] = {}
    cuts: list[tuple[int, int]] = []
    kept: list[str] = []
    for line in scan(text):
        found = None if line.hidden or line.quotes else _FIELD.fullmatch(text, line.start, line.next)
        if found is None or (wanted is not None and found["key"].strip().casefold() not in wanted):
            continue
        key = found["key"].strip()
        if key.casefold() in there:
            kept.append(key)
            continue
        values.setdefault(next((name for name in values if name.casefold() == key.casefold()), key), []).extend(_values(found["value"]))
        cuts.append((line.start, line.next))
    properties = {key: _one_or_all(each) for key, each in values.items()}
    changed = read.edit(text if args.keep else _without(text, cuts), set=properties) if properties else text
    warnings = tuple(
        Problem("PROPERTY_EXISTS", f"{path} has the property “{key}” already, so the field in its text stays.", path=path.text)
        for key in dict.fromkeys(kept)
    )
    output = InlineOutput(path=path.text, properties=properties, count=len(properties))
    return Proposal(output, (ModifyFile(path, encode(changed)),) if changed != text else (), warnings)


def _values(text: str) -> list[Any]:
    """A value as a property has it: numbers and truth values as such, a list of links as a list, all else as text."""
    if _LINKS.fullmatch(text):
        return re.findall(r"\[\[[^\[\]]+\]\]", text)
    if text.casefold() in ("true", "false"):
        return [text.casefold() == "true"]
    if _NUMBER.fullmatch(text):
        return [float(text) if "." in text else int(text)]
    return [text] if text else []


def _one_or_all(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else values or None


def _without(text: str, cuts: list[tuple[int, int]]) -> str:
    for start, end in reversed(cuts):
        text = text[:start] + text[end:]
    return text
