"""The course of a turn: message, plan, preview, decision, run, result. Says what is pending and what may happen; a view shows it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

from obsidian_agent import terminal_text
from obsidian_agent.dataclass import dataclass
from obsidian_agent.tui.event_stream import WorkEnded
from obsidian_agent.tui.plan_rows import change_counts, has_effect
from obsidian_agent.tui.report_lines import describe_result

if TYPE_CHECKING:
    from textual.message import Message
    from textual.worker import Worker

    from obsidian_agent.agent.events import AgentEvent, ExecutionResult, NeedsInput, PlanReady
    from obsidian_agent.errors import Problem
    from obsidian_agent.plan.model import ActionPlan
    from obsidian_agent.plan.result import Preview
    from obsidian_agent.services.plans import ApprovedBy
    from obsidian_agent.tui.backend import Backend
    from obsidian_agent.tui.event_stream import EventStream
    from obsidian_agent.tui.report_lines import Speaker
    from obsidian_agent.tui.turn.proposals import ClientPlan
    from obsidian_agent.tui.turn.thread import CurrentThread

MAX_LISTED = 8
"""More problems than this are counted, not listed."""


Phase = Literal["idle", "planning", "running"]
Stage = Literal["idle", "plan", "run", "result"]
"""What the person sees beside the conversation."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A complete preview that waits for a decision. `plan` has all steps, those in `disabled` are left out of the preview."""

    preview: Preview
    plan: ActionPlan
    disabled: frozenset[str]
    macro: str | None = None
    """The macro that the plan is, if it is one."""
    message: str | None = None
    """What the person said that the plan was made from, if they said something."""
    client: ClientPlan | None = None
    """The plan of another program, which waits for the decision."""


