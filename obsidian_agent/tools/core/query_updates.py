"""Queries in the proposals of tools that rename: rewritten, or reported as warnings."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from obsidian_agent.errors import Problem
from obsidian_agent.tools.core.tool import ToolContext
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.refactor.queries import QueryFile, rewritten_files
from obsidian_agent.vault.refactor.query_renames import Rename
from obsidian_agent.vault.refactor.rename_links import FileMoves
from obsidian_agent.vault.views.changes import ModifyFile


class QueryUpdates(Struct, frozen=True):
    """The changes of a rename, including those to queries, and the queries to check by hand."""

    changes: tuple[ModifyFile, ...]
    """At most one for each file."""
    counts: dict[VaultPath, int]
    """The number of rewritten names in queries, by file."""
    warnings: tuple[Problem, ...]


def update_queries(
    ctx: ToolContext,
    rename: Rename,
    changes: Iterable[ModifyFile],
    moves: FileMoves | None = None,
    *,
    is_partial: bool = False,
) -> QueryUpdates:
    """Add the changes to queries with the old name to the other changes of a rename.

    With `is_partial` the old name remains in use elsewhere, so queries are only reported.
    """
    by_path = {change.path: change for change in changes}

    def content(path: VaultPath) -> bytes | None:
        change = by_path.get(path)
        return None if change is None else change.content

    counts: dict[VaultPath, int] = {}
    warnings: list[Problem] = []
    files = list(rewritten_files(ctx.view, rename, content, moves, doubt_all=is_partial))
    for file in files:
        warnings += _warnings(file)
        if file.queries.count:
            counts[file.path] = file.queries.count
            by_path[file.path] = ModifyFile(file.path, file.queries.content)
    return QueryUpdates(tuple(by_path.values()), counts, tuple(warnings))


def _warnings(file: QueryFile) -> Iterable[Problem]:
    for line, language in file.queries.doubts:
        message = (
            f"Line {line} of {file.path}: this {language} may still need the new name. "
            "Check it after the rename."
        )
        yield Problem("QUERY_MAY_CHANGE", message, path=file.path.text)
