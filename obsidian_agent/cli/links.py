"""`links`: what a note links to, what in it leads nowhere, and who links back; or the same of every note."""

from __future__ import annotations

import argparse

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.session_factory import find_vault
from obsidian_agent.errors import VaultError
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.links.graph import LinkGraph, NoteLinks, link_graph
from obsidian_agent.vault.paths import path as paths
from obsidian_agent.vault.paths.path import PathUse, VaultPath
from obsidian_agent.vault.views.disk import DiskView


def links_command(options: argparse.Namespace, out: Output) -> Exit:
    """The links of the vault's notes, or of one."""
    with VaultStore.open(find_vault(options.vault)) as store:
        view = DiskView(store)
        asked = None if options.path is None else _note(view, options.path)
        graph = link_graph(view.index.files(), view.read)
    notes = graph.notes if asked is None else (asked,)
    found = {note.text: graph.of(note) for note in notes}
    if out.as_json:
        out.document({path: _document(links) for path, links in found.items()})
    for path, links in found.items():
        _tell(out, path, links, alone=asked is not None)
    _warn(out, graph)
    return Exit.DONE


def _note(view: DiskView, text: str) -> VaultPath:
    path = paths.parse(text, PathUse.READ)
    entry = view.locate(path)
    if entry is None and not path.suffix:
        entry = view.locate(paths.parse(f"{path.text}.md", PathUse.READ))
    if entry is None or entry.kind != "file":
        raise VaultError(
            f"{path.text} is no file of the vault.", code="FILE_NOT_FOUND", path=path.text, hint="Write its path from the vault's root."
        )
    return entry.path


def _document(links: NoteLinks) -> dict[str, list[str]]:
    return {
        "outgoing": [path.text for path in links.outgoing],
        "unresolved": list(links.unresolved),
        "backlinks": [path.text for path in links.backlinks],
    }


def _tell(out: Output, path: str, links: NoteLinks, *, alone: bool) -> None:
    if not (alone or links.outgoing or links.unresolved or links.backlinks):
        return
    out.line(path)
    for target in links.outgoing:
        out.line(f"  -> {target.text}")
    for name in links.unresolved:
        out.line(f"  ?? {name}")
    for source in links.backlinks:
        out.line(f"  <- {source.text}")


def _warn(out: Output, graph: LinkGraph) -> None:
    for path in graph.unreadable:
        out.note(f"{path.text} could not be read, so its links are missing.")
