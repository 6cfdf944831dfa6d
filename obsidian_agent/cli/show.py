"""`show`: a past run with the diffs of its files."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.history import ALL_RUNS, history_document
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.parser import Commands
from obsidian_agent.cli.session_factory import open_session

if TYPE_CHECKING:
    from obsidian_agent.services.runs import Runs, ShownRun


def arguments(commands: Commands) -> None:
    """Add the parser of this command."""
    command = commands.add("show", show_command, examples=["show --vault ~/Notes", "show RUN"])
    command.add_argument("run", nargs="?", metavar="RUN", help="default: the last run")


def show_command(options: argparse.Namespace, out: Output) -> Exit:
    """Print what a run did, file by file."""
    runs = open_session(options).runs
    run = runs.show(options.run or _last(runs))
    if out.as_json:
        out.document(_document(run))
    entry = run.entry
    out.line(f"{entry.run_id}  {entry.time}  {entry.current_status}  {entry.goal}")
    for change, diff in run.changes:
        target = f" → {change.new_path}" if change.new_path is not None else ""
        out.line(f"{change.kind}  {change.path}{target}")
        for line in diff.splitlines()[2:]:
            out.line(f"  {line}")
    for text in run.left_out:
        out.line(f"left out  {text}")
    return Exit.DONE


def _last(runs: Runs) -> str:
    from obsidian_agent.errors import JournalError

    for entry in runs.history(ALL_RUNS):
        if not entry.effects.is_empty:
            return entry.run_id
    raise JournalError("No run has changed the vault yet.", code="RUN_NOT_FOUND")


def _document(run: ShownRun) -> dict[str, Any]:
    """Return the document of a preview, with what is known of the run."""
    changes = [
        {"kind": change.kind, "path": change.path}
        | ({"newPath": change.new_path} if change.new_path is not None else {})
        | {"diff": diff}
        for change, diff in run.changes
    ]
    paths: dict[str, list[str]] = {}
    for change, _ in run.changes:
        paths.setdefault(change.kind, []).append(change.path)
    summary = {
        "filesCreated": paths.get("create", []),
        "filesModified": paths.get("modify", []),
        "filesDeleted": paths.get("delete", []),
        "filesRenamed": [
            {"from": change.path, "to": change.new_path}
            for change, _ in run.changes
            if change.new_path is not None
        ],
        "foldersCreated": paths.get("mkdir", []),
        "commandsExecuted": list(run.entry.effects.commands),
        "estimatedSteps": run.steps,
    }
    return history_document(run.entry) | {
        "valid": True,
        "errors": [],
        "warnings": [],
        "flags": [],
        "riskLevel": run.risk,
        "summary": summary,
        "changes": changes,
        "planHash": run.plan_hash,
    }
