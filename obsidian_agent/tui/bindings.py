"""The keys of the terminal app, source of its bindings, footer, help screen and docs/keys.md.

Each entry has an id for rebinding it (`App.set_keymap`). Keys that terminals cannot tell apart are
not used: ctrl+i is tab, ctrl+m is enter, ctrl+h is backspace.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace
from textual.binding import Binding, BindingType

from obsidian_agent import terminal_text

if TYPE_CHECKING:
    from textual.dom import DOMNode

CONTEXTS: dict[str, str] = {
    "app": "Everywhere",
    "main": "Main screen",
    "threads": "Conversations",
    "settings": "Settings",
    "trust": "Agents, skills and instructions",
    "tasks": "Tasks of a conversation",
    "waiting": "Waiting plans",
    "rules": "Rules",
    "prompt": "Message",
    "note": "Note",
    "plan": "Plan",
    "editor": "Plan or arguments as JSON",
    "run": "Run in progress",
    "result": "Result",
    "list": "Lists",
    "diff": "Changes to a file",
    "card": "First start",
    "candidates": "What did you mean?",
    "form": "Action form",
    "saved": "Actions",
    "history": "History",
    "health": "Health of the vault",
    "conflicts": "Preview of an undo, and its conflicts",
    "share": "Permission to send",
    "dialog": "Dialogs",
    "find": "Search dialogs",
    "confirm": "Confirmation",
    "recovery": "Interrupted run",
    "saving": "Saving a plan as a macro",
    "option": "Choice of values",
    "report": "Reports",
    "error": "Unexpected error",
    "conversation": "Focused entry of the conversation",
    "answer": "Focused answer",
}

KEY_NAMES = {
    "escape": "Esc",
    "pageup": "PageUp",
    "pagedown": "PageDown",
    "slash": "/",
    "underscore": "_",
    "right_square_bracket": "]",
    "left_square_bracket": "[",
}
"""Keys whose name on the screen is not that of Textual with a capital."""


class Key(Struct, frozen=True):
    """A key binding: `label` for the footer, `help` for the help screen and docs/keys.md.

    `keys` are comma-separated names as in Textual. The id starts with one of `CONTEXTS`.
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
    def context(self) -> str:
        """The part of the screen in which the key works."""
        return self.id.partition(".")[0]

    def binding(self) -> Binding:
        """Return the Textual binding."""
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


def _obsidian_key(context: str, help_text: str) -> Key:
    return Key(f"{context}.outside", "o", "outside", "Open in Obsidian", help_text, footer=False)


