"""Everything a person can ask for by name: `/name` in the message box and an entry of the command palette.

The classes of the main screen list them beside their actions (`Workspace.SLASH`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from obsidian_agent.dataclass import dataclass

if TYPE_CHECKING:
    pass


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
    needs: bool = False


_CALL = re.compile(r"/([a-z]*)(?:\s+(.*))?", re.S)


@dataclass(frozen=True, slots=True)
class Called:
    """A message that calls a command; `command` is None when there is none of this name."""

    name: str
    command: Command | None
    rest: str


def called(message: str, commands: Sequence[Command]) -> Called | None:
    """The command that a message calls; None for any other message (a path that begins with a slash is one)."""
    match = _CALL.fullmatch(message.strip())
    if match is None or not match.group(1):
        return None
    name, rest = match.group(1), (match.group(2) or "").strip()
    return Called(name, next((command for command in commands if command.name == name), None), rest)


def starting_with(text: str, commands: Sequence[Command]) -> list[Command]:
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
