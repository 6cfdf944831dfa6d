"""`threads`: list, search, print, rename and delete the conversations of a vault."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.parser import Commands, add_actions, add_approval
from obsidian_agent.cli.session_factory import wiring_of

if TYPE_CHECKING:
    from obsidian_agent.threads.log_store import ThreadHit, ThreadStore, ThreadSummary


def arguments(commands: Commands) -> None:
    """Add the parser of this command and of its actions."""
    command = commands.add(
        "threads",
        _list,
        examples=["threads --vault ~/Notes", "threads --search cheese", "threads show ID"],
    )
    command.add_argument(
        "--search", metavar="WORDS", help="only conversations that contain all of these words"
    )
    action = add_actions(command, required=False)
    action.add("list", _list, summary="list all conversations")
    action.add("show", _show, summary="print a conversation").add_argument("id", metavar="ID")
    command = action.add("rename", _rename, summary="change the title of a conversation")
    command.add_argument("id", metavar="ID")
    command.add_argument("title", metavar="TITLE")
    command = action.add("delete", _delete, summary="delete a conversation permanently")
    command.add_argument("id", metavar="ID")
    add_approval(command)


def _store(options: argparse.Namespace) -> ThreadStore:
    from obsidian_agent.bootstrap import open_threads

    return open_threads(wiring_of(options))


def _document(thread: ThreadSummary) -> dict[str, Any]:
    names = ("id", "title", "created", "updated", "count", "model", "preview")
    return {name: getattr(thread, name) for name in names}


def _list(options: argparse.Namespace, out: Output) -> Exit:
    store, query = _store(options), options.search
    hits = store.search(query) if query else _all(store)
    if out.as_json:
        documents = [
            _document(hit.thread) | ({"lines": list(hit.lines)} if query else {}) for hit in hits
        ]
        out.document({"threads": documents})
    for hit in hits:
        thread = hit.thread
        out.line(f"{thread.id}  {_time(thread.updated)}  {thread.count:4}  {thread.title}")
        for line in hit.lines:
            out.line(f"    {line}")
    if not hits:
        out.line("No conversation matches." if query else "No conversations yet.")
    return Exit.DONE


def _all(store: ThreadStore) -> list[ThreadHit]:
    from obsidian_agent.threads.log_store import ThreadHit

    return [ThreadHit(thread, ()) for thread in store.summaries()]


def _time(text: str) -> str:
    """Shorten an ISO time to minutes."""
    return text[:16].replace("T", " ")


def _show(options: argparse.Namespace, out: Output) -> Exit:
    thread = _store(options).load(options.id)
    if out.as_json:
        messages = [
            {"role": entry.role, "text": entry.text, "time": entry.time} for entry in thread.entries
        ]
        out.document(
            {
                "id": thread.id,
                "title": thread.title,
                "created": thread.created,
                "updated": thread.updated,
                "said": messages,
            }
        )
    out.line(f"# {thread.title}")
    for entry in thread.entries:
        out.line()
        out.line(f"[{_time(entry.time)}] {entry.role}")
        out.answer(entry.text)
    return Exit.DONE


def _rename(options: argparse.Namespace, out: Output) -> Exit:
    title = _store(options).rename(options.id, options.title)
    if out.as_json:
        out.document({"id": options.id, "title": title})
    out.line(f"Renamed to {title}.")
    return Exit.DONE


def _delete(options: argparse.Namespace, out: Output) -> Exit:
    store = _store(options)
    thread = store.load(options.id)
    if not out.confirmed(f"Delete “{thread.title}” permanently?", options.yes):
        return Exit.NOT_APPROVED
    deleted = store.delete(options.id)
    if out.as_json:
        out.document({"id": options.id, "deleted": deleted})
    out.line("Deleted.")
    return Exit.DONE