class TurnView(Protocol):
    """What shows a turn. Nothing here decides anything."""

    def key(self, key_id: str) -> str: ...
    def add_entry(self, speaker: Speaker, text: str) -> None: ...
    def show_hint(self, text: str) -> None: ...
    def busy(self, what: str) -> None: ...
    def end_stream(self, *, keep: bool, mark: str = "") -> None: ...
    def ask(self, event: NeedsInput) -> object: ...
    def lock_plan(self, disabled: frozenset[str] | None) -> None: ...
    def show_plan(
        self, preview: Preview, plan: ActionPlan, disabled: frozenset[str], *, complete: bool
    ) -> None: ...
    def bring_forward(self, *, only_beside: bool = False) -> None: ...
    def focus_work(self) -> None: ...
    def show_nothing(self) -> None: ...
    def show_run(self, preview: Preview) -> None: ...
    def show_stopping(self) -> None: ...
    def end_run(self, result: ExecutionResult | None) -> None: ...
    def show_note(self, path: str, line: int | None = None) -> object: ...
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
    """One thing at a time: planning gives way to planning, a run to nothing. A new plan replaces one that waits.

    What ends says so by a `WorkEnded` with the token that it began with, in the same queue as its events.
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
        """Whether an event came that a turn or run may end with."""
        self.pending: Pending | None = None
        self.last: Pending | None = None
        """The plan that was rejected or applied last; it can be brought back."""
        self.macro: str | None = None
        """The macro that is being previewed, if any."""
        self.client: ClientPlan | None = None
        """The plan of another program that is being previewed or shown, if any."""
        self.repair = ""
        """What to say so that the last run is repaired; "" when all is as previewed."""
        self._plan: ActionPlan | None = None
        self._disabled: frozenset[str] = frozenset()
        self._message: str | None = None
        self._done: Mapping[str, Any] = {}
        self._agent = ""
        """Of a plan that runs in stages: the outputs of the steps that have run."""
        self._complete = False
        self._approve_when_idle: Preview | None = None
        self._next_stage: Callable[[], object] | None = None
        self._token = 0
        self._worker: Worker[None] | None = None

    # --- starting and stopping ------------------------------------------------------------------------------------------------

    def start(self, events: AsyncIterator[AgentEvent], what: str) -> None:
        """Follow a turn or preview; an earlier one is cancelled. A plan that waits cannot be approved meanwhile."""
        self._view.busy(what)
        if self.stage == "plan":
            self._complete = False
            self._view.lock_plan(None)
        self._begin("planning", partial(self._stream.follow, events), exclusive=True)
        self._view.refresh_state()

    def send(self, message: str) -> None:
        """A new turn with a message of the person."""
        self.forget_plan(message=message)
        self.start(self._thread.turn(message), "Planning")

    def preview(
        self,
        document: Mapping[str, Any],
        disabled: frozenset[str],
        values: Mapping[str, Any],
        *,
        keep: bool = False,
        message: str | None = None,
        client: ClientPlan | None = None,
        agent: str = "",
    ) -> None:
        """Preview a plan document. With `keep` it is the plan that is shown, with other steps; else `message` is what it was made from,
        `client` who proposed it, and `agent` the name of who made it."""
        if not keep:
            self.forget_plan(message=message, client=client)
            self._agent = client.proposal.client if client is not None else agent
        session = self._backend.parts.session
        self.start(
            session.preview_plan(
                document, disabled, values, self._message, self._done, self._agent
            ),
            "Computing the preview",
        )

    def preview_again(self, plan: Pending) -> None:
        """Preview a plan with all its steps as the vault is now."""
        self.preview(
            plan.plan.to_json(),
            frozenset(),
            plan.preview.context.params,
            message=plan.message,
            agent=plan.preview.agent,
        )

    def forget_plan(
        self,
        *,
        macro: str | None = None,
        message: str | None = None,
        client: ClientPlan | None = None,
    ) -> None:
        """What comes next is another plan (that of a macro or a client, or made from a message), not the one on the screen with other steps."""
        if self.client is not client and (
            self.pending is None or self.pending.client is not self.client
        ):
            self._refuse(self.client)
        self.client = client
        self._plan = None
        self._disabled = frozenset()
        self._done = {}
        self._agent = ""
        self.macro = macro
        self._message = message

    def cancel(self) -> bool:
        """Stop planning at once, a run after the current file. False when nothing is going on."""
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
                # A worker that has not begun yet ends without a word.
                self._view.post_message(WorkEnded(self._token, cancelled=True))
                return True
            case "idle":
                self._thread.cancel()
                return False

    def detach(self) -> None:
        """Leave what is on the screen: a turn goes on without it. Not while a plan is being applied."""
        if self.phase == "planning":
            self._stream.discard()
            if self._worker is not None:
                self._worker.cancel()
            self._token += 1
            self.phase, self._worker = "idle", None
        self._view.busy("")
        self._view.end_stream(keep=False)
        self.pending = self.last = None
        self.forget_plan()

    def attach(self, pending: Pending | None) -> None:
        """Show the plan of another conversation, if one waits there."""
        self.pending = pending
        if pending is not None:
            self.macro, self._message, self.client = pending.macro, pending.message, pending.client
            self._agent = pending.preview.agent
            self._view.bring_forward(only_beside=True)
        self._show_pending()
        self._view.refresh_state()

    def ended(self, message: WorkEnded) -> None:
        """The worker is done; what it delivered has been shown."""
        if message.token != self._token or self.phase == "idle":
            return
        ended, self.phase, self._worker = self.phase, "idle", None
        view = self._view
        view.busy("")
        view.end_stream(keep=message.cancelled, mark="stopped here")
        if message.cancelled:
            view.add_entry("note", "Cancelled. Nothing was changed.")
            if ended == "planning" and self.pending is None:
                self._refuse(self.client)
        elif not self.concluded:
            unknown = f"The run ended without a result. The history ({view.key('main.history')}) shows what was done."
            view.add_entry(
                "bad",
                unknown if ended == "running" else "That came to no end. Nothing was changed.",
            )
        if self.stage == "run":
            # There is no result. The plan is offered again, and refused where a file is no longer as previewed.
            view.end_run(None)
            self.pending = self.last
            self._show_pending()
        elif self.stage == "plan" and not self._complete:
            self._show_pending()
        preview, self._approve_when_idle = self._approve_when_idle, None
        if preview is not None and not message.cancelled:
            view.add_entry("note", "Your settings let this run without a question.")
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
            self._show(self.pending.preview, complete=True)
            self._view.focus_work()

    def _show_nothing(self) -> None:
        self.stage = "idle"
        self._view.show_nothing()

    def _begin(
        self, phase: Phase, work: Callable[[], Coroutine[Any, Any, None]], *, exclusive: bool
    ) -> None:
        self._token += 1
        self.phase, self.concluded = phase, False
        told = partial(self._report_end, work, self._token)
        group = "turn" if phase == "planning" else "run"
        self._worker = self._view.run_worker(
            told, group=group, exclusive=exclusive, exit_on_error=False
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

    # --- planning -------------------------------------------------------------------------------------------------------------

    def plan_ready(self, event: PlanReady) -> None:
        """A plan was made; its preview follows."""
        self._plan = event.plan
        self._view.busy("Computing the preview")
        for note in event.notes:
            self._view.add_entry("note", note)

    def preview_started(self, partial: Preview) -> None:
        """Show the first changes; approving is locked."""
        self._show(partial, complete=False)
        self._view.bring_forward(only_beside=True)

    def preview_ready(self, preview: Preview) -> None:
        """Show the complete preview and wait for a decision; a plan without steps is an answer."""
        plan = self._plan or preview.plan
        if not plan.steps:
            self._view.add_entry("agent", "\n\n".join([plan.goal, *plan.assumptions]))
            return
        opened = note_to_open(preview, preview.outputs) if self._only_opens(preview) else None
        if opened is not None:
            self._view.add_entry("note", f"Opened {terminal_text.shortened(opened[0], 200)}.")
            self._next_stage = partial(self._view.show_note, *opened)
            return
        self._show(preview, complete=True)
        self._agent = preview.agent
        first_time = self.pending is None or self.pending.plan is not plan
        if self.pending is not None and self.pending.client is not self.client:
            self._refuse(self.pending.client)
        self.pending = Pending(
            preview, plan, self._disabled, self.macro, self._message, self.client
        )
        if first_time:
            words = (
                ", ".join(text for _, text in change_counts(preview.change_set.changes))
                or "no file changes"
            )
            self._view.add_entry("note", f"Plan: {terminal_text.folded(plan.goal, 3)} ({words})")
        if (
            first_time
            and not self._disabled
            and self.client is None
            and preview.valid
            and preview.approval.decision == "allow"
        ):
            self._approve_when_idle = preview
        if any(problem.code == "NO_SELECTION" for problem in preview.errors):
            self._view.show_hint(empty_selection_hint(self._view.key("main.open")))
        self._view.bring_forward()
        self._view.refresh_state()

    def _only_opens(self, preview: Preview) -> bool:
        """Return True if a plan without a model or client does nothing but show notes in this app."""
        return (
            self.client is None
            and not (preview.agent or self._disabled or self._done)
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
        self._view.show_plan(preview, self._plan, self._disabled, complete=complete)

    def failed(self, problem: Problem, problems: Sequence[Problem]) -> None:
        """Nothing was changed; say why. `problems` are what led to it, when there is more to say than `problem`."""
        if self.client is not None and self.pending is None:
            self.client.decide("failed", f"The plan cannot be previewed. {problem.message}")
        lines = list(dict.fromkeys(each.sentence for each in (problem, *problems)))
        more = [f"… and {len(lines) - MAX_LISTED} more"] if len(lines) > MAX_LISTED else []
        self._view.add_entry("bad", "\n".join([*lines[:MAX_LISTED], *more]))
        if any(each.code == "NO_SELECTION" for each in (problem, *problems)):
            self._view.show_hint(empty_selection_hint(self._view.key("main.open")))
        elif problem.code.startswith("API_"):
            self._view.show_hint("/retry says the same again.")

    # --- deciding -------------------------------------------------------------------------------------------------------------

    def toggle(self, plan: ActionPlan, step_id: str) -> None:
        """Leave out or include a step of `plan`, unless another plan has replaced it, and preview again."""
        if plan is not self._plan or self.pending is None or self.phase == "running":
            return
        self._disabled = self._disabled ^ {step_id}
        self._view.lock_plan(self._disabled)
        self.preview(plan.to_json(), self._disabled, self.pending.preview.context.params, keep=True)

    def approve(self, preview: Preview, by: ApprovedBy = "person") -> None:
        """Apply exactly the preview that was on the screen when the key was pressed."""
        pending = self.pending
        if self.phase != "idle" or pending is None or pending.preview is not preview:
            return
        if not (preview.valid and has_effect(preview)):
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
        """Drop the plan that waits."""
        if self.phase == "running":
            return
        self.cancel()
        if self.pending is not None:
            self.last, self.pending = self.pending, None
            noted = partial(
                asyncio.to_thread, self._backend.parts.session.plans.reject, self.last.preview
            )
            self._view.run_worker(noted, group="kept", exit_on_error=False)
            self._refuse(self.last.client)
            self._view.add_entry("note", "Plan rejected. Nothing was changed.")
        self._show_nothing()
        self._view.refresh_state()

    def _refuse(self, client: ClientPlan | None) -> None:
        if client is not None:
            client.decide("refused", "The person did not want this plan. Nothing was changed.")

    def close_result(self) -> None:
        """The person has seen how the run ended."""
        if self.stage == "result":
            self._show_nothing()

    def run_finished(self, result: ExecutionResult) -> None:
        """Show how it ended."""
        from obsidian_agent.agent.findings import findings

        self.stage = "result"
        self._view.end_run(result)
        self._view.add_entry("good" if result.success else "bad", describe_result(result))
        self._view.vault_changed()
        applied = self.last
        if applied is None:
            return
        if applied.client is not None:
            applied.client.applied(applied.preview.approved_plan.to_json(), result)
        if result.success:
            # What a plan that only reads has found is its result.
            for what, lines in findings(applied.preview, result.outputs):
                self._view.add_entry(
                    "agent", "\n".join([f"{terminal_text.line(what)}:", "", *lines])
                )
        self._view.run_worker(
            partial(self._check, applied, result), group="kept", exit_on_error=False
        )
        if (wanted := note_to_open(applied.preview, result.outputs)) is not None:
            self._view.show_note(*wanted)
        if result.success and applied.preview.deferred:
            self._next_stage = partial(self._preview_rest, applied, result)

    def _preview_rest(self, applied: Pending, result: ExecutionResult) -> None:
        """A command has run that nobody could preview: look anew at what stands behind it, and ask."""
        self._done = {
            step: output
            for step, output in result.outputs.items()
            if step not in applied.preview.deferred
        }
        self._plan, self._disabled = applied.plan, applied.disabled
        self._view.add_entry(
            "note", "A command has run. This is the rest of the plan as the vault is now."
        )
        self.preview(
            applied.plan.to_json(), applied.disabled, applied.preview.context.params, keep=True
        )

    async def _check(self, applied: Pending, result: ExecutionResult) -> None:
        """Compare the vault with what was approved, and keep what came of it with the conversation."""
        unlike = (
            await asyncio.to_thread(self._backend.parts.session.plans.verify, applied.preview)
            if result.status == "done"
            else ()
        )
        may_repair = await asyncio.to_thread(
            self._thread.note_run, applied.preview.plan.goal, result, unlike
        )
        self.repair = ""
        if unlike:
            from obsidian_agent.services.checks import repair_request

            self.failed(unlike[0], unlike[1:])
            if may_repair:
                self.repair = repair_request(unlike)
                self._view.add_entry(
                    "note",
                    f"/repair asks for a plan that puts it right. {self._view.key('result.undo')} in the result undoes the run.",
                )
        if result.success and applied.macro is not None:
            await asyncio.to_thread(self._backend.parts.session.saved.count, applied.macro)


def empty_selection_hint(open_key: str) -> str:
    """What to do about a selection that is missing; `open_key` opens a note."""
    return f"Selection is empty. Please select text first.\nSelect bullet points to create notes from ({open_key} opens a note)."


def note_to_open(preview: Preview, outputs: Mapping[str, Any]) -> tuple[str, int | None] | None:
    """Return the note that the last of the steps with `outputs` shows, and the line (from 1)."""
    for instance in reversed(preview.instances):
        if instance.tool != "workspace.openFile":
            continue
        output = outputs.get(instance.step_id)
        if isinstance(output, list):
            output = (
                output[instance.index]
                if instance.index is not None and instance.index < len(output)
                else None
            )
        if (
            isinstance(output, Mapping)
            and output.get("opened")
            and isinstance(output.get("path"), str)
        ):
            line = instance.args.get("line")
            return output["path"], line if isinstance(line, int) else None
    return None
