"""`vault.renameProperty`: a property under another name, at its place and with its value as written."""

from __future__ import annotations

import json

from pydantic import Field

from obsidian_agent.errors import Problem, ToolError, VaultError
from obsidian_agent.tools.base import Proposal, Risk, Tool, ToolContext, ToolModel
from obsidian_agent.tools.sources import NotesInput
from obsidian_agent.vault import frontmatter, paths
from obsidian_agent.vault.changes import ModifyFile
from obsidian_agent.vault.frontmatter_wish import check_new_key
from obsidian_agent.vault.index import index_of
from obsidian_agent.vault.paths import PathUse
from obsidian_agent.vault.text import decode, encode
from obsidian_agent.vault.yaml_nodes import parse


class RenamePropertyInput(NotesInput):
    from_: str = Field(alias="from", min_length=1, description="The property's name; case counts.")
    to: str = Field(min_length=1)


class RenamePropertyOutput(ToolModel):
    files: list[str] = Field(description="The notes that were changed.")
    total: int


def _rename_property(args: RenamePropertyInput, ctx: ToolContext) -> Proposal:
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
        properties = frontmatter.read(text)
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
    front = frontmatter.span(text)
    block = parse(text[front.content_start : front.content_end]) if front is not None else None
    if front is None or block is None:
        raise ToolError("The note has no properties.", code="FRONTMATTER_INVALID")
    before = frontmatter.read(text)
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
        return frontmatter.read(text)
    except VaultError:
        return None


RENAME_PROPERTY = Tool(
    name="vault.renameProperty",
    summary="Rename a property in a note, some notes or a folder; its value and place stay. A note that has both names is left alone.",
    risk=Risk.WRITES,
    input=RenamePropertyInput,
    output=RenamePropertyOutput,
    propose=_rename_property,
)
