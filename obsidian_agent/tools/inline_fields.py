"""`vault.inlineToProperties`: Dataview's inline fields (`key:: value` on a line of its own) as properties of the note."""

from __future__ import annotations

import re
from typing import Any, Final

from pydantic import Field

from obsidian_agent.errors import Problem
from obsidian_agent.tools.base import PathText, Proposal, Risk, Tool, ToolContext, ToolModel
from obsidian_agent.tools.notes import find_file, read_text
from obsidian_agent.vault import frontmatter
from obsidian_agent.vault.changes import ModifyFile
from obsidian_agent.vault.markdown_lines import scan
from obsidian_agent.vault.paths import PathUse
from obsidian_agent.vault.text import encode

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


def _inline_to_properties(args: InlineInput, ctx: ToolContext) -> Proposal:
    path = find_file(ctx.view, args.path, PathUse.UPDATE)
    text = read_text(ctx.view, path)
    wanted = None if args.fields is None else {name.casefold() for name in args.fields}
    there = {key.casefold() for key in frontmatter.read(text)}
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
    changed = frontmatter.edit(text if args.keep else _without(text, cuts), set=properties) if properties else text
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


INLINE_TO_PROPERTIES = Tool(
    name="vault.inlineToProperties",
    summary="Turn inline fields (key:: value on a line of its own) into properties; a property that is there stays as it is.",
    risk=Risk.WRITES,
    input=InlineInput,
    output=InlineOutput,
    propose=_inline_to_properties,
)
