"""`redo`: redo the last undone run."""

from __future__ import annotations

import argparse

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.parser import Commands, add_approval
from obsidian_agent.cli.session_factory import open_session
from obsidian_agent.cli.undo import approved, report


def arguments(commands: Commands) -> None:
    """Add the parser of this command."""
    add_approval(commands.add("redo", redo_command, examples=["redo --vault ~/Notes"]))


def redo_command(options: argparse.Namespace, out: Output) -> Exit:
    """Redo what was undone last."""
    runs = open_session(options).runs
    preview = runs.undo_preview(None, redoing=True)
    if not approved("Redo", preview, options.yes, out):
        return Exit.NOT_APPROVED
    return report("redo", runs.redo(), out)
