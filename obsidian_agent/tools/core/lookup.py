"""Helpers that tools share.

They find and read what arguments name, produce the errors and warnings for it, and sort and page
results.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from obsidian_agent.errors import ObsidianAgentError, Problem, ToolError, VaultError
from obsidian_agent.tools.core.tool import RunContext, ToolContext
from obsidian_agent.vault.frontmatter.properties import find_frontmatter
from obsidian_agent.vault.index.index import VaultIndex, tag_key
from obsidian_agent.vault.paths import path as paths
from obsidian_agent.vault.paths.path import ROOT, PathUse, VaultPath
from obsidian_agent.vault.text import decode, encode
from obsidian_agent.vault.views.changes import CreateFile, FileChange, ModifyFile
from obsidian_agent.vault.views.view import VaultEntry, VaultView

T = TypeVar("T")

_WORD: Final = re.compile(
    r"\d+(?:[.,]\d+)*|[^\W\d_぀-ヿ一-鿿가-힯][^\W_぀-ヿ一-鿿]*(?:['’\-][^\W_]+)*"
    r"|[぀-ヿ一-鿿]"
)
"""A number, a word with its apostrophes and hyphens, or a character of a script without spaces."""


def now_ms(run: RunContext) -> float:
    """Return the time of the run in milliseconds.

    Outputs report it as the modification time of everything that the run writes.
    """
    return run.now.timestamp() * 1000


def new_path(
    view: VaultView,
    text: str,
    use: PathUse = PathUse.CREATE,
    *,
    moved_from: VaultPath | None = None,
) -> VaultPath:
    """Return the path of something new.

    Existing folders keep their names, and so does an entry that is moved, however unusual they are.
    """
    return paths.parse(
        text, use, exists=lambda folder: view.locate(folder) is not None, moved_from=moved_from
    )


def find_entry(view: VaultView, text: str, use: PathUse = PathUse.READ) -> VaultEntry:
    """Return the file or folder that `text` names.

    Raise FILE_NOT_FOUND, with the spelling on disk as a hint if only that differs.
    """
    path = paths.parse(text, use)
    entry = view.locate(path)
    if entry is None:
        raise not_found(view, path)
    return entry


def find_file(view: VaultView, text: str, use: PathUse = PathUse.READ) -> VaultPath:
    """Return the file that `text` names.

    Raise FILE_NOT_FOUND if it does not exist, NOT_TEXT if it is a folder.
    """
    entry = find_entry(view, text, use)
    if entry.kind == "folder":
        raise ToolError(
            f"{entry.path} is a folder, not a file.", code="NOT_TEXT", path=entry.path.text
        )
    return entry.path


def find_folder(view: VaultView, text: str | None) -> VaultPath:
    """Return the folder that `text` names; `None` and "" are the vault itself.

    Raise FILE_NOT_FOUND or NOT_A_FOLDER.
    """
    if text is None:
        return ROOT
    entry = find_entry(view, text, PathUse.FOLDER)
    if entry.kind == "file":
        raise ToolError(
            f"{entry.path} is a file, not a folder.", code="NOT_A_FOLDER", path=entry.path.text
        )
    return entry.path


def read_text(view: VaultView, path: VaultPath) -> str:
    """Return the exact text of a file, line endings included. Raise NOT_TEXT if it is not UTF-8."""
    return decode(view.read(path), path.text)


def open_note(ctx: ToolContext, text: str) -> tuple[VaultPath, str]:
    """Return the file that `text` names, which is to be changed, and its text.

    Raise the errors of `find_file` and `read_text`.
    """
    path = find_file(ctx.view, text, PathUse.UPDATE)
    return path, read_text(ctx.view, path)


def content_change(
    path: VaultPath, before: str | bytes | None, after: str | bytes
) -> tuple[FileChange, ...]:
    """Return the change that gives a file this content.

    It is empty if the file has the content already, and creates the file if `before` is `None`.
    """
    if before == after:
        return ()
    data = encode(after) if isinstance(after, str) else after
    return (CreateFile(path, data),) if before is None else (ModifyFile(path, data),)


def without_properties(text: str) -> str:
    """Return the text of a note below its properties."""
    front = find_frontmatter(text)
    return text if front is None else text[front.body_start :]


def word_count(text: str) -> int:
    """Return the number of words of a text."""
    return sum(1 for _ in _WORD.finditer(text))


def skipped_note(path: VaultPath, error: ObsidianAgentError) -> Problem:
    """Return the warning for one of many files that cannot be read."""
    return Problem(error.code, f"{path} is skipped: {error.message}", path=path.text)


def not_found(view: VaultView, path: VaultPath) -> VaultError:
    """Return the error for a path that does not exist."""
    twin = view.twin(path)
    if twin is not None and twin.nfc == path.nfc:
        return VaultError(
            f"{path} is neither a file nor a folder, so it is skipped.",
            code="NOT_TEXT",
            path=path.text,
        )
    if twin is None and (note := view.locate(paths.parse(f"{path.text}.md", PathUse.READ))):
        twin = note.path
    return VaultError(
        f"{path} does not exist in the vault.",
        code="FILE_NOT_FOUND",
        path=path.text,
        hint=f"Did you mean {twin.text!r}?" if twin is not None else None,
        advice="Check the name with vault.listFiles." if twin is None else None,
    )


def value_of(properties: Mapping[str, Any], key: str) -> Any:
    """Return the value of a property, or `None` if it is missing.

    Without an exact match, a name that differs only in case counts.
    """
    if key in properties:
        return properties[key]
    folded = key.casefold()
    return next((value for name, value in properties.items() if name.casefold() == folded), None)


def page(items: Sequence[T], limit: int | None, offset: int) -> tuple[Sequence[T], bool]:
    """Return up to `limit` items from `offset` (`None`: all), and whether more follow."""
    end = len(items) if limit is None else offset + limit
    return items[offset:end], end < len(items)


def sort_key(value: Any) -> tuple[int, float, str] | None:
    """Return the sort key of a value, or `None` for an empty one.

    Numbers come before texts, texts ignore case, and a list counts by its first value.
    """
    if isinstance(value, list):
        value = value[0] if value else None
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 1, 0.0, str(value).casefold()
    return 0, float(value), ""


def unread_warnings(
    index: VaultIndex, notes: Iterable[VaultPath] | None = None
) -> tuple[Problem, ...]:
    """Return warnings for the notes that the index could not read.

    `notes` restricts them to these notes.
    """
    problems = index.problems
    names = sorted(
        problems
        if notes is None or not problems
        else problems.keys() & {path.text for path in notes}
    )
    return tuple(
        Problem(problems[name].code, f"{name} is skipped: {problems[name].message}", path=name)
        for name in names
    )


def tagged(index: VaultIndex, tag: str, folder: VaultPath) -> list[VaultPath]:
    """Return the notes with a tag, or with a tag nested in it.

    Raise ARGUMENT_INVALID for a text that cannot be a tag.
    """
    if not tag_key(tag):
        raise ToolError(
            f"{tag!r} is not a tag.", hint="Use the tag's name, such as project or #project/alpha."
        )
    return index.tagged(tag, folder)
