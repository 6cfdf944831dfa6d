"""The ground of the main screen: its panes, the turn that goes on in them, and what every action of the screen does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.screen import Screen
from textual.signal import Signal
from textual.worker import Worker, WorkerState

from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tui.bindings import key_label
from obsidian_agent.tui.event_stream import EventsArrived, EventStream
from obsidian_agent.tui.turn.controller import TurnController
from obsidian_agent.tui.turn.thread import CurrentThread
from obsidian_agent.tui.widgets.panes import Panes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from obsidian_agent.agent.events import ExecutionResult, NeedsInput
    from obsidian_agent.app_services import AppServices
    from obsidian_agent.config.live import LiveSettings
    from obsidian_agent.plan.model import ActionPlan
    from obsidian_agent.plan.result import Preview
    from obsidian_agent.services.session import Session
    from obsidian_agent.threads.manager import ThreadManager
    from obsidian_agent.tui.backend import Backend
    from obsidian_agent.tui.commands import Command
    from obsidian_agent.tui.keyboard import Keyboard
    from obsidian_agent.tui.report_lines import Speaker
    from obsidian_agent.tui.turn.thread import Ask
    from obsidian_agent.vault.views.changes import NetChange


@dataclass(frozen=True, slots=True)
class Signals:
    """What screens tell each other: the name of a setting that has another value, the id of a thread that is gone for good."""

    setting_changed: Signal[str]
    thread_deleted: Signal[str]


class Workspace(Screen[None]):
    """Shows the turn (`TurnView`). An error of the core that ends a worker of this screen is said in the conversation."""

    SLASH: ClassVar[tuple[Command, ...]] = ()
    """The commands of a class's own actions."""

    @classmethod
    def commands(cls) -> list[Command]:
        """All commands."""
        return [command for each in cls.__mro__ for command in vars(each).get("SLASH", ())]

    def __init__(self, backend: Backend, signals: Signals, keyboard: Keyboard, ask: Ask) -> None:
        super().__init__()
        self.signals = signals
        self.backend = backend
        self.keyboard = keyboard
        self.panes = Panes(self._diff, keyboard.mark_appeared)
        self.stream = EventStream(
            lambda batch: self.post_message(EventsArrived(batch, self.stream.generation))
        )
        self.thread = CurrentThread(backend, ask)
        self.turn = TurnController(backend, self.stream, self.thread, self)

    @property
    def session(self) -> Session:
        return self.backend.parts.session

    @property
    def threads(self) -> ThreadManager:
        return self.backend.parts.threads

    @property
    def services(self) -> AppServices:
        return self.backend.parts.services

    @property
    def settings(self) -> LiveSettings:
        return self.backend.parts.settings

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if event.state is WorkerState.ERROR:
            error = event.worker.error
            if isinstance(error, ObsidianAgentError):
                self.add_entry("bad", error.problem().message)
            elif error is not None:
                self.app.post_message(event)

    async def _diff(self, preview: Preview, change: NetChange) -> str:
        return await asyncio.to_thread(self.session.plans.diff, change)

    def key(self, key_id: str) -> str:
        """A key in force, as people read it."""
        return key_label(self, key_id)

    # --- what actions do --------------------------------------------------------------------------------------------------------

    def add_entry(self, speaker: Speaker, text: str) -> None:
        """An entry in the conversation."""
        self.panes.chat.transcript.add_entry(speaker, text)

    def show_hint(self, text: str) -> None:
        """A short remark above the message box; "" takes it away."""
        self.panes.chat.hint(text)

    def ensure_idle(self) -> bool:
        """Whether nothing goes on; else says so."""
        if self.turn.phase != "idle":
            self.panes.chat.hint(
                f"Still working on the last message. {self.key('main.cancel')} cancels it.",
                while_busy=True,
            )
        return self.turn.phase == "idle"

    def ensure_not_applying(self) -> bool:
        """Whether no plan is being applied; else says so."""
        if self.turn.phase == "running":
            self.panes.chat.hint(
                "A plan is being applied. Try again when it is done.", while_busy=True
            )
        return self.turn.phase != "running"

    def freeze_focus(self) -> None:
        """Tell the session what the person looks at, right before a turn."""
        self.session.vault.set_focus(*self.panes.editor_focus())

    def vault_changed(self) -> None:
        """Files changed: show the open note as it is now."""
        self.session.vault.refresh_soon()
        if self.panes.note.path is not None:
            self.show_note(self.panes.note.path, quiet=True)

    @work(group="note", exclusive=True, exit_on_error=False)
    async def show_note(self, path: str, line: int | None = None, *, quiet: bool = False) -> None:
        """Read a note and show it, at a line (from 1). With `quiet` a note that is gone is closed without a word."""
        try:
            text = await asyncio.to_thread(self.session.vault.read_note, path)
        except ObsidianAgentError:
            if not quiet:
                raise
            self.panes.note.close()
            return
        self.panes.note.open(path, text, line)
        if not quiet:
            self.panes.go("note")

    def refresh_state(self) -> None:
        """What goes on has changed."""
        raise NotImplementedError

    # --- the turn as it is shown ------------------------------------------------------------------------------------------------

    def ask(self, event: NeedsInput) -> object:
        """Something is missing or unclear."""
        raise NotImplementedError

    def busy(self, what: str) -> None:
        """What goes on; "" when nothing does."""
        if what:
            self.panes.chat.activity.start(what)
        else:
            self.panes.chat.work_ended()

    def end_stream(self, *, keep: bool, mark: str = "") -> None:
        """No more of the answer comes; `keep` what came, with a `mark`."""
        self.panes.chat.transcript.end_stream(keep=keep, mark=mark)

    def lock_plan(self, disabled: frozenset[str] | None) -> None:
        """A fresh preview is on its way; `disabled` are the steps that it leaves out, if they change."""
        self.panes.work.plan.wait(disabled)

    def show_plan(
        self, preview: Preview, plan: ActionPlan, disabled: frozenset[str], *, complete: bool
    ) -> None:
        """A preview, which can be approved when it is `complete`."""
        self.panes.work.show("plan")
        self.panes.work.plan.show(preview, plan, disabled, complete=complete)

    def bring_forward(self, *, only_beside: bool = False) -> None:
        """Look at the plan; `only_beside` the conversation."""
        self.panes.side = "work"
        if not only_beside and not self.panes.chat.prompt.text:
            self.panes.go("work")

    def focus_work(self) -> None:
        """What is new in the work pane gets the keys if that pane has them."""
        if self.panes.front == "work":
            self.panes.go("work")

    def show_nothing(self) -> None:
        """No plan, no run, no result."""
        self.panes.work.show("idle")
        self.panes.go("chat")

    def show_run(self, preview: Preview) -> None:
        """A plan was approved; its run follows."""
        self.panes.work.progress.prepare(preview)
        self.panes.work.show("run")
        self.panes.go("work")

    def show_stopping(self) -> None:
        """The run stops after the current file."""
        self.panes.work.progress.show_cancelling()

    def end_run(self, result: ExecutionResult | None) -> None:
        """The run is over; without a result the plan is shown again."""
        self.panes.work.progress.finish()
        if result is not None:
            self.panes.work.result.show(result)
            self.panes.work.show("result")
            self.focus_work()

    def preview_plan(
        self,
        document: Mapping[str, object],
        values: Mapping[str, object] | None = None,
        *,
        message: str | None = None,
    ) -> None:
        """Preview a plan, with the note and the selection as they are now. `message` is what it was made from."""
        self.freeze_focus()
        self.turn.preview(document, frozenset(), values or {}, message=message)
