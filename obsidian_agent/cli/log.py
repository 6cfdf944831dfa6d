"""`log`: errors in the program itself."""

from __future__ import annotations

import argparse

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.parser import Commands, whole_number
from obsidian_agent.errors import ConfigError


def arguments(commands: Commands) -> None:
    """Add the parser of this command."""
    commands.add("log", log_command, examples=["log --tail 50"]).add_argument(
        "--tail", type=whole_number, metavar="N", help="the newest N lines"
    )


def log_command(options: argparse.Namespace, out: Output) -> Exit:
    """Print the log file, oldest line first."""
    from obsidian_agent import log
    from obsidian_agent.state_files import directories

    file = log.file_in(directories(options.state_dir, options.config).log)
    try:
        lines = log.lines(file)
    except OSError as error:
        raise ConfigError(
            f"{file} cannot be read: {error.strerror or error}.", path=str(file)
        ) from error
    if options.tail is not None:
        lines = lines[-options.tail :] if options.tail > 0 else []
    if out.as_json:
        out.document({"file": str(file), "lines": lines})
    for line in lines or [f"No errors are logged in {file}."]:
        out.line(line)
    return Exit.DONE
