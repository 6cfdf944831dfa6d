"""What an answer rests on, below it: each note can be opened, in the note pane or in Obsidian."""

from __future__ import annotations

from collections.abc import Iterator

from textual import events
from textual.containers import Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from obsidian_agent import terminal_text
from obsidian_agent.tui.messages import NoteRequested, OutsideRequested
from obsidian_agent.tui.retelling import Cited

MOST = 12
"""Notes of each kind that are listed; the others are counted, and /files lists all."""


class Source(Static, can_focus=True):
    """One note. Enter or a click shows it, `o` opens it in Obsidian."""

    DEFAULT_CSS = """
    Source { height: 1; width: auto; max-width: 100%; padding: 0 1 0 3; color: $quiet; }
    Source.-rests { color: $primary; }
    Source:focus { background: $boost; text-style: underline; }
    """
    BINDINGS = [("enter", "show", "Show the note"), ("o", "outside", "Open in Obsidian")]

    def __init__(self, path: str, *, rests: bool) -> None:
        super().__init__(Content(terminal_text.shortened(path, 200)), markup=False, classes="-rests" if rests else "")
        self.path = path

    def action_show(self) -> None:
        self.post_message(NoteRequested(self.path))

    def action_outside(self) -> None:
        self.post_message(OutsideRequested(self.path))

    def on_click(self, event: events.Click) -> None:
        event.stop()
        self.action_show()

    def on_key(self, event: events.Key) -> None:
        # Other letters go to the message box; these are for this note.
        if event.key in ("enter", "o"):
            event.stop()
            event.prevent_default()
            self.action_show() if event.key == "enter" else self.action_outside()


class Sources(Vertical):
    """The notes that an answer rests on, and apart from them what else the model was shown."""

    DEFAULT_CSS = """
    Sources { height: auto; margin: 0 1 1 1; }
    Sources > .-head { height: 1; padding: 0 2; color: $quiet; }
    """

    def __init__(self, cited: Cited) -> None:
        super().__init__(*_lines(cited))


def _lines(cited: Cited) -> Iterator[Widget]:
    for title, paths, rests in (("Sources", cited.sources, True), ("Also sent, and not named in the answer", cited.besides, False)):
        if paths:
            yield Static(title, markup=False, classes="-head")
            yield from (Source(path, rests=rests) for path in paths[:MOST])
        if len(paths) > MOST:
            yield Static(f"and {len(paths) - MOST} more: /files", markup=False, classes="-head")
