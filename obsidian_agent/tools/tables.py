"""`util.parseTable` and `util.formatTable`: the rows of a Markdown table by the names of its columns, and a table of items."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from pydantic import Field

from obsidian_agent.tools.base import Proposal, Risk, Tool, ToolContext, ToolModel
from obsidian_agent.tools.filters import text_of
from obsidian_agent.tools.linktext import LinkWriter
from obsidian_agent.tools.properties_match import value_of
from obsidian_agent.tools.sources import path_of
from obsidian_agent.tools.util import TextOrPath
from obsidian_agent.vault.markdown_lines import Line, scan

_RULE: Final = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?")
_CELL: Final = re.compile(r"(?:\\.|`[^`]*`|\[\[[^\[\]]*\]\]|[^|\\])*")


class TableRow(ToolModel):
    first: str = Field(description="The text of its first cell.")
    cells: dict[str, str] = Field(description="Cell by column.")
    line: int = Field(description="From 1.")


class ParseTableOutput(ToolModel):
    items: list[TableRow]
    columns: list[str]
    count: int


def _parse_table(args: TextOrPath, ctx: ToolContext) -> Proposal:
    lines = list(scan(args.read(ctx)))
    rule = rule_below(lines)
    if rule is None:
        return Proposal(ParseTableOutput(items=[], columns=[], count=0))
    columns = cells(lines[rule - 2].body)
    rows: list[TableRow] = []
    for line in lines[rule:]:
        if line.hidden or not line.body.strip():
            break
        found = [*cells(line.body), *([""] * len(columns))][: len(columns)]
        if any(found):
            named = {name or f"column{number}": cell for number, (name, cell) in enumerate(zip(columns, found, strict=True), 1)}
            rows.append(TableRow(first=found[0], cells=named, line=line.number))
    return Proposal(ParseTableOutput(items=rows, columns=columns, count=len(rows)))


def rule_below(lines: Sequence[Line]) -> int | None:
    """The number of the line that parts the first table's head from its rows; None without a table."""
    for above, rule in zip(lines, lines[1:], strict=False):
        if not rule.hidden and "|" in above.body and _RULE.fullmatch(rule.body) and len(cells(above.body)) == len(cells(rule.body)):
            return rule.number
    return None


def cells(line: str) -> list[str]:
    """The cells of a row; a `|` in code, in a wikilink or behind a backslash separates none."""
    return [cell.replace("\\|", "|").strip() for cell in _pieces(line.strip().removeprefix("|"))]


def _pieces(row: str) -> Iterator[str]:
    at = 0
    while at < len(row):
        found = _CELL.match(row, at)
        end = found.end() if found and found.end() > at else at
        yield row[at:end]
        at = end + 1


PARSE_TABLE = Tool(
    name="util.parseTable",
    summary="The rows of the first Markdown table of a text or a file, with their cells by column.",
    risk=Risk.READ_ONLY,
    input=TextOrPath,
    output=ParseTableOutput,
    propose=_parse_table,
)


class FormatTableInput(ToolModel):
    items: list[Any] = Field(description="The files of another step, as vault.find gives them.")
    columns: list[str] = Field(min_length=1, description="Properties, one column each, after a first one with links to the files.")


class FormatTableOutput(ToolModel):
    text: str
    count: int


def _format_table(args: FormatTableInput, ctx: ToolContext) -> Proposal:
    writer = LinkWriter(ctx.view)
    rows = [["Note", *args.columns], ["---"] * (len(args.columns) + 1)]
    for item in args.items:
        if item is None:
            continue
        properties = item.get("frontmatter", {}) if isinstance(item, dict) else {}
        values = [value_of(properties, column) for column in args.columns]
        rows.append([writer(path_of(item)), *("" if value is None else _cell(value) for value in values)])
    lines = (f"| {' | '.join(cell.replace('|', chr(92) + '|').replace(chr(10), ' ') for cell in row)} |" for row in rows)
    return Proposal(FormatTableOutput(text="\n".join(lines), count=len(rows) - 2))


def _cell(value: Any) -> str:
    return ", ".join(map(_cell, value)) if isinstance(value, list) else text_of(value)


FORMAT_TABLE = Tool(
    name="util.formatTable",
    summary="A Markdown table of files: a link to each, and the properties that are wanted as columns.",
    risk=Risk.READ_ONLY,
    input=FormatTableInput,
    output=FormatTableOutput,
    propose=_format_table,
)
