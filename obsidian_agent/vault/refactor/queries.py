"""Queries after a rename: bases, Dataview, Tasks and search blocks follow it.

Only the bytes of renamed names change, and the new text is parsed again: it must hold the same
names, with the new ones in place. `code` is never changed: it is in doubt if it holds the old name.
So is everything that would no longer match the same notes.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct

from obsidian_agent.errors import PathRefused, VaultError
from obsidian_agent.expression import expression
from obsidian_agent.vault.index.index import ContentTest, VaultIndex
from obsidian_agent.vault.index.text_search import exact_needle, folded_needle
from obsidian_agent.vault.paths import path as paths
from obsidian_agent.vault.paths.path import PathUse, VaultPath
from obsidian_agent.vault.refactor.query_names import (
    Fragment,
    Kind,
    Language,
    QueryName,
    has_queries,
    names_in,
)
from obsidian_agent.vault.refactor.query_renames import MoveInQueries, Rename, dataview_name
from obsidian_agent.vault.refactor.rename_links import FileMoves
from obsidian_agent.vault.text import Edit, apply, decode
from obsidian_agent.vault.views.view import VaultView

_LANGUAGE_NAMES: Final = {
    "dataview": "Dataview query",
    "dataviewjs": "Dataview script",
    "tasks": "Tasks query",
    "query": "search",
    "base": "base",
}
_MARKS: Final = ("dataview", "```tasks", "``` tasks", "~~~tasks", "```query", "``` query")
_BASE_MARKS: Final = ("```base", "``` base", "`=", "` =", "`$=")
_DATAVIEW_NAME: Final = expression(r"[^\W\d][\w-]*")
_BASE_NAME: Final = expression(r"[^\W\d]\w*")
_PLAIN_SCALAR: Final = expression(r"(?!-\s|[?:]\s)[^\s#&*!|>'\"%@`{}\[\],](?:(?!: |:$| #)[^\n])*")


_WITH_QUERIES: Final = ContentTest(
    tuple(
        folded_needle(mark) if mark.isalpha() else exact_needle(mark)
        for mark in (*_MARKS, *_BASE_MARKS)
    ),
    has_queries,
)


class Doubt(NamedTuple):
    """A line with a query that a rename may change, and that is not rewritten."""

    line: int
    language: str
    """For users, such as "Dataview query"."""


class RewrittenQueries(Struct, frozen=True):
    """A file after a rename: its bytes, the number of new names, and the doubts by line."""

    content: bytes
    count: int = 0
    doubts: tuple[Doubt, ...] = ()


def files_with_queries(index: VaultIndex) -> list[VaultPath]:
    """Return the bases, and the notes with queries, sorted by path."""
    return sorted([*index.bases(), *index.notes_with(_WITH_QUERIES)])


class QueryFile(Struct, frozen=True):
    """A file whose queries a rename concerns: its new path, and its rewritten bytes."""

    path: VaultPath
    before: bytes
    queries: RewrittenQueries


def rewritten_files(
    view: VaultView,
    rename: Rename,
    contents: Callable[[VaultPath], bytes | None] = lambda path: None,
    moves: FileMoves | None = None,
    *,
    doubt_all: bool = False,
) -> Iterator[QueryFile]:
    """Yield the files with queries that contain the old name, and their rewritten contents.

    `contents` returns the bytes of a file that the rename rewrites for another reason, by its new
    path. Files that cannot be read are skipped. With `doubt_all`, and in files that may not be
    written, every query with the old name is in doubt.
    """
    for source in files_with_queries(view.index):
        path = source if moves is None else moves.after(source)
        if path is None:
            continue
        try:
            data = contents(path)
            if data is None:
                data = view.read(source)
            if isinstance(rename, MoveInQueries):
                rename.source = source
            queries = rewrite_queries(source, data, rename, doubt_all=doubt_all)
        except VaultError:
            continue
        if queries.count:
            try:
                paths.parse(path.text, PathUse.UPDATE)
            except PathRefused:
                queries = rewrite_queries(source, data, rename, doubt_all=True)
        if queries.count or queries.doubts:
            yield QueryFile(path, data, queries)


def rewrite_queries(
    path: VaultPath, data: bytes, rename: Rename, *, doubt_all: bool = False
) -> RewrittenQueries:
    """Return a file with the queries as they should be after a rename.

    With `doubt_all` nothing is rewritten, and all renamed names are in doubt. Raises VaultError
    NOT_TEXT if the file is not UTF-8.
    """
    text = decode(data, path.text)
    if rename.word and rename.word.casefold() not in text.casefold():
        return RewrittenQueries(data)
    edits: list[Edit[str]] = []
    doubts: list[tuple[int, Language]] = []
    expected: list[tuple[Kind, str]] = []
    renamed: list[tuple[int, Language]] = []
    for fragment, name in _names(path, text):
        at = fragment.positions[name.start]
        new = rename.renamed(name, fragment.language)
        edit = None
        if new is not None and new != name.text:
            edit = None if doubt_all else _edit(fragment, name, new)
            if edit is None:
                doubts.append((at, fragment.language))
            else:
                edits.append(edit)
                renamed.append((at, fragment.language))
        elif new is None and rename.is_doubtful(name):
            doubts.append((at, fragment.language))
        expected.append((name.kind, new if new is not None and edit is not None else name.text))
    content = apply(text, edits)
    if edits and [(name.kind, name.text) for _, name in names_in(path, content)] != expected:
        content, edits = text, []
        doubts += renamed
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    listed = {Doubt(bisect_right(starts, at), _LANGUAGE_NAMES[name]) for at, name in doubts}
    return RewrittenQueries(content.encode(), len(edits), tuple(sorted(listed)))


@lru_cache(maxsize=1024)
def _names(path: VaultPath, text: str) -> tuple[tuple[Fragment, QueryName], ...]:
    """Return the names in a file. A plan with many renames reads the same files for each."""
    return tuple(names_in(path, text))


def _edit(fragment: Fragment, name: QueryName, new: str) -> Edit[str] | None:
    """Return the edit that writes a new name, or None if it cannot be written there."""
    written: str | None = new
    if name.style == "quoted":
        quote = fragment.text[name.start - 1]
        written = json.dumps(new, ensure_ascii=False)[1:-1]
        if quote == "'":
            written = written.replace('\\"', '"').replace("'", "\\'")
    elif name.style == "identifier":
        written = new if _DATAVIEW_NAME.fullmatch(new) else dataview_name(new) or None
    elif name.style == "variable" and not _BASE_NAME.fullmatch(new):
        written = f"note[{json.dumps(new, ensure_ascii=False)}]"
    elif name.style == "member" and not _BASE_NAME.fullmatch(new):
        written = None
    if written is not None:
        written = _in_scalar(fragment, name, written)
    if written is None or "\n" in written:
        return None
    return Edit(fragment.positions[name.start], fragment.positions[name.end], written)


def _in_scalar(fragment: Fragment, name: QueryName, written: str) -> str | None:
    """Return a text as the scalar of a fragment writes it, or None if it would end the scalar."""
    if fragment.scalar == "'":
        return written.replace("'", "''")
    if fragment.scalar == '"':
        return json.dumps(written, ensure_ascii=False)[1:-1]
    if fragment.scalar == "plain":
        whole = fragment.text[: name.start] + written + fragment.text[name.end :]
        return written if _PLAIN_SCALAR.fullmatch(whole) else None
    return written
