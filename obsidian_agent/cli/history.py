"""`history`: the runs of a vault."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.parser import Commands, whole_number
from obsidian_agent.cli.session_factory import open_session

if TYPE_CHECKING:
    from obsidian_agent.journal.records import HistoryEntry

ALL_RUNS: Final = 1_000_000
"""A limit that no journal reaches."""

DEFAULT_RUNS: Final = 50
"""Runs that are listed without `--limit`. A JSON document has all."""


def arguments(commands: Commands) -> None:
    """Add the parser of this command."""
    command = commands.add(
        "history", history_command, examples=["history --vault ~/Notes --limit 5"]
    )
    command.add_argument(
        "--limit",
        type=whole_number,
        metavar="N",
        help="the newest N (default: 50, or all with --json)",
    )


def history_command(options: argparse.Namespace, out: Output) -> Exit:
    """Print the runs, newest first, and problems of their journal."""
    runs = open_session(options).runs
    entries = runs.history(_limit(options, out))
    problems = runs.examine()
    has_more = not out.as_json and options.limit is None and len(entries) > DEFAULT_RUNS
    if has_more:
        entries = entries[:DEFAULT_RUNS]
    if out.as_json:
        document: dict[str, Any] = {"runs": [history_document(entry) for entry in entries]}
        if problems:
            document["errors"] = [problem.to_json() for problem in problems]
        out.document(document)
    for entry in entries:
        undone = " (undone)" if entry.undone and not entry.effects.is_empty else ""
        out.line(f"{entry.run_id}  {entry.time}  {entry.status}{undone}  {entry.goal}")
    if has_more:
        out.line("Older runs are listed with --limit N.")
    if not entries and not problems and options.limit != 0:
        out.line("No runs yet.")
    out.problems(problems)
    return Exit.FAILED if problems else Exit.DONE


def _limit(options: argparse.Namespace, out: Output) -> int:
    if options.limit is not None:
        return int(options.limit)
    return ALL_RUNS if out.as_json else DEFAULT_RUNS + 1


def history_document(entry: HistoryEntry) -> dict[str, Any]:
    """Return `{runId, time, goal, status, effects, undone}`."""
    from obsidian_agent.agent.event_documents import effects_document

    return {
        "runId": entry.run_id,
        "time": entry.time,
        "goal": entry.goal,
        "status": entry.status,
        "effects": effects_document(entry.effects),
        "undone": entry.undone,
    }
