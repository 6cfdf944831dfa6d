"""`vault.searchText`: the lines of notes that hold a text or match a pattern."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from pydantic import Field

from obsidian_agent.errors import Problem, VaultError
from obsidian_agent.tools.base import PathText, Proposal, Risk, Tool, ToolContext, ToolModel, Whole
from obsidian_agent.tools.notes import find_folder
from obsidian_agent.tools.patterns import TimedPattern, compile_pattern
from obsidian_agent.tools.reading import page
from obsidian_agent.vault.index import VaultIndex, index_of
from obsidian_agent.vault.paths import VaultPath
from obsidian_agent.vault.search_lines import lines_with
from obsidian_agent.vault.search_needle import Needle, exact_needle, folded_needle
from obsidian_agent.vault.search_pattern import required_text
from obsidian_agent.vault.text import decode

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
    question = Question(args.query, regex=args.regex, case_sensitive=args.case_sensitive)
    folder = find_folder(ctx.view, args.folder)
    hits: list[TextMatch] = []
    warnings: list[Problem] = []
    index = index_of(ctx.view)
    for path, text in searched(index, folder, question.needle, warnings):
        hits += (TextMatch(path=path.text, line=number, preview=preview(line, span)) for number, line, span in question.lines(text))
    found, more = page(hits, args.limit, args.offset)
    scanned = sum(1 for _ in index.notes(folder)) - len(warnings)
    output = SearchTextOutput(matches=list(found), total=len(hits), has_more=more, scanned=scanned)
    return Proposal(output, warnings=tuple(warnings))


def searched(index: VaultIndex, folder: VaultPath, needle: Needle | None, warnings: list[Problem]) -> Iterator[tuple[VaultPath, str]]:
    """The texts of the notes below a folder that may hold a needle; a warning for each that cannot be read."""
    for path, data in index.texts(folder, needle):
        problem = data if isinstance(data, Problem) else None
        if not isinstance(data, Problem):
            try:
                yield path, decode(data, path.text)
            except VaultError as error:
                problem = error.problem()
        if problem is not None:
            warnings.append(Problem(problem.code, f"{path} is not searched: {problem.message}", path=path.text))


class Question:
    """What is looked for in the lines of notes: a text, in any case or exactly, or a pattern."""

    def __init__(self, query: str, *, regex: bool, case_sensitive: bool) -> None:
        if regex:
            pattern = compile_pattern(query, literal=False, case_sensitive=case_sensitive)
            self.needle = required_text(query, ignore_case=not case_sensitive)
            self._find: LineFinder = partial(_by_pattern, pattern)
        elif case_sensitive:
            self.needle = exact_needle(query)
            self._find = partial(_plain, query)
        else:
            self.needle = folded_needle(query)
            self._find = partial(_folded, query.casefold())

    def lines(self, text: str) -> Iterator[tuple[int, str, Span]]:
        """The matching lines of a text: number from 1, the line, the place of the first hit in it."""
        for number, line in lines_with(text, self.needle):
            if (span := self._find(line)) is not None:
                yield number, line, span


def _by_pattern(pattern: TimedPattern, line: str) -> Span | None:
    found = pattern.search(line)
    return None if found is None else (found.start(), found.end())


def _plain(query: str, line: str) -> Span | None:
    start = line.find(query)
    return None if start < 0 else (start, start + len(query))


def _folded(folded: str, line: str) -> Span | None:
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
