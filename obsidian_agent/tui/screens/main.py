"""The main screen: puts panes and flows together and says who answers which message.

What happens when the person decides: each wish that a pane posts, answered in one place.

What becomes of a message that was sent: a command, a turn, or a remark on why it is neither.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, assert_never

from textual import on
from textual.app import ComposeResult
from textual.screen import Screen
from textual.widgets import Footer

from obsidian_agent.tui.bindings import bindings
from obsidian_agent.tui.commands import Called, called
from obsidian_agent.tui.event_stream import Bridge, merged
from obsidian_agent.tui.gc_policy import Garbage
from obsidian_agent.tui.messages import EventsArrived, IndexTold, NoteRequested, OutsideRequested, SettingChanged, ThreadDeleted, WorkEnded
from obsidian_agent.tui.screens.actions import MACRO, Actions
from obsidian_agent.tui.screens.dialogs import Confirm, DiffScreen
from obsidian_agent.tui.screens.history import History, HistoryRequest
from obsidian_agent.tui.screens.json_editor import PlanEditor
from obsidian_agent.tui.screens.macros import Saving
from obsidian_agent.tui.screens.models import Choosing
from obsidian_agent.tui.screens.open_note import OpenNote
from obsidian_agent.tui.screens.reports import Informed, Room, Telling
from obsidian_agent.tui.screens.suggestions import Completing, Suggesting
from obsidian_agent.tui.screens.threads import Conversing, Inserting
from obsidian_agent.tui.screens.undo import Undoing
from obsidian_agent.tui.screens.workspace import Desk
from obsidian_agent.tui.turn.controller import NO_SELECTION, Turns, unasked
from obsidian_agent.tui.turn.thread import Talk
from obsidian_agent.tui.widgets.chat import ChatPane
from obsidian_agent.tui.widgets.panes import Panes, PaneTab, TopBar
from obsidian_agent.tui.widgets.plan import PlanPane
from obsidian_agent.tui.widgets.prompt import Prompt
from obsidian_agent.tui.widgets.run import ProgressPane, ResultPane

if TYPE_CHECKING:
    from obsidian_agent.agent.app_services import Insight
    from obsidian_agent.agent.events import ExecutionResult
    from obsidian_agent.agent.threads.manager import Chats
    from obsidian_agent.config.live import LiveSettings
    from obsidian_agent.plan.result import Preview
    from obsidian_agent.tui.commands import Command
    from obsidian_agent.tui.keyboard import Keyboard
    from obsidian_agent.tui.screens.history import HistoryRequest
    from obsidian_agent.tui.screens.macros import Saving
    from obsidian_agent.tui.screens.undo import Undoing
    from obsidian_agent.tui.screens.workspace import Desk
    from obsidian_agent.tui.session_port import Session
    from obsidian_agent.tui.turn.controller import Turns
    from obsidian_agent.tui.turn.router import Router
    from obsidian_agent.tui.turn.thread import Ask


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
        chats: Chats | None = None,
        insight: Insight | None = None,
        settings: LiveSettings | None = None,
        *,
        first_start: bool = False,
    ) -> None:
        super().__init__()
        self._first_start = first_start
        self.bridge = Bridge(session, lambda batch: self.post_message(EventsArrived(batch, self.bridge.dropped)))
        self.panes = Panes(lambda preview, change: self.bridge.call(session.diff, preview, change), keyboard.appeared)
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
        yield TopBar(session.vault_name, session.planner_name)
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
        self.call_after_refresh(self.bridge.session.follow, lambda status: self.post_message(IndexTold(status)))
        self.set_timer(WARM_UP_SECONDS, self.bridge.session.warm_up)

    async def _begin(self) -> None:
        """What is to be decided at the start, one thing after the other."""
        await self.undoing.settle()
        if self._first_start:
            await asyncio.sleep(WARM_UP_SECONDS)
            await self.choosing.first()

    def on_unmount(self) -> None:
        self.bridge.session.unfollow()
        self._garbage.stop()

    # --- what arrives ---------------------------------------------------------------------------------------------------------

    @on(EventsArrived)
    def _events_arrived(self, message: EventsArrived) -> None:
        if self._router is None:
            from obsidian_agent.tui.turn.router import Router

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

        self.app.push_screen(OpenNote(lambda: self.bridge.call(self.bridge.session.notes)), opened)

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


Wish = PlanPane.Decided | PlanPane.StepToggled | PlanPane.DetailRequested | ProgressPane.CancelRequested | ResultPane.Wanted


class Deciding:
    """Knows the flows; holds nothing."""

    def __init__(self, desk: Desk, turns: Turns, undoing: Undoing, saving: Saving) -> None:
        self._desk = desk
        self._turns = turns
        self._undoing = undoing
        self._saving = saving

    def answer(self, wish: Wish) -> None:
        """Do what was wished."""
        match wish:
            case PlanPane.Decided():
                self._plan(wish.decision, wish.preview)
            case PlanPane.StepToggled():
                self._turns.toggle(wish.step_id)
            case PlanPane.DetailRequested():
                self._desk.app.push_screen(DiffScreen(wish.title, wish.content))
            case ProgressPane.CancelRequested():
                self._turns.cancel()
            case ResultPane.Wanted():
                self._result(wish.what, wish.result)
            case _:
                assert_never(wish)

    def _plan(self, decision: str, preview: Preview) -> None:
        match decision:
            case "approve":
                self._turns.approve(preview)
            case "cancel" if self._turns.engine.phase == "planning":
                self._turns.cancel()
            case "reject" | "cancel":
                self._turns.reject()
            case "edit":
                self._edit()
            case "undo":
                self._desk.run(self._ask_undo, "undo")

    def _edit(self) -> None:
        pending = self._turns.pending
        if pending is None or self._turns.engine.phase != "idle":
            return

        def edited(document: Mapping[str, Any] | None) -> None:
            if document is not None:
                self._turns.preview(document, frozenset(), pending.preview.context.params, message=pending.message)

        self._desk.app.push_screen(PlanEditor(pending.plan.to_json()), edited)

    def _result(self, what: str, result: ExecutionResult) -> None:
        match what:
            case "undo":
                self._desk.run(partial(self._undoing.undo, result.run_id), "undo")
            case "save":
                applied = self._turns.last
                if applied is not None and result.run_id is not None:
                    self._desk.run(partial(self._saving.save, result.run_id, applied.preview.approved_plan), "save")
            case "close":
                self._desk.panes.work.show("idle")
                self._desk.panes.go("chat")

    def history(self, request: HistoryRequest) -> None:
        """Undo a run of the past, whole or in part, or redo."""
        if self._turns.engine.phase == "running":
            self._desk.panes.chat.hint("A plan is being applied. Undo waits until it is done.")
            return
        match request.what:
            case "undo":
                self._desk.run(partial(self._undoing.undo, request.run_id), "undo")
            case "step" if request.run_id is not None:
                self._desk.run(partial(self._undoing.back_to_step, request.run_id), "undo")
            case _:
                self._desk.run(self._undoing.redo, "undo")

    def run_saved(self, name: str) -> None:
        """Preview a saved action."""
        if self._turns.engine.phase == "running":
            self._desk.panes.chat.hint("A plan is being applied. Try again when it is done.")
            return
        self._desk.run(partial(self._saving.run, name), "saved", exclusive=True)

    def run_action(self, name: str) -> None:
        """The form of an action of the menu, or its preview where it takes nothing; `macro:NAME` is one of the person's."""
        if name.startswith(MACRO):
            self.run_saved(name.removeprefix(MACRO))
        elif self._turns.engine.phase == "running":
            self._desk.panes.chat.hint("A plan is being applied. Try again when it is done.")
        else:
            self._desk.run(partial(self._saving.run_recipe, name), "saved", exclusive=True)

    def bring_back(self) -> None:
        """Preview the plan again that was rejected or applied last. Not in the place of one that waits."""
        last = self._turns.last
        if self._turns.pending is not None:
            self._desk.panes.chat.hint("A plan waits already. Approve or reject it; then /plan brings back the last one.")
            return
        if last is None or self._turns.engine.phase != "idle":
            self._desk.panes.chat.hint("There is no earlier plan.")
            return
        self._desk.freeze_focus()
        self._turns.preview(last.plan.to_json(), frozenset(), last.preview.context.params, message=last.message)

    async def _ask_undo(self) -> None:
        if await self._desk.app.push_screen_wait(
            Confirm("Undo", "Undo the last run? The plan on the screen is computed again afterwards.", "Undo")
        ):
            await self._undoing.undo(None)
            pending = self._turns.pending
            if pending is not None:
                self._turns.preview(pending.plan.to_json(), frozenset(), pending.preview.context.params, message=pending.message)


