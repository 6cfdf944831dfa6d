"""Every key of the terminal app in one table: bindings, footer, help screen and docs/keys.md all come from here.

Each entry has an id by which it can be rebound (`App.set_keymap`). Keys that a terminal cannot tell apart (ctrl+i is tab, ctrl+m is
enter, ctrl+h is backspace) are not used.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Literal

from textual.binding import Binding, BindingType

from obsidian_agent import terminal_text
from obsidian_agent.dataclass import dataclass, replace

if TYPE_CHECKING:
    from textual.dom import DOMNode

Place = Literal[
    "app",
    "main",
    "threads",
    "settings",
    "trust",
    "tasks",
    "prompt",
    "note",
    "plan",
    "editor",
    "run",
    "result",
    "list",
    "diff",
    "card",
    "candidates",
    "form",
    "saved",
    "history",
    "conflicts",
    "share",
    "dialog",
    "find",
    "confirm",
    "recovery",
    "saving",
    "option",
    "report",
    "error",
    "conversation",
]

PLACES: dict[Place, str] = {
    "app": "Everywhere",
    "main": "Main screen",
    "threads": "Conversations",
    "settings": "Settings",
    "trust": "Agents, skills and instructions",
    "tasks": "Tasks of a conversation",
    "prompt": "Message",
    "note": "Note",
    "plan": "Plan",
    "editor": "Plan or arguments as JSON",
    "run": "While it runs",
    "result": "Result",
    "list": "Lists",
    "diff": "Changes of a file",
    "card": "The first start",
    "candidates": "What did you mean?",
    "form": "Form of an action",
    "saved": "Actions",
    "history": "History",
    "conflicts": "Undo with conflicts",
    "share": "May this be sent?",
    "dialog": "Dialogs",
    "find": "Finding by a few letters",
    "confirm": "A question",
    "recovery": "A run that was interrupted",
    "saving": "Saving a plan as an action",
    "option": "One of a few values",
    "report": "Reports",
    "error": "An error that nobody expected",
    "conversation": "Conversation, an entry that has the focus",
}


@dataclass(frozen=True, slots=True)
class Key:
    """One key: `keys` as Textual names them, comma-separated; `label` for the footer, `help` for the help screen and docs/keys.md."""

    id: str
    keys: str
    action: str
    label: str
    help: str
    place: Place
    footer: bool = True
    priority: bool = False
    display: str | None = None

    def binding(self) -> Binding:
        """The Textual binding."""
        return Binding(
            self.keys,
            self.action,
            self.label,
            show=self.footer,
            key_display=self.display,
            priority=self.priority,
            tooltip=self.help,
            id=self.id,
        )


KEYS: tuple[Key, ...] = (
    Key("app.help", "f1", "help", "Help", "All keys", "app"),
    Key("app.palette", "ctrl+p", "command_palette", "Menu", "Command palette: everything by name", "app", footer=False),
    Key("app.quit", "ctrl+q", "quit", "Quit", "Quit; asks first while a plan is being applied", "app", footer=False, priority=True),
    Key("app.copy", "ctrl+c", "copy_or_interrupt", "Copy", "Copy the selected text, else cancel what is going on", "app", footer=False),
    Key(
        "main.saved",
        "f2",
        "actions",
        "Actions",
        "All actions, yours among them: find, run, change, delete, export, import",
        "main",
        footer=False,
    ),
    Key("main.history", "f3", "history", "History", "Earlier runs: undo and redo", "main", footer=False),
    Key("main.threads", "f4", "threads", "Conversations", "Conversations: search, go on, rename, delete, export", "main", footer=False),
    Key("main.new", "ctrl+n", "new_thread", "New", "Begin a new conversation; what goes on in this one goes on", "main", footer=False),
    Key("main.settings", "f5", "settings", "Settings", "Settings", "main", footer=False),
    Key("main.tasks", "f8", "tasks", "Tasks", "Tasks and plans of this conversation", "main", footer=False),
    Key("main.open", "ctrl+o", "open_note", "Note", "Open a note by a few letters of its name", "main", display="^o", priority=True),
    Key("main.selection", "ctrl+t", "toggle_selection", "Selection", "Send the selection of the note along, or don't", "main", False, True),
    Key("main.pane", "f6", "next_pane", "Pane", "Go to the next pane: chat, note, plan", "main", priority=True),
    Key("main.clear", "ctrl+l", "clear", "Clear", "Clear the conversation on the screen", "main", footer=False),
    Key("main.cancel", "escape", "cancel", "Cancel", "Cancel planning or the run; else back to the message", "main", footer=False),
    Key("threads.rename", "e", "rename", "Rename", "Rename the conversation", "threads"),
    Key("threads.delete", "delete,d", "delete", "Delete", "Delete the conversation for good; asks first", "threads"),
    Key("threads.export", "x", "export", "Export", "Make a note of the conversation, as a plan", "threads"),
    Key("threads.new", "ctrl+n", "new", "New", "Begin a new conversation", "threads", display="^n"),
    Key("threads.search", "slash", "search", "Search", "Search in titles and words", "threads", display="/"),
    Key("threads.back", "escape", "back", "Close", "From the search to the list, from the list away", "threads", footer=False),
    Key("tasks.tick", "space", "tick", "Tick", "Tick the task, or untick it", "tasks"),
    Key("tasks.undo", "u", "undo", "Undo", "Undo the run of the plan", "tasks"),
    Key("tasks.step", "b", "step", "Back to a step", "Undo the run of the plan back to the end of one of its steps", "tasks"),
    Key("trust.trust", "t", "trust", "Trust", "Trust the file with the text that is shown", "trust"),
    Key("trust.distrust", "d", "distrust", "Don't trust", "Listen to the file no longer", "trust"),
    Key("settings.default", "delete,d", "default", "Default", "Back to the default", "settings"),
    Key(
        "prompt.complete",
        "tab",
        "form",
        "Form",
        "Take the highlighted suggestion behind / or @ (also Enter); else open the form of the first action under the message",
        "prompt",
        footer=False,
    ),
    Key("prompt.send", "enter", "send", "Send", "Send the message", "prompt", display="⏎"),
    Key("prompt.newline", "ctrl+j,shift+enter", "newline", "New line", "New line in the message", "prompt", display="^j"),
    Key("prompt.older", "alt+up", "older", "Earlier message", "Bring back an earlier message", "prompt", footer=False),
    Key("prompt.newer", "alt+down", "newer", "Later message", "Go on to a later message", "prompt", footer=False),
    Key(
        "note.select",
        "shift+up,shift+down",
        "",
        "Select",
        "Select lines (also shift+left, shift+right, ctrl+shift+left, the mouse)",
        "note",
    ),
    Key("note.all", "ctrl+a", "select_whole", "Select all", "Select the whole note", "note", footer=False),
    Key("note.line", "x", "select_line", "Select line", "Select the line; again: one line more", "note"),
    Key("note.none", "escape", "leave", "Message", "Back to the message; the selection stays", "note", footer=False),
    Key("note.outside", "o", "outside", "Open in Obsidian", "Open the note in Obsidian, at this line", "note", footer=False),
    Key("plan.approve", "a", "approve", "Approve", "Approve and apply exactly what is shown", "plan"),
    Key("plan.reject", "r", "reject", "Reject", "Reject the plan; nothing is changed", "plan"),
    Key("plan.edit", "e", "edit", "Edit", "Edit the plan as JSON; it is previewed again", "plan"),
    Key("plan.toggle", "space", "toggle_step", "Step", "Leave the highlighted step out, or put it back; previewed again", "plan"),
    Key("plan.undo", "u", "undo", "Undo last run", "Undo the last run", "plan", footer=False),
    Key("plan.outside", "o", "outside", "Open in Obsidian", "Open the highlighted file in Obsidian", "plan", footer=False),
    Key("plan.cancel", "escape", "cancel", "Cancel", "Stop the preview, or reject the plan", "plan", footer=False),
    Key(
        "editor.save",
        "ctrl+s",
        "save",
        "Use it",
        "Use what was edited: a plan is previewed again, a look around is asked for again",
        "editor",
        priority=True,
        display="^s",
    ),
    Key(
        "editor.close",
        "escape",
        "close",
        "Keep the old",
        "Close without a change; asks first when something was edited",
        "editor",
        priority=True,
    ),
    Key("run.cancel", "escape", "cancel", "Cancel", "Stop after the file that is being written", "run"),
    Key("result.undo", "u", "undo", "Undo", "Undo this run", "result"),
    Key("result.save", "m", "save_action", "Save", "Save the plan as an action that runs without a model", "result"),
    Key("result.outside", "o", "outside", "Open in Obsidian", "Open the highlighted note in Obsidian", "result", footer=False),
    Key("result.close", "escape", "close", "Close", "Back to the message", "result"),
    Key("list.up", "up,k", "cursor(-1)", "Up", "Up", "list", footer=False),
    Key("list.down", "down,j", "cursor(1)", "Down", "Down", "list", footer=False),
    Key("list.page_up", "pageup", "page(-1)", "Page up", "Page up", "list", footer=False),
    Key("list.page_down", "pagedown", "page(1)", "Page down", "Page down", "list", footer=False),
    Key("list.first", "home,g", "first", "First", "First entry", "list", footer=False),
    Key("list.last", "end,G", "last", "Last", "Last entry", "list", footer=False),
    Key("list.next", "n", "section(1)", "Next section", "Next section", "list", footer=False),
    Key("list.previous", "p", "section(-1)", "Previous section", "Previous section", "list", footer=False),
    Key("list.choose", "enter", "choose", "Open", "Open or choose the highlighted entry", "list", footer=False),
    Key("diff.next", "n", "change(1)", "Next change", "Next change", "diff"),
    Key("diff.previous", "p", "change(-1)", "Previous change", "Previous change", "diff"),
    Key("diff.close", "escape,q", "close", "Back", "Back to the plan", "diff"),
    Key("card.use", "1", "pick(0)", "Use it", "Use the model that runs on this machine", "card", footer=False),
    Key("card.menu", "2", "pick(1)", "Only the menu", "Use no model", "card", footer=False),
    Key("card.service", "3", "pick(2)", "A service", "Use a service, with a key", "card", footer=False),
    Key("candidates.first", "1", "pick(0)", "First", "The first", "candidates", footer=False),
    Key("candidates.second", "2", "pick(1)", "Second", "The second", "candidates", footer=False),
    Key("candidates.third", "3", "pick(2)", "Third", "The third", "candidates", footer=False),
    Key("candidates.change", "e", "change", "Change values", "Open the form though nothing is missing", "candidates"),
    Key("form.next", "tab,shift+tab", "", "Next field", "The next field, the field before", "form"),
    Key("form.names", "down", "", "Names", "Names of the vault for the field; Enter or Tab takes one", "form"),
    Key("form.go", "enter", "", "Go on", "To what is still missing, then on", "form"),
    Key("form.submit", "ctrl+s", "submit", "Go on", "On from any field", "form", display="^s"),
    Key("saved.search", "slash", "search", "Find", "Find an action by a few letters (Tab: from there to the list)", "saved", display="/"),
    Key("saved.rename", "e", "rename", "Rename", "Rename an action of yours", "saved"),
    Key("saved.change", "c", "change", "Change", "Change the document of an action of yours", "saved"),
    Key("saved.delete", "delete,d", "delete", "Delete", "Delete an action of yours; asks first", "saved"),
    Key("saved.export", "x", "export", "Export", "Write an action of yours to a JSON file", "saved"),
    Key("saved.import", "i", "import_file", "Import", "Read an action from a JSON file", "saved"),
    Key("history.undo", "u", "undo", "Undo", "Undo the highlighted run", "history"),
    Key("history.step", "b", "step", "Back to a step", "Undo the highlighted run back to the end of one of its steps", "history"),
    Key("history.redo", "y", "redo", "Redo", "Redo what was undone last", "history"),
    Key("conflicts.skip", "s", "choose('skip')", "Keep mine", "Leave this file as it is now", "conflicts"),
    Key("conflicts.force", "f", "choose('force')", "Restore anyway", "Put the earlier content over this file", "conflicts"),
    Key("conflicts.apply", "ctrl+s", "apply", "Undo now", "Undo with these choices", "conflicts"),
    Key("share.switch", "space", "switch", "Switch", "Send the highlighted item, or keep it", "share"),
    Key("share.once", "a", "send('once')", "Once", "Send what is switched on, this time", "share"),
    Key("share.thread", "t", "send('thread')", "Chat", "Send it, and again in this conversation without asking", "share"),
    Key("share.folder", "f", "send('folder')", "Folder", "Send it, and everything in this folder in this conversation", "share"),
    Key("share.edit", "e", "edit", "Edit", "Change the arguments: the tool looks again, and you are asked again", "share"),
    Key("share.no", "escape,r", "close", "Nothing", "Send nothing", "share"),
    Key("share.all", "ctrl+a", "all", "All", "Switch all on", "share", footer=False),
    Key("share.none", "ctrl+d", "none", "None", "Switch all off", "share", footer=False),
    Key("dialog.close", "escape", "close", "Close", "Close without an answer", "dialog"),
    Key("find.down", "down", "move(1)", "Down", "The next one", "find", False, True),
    Key("find.up", "up", "move(-1)", "Up", "The one before", "find", False, True),
    Key("find.page_down", "pagedown", "page(1)", "Page down", "Page down", "find", False, True),
    Key("find.page_up", "pageup", "page(-1)", "Page up", "Page up", "find", False, True),
    Key("confirm.yes", "y", "answer(True)", "Yes", "Yes", "confirm"),
    Key("confirm.no", "n", "answer(False)", "No", "No", "confirm"),
    Key("confirm.switch", "left,right", "app.focus_next", "Switch", "The other answer", "confirm", footer=False),
    Key("recovery.back", "b", "pick('back')", "Roll back", "Restore every file that the run had changed", "recovery"),
    Key("recovery.finish", "f", "pick('finish')", "Finish", "Do what was approved and is still missing", "recovery"),
    Key("recovery.later", "escape", "close", "Later", "Decide at the next start", "recovery"),
    Key("saving.save", "ctrl+s", "save", "Save", "Save", "saving"),
    Key("option.before", "left,up", "switch(-1)", "Before", "The value before", "option", footer=False),
    Key("option.next", "right,down,space", "switch(1)", "Switch", "The next value", "option"),
    Key("option.go", "enter", "submit", "Go on", "To what is still missing, then on", "option", footer=False),
    Key("report.close", "q,enter", "close", "Close", "Close", "report", footer=False),
    Key("error.copy", "c", "copy_report", "Copy report", "Copy a report without note text, paths or keys", "error"),
    Key("error.close", "enter", "close", "Close", "Close", "error", footer=False),
    Key("conversation.open", "enter", "open", "Show", "Show earlier entries, all of the thinking, or the note", "conversation"),
    Key("conversation.outside", "o", "outside", "Open in Obsidian", "Open the note in Obsidian", "conversation"),
)

BY_ID = {key.id: key for key in KEYS}


def bindings(place: Place, *, without: Collection[str] = ()) -> list[BindingType]:
    """The bindings of one place, but those with the ids in `without`.

    Entries without an action only describe keys that a widget has anyway.
    """
    return [key.binding() for key in KEYS if key.place == place and key.action and key.id not in without]


def binding(key_id: str, label: str) -> Binding:
    """The binding of one entry, in the footer under a name that fits the place."""
    return replace(BY_ID[key_id], label=label, footer=True, display="⏎").binding()


HELP = replace(BY_ID["app.help"], action="app.help", footer=False).binding()
"""For modal screens: Textual lets no key of the app through to them."""


def in_force(node: DOMNode, key_id: str) -> str:
    """The keys of an entry as the app of this node has them, comma-separated."""
    keymap = node.app._keymap  # Textual gives it back nowhere else
    return keymap.get(key_id, BY_ID[key_id].keys)


def shown(node: DOMNode, key_id: str) -> str:
    """The first key of an entry as people read it, as the app of this node has it."""
    return readable(in_force(node, key_id).split(",")[0]).replace("Escape", "Esc")


def unknown_ids(keymap: Mapping[str, str]) -> str:
    """What to say about entries of a keymap that name no key; "" when all do."""
    unknown = [key_id for key_id in keymap if key_id not in BY_ID]
    if not unknown:
        return ""
    from obsidian_agent.plan.nearest import did_you_mean

    names = ", ".join(f"“{terminal_text.shortened(key_id, 60)}”{did_you_mean(key_id, BY_ID)}" for key_id in unknown[:3])
    return f"The setting of the keys names no key of this program: {names} docs/keys.md lists all ids."


def readable(keys: str) -> str:
    """Keys as people write them: `ctrl+j,shift+enter` becomes `Ctrl+J or Shift+Enter`."""
    return " or ".join(
        "+".join(part if len(part) == 1 and "+" not in key else part.capitalize() for part in key.split("+")) for key in keys.split(",")
    )


def markdown() -> str:
    """The keys as docs/keys.md lists them."""
    parts = [
        "# Keys",
        "",
        "Every key has an id by which it can be given another key. Letters act only in the pane that has the focus: "
        "typing in the message never approves anything.",
    ]
    for place, title in PLACES.items():
        parts += ["", f"## {title}", "", "| key | does | id |", "|---|---|---|"]
        parts += [f"| {readable(key.keys)} | {key.help} | `{key.id}` |" for key in KEYS if key.place == place]
    return "\n".join(parts) + "\n\n"
