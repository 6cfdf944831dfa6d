"""Slash commands, which are also entries of the command palette.

The classes of the main screen define them beside their actions (`Workspace.SLASH`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

_UNDO_VERBS = frozenset(("undo", "rückgängig"))
_UNDO_OBJECT = re.compile(
    r"the|my|that|this|it|last|latest|previous|changes?|run|please"
    r"|das|die|den|letzten?|änderung(?:en)?|lauf|bitte|wieder|mache?n?"
)
"""A word beside the verb in a sentence that asks for nothing but undo."""

_CALL = re.compile(r"/([a-z]*)(?:\s+(.*))?", re.S | re.I)


class Command(Struct, frozen=True):
    """A command that runs a Textual action of the main screen, or of the app with `app.` in front.

    `hint` names the argument, which is passed to the action.
    """

    name: str
    title: str
    help: str
    action: str
    hint: str = ""
    requires_argument: bool = False


class CommandCall(Struct, frozen=True):
    """A message that calls a command; `command` is None for an unknown name."""

    name: str
    command: Command | None
    argument: str


def parse_call(message: str, commands: Sequence[Command]) -> CommandCall | None:
    """Return the call in `/name …` or in the bare name of a command, None for other messages.

    A sentence such as “undo the last change” is that name, too. A path that starts with a slash is
    not a call.
    """
    text = message.strip()
    by_name = {command.name: command for command in commands}
    bare = by_name.get("undo" if _asks_for_undo(text) else text.casefold())
    if bare is not None and not bare.requires_argument:
        return CommandCall(bare.name, bare, "")
    match = _CALL.fullmatch(text)
    if match is None or not match.group(1):
        return None
    name, argument = match.group(1).casefold(), (match.group(2) or "").strip()
    return CommandCall(name, by_name.get(name), argument)


def _asks_for_undo(text: str) -> bool:
    words = set(re.findall(r"\w+", text.casefold()))
    others = words - _UNDO_VERBS
    return others != words and all(_UNDO_OBJECT.fullmatch(word) for word in others)


def completions(text: str, commands: Sequence[Command]) -> list[Command]:
    """Return the commands that an incomplete `/name` matches, prefix matches first."""
    if not re.fullmatch(r"/[a-z]*", text):
        return []
    name = text[1:]
    prefixed = [command for command in commands if command.name.startswith(name)]
    others = [command for command in commands if name in command.name and command not in prefixed]
    return [*prefixed, *others]


def markdown(commands: Sequence[Command]) -> str:
    """Return the table of commands in docs/keys.md."""
    lines = ["## Commands", "", "| message | action |", "|---|---|"]
    for command in commands:
        usage = f"/{command.name} {command.hint}".rstrip()
        lines.append(f"| `{usage}` | {command.title}: {_lower(command.help)} |")
    return "\n".join(lines) + "\n"


def _lower(text: str) -> str:
    return text if text[:1] == "/" else text[:1].lower() + text[1:]
