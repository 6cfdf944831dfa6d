"""The top bar and the three panes of the main screen, as many side by side as fit.

One fits below 100 columns, two below 150, else all. A pane without a note or plan gives its columns
to the others, unless it is in front. The work pane shows no plan, a plan, a run or a result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, cast

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import ContentSwitcher, Static

from obsidian_agent import terminal_text
from obsidian_agent.tui.bindings import KEYS, current_keys, key_label
from obsidian_agent.tui.widgets.chat import ChatPane
from obsidian_agent.tui.widgets.note import NotePane
from obsidian_agent.tui.widgets.plan import ChangeReader, PlanPane
from obsidian_agent.tui.widgets.run import ProgressPane, ResultPane

if TYPE_CHECKING:
    from textual.dom import DOMNode
    from textual.widget import Widget

    from obsidian_agent.services.focus import Focus
    from obsidian_agent.tools.core.tool import EditorPosition, Selection

PaneName = Literal["chat", "note", "work"]
PANES: dict[PaneName, str] = {"chat": "Chat", "note": "Note", "work": "Plan"}
Stage = Literal["idle", "plan", "run", "result"]
ORDER: tuple[PaneName, ...] = ("chat", "note", "work")


class Panes(Horizontal):
    """The three panes, with the one in front and the one beside the chat."""

    front: reactive[PaneName] = reactive[PaneName]("chat", init=False)
    side: reactive[PaneName] = reactive[PaneName]("work", init=False)
    is_zoomed: reactive[bool] = reactive(False, init=False)
    """True if only the pane in front is displayed."""
    use_selection: reactive[bool] = reactive(True, init=False)
    """True if the selection is sent with the message."""

    class Changed(Message):
        """Another pane is in front."""

    def __init__(
        self,
        reader: ChangeReader,
        on_appear: Callable[[], None],
    ) -> None:
        super().__init__(classes="-front-chat")
        self._on_appear = on_appear
        self._reader = reader
        self._obsidian_focus: Focus | None = None
        self._outside: Focus | None = None
        """The focus in Obsidian if it is more recent than that in the note pane."""

    def compose(self) -> ComposeResult:
        yield ChatPane(id="chat")
        yield NotePane(id="note")
        yield WorkPane(self._reader, self._work_appeared, id="work")

    async def complete(self) -> None:
        """Add the widgets that the first frame does not show."""
        await self.work.complete()
        await self.note.complete()

    def on_mount(self) -> None:
        self.hide_empty()

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
        self.update_classes({f"-front-{name}": name == front for name in ORDER})
        if front != "chat":
            self.side = front
        self.hide_empty()
        self.post_message(self.Changed())

    def watch_side(self) -> None:
        self.hide_empty()

    def watch_is_zoomed(self, is_zoomed: bool) -> None:
        self.set_class(is_zoomed, "-zoomed")

    def hide_empty(self) -> None:
        """Hide the panes that have nothing to show; one of the others is beside the chat."""
        if not self.children:
            return
        is_empty = self._is_empty
        side = self.side
        other: PaneName = "note" if side == "work" else "work"
        if self.front == "chat" and is_empty[side] and not is_empty[other]:
            side = other
        panes: tuple[tuple[PaneName, Widget], ...] = (("note", self.note), ("work", self.work))
        for name, pane in panes:
            pane.update_classes(
                {"-empty": is_empty[name] and name != self.front, "-behind": name != side}
            )

    @property
    def _is_empty(self) -> dict[PaneName, bool]:
        return {
            "chat": False,
            "note": self.note.path is None,
            "work": self.work.stage == "idle",
        }

    def _work_appeared(self) -> None:
        self.hide_empty()
        self._on_appear()
        # Nothing can be read before it is painted.
        self.call_after_refresh(self._on_appear)

    def go(self, pane: PaneName) -> None:
        """Bring a pane to the front and give it the focus."""
        self.front = pane
        self.call_after_refresh(self._focus)

    def closes_with_escape(self, pane: DOMNode) -> bool:
        """Return True if Esc in this pane would close a result or reject a complete plan."""
        work = self.work
        match work.stage:
            case "plan":
                return pane is work.plan and work.plan.complete
            case "result":
                return pane is work.result
            case _:
                return False

    def next(self) -> None:
        """Go to the next pane. An empty one is skipped if the other one has content.

        Beside two empty ones the last answer takes their place, if there is one.
        """
        is_empty = self._is_empty
        are_all_empty = is_empty["note"] and is_empty["work"]
        answer = self.chat.transcript.answer_in_view
        if are_all_empty and self.front == "chat" and answer is not None:
            if answer.has_focus:
                self.go("chat")
            else:
                answer.focus()
            return
        index = ORDER.index(self.front) + 1
        following = (*ORDER[index:], *ORDER[:index])
        self.go(next(name for name in following if are_all_empty or not is_empty[name]))

    def _focus(self) -> None:
        target = self._target()
        if target is not None and target.focusable:
            target.focus()

    def _target(self) -> Widget | None:
        match self.front:
            case "chat":
                return self.chat.prompt
            case "note":
                return self.note.view
            case "work":
                lists = {"plan": "#plan-list", "run": "#run-log", "result": "#result-list"}
                selector = lists.get(self.work.stage)
                return self.work.query_one(selector) if selector else None

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        for node in event.widget.ancestors_with_self:
            if node.parent is self:
                # When the focused pane is hidden, Textual may move the focus inside it once more.
                if node.display and self.screen.focused is event.widget:
                    self.front = ORDER[self.children.index(node)]
                return

    # --- focus of the user ------------------------------------------------------------------------

    def editor_focus(self) -> tuple[str | None, Selection | None, EditorPosition | None]:
        """Return the latest note, selection and cursor of the user, here or in Obsidian.

        The selection is None if the user has excluded it.
        """
        path, selection, cursor = self.note.path, self.note.selection(), self.note.cursor()
        if self._outside is not None:
            path, selection, cursor = (
                self._outside.active_file,
                self._outside.selection,
                self._outside.cursor,
            )
        return path, selection if self.use_selection else None, cursor

    def show_obsidian_focus(self, focus: Focus | None) -> None:
        """Show the open note and selection of Obsidian, None if it no longer answers."""
        self._obsidian_focus = focus
        has_note = focus is not None and focus.active_file is not None
        self._outside = focus if has_note else None
        self._show_chip()

    def watch_use_selection(self) -> None:
        self._show_chip()

    def on_note_pane_focus_changed(self) -> None:
        self.hide_empty()
        if self.front == "note" and self.note.path is not None:
            self._outside = None
        elif self.note.path is None:
            self._outside = self._obsidian_focus
        self._show_chip()

    def on_note_pane_left(self) -> None:
        self.go("chat")

    def on_note_pane_closed(self) -> None:
        self.go("chat")

    def _show_chip(self) -> None:
        if self.is_mounted:
            if self._outside is None:
                self.chat.chip.show(self.note.path, self.note.selected_lines(), self.use_selection)
            else:
                selection = self._outside.selection
                lines = 0 if selection is None else len(selection.text.splitlines())
                self.chat.chip.show(
                    self._outside.active_file, lines, self.use_selection, where="in Obsidian"
                )


class PaneTab(Static):
    """A tab with the name of a pane."""

    class Clicked(Message):
        """A tab was clicked."""

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
    """The first line of the main screen: vault, tabs, conversation, indexing, model.

    Names come from folders and settings, so they are made safe here.
    """

    DEFAULT_CSS = """
    TopBar { height: 1; background: $background; padding: 0 1; }
    TopBar #vault { width: auto; max-width: 40%; padding: 0 1; }
    TopBar PaneTab { width: auto; padding: 0 1; color: $quiet; pointer: pointer; }
    TopBar PaneTab:hover { color: $foreground; }
    TopBar PaneTab.-active { color: $primary; text-style: bold underline; }
    TopBar PaneTab.-waiting { color: $warning; }
    TopBar #conversation {
        width: 1fr; text-align: center; color: $quiet; padding: 0 1; height: 1;
    }
    TopBar #index { width: auto; color: $quiet; padding: 0 1; height: 1; }
    TopBar #inbox { width: auto; color: $warning; padding: 0 1; height: 1; display: none; }
    TopBar #obsidian {
        width: auto; color: $primary; padding: 0 1; height: 1; display: none;
    }
    TopBar #planner {
        width: auto; max-width: 45%; text-align: right; color: $quiet; padding: 0 1; height: 1;
    }
    """

    def __init__(self, vault: str) -> None:
        super().__init__()
        self._vault = vault
        self._planner = ""
        self._agents: dict[str, str] = {}

    def compose(self) -> ComposeResult:
        yield Static(
            Content.assemble(
                ("◆ ", "$primary"), (terminal_text.shortened(self._vault, 60), "bold")
            ),
            id="vault",
            markup=False,
        )
        for pane in PANES:
            yield PaneTab(pane)
        yield Static("", id="conversation", markup=False)
        yield Static("", id="inbox", markup=False)
        yield Static("", id="index", markup=False)
        yield Static("◈ Obsidian", id="obsidian", markup=False)
        yield Static("", id="planner", markup=False)

    def show_planner(self, name: str) -> None:
        """Show the model, agent or planner that answers the next message."""
        self._planner = name
        state = self._agents.get(name)
        text = terminal_text.shortened(f"{name} {state}" if state else name, 80)
        self._show("#planner", text)

    def show_agent_state(self, name: str, state: str) -> None:
        """Show the state of the agent `name` that searches by itself."""
        self._agents[name] = state
        self.show_planner(self._planner)

    def show_title(self, title: str) -> None:
        """Show the title of the current conversation."""
        self.query_one("#conversation", Static).update(Content(terminal_text.shortened(title, 80)))

    def show_indexing(self, done: int, total: int) -> None:
        """Show the progress of indexing in files, or nothing if `total` is 0."""
        whole = f"{total:,}"
        self._show("#index", f"indexing {done:>{len(whole)},}/{whole}" if total else "")

    def show_waiting(self, count: int) -> None:
        """Show how many plans wait for approval."""
        self._show("#inbox", f"{terminal_text.counted(count, 'plan')} waiting")
        self.query_one("#inbox").display = count > 0

    def _show(self, selector: str, text: str) -> None:
        """Update a text at its own width. Only a change of the width needs a layout.

        An automatic width would be cached by Textual under a count of updates, which it does not
        raise while an earlier update of the widget is pending: a layout between both updates would
        keep the old width.
        """
        widget, content = self.query_one(selector, Static), Content(text)
        widget.update(content, layout=False)
        widget.styles.width = content.cell_length + widget.styles.gutter.width

    def show_connection(self, *, obsidian: bool) -> None:
        """Show or hide the sign of a running Obsidian with the companion plugin."""
        self.query_one("#obsidian").display = obsidian

    def mark_tabs(self, active: str, *, waiting: bool) -> None:
        """Mark the tab of the `active` pane, and that of a plan waiting for a decision."""
        for tab in self.query(PaneTab):
            tab.set_class(tab.pane == active, "-active")
            tab.set_class(waiting and tab.pane == "work" and active != "work", "-waiting")
            tab.update(PANES[tab.pane] + (" ●" if waiting and tab.pane == "work" else ""))


class Idle(Static):
    """The text of the work pane without a plan."""

    DEFAULT_CSS = "Idle { height: 1fr; padding: 2 3; color: $quiet; background: $surface; }"

    def on_mount(self) -> None:
        self.draw()

    def draw(self) -> None:
        """Render the text with the current keys."""
        self.update(
            Content.assemble(
                ("No plan yet", "bold $foreground"),
                "\n\nDescribe a change in the message box.\n"
                "You then see every changed file and line here\n"
                "before anything is written.\n\n",
                (key_label(self, "plan.approve"), "$primary bold"),
                "  approves and applies it\n",
                (key_label(self, "result.undo"), "$primary bold"),
                "  undoes it later",
            )
        )


class WorkPane(ContentSwitcher):
    """The pane that switches between its four stages."""

    DEFAULT_CSS = "WorkPane { height: 1fr; background: $surface; } WorkPane > * { height: 1fr; }"

    def __init__(
        self,
        reader: ChangeReader,
        on_appear: Callable[[], None],
        *,
        id: str | None = None,
    ) -> None:
        super().__init__(id=id, initial="idle")
        self._reader = reader
        self._on_appear = on_appear

    def compose(self) -> ComposeResult:
        yield Idle("", id="idle", markup=False)

    async def complete(self) -> None:
        """Add the stages that the first frame does not show."""
        plan = PlanPane(self._reader, self._on_appear)
        for stage in (plan, ProgressPane(), ResultPane()):
            await self.add_content(stage)

    @property
    def stage(self) -> Stage:
        """The displayed stage."""
        return cast("Stage", self.current)

    def binds(self, key: str) -> bool:
        """Return True if `key` is bound in the current stage."""
        return any(
            key in current_keys(self, entry.id).split(",")
            for entry in KEYS
            if entry.context == self.stage
        )

    @property
    def plan(self) -> PlanPane:
        return self.query_one(PlanPane)

    @property
    def progress(self) -> ProgressPane:
        return self.query_one(ProgressPane)

    @property
    def result(self) -> ResultPane:
        return self.query_one(ResultPane)

    def show(self, stage: Stage) -> None:
        """Bring a stage, or its new content, to the front. Its keys are ignored for a moment."""
        self.current = stage
        self._on_appear()

    def refresh_keys(self) -> None:
        """Update the texts after a change of keys."""
        self.query_one(Idle).draw()
        self.plan.refresh_keys()
