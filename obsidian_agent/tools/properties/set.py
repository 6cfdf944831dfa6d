"""`vault.addValues` and `vault.removeValues`: values of a property that is a list; the others stay.

When a property has a value: equal, in its list, or a link to the same file.

The tool that changes properties: `vault.setFrontmatter`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from pydantic import Field

from obsidian_agent.errors import ObsidianAgentError, Problem, ToolError
from obsidian_agent.tools.core.lookup import find_file, read_text
from obsidian_agent.tools.core.tool import PathText, Proposal, Risk, ToolContext, ToolModel, tool
from obsidian_agent.vault.frontmatter import read
from obsidian_agent.vault.index.index import VaultIndex
from obsidian_agent.vault.links.resolve import link_key
from obsidian_agent.vault.markdown.text import encode
from obsidian_agent.vault.paths.path import PathUse, VaultPath
from obsidian_agent.vault.views.changes import FileChange, ModifyFile

_LINK: Final = re.compile(r"\s*\[\[([^\[\]\n]+)\]\]\s*")
_NOTE: Final = ".md"


def value_of(properties: Mapping[str, Any], key: str) -> Any:
    """A property's value; where no name is spelled so, that of the one which differs in case alone; None when there is none."""
    if key in properties:
        return properties[key]
    folded = key.casefold()
    return next((value for name, value in properties.items() if name.casefold() == folded), None)


class PropertyFilter:
    """One property and the value it must have. Text is compared exactly, links by the file they lead to."""

    def __init__(self, key: str, wanted: Any, index: VaultIndex) -> None:
        self._key = key
        self._wanted = wanted
        self._index = index
        self._wanted_target = _target(wanted) if isinstance(wanted, str) else None

    def fits(self, path: VaultPath) -> bool:
        """Whether a note meets the condition."""
        value = value_of(self._index.facts(path).properties, self._key)
        if self._wanted is None:
            return value is None
        if _equal(value, self._wanted):
            return True
        members = value if isinstance(value, list) else [value]
        return any(_equal(member, self._wanted) or self._is_link(member, path) for member in members)

    def _is_link(self, value: Any, source: VaultPath) -> bool:
        """Whether a value is a link to what is wanted: a link to the same file, its path, or its name."""
        if not isinstance(value, str) or not isinstance(self._wanted, str):
            return False
        target = _target(value)
        if target is None:
            return self._wanted_target is not None and link_key(value) == link_key(self._wanted_target)
        wanted = link_key((self._wanted_target or self._wanted).strip()).removesuffix(_NOTE)
        if link_key(target).removesuffix(_NOTE) == wanted:
            return True
        file = self._index.resolve(target, source)
        if file is None:
            return False
        if self._wanted_target is not None:
            return self._index.resolve(self._wanted_target, source) == file
        path = link_key(file.text).removesuffix(_NOTE)
        return path == wanted or path.rpartition("/")[2] == wanted


def _target(text: str) -> str | None:
    """The target of a text that is exactly one wikilink, without heading and display text."""
    found = _LINK.fullmatch(text)
    if found is None:
        return None
    return found[1].partition("|")[0].partition("#")[0].strip() or None


def _equal(value: Any, wanted: Any) -> bool:
    """Equal and of one kind (true is not 1); a number or truth value also equals its text."""
    if isinstance(wanted, str) and isinstance(value, (bool, int, float)):
        return json.dumps(value) == wanted.strip()
    if isinstance(value, bool) != isinstance(wanted, bool):
        return False
    return bool(value == wanted)


class AddValuesInput(ToolModel):
    path: PathText = Field(min_length=1)
    property: str = Field(min_length=1, description="Such as aliases; a single value that is there becomes the first of the list.")
    values: list[Any] = Field(min_length=1, description="Those that are in the list already are not added again.")


class AddValuesOutput(ToolModel):
    path: str
    values: list[Any] = Field(description="The whole list.")
    changed: bool


