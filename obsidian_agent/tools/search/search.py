"""Search by name, tag and text.

Screens, the command line and tools use this search and its `SearchPage`. Nothing here is a pydantic
model, so that a search on the command line does not load pydantic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, Literal

from msgspec import Struct

from obsidian_agent.errors import Problem, ToolError, VaultError
from obsidian_agent.tools.core.lookup import tagged, unread_warnings
from obsidian_agent.tools.core.patterns import TimedPattern, compile_pattern
from obsidian_agent.vault.index.gc_pause import gc_paused
from obsidian_agent.vault.index.index import VaultIndex
from obsidian_agent.vault.index.text_search import (
    Needle,
    exact_needle,
    folded_needle,
    lines_with,
    required_text,
)
from obsidian_agent.vault.index.word_query import Passage
from obsidian_agent.vault.index.word_search import RankedNote, Ranking, rank_notes
from obsidian_agent.vault.paths.path import ROOT, VaultPath
from obsidian_agent.vault.text import decode

CONTEXT = 100
"""The number of characters that a preview shows on each side of the hit."""

LONGEST_HIT = 200
"""The maximum number of characters of the hit itself in a preview."""

Span = tuple[int, int]
LineFinder = Callable[[str], Span | None]
"""Returns the position of the first hit in a line."""

PAGE: Final = 50
LARGEST_PAGE: Final = 1_000
SearchMode = Literal["name", "content", "tag", "all"]
"""`all` means names first, then the contents of notes that are not among them."""


def read_texts(
    index: VaultIndex, folder: VaultPath, needle: Needle | None, warnings: list[Problem]
) -> Iterator[tuple[VaultPath, str]]:
    """Yield the texts of the notes below a folder that may contain a needle.

    For a note that cannot be read, a problem is appended to `warnings`.
    """
    for path, data in index.texts(folder, needle):
        problem = data if isinstance(data, Problem) else None
        if not isinstance(data, Problem):
            try:
                yield path, decode(data, path.text)
            except VaultError as error:
                problem = error.problem()
        if problem is not None:
            warnings.append(
                Problem(problem.code, f"{path} is not searched: {problem.message}", path=path.text)
            )


class LineQuery:
    """A query for lines of notes: a text, with or without case, or a pattern."""

    def __init__(self, query: str, *, regex: bool, case_sensitive: bool) -> None:
        if regex:
            pattern = compile_pattern(query, literal=False, case_sensitive=case_sensitive)
            self.needle = required_text(query, ignore_case=not case_sensitive)
            self._find: LineFinder = partial(_find_pattern, pattern)
        elif case_sensitive:
            self.needle = exact_needle(query)
            self._find = partial(_find_exact, query)
        else:
            self.needle = folded_needle(query)
            self._find = partial(_find_folded, query.casefold())

    def lines(self, text: str) -> Iterator[tuple[int, str, Span]]:
        """Yield the matching lines of a text.

        They have a number from 1, the line, and the position of the first hit.
        """
        for number, line in lines_with(text, self.needle):
            if (span := self._find(line)) is not None:
                yield number, line, span


def _find_pattern(pattern: TimedPattern, line: str) -> Span | None:
    match = pattern.search(line)
    return None if match is None else (match.start(), match.end())


def _find_exact(query: str, line: str) -> Span | None:
    start = line.find(query)
    return None if start < 0 else (start, start + len(query))


def _find_folded(folded: str, line: str) -> Span | None:
    """Return the position in `line` of a match with `folded` after case folding.

    Folding may change lengths (ß is ss).
    """
    whole = line.casefold()
    start = whole.find(folded)
    if start < 0:
        return None
    end = start + len(folded)
    if len(whole) == len(line):
        return start, end
    origin = [index for index, char in enumerate(line) for _ in char.casefold()]
    return origin[start], origin[end - 1] + 1


def preview(line: str, span: Span) -> str:
    """Return the hit with up to `CONTEXT` characters on each side; `…` marks truncated text."""
    start, end = span
    before = max(start - CONTEXT, 0)
    hit = line[start:end] if end - start <= LONGEST_HIT else f"{line[start : start + LONGEST_HIT]}…"
    after = end + CONTEXT
    opening, closing = "…" if before else "", "…" if after < len(line) else ""
    return f"{opening}{line[before:start]}{hit}{line[end:after]}{closing}"


class SearchItem(Struct, frozen=True):
    """A hit: a file, or a line of a note.

    `line` counts from 1; `score` has no unit, higher is better. The `preview` of a hit by name is
    the alias that matched, or None.
    """

    path: str
    line: int | None = None
    preview: str | None = None
    score: float | None = None


class SearchPage(Struct, frozen=True):
    """A page of hits, and their total number."""

    items: tuple[SearchItem, ...]
    total: int
    has_more: bool
    warnings: tuple[Problem, ...] = ()


class SearchRequest(Struct, frozen=True):
    """The arguments of a search.

    Words in contents are ranked; with `regex` or `literal` the matching lines are sorted by path.
    """

    query: str
    mode: SearchMode = "all"
    limit: int = PAGE
    offset: int = 0
    regex: bool = False
    literal: bool = False
    case_sensitive: bool = False


def search(
    index: VaultIndex, request: SearchRequest, cancelled: Callable[[], bool] = lambda: False
) -> SearchPage:
    """Return a page of hits.

    Raise ARGUMENT_INVALID for an invalid page, a bad expression, or a text that is not a tag.
    """
    if not 0 <= request.limit <= LARGEST_PAGE:
        raise ToolError(
            f"The limit {request.limit} is out of range.", hint=f"Use 0 to {LARGEST_PAGE}."
        )
    if request.offset < 0:
        raise ToolError(f"The offset {request.offset} is negative.")
    warnings: list[Problem] = []
    names: list[SearchItem] = []
    hits: Sequence[SearchItem | RankedNote] = ()
    ranking: Ranking | None = None
    with gc_paused():
        if request.mode == "name" or (request.mode == "all" and not request.regex):
            names = _by_name(index, request.query)
        if request.mode == "tag":
            hits = [SearchItem(path.text) for path in tagged(index, request.query, ROOT)]
            warnings += unread_warnings(index)
        elif request.mode != "name":
            if not request.regex and not request.literal:
                ranking = rank_notes(index, ROOT, request.query, cancelled)
            if ranking is not None and ranking.query:
                hits = ranking.notes
            else:
                hits = list(_lines(index, request, warnings, cancelled))
        known = {item.path for item in names}
        hits = [*names, *(item for item in hits if _path(item) not in known)]
        end = request.offset + request.limit
        items = tuple(
            item if isinstance(item, SearchItem) else _passage_item(index, item, ranking)
            for item in hits[request.offset : end]
        )
    return SearchPage(items, len(hits), end < len(hits), tuple(warnings))


def _path(item: SearchItem | RankedNote) -> str:
    return item.path if isinstance(item, SearchItem) else item.path.text


def _by_name(index: VaultIndex, query: str) -> list[SearchItem]:
    return [
        SearchItem(hit.path, preview=hit.alias, score=hit.score)
        for hit in index.names().search(query).hits
    ]


def _lines(
    index: VaultIndex,
    request: SearchRequest,
    warnings: list[Problem],
    cancelled: Callable[[], bool],
) -> Iterator[SearchItem]:
    query = LineQuery(request.query, regex=request.regex, case_sensitive=request.case_sensitive)
    for path, text in read_texts(index, ROOT, query.needle, warnings):
        if cancelled():
            return
        for number, line, span in query.lines(text):
            yield SearchItem(path.text, number, preview(line, span))


def best_passage(index: VaultIndex, path: VaultPath, ranking: Ranking) -> Passage:
    """Return the passage of a ranked note that holds most words of the query."""
    data = index.text(path)
    text = data.decode(errors="replace") if isinstance(data, bytes) else ""
    return ranking.query.passage(text, ranking.weights)


def _passage_item(index: VaultIndex, note: RankedNote, ranking: Ranking | None) -> SearchItem:
    """Return the hit for a ranked note: the line that holds most words of the query."""
    assert ranking is not None
    passage = best_passage(index, note.path, ranking)
    return SearchItem(
        note.path.text,
        passage.line,
        preview(passage.text, (passage.start, passage.end)),
        round(note.score, 3),
    )
