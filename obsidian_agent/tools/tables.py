"""`util.parseTable`: the rows of a Markdown table, each with its cells by the names of the columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pydantic import Field

from obsidian_agent.tools.base import Proposal, Risk, Tool, ToolContext, ToolModel
from obsidian_agent.tools.util import TextOrPath
from obsidian_agent.vault.markdown_lines import scan

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
    columns: list[str] = []
    rows: list[TableRow] = []
    for above, rule in zip(lines, lines[1:], strict=False):
        if not rule.hidden and "|" in above.body and _RULE.fullmatch(rule.body) and len(_cells(above.body)) == len(_cells(rule.body)):
            columns = _cells(above.body)
            break
    else:
        return Proposal(ParseTableOutput(items=[], columns=[], count=0))
    for line in lines[lines.index(rule) + 1 :]:
        if line.hidden or not line.body.strip():
            break
        cells = [*_cells(line.body), *([""] * len(columns))][: len(columns)]
        if any(cells):
            named = {name or f"column{number}": cell for number, (name, cell) in enumerate(zip(columns, cells, strict=True), 1)}
            rows.append(TableRow(first=cells[0], cells=named, line=line.number))
    return Proposal(ParseTableOutput(items=rows, columns=columns, count=len(rows)))


def _cells(line: str) -> list[str]:
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
