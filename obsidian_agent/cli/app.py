"""`obsidian-agent [VAULT]`: open the terminal app, and ask for the vault if none is given."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from obsidian_agent.cli.exits import Exit, ending_signals
from obsidian_agent.cli.output import Output, ask, on_terminal
from obsidian_agent.cli.parser import Commands, UsageError, planner_options
from obsidian_agent.cli.session_factory import chosen_model, find_vault, wiring_of

if TYPE_CHECKING:
    from pathlib import Path

    from obsidian_agent.bootstrap import Wiring
    from obsidian_agent.tui.app import ObsidianAgentApp
    from obsidian_agent.tui.backend import BackendParts


def arguments(commands: Commands) -> None:
    """Add the parser of this command."""
    command = commands.add(
        "app", app_command, planner_options(), examples=["~/Notes", "~/Notes --model ollama/qwen3"]
    )
    command.add_argument("name", nargs="?", metavar="VAULT")


def app_command(options: argparse.Namespace, out: Output) -> Exit:
    """Open the app on the vault of the arguments, or on one chosen from Obsidian's list."""
    options.vault = options.name or options.vault or _choose()
    vault = find_vault(options.vault)
    if not (on_terminal(sys.stdin) and on_terminal(sys.stdout)):
        raise UsageError(
            "The app needs a terminal.",
            hint="Use a command instead, e.g. obsidian-agent do … --vault VAULT.",
        )
    app = app_over(
        vault.resolve().name,
        partial(_wiring, options),
        theme=_theme(options),
        first_start=not (options.offline or chosen_model(options)),
    )
    asyncio.run(_run(app))
    if app.open_error is not None:
        raise app.open_error
    return Exit(app.return_code or 0)


async def _run(app: ObsidianAgentApp) -> None:
    """Run the app until it ends. A signal quits it as the user does."""
    for number in ending_signals():
        with contextlib.suppress(NotImplementedError):  # Windows
            asyncio.get_running_loop().add_signal_handler(number, app.hang_up)
    await app.run_async()


def _wiring(options: argparse.Namespace) -> Wiring:
    """Return the wiring of the vault, and start the log beside its state. May block."""
    from obsidian_agent import log
    from obsidian_agent.state_files import directories

    log.start(directories(options.state_dir, options.config).log)
    return wiring_of(options, app=True)


def app_over(
    vault: str, wiring: Callable[[], Wiring], *, theme: str | None = None, first_start: bool = False
) -> ObsidianAgentApp:
    """Return the terminal app, which opens the vault after its first frame."""
    from obsidian_agent.tui.app import ObsidianAgentApp
    from obsidian_agent.tui.backend import Backend

    return ObsidianAgentApp(
        Backend(vault, lambda: opened(wiring())), theme=theme, first_start=first_start
    )


def opened(wiring: Wiring) -> BackendParts:
    """Open everything that the app displays. May block."""
    from obsidian_agent.bootstrap import (
        app_socket,
        build_app_services,
        build_session,
        build_threads,
    )
    from obsidian_agent.tui.backend import BackendParts

    session = build_session(wiring)
    threads = build_threads(wiring, session)
    return BackendParts(
        session=session,
        threads=threads,
        services=build_app_services(wiring, session, threads),
        settings=wiring.settings,
        proposals=app_socket(wiring),
    )


def _theme(options: argparse.Namespace) -> str | None:
    """Return the theme of the first frame. Invalid settings are reported later, with all others."""
    import tomllib

    from obsidian_agent.state_files import directories

    with contextlib.suppress(OSError, ValueError):
        config = directories(options.state_dir, options.config).config
        theme = tomllib.loads(config.read_text("utf-8")).get("theme")
        return theme if isinstance(theme, str) else None
    return None


def _choose() -> str | None:
    """Ask for a vault: one that Obsidian knows, any folder, or the sample vault.

    None in the folder of a vault.
    """
    from pathlib import Path

    from obsidian_agent.obsidian.registry import known_vaults

    if not on_terminal(sys.stdin) or (Path.cwd() / ".obsidian").is_dir():
        return None
    vaults = known_vaults()
    if vaults:
        print("Which vault?")
        for number, vault in enumerate(vaults, 1):
            print(f"  {number}  {vault.name}  ({vault.path})")
    else:
        print("Obsidian has no vault on this computer. Any folder with notes will do.")
    print("  s  A sample vault, to try things out")
    answer = ask("Number, s, or a folder: " if vaults else "Folder, or s: ").strip()
    if answer.isdigit() and 1 <= int(answer) <= len(vaults):
        return str(vaults[int(answer) - 1].path)
    if answer == "s":
        return str(_sample_vault())
    if not answer or not Path(answer).expanduser().is_dir():
        raise UsageError("No vault was chosen.", hint="Give its folder: obsidian-agent FOLDER")
    return answer


def _sample_vault() -> Path:
    """Return the user's sample vault, which is created the first time."""
    from obsidian_agent.services.model_trial import write_sample_vault
    from obsidian_agent.state_files import sample_vault_folder

    folder = sample_vault_folder()
    if not folder.is_dir():
        write_sample_vault(folder)
        print(f"Created in {folder}")
    return folder
