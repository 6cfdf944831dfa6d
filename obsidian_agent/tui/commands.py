"""Everything a person can ask for by name: `/name` in the message box and an entry of the command palette.

The classes of the main screen list them beside their actions (`Workspace.SLASH`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from obsidian_agent.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Command:
    """A command. `action`: what Textual runs for it, on the main screen (`app.` in front: on the app).

    `hint` names what may follow the name, which is then the action's parameter; `needs` says that something must.
    """

    name: str
    title: str
    help: str
    action: str
    hint: str = ""
    requires_argument: bool = False


_CALL = re.compile(r"/([a-z]*)(?:\s+(.*))?", re.S | re.I)


@dataclass(frozen=True, slots=True)
class CommandCall:
    """A message that calls a command; `command` is None when there is none of this name."""

    name: str
    command: Command | None
    rest: str


def parse_call(message: str, commands: Sequence[Command]) -> CommandCall | None:
    """Return the call in `/name …`, or in a message that is the bare name of a command; None for any other message.

    A path that begins with a slash is no call.
    """
    text = message.strip()
    by_name = {command.name: command for command in commands}
    bare = by_name.get(text.casefold())
    if bare is not None and not bare.requires_argument:
        return CommandCall(bare.name, bare, "")
    match = _CALL.fullmatch(text)
    if match is None or not match.group(1):
        return None
    name, rest = match.group(1).casefold(), (match.group(2) or "").strip()
    return CommandCall(name, by_name.get(name), rest)


def completions(text: str, commands: Sequence[Command]) -> list[Command]:
    """The commands that a text which is being typed may become."""
    if not re.fullmatch(r"/[a-z]*", text):
        return []
    wanted = text[1:]
    starting = [command for command in commands if command.name.startswith(wanted)]
    inside = [command for command in commands if wanted in command.name and command not in starting]
    return [*starting, *inside]


def markdown(commands: Sequence[Command]) -> str:
    """The table as it stands in docs/keys.md."""
    rows = [
        f"| `/{command.name}{f' {command.hint}' if command.hint else ''}` | {command.title}: {_lower(command.help)} |"
        for command in commands
    ]
    return "\n".join(["## Commands", "", "| in the message | does |", "|---|---|", *rows]) + "\n"


def _lower(text: str) -> str:
    return text if text[:1] == "/" else text[:1].lower() + text[1:]
