"""What the inputs and outputs of tools are made of: pydantic models, camelCase on the wire."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final, Generic, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)
from pydantic.alias_generators import to_camel

from obsidian_agent.errors import Problem, ToolError, VaultError
from obsidian_agent.tools.core.lookup import (
    find_file,
    find_folder,
    notes_below,
    read_text,
    skipped_note,
)
from obsidian_agent.tools.core.tool import LongText, PathText, ToolContext
from obsidian_agent.vault.paths.path import VaultPath


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


WHOLE = BeforeValidator(_whole)
"""Mark of an integer; JSON writers that know only floats may say 1.0 for 1."""

Whole = Annotated[int, WHOLE]

INTO: Final = "The note that it will be put into: links in it lead where they did, and links to its headings and blocks follow."
"""What the tools say of `into` that take a text out of a note."""


class ToolModel(BaseModel):
    """Base of every input and output: camelCase on the wire, unknown fields refused, no coercion (1.0 for 1 excepted), immutable."""

    # Built when first used (a third of a command's start); from pydantic 2.14 on that is safe in threads.
    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        strict=True,
        frozen=True,
        defer_build=True,
    )


class SparseOutput(ToolModel):
    """An output whose optional fields are absent when they are None; fields without a default are there, null if need be."""

    @model_serializer(mode="wrap")
    def _sparse(
        self, handler: SerializerFunctionWrapHandler, info: SerializationInfo
    ) -> dict[str, Any]:
        document: dict[str, Any] = handler(self)
        for name, field in type(self).model_fields.items():
            key = (field.serialization_alias or name) if info.by_alias else name
            if field.is_required():
                document.setdefault(key, None)
            elif key in document and document[key] is None:
                del document[key]
        return document


Item = TypeVar("Item")


class Items(ToolModel, Generic[Item]):
    """An output that is a list."""

    items: list[Item]
    count: int

    @classmethod
    def of(cls, items: list[Item]) -> Self:
        """The output with these items."""
        return cls(items=items, count=len(items))


class ChangedFile(ToolModel):
    path: str
    count: int


class ChangedFiles(ToolModel):
    """An output that counts what was changed in files."""

    files: list[ChangedFile]
    total: int

    @classmethod
    def of(cls, files: list[ChangedFile]) -> Self:
        """The output with these files."""
        return cls(files=files, total=sum(file.count for file in files))


class NotesInput(ToolModel):
    """Arguments of a tool that reads several notes."""

    path: PathText | None = Field(default=None, description="One note.")
    folder: PathText | None = Field(
        default=None, description="The notes below it; the vault when nothing is given."
    )
    files: list[Any] | None = Field(
        default=None, description="The files of another step, or paths; null ones are left out."
    )

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
        named = dict.fromkeys(
            find_file(ctx.view, path_of(item)) for item in self.files if item is not None
        )
        return [path for path in named if path.is_note]

    def texts(self, ctx: ToolContext, problems: list[Problem]) -> Iterator[tuple[VaultPath, str]]:
        """The notes with their texts; one that cannot be read is an error when it was named, else a warning in `problems`."""
        for path in self.notes(ctx):
            try:
                yield path, read_text(ctx.view, path)
            except VaultError as error:
                if self.path is not None:
                    raise
                problems.append(skipped_note(path, error))


def path_of(item: Any) -> str:
    """The path that an item of another step stands for. ToolError when it has none."""
    if isinstance(item, str):
        return item
    if isinstance(item, dict) and isinstance(item.get("path"), str):
        path: str = item["path"]
        return path
    raise ToolError(
        "An item of files is an object with path, or a path.",
        advice="Give the files of another step: $steps.find.files.",
    )


class TextOrPath(ToolModel):
    text: LongText | None = None
    path: PathText | None = None

    @model_validator(mode="after")
    def _one_source(self) -> TextOrPath:
        if (self.text is None) == (self.path is None):
            raise ValueError("give exactly one of text and path")
        return self

    def read(self, ctx: ToolContext) -> str:
        """The text itself, or that of the file at `path`."""
        if self.path is None:
            return self.text or ""
        return read_text(ctx.view, find_file(ctx.view, self.path))
