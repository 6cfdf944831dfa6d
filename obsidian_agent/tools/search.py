"""`vault.searchText`: the lines of notes that hold a text or match a pattern, found by reading the notes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pydantic import Field

from obsidian_agent.errors import Problem, VaultError
from obsidian_agent.tools.base import PathText, Proposal, Risk, Tool, ToolContext, ToolModel, Whole
from obsidian_agent.tools.notes import find_folder, notes_below, read_text
from obsidian_agent.tools.patterns import compile_pattern
from obsidian_agent.tools.reading import page
from obsidian_agent.vault.text import split_lines

CONTEXT = 100
"""Characters that a preview shows on each side of the hit."""

LONGEST_HIT = 200
"""Characters of the hit itself that a preview shows at most."""

Span = tuple[int, int]
LineFinder = Callable[[str], Span | None]
"""Where the first hit in a line is."""


class SearchTextInput(ToolModel):
    query: str = Field(min_length=1, description="A text, or with regex a regular expression of Python; lines are searched one by one.")
    folder: PathText | None = Field(default=None, description="The vault when absent.")
    regex: bool = False
    case_sensitive: bool = False
    limit: Whole | None = Field(default=None, ge=0, description="At most so many matches; all when absent.")
    offset: Whole = Field(default=0, ge=0)


class TextMatch(ToolModel):
    path: str
    line: int = Field(description="From 1.")
    preview: str


class SearchTextOutput(ToolModel):
    matches: list[TextMatch]
    total: int = Field(description="The number of matching lines.")
    has_more: bool
    scanned: int = Field(description="The number of notes that were read.")


def _search_text(args: SearchTextInput, ctx: ToolContext) -> Proposal:
    find_in = _text_finder(args)
    hits: list[TextMatch] = []
    warnings: list[Problem] = []
    scanned = 0
    for path in notes_below(ctx.view, find_folder(ctx.view, args.folder)):
        try:
            text = read_text(ctx.view, path)
        except VaultError as error:
            warnings.append(Problem(error.code, f"{path} is not searched: {error.message}", path=path.text))
            continue
        scanned += 1
        hits += (TextMatch(path=path.text, line=number, preview=preview(line, span)) for number, line, span in find_in(text))
    found, more = page(hits, args.limit, args.offset)
    output = SearchTextOutput(matches=list(found), total=len(hits), has_more=more, scanned=scanned)
    return Proposal(output, warnings=tuple(warnings))


TextFinder = Callable[[str], Iterator[tuple[int, str, Span]]]
"""The matching lines of a text: number from 1, the line, the place of the first hit in it."""


def _text_finder(args: SearchTextInput) -> TextFinder:
    if args.regex:
        pattern = compile_pattern(args.query, literal=False, case_sensitive=args.case_sensitive)

        def by_pattern(line: str) -> Span | None:
            found = pattern.search(line)
            return None if found is None else (found.start(), found.end())

        return lambda text: _matching_lines(text, by_pattern)
    if args.case_sensitive:
        return lambda text: _matching_lines(text, lambda line: _plain(line, args.query)) if args.query in text else iter(())
    folded = args.query.casefold()
    return lambda text: _matching_lines(text, lambda line: _folded(line, folded)) if folded in text.casefold() else iter(())


def _matching_lines(text: str, find: LineFinder) -> Iterator[tuple[int, str, Span]]:
    for number, raw in enumerate(split_lines(text), start=1):
        line = raw.removesuffix("\n").removesuffix("\r")
        span = find(line)
        if span is not None:
            yield number, line, span


def _plain(line: str, query: str) -> Span | None:
    start = line.find(query)
    return None if start < 0 else (start, start + len(query))


def _folded(line: str, folded: str) -> Span | None:
    """The place in `line` of what equals `folded` once both are case-folded; folding may change lengths (ß is ss)."""
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
    """The hit with up to `CONTEXT` characters on each side, `…` where something was cut."""
    start, end = span
    left = max(start - CONTEXT, 0)
    hit = line[start:end] if end - start <= LONGEST_HIT else f"{line[start : start + LONGEST_HIT]}…"
    right = end + CONTEXT
    return f"{'…' if left else ''}{line[left:start]}{hit}{line[end:right]}{'…' if right < len(line) else ''}"


SEARCH_TEXT = Tool(
    name="vault.searchText",
    summary="Find the lines of notes (Markdown files) that hold a text or match a pattern.",
    risk=Risk.READ_ONLY,
    input=SearchTextInput,
    output=SearchTextOutput,
    propose=_search_text,
    aliases=("vault_search", "search_vault_by_content", "obsidian.search_vault"),
)
