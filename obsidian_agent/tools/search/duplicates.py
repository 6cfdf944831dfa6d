"""The tool that finds duplicate notes."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from typing import Literal

from pydantic import Field

from obsidian_agent.errors import Problem
from obsidian_agent.tools.core.lookup import (
    without_properties,
)
from obsidian_agent.tools.core.models import NotesInput, ToolModel
from obsidian_agent.tools.core.tool import Proposal, Risk, ToolContext, tool
from obsidian_agent.vault.paths.path import VaultPath


class FindDuplicatesInput(NotesInput):
    by: Literal["content", "name"] = Field(
        default="content",
        description="The text below the properties without surrounding whitespace, or the name.",
    )


class DuplicateNote(ToolModel):
    path: str
    name: str
    group: str = Field(description="The name of the first of its group.")


class DuplicateGroup(ToolModel):
    key: str = Field(description="Their common name, or the name of the first.")
    items: list[DuplicateNote]
    count: int


class FindDuplicatesOutput(ToolModel):
    groups: list[DuplicateGroup]
    count: int
    notes: int = Field(description="The number of notes in all groups.")


@tool("vault.findDuplicates", Risk.READ_ONLY)
def find_duplicates(args: FindDuplicatesInput, ctx: ToolContext) -> Proposal[FindDuplicatesOutput]:
    """Find groups of notes with the same text or the same name.

    Empty texts are ignored.
    """
    problems: list[Problem] = []
    alike: dict[str, list[VaultPath]] = defaultdict(list)
    if args.by == "name":
        for path in args.notes(ctx):
            alike[unicodedata.normalize("NFC", path.stem).casefold()].append(path)
    else:
        for path, text in args.texts(ctx, problems):
            body = without_properties(text).replace("\r\n", "\n").strip("\ufeff \t\n")
            if body:
                alike[body].append(path)
    groups = [_group(paths) for paths in alike.values() if len(paths) > 1]
    groups.sort(key=lambda group: group.key.casefold())
    output = FindDuplicatesOutput(
        groups=groups, count=len(groups), notes=sum(group.count for group in groups)
    )
    return Proposal(output, warnings=tuple(problems))


def _group(paths: list[VaultPath]) -> DuplicateGroup:
    name = paths[0].stem
    notes = [DuplicateNote(path=path.text, name=path.stem, group=name) for path in paths]
    return DuplicateGroup(key=name, items=notes, count=len(notes))
