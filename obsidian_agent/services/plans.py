"""What becomes of a plan: its preview, the run that was approved, and whether the vault is then as previewed.

`dry_run` and `apply` are the synchronous core that headless commands call on the main thread; `preview` and `execute` are the same for front
ends that must not wait.
"""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Literal

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
from obsidian_agent.dataclass import dataclass, replace
from obsidian_agent.errors import ObsidianAgentError, ObsidianError, PlanError, Problem, ToolError
from obsidian_agent.plan.parameters import MissingInput
from obsidian_agent.plan.policy import NOT_PERMITTED, Policy
from obsidian_agent.plan.preview import PREVIEW_SECONDS, dry_run
from obsidian_agent.plan.result import Preview, diff_of, summary_document
from obsidian_agent.plan.validate import Validated
from obsidian_agent.services.executor import RunCommand, execute
from obsidian_agent.services.focus import moved_selection
from obsidian_agent.services.hooks import Hooks
from obsidian_agent.services.open_vault import OpenVault
from obsidian_agent.services.run_context import run_context
from obsidian_agent.services.runs import Runs
from obsidian_agent.tools.core.tool import RunContext, Tool
from obsidian_agent.vault.index.gc_pause import gc_paused
from obsidian_agent.vault.views.changes import NetChange
from obsidian_agent.vault.views.disk import DiskView
from obsidian_agent.vault.views.view import VaultView

ApprovedBy = Literal["person", "options", "settings"]
"""Who approved a plan: a person who saw it, `--yes`, or settings that let it run without a question."""


