"""`recover`: finish or roll back runs that a crash interrupted."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.parser import Commands
from obsidian_agent.cli.session_factory import open_session

if TYPE_CHECKING:
    from obsidian_agent.journal.recovery import InterruptedRun, RecoveryResult
    from obsidian_agent.services.runs import Runs

_NOTHING = "No run was interrupted."


def arguments(commands: Commands) -> None:
    """Add the parser of this command."""
    command = commands.add("recover", recover_command, examples=["recover", "recover --roll-back"])
    mode = command.add_mutually_exclusive_group()
    mode.add_argument(
        "--finish", action="store_true", help="apply the remaining changes of the run"
    )
    mode.add_argument("--roll-back", action="store_true", help="restore every file of the run")


def recover_command(options: argparse.Namespace, out: Output) -> Exit:
    """List the interrupted runs, or finish them, or roll them back."""
    runs = open_session(options).runs
    if not (options.finish or options.roll_back):
        return _list(runs, out)
    recoveries = runs.recover(None, finish=options.finish)
    if out.as_json:
        out.document({"runs": [recovery_document(recovery) for recovery in recoveries]})
    for recovery in recoveries:
        out.line(f"{recovery.run_id}: {'finished' if recovery.finished else 'rolled back'}")
        out.problems((*recovery.problems, *recovery.warnings))
    if not recoveries:
        out.line(_NOTHING)
    has_problems = any(recovery.problems for recovery in recoveries)
    return Exit.CONFLICT if has_problems else Exit.DONE


def _list(runs: Runs, out: Output) -> Exit:
    interrupted = runs.interrupted()
    if out.as_json:
        out.document({"runs": [interrupted_document(run) for run in interrupted]})
    for run in interrupted:
        out.line(f"{run.run_id}  {run.time}  {run.goal}")
        for path in run.paths:
            reason = f" ({path.reason})" if path.reason else ""
            out.line(f"  {path.state:8} {path.path}{reason}")
    if not interrupted:
        out.line(_NOTHING)
        return Exit.DONE
    out.line("Apply the remaining changes with --finish, or restore every file with --roll-back.")
    return Exit.FAILED


def interrupted_document(run: InterruptedRun) -> dict[str, Any]:
    """Return an interrupted run with the state of each of its paths."""
    paths = [
        {"path": path.path, "state": path.state} | ({"reason": path.reason} if path.reason else {})
        for path in run.paths
    ]
    return {
        "runId": run.run_id,
        "kind": run.kind,
        "time": run.time,
        "goal": run.goal,
        "paths": paths,
        "leftovers": run.leftovers,
    }


def recovery_document(recovery: RecoveryResult) -> dict[str, Any]:
    """Return the result of finishing or rolling back a run."""
    from obsidian_agent.agent.event_documents import effects_document

    return {
        "runId": recovery.run_id,
        "kind": recovery.kind,
        "status": "recovered",
        "finished": recovery.finished,
        "effects": effects_document(recovery.effects),
        "errors": [problem.to_json() for problem in recovery.problems],
        "warnings": [problem.to_json() for problem in recovery.warnings],
        "undoAvailable": recovery.undo_available,
    }
