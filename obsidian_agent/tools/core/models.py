"""The building blocks of tool inputs and outputs: pydantic models with camelCase names in JSON."""

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
    read_text,
    skipped_note,
)
from obsidian_agent.tools.core.tool import LongText, PathText, ToolContext
from obsidian_agent.vault.paths.path import VaultPath

Item = TypeVar("Item")


INTO: Final = (
    "The note that the text will be put into. "
    "Links in the text keep their targets; links to its headings and blocks will lead there."
)
"""The description of `into` in the tools that remove text from a note."""


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


WHOLE = BeforeValidator(_whole)
"""A validator that accepts 1.0 as 1, because some JSON writers only know floats."""

Whole = Annotated[int, WHOLE]


class ToolModel(BaseModel):
    """The base of every input and output.

    Names are camelCase in JSON, unknown fields are refused, values are not coerced (except 1.0 to
    1), and instances are immutable.
    """

    # Built on first use, which saves a third of a command's start. Thread-safe since pydantic 2.14.
    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        strict=True,
        frozen=True,
        defer_build=True,
    )


class SparseOutput(ToolModel):
    """An output that omits its optional fields when they are `None`.

    Fields without a default are always present, also when they are null.
    """

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


class Items(ToolModel, Generic[Item]):
    """An output that is a list."""

    items: list[Item]
    count: int

    @classmethod
    def of(cls, items: list[Item]) -> Self:
        """Return the output with these items."""
        return cls(items=items, count=len(items))


class ChangedFile(ToolModel):
    path: str
    count: int


class ChangedFiles(ToolModel):
    """An output that counts the changes in files."""

    files: list[ChangedFile]
    total: int

    @classmethod
    def of(cls, files: list[ChangedFile]) -> Self:
        """Return the output with these files."""
        return cls(files=files, total=sum(file.count for file in files))


class NotesInput(ToolModel):
    """The arguments of a tool that reads several notes."""

    path: PathText | None = Field(default=None, description="One note.")
    folder: PathText | None = Field(
        default=None, description="The notes below it; the whole vault by default."
    )
    files: list[Any] | None = Field(
        default=None, description="The files of another step, or paths; null entries are skipped."
    )

    @model_validator(mode="after")
    def _one_scope(self) -> NotesInput:
        if sum(scope is not None for scope in (self.path, self.folder, self.files)) > 1:
            raise ValueError("give only one of path, folder and files")
        return self

    def notes(self, ctx: ToolContext) -> list[VaultPath]:
        """Return the selected notes without duplicates, in the order of the arguments.

        Raise ToolError for a missing path.
        """
        if self.path is not None:
            return [find_file(ctx.view, self.path)]
        if self.files is None:
            return list(ctx.view.notes(find_folder(ctx.view, self.folder)))
        named = dict.fromkeys(
            find_file(ctx.view, path_of(item)) for item in self.files if item is not None
        )
        return [path for path in named if path.is_note]

    def texts(self, ctx: ToolContext, problems: list[Problem]) -> Iterator[tuple[VaultPath, str]]:
        """Yield the notes with their texts.

        A note that cannot be read is an error if `path` names it, or else a warning in `problems`.
        """
        for path in self.notes(ctx):
            try:
                yield path, read_text(ctx.view, path)
            except VaultError as error:
                if self.path is not None:
                    raise
                problems.append(skipped_note(path, error))


def path_of(item: Any) -> str:
    """Return the path that an item of another step stands for. Raise ToolError if it has none."""
    if isinstance(item, str):
        return item
    if isinstance(item, dict) and isinstance(item.get("path"), str):
        path: str = item["path"]
        return path
    raise ToolError(
        "Each item of files must be a path, or an object with path.",
        advice="Use the files of another step: $steps.find.files.",
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
        """Return the text itself, or the text of the file at `path`."""
        if self.path is None:
            return self.text or ""
        return read_text(ctx.view, find_file(ctx.view, self.path))
