"""Preview, execution and verification of plans.

`dry_run` and `apply` are the synchronous core that headless commands call on the main thread.
`preview` and `execute` are the same for front ends that must not block.
"""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import asdict, replace

from obsidian_agent import budget
from obsidian_agent.agent.event_documents import effects_document
from obsidian_agent.agent.events import (
    AgentEvent,
    Emit,
    ExecutionResult,
    NeedsInput,
    PreviewReady,
    PreviewStarted,
    RunEvent,
    RunFinished,
    RunStatus,
    TurnFailed,
)
from obsidian_agent.agent.privacy.record import MAX_DENIED
from obsidian_agent.agent.streaming import in_thread, stream
from obsidian_agent.errors import ObsidianAgentError, ObsidianError, PlanError, Problem, ToolError
from obsidian_agent.plan.left_out import LeftOut, edits_of
from obsidian_agent.plan.parameters import MissingInput
from obsidian_agent.plan.policy import NOT_PERMITTED, Policy
from obsidian_agent.plan.preview import PREVIEW_SECONDS, DoneItems, dry_run
from obsidian_agent.plan.result import Preview, diff_of, summary_document
from obsidian_agent.plan.validate import Validated, validate
from obsidian_agent.services.executor import RunCommand, execute
from obsidian_agent.services.focus import moved_selection
from obsidian_agent.services.hooks import Hooks
from obsidian_agent.services.open_vault import OpenVault
from obsidian_agent.services.run_context import run_context
from obsidian_agent.services.runs import Runs
from obsidian_agent.tools.core.tool import RunContext, Tool
from obsidian_agent.vault.index.gc_pause import gc_paused
from obsidian_agent.vault.views.changes import NetChange
from obsidian_agent.vault.views.diff import TextEdit
from obsidian_agent.vault.views.disk import DiskView
from obsidian_agent.vault.views.hashed_base import HashedBase
from obsidian_agent.vault.views.view import VaultView

ApprovedBy = Literal["person", "options", "settings"]
"""The approval of a plan: by a person who saw it, by `--yes`, or by the settings."""


class PreviewOptions(Struct, frozen=True, kw_only=True):
    """Options of a preview in addition to the plan and its values.

    For a plan that runs in stages, `done` holds the outputs of the steps that ran, `done_items`
    those of the items of loops that ran in part, and `now` is when it started. `tried` is the
    planner's own dry run.
    """

    disabled: frozenset[str] = frozenset()
    """The ids of steps to skip."""
    left_out: LeftOut | None = None
    """The changes that the user leaves out."""
    instruction: str | None = None
    """The message that the plan was made from."""
    done: Mapping[str, Any] | None = None
    done_items: DoneItems | None = None
    now: datetime | None = None
    agent: str = ""
    """The agent that made the plan, "" for the user."""
    tried: Preview | None = None
    on_first_screen: Callable[[Preview], None] | None = None
    """Receives a partial preview as soon as one screen of changes is known."""

    def reusable_preview(self, values: Mapping[str, Any] | None) -> Preview | None:
        """Return the planner's dry run if a new one would come to the same result."""
        tried = self.tried
        if tried is None or tried.agent != self.agent or values or self.disabled or self.left_out:
            return None
        return tried


DEFAULT_OPTIONS: Final = PreviewOptions()


