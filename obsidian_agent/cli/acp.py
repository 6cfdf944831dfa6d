"""`acp`: this program as an agent of editors, over the Agent Client Protocol."""

from __future__ import annotations

import argparse
from functools import partial

from obsidian_agent.cli.exits import Exit, ending_signals
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.parser import Commands, planner_options
from obsidian_agent.cli.session_factory import wiring_of
from obsidian_agent.errors import ConfigError


def arguments(commands: Commands) -> None:
    """Add the parser of this command."""
    examples = ["acp --vault ~/Notes", "acp --vault ~/Notes --model ollama/qwen3"]
    commands.add("acp", acp_command, planner_options(), examples=examples)


def acp_command(options: argparse.Namespace, out: Output) -> Exit:
    """Serve an ACP client on standard input and output until it disconnects."""
    try:
        from obsidian_agent.integrations.acp_conversation import AcpOptions, ConversationParts
        from obsidian_agent.integrations.acp_server import serve
    except ImportError as error:
        message = "The package agent-client-protocol is not installed."
        raise ConfigError(
            message, code="NOT_INSTALLED", hint="Install obsidian-agent[acp]."
        ) from error
    from obsidian_agent import log
    from obsidian_agent.bootstrap import build_session, build_threads, open_inbox
    from obsidian_agent.cli.consent import described
    from obsidian_agent.cli.health import with_findings
    from obsidian_agent.state_files import directories

    log.start(directories(options.state_dir, options.config).log)
    wiring = wiring_of(options, app=True)  # plans are approved in the client

    def open_parts() -> ConversationParts:
        session = build_session(wiring)
        session.vault.focus_on_obsidian()
        return ConversationParts(session, build_threads(wiring, session), open_inbox(wiring))

    complete = partial(with_findings, options=options)
    is_complete = serve(AcpOptions(open_parts, described, complete), ending_signals())
    return Exit.DONE if is_complete else Exit.INTERRUPTED
