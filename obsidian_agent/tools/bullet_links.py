"""`util.linkBullets`: a list whose items become links, while markers, checkboxes, indentation and everything between them stay."""

from __future__ import annotations

import re
from typing import Any

from pydantic import Field

from obsidian_agent.errors import ToolError
from obsidian_agent.tools.base import LongText, Proposal, Risk, Tool, ToolContext, ToolModel
from obsidian_agent.tools.linktext import LinkWriter
from obsidian_agent.vault import markdown

_LEAD = re.compile(r"[ \t>]*(?:[-*+]|[0-9]{1,9}[.)])(?:[ \t]+\[[^\]\r\n]\])?[ \t]+")


class LinkBulletsInput(ToolModel):
    text: LongText = Field(description="The list, for example the selection.")
    notes: list[Any] = Field(
        description="For each item of util.parseMarkdownBullets, in its order: an object with path (an output of vault.createFile), "
        "a path, or null, which leaves the item as it is."
    )


class LinkBulletsOutput(ToolModel):
    text: str
    count: int = Field(description="How many items became links.")


def _link_bullets(args: LinkBulletsInput, ctx: ToolContext) -> Proposal:
    bullets = markdown.bullets(args.text)
    if len(bullets) != len(args.notes):
        raise ToolError(
            f"The text has {len(bullets)} list items, but there are {len(args.notes)} notes.",
            code="COUNT_MISMATCH",
            hint="Give one note, or null, for each item.",
        )
    link = LinkWriter(ctx.view)
    made: list[str] = []
    at = count = 0
    for bullet, note in zip(bullets, args.notes, strict=True):
        start = _line_start(args.text, bullet.raw, at)
        made.append(args.text[at:start])
        path = _path(note)
        made.append(bullet.raw if path is None else _linked(bullet.raw, bullet.text, link(path)))
        count += path is not None
        at = start + len(bullet.raw)
    return Proposal(LinkBulletsOutput(text="".join([*made, args.text[at:]]), count=count))


def _line_start(text: str, line: str, start: int) -> int:
    """Where the next line that is exactly `line` begins."""
    while True:
        found = text.index(line, start)
        after = found + len(line)
        if (found == 0 or text[found - 1] in "\r\n") and (after == len(text) or text[after] in "\r\n"):
            return found
        start = found + 1


def _linked(line: str, text: str, link: str) -> str:
    lead = _LEAD.match(line)
    start = line.index(text, lead.end() if lead is not None else 0)
    return line[:start] + link + line[start + len(text) :]


def _path(note: Any) -> str | None:
    if note is None or isinstance(note, str):
        return note
    if isinstance(note, dict) and isinstance(note.get("path"), str):
        path: str = note["path"]
        return path
    raise ToolError("A note is an object with path, a path, or null.")


LINK_BULLETS = Tool(
    name="util.linkBullets",
    summary="Turn the items of a list into links to notes; markers, checkboxes and all other lines stay.",
    risk=Risk.READ_ONLY,
    input=LinkBulletsInput,
    output=LinkBulletsOutput,
    propose=_link_bullets,
)
