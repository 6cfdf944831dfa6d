"""`plugins search`: search community plugins. Nothing is installed."""

from __future__ import annotations

import argparse

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.parser import Commands, add_actions, whole_number
from obsidian_agent.cli.session_factory import open_vault
from obsidian_agent.errors import ProviderError


def arguments(commands: Commands) -> None:
    """Add the parser of this command and of its actions."""
    summary = "search Obsidian's list of community plugins; it is fetched at most once a day"
    command = add_actions(commands.add("plugins", None)).add(
        "search", _search, summary=summary, examples=["plugins search kanban --vault ~/Notes"]
    )
    command.add_argument("query", metavar="QUERY")
    command.add_argument(
        "--limit",
        type=whole_number,
        default=10,
        metavar="N",
        help="maximum number of plugins (default 10)",
    )
    command.add_argument("--refresh", action="store_true", help="fetch a new list")


def _search(options: argparse.Namespace, out: Output) -> Exit:
    import asyncio

    from obsidian_agent.bootstrap import open_plugin_index
    from obsidian_agent.integrations.community_plugins import search_plugins
    from obsidian_agent.state_files import directories

    index = open_plugin_index(directories(options.state_dir, options.config).state)
    try:
        page = asyncio.run(
            search_plugins(
                index, open_vault(options), options.query, options.limit, refresh=options.refresh
            )
        )
    except ProviderError as error:
        if out.as_json:
            out.document({"plugins": [], "errors": [error.problem().to_json()]})
        out.problems([error.problem()])
        return Exit.SERVICE
    if out.as_json:
        out.document(
            {
                "plugins": [item.to_json() for item in page.items],
                "fetchedAt": page.fetched_at.isoformat(),
                "stale": page.stale,
            }
        )
    for item in page.items:
        state = ""
        if item.enabled:
            state = " (enabled in this vault)"
        elif item.installed:
            state = " (installed, disabled)"
        out.line(f"{item.plugin.name}{state}: {item.plugin.description}")
        out.line(f"    {item.plugin.id}, by {item.plugin.author}: {item.plugin.url}")
    if not page.items:
        out.line("No community plugin matches.")
    elif not all(item.installed for item in page.items):
        out.note("To install one: Obsidian > Settings > Community plugins > Browse.")
    if page.stale:
        out.note(f"The list is from {page.fetched_at:%Y-%m-%d}: a new one could not be fetched.")
    return Exit.DONE
