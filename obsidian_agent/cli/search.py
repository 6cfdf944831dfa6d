"""`search` and `index`: finding notes from the command line, and the index that makes it quick."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from obsidian_agent.agent.index_follower import open_index
from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.parser import UsageError
from obsidian_agent.cli.session_factory import find_vault
from obsidian_agent.config.directories import directories
from obsidian_agent.tools.search.search import SearchItem, SearchPage, SearchRequest, search
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.index.keeper import IndexKeeper
from obsidian_agent.vault.index.stored import StoredIndex


def search_command(options: argparse.Namespace, out: Output) -> Exit:
    """Hits for a query, a page at a time."""
    if not options.query.strip():
        raise UsageError("There is nothing to search for.", hint="Give a word, a #tag or a part of a name.")
    request = SearchRequest(
        options.query,
        options.mode or "all",
        options.limit,
        options.offset,
        regex=options.regex,
        literal=options.literal,
        case_sensitive=options.case_sensitive,
    )
    with _keeper(options) as keeper:
        page = search(keeper.refresh(), request)
    if out.as_json:
        out.document(_page(page))
    for item in page.items:
        out.line(_shown(item))
    if page.has_more:
        out.note(f"{page.total} hits in all; see more with --offset {request.offset + len(page.items)}.")
    elif not page.total:
        out.note("Nothing found.")
    out.problems(page.warnings)
    return Exit.DONE


def _page(page: SearchPage) -> dict[str, Any]:
    return {"items": [_item(item) for item in page.items], "total": page.total, "hasMore": page.has_more}


def _item(item: SearchItem) -> dict[str, Any]:
    fields = {"path": item.path, "line": item.line, "preview": item.preview, "score": item.score}
    return {name: value for name, value in fields.items() if value is not None}


def _shown(item: SearchItem) -> str:
    place = item.path if item.line is None else f"{item.path}:{item.line}"
    return place if item.preview is None else f"{place}: {item.preview}"


def index_command(options: argparse.Namespace, out: Output) -> Exit:
    """Build or refresh the index, and count what it knows."""
    with _keeper(options) as keeper:
        index = keeper.rebuild() if options.rebuild else keeper.refresh()
        figures = _figures(index) | {"seconds": round(keeper.status.seconds, 3)}
        problems = list(index.problems.values())
    if out.as_json:
        out.document(figures)
    out.line(", ".join(f"{value} {name}" for name, value in figures.items()))
    out.problems(problems)
    return Exit.DONE


def _figures(index: StoredIndex) -> dict[str, Any]:
    files = list(index.files())
    links = lost = 0
    tags: set[str] = set()
    for path in files:
        facts = index.facts(path)
        tags.update(map(str.lower, facts.tags))
        links += len(facts.targets)
        lost += sum(1 for target in facts.targets if index.resolve(target, path) is None)
    notes = sum(1 for path in files if path.is_note)
    return {"notes": notes, "files": len(files), "links": links, "unresolved": lost, "tags": len(tags)}


@contextmanager
def _keeper(options: argparse.Namespace) -> Iterator[IndexKeeper]:
    state = directories(options.state_dir, options.config).state
    with VaultStore.open(find_vault(options.vault)) as store:
        yield open_index(store, state)
