"""`audit`: the record of changes to the vault, and of everything sent to models."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.history import ALL_RUNS, history_document
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.parser import Commands, UsageError, whole_number
from obsidian_agent.cli.session_factory import wiring_of

if TYPE_CHECKING:
    from obsidian_agent.agent.privacy.record import Verified


def arguments(commands: Commands) -> None:
    """Add the parser of this command."""
    examples = [
        "audit --tail 20",
        "audit --kind denial --since 2026-03-01",
        "audit --path Private",
    ]
    command = commands.add("audit", audit_command, examples=examples)
    command.add_argument("--tail", type=whole_number, metavar="N", help="only the newest N")
    command.add_argument(
        "--kind",
        action="append",
        metavar="KIND",
        help="only entries of this kind, e.g. approval, denial, sent (repeat)",
    )
    command.add_argument(
        "--since", metavar="DATE", help="only from this ISO date, or date and time"
    )
    command.add_argument(
        "--path", metavar="PATH", help="only entries with this file or folder, or a file in it"
    )
    command.add_argument(
        "--verify",
        action="store_true",
        help="check that no entry was modified or removed",
    )


def audit_command(options: argparse.Namespace, out: Output) -> Exit:
    """Print the entries, oldest first: the newest end up at the bottom of the screen."""
    from obsidian_agent.agent.privacy.record import KINDS
    from obsidian_agent.bootstrap import build_session, open_record

    if unknown := set(options.kind or ()) - KINDS:
        raise UsageError(
            f"There is no kind {unknown.pop()!r}.", hint=f"Kinds are {', '.join(sorted(KINDS))}."
        )
    wiring = wiring_of(options)
    runs = build_session(wiring).runs
    if options.verify:
        return _report_verified(runs.verify_record(), out)
    recorded = open_record(wiring).entries()
    ended = {entry.get("runId"): entry for entry in recorded if entry.get("kind") == "run"}
    others = [entry for entry in recorded if entry.get("kind") != "run"]
    from_journal = [{"kind": "run", **history_document(entry)} for entry in runs.history(ALL_RUNS)]

    def time(entry: Mapping[str, Any]) -> str:
        # The journal has the time of a run's preview, which precedes its approval.
        return str((ended.get(entry.get("runId")) or entry).get("time", ""))

    entries = [
        entry for entry in sorted([*from_journal, *others], key=time) if _matches(entry, options)
    ]
    if options.tail is not None:
        entries = entries[-options.tail :] if options.tail > 0 else []
    if out.as_json:
        out.document({"entries": entries})
    for entry in entries:
        for line in _entry_lines(entry):
            out.line(line)
    if not entries:
        has_filter = options.kind or options.since or options.path
        out.line("No entry matches." if has_filter else "No runs yet, and nothing was sent.")
    return Exit.DONE


def _matches(entry: Mapping[str, Any], options: argparse.Namespace) -> bool:
    """Return True if an entry passes the filters of the options."""
    if options.kind and entry["kind"] not in options.kind:
        return False
    if options.since and str(entry.get("time", "")) < options.since:
        return False
    return not options.path or _mentions(entry, options.path.rstrip("/"))


def _mentions(value: object, path: str) -> bool:
    """Return True if a JSON value holds a path, or a path below it."""
    match value:
        case str():
            return value in (path, f"{path}.md") or value.startswith(f"{path}/")
        case Mapping():
            return any(_mentions(item, path) for item in value.values())
        case list() | tuple():
            return any(_mentions(item, path) for item in value)
        case _:
            return False


def _report_verified(verified: Verified, out: Output) -> Exit:
    ok = verified.first_bad is None
    if out.as_json:
        document: dict[str, Any] = {"ok": ok, "entries": verified.entries}
        if not ok:
            document |= {"firstBad": verified.first_bad, "reason": verified.reason}
        out.document(document)
    if ok:
        out.line(f"The record is intact: {verified.entries} entries.")
        return Exit.DONE
    out.line(
        f"Entry {verified.first_bad} of the record is not valid: {verified.reason}. "
        f"Valid entries before it: {verified.entries}."
    )
    return Exit.FAILED


def _entry_lines(entry: Mapping[str, Any]) -> Iterator[str]:
    from obsidian_agent.agent.privacy.record import entry_text

    time = str(entry.get("time", ""))[:19].replace("T", " ")
    if entry["kind"] == "run":
        effects = entry["effects"].items()
        counts = ", ".join(f"{len(names)} {effect}" for effect, names in effects if names)
        undone = " (undone)" if entry["undone"] else ""
        yield (
            f"{time}  run   {entry['status']}{undone}: {entry['goal']} "
            f"[{counts or 'nothing changed'}]"
        )
        return
    if entry["kind"] != "sent":
        yield f"{time}  {entry['kind']}  {entry_text(entry)}"
        return
    yield (
        f"{time}  sent  to {entry.get('provider', '?')} by {entry.get('tool', '?')}: "
        f"{entry.get('characters', 0)} characters"
    )
    for file in entry.get("files") or []:
        yield (
            f"{'':29}{file.get('shared', '')} of {file.get('path', '')}, "
            f"allowed by {file.get('allowedBy', '')}"
        )
