"""The main screen: chat, note and plan side by side, and the handling of messages and keys."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual import on, work
from textual.app import ComposeResult, SuspendNotSupported
from textual.message import Message

from obsidian_agent import terminal_text
from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tui.bindings import bindings
from obsidian_agent.tui.commands import Command, parse_call
from obsidian_agent.tui.event_stream import EventsArrived, WorkEnded, merge_text
from obsidian_agent.tui.gc_policy import GcPolicy
from obsidian_agent.tui.screens.actions import MACRO
from obsidian_agent.tui.screens.conflicts import HistoryRequest
from obsidian_agent.tui.screens.dialogs import ChoiceScreen, Comment, DiffScreen, numbered
from obsidian_agent.tui.screens.health import HealthActions
from obsidian_agent.tui.screens.json_editor import MAX_PROBLEMS, PlanEditor, plan_problems
from obsidian_agent.tui.screens.models import ModelActions
from obsidian_agent.tui.screens.notes import NoteActions
from obsidian_agent.tui.screens.recovery import RecoveryActions
from obsidian_agent.tui.screens.suggestions import SuggestionActions
from obsidian_agent.tui.screens.tasks import TaskRequest, Tasks
from obsidian_agent.tui.screens.threads import ThreadActions
from obsidian_agent.tui.screens.undo import UndoActions
from obsidian_agent.tui.screens.waiting import WaitingActions
from obsidian_agent.tui.turn.controller import PlanSource, empty_selection_hint
from obsidian_agent.tui.turn.proposals import Proposals
from obsidian_agent.tui.widgets.chat import ChatPane
from obsidian_agent.tui.widgets.footer import KeyFooter
from obsidian_agent.tui.widgets.panes import Panes, PaneTab, TopBar
from obsidian_agent.tui.widgets.plan import PlanPane
from obsidian_agent.tui.widgets.prompt import ANSWER_HINT, FIRST_HINT, Prompt
from obsidian_agent.tui.widgets.row_list import Choice
from obsidian_agent.tui.widgets.run import ProgressPane, ResultPane

if TYPE_CHECKING:
    from obsidian_agent.providers.other_agent import AgentState
    from obsidian_agent.services.focus import Focus
    from obsidian_agent.tui.backend import Backend
    from obsidian_agent.tui.keyboard import Keyboard
    from obsidian_agent.tui.screens.router import Router
    from obsidian_agent.tui.screens.workspace import Signals
    from obsidian_agent.tui.turn.controller import Pending
    from obsidian_agent.tui.turn.proposals import ClientPlan
    from obsidian_agent.tui.turn.thread import Ask
    from obsidian_agent.vault.index.keeper import IndexStatus

CLEANUP_SECONDS: Final = 20.0
"""Time between two evictions of unused data."""
WARM_UP_SECONDS: Final = 0.5
"""Delay after the first frame before the modules that models need are imported."""

_ABOUT_SELECTION: Final = re.compile(
    r"\b(?:the|my|this|these|each|from|of|in)\s+(?:selection|selected)\b", re.I
)
_OPEN: Final = re.compile(r"open (.+)", re.I)


class MainScreen(
    ModelActions,
    ThreadActions,
    UndoActions,
    RecoveryActions,
    SuggestionActions,
    WaitingActions,
    HealthActions,
    NoteActions,
):
    """The main screen.

    `action_*` methods are the targets of key bindings and slash commands; mixins group them by
    topic.
    """

    SLASH: ClassVar[tuple[Command, ...]] = (
        Command("help", "Help", "All keys and commands", "app.help"),
        Command("tasks", "Tasks", "Tasks and plans of this conversation", "tasks"),
        Command(
            "repair",
            "Repair the last run",
            "Asks the model for a plan if the result differs from the preview",
            "repair",
        ),
        Command("undo", "Undo the last run", "Asks first", "undo_last"),
        Command("redo", "Redo the last undone run", "Shows first what changes", "redo"),
        Command("plan", "Preview the last plan again", "After you rejected it", "bring_back_plan"),
        Command("retry", "Send the last message again", "After an error, for example", "resend"),
        Command(
            "selection",
            "Toggle the selection",
            "Include the note's selection in the next message, or don't",
            "toggle_selection",
        ),
        Command("zoom", "Zoom", "Only the pane in front, or all panes again", "zoom"),
        Command("clear", "Clear the screen", "The conversation itself is not changed", "clear"),
        Command("quit", "Quit", "Asks first while a plan is being applied", "app.quit"),
    )
    BINDINGS = bindings("main")
    AUTO_FOCUS = "Prompt"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-medium"), (150, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-low"), (34, "-high")]

    class FocusMoved(Message):
        """Posted when the active note in Obsidian changes, or Obsidian starts or quits."""

        def __init__(self, live: Focus | None) -> None:
            super().__init__()
            self.live = live

    class Waiting(Message):
        """Posted when work has ended and the user can go on."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class AgentStateChanged(Message):
        """Posted when the state of an external agent changes."""

        def __init__(self, state: AgentState) -> None:
            super().__init__()
            self.state = state

    class IndexChanged(Message):
        """Posted when the index of the vault has made progress or applied changes."""

        def __init__(self, status: IndexStatus) -> None:
            super().__init__()
            self.status = status

    def __init__(
        self,
        backend: Backend,
        signals: Signals,
        keyboard: Keyboard,
        ask: Ask,
        *,
        first_start: bool = False,
    ) -> None:
        super().__init__(backend, signals, keyboard, ask)
        self._first_start = first_start
        self.waiting: dict[str, Pending] = {}
        self._drafts: dict[str, str] = {}
        self._router: Router | None = None
        self._gc_policy = GcPolicy()
        self._proposals = Proposals(self._is_free, self._show_proposal)
        self._last_state: tuple[str | None, str] | None = None
        self._warned_text: str | None = None
        self._opened_text: str | None = None
        """The message that names no single note to open, and is sent for that reason."""

    def compose(self) -> ComposeResult:
        # Textual sets these classes with the first resize, which is one frame too late.
        width, height = self.app.size
        self.add_class(
            max((at, name) for at, name in self.HORIZONTAL_BREAKPOINTS if at <= width)[1]
        )
        self.add_class(max((at, name) for at, name in self.VERTICAL_BREAKPOINTS if at <= height)[1])
        yield TopBar(self.backend.vault)
        yield self.panes
        yield KeyFooter()

    def on_resize(self) -> None:
        self.refresh_bindings()  # only a wide screen offers the zoom

    def on_mount(self) -> None:
        self._gc_policy.start()
        self.signals.setting_changed.subscribe(self, self._setting_changed)
        self.signals.thread_deleted.subscribe(self, self.forget_thread)

    def opened(self) -> None:
        """Start background work once the first content is mounted."""
        self.refresh_state()
        # Two refreshes, one for the text of the top bar and one for its layout: nothing below a
        # dialog is drawn, so that one must not open earlier.
        self.call_after_refresh(self.call_after_refresh, self._begin)
        self.session.offers_actions = True
        self.watch_threads()
        self.session.vault.follow(self._post_index_status)
        self.session.on_agent = lambda state: self.post_message(self.AgentStateChanged(state))
        self.set_interval(CLEANUP_SECONDS, self._clean_up)
        self.set_timer(WARM_UP_SECONDS, self.session.warm_up)
        self._receive_proposals()
        self.set_timer(WARM_UP_SECONDS, self.load_overview)
        self.set_timer(WARM_UP_SECONDS, self.watch_inbox)
        self.set_timer(WARM_UP_SECONDS, self.load_sent_messages)
        watch = partial(self.session.vault.watch_obsidian, self._post_focus)
        self.set_timer(WARM_UP_SECONDS, watch)

    @work(group="recovery", exit_on_error=False)
    async def _begin(self) -> None:
        await self.resolve_history()
        if self._first_start:
            await asyncio.sleep(WARM_UP_SECONDS)
            await self.offer_model()

    def on_unmount(self) -> None:
        if self.backend.is_open:
            self.session.vault.unfollow()
            self.stop_rules()
        self._gc_policy.stop()

    # --- incoming messages ------------------------------------------------------------------------

    @on(EventsArrived)
    def _events_arrived(self, message: EventsArrived) -> None:
        if self._router is None:
            from obsidian_agent.tui.screens.router import Router

            self._router = Router(self.turn, self.panes, self)
        if message.generation == self.stream.generation:
            for event in merge_text(message.events):
                self._router.show(event)

    @on(WorkEnded)
    def _work_ended(self, message: WorkEnded) -> None:
        self.turn.ended(message)
        self.end_choice()

    def _clean_up(self) -> None:
        if self.turn.phase == "idle":
            self._gc_policy.collect_if_idle()
            self.threads.evict_idle()

    @on(ChatPane.Edited)
    def _message_edited(self) -> None:
        self._gc_policy.record_input()
        self.suggest_completions()
        self.suggest_actions()

    @on(Prompt.FormRequested)
    def _form_requested(self) -> None:
        self.open_form()

    def _post_index_status(self, status: IndexStatus) -> None:
        self.post_message(self.IndexChanged(status))

    def _post_focus(self, live: Focus | None) -> None:
        self.post_message(self.FocusMoved(live))

    @on(FocusMoved)
    def _focus_moved(self, message: FocusMoved) -> None:
        self.query_one(TopBar).show_connection(obsidian=message.live is not None)
        self.panes.show_obsidian_focus(message.live)

    @on(AgentStateChanged)
    def _agent_state_changed(self, message: AgentStateChanged) -> None:
        self.query_one(TopBar).show_agent_state(message.state.name, message.state.state)
        if message.state.alarm is not None:
            self.add_entry("bad", message.state.alarm.message)

    @on(IndexChanged)
    def _index_changed(self, message: IndexChanged) -> None:
        self.query_one(TopBar).show_indexing(message.status.done, message.status.total)
        if message.status.done == message.status.total:
            self.notes_changed()
        if message.status.done == message.status.total and self.turn.pending is not None:
            self._compare_with_vault(self.turn.pending)

    @work(group="stale", exclusive=True, exit_on_error=False)
    async def _compare_with_vault(self, pending: Pending) -> None:
        """Report which files of a pending plan have changed since its preview."""
        changed = await asyncio.to_thread(self.session.plans.changed_since, pending.preview)
        if changed and pending is self.turn.pending and self.turn.phase == "idle":
            self.panes.work.plan.show_changed(changed)

    def _setting_changed(self, name: str) -> None:
        self.apply_setting(name)
        self.show_usage()

    @on(PaneTab.Clicked)
    def _tab_clicked(self, message: PaneTab.Clicked) -> None:
        self.panes.go(message.pane)

    @on(Panes.Changed)
    def refresh_state(self) -> None:
        """Update the screen after a change of the turn's state or of the front pane."""
        if not self.is_mounted:
            return
        bar = self.query_one(TopBar)
        is_waiting = self.turn.pending is not None and self.turn.phase == "idle"
        bar.mark_tabs(self.panes.front, waiting=is_waiting)
        bar.show_title(self.thread.title)
        chat = self.panes.chat
        chat.prompt.placeholder = ANSWER_HINT if chat.transcript.last_answer else FIRST_HINT
        if self.backend.is_open:
            state = (self.thread.id, self.turn.phase)
            if state != self._last_state and self.turn.phase == "idle":
                self.show_usage()
                self._report_end(is_waiting=is_waiting)
            self._last_state = state
        self.suggest_actions()
        self._send_queued()
        self._proposals.show_next()

    def _report_end(self, *, is_waiting: bool) -> None:
        """Report that the turn or the run in progress has ended."""
        phase = self._last_state[1] if self._last_state is not None else "idle"
        if is_waiting:
            self.post_message(self.Waiting("A plan waits for your approval"))
        elif phase == "running":
            self.post_message(self.Waiting("The run has ended"))
        elif phase != "idle":
            self.post_message(self.Waiting("The answer is ready"))

    def plan_arrived(self, text: str) -> None:
        self.notify(text, markup=False)
        self.post_message(self.Waiting(text))

    # --- messages of the user ---------------------------------------------------------------------

    @on(Prompt.Sent)
    def _sent(self, message: Prompt.Sent) -> None:
        self.submit(message.text)

    def submit(self, text: str) -> None:
        """Handle a sent message: run its command, start a turn, or show why neither is possible."""
        selection, no_text = (
            self.panes.editor_focus()[1],
            empty_selection_hint(self.key("main.open")),
        )
        if (call := parse_call(text, self.commands())) is not None:
            if call.command is None:
                self.show_hint(f"Unknown command: /{call.name}. /help lists all commands.")
            elif call.command.requires_argument and not call.argument:
                self.show_hint(f"Usage: /{call.command.name} {call.command.hint}")
            else:
                self.show_hint("")
                self.panes.chat.prompt.accept()
                self.keyboard.mark_action()
                self.run_command(call.command, call.argument)
        elif not text:
            return
        elif (prompt := self.prompt_call(text)) is not None:
            self.insert_prompt(text, prompt)
        elif self.turn.phase == "idle" and (plan := _pasted_plan(text)) is not None:
            self._preview_pasted(plan)
        elif self.turn.phase == "idle" and (macro := self.macro_named(text)) is not None:
            self.panes.chat.prompt.accept()
            self.keyboard.mark_action()
            self.open_action(f"{MACRO}{macro}")
        elif (match := _OPEN.fullmatch(text)) is not None and self._opened_text != text:
            self._open_or_send(text, match.group(1))
        elif selection is None and _ABOUT_SELECTION.search(text) and self._warned_text != text:
            self._warned_text = text
            send = self.key("prompt.send")
            self.show_hint(f"{no_text}\nPress {send} again to send it without a selection.")
        else:
            self._warned_text = self._opened_text = None
            self.show_hint("")
            self.panes.chat.prompt.accept()
            if self.turn.phase == "idle":
                self._start_turn(text)
            else:
                self.panes.chat.queue.add(text)
                self.refresh_state()

    def _preview_pasted(self, plan: Mapping[str, Any]) -> None:
        if problems := plan_problems(plan):
            messages = "\n".join(problem.message for problem in problems[:MAX_PROBLEMS])
            self.show_hint(f"This plan is not valid:\n{messages}")
        else:
            self.panes.chat.prompt.accept()
            self.preview_plan(plan)

    @work(group="note", exit_on_error=False)
    async def _open_or_send(self, text: str, name: str) -> None:
        """Open the note that a message names; send the message if no single note has the name."""
        matches = await self.notes_named(name)
        if self.panes.chat.prompt.text.strip() != text:
            return
        if len(matches) == 1:
            self.panes.chat.prompt.accept()
            self.show_note(matches[0])
        else:
            self._opened_text = text
            self.submit(text)

    def _send_queued(self) -> None:
        """Send the next queued message when nothing is left to do or to decide.

        After a failure it goes back into the box, as it may build on what did not happen.
        """
        chat = self.panes.chat
        if not chat.queue.messages:
            return
        is_asking = any(worker.group == "ask" for worker in self.workers if not worker.is_finished)
        if self.turn.phase != "idle":
            chat.queue.show_when("")
        elif self.turn.has_failed or is_asking:
            chat.take_back()
        elif self.turn.pending is not None:
            chat.queue.show_when(", after your decision")
        else:
            self._start_turn(chat.queue.take_first())

    @on(Prompt.EditorRequested)
    def _edit_message(self) -> None:
        """Edit the message in the user's editor, which has the terminal meanwhile."""
        from obsidian_agent.tui.external_editor import edit, editor_command

        prompt = self.panes.chat.prompt
        try:
            command = editor_command()
            with self.app.suspend():
                text = edit(command, prompt.text)
        except (SuspendNotSupported, ObsidianAgentError) as error:
            self.show_hint(str(error))
        else:
            prompt.text = text
            prompt.move_cursor(prompt.document.end)

    def _start_turn(self, text: str) -> None:
        self.keyboard.mark_sent()
        self.refused_by = None
        self.add_entry("you", text)
        self.freeze_focus()
        self.turn.send(text)

    def run_command(self, command: Command, rest: str = "") -> None:
        """Run the action of a command, with the text after its name if it takes an argument."""
        parameters = (rest,) if command.hint and rest else ()
        on_app, _, action = command.action.rpartition(".")
        self.app.call_later(self.app.run_action, (on_app, action, parameters), self)

    def action_resend(self) -> None:
        """Send the last message again; commands do not count."""
        for text in reversed(self.panes.chat.prompt.sent_messages):
            if parse_call(text, self.commands()) is None:
                self.submit(text)
                return
        self.show_hint("There is no earlier message.")

    def action_repair(self) -> None:
        """Ask for a plan that repairs the differences between the last run and its preview."""
        if self.turn.repair and self.turn.phase == "idle":
            self._start_turn(self.turn.repair)
        else:
            self.show_hint("There is nothing to repair.")

    # --- plans of other programs ------------------------------------------------------------------

    @work(group="proposals", exit_on_error=False)
    async def _receive_proposals(self) -> None:
        """Show the plans that clients of `mcp serve` propose, as long as the app runs."""
        from obsidian_agent.integrations.proposals import receive_proposals

        if (socket_path := self.backend.parts.proposals) is not None:
            await receive_proposals(socket_path, self._proposals.submit)

    def _is_free(self) -> bool:
        return (
            not self.panes.chat.queue.messages
            and self.turn.phase == "idle"
            and self.turn.pending is None
            and self.app.screen is self
        )

    def on_screen_resume(self) -> None:
        self._proposals.show_next()

    def _show_proposal(self, client: ClientPlan) -> None:
        name = terminal_text.shortened(client.proposal.client, 60)
        self.add_entry("note", f"“{name}” proposes a plan. Nothing runs unless you approve it.")
        self.freeze_focus()
        source = PlanSource(client=client)
        self.turn.preview(client.proposal.plan, frozenset(), {}, source=source)

    # --- decisions --------------------------------------------------------------------------------

    @on(PlanPane.Decided)
    def _decided(self, message: PlanPane.Decided) -> None:
        match message.decision:
            case "cancel" if self.turn.phase == "planning":
                self.turn.cancel()
            case "undo":
                self.undo_last()
            case _ if message.preview is not self.panes.work.plan.preview:
                return  # a newer plan has replaced the one that the user saw
            case "approve":
                self.turn.approve(message.preview)
            case "reject":
                self.turn.reject()
            case "cancel":
                self.turn.close()
            case "edit":
                self._edit_plan()
            case "comment":
                self._comment_on_plan()
            case "repair":
                self._repair_plan()
            case "preview":
                self.turn.preview_pending_again()

    @work(group="choice", exit_on_error=False)
    async def _repair_plan(self) -> None:
        """Let the user choose the file that a step means, else the model repair the plan."""
        from obsidian_agent.services.missing_file import missing_file, nearest_notes, with_file

        pending = self.turn.pending
        if pending is None or self.turn.phase != "idle":
            return
        missing = missing_file(pending.preview)
        notes: list[str] = []
        if missing is not None:
            paths = await asyncio.to_thread(lambda: self._finder().first(sys.maxsize))
            notes = await asyncio.to_thread(nearest_notes, missing, paths)
        if missing is None or not notes:
            self.turn.repair_plan()
            return
        rows = [Choice(note, note) for note in notes]
        if self.session.has_model:
            rows.append(Choice("", "Let the model repair the plan"))
        title = f"{missing} does not exist. Which note is meant?"
        choice = await self.app.push_screen_wait(ChoiceScreen(title, numbered(rows)))
        if choice == "":
            self.turn.repair_plan()
        elif choice is not None and self.turn.pending is pending:
            document = with_file(pending.plan.to_json(), missing, choice)
            values = with_file(dict(pending.preview.context.params), missing, choice)
            self._preview_instead(document, values, pending)

    def _preview_instead(
        self, document: Mapping[str, Any], values: Mapping[str, Any], pending: Pending
    ) -> None:
        """Preview a plan in place of the pending one, with what differs."""
        source = PlanSource(message=pending.message, client=pending.client, revises=pending)
        self.turn.preview(document, frozenset(), values, source=source)

    def _edit_plan(self) -> None:
        pending = self.turn.pending
        if pending is None or self.turn.phase != "idle":
            return

        def edited(document: Mapping[str, Any] | None) -> None:
            if document is not None:
                known = document.get("parameters", {})
                values = pending.preview.context.params
                declared = {name: value for name, value in values.items() if name in known}
                self._preview_instead(document, declared, pending)

        self.app.push_screen(PlanEditor(pending.plan.to_json()), edited)

    def _comment_on_plan(self) -> None:
        pending = self.turn.pending
        if pending is None or self.turn.phase != "idle":
            return

        def commented(text: str | None) -> None:
            if text:
                self.freeze_focus()
                self.turn.comment(text)
            elif text is not None and pending.action is not None:
                self.change_values(pending, "")

        self.app.push_screen(Comment(has_form=pending.action is not None), commented)

    @on(PlanPane.StepToggled)
    def _step_toggled(self, message: PlanPane.StepToggled) -> None:
        self.turn.toggle(message.plan, message.step_id)

    @on(PlanPane.LeaveOutRequested)
    def _leave_out_requested(self, message: PlanPane.LeaveOutRequested) -> None:
        self.turn.leave_out(message.plan, message.toggled)

    @on(PlanPane.DetailRequested)
    def _detail_requested(self, message: PlanPane.DetailRequested) -> None:
        self.app.push_screen(DiffScreen(message.title, message.content, message.turn_page))

    @on(ProgressPane.CancelRequested)
    def _cancel_requested(self) -> None:
        self.turn.cancel()

    @on(ResultPane.Requested)
    def _result_requested(self, message: ResultPane.Requested) -> None:
        run_id, applied = message.result.run_id, self.turn.last
        match message.action:
            case "undo":
                commands = message.result.effects.commands
                self.change_history(HistoryRequest("undo", run_id, commands=commands))
            case "redo":
                self.change_history(HistoryRequest("redo", run_id))
            case "save":
                if applied is not None and run_id is not None:
                    self.save_macro(run_id, applied.preview.approved_plan)
            case "preview":
                self.freeze_focus()
                self.turn.preview_last_again()
            case "rest":
                self.turn.preview_remaining(message.result)
            case "close":
                self.turn.close_result()

    @on(ResultPane.DiffRequested)
    def _diff_requested(self, message: ResultPane.DiffRequested) -> None:
        self.show_run_diff(message.run_id, message.path)

    def action_bring_back_plan(self) -> None:
        """Preview the last rejected or applied plan again, unless another plan is pending."""
        if self.turn.pending is not None:
            self.show_hint("Another plan is pending. Approve or reject it first, then use /plan.")
        elif self.turn.last is None or self.turn.phase != "idle":
            self.show_hint("There is no earlier plan.")
        else:
            self.freeze_focus()
            self.turn.preview_again(self.turn.last)

    # --- keys -------------------------------------------------------------------------------------

    def action_cancel(self) -> None:
        if not self.turn.cancel():
            self.panes.go("chat")

    def action_next_pane(self) -> None:
        self.panes.next()

    def action_zoom(self) -> None:
        """Show only the pane in front, or all panes again."""
        self.panes.is_zoomed = not self.panes.is_zoomed

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the zoom where another pane is beside the focused one, or was."""
        if action == "zoom":
            return not (isinstance(self.focused, Prompt) or self.has_class("-narrow"))
        return True

    def action_toggle_selection(self) -> None:
        self.panes.use_selection = not self.panes.use_selection

    def action_clear(self) -> None:
        self.panes.chat.end_welcome()
        self.panes.chat.transcript.clear()

    def action_undo_last(self) -> None:
        self.undo_last()

    def action_redo(self) -> None:
        self.change_history(HistoryRequest("redo"))

    def action_tasks(self) -> None:
        """Show the tasks and plans of the current conversation."""
        if self.thread.id is None:
            self.show_hint("This conversation has no tasks yet.")
        else:
            self.app.push_screen(Tasks(self.threads, self.thread.id), self._task_chosen)

    def _task_chosen(self, request: TaskRequest | None) -> None:
        if request is None or not self.ensure_idle():
            return
        if request.what == "preview":
            self.preview_plan(dict(request.plan.plan))
        else:
            self.change_history(HistoryRequest(request.what, request.plan.run_id))


def _pasted_plan(text: str) -> Mapping[str, Any] | None:
    """Return the plan that a message consists of, as another program wrote it, or None."""
    if not text.startswith("{"):
        return None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) and "steps" in document else None
