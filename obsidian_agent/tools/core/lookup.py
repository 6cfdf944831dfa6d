"""What tools share: finding and reading what their arguments name, the errors and warnings for it, and the form of their answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import Field, SerializationInfo, SerializerFunctionWrapHandler, model_serializer, model_validator

from obsidian_agent.errors import ObsidianAgentError, Problem, ToolError, VaultError
from obsidian_agent.tools.core.tool import LongText, PathText, RunContext, ToolContext, ToolModel
from obsidian_agent.vault.frontmatter.properties import find_frontmatter
from obsidian_agent.vault.index.index import VaultIndex
from obsidian_agent.vault.paths import path as paths
from obsidian_agent.vault.paths.path import ROOT, PathUse, VaultPath
from obsidian_agent.vault.text import decode, encode
from obsidian_agent.vault.views.changes import CreateFile, FileChange, ModifyFile
from obsidian_agent.vault.views.view import Entry, VaultView


class SparseOutput(ToolModel):
    """An output whose optional fields are absent when they are None; fields without a default are there, null if need be."""

    @model_serializer(mode="wrap")
    def _sparse(self, handler: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        document: dict[str, Any] = handler(self)
        for name, field in type(self).model_fields.items():
            key = (field.serialization_alias or name) if info.by_alias else name
            if field.is_required():
                document.setdefault(key, None)
            elif key in document and document[key] is None:
                del document[key]
        return document


def now_ms(run: RunContext) -> float:
    """The time of the run in milliseconds: the modification time of everything it writes, as far as outputs tell."""
    return run.now.timestamp() * 1000


def new_path(view: VaultView, text: str, use: PathUse = PathUse.CREATE, *, moved_from: VaultPath | None = None) -> VaultPath:
    """The path of something new. Folders that exist keep their names, and so does what is moved, however odd they are."""
    return paths.parse(text, use, exists=lambda folder: view.locate(folder) is not None, moved_from=moved_from)


def find_entry(view: VaultView, text: str, use: PathUse = PathUse.READ) -> Entry:
    """The file or folder that `text` names. FILE_NOT_FOUND, with the spelling on disk as a hint where only that differs."""
    path = paths.parse(text, use)
    entry = view.locate(path)
    if entry is None:
        raise not_found(view, path)
    return entry


def find_file(view: VaultView, text: str, use: PathUse = PathUse.READ) -> VaultPath:
    """The file that `text` names. FILE_NOT_FOUND when there is none, NOT_TEXT when it is a folder."""
    entry = find_entry(view, text, use)
    if entry.kind == "folder":
        raise ToolError(f"{entry.path} is a folder, not a file.", code="NOT_TEXT", path=entry.path.text)
    return entry.path


def find_folder(view: VaultView, text: str | None) -> VaultPath:
    """The folder that `text` names, the vault itself for None and "". FILE_NOT_FOUND, NOT_A_FOLDER."""
    if text is None:
        return ROOT
    entry = find_entry(view, text, PathUse.FOLDER)
    if entry.kind == "file":
        raise ToolError(f"{entry.path} is a file, not a folder.", code="NOT_A_FOLDER", path=entry.path.text)
    return entry.path


def read_text(view: VaultView, path: VaultPath) -> str:
    """The text of a file exactly as it is, line ends included. NOT_TEXT when it is not UTF-8."""
    return decode(view.read(path), path.text)


def open_note(ctx: ToolContext, text: str) -> tuple[VaultPath, str]:
    """The file that `text` names, to be changed, and the text in it. Errors as of `find_file` and `read_text`."""
    path = find_file(ctx.view, text, PathUse.UPDATE)
    return path, read_text(ctx.view, path)


def written(path: VaultPath, before: str | bytes | None, after: str | bytes) -> tuple[FileChange, ...]:
    """The change that gives a file this content: none where it has it, a new file where there was none (`before` is None)."""
    if before == after:
        return ()
    data = encode(after) if isinstance(after, str) else after
    return (CreateFile(path, data),) if before is None else (ModifyFile(path, data),)


def without_properties(text: str) -> str:
    """The text of a note below its properties."""
    front = find_frontmatter(text)
    return text if front is None else text[front.body_start :]


def left_out(path: VaultPath, error: ObsidianAgentError) -> Problem:
    """The warning for a file of many that cannot be read."""
    return Problem(error.code, f"{path} is left out: {error.message}", path=path.text)


def notes_below(view: VaultView, folder: VaultPath) -> Iterator[VaultPath]:
    """The Markdown files below a folder, sorted by path."""
    return (entry.path for entry in view.walk(folder) if entry.kind == "file" and entry.path.is_note)


def not_found(view: VaultView, path: VaultPath) -> VaultError:
    """The error for a path with nothing there."""
    twin = view.twin(path)
    if twin is not None and twin.nfc == path.nfc:
        return VaultError(f"{path} is neither a file nor a folder, so it is left alone.", code="NOT_TEXT", path=path.text)
    hint = f"Did you mean {twin.text!r}?" if twin is not None else "Check the name with vault.listFiles."
    return VaultError(f"{path} does not exist in the vault.", code="FILE_NOT_FOUND", path=path.text, hint=hint)


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
                problems.append(left_out(path, error))


def path_of(item: Any) -> str:
    """The path that an item of another step stands for. ToolError when it has none."""
    if isinstance(item, str):
        return item
    if isinstance(item, dict) and isinstance(item.get("path"), str):
        path: str = item["path"]
        return path
    raise ToolError("An item of files is an object with path, or a path.", hint="Give the files of another step: $steps.find.files.")


def value_of(properties: Mapping[str, Any], key: str) -> Any:
    """A property's value; where no name is spelled so, that of the one which differs in case alone; None when there is none."""
    if key in properties:
        return properties[key]
    folded = key.casefold()
    return next((value for name, value in properties.items() if name.casefold() == folded), None)


T = TypeVar("T")


def page(items: Sequence[T], limit: int | None, offset: int) -> tuple[Sequence[T], bool]:
    """The items from `offset` on, `limit` of them at most (None: all), and whether there are more behind them."""
    end = len(items) if limit is None else offset + limit
    return items[offset:end], end < len(items)


def sort_key(value: Any) -> tuple[int, float, str] | None:
    """How values are ordered: numbers before texts, texts without regard to case, a list by its first value; None for what has no place."""
    if isinstance(value, list):
        value = value[0] if value else None
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 1, 0.0, str(value).casefold()
    return 0, float(value), ""


def unread(index: VaultIndex) -> tuple[Problem, ...]:
    """Warnings for the notes of which nothing is known."""
    return tuple(Problem(each.code, f"{path} is left out: {each.message}", path=path) for path, each in sorted(index.problems.items()))


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
