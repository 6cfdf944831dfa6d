"""The course of a turn: message, plan, preview, decision, run, result. Holds what is pending and shows it through the panes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from obsidian_agent import terminal_text
from obsidian_agent.tui.messages import WorkEnded
from obsidian_agent.tui.plan_rows import counts, does_something
from obsidian_agent.tui.screens.engine import Engine

if TYPE_CHECKING:
    from obsidian_agent.agent.events import AgentEvent, ExecutionResult, NeedsInput, PlanReady
    from obsidian_agent.errors import Problem
    from obsidian_agent.plan.model import ActionPlan
    from obsidian_agent.plan.result import Preview
    from obsidian_agent.tui.screens.desk import Desk
    from obsidian_agent.tui.talk import Talk

MOST_TOLD = 8
"""More problems than this are counted, not listed."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A complete preview that waits for a decision. `plan` has all steps, those in `disabled` are left out of the preview."""

    preview: Preview
    plan: ActionPlan
    disabled: frozenset[str]
    macro: str | None = None
    """The saved action that the plan is, if it is one."""
    message: str | None = None
    """What the person said that the plan was made from, if they said something."""


class Turns:
    """One turn at a time. A message during a turn is refused, a new plan replaces one that waits."""

    def __init__(self, desk: Desk, talk: Talk, changed: Callable[[], None], ask: Callable[[NeedsInput], None]) -> None:
        self._desk = desk
        self._talk = talk
        self._bridge = desk.bridge
        self._changed = changed
        self._ask = ask
        self.panes = desk.panes
        self.engine = Engine(desk)
        self.pending: Pending | None = None
        self.last: Pending | None = None
        """The plan that was rejected or applied last; it can be brought back."""
        self._plan: ActionPlan | None = None
        self._disabled: frozenset[str] = frozenset()
        self.macro: str | None = None
        """The saved action that is being previewed, if any."""
        self._message: str | None = None
        self.repair = ""
        """What to say so that the last run is repaired; "" when all is as previewed."""
        self._approve_when_idle: Preview | None = None
        self.unasked: Callable[[Preview], bool] = lambda preview: False
        """Whether a plan may run without a question."""

    # --- starting and stopping ------------------------------------------------------------------------------------------------

    def start(self, events: AsyncIterator[AgentEvent], what: str) -> None:
        """Follow a turn or preview. A plan that waits cannot be approved meanwhile."""
        self.panes.chat.activity.start(what)
        if self.panes.work.stage == "plan":
            self.panes.work.plan.wait()
        self.engine.plan(events)
        self._changed()

    def send(self, message: str) -> None:
        """A new turn with a message of the person."""
        self.forget_plan(message=message)
        self.start(self._talk.turn(message), "Planning")

    def forget_plan(self, *, macro: str | None = None, message: str | None = None) -> None:
        """What comes next is another plan (that of a saved action, or made from a message), not the one on the screen with other steps."""
        self._plan = None
        self._disabled = frozenset()
        self.macro = macro
        self._message = message

    def cancel(self) -> bool:
        """Stop planning at once, a run after the current file. False when nothing is going on."""
        if self.engine.phase == "running":
            self.panes.work.progress.cancelling()
        else:
            self._talk.cancel()
        return self.engine.cancel()

    def let_go(self) -> None:
        """Leave what is on the screen: a turn goes on without it. Not while a plan is being applied."""
        self.engine.let_go()
        self.panes.chat.activity.stop()
        self.panes.chat.transcript.end_stream(keep=False)
        self.pending = self.last = None
        self.forget_plan()

    def take_up(self, pending: Pending | None) -> None:
        """Show the plan of another conversation, if one waits there."""
        self.pending = pending
        if pending is not None:
            self.macro, self._message = pending.macro, pending.message
            self.panes.work.show("plan")
            self.panes.side = "work"
        self._show_pending()
        self._changed()

    def ended(self, message: WorkEnded) -> None:
        """The worker is done; what it delivered has been shown."""
        ended = self.engine.finish(message)
        if ended == "idle":
            return
        chat, work = self.panes.chat, self.panes.work
        chat.activity.stop()
        chat.transcript.end_stream(keep=message.cancelled, mark="stopped here")
        if message.cancelled:
            chat.transcript.say("note", "Cancelled. Nothing was changed.")
        elif not self.engine.concluded:
            chat.transcript.say("bad", NO_RESULT if ended == "running" else "That came to no end. Nothing was changed.")
        if work.stage == "run":
            # There is no result. The plan is offered again, and refused where a file is no longer as previewed.
            work.progress.finish()
            self.pending = self.last
            self._show_pending()
        elif work.stage == "plan" and not work.plan.complete:
            self._show_pending()
        preview, self._approve_when_idle = self._approve_when_idle, None
        if preview is not None and not message.cancelled:
            chat.transcript.say("note", "Your settings let this run without a question.")
            self.approve(preview)
        self._changed()

    def _show_pending(self) -> None:
        work = self.panes.work
        if self.pending is None:
            work.show("idle")
            self.panes.go("chat")
        else:
            self._plan, self._disabled = self.pending.plan, self.pending.disabled
            work.show("plan")
            work.plan.show(self.pending.preview, self.pending.plan, self.pending.disabled, complete=True)
            if self.panes.front == "work":
                self.panes.go("work")

    # --- planning -------------------------------------------------------------------------------------------------------------

    def plan_ready(self, event: PlanReady) -> None:
        """A plan was made; its preview follows."""
        self._plan = event.plan
        self.panes.chat.activity.start("Computing the preview")
        for note in event.notes:
            self.panes.chat.transcript.say("note", note)

    def preview_started(self, partial: Preview) -> None:
        """Show the first changes; approving is locked."""
        self._show(partial, complete=False)

    def preview_ready(self, preview: Preview) -> None:
        """Show the complete preview and wait for a decision; a plan without steps is an answer."""
        plan = self._plan or preview.plan
        if not plan.steps:
            self.panes.chat.transcript.say("agent", "\n\n".join([plan.goal, *plan.assumptions]))
            return
        self._show(preview, complete=True)
        first_time = self.pending is None or self.pending.plan is not plan
        self.pending = Pending(preview, plan, self._disabled, self.macro, self._message)
        if first_time:
            self.panes.chat.transcript.say("note", f"Plan: {terminal_text.folded(plan.goal, 3)} ({_in_words(preview)})")
        chat = self.panes.chat
        if first_time and not self._disabled and self.unasked(preview):
            self._approve_when_idle = preview
        if any(problem.code == "NO_SELECTION" for problem in preview.errors):
            chat.hint(NO_SELECTION)
        if not chat.prompt.text:
            self.panes.go("work")
        self._changed()

    def _show(self, preview: Preview, *, complete: bool) -> None:
        plan = self._plan or preview.plan
        self._plan = plan
        self.panes.work.show("plan")
        self.panes.work.plan.show(preview, plan, self._disabled, complete=complete)
        self.panes.side = "work"

    def needs_input(self, event: NeedsInput) -> None:
        """Something is missing or unclear: the screen asks."""
        self._ask(event)

    def failed(self, problem: Problem, problems: Sequence[Problem]) -> None:
        """Nothing was changed; say why. `problems` are what led to it, when there is more to say than `problem`."""
        told = [problem, *(each for each in problems if each.message != problem.message)]
        lines = [each.message + (f" ({each.step_id})" if each.step_id else "") for each in told[:MOST_TOLD]]
        more = [f"… and {len(told) - MOST_TOLD} more"] if len(told) > MOST_TOLD else []
        self.panes.chat.transcript.say("bad", "\n".join([*lines, *more]))
        if any(each.code == "NO_SELECTION" for each in told):
            self.panes.chat.hint(NO_SELECTION)
        elif problem.code.startswith("API_"):
            self.panes.chat.hint("/retry says the same again.")

    # --- deciding -------------------------------------------------------------------------------------------------------------

    def toggle(self, step_id: str) -> None:
        """Leave a step out or put it back, with a fresh preview."""
        plan = self._plan
        if plan is None or self.pending is None or self.engine.phase == "running":
            return
        self._disabled = self._disabled ^ {step_id}
        self.panes.work.plan.wait(self._disabled)
        self.preview(plan.to_json(), self._disabled, self.pending.preview.context.params, keep=True)

    def preview(
        self,
        document: Mapping[str, Any],
        disabled: frozenset[str],
        values: Mapping[str, Any],
        *,
        keep: bool = False,
        message: str | None = None,
    ) -> None:
        """Preview a plan document. With `keep` it is the plan that is shown, with other steps; else `message` is what it was made from."""
        if not keep:
            self.forget_plan(message=message)
        self.start(self._bridge.session.preview_plan(document, disabled, values, self._message), "Computing the preview")

    def approve(self, preview: Preview) -> None:
        """Apply exactly the preview that was on the screen when the key was pressed."""
        pending = self.pending
        if (
            self.engine.phase != "idle"
            or pending is None
            or pending.preview is not preview
            or not (preview.valid and does_something(preview))
        ):
            return
        self.last, self.pending = pending, None
        work = self.panes.work
        work.progress.prepare(preview.plan.goal, len(preview.instances))
        work.show("run")
        self.panes.go("work")
        self.panes.chat.transcript.say("note", "Approved.")
        self.engine.run(preview)
        self._changed()

    def reject(self) -> None:
        """Drop the plan that waits."""
        if self.engine.phase == "running":
            return
        self.cancel()
        if self.pending is not None:
            self.last, self.pending = self.pending, None
            self.panes.chat.transcript.say("note", "Plan rejected. Nothing was changed.")
        self.panes.work.show("idle")
        self.panes.go("chat")
        self._changed()

    def run_finished(self, result: ExecutionResult) -> None:
        """Show how it ended."""
        from obsidian_agent.tui.widgets.result import sentence

        work = self.panes.work
        work.progress.finish()
        work.result.show(result)
        work.show("result")
        if self.panes.front == "work":
            self.panes.go("work")
        self.panes.chat.transcript.say("good" if result.success else "bad", sentence(result))
        if result.success and self.last is not None:
            self._tell_findings(self.last.preview, result)
        self._desk.vault_changed()
        if self.last is not None:
            self._desk.run(partial(self._check, self.last.preview, result), "kept")
        if self.last is not None and (wanted := note_to_open(self.last.preview, result)) is not None:
            self._desk.run(partial(self._desk.show_note, *wanted), "note", exclusive=True)
        if result.success and self.last is not None and self.last.macro is not None:
            self._desk.run(partial(self._bridge.call, self._bridge.session.saved.count, self.last.macro), "count")

    def _tell_findings(self, approved: Preview, result: ExecutionResult) -> None:
        """What a plan that only reads has found is its result."""
        from obsidian_agent.agent.document import findings

        for what, lines in findings(approved, result.outputs):
            self.panes.chat.transcript.say("agent", "\n".join([f"{terminal_text.line(what)}:", "", *lines]))

    async def _check(self, approved: Preview, result: ExecutionResult) -> None:
        """Compare the vault with what was approved, and keep what came of it with the conversation."""
        unlike = await self._bridge.call(self._bridge.session.plans.verify, approved) if result.status == "done" else ()
        may_repair = await self._bridge.call(self._talk.ran, approved.plan.goal, result, unlike)
        self.repair = ""
        if unlike:
            from obsidian_agent.agent.execution.verify import repair_request

            self.failed(unlike[0], unlike[1:])
            if may_repair:
                self.repair = repair_request(unlike)
                self.panes.chat.transcript.say("note", "/repair asks for a plan that puts it right. u in the result undoes the run.")


NO_RESULT = "The run ended without a result. The history (F3) shows what was done."
NO_SELECTION = "Selection is empty. Please select text first.\nSelect bullet points to create notes from (Ctrl+O opens a note)."


def note_to_open(preview: Preview, result: ExecutionResult) -> tuple[str, int | None] | None:
    """The note that the plan asked to show last, if that step was done, and the line (from 1)."""
    for instance in reversed(preview.instances):
        if instance.tool != "workspace.openFile":
            continue
        output = result.outputs.get(instance.step_id)
        if isinstance(output, list):
            output = output[instance.index] if instance.index is not None and instance.index < len(output) else None
        if isinstance(output, Mapping) and output.get("opened") and isinstance(output.get("path"), str):
            line = instance.args.get("line")
            return output["path"], line if isinstance(line, int) else None
    return None


def _in_words(preview: Preview) -> str:
    words = [text for _, text in counts(preview.change_set.changes)]
    return ", ".join(words) if words else "no file changes"