_ABOUT_SELECTION: Final = re.compile(r"\b(?:the|my|this|these|each|from|of|in)\s+(?:selection|selected)\b", re.I)


class Sending:
    """`run` carries out a command with what followed its name."""

    def __init__(self, desk: Desk, turns: Turns, keyboard: Keyboard, run: Callable[[Command, str], object]) -> None:
        self._desk = desk
        self._turns = turns
        self._run = run
        self._keyboard = keyboard
        self._warned_about: str | None = None

    def take(self, text: str) -> None:
        """A message of the person's."""
        chat, selection = self._desk.panes.chat, self._desk.panes.attention()[1]
        if (call := called(text)) is not None:
            self._call(call)
        elif self._turns.engine.phase != "idle":
            chat.hint("Still working on the last message. Esc cancels it.")
        elif not text:
            chat.hint("Type what should happen with the selection." if selection else NO_SELECTION)
        elif selection is None and _ABOUT_SELECTION.search(text) and self._warned_about != text:
            self._warned_about = text
            chat.hint(f"{NO_SELECTION}\nEnter once more sends the message without a selection.")
        else:
            self._warned_about = None
            chat.hint("")
            chat.prompt.accept()
            self._say(text)

    def say_again(self) -> None:
        """The last message once more."""
        last = next((text for text in reversed(self._desk.panes.chat.prompt.said) if called(text) is None), None)
        if last is not None:
            self.take(last)
        else:
            self._desk.panes.chat.hint("There is no earlier message.")

    def repair(self) -> None:
        """Ask for a plan that repairs what a run left unlike its preview."""
        if self._turns.repair and self._turns.engine.phase == "idle":
            self._say(self._turns.repair)
        else:
            self._desk.panes.chat.hint("There is nothing to repair.")

    def _say(self, text: str) -> None:
        self._keyboard.sent()
        self._desk.panes.chat.transcript.say("you", text)
        self._desk.freeze_focus()
        self._turns.send(text)

    def _call(self, call: Called) -> None:
        """A command that was written instead of a message."""
        chat, command = self._desk.panes.chat, call.command
        if command is None:
            chat.hint(f"There is no command /{call.name}. /help lists all.")
        elif command.needs and not call.rest:
            chat.hint(f"Write it as /{command.name} {command.hint}.")
        else:
            chat.hint("")
            chat.prompt.accept()
            self._keyboard.used()
            self._run(command, call.rest)
