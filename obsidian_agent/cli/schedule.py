"""`schedule …`: a system timer that checks the vault's rules while the app is closed."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.parser import Commands, UsageError, add_actions, add_approval, whole_number
from obsidian_agent.cli.session_factory import open_vault

if TYPE_CHECKING:
    from obsidian_agent.services.schedule import Timer

_MINUTES = (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30)
"""Divisors of an hour, so that the timer runs at regular intervals."""


def arguments(commands: Commands) -> None:
    """Add the parser of this command and of its actions."""
    examples = ["schedule install --every 10", "schedule status", "schedule remove"]
    action = add_actions(commands.add("schedule", None, examples=examples))
    command = action.add(
        "install", _install, summary="show a timer that checks the rules, ask, install it"
    )
    command.add_argument(
        "--every",
        type=whole_number,
        default=10,
        metavar="MINUTES",
        help="time between two checks (default: 10)",
    )
    add_approval(command)
    action.add("status", _status, summary="show whether the timer is installed")
    add_approval(action.add("remove", _remove, summary="remove the timer"))


def _timer(options: argparse.Namespace, minutes: int = 10) -> Timer:
    from obsidian_agent.services.schedule import timer

    global_options = []
    if options.state_dir:
        global_options += ["--state-dir", os.path.abspath(options.state_dir)]
    if options.config:
        global_options += ["--config", os.path.abspath(options.config)]
    with open_vault(options) as store:
        return timer(store.real_path, global_options, minutes)


def _install(options: argparse.Namespace, out: Output) -> Exit:
    from obsidian_agent.services.schedule import install

    if options.every not in _MINUTES:
        raise UsageError(f"--every takes one of {', '.join(map(str, _MINUTES))}.")
    timer = _timer(options, options.every)
    out.text(timer.text)
    if not out.confirmed("Install this timer?", options.yes):
        return Exit.NOT_APPROVED
    install(timer)
    if out.as_json:
        out.document({"installed": True, "kind": timer.kind})
    out.line("Installed. The plans that rules propose: obsidian-agent plans list")
    return Exit.DONE


def _status(options: argparse.Namespace, out: Output) -> Exit:
    from obsidian_agent.services.schedule import is_installed

    timer = _timer(options)
    installed = is_installed(timer)
    if out.as_json:
        out.document({"installed": installed, "kind": timer.kind})
    out.line(f"A timer ({timer.kind}) is installed." if installed else "No timer is installed.")
    return Exit.DONE


def _remove(options: argparse.Namespace, out: Output) -> Exit:
    from obsidian_agent.services.schedule import is_installed, remove

    timer = _timer(options)
    if not is_installed(timer):
        out.line("No timer is installed.")
    elif not out.confirmed("Remove the timer?", options.yes):
        return Exit.NOT_APPROVED
    else:
        remove(timer)
        out.line("The timer is removed.")
    if out.as_json:
        out.document({"installed": False, "kind": timer.kind})
    return Exit.DONE
