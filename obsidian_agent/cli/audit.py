"""`audit`: what was done to the vault and what of it was sent to a model, in one list by time."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from obsidian_agent.bootstrap import build_session, open_ledger
from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.history import ALL_RUNS, history_document
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.session_factory import wiring_of


def audit_command(options: argparse.Namespace, out: Output) -> Exit:
    """The last entries, oldest first, so that the newest are at the bottom of a screen."""
    wiring = wiring_of(options)
    runs = [{"kind": "run", **history_document(entry)} for entry in build_session(wiring).runs.history(ALL_RUNS)]
    sent = [{"kind": "sent", **entry} for entry in open_ledger(wiring).entries()]
    entries = sorted([*runs, *sent], key=lambda entry: str(entry.get("time", "")))
    if options.tail is not None:
        entries = entries[-options.tail :] if options.tail > 0 else []
    if out.as_json:
        out.document({"entries": entries})
    for entry in entries:
        for line in _told(entry):
            out.line(line)
    if not entries:
        out.line("Nothing was done and nothing was sent.")
    return Exit.DONE


def _told(entry: Mapping[str, Any]) -> Iterator[str]:
    when = str(entry.get("time", ""))[:19].replace("T", " ")
    if entry["kind"] == "run":
        effects = entry["effects"]
        counts = ", ".join(f"{len(names)} {word}" for word, names in effects.items() if names) or "nothing changed"
        yield f"{when}  run   {entry['status']}{' (undone)' if entry['undone'] else ''}: {entry['goal']} [{counts}]"
        return
    files = entry.get("files") or []
    yield f"{when}  sent  to {entry.get('provider', '?')} by {entry.get('tool', '?')}: {entry.get('characters', 0)} characters"
    for each in files:
        yield f"                             {each.get('shared', '')} of {each.get('path', '')}, allowed by {each.get('allowedBy', '')}"
