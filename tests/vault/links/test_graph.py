"""The links of a whole vault."""

from __future__ import annotations

import json

from obsidian_agent.vault.links.graph import LinkGraph, NoteLinks, link_graph
from obsidian_agent.vault.paths.path import PathUse, parse
from obsidian_agent.vault.views.disk import DiskView
from support import MakeVault


def links(graph: LinkGraph, path: str) -> tuple[list[str], list[str], list[str]]:
    found: NoteLinks = graph.of(parse(path, PathUse.READ))
    return (
        [each.text for each in found.outgoing],
        list(found.unresolved),
        [each.text for each in found.backlinks],
    )


def test_who_links_to_whom(make_vault: MakeVault) -> None:
    view = DiskView(
        make_vault(
            {
                "a.md": "---\nup: '[[c]]'\n---\n[[B]] [[#h]] ![[p.png]] [x](sub/d.md) [[gone|x]] [[Gone.md]] `[[hidden]]`",
                "b.md": "[[a]] [[b]] [[Zoë]]",
                "sub/c.md": "[[a.md]] \xff".encode("latin-1"),
                "sub/d.md": "",
                "board.canvas": json.dumps(
                    {
                        "nodes": [
                            {"type": "file", "file": "sub/d.md"},
                            {"type": "text", "text": "[[nowhere]]"},
                        ]
                    }
                ),
                "list.base": 'filters: link("a")',
                "p.png": b"\x89PNG",
            }
        )
    )
    graph = link_graph(view.index.files(), view.read)
    assert links(graph, "a.md") == (
        ["a.md", "b.md", "p.png", "sub/c.md", "sub/d.md"],
        ["Gone", "gone"],
        ["b.md", "sub/c.md"],
    )
    assert links(graph, "b.md") == (["a.md", "b.md"], ["Zoë"], ["a.md"])
    assert links(graph, "sub/c.md") == (["a.md"], [], ["a.md"])
    assert links(graph, "sub/d.md") == ([], [], ["a.md"])
    assert links(graph, "p.png") == ([], [], ["a.md"])
    assert [source.text for source in graph.sources] == [
        "a.md",
        "b.md",
        "board.canvas",
        "sub/c.md",
        "sub/d.md",
    ]
    board, note = parse("board.canvas", PathUse.READ), parse("sub/d.md", PathUse.READ)
    assert graph.of(board) == NoteLinks((note,), ("nowhere",))
    assert graph.of(note).canvases == (board,)


def test_an_empty_vault(make_vault: MakeVault) -> None:
    graph = link_graph([], lambda path: b"")
    assert graph.sources == ()
    assert links(graph, "none.md") == ([], [], [])
