"""`threads`: the conversations of a vault, as files in the state folder; listed, searched, shown, renamed, deleted."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from obsidian_agent.agent.threads.log_store import ThreadHit, ThreadStore, ThreadSummary
from obsidian_agent.agent.threads.state import ThreadState
from obsidian_agent.bootstrap import open_threads
from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.parser import UsageError
from obsidian_agent.cli.session_factory import wiring_of


def threads_command(options: argparse.Namespace, out: Output) -> Exit:
    """One action on the vault's threads; without one: the list."""
    store = open_threads(wiring_of(options))
    match options.action:
        case "show":
            return _show(store.load(options.id), out)
        case "rename":
            title = store.rename(options.id, options.title)
            if out.as_json:
                out.document({"id": options.id, "title": title})
            out.line(f"Renamed to {title}.")
            return Exit.DONE
        case "delete":
            return _delete(store, options, out)
        case _:
            return _list(store, getattr(options, "search", None), out)


def summary_document(thread: ThreadSummary) -> dict[str, Any]:
    """`{id, title, created, updated, count, model, preview}`."""
    names = ("id", "title", "created", "updated", "count", "model", "preview")
    return {name: getattr(thread, name) for name in names}


def _list(store: ThreadStore, query: str | None, out: Output) -> Exit:
    hits = store.search(query) if query else [ThreadHit(each, ()) for each in store.summaries()]
    if out.as_json:
        found = [summary_document(hit.thread) | ({"lines": list(hit.lines)} if query else {}) for hit in hits]
        out.document({"threads": found})
    for hit in hits:
        thread = hit.thread
        out.line(f"{thread.id}  {thread.updated[:16].replace('T', ' ')}  {thread.count:4}  {thread.title}")
        for line in hit.lines:
            out.line(f"    {line}")
    if not hits:
        out.line("Nothing found." if query else "No conversations yet.")
    return Exit.DONE


def _show(thread: ThreadState, out: Output) -> Exit:
    if out.as_json:
        said = [{"role": each.role, "text": each.text, "time": each.time} for each in thread.said]
        out.document({"id": thread.id, "title": thread.title, "created": thread.created, "updated": thread.updated, "said": said})
    out.line(f"# {thread.title}")
    for each in thread.said:
        out.line()
        out.line(f"[{each.time[:16].replace('T', ' ')}] {each.role}")
        out.answer(each.text)
    return Exit.DONE


def _delete(store: ThreadStore, options: argparse.Namespace, out: Output) -> Exit:
    thread = store.load(options.id)
    if not options.yes:
        if out.as_json or not sys.stdin.isatty():
            raise UsageError("A conversation is deleted for good.", hint="Add --yes.")
        out.line(f"Delete “{thread.title}” for good?")
        if not out.agreed("Type yes: "):
            return Exit.NOT_APPROVED
    deleted = store.delete(options.id)
    if out.as_json:
        out.document({"id": options.id, "deleted": deleted})
    out.line("Deleted.")
    return Exit.DONE
