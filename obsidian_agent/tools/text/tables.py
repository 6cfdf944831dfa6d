"""Markdown tables: rows by column names, a table of items, and new rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

from pydantic import Field, model_validator

from obsidian_agent.errors import ToolError
from obsidian_agent.tools.core.filters import LinkWriter, text_of
from obsidian_agent.tools.core.lookup import open_note, value_of
from obsidian_agent.tools.core.models import TextOrPath, ToolModel, path_of
from obsidian_agent.tools.core.tool import PathText, Proposal, Risk, ToolContext, tool
from obsidian_agent.tools.text.lines import TABLE_RULE, Blocks, section_lines
from obsidian_agent.vault.markdown.lines import Line, scan
from obsidian_agent.vault.text import encode, newline_of
from obsidian_agent.vault.views.changes import ModifyFile

_CELL: Final = re.compile(r"(?:\\.|`[^`]*`|\[\[[^\[\]]*\]\]|[^|\\])*")


_PARTS: Final = re.compile(
    r"((?:\[\[[^\]]*\]\]|\"[^\"]*\"|“[^”]*”|(?<!\w)'[^']*'(?=\s*(?:[,;|，；]|$))|[^,;|，；])+)"
)

_WORD: Final = re.compile(r"[^\W_]+")

_BAR: Final = re.compile(r"(?<!\\)\|")


class TableRow(ToolModel):
    first: str = Field(description="The text of its first cell.")
    cells: dict[str, str] = Field(description="Cell by column.")
    line: int = Field(description="From 1.")


class ParseTableOutput(ToolModel):
    items: list[TableRow]
    columns: list[str]
    count: int


@tool("util.parseTable", Risk.READ_ONLY)
def parse_table(args: TextOrPath, ctx: ToolContext) -> Proposal[ParseTableOutput]:
    """List the rows of the first Markdown table of a text or a file, with their cells by column."""
    lines = list(scan(args.read(ctx)))
    rule = find_rule(lines)
    if rule is None:
        return Proposal(ParseTableOutput(items=[], columns=[], count=0))
    columns = cells(lines[rule - 2].body)
    rows: list[TableRow] = []
    for line in lines[rule:]:
        if line.hidden or not line.body.strip():
            break
        values = [*cells(line.body), *([""] * len(columns))][: len(columns)]
        if any(values):
            named = {
                name or f"column{number}": cell
                for number, (name, cell) in enumerate(zip(columns, values, strict=True), 1)
            }
            rows.append(TableRow(first=values[0], cells=named, line=line.number))
    return Proposal(ParseTableOutput(items=rows, columns=columns, count=len(rows)))


def find_rule(lines: Sequence[Line]) -> int | None:
    """Return the line number of the first table's delimiter row, or `None` without a table."""
    for above, rule in zip(lines, lines[1:], strict=False):
        if (
            not rule.hidden
            and "|" in above.body
            and TABLE_RULE.fullmatch(rule.body)
            and len(cells(above.body)) == len(cells(rule.body))
        ):
            return rule.number
    return None


def cells(line: str) -> list[str]:
    """Return the cells of a row.

    A `|` in code, in a wikilink or after a backslash does not separate cells.
    """
    return [cell.replace("\\|", "|").strip() for cell in _split_row(line.strip().removeprefix("|"))]


def _split_row(row: str) -> Iterator[str]:
    at = 0
    while at < len(row):
        match = _CELL.match(row, at)
        end = match.end() if match and match.end() > at else at
        yield row[at:end]
        at = end + 1


class FormatTableInput(ToolModel):
    items: list[Any] = Field(description="The files of another step, as vault.find returns them.")
    columns: list[str] = Field(
        min_length=1,
        description="Properties, one column each; the first column has links to the files.",
    )


class FormatTableOutput(ToolModel):
    text: str
    count: int


@tool("util.formatTable", Risk.READ_ONLY)
def format_table(args: FormatTableInput, ctx: ToolContext) -> Proposal[FormatTableOutput]:
    """Make a Markdown table of files: a link to each, and the requested properties as columns."""
    writer = LinkWriter(ctx.view)
    rows = [["Note", *args.columns], ["---"] * (len(args.columns) + 1)]
    for item in args.items:
        if item is None:
            continue
        properties = item.get("frontmatter", {}) if isinstance(item, dict) else {}
        values = [value_of(properties, column) for column in args.columns]
        rows.append(
            [writer(path_of(item)), *("" if value is None else _cell(value) for value in values)]
        )
    lines = (
        f"| {' | '.join(cell.replace('|', chr(92) + '|').replace(chr(10), ' ') for cell in row)} |"
        for row in rows
    )
    return Proposal(FormatTableOutput(text="\n".join(lines), count=len(rows) - 2))


def _cell(value: Any) -> str:
    return ", ".join(map(_cell, value)) if isinstance(value, list) else text_of(value)


