"""`search`: notes by name, content or tag."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.index import index_keeper
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.parser import Commands, UsageError, whole_number

if TYPE_CHECKING:
    from obsidian_agent.tools.search.search import SearchItem


def arguments(commands: Commands) -> None:
    """Add the parser of this command."""
    examples = [
        "search 'orange cake' --vault ~/Notes",
        "search '#recipe' --mode tag",
        "search '^## Week' --regex --json",
    ]
    command = commands.add("search", search_command, examples=examples)
    command.add_argument("query", metavar="QUERY")
    command.add_argument(
        "--mode", choices=["name", "content", "tag"], help="default: names first, then contents"
    )
    command.add_argument(
        "--limit",
        type=whole_number,
        default=50,
        metavar="N",
        help="maximum number of hits (default 50, at most 1000)",
    )
    command.add_argument(
        "--offset", type=whole_number, default=0, metavar="N", help="skip the first N hits"
    )
    command.add_argument(
        "--regex", action="store_true", help="QUERY is a regular expression for lines"
    )
    command.add_argument(
        "--literal", action="store_true", help="search for QUERY as written, not for its words"
    )
    command.add_argument(
        "--case-sensitive", action="store_true", help="match case, with --regex or --literal"
    )


def search_command(options: argparse.Namespace, out: Output) -> Exit:
    """Print the hits for a query, one page at a time."""
    if not options.query.strip():
        raise UsageError("The query is empty.", hint="Give a word, a #tag or a part of a name.")
    from obsidian_agent.tools.search.search import SearchRequest, search

    request = SearchRequest(
        options.query,
        options.mode or "all",
        options.limit,
        options.offset,
        regex=options.regex,
        literal=options.literal,
        case_sensitive=options.case_sensitive,
    )
    with index_keeper(options, out) as keeper:
        page = search(keeper.refresh(), request)
    if out.as_json:
        out.document(
            {
                "items": [_item(item) for item in page.items],
                "total": page.total,
                "hasMore": page.has_more,
            }
        )
    for item in page.items:
        out.line(_hit(item))
    if page.has_more:
        out.note(
            f"{page.total} hits in total; see more with --offset "
            f"{request.offset + len(page.items)}."
        )
    elif not page.total:
        out.note("No hits.")
    out.problems(page.warnings)
    return Exit.DONE


def _item(item: SearchItem) -> dict[str, Any]:
    fields = {"path": item.path, "line": item.line, "preview": item.preview, "score": item.score}
    return {name: value for name, value in fields.items() if value is not None}


def _hit(item: SearchItem) -> str:
    location = item.path if item.line is None else f"{item.path}:{item.line}"
    return location if item.preview is None else f"{location}: {item.preview}"
