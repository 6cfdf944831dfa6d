"""Everything a person can ask for by name, in one table: `/name` in the message box and an entry of the command palette."""

from __future__ import annotations

import re
from dataclasses import dataclass


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


COMMANDS: tuple[Command, ...] = (
    Command("help", "Help", "All keys and commands", "app.help"),
    Command("new", "New conversation", "What goes on in this one goes on", "new_thread"),
    Command("threads", "Conversations", "Search, go on, rename, delete, export", "threads", "[WORDS]"),
    Command("rename", "Rename the conversation", "Give it a title", "rename_thread", "TITLE", needs=True),
    Command("export", "Export the conversation as a note", "A plan like any other", "export_thread"),
    Command("model", "Choose a model", "For this conversation", "choose_model", "[PROVIDER/NAME or offline]"),
    Command("context", "What would be sent", "Exactly, with its size and price", "show_context", "[MESSAGE]"),
    Command("compact", "Make room now", "Older turns are summarised for the model", "compact"),
    Command("sent", "What was sent", "To which model, of which notes", "show_sent"),
    Command("files", "Notes read in this conversation", "Enter opens one", "show_files"),
    Command("insert", "Insert the answer into the open note", "A plan like any other", "insert_answer"),
    Command("stats", "Statistics", "Tokens, cost and times", "show_stats"),
    Command("cache", "What is kept ready", "/cache clear puts away what nobody uses", "show_cache", "[clear]"),
    Command("settings", "Settings", "With their defaults", "settings"),
    Command("key", "Keep a key", "For a service, where no vault and no log sees it", "keep_key", "[PROVIDER]"),
    Command("set", "Change a setting", "Without a value: back to its default", "change_setting", "NAME [VALUE]", needs=True),
    Command("tasks", "Tasks", "Of this conversation, and how far its plans have come", "tasks"),
    Command("repair", "Repair what did not come out", "The model looks at it and proposes how", "repair"),
    Command("trust", "Agents, skills and instructions", "Of this vault: trust them, or don't", "trust"),
    Command(
        "agent",
        "Choose an agent",
        "Of the vault, or another program such as opencode; for this conversation",
        "choose_agent",
        "[NAME or none]",
    ),
    Command("plugins", "Search community plugins", "Nothing is installed", "search_plugins", "WORDS", needs=True),
    Command("open", "Open note", "Find a note by a few letters", "open_note"),
    Command("actions", "Show all actions", "Yours among them: find, run, change, delete, import", "actions", "[WORDS]"),
    Command("history", "Show history", "Undo and redo earlier runs", "history"),
    Command("plan", "Bring back the last plan", "Preview it again", "bring_back_plan"),
    Command("retry", "Say the last message again", "After an error, for example", "say_again"),
    Command("selection", "Use the selection, or don't", "Of the note, in the next message", "toggle_selection"),
    Command("clear", "Clear conversation", "On the screen only", "clear"),
    Command("quit", "Quit", "Asks first while a plan is being applied", "app.quit"),
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


def starting_with(text: str) -> list[Command]:
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
    return text if text[:1] == "/" else text[:1].lower() + text[1:]
