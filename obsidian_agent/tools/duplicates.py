"""`vault.findDuplicates`: notes with the same text, or of the same name."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from typing import Literal

from pydantic import Field

from obsidian_agent.errors import Problem
from obsidian_agent.tools.base import Proposal, Risk, Tool, ToolContext, ToolModel
from obsidian_agent.tools.sources import NotesInput
from obsidian_agent.vault import frontmatter


class FindDuplicatesInput(NotesInput):
    by: Literal["content", "name"] = Field(
        default="content", description="The text below the properties, blanks at its ends aside; or the name."
    )


class DuplicateNote(ToolModel):
    path: str
    name: str


class DuplicateGroup(ToolModel):
    key: str = Field(description="The name that they share, or the name of the first.")
    items: list[DuplicateNote]
    count: int


class FindDuplicatesOutput(ToolModel):
    groups: list[DuplicateGroup]
    count: int
    notes: int = Field(description="The number of notes in all groups.")


def _find_duplicates(args: FindDuplicatesInput, ctx: ToolContext) -> Proposal:
    problems: list[Problem] = []
    alike: dict[str, list[DuplicateNote]] = defaultdict(list)
    if args.by == "name":
        for path in args.notes(ctx):
            alike[unicodedata.normalize("NFC", path.stem).casefold()].append(DuplicateNote(path=path.text, name=path.stem))
    else:
        for path, text in args.texts(ctx, problems):
            front = frontmatter.span(text)
            body = (text[front.body_start :] if front is not None else text).replace("\r\n", "\n").strip("\ufeff \t\n")
            if body:
                alike[body].append(DuplicateNote(path=path.text, name=path.stem))
    groups = [DuplicateGroup(key=notes[0].name, items=notes, count=len(notes)) for notes in alike.values() if len(notes) > 1]
    groups.sort(key=lambda group: group.key.casefold())
    output = FindDuplicatesOutput(groups=groups, count=len(groups), notes=sum(group.count for group in groups))
    return Proposal(output, warnings=tuple(problems))


FIND_DUPLICATES = Tool(
    name="vault.findDuplicates",
    summary="Groups of notes with the same text or the same name; empty notes have no text to share.",
    risk=Risk.READ_ONLY,
    input=FindDuplicatesInput,
    output=FindDuplicatesOutput,
    propose=_find_duplicates,
)