KEYS: tuple[Key, ...] = (
    Key("app.help", "f1", "help", "Help", "Show all keys"),
    Key(
        "app.palette", "ctrl+p", "command_palette", "Menu", "Open the command palette", footer=False
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
        "Copy the selected text; without a selection, cancel the current task",
        footer=False,
    ),
    Key(
        "app.suspend",
        "ctrl+z",
        "suspend_process",
        "Suspend",
        "Stop the app and go back to the shell; `fg` continues it",
        footer=False,
        priority=True,
    ),
    Key(
        "main.saved",
        "f2",
        "actions",
        "Actions",
        "Actions, your macros among them: find, run, change, delete, export, import",
        footer=False,
    ),
    Key("main.history", "f3", "history", "History", "History of runs: undo and redo", footer=False),
    Key(
        "main.threads",
        "f4",
        "threads",
        "Conversations",
        "Conversations: search, continue, rename, delete, export",
        footer=False,
    ),
    Key(
        "main.new",
        "ctrl+n",
        "new_thread",
        "New",
        "Start a new conversation; the current task keeps running",
        footer=False,
    ),
    Key("main.settings", "f5", "settings", "Settings", "Settings", footer=False),
    Key("main.tasks", "f8", "tasks", "Tasks", "Tasks and plans of this conversation", footer=False),
    Key(
        "main.rewind",
        "f9",
        "rewind",
        "Turns",
        "Messages of this conversation: go back to an earlier one",
        footer=False,
    ),
    Key(
        "main.open",
        "ctrl+o",
        "open_note",
        "Note",
        "Open a note by part of its name",
        display="^o",
        priority=True,
    ),
    Key(
        "main.selection",
        "ctrl+t",
        "toggle_selection",
        "Selection",
        "Send the selected text of the note with the message, or don't",
        footer=False,
        priority=True,
    ),
    Key(
        "main.pane",
        "f6",
        "next_pane",
        "Pane",
        "Go to the next pane: chat, note, plan; without a note and a plan to the last answer",
        priority=True,
    ),
    Key(
        "main.zoom",
        "z",
        "zoom",
        "Zoom",
        "Show only the focused note or plan, or all panes again",
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
        "Cancel planning or the run; otherwise go back to the message",
        footer=False,
    ),
    Key("threads.rename", "r", "rename", "Rename", "Rename the conversation"),
    Key(
        "threads.delete",
        "delete,d",
        "delete",
        "Delete",
        "Delete the conversation permanently; asks first",
    ),
    Key("threads.export", "x", "export", "Export", "Export the conversation to a note, as a plan"),
    Key("threads.new", "ctrl+n", "new", "New", "Start a new conversation", display="^n"),
    Key("threads.search", "slash", "search", "Search", "Search titles and messages", display="/"),
    Key(
        "threads.back",
        "escape",
        "back",
        "Close",
        "Go from the search to the list, or close the list",
        footer=False,
    ),
    Key("waiting.apply", "a", "apply", "Apply", "Apply the plan that is shown"),
    Key("waiting.apply_all", "A", "apply_all", "Apply all", "Apply all plans that are unchanged"),
    Key("waiting.drop", "d", "drop", "Drop", "Remove the plan without running it"),
    Key("rules.new", "ctrl+n", "new", "New", "Make a rule in a form", display="^n"),
    Key("rules.remove", "delete,d", "remove", "Remove", "Remove the rule; asks first"),
    Key("tasks.tick", "space", "tick", "Tick", "Tick or untick the task"),
    Key("tasks.undo", "u", "undo", "Undo", "Undo the plan's run"),
    Key(
        "tasks.step",
        "b",
        "step",
        "Back to a step",
        "Undo the plan's run back to the end of one of its steps",
    ),
    Key("trust.trust", "t", "trust", "Trust", "Trust the file with the displayed text"),
    Key("trust.distrust", "d", "distrust", "Don't trust", "Stop trusting the file"),
    Key(
        "settings.change",
        "enter",
        "change",
        "Change",
        "Change the highlighted setting; typed words find one",
        priority=True,
        display="⏎",
    ),
    Key(
        "settings.default",
        "delete",
        "default",
        "Reset",
        "Reset to the default",
        priority=True,
    ),
    Key("settings.close", "escape", "back", "Close", "Empty the search, or close the settings"),
    Key(
        "prompt.complete",
        "tab",
        "tab",
        "Complete",
        "Accept the highlighted suggestion for / or @ (also Enter); complete the name of a note, "
        "folder, tag or macro, again for the next one; "
        "otherwise open the form of the first suggested action",
        footer=False,
    ),
    Key("prompt.send", "enter", "send", "Send", "Send the message", display="⏎"),
    Key(
        "prompt.newline",
        "ctrl+j,shift+enter",
        "newline",
        "New line",
        "Insert a new line in the message",
        display="^j",
    ),
    Key(
        "prompt.recall",
        "up,down",
        "",
        "Earlier messages",
        "From the first line, take back a queued message or recall an earlier one; "
        "from the last line, recall a later one",
        footer=False,
    ),
    Key(
        "prompt.older",
        "alt+up",
        "older",
        "Earlier message",
        "Take back a queued message, or recall an earlier one",
        footer=False,
    ),
    Key(
        "prompt.newer", "alt+down", "newer", "Later message", "Recall a later message", footer=False
    ),
    Key(
        "prompt.undo",
        "ctrl+underscore",
        "undo",
        "Undo",
        "Undo the last edit of the message",
        footer=False,
    ),
    Key(
        "prompt.scroll",
        "pageup,pagedown",
        "",
        "Scroll",
        "Scroll the conversation; so do Home and End while the message is empty",
        footer=False,
    ),
    Key(
        "prompt.clear",
        "ctrl+u",
        "",
        "Delete line",
        "Delete the line up to the cursor",
        footer=False,
    ),
    Key(
        "prompt.editor",
        "ctrl+g",
        "editor",
        "Editor",
        "Edit the message in the editor that VISUAL or EDITOR names",
        footer=False,
    ),
    Key(
        "note.open",
        "enter",
        "open_link",
        "Open",
        "Follow the highlighted link or tag, or open the fold",
        display="⏎",
    ),
    Key("note.link", "tab,right", "link(1)", "Next link", "Highlight the next link", footer=False),
    Key(
        "note.link_back",
        "shift+tab,left",
        "link(-1)",
        "Previous link",
        "Highlight the previous link",
        footer=False,
    ),
    Key(
        "note.back",
        "backspace,alt+left",
        "back",
        "Back",
        "Go back to the note that was open before",
        footer=False,
    ),
    Key(
        "note.forward",
        "alt+right",
        "forward",
        "Forward",
        "Go forward to the note that you came back from",
        footer=False,
    ),
    Key("note.find", "slash", "find", "Find", "Find text in the note", display="/"),
    Key("note.next", "n", "find_again(1)", "Next", "Go to the next match", footer=False),
    Key("note.previous", "N", "find_again(-1)", "Previous", "Previous match", footer=False),
    Key(
        "note.outline",
        "t",
        "overview('outline')",
        "Outline",
        "Outline: go to a heading of the note",
        footer=False,
    ),
    Key(
        "note.backlinks",
        "b",
        "overview('backlinks')",
        "Backlinks",
        "Backlinks: the lines of other notes that link to this one",
    ),
    Key("note.source", "s", "source", "Source", "Switch between the rendered note and its source"),
    Key("note.close", "q", "close_note", "Close", "Close the note", footer=False),
    Key(
        "note.select",
        "shift+down",
        "extend(1)",
        "Select",
        "Select the next line; in the source, text (also Shift+Right, the mouse)",
        footer=False,
    ),
    Key(
        "note.select_up",
        "shift+up",
        "extend(-1)",
        "Select",
        "Select the previous line",
        footer=False,
    ),
    Key("note.all", "ctrl+a", "select_whole", "Select all", "Select the whole note", footer=False),
    Key(
        "note.line",
        "x",
        "select_line",
        "Select line",
        "Select the line; press again to add the next line",
    ),
    Key(
        "note.none",
        "escape",
        "leave",
        "Message",
        "Go back to the message and keep the selection",
        footer=False,
    ),
    _obsidian_key("note", "Open the note in Obsidian at this line"),
    Key(
        "plan.approve",
        "a",
        "approve",
        "Approve",
        "Approve the plan and apply exactly the displayed changes",
    ),
    Key("plan.reject", "r", "reject", "Reject", "Reject the plan; nothing is changed"),
    Key(
        "plan.edit",
        "e",
        "edit",
        "Edit",
        "Edit the plan as JSON, then preview it again",
        footer=False,
    ),
    Key(
        "plan.toggle",
        "space",
        "leave_out",
        "Omit",
        "Leave out the highlighted step, group, file or edit, or include it; then preview again",
    ),
    Key(
        "plan.comment",
        "c",
        "comment",
        "Change",
        "Say what should be different, and get another plan",
    ),
    Key(
        "plan.repair",
        "f",
        "repair",
        "Repair",
        "Choose the note that a wrong name means, or let the model repair a plan with errors",
    ),
    Key(
        "plan.preview",
        "p",
        "preview_again",
        "Preview again",
        "Preview the plan again, against the files as they are now",
        footer=False,
    ),
    Key(
        "plan.open",
        "right",
        "fold(True)",
        "Open",
        "Open the highlighted group (also Enter)",
        footer=False,
    ),
    Key("plan.close", "left", "fold(False)", "Close", "Close the group", footer=False),
    Key(
        "plan.filter",
        "slash",
        "filter",
        "Filter",
        "Filter the changes by their paths",
        footer=False,
    ),
    Key("plan.undo", "u", "undo", "Undo last run", "Undo the last run", footer=False),
    _obsidian_key("plan", "Open the highlighted file in Obsidian"),
    Key(
        "plan.cancel",
        "escape",
        "cancel",
        "Cancel",
        "Stop the preview, or reject the plan; one from the waiting plans waits on",
        footer=False,
    ),
    Key(
        "editor.save",
        "ctrl+s",
        "save",
        "Save",
        "Save the edited text: a plan is previewed again, a tool call needs permission again",
        priority=True,
        display="^s",
    ),
    Key(
        "editor.close",
        "escape",
        "close",
        "Discard",
        "Close without changes; asks first if you edited the text",
        priority=True,
    ),
    Key("run.cancel", "escape", "cancel", "Cancel", "Stop after the current file"),
    Key("result.preview", "p", "preview_again", "Preview again", "Preview the plan again"),
    Key(
        "result.rest",
        "g",
        "rest",
        "Do the rest",
        "Preview the steps that a cancelled run did not finish",
    ),
    Key("result.undo", "u", "undo", "Undo", "Undo this run"),
    Key("result.redo", "y", "redo", "Redo", "Redo this run after its undo"),
    Key(
        "result.note",
        "v",
        "open_note",
        "Note",
        "Open the highlighted note in the note pane",
        footer=False,
    ),
    Key(
        "result.save",
        "m",
        "save_macro",
        "Save macro",
        "Save the plan as a macro, which runs again without a model",
    ),
    _obsidian_key("result", "Open the highlighted note in Obsidian"),
    Key("result.close", "escape", "close", "Close", "Go back to the message"),
    Key("list.up", "up,k", "cursor(-1)", "Up", "Move up", footer=False),
    Key("list.down", "down,j", "cursor(1)", "Down", "Move down", footer=False),
    Key("list.page_up", "pageup", "page(-1)", "Page up", "Page up", footer=False),
    Key("list.page_down", "pagedown", "page(1)", "Page down", "Page down", footer=False),
    Key("list.first", "home", "first", "First", "Go to the first entry", footer=False),
    Key("list.top", "g", "first", "First", "Go to the first entry", footer=False),
    Key("list.last", "end,G", "last", "Last", "Go to the last entry", footer=False),
    Key("list.next", "n", "section(1)", "Next section", "Go to the next section", footer=False),
    Key(
        "list.previous",
        "p",
        "section(-1)",
        "Previous section",
        "Go to the previous section",
        footer=False,
    ),
    Key(
        "list.choose",
        "enter",
        "choose",
        "Open",
        "Open or choose the highlighted entry",
        footer=False,
    ),
    Key("diff.next", "n", "change(1)", "Next change", "Go to the next change"),
    Key("diff.previous", "p", "change(-1)", "Previous change", "Go to the previous change"),
    Key(
        "diff.next_file",
        "right_square_bracket",
        "file(1)",
        "Next file",
        "Go to the next file of the plan",
        display="]",
    ),
    Key(
        "diff.previous_file",
        "left_square_bracket",
        "file(-1)",
        "Previous file",
        "Go to the previous file of the plan",
        display="[",
    ),
    Key(
        "diff.links",
        "enter",
        "links",
        "Links",
        "Open a link of the diff",
        footer=False,
    ),
    Key("diff.close", "escape,q", "close", "Back", "Go back to the plan"),
    Key(
        "card.use",
        "1",
        "pick(0)",
        "Use it",
        "Use the model that runs on this machine",
        footer=False,
    ),
    Key("card.menu", "2", "pick(1)", "No model", "Use the built-in actions only", footer=False),
    Key(
        "card.service",
        "3",
        "pick(2)",
        "A service",
        "Use a service that needs an API key",
        footer=False,
    ),
    Key(
        "candidates.choose",
        "enter",
        "choose",
        "Preview",
        "Preview the reading under the cursor, or go to its next missing value",
        display="⏎",
    ),
    Key("candidates.up", "up", "move(-1)", "Up", "Move up", footer=False),
    Key("candidates.down", "down", "move(1)", "Down", "Move down", footer=False),
    Key("candidates.next", "tab", "stop(1)", "Next", "Go to the next value or row", footer=False),
    Key(
        "candidates.previous",
        "shift+tab",
        "stop(-1)",
        "Previous",
        "Go to the previous value or row",
        footer=False,
    ),
    Key("candidates.first", "1", "pick(0)", "First", "Choose the first", footer=False),
    Key("candidates.second", "2", "pick(1)", "Second", "Choose the second", footer=False),
    Key("candidates.third", "3", "pick(2)", "Third", "Choose the third", footer=False),
    Key(
        "candidates.change",
        "c",
        "change(False)",
        "Change values",
        "Change the values in a form first",
    ),
    Key(
        "candidates.form",
        "ctrl+e",
        "change(True)",
        "Change values",
        "Change the values in a form first, even while typing into a gap",
    ),
    Key("candidates.actions", "f2", "actions", "All actions", "Choose from all actions instead"),
    Key("form.next", "tab,shift+tab", "", "Next field", "Go to the next or the previous field"),
    Key(
        "form.names", "down", "", "Names", "Suggest names from the vault; Enter or Tab accepts one"
    ),
    Key(
        "form.go",
        "enter",
        "",
        "Continue",
        "Go to the next missing value; continue when none is missing",
    ),
    Key("form.submit", "ctrl+s", "submit", "Continue", "Continue from any field", display="^s"),
    Key(
        "saved.search",
        "slash",
        "search",
        "Find",
        "Find an action by part of its name (Tab goes from there to the list)",
        display="/",
    ),
    Key("saved.rename", "r", "rename", "Rename", "Rename one of your macros"),
    Key("saved.change", "e", "change", "Edit", "Edit one of your macros as JSON"),
    Key("saved.delete", "delete,d", "delete", "Delete", "Delete one of your macros; asks first"),
    Key("saved.export", "x", "export", "Export", "Export one of your macros to a JSON file"),
    Key("saved.import", "i", "import_file", "Import", "Import a macro from a JSON file"),
    Key(
        "history.undo",
        "u",
        "undo",
        "Undo",
        "Undo the marked files, or the whole run if none is marked; shows first what changes",
    ),
    Key("history.mark", "space", "mark", "Mark", "Mark the highlighted file for undo"),
    Key(
        "history.step",
        "b",
        "step",
        "Back to a step",
        "Undo the highlighted run back to the end of one of its steps",
    ),
    Key("history.redo", "y", "redo", "Redo", "Redo the last undone run"),
    Key(
        "history.filter",
        "slash",
        "filter",
        "Filter",
        "Show only runs with these words in their text or their paths; among the files only those "
        "with them in their paths",
        display="/",
    ),
    _obsidian_key("history", "Open the highlighted file in Obsidian"),
    Key(
        "health.tick",
        "space",
        "tick",
        "Tick",
        "Tick or untick the repair of the finding, or the likely repairs of a whole kind",
    ),
    Key(
        "health.ignore",
        "i",
        "ignore",
        "Ignore",
        "Ignore the finding from now on, or report an ignored one again",
    ),
    Key("health.preview", "p", "preview", "Preview", "Preview the ticked repairs as one plan"),
    _obsidian_key("health", "Open the file of the finding in Obsidian"),
    Key("conflicts.skip", "s", "choose('skip')", "Keep mine", "Keep the file as it is now"),
    Key(
        "conflicts.force",
        "f",
        "choose('force')",
        "Restore",
        "Replace the file with its earlier content; redo brings your text back",
    ),
    Key(
        "conflicts.skip_all",
        "S",
        "choose_all('skip')",
        "Keep all",
        "Keep all files as they are now",
        footer=False,
    ),
    Key(
        "conflicts.force_all",
        "F",
        "choose_all('force')",
        "Restore all",
        "Replace all files with their earlier content",
        footer=False,
    ),
    _obsidian_key("conflicts", "Open the highlighted file in Obsidian"),
    Key("conflicts.apply", "ctrl+s", "apply", "Undo now", "Undo with these choices"),
    Key("share.switch", "space", "switch", "Switch", "Include or exclude the highlighted item"),
    Key("share.once", "a", "send('once')", "Once", "Send the included items this time"),
    Key(
        "share.thread",
        "t",
        "send('thread')",
        "Chat",
        "Send them, and don't ask about them again in this conversation",
    ),
    Key(
        "share.folder",
        "f",
        "send('folder')",
        "Folder",
        "Send them, and allow everything in this folder in this conversation",
    ),
    Key(
        "share.edit",
        "e",
        "edit",
        "Edit",
        "Change the tool's arguments; it runs again, and you are asked again",
    ),
    _obsidian_key("share", "Open the highlighted note in Obsidian"),
    Key("share.no", "escape,r", "close", "Nothing", "Send nothing"),
    Key("share.all", "ctrl+a", "all", "All", "Include all items", footer=False),
    Key("share.none", "ctrl+d", "none", "None", "Exclude all items", footer=False),
    Key("dialog.close", "escape", "close", "Close", "Close without answering"),
    Key("dialog.number", "1,2,3", "", "Number", "Choose the entry or repair with this number"),
    Key(
        "find.down", "down", "move(1)", "Down", "Go to the next match", footer=False, priority=True
    ),
    Key("find.up", "up", "move(-1)", "Up", "Go to the previous match", footer=False, priority=True),
    Key(
        "find.page_down",
        "pagedown",
        "page(1)",
        "Page down",
        "Page down",
        footer=False,
        priority=True,
    ),
    Key("find.page_up", "pageup", "page(-1)", "Page up", "Page up", footer=False, priority=True),
    Key(
        "find.choose",
        "enter",
        "submit",
        "Choose",
        "Choose the highlighted match, or accept the text",
        display="⏎",
    ),
    Key("confirm.yes", "y", "answer(True)", "Yes", "Yes"),
    Key("confirm.no", "n", "answer(False)", "No", "No"),
    Key(
        "confirm.switch",
        "left,right",
        "app.focus_next",
        "Switch",
        "Go to the other answer",
        footer=False,
    ),
    Key(
        "recovery.back", "b", "pick('back')", "Roll back", "Restore every file that the run changed"
    ),
    Key(
        "recovery.finish",
        "f",
        "pick('finish')",
        "Finish",
        "Apply the approved changes that are still missing",
    ),
    Key("recovery.later", "escape", "close", "Later", "Decide at the next start"),
    Key("saving.save", "ctrl+s", "save", "Save", "Save the macro"),
    Key(
        "option.before",
        "left,up",
        "switch(-1)",
        "Previous",
        "Choose the previous value",
        footer=False,
    ),
    Key("option.next", "right,down,space", "switch(1)", "Switch", "Choose the next value"),
    Key(
        "option.go",
        "enter",
        "submit",
        "Continue",
        "Go to the next missing value; continue when none is missing",
        footer=False,
    ),
    Key("report.close", "q,enter", "close", "Close", "Close", footer=False),
    Key(
        "error.copy",
        "c",
        "copy_report",
        "Copy report",
        "Copy a report without note text, paths or API keys",
    ),
    Key("error.close", "enter", "close", "Close", "Close", footer=False),
    Key(
        "conversation.open",
        "enter",
        "open",
        "Show",
        "Show earlier entries, the full thinking, or the note",
    ),
    Key(
        "answer.open",
        "enter",
        "open_link",
        "Open",
        "Follow the highlighted link",
        display="⏎",
    ),
    Key("answer.link", "tab,right", "link(1)", "Next link", "Next link", footer=False),
    Key(
        "answer.link_back",
        "shift+tab,left",
        "link(-1)",
        "Previous link",
        "Previous link",
        footer=False,
    ),
    Key("answer.copy", "c", "copy(False)", "Copy", "Copy the answer"),
    Key("answer.code", "k", "copy(True)", "Copy code", "Copy the last block of code"),
    Key(
        "answer.insert",
        "i",
        "insert",
        "Insert in note",
        "Insert the answer into a note, as /insert does; previewed first",
    ),
    Key("conversation.outside", "o", "outside", "Open in Obsidian", "Open the note in Obsidian"),
)