@tool("vault.addValues", Risk.WRITES)
def add_values(args: AddValuesInput, ctx: ToolContext) -> Proposal[AddValuesOutput]:
    """Add values to a property that is a list, such as aliases or authors; for tags use vault.setFrontmatter."""
    path = find_file(ctx.view, args.path, PathUse.UPDATE)
    text = read_text(ctx.view, path)
    there = read.read(text).get(args.property)
    values = list(there) if isinstance(there, list) else [] if there is None or there == "" else [there]
    new = [value for number, value in enumerate(args.values) if value not in values and value not in args.values[:number]]
    if not new:
        return Proposal(AddValuesOutput(path=path.text, values=values, changed=False))
    changed = read.edit(text, set={args.property: [*values, *new]})
    return Proposal(AddValuesOutput(path=path.text, values=[*values, *new], changed=True), (ModifyFile(path, encode(changed)),))


class RemoveValuesInput(ToolModel):
    path: PathText = Field(min_length=1)
    property: str = Field(
        min_length=1, description="Such as authors. The last value that goes leaves an empty list; a single one goes as a whole."
    )
    values: list[Any] = Field(min_length=1, description="In any case; a link by its text or target.")


@tool("vault.removeValues", Risk.WRITES)
def remove_values(args: RemoveValuesInput, ctx: ToolContext) -> Proposal[AddValuesOutput]:
    """Take values out of a property that is a list, such as aliases or authors; for tags use vault.setFrontmatter."""
    path = find_file(ctx.view, args.path, PathUse.UPDATE)
    text = read_text(ctx.view, path)
    there = read.read(text).get(args.property)
    values = list(there) if isinstance(there, list) else [] if there is None or there == "" else [there]
    unwanted = {_key(value) for value in args.values}
    kept = [value for value in values if _key(value) not in unwanted]
    if len(kept) == len(values):
        missing = Problem("TEXT_NOT_FOUND", f"{path} has none of these values in {args.property}.", path=path.text)
        return Proposal(AddValuesOutput(path=path.text, values=values, changed=False), warnings=(missing,))
    whole = not isinstance(there, list)
    changed = read.edit(text, set={args.property: None if whole else kept})
    return Proposal(AddValuesOutput(path=path.text, values=kept, changed=True), (ModifyFile(path, encode(changed)),))


def _key(value: Any) -> str:
    text = str(value).strip().casefold()
    if text.startswith("[[") and text.endswith("]]"):
        return text[2:-2].partition("|")[0].partition("#")[0].rpartition("/")[2].strip()
    return text


class SetFrontmatterInput(ToolModel):
    path: PathText = Field(min_length=1, description="A Markdown file.")
    set: dict[str, Any] = Field(default_factory=dict, description="New values by property: text, number, true, false, null, list or map.")
    remove: list[str] = Field(default_factory=list, description="Properties to take away, with their values.")
    add_tags: list[str] = Field(default_factory=list, description="Tags to add to the property tags, with or without #.")
    remove_tags: list[str] = Field(default_factory=list, description="Tags to take out of the property tags.")


class SetFrontmatterOutput(ToolModel):
    path: str
    changed: bool


@tool("vault.setFrontmatter", Risk.WRITES)
def set_frontmatter(args: SetFrontmatterInput, ctx: ToolContext) -> Proposal[SetFrontmatterOutput]:
    """Set and remove properties of a note, add and remove its tags; no other character changes."""
    path = find_file(ctx.view, args.path, PathUse.UPDATE)
    if not path.is_note:
        raise ToolError(f"{path} is no Markdown file, so it has no properties.", path=path.text)
    before = read_text(ctx.view, path)
    try:
        after = read.edit(before, set=args.set, remove=args.remove, add_tags=args.add_tags, remove_tags=args.remove_tags)
    except ObsidianAgentError as error:
        error.path = path.text
        raise
    changes: tuple[FileChange, ...] = () if after == before else (ModifyFile(path, encode(after)),)
    return Proposal(SetFrontmatterOutput(path=path.text, changed=bool(changes)), changes)
