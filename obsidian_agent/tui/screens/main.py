"""The main screen: puts panes and flows together and says who answers which message."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.screen import Screen
from textual.widgets import Footer

from obsidian_agent.tui.bridge import Bridge, merged
from obsidian_agent.tui.garbage import Garbage
from obsidian_agent.tui.keys import bindings
from obsidian_agent.tui.messages import EventsArrived, IndexTold, NoteRequested, OutsideRequested, SettingChanged, ThreadDeleted, WorkEnded
from obsidian_agent.tui.screens.actions import Actions
from obsidian_agent.tui.screens.choosing import Choosing
from obsidian_agent.tui.screens.completing import Completing
from obsidian_agent.tui.screens.conversing import Conversing
from obsidian_agent.tui.screens.deciding import Deciding, Wish
from obsidian_agent.tui.screens.desk import Desk
from obsidian_agent.tui.screens.history import History, HistoryRequest
from obsidian_agent.tui.screens.informed import Informed
from obsidian_agent.tui.screens.inserting import Inserting
from obsidian_agent.tui.screens.open_note import OpenNote
from obsidian_agent.tui.screens.room import Room
from obsidian_agent.tui.screens.saving import Saving
from obsidian_agent.tui.screens.sending import Sending
from obsidian_agent.tui.screens.suggesting import Suggesting
from obsidian_agent.tui.screens.telling import Telling
from obsidian_agent.tui.screens.turns import Turns
from obsidian_agent.tui.screens.undoing import Undoing
from obsidian_agent.tui.talk import Talk
from obsidian_agent.tui.unasked import unasked
from obsidian_agent.tui.widgets.chat import ChatPane
from obsidian_agent.tui.widgets.panes import Panes
from obsidian_agent.tui.widgets.plan import PlanPane
from obsidian_agent.tui.widgets.progress import ProgressPane
from obsidian_agent.tui.widgets.prompt import Prompt
from obsidian_agent.tui.widgets.result import ResultPane
from obsidian_agent.tui.widgets.top_bar import PaneTab, TopBar

if TYPE_CHECKING:
    from obsidian_agent.agent.app_services import AppServices
    from obsidian_agent.agent.threads.manager import ThreadManager
    from obsidian_agent.config.live import LiveSettings
    from obsidian_agent.tui.keyboard import Keyboard
    from obsidian_agent.tui.port import Session
    from obsidian_agent.tui.screens.router import Router
    from obsidian_agent.tui.talk import Ask

TIDY_SECONDS = 20.0
WARM_UP_SECONDS = 0.5
"""After the first frame: what a model needs is imported while the person reads the screen."""


class MainScreen(Screen[None]):
    """Chat, note and plan."""

    BINDINGS = bindings("main")
    AUTO_FOCUS = "Prompt"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-medium"), (150, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-low"), (34, "-high")]

    def __init__(
        self,
        session: Session,
        ask: Ask,
        keyboard: Keyboard,
        chats: ThreadManager | None = None,
        insight: AppServices | None = None,
        settings: LiveSettings | None = None,
        *,
        first_start: bool = False,
    ) -> None:
        super().__init__()
        self._first_start = first_start
        self.bridge = Bridge(session, lambda batch: self.post_message(EventsArrived(batch, self.bridge.dropped)))
        self.panes = Panes(lambda preview, change: self.bridge.call(session.plans.diff, preview, change), keyboard.appeared)
        self.desk = Desk(self, self.bridge, self.panes)
        self.talk = Talk(self.bridge, chats, ask)
        self.turns = Turns(self.desk, self.talk, self._state_changed, lambda event: self.desk.run(partial(self.saving.ask, event), "ask"))
        self.saving = Saving(self.desk, self.turns)
        self.undoing = Undoing(self.desk)
        self.deciding: Deciding = Deciding(self.desk, self.turns, self.undoing, self.saving)
        self.conversing: Conversing = Conversing(self.desk, self.turns, self.talk, self._state_changed)
        self.turns.unasked = lambda preview: settings is not None and unasked(preview, settings.current)
        informed = Informed(self.desk, insight)
        self.room: Room = Room(self.desk, self.talk, self.turns, insight)
        self.telling: Telling = Telling(self.desk, self.talk, informed)
        self.choosing: Choosing = Choosing(self.desk, self.talk, self.room, informed, settings)
        self.inserting: Inserting = Inserting(self.desk, self.turns.preview, settings)
        self.completing = Completing(self.desk, insight)
        self.suggesting = Suggesting(self.desk, self.talk, self.turns, self.saving)
        self.sending: Sending = Sending(self.desk, self.turns, keyboard, lambda command, rest: command.run(self, rest))
        self._router: Router | None = None
        self._garbage = Garbage()
        self._seen: tuple[str | None, str] | None = None

    def compose(self) -> ComposeResult:
        session = self.bridge.session
        yield TopBar(session.vault.name, session.planner_name)
        yield self.panes
        yield Footer()

    def on_mount(self) -> None:
        # Textual sets these classes with the first resize, which is one frame too late.
        width, height = self.app.size
        self.add_class(max((at, name) for at, name in self.HORIZONTAL_BREAKPOINTS if at <= width)[1])
        self.add_class(max((at, name) for at, name in self.VERTICAL_BREAKPOINTS if at <= height)[1])
        self._garbage.start()
        self.set_interval(TIDY_SECONDS, self._tidy)
        self._state_changed()
        self.desk.run(self._begin, "recovery")
        if self.talk.chats is not None:
            self.desk.run(self.conversing.watch, "elsewhere")
        self.call_after_refresh(self.bridge.session.vault.follow, lambda status: self.post_message(IndexTold(status)))
        self.set_timer(WARM_UP_SECONDS, self.bridge.session.warm_up)

    async def _begin(self) -> None:
        """What is to be decided at the start, one thing after the other."""
        await self.undoing.settle()
        if self._first_start:
            await asyncio.sleep(WARM_UP_SECONDS)
            await self.choosing.first()

    def on_unmount(self) -> None:
        self.bridge.session.vault.unfollow()
        self._garbage.stop()

    # --- what arrives ---------------------------------------------------------------------------------------------------------

    @on(EventsArrived)
    def _events_arrived(self, message: EventsArrived) -> None:
        if self._router is None:
            from obsidian_agent.tui.screens.router import Router

            self._router = Router(self.turns)
        if message.dropped != self.bridge.dropped:
            return
        for event in merged(message.events):
            self._router.show(event)

    @on(WorkEnded)
    def _work_ended(self, message: WorkEnded) -> None:
        self.turns.ended(message)

    @on(Prompt.Sent)
    def _sent(self, message: Prompt.Sent) -> None:
        self.sending.take(message.text)

    def _tidy(self) -> None:
        """Every so often: put away what nobody uses."""
        if self.turns.engine.phase == "idle":
            self._garbage.tidy()
            if self.talk.chats is not None:
                self.talk.chats.tidy()

    @on(ChatPane.Typed)
    def _typed(self) -> None:
        self._garbage.touched()
        self.completing.look()
        self.suggesting.look()

    @on(Prompt.FormWanted)
    def _form_wanted(self) -> None:
        self.suggesting.open()

    @on(PlanPane.Decided)
    @on(PlanPane.StepToggled)
    @on(PlanPane.DetailRequested)
    @on(ProgressPane.CancelRequested)
    @on(ResultPane.Wanted)
    def _wished(self, message: Wish) -> None:
        self.deciding.answer(message)

    @on(NoteRequested)
    def _note_requested(self, message: NoteRequested) -> None:
        self.desk.run(partial(self.desk.show_note, message.path), "note", exclusive=True)

    @on(OutsideRequested)
    def _outside_requested(self, message: OutsideRequested) -> None:
        self.desk.run(partial(self.desk.open_outside, message.path), "outside")

    @on(IndexTold)
    def _index_told(self, message: IndexTold) -> None:
        self.query_one(TopBar).index(message.status.done, message.status.total)

    @on(SettingChanged)
    def _setting_changed(self, message: SettingChanged) -> None:
        self.bridge.session.settings_changed()
        self.bridge.session.warm_up()
        self.choosing.apply(message.name)

    @on(ThreadDeleted)
    def _thread_deleted(self, message: ThreadDeleted) -> None:
        self.conversing.deleted(message.thread_id)

    @on(PaneTab.Clicked)
    def _tab_clicked(self, message: PaneTab.Clicked) -> None:
        self.panes.go(message.pane)

    @on(Panes.Changed)
    def _state_changed(self) -> None:
        if self.is_mounted:
            bar = self.query_one(TopBar)
            bar.mark(self.panes.front, waiting=self.turns.pending is not None and self.turns.engine.phase == "idle")
            bar.name_conversation(self.talk.title)
            seen = (self.talk.current, self.turns.engine.phase)
            if seen != self._seen and seen[1] == "idle":
                self.room.look()
            self._seen = seen
            self.suggesting.look()

    # --- keys -----------------------------------------------------------------------------------------------------------------

    def action_cancel(self) -> None:
        if not self.turns.cancel():
            self.panes.go("chat")

    def action_next_pane(self) -> None:
        self.panes.next()

    def action_toggle_selection(self) -> None:
        self.panes.use_selection = not self.panes.use_selection

    def action_clear(self) -> None:
        self.panes.chat.transcript.clear()

    def action_open_note(self) -> None:
        def opened(path: str | None) -> None:
            if path is not None:
                self.post_message(NoteRequested(path))

        self.app.push_screen(OpenNote(lambda: self.bridge.call(self.bridge.session.vault.notes)), opened)

    def action_actions(self, query: str = "") -> None:
        def chosen(name: str | None) -> None:
            if name is not None:
                self.deciding.run_action(name)

        self.app.push_screen(Actions(self.bridge, query), chosen)

    def action_tasks(self) -> None:
        self.conversing.show_tasks(self.deciding)

    def action_settings(self) -> None:
        self.choosing.settings()

    def action_threads(self) -> None:
        self.conversing.show()

    def action_new_thread(self) -> None:
        self.conversing.new()

    def action_history(self) -> None:
        def chosen(request: HistoryRequest | None) -> None:
            if request is not None:
                self.deciding.history(request)

        self.app.push_screen(History(self.bridge), chosen)
