"""`history`, `undo`, `redo` and `recover`."""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import Any

from obsidian_agent.agent.document import effects_document
from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.opening import open_session
from obsidian_agent.cli.output import Output
from obsidian_agent.journal.records import HistoryEntry
from obsidian_agent.journal.recover import InterruptedRun, Recovery
from obsidian_agent.journal.undo import UndoResult


def history_command(options: argparse.Namespace, out: Output) -> Exit:
    """Runs, newest first."""
    entries = open_session(options).runs.history(options.limit)
    if out.as_json:
        out.document({"runs": [history_document(entry) for entry in entries]})
    for entry in entries:
        out.line(f"{entry.run_id}  {entry.time}  {entry.status}{' (undone)' if entry.undone else ''}  {entry.goal}")
    if not entries:
        out.line("No runs yet.")
    return Exit.DONE


def history_document(entry: HistoryEntry) -> dict[str, Any]:
    """`{runId, time, goal, status, effects, undone}`."""
    return {
        "runId": entry.run_id,
        "time": entry.time,
        "goal": entry.goal,
        "status": entry.status,
        "effects": effects_document(entry.effects),
        "undone": entry.undone,
    }


def undo_command(options: argparse.Namespace, out: Output) -> Exit:
    """Undo the last run, or a named one."""
    session = open_session(options)
    planned = session.runs.undo_preview(options.run)
    if not _agreed("Undo", planned, options.yes, out):
        return Exit.NOT_APPROVED
    return _told(session.runs.undo(options.run, options.force, options.skip), out)


def redo_command(options: argparse.Namespace, out: Output) -> Exit:
    """Redo what was undone last."""
    session = open_session(options)
    planned = session.runs.undo_preview(None, redoing=True)
    if not _agreed("Redo", planned, options.yes, out):
        return Exit.NOT_APPROVED
    return _told(session.runs.redo(), out)


def _agreed(verb: str, planned: UndoResult, yes: bool, out: Output) -> bool:
    """`--yes`, a yes on the terminal, or a program that asked for JSON without a terminal to ask on: only the first two count."""
    if yes:
        return True
    out.line(f"{verb} of run {planned.run_id} restores {len(planned.restored)} files and folders:")
    for path in planned.restored:
        out.line(f"  {path}")
    for conflict in planned.conflicts:
        out.line(f"  left alone: {conflict.path} ({conflict.reason})")
    if out.as_json or not sys.stdin.isatty():
        message = "Not done: add --yes, or run it in a terminal to be asked."
        if out.as_json:
            out.document(undo_document(UndoResult(planned.run_id)) | {"outcome": "refused", "message": message})
        out.note(message)
        return False
    return input("Do this? Type yes: ").strip().lower() in ("y", "yes")


def undo_document(result: UndoResult) -> dict[str, Any]:
    """`{restored[], skipped[], conflicts[{path, reason}]}`."""
    return {
        "runId": result.run_id,
        "restored": list(result.restored),
        "skipped": list(result.skipped),
        "conflicts": [{"path": conflict.path, "reason": conflict.reason} for conflict in result.conflicts],
        "errors": [problem.to_json() for problem in result.errors],
    }


def _told(result: UndoResult, out: Output) -> Exit:
    if out.as_json:
        out.document(undo_document(result))
    out.line(f"Restored {len(result.restored)} files and folders.")
    for conflict in result.conflicts:
        out.note(f"Left alone: {conflict.path}: {conflict.reason}.")
        out.note(f"  Overwrite it with: obsidian-agent undo {result.run_id} --force {shlex.quote(conflict.path)}")
    out.problems(result.errors)
    if result.conflicts:
        return Exit.CONFLICT
    return Exit.FAILED if result.errors else Exit.DONE


def recover_command(options: argparse.Namespace, out: Output) -> Exit:
    """What a crash left half done: list it, finish it or roll it back."""
    runs = open_session(options).runs
    if not (options.finish or options.roll_back):
        found = runs.interrupted()
        if out.as_json:
            out.document({"runs": [interrupted_document(run) for run in found]})
        for run in found:
            out.line(f"{run.run_id}  {run.time}  {run.goal}")
            for path in run.paths:
                out.line(f"  {path.state:8} {path.path}{f' ({path.reason})' if path.reason else ''}")
        out.line("Finish it with --finish, or bring every file back with --roll-back." if found else "Nothing was interrupted.")
        return Exit.FAILED if found else Exit.DONE
    ended = runs.recover(None, finish=options.finish)
    if out.as_json:
        out.document({"runs": [recovery_document(recovery) for recovery in ended]})
    for recovery in ended:
        out.line(f"{recovery.run_id}: {'finished' if recovery.finished else 'rolled back'}")
        out.problems(recovery.problems)
    if not ended:
        out.line("Nothing was interrupted.")
    return Exit.CONFLICT if any(recovery.problems for recovery in ended) else Exit.DONE


def interrupted_document(run: InterruptedRun) -> dict[str, Any]:
    """An interrupted run with the state of each path it is about."""
    paths = [{"path": path.path, "state": path.state} | ({"reason": path.reason} if path.reason else {}) for path in run.paths]
    return {"runId": run.run_id, "kind": run.kind, "time": run.time, "goal": run.goal, "paths": paths, "leftovers": run.leftovers}


def recovery_document(recovery: Recovery) -> dict[str, Any]:
    """How an interrupted run was ended."""
    return {
        "runId": recovery.run_id,
        "kind": recovery.kind,
        "status": "recovered",
        "finished": recovery.finished,
        "effects": effects_document(recovery.effects),
        "errors": [problem.to_json() for problem in recovery.problems],
        "undoAvailable": recovery.undo_available,
    }
