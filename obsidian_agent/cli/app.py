"""`obsidian-agent [VAULT]`: open the terminal app, asking which vault when none is named."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output, ask, on_terminal
from obsidian_agent.cli.parser import COMMANDS, Commands, UsageError, planner
from obsidian_agent.cli.session_factory import find_vault, wiring_of
from obsidian_agent.errors import ConfigError

if TYPE_CHECKING:
    from obsidian_agent.bootstrap import Wiring
    from obsidian_agent.tui.app import ObsidianAgentApp


def arguments(commands: Commands) -> None:
    """Add the parser of this command."""
    command = commands.add("app", app_command, planner(), examples=["~/Notes", "~/Notes --model ollama/qwen3"])
    command.add_argument("name", nargs="?", metavar="VAULT")


def app_command(options: argparse.Namespace, out: Output) -> Exit:
    """Open the app on the vault that was named, or chosen from Obsidian's own list."""
    options.vault = options.name or options.vault or _choose()
    _check(options)
    if not (on_terminal(sys.stdin) and on_terminal(sys.stdout)):
        raise UsageError("The app needs a terminal.", hint="Use a sub-command, e.g. obsidian-agent do … --vault VAULT.")
    wiring = wiring_of(options, app=True)
    build_app(wiring, first_start=not (wiring.offline or wiring.model)).run()
    return Exit.DONE


def build_app(wiring: Wiring, *, first_start: bool = False) -> ObsidianAgentApp:
    """The terminal app over all that it shows. `first_start`: who has not chosen a model yet is asked."""
    from obsidian_agent.bootstrap import build_app_services, build_session, build_threads
    from obsidian_agent.tui.app import ObsidianAgentApp

    session = build_session(wiring)
    threads = build_threads(wiring, session)
    services = build_app_services(wiring, session, threads)
    return ObsidianAgentApp(session, threads=threads, services=services, settings=wiring.settings, first_start=first_start)


def _check(options: argparse.Namespace) -> None:
    """A word that names no vault may be a command with a slip. Raises `ConfigError`."""
    try:
        find_vault(options.vault)
    except ConfigError as error:
        from obsidian_agent.plan.nearest import did_you_mean

        near = did_you_mean(options.name or "", COMMANDS)
        if error.code == "VAULT_NOT_FOUND" and near:
            raise UsageError(f"{options.name!r} is neither a command nor a vault.{near}") from error
        raise


def _choose() -> str | None:
    from obsidian_agent.obsidian.registry import known_vaults

    vaults = known_vaults()
    if not vaults or not on_terminal(sys.stdin):
        return None
    print("Which vault?")
    for number, vault in enumerate(vaults, 1):
        print(f"  {number}  {vault.name}  ({vault.path})")
    answer = ask("Number: ").strip()
    if not answer.isdigit() or not 1 <= int(answer) <= len(vaults):
        raise UsageError("No vault was chosen.")
    return str(vaults[int(answer) - 1].path)
