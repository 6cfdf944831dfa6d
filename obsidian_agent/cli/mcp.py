"""`mcp serve`: the vault as a Model Context Protocol server on standard input and output."""

from __future__ import annotations

import argparse

from obsidian_agent.cli.exits import Exit, ending_signals
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.parser import Commands, add_actions
from obsidian_agent.errors import ConfigError


def arguments(commands: Commands) -> None:
    """Add the parser of this command and of its action."""
    summary = (
        "serve the notes that share_allow covers to an MCP client on standard input and output; "
        "changes nothing"
    )
    examples = ["mcp serve --vault ~/Notes"]
    add_actions(commands.add("mcp", None, examples=examples)).add(
        "serve", _serve, summary=summary, examples=examples
    )


def _serve(options: argparse.Namespace, out: Output) -> Exit:
    from obsidian_agent.bootstrap import build_shared_vault
    from obsidian_agent.cli.session_factory import wiring_of

    wiring = wiring_of(options, app=True)  # proposals are approved in the app
    try:
        from obsidian_agent.agent.turn.tool_round import Scrubber
        from obsidian_agent.integrations.mcp_server import serve
    except ImportError as error:
        message = "The package mcp is not installed."
        raise ConfigError(
            message, code="NOT_INSTALLED", hint="Install obsidian-agent[mcp]."
        ) from error
    serve(
        build_shared_vault(wiring),
        Scrubber.of(wiring.store.real_path, str(wiring.state)),
        ending_signals(),
        Exit.INTERRUPTED,
    )
    return Exit.DONE