class Plans(Struct, frozen=True, kw_only=True):
    """The plans of a vault.

    `make_policy` returns the current policy for the plans of an agent, or for "" of the user.
    """

    vault: OpenVault
    tools: Mapping[str, Tool]
    make_policy: Callable[[str], Policy]
    runs: Runs
    hooks: Hooks

    def policy(self) -> Policy:
        """Return the current policy for the user's plans. May block."""
        return self.make_policy("")

    def context(self, *, save: bool = True) -> RunContext:
        """Freeze the focus and the clock, after notes open in an editor are saved. May block."""
        vault = self.vault
        if save and vault.store.editor is not None:
            # A note that cannot be saved is reported before anything is written.
            with suppress(ObsidianAgentError):
                vault.store.editor.save(None)
        return run_context(
            vault.store,
            vault.view(),
            vault.focus,
            now=vault.clock(),
            params={},
            commands=vault.commands(),
        )

    def dry_run(
        self,
        document: object,
        values: Mapping[str, Any] | None = None,
        options: PreviewOptions = DEFAULT_OPTIONS,
    ) -> Preview:
        """Validate and preview a plan document.

        Raise `PlanError` for an invalid plan, `MissingInput` if parameters have no values.
        """
        return self._preview_over(self.vault.view(), document, values, options)

    def expected(self, stage: Preview, document: object, values: Mapping[str, Any]) -> Preview:
        """Preview the stage after `stage`, assuming that its unpreviewable steps change nothing.

        Raise as `dry_run`.
        """
        assert stage.after is not None
        options = PreviewOptions(done=outputs_of(stage), now=stage.context.now, agent=stage.agent)
        return self._preview_over(stage.after, document, values, options)

    def proposed(self, checked: Validated, view: VaultView, instruction: str) -> Preview:
        """Preview a plan that a model proposes over `view`, the notes that the model may know.

        Raise as `dry_run`.
        """
        return dry_run(
            checked, self.tools, checked.policy, view, self.context(), instruction=instruction
        )

    def _preview_over(
        self,
        view: VaultView,
        document: object,
        values: Mapping[str, Any] | None,
        options: PreviewOptions,
    ) -> Preview:
        tried = options.reusable_preview(values)
        checked = document
        if tried is None and not isinstance(document, Validated):
            checked = validate(document, self.tools, self.make_policy(options.agent))
        is_valid = not isinstance(checked, Validated) or checked.plan is not None
        context = self.context(save=is_valid) if tried is None else tried.context
        is_first_stage = not options.done
        if is_first_stage:
            self.hooks.fire("before_plan", plan=document)
        try:
            preview = tried or dry_run(
                checked,
                self.tools,
                self.make_policy(options.agent),
                view,
                context if options.now is None else replace(context, now=options.now),
                values=values,
                disabled=options.disabled,
                left_out=options.left_out or LeftOut(),
                instruction=options.instruction,
                on_first_screen=options.on_first_screen,
                done=options.done,
                done_items=options.done_items,
            )
        except PlanError as error:
            self._note_denied(error.problems)
            self.hooks.failed(error.problem())
            raise
        self._note_denied(preview.errors)
        self.hooks.fire(
            "after_plan",
            planHash=preview.plan_hash,
            valid=preview.valid,
            summary=summary_document(preview),
        )
        moved = moved_selection(view, context) if is_first_stage else None
        return preview if moved is None else replace(preview, warnings=(*preview.warnings, moved))

    def _note_denied(self, problems: Sequence[Problem]) -> None:
        """Note in the audit record which problems are refusals by a rule of the user."""
        denied = [
            {"code": problem.code, "path": problem.path, "rule": problem.message}
            for problem in problems
            if problem.code in NOT_PERMITTED
        ]
        if denied:
            self.runs.note("denial", denied=denied[:MAX_DENIED])

    async def preview(
        self,
        document: Mapping[str, Any],
        values: Mapping[str, Any],
        options: PreviewOptions,
        emit: Emit,
    ) -> tuple[str, ...]:
        """Preview a plan, and emit first screen, preview or error as they come.

        Return the parameters without values, which a `NeedsInput` event names.
        """
        missing: tuple[str, ...] = ()
        abandoned = threading.Event()

        def work(send: Callable[[AgentEvent], None]) -> None:
            nonlocal missing
            with_screen = replace(options, on_first_screen=lambda part: send(PreviewStarted(part)))
            try:
                with budget.limited(PREVIEW_SECONDS, abandoned.is_set):
                    ready = self.dry_run(document, values, with_screen)
                send(PreviewReady(ready))
            except MissingInput as error:
                missing = error.missing
                send(NeedsInput(error.message, missing=missing))
            except PlanError as error:
                send(TurnFailed(error.problem(), error.problems))
            except ObsidianAgentError as error:
                send(TurnFailed(error.problem()))

        await in_thread(work, emit, abandoned)
        return missing

    def apply(
        self,
        approved: Preview,
        emit: Callable[[RunEvent], None],
        cancel: threading.Event,
        by: ApprovedBy = "person",
    ) -> ExecutionResult:
        """Apply exactly the approved preview. Return a result in every case. Blocks."""
        plan = {"planHash": approved.plan_hash, "goal": approved.plan.goal[:200]}
        left_out = {"leftOut": approved.left_out.summary()} if approved.left_out else {}
        self.runs.note("approval", **plan, by=by, **left_out)
        about = {
            "planHash": approved.plan_hash,
            "plan": approved.plan.to_json(),
            "summary": summary_document(approved),
        }
        status: RunStatus = "refused"
        objections: tuple[Problem, ...]
        moved = self._moved_selection(approved)
        if moved is not None:
            status, objections = "conflict", (moved,)
        else:
            objections = tuple(self._denied(approved)) or self.hooks.fire("before_run", **about)
        if objections:
            self._note_denied(objections)
            refused = ExecutionResult(
                run_id=None,
                status=status,
                success=False,
                outcome="refused",
                total_steps=len(approved.instances),
                errors=objections,
            )
            emit(RunFinished(refused))
            return refused
        with gc_paused(), self.runs.journal() as journal:
            result = execute(
                approved,
                self.vault.store,
                journal,
                emit=emit,
                cancel=cancel,
                run_command=self._commands_of(approved),
            )
        self.vault.learn(result.effects)
        if result.success:
            result = self._opened_in_obsidian(approved, result)
        for problem in result.errors:
            self.hooks.failed(problem)
        if result.run_id is None:
            return result
        counts = {name: len(paths) for name, paths in asdict(result.effects).items() if paths}
        more = self.runs.note("run", runId=result.run_id, status=result.status, **plan, **counts)
        errors = [problem.to_json() for problem in result.errors]
        self.hooks.fire(
            "after_run",
            runId=result.run_id,
            status=result.status,
            effects=effects_document(result.effects),
            errors=errors,
        )
        return replace(result, warnings=(*result.warnings, *more))

    def _denied(self, approved: Preview) -> Iterator[Problem]:
        """Yield what the policy, which may have changed since the preview, does not allow."""
        if not approved.valid:
            return
        policy = self.make_policy(approved.agent)
        for step in approved.approved_plan.steps:
            yield from (
                problem.at(step.id) for problem in policy.step_problems(self.tools[step.tool])
            )
        yield from policy.refusals(approved.change_set, approved.instances, self.vault.view())

    def _moved_selection(self, approved: Preview) -> Problem | None:
        """Return a conflict if a plan uses the selection and the selected text has moved.

        A later stage is not checked: the first one may have replaced the selection.
        """
        is_whole = {step.id for step in approved.plan.steps} <= {
            instance.step_id for instance in approved.instances
        }
        if not is_whole or "selection" not in json.dumps(approved.plan.to_json()).lower():
            return None
        if self.vault.store.editor is not None and approved.context.active_file is not None:
            with suppress(ObsidianAgentError):
                self.vault.store.editor.save([approved.context.active_file.text])
        return moved_selection(self.vault.view(), approved.context)

    def _opened_in_obsidian(self, approved: Preview, result: ExecutionResult) -> ExecutionResult:
        """Open the files of `workspace.openFile` in Obsidian.

        Return the result with a warning for each file that was not opened, and that in its output.
        """
        outputs, warnings = dict(result.outputs), list(result.warnings)
        for instance in approved.instances:
            of_step: Any = outputs.get(instance.step_id)
            index = instance.index if isinstance(of_step, list) else None
            output = of_step if index is None else of_step[index]
            if (
                instance.tool != "workspace.openFile"
                or not isinstance(output, Mapping)
                or output.get("via") not in ("obsidian", "desktop")
            ):
                continue
            try:
                self.vault.open_in_obsidian(
                    output["path"],
                    instance.args.get("line"),
                    new_pane=bool(instance.args.get("newPane")),
                )
            except ObsidianAgentError as error:
                warnings.append(error.problem().at(instance.step_id, instance.name))
                failed = {**output, "opened": False}
                outputs[instance.step_id] = (
                    failed if index is None else [*of_step[:index], failed, *of_step[index + 1 :]]
                )
        return replace(result, outputs=outputs, warnings=tuple(warnings))

    def _commands_of(self, approved: Preview) -> RunCommand | None:
        """Return a function that runs a command, if it still has the name that was displayed."""
        if not approved.context.runs_commands:
            return None

        def run(id: str) -> Mapping[str, Any]:
            name = next(
                (command.name for command in approved.context.commands() if command.id == id), ""
            )
            ok = False
            try:
                if not name:
                    raise ObsidianError("Obsidian has no such command.")
                self.vault.run_command(id, name)
                ok = True
            except ObsidianError as error:
                raise ToolError(
                    f"The command {id} failed: {error.message}", code="COMMAND_FAILED"
                ) from error
            finally:
                self.runs.note("command", id=id, name=name, ok=ok)
            return {"id": id, "executed": True}

        return run

    def reject(self, preview: Preview) -> None:
        """Note in the audit record that the user rejected a plan. Blocks."""
        self.runs.note("refusal", planHash=preview.plan_hash, goal=preview.plan.goal[:200])

    def execute(
        self, approved: Preview, cancel: threading.Event, by: ApprovedBy = "person"
    ) -> AsyncGenerator[AgentEvent, None]:
        """Apply exactly this preview, and yield events that end with `RunFinished`.

        `cancel` stops the run after the current file.
        """

        def work(send: Callable[[AgentEvent], None]) -> None:
            self.apply(approved, send, cancel, by)

        return stream(lambda emit: in_thread(work, emit))

    def diff(self, change: NetChange) -> str:
        """Return the unified diff of a change. May block.

        It is "" for folders, pure renames and binary content.
        """
        return diff_of(change, self.vault.view())

    def edits(self, change: NetChange) -> list[TextEdit]:
        """Return the edits of a file, each of which can be left out. May block."""
        return edits_of(change, HashedBase(self.vault.view()))

    def changed_since(self, preview: Preview) -> list[str]:
        """Return the files that a preview read or changes and that are different now. May block."""
        view = self.vault.view()
        changed = [] if preview.after is None else preview.after.before.changed(view)
        changes = preview.change_set.changes
        leaving = {change.path.key for change in changes if change.kind in ("delete", "rename")}
        for change in changes:
            target = change.path if change.kind == "create" else change.new_path
            if target is not None and target.key not in leaving and view.locate(target) is not None:
                changed.append(target)
        return sorted({path.text for path in changed})

    def verify(self, approved: Preview) -> tuple[Problem, ...]:
        """Return how the vault differs from what the preview announced. May block."""
        from obsidian_agent.services.checks import verify

        return verify(approved, DiskView(self.vault.store))


def outputs_of(stage: Preview) -> dict[str, Any]:
    """Return the outputs of the steps that are done once a stage has run as previewed."""
    return {step: output for step, output in stage.outputs.items() if step not in stage.deferred}


def done_by(
    approved: Preview, outputs: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, dict[int | None, Any]]]:
    """Return the outputs of the steps that a run did, and of the items of those it did in part."""
    done: dict[str, Any] = {}
    items: dict[str, dict[int | None, Any]] = {}
    for step in approved.plan.steps:
        output = outputs.get(step.id)
        if step.foreach is None or not isinstance(output, list):
            if output is not None:
                done[step.id] = output
        elif None in output:
            items[step.id] = {index: item for index, item in enumerate(output) if item is not None}
        else:
            done[step.id] = output
    return done, items
