"""The base of the main screen: its panes, its turn, and the methods that all actions share."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct
from textual import work
from textual.screen import Screen
from textual.signal import Signal
from textual.worker import Worker, WorkerState

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tui.bindings import key_label
from obsidian_agent.tui.event_stream import EventsArrived, EventStream
from obsidian_agent.tui.turn.controller import PlanSource, TurnController
from obsidian_agent.tui.turn.thread import CurrentThread
from obsidian_agent.tui.widgets.panes import Panes
from obsidian_agent.tui.widgets.plan import ChangeReader
from obsidian_agent.tui.widgets.run_files import run_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from obsidian_agent.agent.events import ActionsOffered, ExecutionResult, NeedsInput
    from obsidian_agent.app_services import AppServices
    from obsidian_agent.config.live import LiveSettings
    from obsidian_agent.plan.left_out import LeftOut
    from obsidian_agent.plan.result import Preview
    from obsidian_agent.services.session import Session
    from obsidian_agent.threads.manager import ThreadManager
    from obsidian_agent.tui.backend import Backend
    from obsidian_agent.tui.commands import Command
    from obsidian_agent.tui.keyboard import Keyboard
    from obsidian_agent.tui.plan_rows import PlanState
    from obsidian_agent.tui.report_lines import Speaker
    from obsidian_agent.tui.turn.controller import Pending
    from obsidian_agent.tui.turn.thread import Ask
    from obsidian_agent.vault.views.changes import NetChange
    from obsidian_agent.vault.views.diff import TextEdit


class Signals(Struct, frozen=True):
    """The signals between screens."""

    setting_changed: Signal[str]
    """Carries the name of the setting."""
    thread_deleted: Signal[str]
    """Carries the id of the thread."""


class Workspace(Screen[None]):
    """The view of a turn (`TurnView`). Errors of its workers are reported in the conversation."""

    SLASH: ClassVar[tuple[Command, ...]] = ()
    """The slash commands for the actions of a class, without those of its bases."""

    @classmethod
    def commands(cls) -> list[Command]:
        """Return the commands of this class and its bases."""
        return [command for base in cls.__mro__ for command in vars(base).get("SLASH", ())]

    def __init__(self, backend: Backend, signals: Signals, keyboard: Keyboard, ask: Ask) -> None:
        super().__init__()
        self.signals = signals
        self.backend = backend
        self.keyboard = keyboard
        self.panes = Panes(ChangeReader(self._diff, self._edits), keyboard.mark_work_appeared)
        self.stream = EventStream(
            lambda batch: self.post_message(EventsArrived(batch, self.stream.generation))
        )
        self.thread = CurrentThread(backend, ask)
        self.turn = TurnController(backend, self.stream, self.thread, self)
        self.refused_by: str | None = None
        """The name of the setting that refused the last plan, if any."""

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

    def _diff(self, change: NetChange) -> str:
        return self.session.plans.diff(change)

    def _edits(self, change: NetChange) -> Sequence[TextEdit]:
        return self.session.plans.edits(change)

    def key(self, key_id: str) -> str:
        """Return the label of the key that is currently bound to `key_id`."""
        return key_label(self, key_id)

    # --- shared by actions ------------------------------------------------------------------------

    def add_entry(self, speaker: Speaker, text: str) -> None:
        """Add an entry to the conversation. The first message replaces the introduction."""
        if speaker == "you":
            self.panes.chat.end_welcome()
        self.panes.chat.transcript.add_entry(speaker, text)

    def show_hint(self, text: str) -> None:
        """Show a short hint above the message box; "" hides it."""
        self.panes.chat.hint(text)

    def offer_setting(self, name: str) -> None:
        """Offer to change the setting that refused a plan. Its message goes back into the box."""
        self.refused_by = name
        text = f"{self.key('main.settings')} opens the setting."
        if self.turn.message is not None:
            self.recall_message()
            text += f" {self.key('prompt.send')} then sends the message again."
        self.add_entry("note", text)

    def recall_message(self) -> None:
        """Put the last message back into its box, unless another one was begun there."""
        chat = self.panes.chat
        if not (chat.prompt.text or chat.queue.messages):
            chat.prompt.action_older()

    def ensure_idle(self) -> bool:
        """Return True if no turn is running; otherwise show a hint."""
        if self.turn.phase != "idle":
            self.panes.chat.hint(
                f"Still working on the last message. Press {self.key('main.cancel')} to cancel.",
                while_busy=True,
            )
        return self.turn.phase == "idle"

    def ensure_not_applying(self) -> bool:
        """Return True if no plan is being applied; otherwise show a hint."""
        if self.turn.phase == "running":
            self.panes.chat.hint(
                "A plan is being applied. Try again when it is done.", while_busy=True
            )
        return self.turn.phase != "running"

    def freeze_focus(self) -> None:
        """Record the open note and the selection in the session, right before a turn."""
        self.session.vault.set_focus(*self.panes.editor_focus())

    def vault_changed(self) -> None:
        """Update the index and the open note after a change of files."""
        self.session.vault.refresh_soon()
        if self.panes.note.path is not None:
            self.show_note(self.panes.note.path, quiet=True)

    @work(group="note", exclusive=True, exit_on_error=False)
    async def show_note(
        self, path: str, line: int | None = None, *, quiet: bool = False, travels: bool = False
    ) -> None:
        """Open a note, at a line (from 1). With `quiet`, a deleted one is closed silently.

        `travels` is true when the user goes back or forward.
        """
        from obsidian_agent.services import reading

        vault = self.session.vault
        try:
            note = await asyncio.to_thread(lambda: reading.read(vault.view(), path))
        except ObsidianAgentError:
            if not quiet:
                raise
            self.panes.note.close()
            return
        self.panes.note.open(note, line, from_history=travels)
        if not quiet:
            self.panes.go("note")
        with contextlib.suppress(ObsidianAgentError):
            known = await asyncio.to_thread(lambda: reading.link_facts(vault.view(), path))
            self.panes.note.add_link_facts(path, known)

    def show_health(self, kinds: Sequence[str] = ()) -> None:
        """Examine the vault, and show the findings of some kinds, or all."""
        raise NotImplementedError

    def refresh_state(self) -> None:
        """Update the screen after a change of the turn's state."""
        raise NotImplementedError

    def run_command(self, command: Command, rest: str = "") -> None:
        """Run the action of a command."""
        raise NotImplementedError

    # --- the view of a turn -----------------------------------------------------------------------

    def ask(self, event: NeedsInput | ActionsOffered) -> object:
        """Ask for missing values, or for a choice among candidates."""
        raise NotImplementedError

    def change_values(self, plan: Pending, comment: str) -> object:
        """Change the values of a plan made without a model, as a comment says."""
        raise NotImplementedError

    def busy(self, what: str) -> None:
        """Show the current activity; "" ends it."""
        if what:
            self.panes.chat.activity.start(what)
        else:
            self.panes.chat.work_ended()

    def end_stream(self, *, keep: bool, mark: str = "") -> None:
        """End the streamed answer. With `keep` its text stays, followed by `mark`."""
        self.panes.chat.transcript.end_stream(keep=keep, mark=mark)

    def lock_plan(self, disabled: frozenset[str] | None, left_out: LeftOut | None = None) -> None:
        """Lock the plan until a new preview arrives, with what it will be without, if changed."""
        self.panes.work.plan.wait(disabled, left_out)

    def show_plan(self, state: PlanState) -> None:
        """Show a preview. It can be approved once it is complete."""
        self.panes.chat.end_welcome()
        self.panes.work.show("plan")
        self.panes.work.plan.show(state)

    def show_plan_notice(self, text: str) -> None:
        """Show a remark on the displayed plan."""
        self.panes.work.plan.show_notice(text)

    def put_aside(self, plan: Pending) -> object:
        """Store a plan that is not decided on among those that wait."""
        raise NotImplementedError

    def bring_forward(self, *, only_beside: bool = False) -> None:
        """Show the work pane; focus it unless `only_beside` is true or a message is being typed."""
        self.panes.side = "work"
        if not only_beside and not self.panes.chat.prompt.text:
            self.panes.go("work")

    def focus_work(self) -> None:
        """Focus the new content of the work pane if that pane has the focus."""
        if self.panes.front == "work":
            self.panes.go("work")

    def show_nothing(self) -> None:
        """Show the empty work pane."""
        self.panes.work.show("idle")
        self.panes.go("chat")

    def show_run(self, preview: Preview) -> None:
        """Show the progress of a run that is about to start."""
        self.panes.work.progress.prepare(preview)
        self.panes.work.show("run")
        self.panes.go("work")

    def show_stopping(self) -> None:
        """Show that the run stops after the current file."""
        self.panes.work.progress.show_cancelling()

    def end_run(self, result: ExecutionResult | None) -> None:
        """End the progress, and show the result of the run if it has one."""
        self.panes.work.progress.finish()
        if result is not None:
            self.panes.work.result.show(result)
            self.panes.work.show("result")
            self.focus_work()
            if result.run_id is not None:
                self._read_files(result.run_id)

    @work(group="run files", exclusive=True, exit_on_error=False)
    async def _read_files(self, run_id: str) -> None:
        run = await asyncio.to_thread(self.session.runs.show, run_id)
        rows = await asyncio.to_thread(run_rows, run, (), {})
        self.panes.work.result.show_files(run_id, rows)

    def preview_plan(
        self,
        document: Mapping[str, object],
        values: Mapping[str, object] | None = None,
        *,
        message: str | None = None,
    ) -> None:
        """Preview a plan with the current focus; `message` is the one from which it was made."""
        self.freeze_focus()
        source = PlanSource(message=message)
        self.turn.preview(document, frozenset(), values or {}, source=source)
