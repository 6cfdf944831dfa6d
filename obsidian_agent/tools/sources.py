"""Which notes a step works on: those of another step, or those of a folder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field, model_validator

from obsidian_agent.errors import Problem, ToolError, VaultError
from obsidian_agent.tools.base import PathText, ToolContext, ToolModel
from obsidian_agent.tools.notes import find_file, find_folder, notes_below, read_text
from obsidian_agent.vault.paths import VaultPath


class NotesInput(ToolModel):
    """Arguments of a tool that reads several notes."""

    path: PathText | None = Field(default=None, description="One note.")
    folder: PathText | None = Field(default=None, description="The notes below it; the vault when nothing is given.")
    files: list[Any] | None = Field(default=None, description="The files of another step, or paths; null ones are left out.")

    @model_validator(mode="after")
    def _one_place(self) -> NotesInput:
        if sum(place is not None for place in (self.path, self.folder, self.files)) > 1:
            raise ValueError("give only one of path, folder and files")
        return self

    def notes(self, ctx: ToolContext) -> list[VaultPath]:
        """The notes that are meant, each once, in the order given. ToolError for a path that is missing."""
        if self.path is not None:
            return [find_file(ctx.view, self.path)]
        if self.files is None:
            return list(notes_below(ctx.view, find_folder(ctx.view, self.folder)))
        named = dict.fromkeys(find_file(ctx.view, path_of(item)) for item in self.files if item is not None)
        return [path for path in named if path.is_note]

    def texts(self, ctx: ToolContext, problems: list[Problem]) -> Iterator[tuple[VaultPath, str]]:
        """The notes with their texts; one that cannot be read is an error when it was named, else a warning in `problems`."""
        for path in self.notes(ctx):
            try:
                yield path, read_text(ctx.view, path)
            except VaultError as error:
                if self.path is not None:
                    raise
                problems.append(Problem(error.code, f"{path} is left out: {error.message}", path=path.text))


def path_of(item: Any) -> str:
    """The path that an item of another step stands for. ToolError when it has none."""
    if isinstance(item, str):
        return item
    if isinstance(item, dict) and isinstance(item.get("path"), str):
        path: str = item["path"]
        return path
    raise ToolError("An item of files is an object with path, or a path.", hint="Give the files of another step: $steps.find.files.")
