"""The one search behind screens and the command line: by name, by content, by tag, with one kind of answer and one kind of page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from obsidian_agent.errors import Problem, ToolError
from obsidian_agent.tools.finding import tagged, unread
from obsidian_agent.tools.search import Question, preview, searched
from obsidian_agent.vault.collection import no_collection
from obsidian_agent.vault.index import VaultIndex
from obsidian_agent.vault.paths import ROOT
from obsidian_agent.vault.search_words import RankedNote, ranked, words_of

PAGE: Final = 50
LARGEST_PAGE: Final = 1_000

SearchMode = Literal["name", "content", "tag", "all"]
"""`all`: the names first, then the contents of the notes that are not among them."""


@dataclass(frozen=True, slots=True)
class SearchItem:
    """A hit: a file, or a line of a note. `line` is from 1, `score` has no unit: a better hit has more.

    A hit by name has a `preview` when it is an alias that answers: the alias.
    """

    path: str
    line: int | None = None
    preview: str | None = None
    score: float | None = None


@dataclass(frozen=True, slots=True)
class SearchPage:
    """Some hits of all, and how many there are."""

    items: tuple[SearchItem, ...]
    total: int
    has_more: bool
    warnings: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What is looked for. Words of contents are ranked; with `regex` or `literal` the matching lines come sorted by path."""

    query: str
    mode: SearchMode = "all"
    limit: int = PAGE
    offset: int = 0
    regex: bool = False
    literal: bool = False
    case_sensitive: bool = False


def search(index: VaultIndex, request: SearchRequest, cancelled: Callable[[], bool] = lambda: False) -> SearchPage:
    """A page of hits. ARGUMENT_INVALID for a page that cannot be, a bad expression, or a text that is no tag."""
    if not 0 <= request.limit <= LARGEST_PAGE:
        raise ToolError(f"The limit {request.limit} is out of range.", hint=f"It may be 0 to {LARGEST_PAGE}.")
    if request.offset < 0:
        raise ToolError(f"The offset {request.offset} is negative.")
    warnings: list[Problem] = []
    found: Sequence[SearchItem | RankedNote]
    with no_collection():
        match request.mode:
            case "name":
                found = _by_name(index, request.query)
            case "tag":
                found = [SearchItem(path.text) for path in tagged(index, request.query, ROOT)]
                warnings += unread(index)
            case "content":
                found = _by_content(index, request, warnings, cancelled)
            case "all":
                names = [] if request.regex else _by_name(index, request.query)
                known = {item.path for item in names}
                contents = _by_content(index, request, warnings, cancelled)
                found = [*names, *(item for item in contents if _path(item) not in known)]
        end = request.offset + request.limit
        items = tuple(item if isinstance(item, SearchItem) else _of_note(index, item) for item in found[request.offset : end])
    return SearchPage(items, len(found), end < len(found), tuple(warnings))


def _path(item: SearchItem | RankedNote) -> str:
    return item.path if isinstance(item, SearchItem) else item.path.text


def _by_name(index: VaultIndex, query: str) -> list[SearchItem]:
    return [SearchItem(hit.path, preview=hit.alias, score=hit.score) for hit in index.names().search(query).hits]


def _by_content(
    index: VaultIndex, request: SearchRequest, warnings: list[Problem], cancelled: Callable[[], bool]
) -> Sequence[SearchItem | RankedNote]:
    if not request.regex and not request.literal and words_of(request.query):
        return ranked(index, ROOT, request.query, cancelled)
    return list(_lines(index, request, warnings, cancelled))


def _lines(index: VaultIndex, request: SearchRequest, warnings: list[Problem], cancelled: Callable[[], bool]) -> Iterator[SearchItem]:
    question = Question(request.query, regex=request.regex, case_sensitive=request.case_sensitive)
    for path, text in searched(index, ROOT, question.needle, warnings):
        if cancelled():
            return
        for number, line, span in question.lines(text):
            yield SearchItem(path.text, number, preview(line, span))


def _of_note(index: VaultIndex, note: RankedNote) -> SearchItem:
    """The line of a note in which the first word of the query is."""
    data = index.text(note.path)
    text = data.decode(errors="replace") if isinstance(data, bytes) else ""
    first = min(note.first, len(text))
    start = text.rfind("\n", 0, first) + 1
    end = text.find("\n", first)
    line = text[start : len(text) if end < 0 else end].rstrip("\r")
    at = first - start
    return SearchItem(note.path.text, text.count("\n", 0, start) + 1, preview(line, (at, at)), round(note.score, 3))
