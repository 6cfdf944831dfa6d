"""`completion`: scripts that complete the command line in a shell."""

from __future__ import annotations

import argparse
from typing import Final

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.parser import Commands, build_parser

_FILES: Final = frozenset({"FILE", "PLAN.json"})
"""Names of arguments that are files outside the vault."""

_FOLDERS: Final = frozenset({"VAULT", "DIR"})
"""Names of arguments that are folders outside the vault."""


def arguments(commands: Commands) -> None:
    """Add the parser of this command."""
    examples = [
        "completion bash > ~/.local/share/bash-completion/completions/obsidian-agent",
        "completion zsh > ~/.zfunc/_obsidian-agent",
        "completion fish > ~/.config/fish/completions/obsidian-agent.fish",
    ]
    commands.add("completion", completion_command, examples=examples).add_argument(
        "shell", choices=["bash", "zsh", "fish", "tcsh"]
    )


def completion_command(options: argparse.Namespace, out: Output) -> Exit:
    """Print a script that completes commands, options, choices, and paths outside the vault."""
    import shtab

    parser = build_parser(None)
    _complete_paths(parser, shtab.FILE, shtab.DIRECTORY)
    script = shtab.complete(parser, options.shell)
    if out.as_json:
        out.document({"shell": options.shell, "script": script})
    out.source(script)
    return Exit.DONE


def _complete_paths(parser: argparse.ArgumentParser, files: object, folders: object) -> None:
    """Set shtab's `complete` attribute on the arguments of a parser and its subparsers."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for subparser in dict.fromkeys(action.choices.values()):
                _complete_paths(subparser, files, folders)
        elif action.metavar in _FILES:
            vars(action)["complete"] = files
        elif action.metavar in _FOLDERS:
            vars(action)["complete"] = folders
