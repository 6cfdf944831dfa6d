"""`history`, `undo`, `redo`, `recover` and `audit`: what was done, and taking it back."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import NOT_ASKED, Output, on_terminal
from obsidian_agent.cli.parser import Commands, UsageError, approval, whole_number
from obsidian_agent.cli.session_factory import open_session, wiring_of
from obsidian_agent.dataclass import replace
from obsidian_agent.errors import JournalError
from obsidian_agent.terminal_text import counted

if TYPE_CHECKING:
    from obsidian_agent.agent.events import Effects
    from obsidian_agent.agent.privacy.record import Verified
    from obsidian_agent.journal.records import HistoryEntry
    from obsidian_agent.journal.recovery import InterruptedRun, Recovery
    from obsidian_agent.journal.undo import UndoResult
    from obsidian_agent.services.runs import Runs

ALL_RUNS: Final = 1_000_000
SHOWN_RUNS: Final = 50
"""Runs that a screen gets unasked; programs get all."""


def arguments(commands: Commands) -> None:
    """Add the parsers of these commands."""
    command = commands.add(
        "history", history_command, examples=["history --vault ~/Notes --limit 5"]
    )
    command.add_argument(
        "--limit",
        type=whole_number,
        metavar="N",
        help="the newest N (default: 50 on a screen, all with --json)",
    )
    examples = ["undo --vault ~/Notes", "undo RUN --to-step ID", "undo RUN --force Inbox.md"]
    command = commands.add("undo", undo_command, examples=examples)
    command.add_argument("run", nargs="?", metavar="RUN")
    approval(command, "don't ask")
    command.add_argument(
        "--force",
        action="append",
        default=[],
        metavar="PATH",
        help="restore this file over a later edit",
    )
    command.add_argument(
        "--skip", action="append", default=[], metavar="PATH", help="leave this file as it is"
    )
    command.add_argument(
        "--to-step", metavar="ID", help="keep what the run did up to the end of this step"
    )
    approval(commands.add("redo", redo_command, examples=["redo --vault ~/Notes"]), "don't ask")
    which = commands.add(
        "recover", recover_command, examples=["recover", "recover --roll-back"]
    ).add_mutually_exclusive_group()
    which.add_argument("--finish", action="store_true", help="complete it")
    which.add_argument("--roll-back", action="store_true", help="bring every file back")
    command = commands.add(
        "audit",
        audit_command,
        examples=[
            "audit --tail 20",
            "audit --kind denial --since 2026-03-01",
            "audit --path Private",
        ],
    )
    command.add_argument("--tail", type=whole_number, metavar="N", help="the newest N")
    command.add_argument(
        "--kind",
        action="append",
        metavar="KIND",
        help="only these, e.g. approval, denial, sent (repeat)",
    )
    command.add_argument(
        "--since", metavar="DATE", help="only from this ISO date, or date and time, on"
    )
    command.add_argument(
        "--path", metavar="PATH", help="only what names this file or folder, or something in it"
    )
    command.add_argument(
        "--verify",
        action="store_true",
        help="check that no line of the record was changed or taken away",
    )


def history_command(options: argparse.Namespace, out: Output) -> Exit:
    """Runs, newest first, and what is wrong with their journal."""
    runs = open_session(options).runs
    entries = runs.history(_limit(options, out))
    wrong = runs.examine()
    more = not out.as_json and options.limit is None and len(entries) > SHOWN_RUNS
    entries = entries[:SHOWN_RUNS] if more else entries
    if out.as_json:
        errors = {"errors": [problem.to_json() for problem in wrong]} if wrong else {}
        out.document({"runs": [history_document(entry) for entry in entries]} | errors)
    for entry in entries:
        out.line(
            f"{entry.run_id}  {entry.time}  {entry.status}{' (undone)' if entry.undone and entry.effects.anything else ''}  {entry.goal}"
        )
    if more:
        out.line("There are older ones: --limit N shows more.")
    if not entries and not wrong and options.limit != 0:
        out.line("No runs yet.")
    out.problems(wrong)
    return Exit.FAILED if wrong else Exit.DONE


def _limit(options: argparse.Namespace, out: Output) -> int:
    if options.limit is not None:
        return int(options.limit)
    return ALL_RUNS if out.as_json else SHOWN_RUNS + 1


def _effects(effects: Effects) -> dict[str, Any]:
    from obsidian_agent.agent.event_documents import effects_document

    return effects_document(effects)


def history_document(entry: HistoryEntry) -> dict[str, Any]:
    """`{runId, time, goal, status, effects, undone}`."""
    return {
        "runId": entry.run_id,
        "time": entry.time,
        "goal": entry.goal,
        "status": entry.status,
        "effects": _effects(entry.effects),
        "undone": entry.undone,
    }


def undo_command(options: argparse.Namespace, out: Output) -> Exit:
    """Undo the last run, or a named one, as a whole or back to the end of a step."""
    session = open_session(options)
    entry = _run_of(session.runs, options.run) if options.force or options.skip else None
    run = entry.run_id if entry else options.run
    planned = session.runs.undo_preview(run, to_step=options.to_step)
    force, skip = options.force, options.skip
    if entry:
        known = _changed(entry) | {conflict.path for conflict in planned.conflicts}
        force, skip = (
            [_known_path(path, known, entry) for path in paths] for paths in (force, skip)
        )
    if not _agreed("Undo", planned, options.yes, out):
        return Exit.NOT_APPROVED
    return _told(session.runs.undo(run, force, skip, options.to_step), out)


def _run_of(runs: Runs, run: str | None) -> HistoryEntry:
    """The run that is meant: the named one, else the last with anything in effect."""
    entries = runs.history(ALL_RUNS)
    entry = next(
        (each for each in entries if (each.undoable if run is None else each.run_id == run)), None
    )
    if entry is None:
        raise JournalError(
            "There is no run to undo." if run is None else f"There is no run {run}.",
            code="RUN_NOT_FOUND",
        )
    return entry


def _known_path(path: str, known: Collection[str], entry: HistoryEntry) -> str:
    """Return the path as the run has it; a note may go without `.md`. Raise `UsageError` for one that the run did not change."""
    if any(path == each or path.startswith(each + "/") for each in known):
        return path
    if (note := f"{path}.md") in known:
        return note
    raise UsageError(
        f"Run {entry.run_id} did not change {path}.",
        hint="See obsidian-agent history for what each run changed.",
    )


def _changed(entry: HistoryEntry) -> set[str]:
    effects = entry.effects
    names = {*effects.created, *effects.modified, *effects.deleted, *effects.folders}
    return names.union(*((old, new) for old, new in effects.renamed))


def redo_command(options: argparse.Namespace, out: Output) -> Exit:
    """Redo what was undone last."""
    session = open_session(options)
    planned = session.runs.undo_preview(None, redoing=True)
    if not _agreed("Redo", planned, options.yes, out):
        return Exit.NOT_APPROVED
    return _told(session.runs.redo(), out, redone=True)


def _agreed(verb: str, planned: UndoResult, yes: bool, out: Output) -> bool:
    """`--yes`, a yes on the terminal, or a program that asked for JSON without a terminal to ask on: only the first two count."""
    if yes:
        return True
    out.line(f"{verb} of run {planned.run_id} restores {_files(len(planned.restored))}:")
    for path in planned.restored:
        out.line(f"  {path}")
    for conflict in planned.conflicts:
        out.line(f"  left alone: {conflict.path} ({conflict.reason})")
    if out.as_json or not on_terminal(sys.stdin):
        if out.as_json:
            out.document(
                undo_document(
                    replace(planned, restored=(), skipped=(), conflicts=(), errors=(), warnings=())
                )
                | {"outcome": "refused", "message": NOT_ASKED}
            )
        out.note(NOT_ASKED)
        return False
    return out.agreed("Do this? Type yes: ")


def undo_document(result: UndoResult) -> dict[str, Any]:
    """`{restored[], skipped[], conflicts[{path, reason}]}`."""
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


def _told(result: UndoResult, out: Output, *, redone: bool = False) -> Exit:
    if out.as_json:
        out.document(undo_document(result))
    out.line(f"Restored {_files(len(result.restored))}.")
    for conflict in result.conflicts:
        out.note(f"Left alone: {conflict.path}: {conflict.reason}.")
        if conflict.forcible and not redone:
            out.note(
                f"  Overwrite it with: obsidian-agent undo {result.run_id} --force {shlex.quote(conflict.path)}"
            )
    out.problems(result.errors)
    out.problems(result.warnings)
    if result.conflicts or result.errors:
        again, other = (
            ("redo", "") if redone else ("undo", "; an earlier run is undone by its name")
        )
        out.note(f"The next {again} goes on with the rest{other}.")
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
                out.line(
                    f"  {path.state:8} {path.path}{f' ({path.reason})' if path.reason else ''}"
                )
        out.line(
            "Finish it with --finish, or bring every file back with --roll-back."
            if found
            else "Nothing was interrupted."
        )
        return Exit.FAILED if found else Exit.DONE
    ended = runs.recover(None, finish=options.finish)
    if out.as_json:
        out.document({"runs": [recovery_document(recovery) for recovery in ended]})
    for recovery in ended:
        out.line(f"{recovery.run_id}: {'finished' if recovery.finished else 'rolled back'}")
        out.problems((*recovery.problems, *recovery.warnings))
    if not ended:
        out.line("Nothing was interrupted.")
    return Exit.CONFLICT if any(recovery.problems for recovery in ended) else Exit.DONE


def interrupted_document(run: InterruptedRun) -> dict[str, Any]:
    """An interrupted run with the state of each path it is about."""
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


def recovery_document(recovery: Recovery) -> dict[str, Any]:
    """How an interrupted run was ended."""
    return {
        "runId": recovery.run_id,
        "kind": recovery.kind,
        "status": "recovered",
        "finished": recovery.finished,
        "effects": _effects(recovery.effects),
        "errors": [problem.to_json() for problem in recovery.problems],
        "warnings": [problem.to_json() for problem in recovery.warnings],
        "undoAvailable": recovery.undo_available,
    }


def audit_command(options: argparse.Namespace, out: Output) -> Exit:
    """The last entries, oldest first, so that the newest are at the bottom of a screen."""
    from obsidian_agent.agent.privacy.record import KINDS
    from obsidian_agent.bootstrap import build_session, open_record

    if unknown := set(options.kind or ()) - KINDS:
        raise UsageError(
            f"There is no kind {unknown.pop()!r}.", hint=f"There are {', '.join(sorted(KINDS))}."
        )
    wiring = wiring_of(options)
    record = open_record(wiring)
    if options.verify:
        return _verified(build_session(wiring).runs.verify_record(), out)
    runs = [
        {"kind": "run", **history_document(entry)}
        for entry in build_session(wiring).runs.history(ALL_RUNS)
    ]
    recorded = record.entries()
    ended = {entry.get("runId"): entry for entry in recorded if entry.get("kind") == "run"}
    others = [entry for entry in recorded if entry.get("kind") != "run"]
    # The journal knows when a run was previewed; it comes after its approval.
    entries = sorted(
        [*runs, *others],
        key=lambda entry: str((ended.get(entry.get("runId")) or entry).get("time", "")),
    )
    entries = [entry for entry in entries if _wanted(entry, options)]
    if options.tail is not None:
        entries = entries[-options.tail :] if options.tail > 0 else []
    if out.as_json:
        out.document({"entries": entries})
    for entry in entries:
        for line in _entry_lines(entry):
            out.line(line)
    if not entries:
        out.line(
            "There is no such entry."
            if options.kind or options.since or options.path
            else "Nothing was done and nothing was sent."
        )
    return Exit.DONE


def _wanted(entry: Mapping[str, Any], options: argparse.Namespace) -> bool:
    """Whether an entry is of the kind, of the time and about the path that the options name."""
    if options.kind and entry["kind"] not in options.kind:
        return False
    if options.since and str(entry.get("time", "")) < options.since:
        return False
    return not options.path or _names(entry, options.path.rstrip("/"))


def _names(value: object, path: str) -> bool:
    match value:
        case str():
            return value in (path, f"{path}.md") or value.startswith(f"{path}/")
        case Mapping():
            return any(_names(each, path) for each in value.values())
        case list() | tuple():
            return any(_names(each, path) for each in value)
        case _:
            return False


def _verified(verified: Verified, out: Output) -> Exit:
    ok = verified.first_bad is None
    if out.as_json:
        out.document(
            {"ok": ok, "entries": verified.entries}
            | ({} if ok else {"firstBad": verified.first_bad, "reason": verified.reason})
        )
    if ok:
        out.line(f"The record is whole: {verified.entries} entries.")
        return Exit.DONE
    out.line(
        f"Entry {verified.first_bad} of the record is not valid: {verified.reason}. Valid before it: {verified.entries}."
    )
    return Exit.FAILED


def _entry_lines(entry: Mapping[str, Any]) -> Iterator[str]:
    from obsidian_agent.agent.privacy.record import entry_text

    when = str(entry.get("time", ""))[:19].replace("T", " ")
    if entry["kind"] == "run":
        effects = entry["effects"]
        counts = (
            ", ".join(f"{len(names)} {word}" for word, names in effects.items() if names)
            or "nothing changed"
        )
        yield f"{when}  run   {entry['status']}{' (undone)' if entry['undone'] else ''}: {entry['goal']} [{counts}]"
        return
    if entry["kind"] != "sent":
        yield f"{when}  {entry['kind']}  {entry_text(entry)}"
        return
    files = entry.get("files") or []
    yield f"{when}  sent  to {entry.get('provider', '?')} by {entry.get('tool', '?')}: {entry.get('characters', 0)} characters"
    for each in files:
        yield f"                             {each.get('shared', '')} of {each.get('path', '')}, allowed by {each.get('allowedBy', '')}"
