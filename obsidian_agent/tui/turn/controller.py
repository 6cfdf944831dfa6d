"""The state of a turn: message, plan, preview, decision, run, result. A view displays it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from msgspec import Struct

from obsidian_agent import terminal_text
from obsidian_agent.tui.change_groups import kinds_of
from obsidian_agent.tui.event_stream import WorkEnded
from obsidian_agent.tui.plan_rows import (
    PlanState,
    change_counts,
    describe_difference,
    reason_without_effect,
)

if TYPE_CHECKING:
    from textual.message import Message
    from textual.worker import Worker

    from obsidian_agent.agent.events import (
        ActionsOffered,
        AgentEvent,
        ExecutionResult,
        NeedsInput,
        PlanReady,
    )
    from obsidian_agent.errors import Problem
    from obsidian_agent.plan.left_out import LeftOut
    from obsidian_agent.plan.model import ActionPlan
    from obsidian_agent.plan.preview import DoneItems
    from obsidian_agent.plan.result import Preview
    from obsidian_agent.services.plans import ApprovedBy
    from obsidian_agent.tui.backend import Backend
    from obsidian_agent.tui.event_stream import EventStream
    from obsidian_agent.tui.report_lines import Speaker
    from obsidian_agent.tui.turn.proposals import ClientPlan
    from obsidian_agent.tui.turn.thread import CurrentThread

_SETTINGS: Final = {"DELETE_DISABLED": "allow_deletes", "COMMANDS_DISABLED": "allow_commands"}
"""The settings that allow what a plan was refused for."""

MAX_LISTED = 8
"""Problems that are listed; the rest is counted."""

Phase = Literal["idle", "planning", "running"]
Stage = Literal["idle", "plan", "run", "result"]
"""The content of the work pane."""


class FilledAction(Struct, frozen=True):
    """An action of the menu with values, as its form takes them."""

    name: str
    """The name of a recipe, or `macro:NAME`."""
    values: Mapping[str, str]


class Pending(Struct, frozen=True, kw_only=True):
    """A complete preview that waits for a decision."""

    preview: Preview
    plan: ActionPlan
    """The plan with all its steps."""
    disabled: frozenset[str]
    """The ids of the steps that the preview leaves out."""
    left_out: LeftOut | None = None
    """The changes that the preview leaves out."""
    macro: str | None = None
    """The name of the macro, if the plan is one."""
    action: FilledAction | None = None
    """The action that the user chose, if the plan is one."""
    message: str | None = None
    """The message from which the plan was made, if any."""
    client: ClientPlan | None = None
    """The proposal, if another program proposed the plan. It waits for the decision."""


class PlanSource(Struct, frozen=True, kw_only=True):
    """The origin of a plan."""

    message: str | None = None
    """The message from which it was made."""
    client: ClientPlan | None = None
    """The proposal of another program."""
    agent: str = ""
    """The name of the agent that made it."""
    revises: Pending | None = None
    """The plan that it takes the place of."""


class TurnView(Protocol):
    """The display of a turn, without decisions of its own."""

    def key(self, key_id: str) -> str: ...
    def add_entry(self, speaker: Speaker, text: str) -> None: ...
    def show_hint(self, text: str) -> None: ...
    def offer_setting(self, name: str) -> None: ...
    def busy(self, what: str) -> None: ...
    def end_stream(self, *, keep: bool, mark: str = "") -> None: ...
    def ask(self, event: NeedsInput | ActionsOffered) -> object: ...
    def lock_plan(
        self, disabled: frozenset[str] | None, left_out: LeftOut | None = None
    ) -> None: ...
    def show_plan(self, state: PlanState) -> None: ...
    def show_plan_notice(self, text: str) -> None: ...
    def put_aside(self, plan: Pending) -> object: ...
    def change_values(self, plan: Pending, comment: str) -> object: ...
    def bring_forward(self, *, only_beside: bool = False) -> None: ...
    def focus_work(self) -> None: ...
    def show_nothing(self) -> None: ...
    def show_run(self, preview: Preview) -> None: ...
    def show_stopping(self) -> None: ...
    def end_run(self, result: ExecutionResult | None) -> None: ...
    def show_note(self, path: str, line: int | None = None) -> object: ...
    def show_health(self, kinds: Sequence[str]) -> object: ...
    def vault_changed(self) -> None: ...
    def refresh_state(self) -> None: ...
    def post_message(self, message: Message) -> object: ...
    def run_worker(
        self,
        work: Callable[[], Coroutine[Any, Any, None]],
        *,
        group: str,
        exclusive: bool = False,
        exit_on_error: bool = True,
    ) -> Worker[None]: ...


class TurnController:
    """The controller of turns, of which one is active at a time.

    New planning replaces earlier planning and a pending plan; a run is never replaced. The end of
    work is reported by a `WorkEnded` with the token of its start, in the same queue as its events.
    """

    def __init__(
        self, backend: Backend, stream: EventStream, thread: CurrentThread, view: TurnView
    ) -> None:
        self._backend = backend
        self._stream = stream
        self._thread = thread
        self._view = view
        self.phase: Phase = "idle"
        self.stage: Stage = "idle"
        self.concluded = True
        """True if the turn or run has delivered its final event."""
        self.has_failed = False
        """True if the last turn, plan or run failed, was cancelled or was rejected."""
        self.pending: Pending | None = None
        self.last: Pending | None = None
        """The last rejected or applied plan, which can be previewed again."""
        self.macro: str | None = None
        """The macro that is being previewed, if any."""
        self.client: ClientPlan | None = None
        """The proposal of another program that is being previewed or shown, if any."""
        self.repair = ""
        """The message that asks for a repair of the last run; "" if it ended as previewed."""
        self._plan: ActionPlan | None = None
        self._disabled: frozenset[str] = frozenset()
        self._left_out: LeftOut | None = None
        self.revises: Pending | None = None
        """The plan of which the next one takes the place."""
        self._message: str | None = None
        self._action: FilledAction | None = None
        self._outputs: Mapping[str, Any] = {}
        """The outputs of the steps that have run, if the plan runs in stages."""
        self._done_items: DoneItems = {}
        """The outputs of the items that have run, of loops that ran in part."""
        self._agent = ""
        self._complete = False
        self._approve_when_idle: Preview | None = None
        self._next_stage: Callable[[], object] | None = None
        self._token = 0
        self._worker: Worker[None] | None = None

    @property
    def message(self) -> str | None:
        """The message of the user that is being planned, if any."""
        return self._message

    # --- starting and stopping --------------------------------------------------------------------

    def start(self, events: AsyncIterator[AgentEvent], what: str) -> None:
        """Follow a turn or preview, and cancel an earlier one. A pending plan is locked meanwhile.

        `what` is the activity to display.
        """
        self._view.busy(what)
        if self.stage == "plan":
            self._complete = False
            self._view.lock_plan(None)
        self._begin("planning", partial(self._stream.follow, events), exclusive=True)
        self._view.refresh_state()

    def send(self, message: str) -> None:
        """Start a turn with a message of the user."""
        self.forget_plan(message=message)
        self.start(self._thread.turn(message), "Planning")

    def preview(
        self,
        document: Mapping[str, Any],
        disabled: frozenset[str],
        values: Mapping[str, Any],
        *,
        keep: bool = False,
        source: PlanSource | None = None,
    ) -> None:
        """Preview a plan document: a new plan, or with `keep` the displayed one with other steps.

        `source` is the origin of a new plan.
        """
        from obsidian_agent.services.plans import PreviewOptions

        if not keep:
            source = source or PlanSource()
            self.forget_plan(message=source.message, client=source.client, revises=source.revises)
            self._agent = source.client.proposal.client if source.client else source.agent
        options = PreviewOptions(
            disabled=disabled,
            left_out=self._left_out,
            instruction=self._message,
            done=self._outputs,
            done_items=self._done_items,
            agent=self._agent,
        )
        session = self._backend.parts.session
        self.start(session.preview_plan(document, values, options), "Computing the preview")

    def preview_again(self, plan: Pending) -> None:
        """Preview a plan again with all its steps, against the current vault."""
        self.preview(
            plan.plan.to_json(),
            frozenset(),
            plan.preview.context.params,
            source=PlanSource(message=plan.message, agent=plan.preview.agent),
        )

    def preview_last_again(self) -> None:
        """Preview the last plan again, without what was excluded from it."""
        if self.last is not None and self.phase == "idle":
            self._restore(self.last)
            self._preview_restored(self.last)

    def preview_remaining(self, result: ExecutionResult) -> None:
        """Preview what the last run, which was cancelled, has not done."""
        from obsidian_agent.services.plans import done_by

        last = self.last
        if last is None or self.phase != "idle":
            return
        self._restore(last)
        self._outputs, self._done_items = done_by(last.preview, result.outputs)
        self._view.add_entry("note", "This is the preview of what the cancelled run has not done.")
        self._preview_restored(last)

    def _restore(self, plan: Pending) -> None:
        self.forget_plan(macro=plan.macro, message=plan.message, action=plan.action)
        self._plan, self._disabled, self._left_out = plan.plan, plan.disabled, plan.left_out
        self._agent = plan.preview.agent

    def _preview_restored(self, plan: Pending) -> None:
        values = plan.preview.context.params
        self.preview(plan.plan.to_json(), plan.disabled, values, keep=True)

    def forget_plan(
        self,
        *,
        macro: str | None = None,
        message: str | None = None,
        client: ClientPlan | None = None,
        action: FilledAction | None = None,
        revises: Pending | None = None,
    ) -> None:
        """Drop the displayed plan: the next one is another, made from the given source.

        It takes the place of the plan that it `revises`.
        """
        if self.client is not client and (
            self.pending is None or self.pending.client is not self.client
        ):
            self._refuse(self.client)
        self.client = client
        self._plan = None
        self._disabled = frozenset()
        self._left_out = None
        self._outputs, self._done_items = {}, {}
        self._agent = ""
        self.revises = revises
        self.macro = macro
        self._message = message
        self._action = action

    def cancel(self) -> bool:
        """Stop planning immediately, a run after the current file. Return False when idle."""
        match self.phase:
            case "running":
                self._view.show_stopping()
                self._stream.cancel_run()
                return True
            case "planning":
                self._thread.cancel()
                self._stream.keep_text_only()
                if self._worker is not None:
                    self._worker.cancel()
                # A worker that is cancelled before its start posts nothing.
                self._view.post_message(WorkEnded(self._token, cancelled=True))
                return True
            case "idle":
                self._thread.cancel()
                return False

    def supersede(self) -> None:
        """Drop the planning in progress: the user has chosen without its result."""
        if self.phase == "planning":
            self._thread.cancel()
            self._drop_planning()

    def _drop_planning(self) -> None:
        self._stream.discard()
        if self._worker is not None:
            self._worker.cancel()
        self._token += 1
        self.phase, self._worker = "idle", None
        self._view.busy("")
        self._view.end_stream(keep=False)

    def detach(self) -> None:
        """Detach the thread on the screen, whose turn continues. Not allowed during a run."""
        if self.phase == "planning":
            self._drop_planning()
        self._view.busy("")
        self._view.end_stream(keep=False)
        self.pending = self.last = None
        self.forget_plan()

    def attach(self, pending: Pending | None) -> None:
        """Attach another thread, and show its pending plan if it has one."""
        self.pending = pending
        if pending is not None:
            self.macro, self._message, self.client = pending.macro, pending.message, pending.client
            self._action = pending.action
            self._agent = pending.preview.agent
            self._view.bring_forward(only_beside=True)
        self._show_pending()
        self._view.refresh_state()

    def ended(self, message: WorkEnded) -> None:
        """Handle the end of a worker, whose events have all been shown."""
        if message.token != self._token or self.phase == "idle":
            return
        ended, self.phase, self._worker = self.phase, "idle", None
        self.has_failed = self.has_failed or message.cancelled or not self.concluded
        view = self._view
        view.busy("")
        view.end_stream(keep=message.cancelled, mark="stopped here")
        if message.cancelled:
            view.add_entry("note", "Cancelled. Nothing was changed.")
            if ended == "planning" and self.pending is None:
                self._refuse(self.client)
        elif not self.concluded:
            text = "Planning stopped without a result. Nothing was changed."
            if ended == "running":
                history = view.key("main.history")
                text = f"The run ended without a result. The history ({history}) shows its changes."
            view.add_entry("bad", text)
        if self.stage == "run":
            # There is no result. The plan is offered again; files that changed are conflicts then.
            view.end_run(None)
            self.pending = self.last
            self._show_pending()
        elif self.stage == "plan" and not self._complete:
            self._show_pending()
        preview, self._approve_when_idle = self._approve_when_idle, None
        if preview is not None and not message.cancelled:
            view.add_entry("note", "Your settings allow this without approval.")
            self.approve(preview, "settings")
        following, self._next_stage = self._next_stage, None
        if following is not None:
            following()
        view.refresh_state()

    def _show_pending(self) -> None:
        if self.pending is None:
            self._show_nothing()
        else:
            self._plan, self._disabled = self.pending.plan, self.pending.disabled
            self._left_out = self.pending.left_out
            self._show(self.pending.preview, complete=True)
            self._view.focus_work()

    def _show_nothing(self) -> None:
        self.stage = "idle"
        self._view.show_nothing()

    def _begin(
        self, phase: Phase, work: Callable[[], Coroutine[Any, Any, None]], *, exclusive: bool
    ) -> None:
        self._token += 1
        self.phase, self.concluded, self.has_failed = phase, False, False
        work_and_report = partial(self._report_end, work, self._token)
        group = "turn" if phase == "planning" else "run"
        self._worker = self._view.run_worker(
            work_and_report, group=group, exclusive=exclusive, exit_on_error=False
        )

    async def _report_end(self, work: Callable[[], Coroutine[Any, Any, None]], token: int) -> None:
        cancelled = False
        try:
            await work()
        except asyncio.CancelledError:
            cancelled = self.phase == "planning"
            raise
        finally:
            self._view.post_message(WorkEnded(token, cancelled=cancelled))

    # --- planning ---------------------------------------------------------------------------------

    def plan_ready(self, event: PlanReady) -> None:
        """Store a new plan; its preview follows."""
        self._plan = event.plan
        self._view.busy("Computing the preview")
        for note in event.notes:
            self._view.add_entry("note", note)

    def preview_started(self, partial: Preview) -> None:
        """Show the first changes. They cannot be approved yet."""
        if self._is_previewed_again:
            return
        self._show(partial, complete=False)
        self._view.bring_forward(only_beside=True)

    def preview_ready(self, preview: Preview) -> None:
        """Show the complete preview and wait for a decision. A plan without steps is an answer."""
        plan = self._plan or preview.plan
        if not plan.steps:
            self._view.add_entry("agent", "\n\n".join([plan.goal, *plan.assumptions]))
            return
        opened = note_to_open(preview, preview.outputs) if self._only_opens(preview) else None
        if opened is not None:
            self._view.add_entry("note", f"Opened {terminal_text.shortened(opened[0], 200)}.")
            self._next_stage = partial(self._view.show_note, *opened)
            return
        notice = self._reason_against_leaving_out(preview)
        if notice:
            self._show_pending()
            self._view.show_plan_notice(notice)
            return
        self._show(preview, complete=True)
        self._report_dropped(preview)
        self._agent = preview.agent
        first_time = self.pending is None or self.pending.plan is not plan
        if self.pending is not None and self.pending.plan is not plan:
            self._replace(self.pending)
        self._report_difference(preview)
        self.pending = Pending(
            preview=preview,
            plan=plan,
            disabled=self._disabled,
            left_out=self._left_out,
            macro=self.macro,
            action=self._action,
            message=self._message,
            client=self.client,
        )
        if first_time:
            changes = ", ".join(text for _, text in change_counts(preview.change_set))
            goal = terminal_text.folded(plan.goal, 3)
            self._view.add_entry("note", f"Plan: {goal} ({changes or 'no file changes'})")
        if (
            first_time
            and not self._disabled
            and self.client is None
            and preview.valid
            and preview.approval.decision == "allow"
            and not reason_without_effect(preview)
        ):
            self._approve_when_idle = preview
        if any(problem.code == "NO_SELECTION" for problem in preview.errors):
            self._view.show_hint(empty_selection_hint(self._view.key("main.open")))
        self._view.bring_forward()
        self._view.refresh_state()

    def _replace(self, pending: Pending) -> None:
        """Put a plan aside that the user has not decided on, unless the new one revises it."""
        if pending is self.revises:
            return
        if pending.client is not None and pending.client is not self.client:
            pending.client.decide("shown", "The user has not decided yet. The plan waits.")
        if pending.client is None:
            self._view.put_aside(pending)
        goal = terminal_text.shortened(pending.plan.goal, 80)
        self._view.add_entry("note", f"You have not decided on “{goal}”. It waits: /plans")

    def _report_difference(self, preview: Preview) -> None:
        """Show the difference from the plan that the user asked to change, or from a proposal."""
        if self.client is not None and self.client.remark:
            self._view.show_plan_notice(self.client.remark)
        revised, self.revises = self.revises, None
        if revised is None:
            return
        text = describe_difference(revised.preview.change_set, preview.change_set)
        self._view.add_entry("note", text)
        self._view.show_plan_notice(text)

    @property
    def _is_previewed_again(self) -> bool:
        """True while the pending plan is previewed with other parts of it."""
        return self.pending is not None and self.pending.plan is self._plan

    def _reason_against_leaving_out(self, preview: Preview) -> str:
        """Return why changes cannot be left out of the pending plan; "" if they can."""
        pending = self.pending
        if (
            pending is None
            or not self._is_previewed_again
            or self._left_out == pending.left_out
            or not (preview.errors and pending.preview.valid)
        ):
            return ""
        problem = preview.errors[0]
        titles = {step.id: step.title for step in preview.plan.steps}
        step = titles.get(problem.step_id or "")
        if step is None:
            return problem.message
        return f"This cannot be left out: the step “{step}” needs it. {problem.sentence}"

    def _report_dropped(self, preview: Preview) -> None:
        """Show which files a plan no longer changes because others are left out."""
        left_out = self._left_out
        if self.pending is None or not self._is_previewed_again or left_out is None:
            return
        before = self.pending.preview.change_set
        remaining = {change.path.text for change in preview.change_set.changes} | left_out.files
        kind_of = kinds_of(before)
        dropped = [
            change.path.text
            for change in before.changes
            if change.path.text not in remaining and kind_of(change) not in ("mkdir", "links")
        ]
        if dropped:
            names = ", ".join(terminal_text.shortened(path, 60) for path in dropped[:3])
            more = f" and {len(dropped) - 3:,} more" if len(dropped) > 3 else ""
            self._view.show_plan_notice(f"Not changed either, as it depends on it: {names}{more}.")

    def _only_opens(self, preview: Preview) -> bool:
        """Return True if the plan, made without model or client, only opens notes in this app."""
        return (
            self.client is None
            and not (preview.agent or self._disabled or self._outputs)
            and preview.valid
            and bool(preview.instances)
            and all(
                isinstance(instance.output, Mapping) and instance.output.get("via") == "app"
                for instance in preview.instances
            )
        )

    def _show(self, preview: Preview, *, complete: bool) -> None:
        self._plan = self._plan or preview.plan
        self.stage, self._complete = "plan", complete
        self._view.show_plan(
            PlanState(
                preview=preview,
                plan=self._plan,
                disabled=self._disabled,
                left_out=self._left_out,
                complete=complete,
            )
        )

    def failed(self, problem: Problem, problems: Sequence[Problem]) -> None:
        """Report why a turn failed. `problems` are further causes of `problem`."""
        self.has_failed = True
        if self.client is not None and self.pending is None:
            self.client.decide("failed", f"The plan cannot be previewed. {problem.message}")
        causes = (problem, *problems)
        setting = next((_SETTINGS[one.code] for one in causes if one.code in _SETTINGS), None)
        if setting is not None:
            causes = tuple(one for one in causes if one.code in _SETTINGS)
        lines = list(dict.fromkeys(cause.sentence for cause in causes))
        if len(lines) > MAX_LISTED:
            lines[MAX_LISTED:] = [f"… and {len(lines) - MAX_LISTED} more"]
        self._view.add_entry("bad", "\n".join(lines))
        if any(cause.code == "NO_SELECTION" for cause in causes):
            self._view.show_hint(empty_selection_hint(self._view.key("main.open")))
        elif setting is not None:
            self._view.offer_setting(setting)
        elif problem.code.startswith("API_"):
            self._view.show_hint("/retry sends the message again.")

    # --- decisions --------------------------------------------------------------------------------

    def toggle(self, plan: ActionPlan, step_id: str) -> None:
        """Exclude or include a step of `plan` and preview it again, unless `plan` was replaced."""
        if plan is not self._plan or self.pending is None or self.phase == "running":
            return
        self._disabled = self._disabled ^ {step_id}
        self._view.lock_plan(self._disabled)
        values = self.pending.preview.context.params
        self.preview(plan.to_json(), self._disabled, values, keep=True)

    def leave_out(self, plan: ActionPlan, toggled: Callable[[LeftOut], LeftOut]) -> None:
        """Leave changes out of `plan` and preview it again, unless `plan` was replaced.

        Another one may be left out before the preview without the first has come.
        """
        from obsidian_agent.plan.left_out import LeftOut

        if plan is not self._plan or self.pending is None or self.phase == "running":
            return
        self._left_out = toggled(self._left_out or LeftOut())
        self._view.lock_plan(None, self._left_out)
        values = self.pending.preview.context.params
        self.preview(plan.to_json(), self._disabled, values, keep=True)

    def comment(self, text: str) -> None:
        """Send a comment and the pending plan back to the author of the plan."""
        pending, session = self.pending, self._backend.parts.session
        if pending is None or self.phase != "idle":
            return
        if pending.client is not None and pending.client.is_connected:
            self._view.add_entry("you", text)
            self.last, self.pending = pending, None
            pending.client.decide(
                "refused", f"The user did not approve the plan and asks for a change: {text}"
            )
            name = terminal_text.shortened(pending.client.proposal.client, 60)
            self._view.add_entry("note", f"“{name}” gets your comment and can propose again.")
            self._show_nothing()
            self._view.refresh_state()
        elif self._thread.chosen_model is not None or session.has_model:
            self._revise(text, pending)
        else:
            self._view.change_values(pending, text)

    def repair_plan(self) -> None:
        """Send the errors of the pending plan back to the model that planned."""
        pending = self.pending
        if pending is None or self.phase != "idle":
            return
        if self._thread.chosen_model is None and not self._backend.parts.session.has_model:
            edit = self._view.key("plan.edit")
            self._view.show_plan_notice(f"A repair needs a model: /model. {edit} edits the plan.")
            return
        problems = [problem.message for problem in pending.preview.errors[:MAX_LISTED]]
        text = "\n".join(["The preview of the plan has these errors:", *problems])
        self._revise("Fix the errors of the plan.", pending, text)

    def _revise(self, entry: str, pending: Pending, comment: str = "") -> None:
        """Let the model that planned revise the plan; the comment is the entry, if empty."""
        from obsidian_agent.agent.planner import revision

        self._view.add_entry("you", entry)
        words = "\n".join(filter(None, (pending.message, entry)))
        self.forget_plan(message=words, revises=pending)
        left_out = [] if pending.left_out is None else pending.left_out.summary()
        document = pending.preview.approved_plan.to_json()
        self.start(self._thread.turn(revision(comment or entry, document, left_out)), "Planning")

    def preview_pending_again(self) -> None:
        """Preview the pending plan against the current vault, without what is excluded from it."""
        pending = self.pending
        if pending is not None and self.phase == "idle":
            values = pending.preview.context.params
            self.preview(pending.plan.to_json(), self._disabled, values, keep=True)

    def approve(self, preview: Preview, by: ApprovedBy = "person") -> None:
        """Apply `preview` if it is still the pending one."""
        pending = self.pending
        if self.phase != "idle" or pending is None or pending.preview is not preview:
            return
        if not preview.valid or reason_without_effect(preview):
            return
        self.last, self.pending = pending, None
        self.stage = "run"
        self._view.show_run(preview)
        self._view.add_entry("note", "Approved.")
        self._begin(
            "running",
            partial(self._stream.execute, self._backend.parts.session.plans, preview, by),
            exclusive=False,
        )
        self._view.refresh_state()

    def reject(self) -> None:
        """Reject the pending plan."""
        if self.phase == "running":
            return
        self.cancel()
        self.has_failed = True
        if self.pending is not None:
            self.last, self.pending = self.pending, None
            plans = self._backend.parts.session.plans
            record = partial(asyncio.to_thread, plans.reject, self.last.preview)
            self._view.run_worker(record, group="record", exit_on_error=False)
            self._refuse(self.last.client)
            self._view.add_entry("note", "Plan rejected. Nothing was changed.")
        self._show_nothing()
        self._view.refresh_state()

    def close(self) -> None:
        """Close the pending plan. One from the waiting plans waits on; any other is rejected."""
        client = self.client if self.pending is None else self.pending.client
        if client is None or client.is_connected:
            self.reject()
            return
        self.cancel()
        self.pending = None
        client.decide("shown", "The user has not decided yet. The plan waits.")
        self._view.add_entry("note", "Plan closed. It still waits: /plans")
        self._show_nothing()
        self._view.refresh_state()

    def _refuse(self, client: ClientPlan | None) -> None:
        if client is not None:
            client.decide("refused", "The user rejected the plan. Nothing was changed.")

    def close_result(self) -> None:
        """Close the result of the run."""
        if self.stage == "result":
            self._show_nothing()

    def run_finished(self, result: ExecutionResult) -> None:
        """Show the result of the run, and verify and record it."""
        from obsidian_agent.agent.findings import findings
        from obsidian_agent.agent.result_text import describe_result

        self.has_failed = not result.success
        self.stage = "result"
        self._view.end_run(result)
        self._view.add_entry("good" if result.success else "bad", describe_result(result))
        self._view.vault_changed()
        applied = self.last
        if applied is None:
            return
        if applied.client is not None:
            applied.client.report_run(
                applied.preview.approved_plan.to_json(),
                result,
                is_partial=bool(applied.preview.left_out),
            )
        if result.success:
            # The findings of a plan that only reads are its result.
            for what, lines in findings(applied.preview, result.outputs):
                text = "\n".join([f"{terminal_text.line(what)}:", "", *lines])
                self._view.add_entry("agent", text)
        verify = partial(self._verify, applied, result)
        self._view.run_worker(verify, group="record", exit_on_error=False)
        note = note_to_open(applied.preview, result.outputs)
        if note is not None:
            self._view.show_note(*note)
        if result.success and applied.preview.deferred:
            self._next_stage = partial(self._preview_rest, applied, result)

    def _preview_rest(self, applied: Pending, result: ExecutionResult) -> None:
        """Preview the steps after a command, whose effects could not be previewed before."""
        self._outputs = {
            step: output
            for step, output in result.outputs.items()
            if step not in applied.preview.deferred
        }
        self._plan, self._disabled = applied.plan, applied.disabled
        self._left_out = applied.left_out
        self._view.add_entry(
            "note", "A command has run. This is the preview of the remaining steps."
        )
        values = applied.preview.context.params
        self.preview(applied.plan.to_json(), applied.disabled, values, keep=True)

    async def _verify(self, applied: Pending, result: ExecutionResult) -> None:
        """Compare the vault with the approved preview, and record the run in the conversation."""
        session = self._backend.parts.session
        differences: Sequence[Problem] = ()
        if result.status == "done":
            differences = await asyncio.to_thread(session.plans.verify, applied.preview)
        can_repair = await asyncio.to_thread(
            self._thread.record_run, applied.preview.plan.goal, result, differences
        )
        self._view.refresh_state()
        self.repair = ""
        if differences:
            from obsidian_agent.services.checks import repair_request

            self.failed(differences[0], differences[1:])
            if can_repair:
                self.repair = repair_request(differences)
                undo = self._view.key("result.undo")
                text = (
                    f"/repair asks for a plan that fixes this. {undo} in the result undoes the run."
                )
                self._view.add_entry("note", text)
        if result.success and applied.macro is not None:
            await asyncio.to_thread(session.saved.count, applied.macro)


def empty_selection_hint(open_key: str) -> str:
    """Return the hint for an empty selection; `open_key` opens a note."""
    return (
        "Selection is empty. Please select text first.\n"
        f"Select bullet points to create notes from ({open_key} opens a note)."
    )


def note_to_open(preview: Preview, outputs: Mapping[str, Any]) -> tuple[str, int | None] | None:
    """Return the note that the last of the steps with `outputs` shows, and the line (from 1)."""
    for instance in reversed(preview.instances):
        if instance.tool != "workspace.openFile":
            continue
        output = outputs.get(instance.step_id)
        if isinstance(output, list):
            index = instance.index
            output = output[index] if index is not None and index < len(output) else None
        if not isinstance(output, Mapping) or not output.get("opened"):
            continue
        path, line = output.get("path"), instance.args.get("line")
        if isinstance(path, str):
            return path, line if isinstance(line, int) else None
    return None
