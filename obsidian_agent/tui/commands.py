"""Everything a person can ask for by name, in one table: `/name` in the message box and an entry of the command palette."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from obsidian_agent.tui.screens.main import MainScreen


@dataclass(frozen=True, slots=True)
class Command:
    """A command. `hint` names what may follow the name; `needs` says that something must. `run` gets what followed it."""

    name: str
    title: str
    help: str
    run: Callable[[MainScreen, str], object]
    hint: str = ""
    needs: bool = False


COMMANDS: tuple[Command, ...] = (
    Command("help", "Help", "All keys and commands", lambda main, rest: main.app.run_worker(main.app.run_action("help"), group="help")),
    Command("new", "New conversation", "Ctrl+N", lambda main, rest: main.conversing.new()),
    Command("threads", "Conversations", "Search, go on, rename, delete, export", lambda main, rest: main.conversing.show(rest), "[WORDS]"),
    Command("rename", "Rename the conversation", "Give it a title", lambda main, rest: main.conversing.call(rest), "TITLE", True),
    Command("export", "Export the conversation as a note", "A plan like any other", lambda main, rest: main.conversing.make_note()),
    Command("model", "Choose a model", "For this conversation", lambda main, rest: main.choosing.model(rest), "[PROVIDER/NAME or offline]"),
    Command(
        "context", "What would be sent", "Exactly, with its size and price", lambda main, rest: main.telling.context(rest), "[MESSAGE]"
    ),
    Command("compact", "Make room now", "Older turns are summarised for the model", lambda main, rest: main.room.compact()),
    Command("sent", "What was sent", "To which model, of which notes", lambda main, rest: main.telling.sent()),
    Command("files", "Notes read in this conversation", "Enter opens one", lambda main, rest: main.telling.files()),
    Command("insert", "Insert the answer into the open note", "A plan like any other", lambda main, rest: main.inserting.insert()),
    Command("stats", "Statistics", "Tokens, cost and times", lambda main, rest: main.telling.stats()),
    Command(
        "cache", "What is kept ready", "/cache clear puts away what nobody uses", lambda main, rest: main.telling.cache(rest), "[clear]"
    ),
    Command("settings", "Settings", "With their defaults", lambda main, rest: main.choosing.settings()),
    Command(
        "key", "Keep a key", "For a service, where no vault and no log sees it", lambda main, rest: main.choosing.key(rest), "[PROVIDER]"
    ),
    Command(
        "set", "Change a setting", "Without a value: back to its default", lambda main, rest: main.choosing.set(rest), "NAME [VALUE]", True
    ),
    Command("tasks", "Tasks", "Of this conversation, and how far its plans have come", lambda main, rest: main.action_tasks()),
    Command("repair", "Repair what did not come out", "The model looks at it and proposes how", lambda main, rest: main.sending.repair()),
    Command("trust", "Agents, skills and instructions", "Of this vault: trust them, or don't", lambda main, rest: main.choosing.trust()),
    Command(
        "agent", "Choose an agent of the vault", "For this conversation", lambda main, rest: main.choosing.agent(rest), "[NAME or none]"
    ),
    Command("plugins", "Search community plugins", "Nothing is installed", lambda main, rest: main.telling.plugins(rest), "WORDS", True),
    Command("open", "Open note", "Find a note by a few letters", lambda main, rest: main.action_open_note()),
    Command(
        "actions",
        "Show all actions",
        "Yours among them: find, run, change, delete, import",
        lambda main, rest: main.action_actions(rest),
        "[WORDS]",
    ),
    Command("history", "Show history", "Undo and redo earlier runs", lambda main, rest: main.action_history()),
    Command("plan", "Bring back the last plan", "Preview it again", lambda main, rest: main.deciding.bring_back()),
    Command("retry", "Say the last message again", "After an error, for example", lambda main, rest: main.sending.say_again()),
    Command("selection", "Use the selection, or don't", "Ctrl+T", lambda main, rest: main.action_toggle_selection()),
    Command("clear", "Clear conversation", "On the screen only", lambda main, rest: main.action_clear()),
    Command("quit", "Quit", "Ctrl+Q", lambda main, rest: main.app.run_worker(main.app.run_action("quit"), group="quit")),
)

_CALL = re.compile(r"/([a-z]*)(?:\s+(.*))?", re.S)


@dataclass(frozen=True, slots=True)
class Called:
    """A message that calls a command; `command` is None when there is none of this name."""

    name: str
    command: Command | None
    rest: str


def called(message: str) -> Called | None:
    """The command that a message calls; None for any other message (a path that begins with a slash is one)."""
    match = _CALL.fullmatch(message.strip())
    if match is None or not match.group(1):
        return None
    name, rest = match.group(1), (match.group(2) or "").strip()
    return Called(name, next((command for command in COMMANDS if command.name == name), None), rest)


def completing(text: str) -> list[Command]:
    """The commands that a text which is being typed may become."""
    if not re.fullmatch(r"/[a-z]*", text):
        return []
    wanted = text[1:]
    starting = [command for command in COMMANDS if command.name.startswith(wanted)]
    inside = [command for command in COMMANDS if wanted in command.name and command not in starting]
    return [*starting, *inside]


def markdown() -> str:
    """The table as it stands in docs/keys.md."""
    rows = [
        f"| `/{command.name}{f' {command.hint}' if command.hint else ''}` | {command.title}: {_lower(command.help)} |"
        for command in COMMANDS
    ]
    return "\n".join(["## Commands", "", "| in the message | does |", "|---|---|", *rows]) + "\n"


def _lower(text: str) -> str:
    return text if text[:5] == "Ctrl+" or text[:1] == "/" else text[:1].lower() + text[1:]
