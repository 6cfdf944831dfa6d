"""Every key of the terminal app in one table: bindings, footer, help screen and docs/keys.md all come from here.

Each entry has an id by which it can be rebound (`App.set_keymap`). Keys that a terminal cannot tell apart (ctrl+i is tab, ctrl+m is
enter, ctrl+h is backspace) are not used.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from textual.binding import Binding, BindingType

from obsidian_agent import terminal_text
from obsidian_agent.dataclass import dataclass, replace

if TYPE_CHECKING:
    from textual.dom import DOMNode

CONTEXTS: dict[str, str] = {
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
    "outcome": "One run of the history",
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
    """One key: `keys` as Textual names them, comma-separated; `label` for the footer, `help` for the help screen and docs/keys.md.

    The id begins with the place where the key counts, one of `CONTEXTS`.
    """

    id: str
    keys: str
    action: str
    label: str
    help: str
    footer: bool = True
    priority: bool = False
    display: str | None = None

    @property
    def place(self) -> str:
        """Where the key counts."""
        return self.id.partition(".")[0]

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
    Key("app.help", "f1", "help", "Help", "All keys"),
    Key(
        "app.palette",
        "ctrl+p",
        "command_palette",
        "Menu",
        "Command palette: everything by name",
        footer=False,
    ),
    Key(
        "app.quit",
        "ctrl+q",
        "quit",
        "Quit",
        "Quit; asks first while a plan is being applied",
        footer=False,
        priority=True,
    ),
    Key(
        "app.copy",
        "ctrl+c",
        "copy_or_interrupt",
        "Copy",
        "Copy the selected text, else cancel what is going on",
        footer=False,
    ),
    Key(
        "main.saved",
        "f2",
        "actions",
        "Actions",
        "All actions, yours among them: find, run, change, delete, export, import",
        footer=False,
    ),
    Key("main.history", "f3", "history", "History", "Earlier runs: undo and redo", footer=False),
    Key(
        "main.threads",
        "f4",
        "threads",
        "Conversations",
        "Conversations: search, go on, rename, delete, export",
        footer=False,
    ),
    Key(
        "main.new",
        "ctrl+n",
        "new_thread",
        "New",
        "Begin a new conversation; what goes on in this one goes on",
        footer=False,
    ),
    Key("main.settings", "f5", "settings", "Settings", "Settings", footer=False),
    Key("main.tasks", "f8", "tasks", "Tasks", "Tasks and plans of this conversation", footer=False),
    Key(
        "main.rewind",
        "f9",
        "rewind",
        "Turns",
        "Turns of this conversation: go back to the end of one",
        footer=False,
    ),
    Key(
        "main.open",
        "ctrl+o",
        "open_note",
        "Note",
        "Open a note by a few letters of its name",
        display="^o",
        priority=True,
    ),
    Key(
        "main.selection",
        "ctrl+t",
        "toggle_selection",
        "Selection",
        "Send the selection of the note along, or don't",
        False,
        True,
    ),
    Key(
        "main.pane",
        "f6",
        "next_pane",
        "Pane",
        "Go to the next pane: chat, note, plan",
        priority=True,
    ),
    Key(
        "main.clear",
        "ctrl+l",
        "clear",
        "Clear",
        "Clear the conversation on the screen",
        footer=False,
    ),
    Key(
        "main.cancel",
        "escape",
        "cancel",
        "Cancel",
        "Cancel planning or the run; else back to the message",
        footer=False,
    ),
    Key("threads.rename", "e", "rename", "Rename", "Rename the conversation"),
    Key(
        "threads.delete",
        "delete,d",
        "delete",
        "Delete",
        "Delete the conversation for good; asks first",
    ),
    Key("threads.export", "x", "export", "Export", "Make a note of the conversation, as a plan"),
    Key("threads.new", "ctrl+n", "new", "New", "Begin a new conversation", display="^n"),
    Key("threads.search", "slash", "search", "Search", "Search in titles and words", display="/"),
    Key(
        "threads.back",
        "escape",
        "back",
        "Close",
        "From the search to the list, from the list away",
        footer=False,
    ),
    Key("tasks.tick", "space", "tick", "Tick", "Tick the task, or untick it"),
    Key("tasks.undo", "u", "undo", "Undo", "Undo the run of the plan"),
    Key(
        "tasks.step",
        "b",
        "step",
        "Back to a step",
        "Undo the run of the plan back to the end of one of its steps",
    ),
    Key("trust.trust", "t", "trust", "Trust", "Trust the file with the text that is shown"),
    Key("trust.distrust", "d", "distrust", "Don't trust", "Listen to the file no longer"),
    Key("settings.default", "delete,d", "default", "Default", "Back to the default"),
    Key(
        "prompt.complete",
        "tab",
        "form",
        "Form",
        "Take the highlighted suggestion behind / or @ (also Enter); else open the form of the first action under the message",
        footer=False,
    ),
    Key("prompt.send", "enter", "send", "Send", "Send the message", display="⏎"),
    Key(
        "prompt.newline",
        "ctrl+j,shift+enter",
        "newline",
        "New line",
        "New line in the message",
        display="^j",
    ),
    Key(
        "prompt.older",
        "alt+up",
        "older",
        "Earlier message",
        "Bring back an earlier message",
        footer=False,
    ),
    Key(
        "prompt.newer",
        "alt+down",
        "newer",
        "Later message",
        "Go on to a later message",
        footer=False,
    ),
    Key(
        "note.select",
        "shift+up,shift+down",
        "",
        "Select",
        "Select lines (also shift+left, shift+right, ctrl+shift+left, the mouse)",
    ),
    Key("note.all", "ctrl+a", "select_whole", "Select all", "Select the whole note", footer=False),
    Key("note.line", "x", "select_line", "Select line", "Select the line; again: one line more"),
    Key(
        "note.none",
        "escape",
        "leave",
        "Message",
        "Back to the message; the selection stays",
        footer=False,
    ),
    Key(
        "note.outside",
        "o",
        "outside",
        "Open in Obsidian",
        "Open the note in Obsidian, at this line",
        footer=False,
    ),
    Key("plan.approve", "a", "approve", "Approve", "Approve and apply exactly what is shown"),
    Key("plan.reject", "r", "reject", "Reject", "Reject the plan; nothing is changed"),
    Key("plan.edit", "e", "edit", "Edit", "Edit the plan as JSON; it is previewed again"),
    Key(
        "plan.toggle",
        "space",
        "toggle_step",
        "Step",
        "Leave the highlighted step out, or put it back; previewed again",
    ),
    Key("plan.undo", "u", "undo", "Undo last run", "Undo the last run", footer=False),
    Key(
        "plan.outside",
        "o",
        "outside",
        "Open in Obsidian",
        "Open the highlighted file in Obsidian",
        footer=False,
    ),
    Key(
        "plan.cancel",
        "escape",
        "cancel",
        "Cancel",
        "Stop the preview, or reject the plan",
        footer=False,
    ),
    Key(
        "editor.save",
        "ctrl+s",
        "save",
        "Use it",
        "Use what was edited: a plan is previewed again, a look around is asked for again",
        priority=True,
        display="^s",
    ),
    Key(
        "editor.close",
        "escape",
        "close",
        "Keep the old",
        "Close without a change; asks first when something was edited",
        priority=True,
    ),
    Key("run.cancel", "escape", "cancel", "Cancel", "Stop after the file that is being written"),
    Key("result.undo", "u", "undo", "Undo", "Undo this run"),
    Key(
        "result.save",
        "m",
        "save_action",
        "Save",
        "Save the plan as an action that runs without a model",
    ),
    Key(
        "result.outside",
        "o",
        "outside",
        "Open in Obsidian",
        "Open the highlighted note in Obsidian",
        footer=False,
    ),
    Key("result.close", "escape", "close", "Close", "Back to the message"),
    Key("list.up", "up,k", "cursor(-1)", "Up", "Up", footer=False),
    Key("list.down", "down,j", "cursor(1)", "Down", "Down", footer=False),
    Key("list.page_up", "pageup", "page(-1)", "Page up", "Page up", footer=False),
    Key("list.page_down", "pagedown", "page(1)", "Page down", "Page down", footer=False),
    Key("list.first", "home,g", "first", "First", "First entry", footer=False),
    Key("list.last", "end,G", "last", "Last", "Last entry", footer=False),
    Key("list.next", "n", "section(1)", "Next section", "Next section", footer=False),
    Key("list.previous", "p", "section(-1)", "Previous section", "Previous section", footer=False),
    Key(
        "list.choose",
        "enter",
        "choose",
        "Open",
        "Open or choose the highlighted entry",
        footer=False,
    ),
    Key("diff.next", "n", "change(1)", "Next change", "Next change"),
    Key("diff.previous", "p", "change(-1)", "Previous change", "Previous change"),
    Key("diff.close", "escape,q", "close", "Back", "Back to the plan"),
    Key(
        "card.use",
        "1",
        "pick(0)",
        "Use it",
        "Use the model that runs on this machine",
        footer=False,
    ),
    Key("card.menu", "2", "pick(1)", "Only the menu", "Use no model", footer=False),
    Key("card.service", "3", "pick(2)", "A service", "Use a service, with a key", footer=False),
    Key("candidates.first", "1", "pick(0)", "First", "The first", footer=False),
    Key("candidates.second", "2", "pick(1)", "Second", "The second", footer=False),
    Key("candidates.third", "3", "pick(2)", "Third", "The third", footer=False),
    Key(
        "candidates.change",
        "e",
        "change",
        "Change values",
        "Open the form though nothing is missing",
    ),
    Key("form.next", "tab,shift+tab", "", "Next field", "The next field, the field before"),
    Key(
        "form.names",
        "down",
        "",
        "Names",
        "Names of the vault for the field; Enter or Tab takes one",
    ),
    Key("form.go", "enter", "", "Go on", "To what is still missing, then on"),
    Key("form.submit", "ctrl+s", "submit", "Go on", "On from any field", display="^s"),
    Key(
        "saved.search",
        "slash",
        "search",
        "Find",
        "Find an action by a few letters (Tab: from there to the list)",
        display="/",
    ),
    Key("saved.rename", "e", "rename", "Rename", "Rename an action of yours"),
    Key("saved.change", "c", "change", "Change", "Change the document of an action of yours"),
    Key("saved.delete", "delete,d", "delete", "Delete", "Delete an action of yours; asks first"),
    Key("saved.export", "x", "export", "Export", "Write an action of yours to a JSON file"),
    Key("saved.import", "i", "import_file", "Import", "Read an action from a JSON file"),
    Key("history.undo", "u", "undo", "Undo", "Undo the highlighted run"),
    Key(
        "history.step",
        "b",
        "step",
        "Back to a step",
        "Undo the highlighted run back to the end of one of its steps",
    ),
    Key("history.redo", "y", "redo", "Redo", "Redo what was undone last"),
    Key("outcome.undo", "u", "undo", "Undo", "Undo this run"),
    Key(
        "outcome.step",
        "b",
        "step",
        "Back to a step",
        "Undo this run back to the end of one of its steps",
    ),
    Key("conflicts.skip", "s", "choose('skip')", "Keep mine", "Leave this file as it is now"),
    Key(
        "conflicts.force",
        "f",
        "choose('force')",
        "Restore anyway",
        "Put the earlier content over this file",
    ),
    Key(
        "conflicts.outside",
        "o",
        "outside",
        "Open in Obsidian",
        "Open the highlighted file in Obsidian",
        footer=False,
    ),
    Key("conflicts.apply", "ctrl+s", "apply", "Undo now", "Undo with these choices"),
    Key("share.switch", "space", "switch", "Switch", "Send the highlighted item, or keep it"),
    Key("share.once", "a", "send('once')", "Once", "Send what is switched on, this time"),
    Key(
        "share.thread",
        "t",
        "send('thread')",
        "Chat",
        "Send it, and again in this conversation without asking",
    ),
    Key(
        "share.folder",
        "f",
        "send('folder')",
        "Folder",
        "Send it, and everything in this folder in this conversation",
    ),
    Key(
        "share.edit",
        "e",
        "edit",
        "Edit",
        "Change the arguments: the tool looks again, and you are asked again",
    ),
    Key(
        "share.outside",
        "o",
        "outside",
        "Open in Obsidian",
        "Open the highlighted note in Obsidian",
        footer=False,
    ),
    Key("share.no", "escape,r", "close", "Nothing", "Send nothing"),
    Key("share.all", "ctrl+a", "all", "All", "Switch all on", footer=False),
    Key("share.none", "ctrl+d", "none", "None", "Switch all off", footer=False),
    Key("dialog.close", "escape", "close", "Close", "Close without an answer"),
    Key("find.down", "down", "move(1)", "Down", "The next one", False, True),
    Key("find.up", "up", "move(-1)", "Up", "The one before", False, True),
    Key("find.page_down", "pagedown", "page(1)", "Page down", "Page down", False, True),
    Key("find.page_up", "pageup", "page(-1)", "Page up", "Page up", False, True),
    Key("confirm.yes", "y", "answer(True)", "Yes", "Yes"),
    Key("confirm.no", "n", "answer(False)", "No", "No"),
    Key(
        "confirm.switch", "left,right", "app.focus_next", "Switch", "The other answer", footer=False
    ),
    Key(
        "recovery.back",
        "b",
        "pick('back')",
        "Roll back",
        "Restore every file that the run had changed",
    ),
    Key(
        "recovery.finish",
        "f",
        "pick('finish')",
        "Finish",
        "Do what was approved and is still missing",
    ),
    Key("recovery.later", "escape", "close", "Later", "Decide at the next start"),
    Key("saving.save", "ctrl+s", "save", "Save", "Save"),
    Key("option.before", "left,up", "switch(-1)", "Before", "The value before", footer=False),
    Key("option.next", "right,down,space", "switch(1)", "Switch", "The next value"),
    Key("option.go", "enter", "submit", "Go on", "To what is still missing, then on", footer=False),
    Key("report.close", "q,enter", "close", "Close", "Close", footer=False),
    Key(
        "error.copy",
        "c",
        "copy_report",
        "Copy report",
        "Copy a report without note text, paths or keys",
    ),
    Key("error.close", "enter", "close", "Close", "Close", footer=False),
    Key(
        "conversation.open",
        "enter",
        "open",
        "Show",
        "Show earlier entries, all of the thinking, or the note",
    ),
    Key("conversation.outside", "o", "outside", "Open in Obsidian", "Open the note in Obsidian"),
)

BY_ID = {key.id: key for key in KEYS}


def bindings(place: str, *, without: Collection[str] = ()) -> list[BindingType]:
    """The bindings of one place, but those with the ids in `without`.

    Entries without an action only describe keys that a widget has anyway.
    """
    return [
        key.binding() for key in KEYS if key.place == place and key.action and key.id not in without
    ]


def binding(key_id: str, label: str) -> Binding:
    """The binding of one entry, in the footer under a name that fits the place."""
    return replace(BY_ID[key_id], label=label, footer=True, display="⏎").binding()


HELP = replace(BY_ID["app.help"], action="app.help", footer=False).binding()
"""For modal screens: Textual lets no key of the app through to them."""


def current_keys(node: DOMNode, key_id: str) -> str:
    """The keys of an entry as the app of this node has them, comma-separated."""
    keymap = node.app._keymap  # Textual gives it back nowhere else
    return keymap.get(key_id, BY_ID[key_id].keys)


def key_label(node: DOMNode, key_id: str) -> str:
    """The first key of an entry as people read it, as the app of this node has it."""
    return format_keys(current_keys(node, key_id).split(",")[0]).replace("Escape", "Esc")


def unknown_ids_message(keymap: Mapping[str, str]) -> str:
    """What to say about entries of a keymap that name no key; "" when all do."""
    unknown = [key_id for key_id in keymap if key_id not in BY_ID]
    if not unknown:
        return ""
    from obsidian_agent.errors import did_you_mean

    names = ", ".join(
        f"“{terminal_text.shortened(key_id, 60)}”{did_you_mean(key_id, BY_ID)}"
        for key_id in unknown[:3]
    )
    return (
        f"The setting of the keys names no key of this program: {names} docs/keys.md lists all ids."
    )


def format_keys(keys: str) -> str:
    """Keys as people write them: `ctrl+j,shift+enter` becomes `Ctrl+J or Shift+Enter`."""
    return " or ".join(
        "+".join(
            part if len(part) == 1 and "+" not in key else part.capitalize()
            for part in key.split("+")
        )
        for key in keys.split(",")
    )


def markdown() -> str:
    """The keys as docs/keys.md lists them."""
    parts = [
        "# Keys",
        "",
        "Every key has an id by which it can be given another key. Letters act only in the pane that has the focus: "
        "typing in the message never approves anything.",
    ]
    for place, title in CONTEXTS.items():
        parts += ["", f"## {title}", "", "| key | does | id |", "|---|---|---|"]
        parts += [
            f"| {format_keys(key.keys)} | {key.help} | `{key.id}` |"
            for key in KEYS
            if key.place == place
        ]
    return "\n".join(parts) + "\n\n"
