"""What a person should notice before approving, judged by the net changes and never by what a model says."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from obsidian_agent.errors import Problem
from obsidian_agent.plan.active_content import added_content
from obsidian_agent.plan.result import Flag, Instance
from obsidian_agent.tools.core.tool import RunContext
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.views.changes import ChangeSet, Move, NetChange

MANY_FILES = 50
"""Changes from which on their number itself is worth a look."""
FEW_STRANGERS = 10
"""Files that nobody named which are listed one by one."""
SHRINK_BYTES = 200
SHRINK_RATIO = 0.5
"""A note that loses more bytes and is left with less of itself is flagged."""
MOST_NAMES = 5
"""Hosts and the like in one remark."""


def links_astray(change_set: ChangeSet, instances: Sequence[Instance]) -> Iterator[Problem]:
    """Warnings about symbolic links in a folder that moves which lead elsewhere, or nowhere, from its new place."""
    for owned in change_set.operations:
        move = owned.operation
        if not isinstance(move, Move) or move.trash or move.inventory is None:
            continue
        for item in move.inventory.items:
            if item.link and item.hash is not None and _astray(move, item.name, item.hash):
                path, instance = f"{move.new_path}/{item.name}", instances[owned.instance]
                message = f"{path} is a symbolic link to {item.hash}, which leads elsewhere or nowhere from there."
                yield Problem("LINKS_UNRESOLVED", message, path=path).at(instance.step_id, instance.name)


def _astray(move: Move, name: str, target: str) -> bool:
    """Whether a link at `name` in a folder that moves means another place afterwards. An absolute target is not looked into."""
    if target.startswith("/"):
        return False
    old, new = (posixpath.normpath(posixpath.join(posixpath.dirname(f"{folder}/{name}"), target)) for folder in (move.path, move.new_path))
    inside = old == move.path.text or old.startswith(f"{move.path}/")
    return new != (move.new_path.text + old[len(move.path.text) :] if inside else old)


def flags_of(
    changes: Sequence[NetChange], read: Callable[[VaultPath], bytes], context: RunContext, instruction: str | None
) -> tuple[Flag, ...]:
    """The flags of a change set, over contents that `read` gives. `instruction` is what the person said, when the plan came from words."""
    found: list[Flag] = []
    touched = [change for change in changes if change.kind != "mkdir"]
    if len(touched) > MANY_FILES:
        found.append(Flag("manyFiles", f"{len(touched)} files and folders change."))
    arriving = {change.new_path.key: change for change in touched if change.new_path is not None}
    for change in touched:
        found.extend(_content_flags(change, read) if not change.folder else _folder_flags(change))
        if change.kind == "delete" and not change.folder and (other := arriving.get(change.path.key)) is not None:
            found.append(Flag("shrink", f"It goes to .trash: {other.path} takes its place.", change.path.text))
    if instruction is not None:
        found.extend(_not_named(touched, context, instruction))
    return tuple(found)


_DESTRUCTIVE: Final = re.compile(r"delet|remov|trash|eras|wipe|purge|clear|reset|revert|overwrit|uninstall", re.IGNORECASE)
"""In the id or the name of a command that takes something away, as Obsidian's own and most plugins call theirs."""


def opaque_flags(instances: Iterable[Instance], context: RunContext) -> tuple[Flag, ...]:
    """One flag for each call whose effect nobody can show beforehand, with the name of the command, and whether that takes something away."""

    def detail(item: Instance) -> str:
        id = str(item.args.get("id", ""))
        name = next((command.name for command in context.commands() if command.id == id), id)
        what = "It may delete things, and what" if _DESTRUCTIVE.search(f"{id} {name}") else "What"
        return f"{item.name} runs the command “{name}” ({id}). {what} it does cannot be previewed or undone."

    return tuple(Flag("opaque", detail(item)) for item in instances if item.opaque and item.state == "ready")


def _folder_flags(change: NetChange) -> Iterator[Flag]:
    """A folder is one change however much is in it, so what goes away with it is counted."""
    if change.kind == "delete" and change.files:
        files = f"{change.files} file{'s' if change.files > 1 else ''}"
        yield Flag("manyFiles", f"The folder goes to .trash with {files} in it.", change.path.text)


def _content_flags(change: NetChange, read: Callable[[VaultPath], bytes]) -> Iterator[Flag]:
    content = change.content
    if content is None:
        return
    path = (change.new_path or change.path).text
    before = read(change.before) if change.before is not None else b""
    # Obsidian fetches what a note shows when the note is opened: that is how text leaves a vault unasked.
    active = added_content(path, content, before, change.before.text if change.before is not None else None)
    if active.hosts:
        yield Flag("remoteUrl", f"Obsidian would load from {_few(active.hosts)}.", path)
    if active.code:
        yield Flag("runsAsCode", f"It contains text that plugins may run as code: {_few(active.code)}.", path)
    lost = len(before) - len(content)
    if lost > SHRINK_BYTES and len(content) < SHRINK_RATIO * len(before):
        yield Flag("shrink", f"It loses {round(100 * lost / len(before))} % of its text.", path)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST_NAMES]) + (f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else "")


def _not_named(changes: Sequence[NetChange], context: RunContext, instruction: str) -> Iterator[Flag]:
    """Existing files, and folders that move or go, that neither the words, nor the open note, nor the selection point at; a named folder
    names what is in it."""
    said = f"{instruction}\n{context.selection.text if context.selection else ''}".casefold()
    existing = [change for change in changes if change.before is not None or change.folder]
    strangers = [change.path for change in existing if change.path != context.active_file and not _named(change, said)]
    if len(strangers) > FEW_STRANGERS:
        yield Flag("notNamed", f"The instruction does not name {len(strangers)} of the files that change, such as {strangers[0]}.")
        return
    for path in strangers:
        yield Flag("notNamed", "The instruction does not name it.", path.text)


def _named(change: NetChange, said: str) -> bool:
    path = change.path
    return path.stem.casefold() in said or any(part.casefold() in said for part in path.parts[:-1])
