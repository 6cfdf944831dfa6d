"""`links`: outgoing links, unresolved links and backlinks."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.index import index_keeper
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.parser import Commands
from obsidian_agent.cli.session_factory import file_not_found, open_vault

if TYPE_CHECKING:
    from obsidian_agent.vault.links.graph import NoteLinks


def arguments(commands: Commands) -> None:
    """Add the parser of this command."""
    command = commands.add(
        "links", links_command, examples=["links Inbox --vault ~/Notes", "links --json"]
    )
    command.add_argument(
        "path",
        nargs="?",
        metavar="PATH",
        help="a note, with or without .md, or a canvas; default: every note and canvas",
    )


def links_command(options: argparse.Namespace, out: Output) -> Exit:
    """Print the links of one file from the index, or of all notes and canvases by reading them."""
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

    with index_keeper(options, out) as keeper:
        index = keeper.refresh()
        entry = locate_by_name(DiskView(keeper.store, lambda: index), options.path, "file")
        if entry is None:
            raise file_not_found(options.path)
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
