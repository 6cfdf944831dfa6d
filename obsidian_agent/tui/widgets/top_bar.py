"""The first line: vault, panes, planner."""

from __future__ import annotations

from typing import Literal

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from obsidian_agent import terminal_text

PaneName = Literal["chat", "note", "work"]
PANES: dict[PaneName, str] = {"chat": "Chat", "note": "Note", "work": "Plan"}


class PaneTab(Static):
    """The name of a pane; a click goes there."""

    class Clicked(Message):
        """A pane is wanted."""

        def __init__(self, pane: PaneName) -> None:
            super().__init__()
            self.pane = pane

    def __init__(self, pane: PaneName) -> None:
        super().__init__(PANES[pane], id=f"tab-{pane}", markup=False)
        self.pane = pane

    def on_click(self, event: events.Click) -> None:
        event.stop()
        self.post_message(self.Clicked(self.pane))


class TopBar(Horizontal):
    """Names come from folders and settings, so they are made safe here."""

    DEFAULT_CSS = """
    TopBar { height: 1; background: $background; padding: 0 1; }
    TopBar #vault { width: auto; max-width: 40%; padding: 0 1; }
    TopBar PaneTab { width: auto; padding: 0 1; color: $quiet; pointer: pointer; }
    TopBar PaneTab:hover { color: $foreground; }
    TopBar PaneTab.-active { color: $primary; text-style: bold underline; }
    TopBar PaneTab.-waiting { color: $warning; }
    TopBar #conversation { width: 1fr; text-align: center; color: $quiet; padding: 0 1; height: 1; }
    TopBar #index { width: auto; color: $quiet; padding: 0 1; height: 1; }
    TopBar #planner { width: auto; max-width: 45%; text-align: right; color: $quiet; padding: 0 1; height: 1; }
    """

    def __init__(self, vault: str, planner: str) -> None:
        super().__init__()
        self._vault, self._planner = vault, planner

    def compose(self) -> ComposeResult:
        yield Static(Content.assemble(("◆ ", "$primary"), (terminal_text.shortened(self._vault, 60), "bold")), id="vault", markup=False)
        for pane in PANES:
            yield PaneTab(pane)
        yield Static("", id="conversation", markup=False)
        yield Static("", id="index", markup=False)
        yield Static(Content(terminal_text.shortened(self._planner, 80)), id="planner", markup=False)

    def name_planner(self, name: str) -> None:
        """Who answers the next message."""
        self.query_one("#planner", Static).update(Content(terminal_text.shortened(name, 80)))

    def name_conversation(self, title: str) -> None:
        """The title of the conversation on the screen."""
        self.query_one("#conversation", Static).update(Content(terminal_text.shortened(title, 80)))

    def index(self, done: int, total: int) -> None:
        """How many files of how many are indexed; nothing is shown when there is nothing to do."""
        self.query_one("#index", Static).update(f"indexing {done:,}/{total:,}" if total else "")

    def mark(self, active: str, *, waiting: bool) -> None:
        """Which pane has the focus, and whether a plan waits for a decision elsewhere."""
        for tab in self.query(PaneTab):
            tab.set_class(tab.pane == active, "-active")
            tab.set_class(waiting and tab.pane == "work" and active != "work", "-waiting")
            tab.update(PANES[tab.pane] + (" ●" if waiting and tab.pane == "work" else ""))
