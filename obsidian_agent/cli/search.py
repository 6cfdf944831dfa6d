"""`search`, `links` and `index`: searching notes, listing links, and building the index."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output, progress
from obsidian_agent.cli.parser import Commands, UsageError, whole_number
from obsidian_agent.cli.session_factory import not_there, open_vault

if TYPE_CHECKING:
    from obsidian_agent.tools.search.search import SearchItem
    from obsidian_agent.vault.index.keeper import IndexKeeper
    from obsidian_agent.vault.links.graph import NoteLinks


def arguments(commands: Commands) -> None:
    """Add the parsers of these commands."""
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
        help="hits at most (default 50, no more than 1000)",
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
    command.add_argument("--case-sensitive", action="store_true", help="with --regex and --literal")
    command = commands.add(
        "links", links_command, examples=["links Inbox --vault ~/Notes", "links --json"]
    )
    command.add_argument(
        "path",
        nargs="?",
        metavar="PATH",
        help="a note, with or without .md, or a canvas; default: every note and canvas",
    )
    command = commands.add("index", index_command, examples=["index --rebuild"])
    command.add_argument("--rebuild", action="store_true", help="rebuild it from scratch")


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
    with _keeper(options, out) as keeper:
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


def links_command(options: argparse.Namespace, out: Output) -> Exit:
    """Print the links of one file, from the index, or of all notes and canvases, by reading them."""
    one = options.path is not None
    links_of, unreadable = _links_of_one(options, out) if one else _links_of_all(options)
    if out.as_json:
        out.document({path: _links(links, canvases=one) for path, links in links_of.items()})
    for path, links in links_of.items():
        if one or links.outgoing or links.unresolved or links.backlinks or links.canvases:
            out.line(path)
        for target in links.outgoing:
            out.line(f"  -> {target.text}")
        for name in links.unresolved:
            out.line(f"  ?? {name}")
        for source in (*links.backlinks, *links.canvases):
            out.line(f"  <- {source.text}")
    for path in unreadable:
        out.note(f"{path} could not be read, so its links are missing.")
    return Exit.DONE


def _links_of_one(
    options: argparse.Namespace, out: Output
) -> tuple[dict[str, NoteLinks], list[str]]:
    from obsidian_agent.vault.views.disk import DiskView
    from obsidian_agent.vault.views.view import locate_by_name

    with _keeper(options, out) as keeper:
        index = keeper.refresh()
        entry = locate_by_name(DiskView(keeper.store, lambda: index), options.path, "file")
        if entry is None:
            raise not_there(options.path)
        return {entry.path.text: index.links(entry.path)}, sorted(index.problems)


def _links_of_all(options: argparse.Namespace) -> tuple[dict[str, NoteLinks], list[str]]:
    from obsidian_agent.vault.links.graph import link_graph
    from obsidian_agent.vault.views.disk import DiskView

    with open_vault(options) as store:
        view = DiskView(store)
        graph = link_graph(view.index.files(), view.read)
    return {source.text: graph.of(source) for source in graph.sources}, [
        path.text for path in graph.unreadable
    ]


def _links(links: NoteLinks, *, canvases: bool) -> dict[str, list[str]]:
    """Return the three lists of Obsidian's index, and the linking canvases if requested."""
    document = {
        "outgoing": [path.text for path in links.outgoing],
        "unresolved": list(links.unresolved),
        "backlinks": [path.text for path in links.backlinks],
    }
    if canvases and links.canvases:
        document["canvases"] = [path.text for path in links.canvases]
    return document


def index_command(options: argparse.Namespace, out: Output) -> Exit:
    """Build or refresh the index, and print its figures."""
    with _keeper(options, out) as keeper:
        index = keeper.rebuild() if options.rebuild else keeper.refresh()
        figures = index.counts()._asdict() | {"seconds": round(keeper.status.seconds, 3)}
        problems = list(index.problems.values())
    if out.as_json:
        out.document(figures)
    out.line(", ".join(f"{value} {name}" for name, value in figures.items()))
    out.problems(problems)
    return Exit.DONE


@contextmanager
def _keeper(options: argparse.Namespace, out: Output) -> Iterator[IndexKeeper]:
    from obsidian_agent.journal.state_folder import index_folder
    from obsidian_agent.state_files import directories
    from obsidian_agent.vault.index.keeper import IndexKeeper

    state = directories(options.state_dir, options.config).state
    with open_vault(options) as store, progress("Indexing", out) as show:
        yield IndexKeeper(store, index_folder(state, store), progress=show)