class AddTableRowInput(ToolModel):
    path: PathText = Field(min_length=1)
    heading: str | None = Field(
        default=None, description="The first table below this heading; by default of the note."
    )
    cells: dict[str, str] | None = Field(
        default=None, description="The text of each cell by column; omitted columns stay empty."
    )
    text: str | None = Field(
        default=None,
        min_length=1,
        description="Instead of cells: one text with commas between the cells, "
        "in order or each after its column's name.",
    )
    at: Literal["end", "start"] = "end"

    @model_validator(mode="after")
    def _one_source(self) -> AddTableRowInput:
        if (self.cells is None) == (self.text is None):
            raise ValueError("give exactly one of cells and text")
        return self


class AddTableRowOutput(ToolModel):
    path: str
    row: str
    line: int = Field(description="From 1.")


@tool("vault.addTableRow", Risk.WRITES)
def add_table_row(args: AddTableRowInput, ctx: ToolContext) -> Proposal[AddTableRowOutput]:
    """Add a row at the end or start of a table in a note, with its cells by column or in order."""
    path, text = open_note(ctx, args.path)
    blocks = Blocks.of(text)
    numbers = section_lines(text, args.heading)
    rule = find_rule([line for line in blocks.scanned if line.number in numbers])
    if rule is None:
        raise ToolError(f"{path} has no table.", code="MARKER_NOT_FOUND", path=path.text)
    columns = cells(blocks.scanned[rule - 2].body)
    values = (
        _by_column(columns, args.cells)
        if args.cells is not None
        else _parse_cells(columns, args.text or "")
    )
    last = rule
    while last < len(blocks.lines) and last + 1 in blocks.rows:
        last += 1
    like = blocks.lines[last - 1] if last > rule else blocks.lines[rule - 2]
    row = _format_row(values, like.rstrip("\r\n"))
    line = last + 1 if args.at == "end" else rule + 1
    lines = [*blocks.lines]
    newline = newline_of(text)
    if not lines[line - 2].endswith("\n"):
        lines[line - 2] += newline
    lines.insert(line - 1, row + newline)
    output = AddTableRowOutput(path=path.text, row=row, line=line)
    return Proposal(output, (ModifyFile(path, encode("".join(lines))),))


def _by_column(columns: list[str], requested: dict[str, str]) -> list[str]:
    known = {_key(column): number for number, column in enumerate(columns)}
    values = [""] * len(columns)
    for name, value in requested.items():
        if _key(name) not in known:
            message = f"The table has no column “{name}”; it has {', '.join(columns)}."
            raise ToolError(message, code="ARGUMENT_INVALID")
        values[known[_key(name)]] = value
    return values


def _parse_cells(columns: list[str], text: str) -> list[str]:
    """Return the cells of a text in the order of the columns.

    If most parts begin with a column name, the first word of the others is dropped as their label.
    """
    parts = [
        part.strip().removeprefix("and ").strip() for part in _PARTS.findall(text) if part.strip()
    ]
    if len(parts) > len(columns):
        raise ToolError(
            f"The table has {len(columns)} columns, but the text has {len(parts)} parts.",
            code="ARGUMENT_INVALID",
        )
    named = [_find_column(columns, part) for part in parts]
    by_name = sum(column is not None for column in named) * 2 >= len(parts) and any(
        column is not None for column in named
    )
    if by_name and any(column is None for column in named) and len(parts) < len(columns):
        raise ToolError(
            f"The columns are {', '.join(columns)}; name the column of each cell.",
            code="ARGUMENT_INVALID",
        )
    values = [""] * len(columns)
    for number, (part, match) in enumerate(zip(parts, named, strict=True)):
        if match is not None:
            values[match[0]] = _unquote(match[1])
        else:
            values[number] = _unquote(part.partition(" ")[2] if by_name and " " in part else part)
    return values


def _find_column(columns: list[str], part: str) -> tuple[int, str] | None:
    """Return the index of the column that a part begins with, and the text after its name."""
    for number, column in sorted(enumerate(columns), key=lambda item: len(item[1]), reverse=True):
        words = _WORD.findall(column)
        match = (
            re.match(
                r"[\W_]*".join(map(re.escape, words)) + r"(?:\s*[:=]\s*|\s+)(?=\S)",
                part,
                re.IGNORECASE,
            )
            if words
            else None
        )
        if match is not None:
            return number, part[match.end() :]
    return None


def _unquote(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and (text[0] + text[-1]) in ('""', "''", "“”") else text


def _key(name: str) -> str:
    return "".join(_WORD.findall(name)).casefold()


def _format_row(values: list[str], like: str) -> str:
    """Format a row like `like`: with or without outer bars, and padded to the same widths."""
    lead = like[: len(like) - len(like.lstrip())]
    body = like.strip()
    opened, closed = body.startswith("|"), body.endswith("|") and not body.endswith("\\|")
    widths = [len(piece) for piece in _BAR.split(body.removeprefix("|"))]
    padded = "  |" in body
    cells_made = []
    for number, value in enumerate(values):
        cell = _BAR.sub(r"\\|", value.replace("\n", " "))
        width = widths[number] - 2 if padded and number < len(widths) else 0
        cells_made.append(f" {cell.ljust(max(width, 0))} ")
    return (
        f"{lead}{'|' if opened else ''}{'|'.join(cells_made)}{'|' if closed else ''}".rstrip()
        if opened
        else "|".join(cells_made).strip()
    )
