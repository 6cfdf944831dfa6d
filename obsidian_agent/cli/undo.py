"""`undo`: undo a run, as a whole or back to a step. The questions and results are also redo's."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Literal

from msgspec.structs import replace

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.history import ALL_RUNS
from obsidian_agent.cli.output import NOT_ASKED, Output, on_terminal
from obsidian_agent.cli.parser import Commands, UsageError, add_approval
from obsidian_agent.cli.session_factory import open_session
from obsidian_agent.errors import JournalError
from obsidian_agent.terminal_text import counted

if TYPE_CHECKING:
    from obsidian_agent.journal.records import HistoryEntry
    from obsidian_agent.journal.undo import UndoResult
    from obsidian_agent.services.runs import Runs


def arguments(commands: Commands) -> None:
    """Add the parser of this command."""
    examples = ["undo --vault ~/Notes", "undo RUN --to-step ID", "undo RUN --force Inbox.md"]
    command = commands.add("undo", undo_command, examples=examples)
    command.add_argument("run", nargs="?", metavar="RUN")
    add_approval(command)
    command.add_argument(
        "--force",
        action="append",
        default=[],
        metavar="PATH",
        help="restore this file, overwriting a later edit (repeat)",
    )
    command.add_argument(
        "--skip",
        action="append",
        default=[],
        metavar="PATH",
        help="do not restore this file (repeat)",
    )
    command.add_argument(
        "--to-step", metavar="ID", help="undo only what the run did after this step"
    )


def undo_command(options: argparse.Namespace, out: Output) -> Exit:
    """Undo the last run, or the given one, as a whole or back to the end of a step."""
    runs = open_session(options).runs
    entry = _find_run(runs, options.run) if options.force or options.skip else None
    run = entry.run_id if entry else options.run
    preview = runs.undo_preview(run, to_step=options.to_step)
    force, skip = options.force, options.skip
    if entry is not None:
        paths = _changed_paths(entry) | {conflict.path for conflict in preview.conflicts}
        force = [_known_path(path, paths, entry) for path in force]
        skip = [_known_path(path, paths, entry) for path in skip]
    if not approved("Undo", preview, options.yes, out):
        return Exit.NOT_APPROVED
    return report("undo", runs.undo(run, force, skip, options.to_step), out)


def _find_run(runs: Runs, run: str | None) -> HistoryEntry:
    """Return the run with this id, or the last run that can be undone."""
    for entry in runs.history(ALL_RUNS):
        if entry.undoable if run is None else entry.run_id == run:
            return entry
    message = "There is no run to undo." if run is None else f"There is no run {run}."
    raise JournalError(message, code="RUN_NOT_FOUND")


def _known_path(path: str, known: Collection[str], entry: HistoryEntry) -> str:
    """Return the path as the run recorded it. The `.md` of a note is optional.

    Raise `UsageError` for a path that the run did not change.
    """
    if any(path == changed or changed.startswith(f"{path}/") for changed in known):
        return path
    if (note := f"{path}.md") in known:
        return note
    raise UsageError(
        f"Run {entry.run_id} did not change {path}.",
        hint="See obsidian-agent history for what each run changed.",
    )


def _changed_paths(entry: HistoryEntry) -> set[str]:
    effects = entry.effects
    paths = {*effects.created, *effects.modified, *effects.deleted, *effects.folders}
    return paths.union(*effects.renamed)


def approved(verb: str, preview: UndoResult, yes: bool, out: Output) -> bool:
    """Return True if the user approves, by `--yes` or on the terminal."""
    if yes:
        return True
    out.line(f"{verb} of run {preview.run_id} restores {_files(len(preview.restored))}:")
    for path in preview.restored:
        out.line(f"  {path}")
    for conflict in preview.conflicts:
        out.line(f"  skipped: {conflict.path} ({conflict.reason})")
    if not out.as_json and on_terminal(sys.stdin):
        return out.agreed("Do this? Type yes: ")
    if out.as_json:
        nothing = replace(preview, restored=(), skipped=(), conflicts=(), errors=(), warnings=())
        out.document(undo_document(nothing) | {"outcome": "refused", "message": NOT_ASKED})
    out.note(NOT_ASKED)
    return False


def report(command: Literal["undo", "redo"], result: UndoResult, out: Output) -> Exit:
    """Print the result of an undo or redo. Return its exit code."""
    if out.as_json:
        out.document(undo_document(result))
    out.line(f"Restored {_files(len(result.restored))}.")
    for conflict in result.conflicts:
        out.note(f"Skipped: {conflict.path}: {conflict.reason}.")
        if conflict.forcible and command == "undo":
            path = shlex.quote(conflict.path)
            out.note(f"  Overwrite it with: obsidian-agent undo {result.run_id} --force {path}")
    out.problems(result.errors)
    out.problems(result.warnings)
    if result.conflicts or result.errors:
        earlier = "; name an earlier run to undo it" if command == "undo" else ""
        out.note(f"The next {command} continues with the rest{earlier}.")
    if result.conflicts:
        return Exit.CONFLICT
    return Exit.FAILED if result.errors else Exit.DONE


def undo_document(result: UndoResult) -> dict[str, Any]:
    """Return `{runId, restored[], skipped[], conflicts[{path, reason}], errors[], warnings[]}`."""
    return {
        "runId": result.run_id,
        "restored": list(result.restored),
        "skipped": list(result.skipped),
        "conflicts": [
            {"path": conflict.path, "reason": conflict.reason} for conflict in result.conflicts
        ],
        "errors": [problem.to_json() for problem in result.errors],
        "warnings": [problem.to_json() for problem in result.warnings],
    }


def _files(count: int) -> str:
    return counted(count, "file or folder", "files and folders")
