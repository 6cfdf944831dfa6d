"""The three panes side by side, as many as fit: one below 100 columns, two below 150, else all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.reactive import reactive

from obsidian_agent.tui.widgets.chat import ChatPane
from obsidian_agent.tui.widgets.note import NotePane
from obsidian_agent.tui.widgets.top_bar import PaneName
from obsidian_agent.tui.widgets.work import WorkPane

if TYPE_CHECKING:
    from textual.widget import Widget

    from obsidian_agent.plan.result import Preview
    from obsidian_agent.tools.core.tool import Position, Selection
    from obsidian_agent.vault.views.changes import NetChange

ORDER: tuple[PaneName, ...] = ("chat", "note", "work")


class Panes(Horizontal):
    """Knows which pane is in front, and which of note and work stands beside the chat."""

    front: reactive[PaneName] = reactive[PaneName]("chat")
    side: reactive[PaneName] = reactive[PaneName]("work")

    class Changed(Message):
        """Another pane is in front."""

    use_selection: reactive[bool] = reactive(True)

    def __init__(self, load_diff: Callable[[Preview, NetChange], Awaitable[str]], appeared: Callable[[], None]) -> None:
        super().__init__()
        self._appeared = appeared
        self._load_diff = load_diff

    def compose(self) -> ComposeResult:
        yield ChatPane(id="chat")
        yield NotePane(id="note")
        yield WorkPane(self._load_diff, self._appeared, id="work")

    @property
    def chat(self) -> ChatPane:
        return self.query_one(ChatPane)

    @property
    def note(self) -> NotePane:
        return self.query_one(NotePane)

    @property
    def work(self) -> WorkPane:
        return self.query_one(WorkPane)

    def watch_front(self, front: PaneName) -> None:
        for name in ORDER:
            self.set_class(name == front, f"-front-{name}")
        if front != "chat":
            self.side = front
        self.post_message(self.Changed())

    def watch_side(self, side: PaneName) -> None:
        self.set_class(side == "note", "-side-note")
        self.set_class(side == "work", "-side-work")

    def go(self, pane: PaneName) -> None:
        """Bring a pane to the front and give it the focus."""
        self.front = pane
        self.call_after_refresh(self._focus)

    def next(self) -> None:
        """To the next pane."""
        self.go(ORDER[(ORDER.index(self.front) + 1) % len(ORDER)])

    def _focus(self) -> None:
        target = self._target()
        if target is not None and target.focusable:
            target.focus()

    def _target(self) -> Widget | None:
        match self.front:
            case "chat":
                return self.chat.prompt
            case "note":
                return self.note.area
            case "work":
                stage = {"plan": "#plan-list", "run": "#run-log", "result": "#result-list"}.get(self.work.stage)
                return self.work.query_one(stage) if stage else None

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        for node in event.widget.ancestors_with_self:
            if node.parent is self:
                # When the focused pane is hidden, Textual may move the focus inside it once more.
                if node.display and self.screen.focused is event.widget:
                    self.front = ORDER[self.children.index(node)]
                return

    # --- what the person looks at ---------------------------------------------------------------------------------------------

    def attention(self) -> tuple[str | None, Selection | None, Position | None]:
        """The open note, its selection unless switched off, and the cursor."""
        note = self.note
        return note.path, note.selection() if self.use_selection else None, note.cursor()

    def watch_use_selection(self) -> None:
        self._show_chip()

    def on_note_pane_focus_changed(self) -> None:
        self._show_chip()

    def on_note_area_left(self) -> None:
        self.go("chat")

    def _show_chip(self) -> None:
        if self.is_mounted:
            self.chat.chip.show(self.note.path, self.note.selected_lines(), self.use_selection)