@dataclass(frozen=True, slots=True)
class Plans:
    """Plans over one vault. `make_policy` says what those of an agent, by name, may do now; "" for the person's."""

    vault: OpenVault
    tools: Mapping[str, Tool]
    make_policy: Callable[[str], Policy]
    runs: Runs
    hooks: Hooks

    @property
    def policy(self) -> Policy:
        """What the person's plans may do, as the settings have it now. May block."""
        return self.make_policy("")

    def context(self) -> RunContext:
        """The focus and the clock, frozen, and what is typed in an editor beside this program saved. May block."""
        vault = self.vault
        if vault.store.editor is not None:
            # What cannot be saved now is told before anything is written.
            with suppress(ObsidianAgentError):
                vault.store.editor.save(None)
        return run_context(
            vault.store, vault.view(), vault.focus, vault.clock(), {}, vault.commands()
        )

    def dry_run(
        self,
        document: object,
        values: Mapping[str, Any] | None = None,
        *,
        disabled: frozenset[str] = frozenset(),
        instruction: str | None = None,
        on_first_screen: Callable[[Preview], None] | None = None,
        done: Mapping[str, Any] | None = None,
        now: datetime | None = None,
        agent: str = "",
        tried: Preview | None = None,
    ) -> Preview:
        """Validate and preview a plan document. Raises PlanError for an invalid one, MissingInput when parameters lack values.

        `done`: the outputs of the steps that ran already, of a plan that runs in stages, and `now` when it began. `agent` made the plan;
        `tried` is what whoever made it found when it tried it just now: the preview, then, if nothing is given that it lacked.
        """
        how: dict[str, Any] = {
            "disabled": disabled,
            "instruction": instruction,
            "on_first_screen": on_first_screen,
            "done": done,
            "now": now,
            "agent": agent,
            "tried": tried,
        }
        return self._over(self.vault.view(), document, values, **how)

    def expected(self, stage: Preview, document: object, values: Mapping[str, Any]) -> Preview:
        """The stage that follows another, if what could not be previewed changes nothing. Raises as `dry_run`."""
        assert stage.after is not None
        return self._over(
            stage.after,
            document,
            values,
            done=outputs_of(stage),
            now=stage.context.now,
            agent=stage.agent,
        )

    def proposed(self, checked: Validated, view: VaultView, instruction: str) -> Preview:
        """What a plan would do that a model proposes, over what the model may know of. Raises as `dry_run`."""
        return dry_run(
            checked, self.tools, checked.policy, view, self.context(), instruction=instruction
        )

    def _over(
        self,
        view: VaultView,
        plan: object,
        values: Mapping[str, Any] | None = None,
        *,
        now: datetime | None = None,
        agent: str = "",
        tried: Preview | None = None,
        **how: Any,
    ) -> Preview:
        if tried is not None and (tried.agent != agent or values or how.get("disabled")):
            tried = None
        context = self.context() if tried is None else tried.context
        use = context if now is None else replace(context, now=now)
        if not how.get("done"):
            self.hooks.fire("before_plan", plan=plan)
        try:
            preview = tried or dry_run(
                plan, self.tools, self.make_policy(agent), view, use, values, **how
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
        moved = moved_selection(view, context) if not how.get("done") else None
        return preview if moved is None else replace(preview, warnings=(*preview.warnings, moved))

    def _note_denied(self, problems: Sequence[Problem]) -> None:
        """Take down what of a plan a rule of the person forbids."""
        denied = [
            {"code": each.code, "path": each.path, "rule": each.message}
            for each in problems
            if each.code in NOT_PERMITTED
        ]
        if denied:
            self.runs.note("denial", denied=denied[:MAX_DENIED])

    async def preview(
        self,
        document: Mapping[str, Any],
        values: Mapping[str, Any],
        disabled: frozenset[str],
        instruction: str | None,
        emit: Emit,
        done: Mapping[str, Any] | None = None,
        agent: str = "",
        tried: Preview | None = None,
    ) -> tuple[str, ...]:
        """Emit the preview of a plan as it comes, or why there is none; the parameters without values, of which NeedsInput tells."""
        missing: tuple[str, ...] = ()
        abandoned = threading.Event()

        def work(tell: Callable[[AgentEvent], None]) -> None:
            nonlocal missing
            try:
                with budget.limited(PREVIEW_SECONDS, abandoned.is_set):
                    ready = self.dry_run(
                        document,
                        values,
                        disabled=disabled,
                        instruction=instruction,
                        on_first_screen=lambda part: tell(PreviewStarted(part)),
                        done=done,
                        agent=agent,
                        tried=tried,
                    )
                tell(PreviewReady(ready))
            except MissingInput as error:
                missing = error.missing
                tell(NeedsInput(error.message, missing=missing))
            except PlanError as error:
                tell(TurnFailed(error.problem(), error.problems))
            except ObsidianAgentError as error:
                tell(TurnFailed(error.problem()))

        await in_thread(work, emit, abandoned)
        return missing

    def apply(
        self,
        approved: Preview,
        emit: Callable[[RunEvent], None],
        cancel: threading.Event,
        by: ApprovedBy = "person",
    ) -> ExecutionResult:
        """Do exactly what was approved. Blocks; always answers a result."""
        plan = {"planHash": approved.plan_hash, "goal": approved.plan.goal[:200]}
        self.runs.note("approval", **plan, by=by)
        about = {
            "planHash": approved.plan_hash,
            "plan": approved.plan.to_json(),
            "summary": summary_document(approved),
        }
        moved = self._moved(approved)
        against = (
            (moved,)
            if moved is not None
            else tuple(self._denied(approved)) or self.hooks.fire("before_run", **about)
        )
        if against:
            self._note_denied(against)
            status: RunStatus = "conflict" if moved is not None else "refused"
            refused = ExecutionResult(
                None, status, False, "refused", total_steps=len(approved.instances), errors=against
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
            result = replace(
                result, warnings=(*result.warnings, *self._open_in_obsidian(approved, result))
            )
        for problem in result.errors:
            self.hooks.failed(problem)
        if result.run_id is None:
            return result
        counts = {
            name: len(paths) for name, paths in effects_document(result.effects).items() if paths
        }
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
        """What the policy, which may be another since the preview, does not allow."""
        if not approved.valid:
            return
        policy = self.make_policy(approved.agent)
        for step in approved.approved_plan.steps:
            yield from (
                problem.at(step.id) for problem in policy.step_problems(self.tools[step.tool])
            )
        yield from policy.refusals(approved.change_set, approved.instances, self.vault.view())

    def _moved(self, approved: Preview) -> Problem | None:
        """Whether a plan that is about the selection is to run over another one. Its own first stage may have replaced it."""
        is_whole = {step.id for step in approved.plan.steps} <= {
            instance.step_id for instance in approved.instances
        }
        if not is_whole or "selection" not in json.dumps(approved.plan.to_json()).lower():
            return None
        if self.vault.store.editor is not None and approved.context.active_file is not None:
            with suppress(ObsidianAgentError):
                self.vault.store.editor.save([approved.context.active_file.text])
        return moved_selection(self.vault.view(), approved.context)

    def _open_in_obsidian(self, approved: Preview, result: ExecutionResult) -> Iterator[Problem]:
        """Show the files that the plan wants to be seen in Obsidian; warnings about those that could not be."""
        for instance in approved.instances:
            output = result.outputs.get(instance.step_id)
            output = (
                output[instance.index]
                if isinstance(output, list) and instance.index is not None
                else output
            )
            if (
                instance.tool == "workspace.openFile"
                and isinstance(output, Mapping)
                and output.get("via") in ("obsidian", "desktop")
            ):
                try:
                    self.vault.open_in_obsidian(
                        output["path"],
                        instance.args.get("line"),
                        new_pane=bool(instance.args.get("newPane")),
                    )
                except ObsidianAgentError as error:
                    yield error.problem().at(instance.step_id, instance.name)

    def _commands_of(self, approved: Preview) -> RunCommand | None:
        """What runs the commands of a plan, each only while it has the name that was shown."""
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
        """Take down that the person does not want this. Blocks."""
        self.runs.note("refusal", planHash=preview.plan_hash, goal=preview.plan.goal[:200])

    def execute(
        self, approved: Preview, cancel: threading.Event, by: ApprovedBy = "person"
    ) -> AsyncGenerator[AgentEvent, None]:
        """Apply exactly this preview; ends with RunFinished. `cancel` stops it after the current file."""

        def work(tell: Callable[[AgentEvent], None]) -> None:
            self.apply(approved, tell, cancel, by)

        return stream(lambda emit: in_thread(work, emit))

    def diff(self, change: NetChange) -> str:
        """Unified diff of one change; "" for folders, pure renames and binary content. May block."""
        return diff_of(change, self.vault.view())

    def verify(self, approved: Preview) -> tuple[Problem, ...]:
        """What of the vault is not as the preview said that it would be. May block."""
        from obsidian_agent.services.checks import verify

        return verify(approved, DiskView(self.vault.store))


def outputs_of(stage: Preview) -> dict[str, Any]:
    """The outputs of the steps that are done when a stage has run as previewed."""
    return {step: output for step, output in stage.outputs.items() if step not in stage.deferred}