BY_ID = {key.id: key for key in KEYS}


def bindings(context: str, *, without: Collection[str] = ()) -> list[BindingType]:
    """Return the bindings of a context, except those with the ids in `without`.

    Entries without an action only document keys that a widget handles itself.
    """
    return [
        key.binding()
        for key in KEYS
        if key.context == context and key.action and key.id not in without
    ]


def binding(key_id: str, label: str) -> Binding:
    """Return the binding of one entry with another label for the footer."""
    return replace(BY_ID[key_id], label=label, footer=True, display="⏎").binding()


HELP = replace(BY_ID["app.help"], action="app.help", footer=False).binding()
"""The help key for modal screens, which the bindings of the app do not reach."""


def current_keys(node: DOMNode, key_id: str) -> str:
    """Return the comma-separated keys of an entry after rebinding."""
    keymap = node.app._keymap  # Textual has no public getter
    return keymap.get(key_id, BY_ID[key_id].keys)


def key_label(node: DOMNode, key_id: str) -> str:
    """Return the first key of an entry after rebinding, as text for the screen."""
    return format_keys(current_keys(node, key_id).split(",")[0])


def unknown_ids_message(keymap: Mapping[str, str]) -> str:
    """Return a message about the unknown ids in a keymap, or an empty string."""
    unknown = [key_id for key_id in keymap if key_id not in BY_ID]
    if not unknown:
        return ""
    from obsidian_agent.errors import did_you_mean

    names = ", ".join(
        f"“{terminal_text.shortened(key_id, 60)}”{did_you_mean(key_id, BY_ID)}"
        for key_id in unknown[:3]
    )
    return f"The keymap setting has unknown key ids: {names} docs/keys.md lists all ids."


def format_keys(keys: str) -> str:
    """Format keys for people: `ctrl+j,shift+enter` becomes `Ctrl+J or Shift+Enter`."""
    return " or ".join(_format_key(key) for key in keys.split(","))


def _format_key(key: str) -> str:
    if len(key) == 1:
        return key
    return "+".join(KEY_NAMES.get(part, part.capitalize()) for part in key.split("+"))


def markdown() -> str:
    """Return the tables of docs/keys.md."""
    parts = [
        "# Keys",
        "",
        "The setting `keymap` assigns other keys to these ids. Single letters work only in the "
        "pane that has the focus: typing in the message never approves anything.",
    ]
    for context, title in CONTEXTS.items():
        parts += ["", f"## {title}", "", "| key | action | id |", "|---|---|---|"]
        parts += [
            f"| {format_keys(key.keys)} | {key.help} | `{key.id}` |"
            for key in KEYS
            if key.context == context
        ]
    return "\n".join(parts) + "\n\n"
