"""`index`: build or refresh the index of the vault."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output, progress
from obsidian_agent.cli.parser import Commands
from obsidian_agent.cli.session_factory import open_vault

if TYPE_CHECKING:
    from obsidian_agent.vault.index.keeper import IndexKeeper


def arguments(commands: Commands) -> None:
    """Add the parser of this command."""
    command = commands.add("index", index_command, examples=["index --rebuild"])
    command.add_argument("--rebuild", action="store_true", help="rebuild it from scratch")


def index_command(options: argparse.Namespace, out: Output) -> Exit:
    """Build or refresh the index, and print its figures."""
    with index_keeper(options, out) as keeper:
        index = keeper.rebuild() if options.rebuild else keeper.refresh()
        figures = index.counts()._asdict() | {"seconds": round(keeper.status.seconds, 3)}
        problems = list(index.problems.values())
    if out.as_json:
        out.document(figures)
    out.line(", ".join(f"{value} {name}" for name, value in figures.items()))
    out.problems(problems)
    return Exit.DONE


@contextmanager
def index_keeper(options: argparse.Namespace, out: Output) -> Iterator[IndexKeeper]:
    """Yield the keeper of the vault's index, with a progress bar."""
    from obsidian_agent.journal.state_folder import index_folder
    from obsidian_agent.state_files import directories
    from obsidian_agent.vault.index.keeper import IndexKeeper

    state = directories(options.state_dir, options.config).state
    with open_vault(options) as store, progress("Indexing", out) as show:
        yield IndexKeeper(store, index_folder(state, store), progress=show)
