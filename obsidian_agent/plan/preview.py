"""The dry run: fold a validated plan's steps over an overlay of the vault, and know exactly what it would do.

One `_DryRun` walks the steps in their order of execution; every instance resolves its arguments once, asks its tool for a proposal, and
has the changes folded in, so that the next one sees them. Nothing is written. Errors under `onError: stop` make the plan invalid, under
`skip` they leave the instance out with a warning.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from obsidian_agent.errors import ObsidianAgentError, PlanError, Problem
from obsidian_agent.plan.document import diff_of
from obsidian_agent.plan.flags import flags_of
from obsidian_agent.plan.model import MAX_INSTANCES, ActionPlan, Step
from obsidian_agent.plan.references import Scope, Template
from obsidian_agent.plan.result import Instance, Preview, Timings
from obsidian_agent.plan.validate import CompiledStep, Validated
from obsidian_agent.tools.base import Proposal, RunContext, Tool, ToolContext
from obsidian_agent.vault.changes import ChangeSet, MakeDir, Move, Operation, WriteFile
from obsidian_agent.vault.overlay import OverlayVault
from obsidian_agent.vault.view import VaultView

FIRST_SCREEN = 40
"""Changes that fill the first screen of a preview; enough for the largest terminal anybody reads."""

MAX_PROBLEMS = 200
"""Problems kept of one kind: nobody reads the ten-thousandth, and it would cost memory and time."""


def preview(
    checked: Validated,
    tools: Mapping[str, Tool],
    view: VaultView,
    context: RunContext,
    *,
    disabled: frozenset[str] = frozenset(),
    instruction: str | None = None,
    on_first_screen: Callable[[Preview], None] | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Preview:
    """Dry-run a validated plan against `view`. `disabled` steps are left out as if skipped; `instruction` is what the person said.

    `on_first_screen` gets a partial preview (no hash: it cannot be approved) as soon as one screen of changes is known. Raises PlanError
    when the plan did not validate or when `cancelled` says so (code CANCELLED).
    """
    if checked.plan is None:
        raise PlanError("The plan is not valid.", problems=checked.problems)
    run = _DryRun(checked, checked.plan, tools, view, context, disabled, on_first_screen, cancelled)
    return run.run(instruction)


@dataclass(slots=True)
class _DryRun:
    checked: Validated
    plan: ActionPlan
    tools: Mapping[str, Tool]
    base: VaultView
    context: RunContext
    disabled: frozenset[str]
    on_first_screen: Callable[[Preview], None] | None
    cancelled: Callable[[], bool]
    started: float = field(default_factory=time.perf_counter)
    first_screen_ms: float | None = None
    overlay: OverlayVault = field(init=False)
    scope: Scope = field(init=False)
    instances: list[Instance] = field(default_factory=list)
    errors: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    unavailable: dict[str, str] = field(default_factory=dict)
    """Steps whose failure or skipping skips what depends on them, with the reason."""

    def __post_init__(self) -> None:
        self.overlay = OverlayVault(self.base, self.context.now.timestamp() * 1000)
        self.scope = Scope.for_run(self.plan, self.context, self.overlay)
        self.warnings.extend(self.checked.warnings)

    def run(self, instruction: str | None) -> Preview:
        for step in self.checked.order:
            self._step(step, self.checked.compiled[step.id])
        change_set = self.overlay.change_set()
        flags = (*self.checked.flags, *flags_of(change_set.changes, self.base, self.context, instruction))
        elapsed = self._elapsed()
        first = self.first_screen_ms if self.first_screen_ms is not None else elapsed
        return Preview(
            plan=self.plan,
            context=self.context,
            risk=self.checked.risk,
            errors=tuple(self.errors),
            warnings=tuple(self.warnings),
            flags=flags,
            instances=tuple(self.instances),
            outputs=self.scope.outputs(),
            change_set=change_set,
            plan_hash=None if self.errors else plan_hash(self.instances, change_set),
            timings=Timings(preview_ms=elapsed, first_screen_ms=first),
        )

    # --- one step --------------------------------------------------------------------------------------------------------------

    def _step(self, step: Step, compiled: CompiledStep) -> None:
        reason = self._why_not(step, compiled)
        if reason is not None:
            self._leave_out(step, None, reason)
            self.unavailable[step.id] = reason
            return
        if step.foreach is None:
            self.scope.record(step, self._instance(step, compiled, self.scope, None))
            return
        items = self._items(step, compiled)
        outputs = []
        for index, item in enumerate(items):
            scope = self.scope.child(step.foreach.item_name, item, step.foreach.index_name, index)
            outputs.append(self._instance(step, compiled, scope, index))
            if self.first_screen_ms is None and len(self.instances) >= FIRST_SCREEN:
                self._first_screen()
        self.scope.record(step, outputs)

    def _why_not(self, step: Step, compiled: CompiledStep) -> str | None:
        if step.id in self.disabled:
            return "switched off"
        for name in sorted(compiled.depends_on):
            if name in self.unavailable:
                return f"step {name} did not run: {self.unavailable[name]}"
        return None

    def _items(self, step: Step, compiled: CompiledStep) -> list[Any]:
        assert step.foreach is not None
        assert compiled.foreach_from is not None
        try:
            found = compiled.foreach_from.resolve(self.scope)
            shown = step.foreach.from_ if isinstance(step.foreach.from_, str) else json.dumps(step.foreach.from_)
            if not isinstance(found, list):
                raise PlanError(f"foreach.from is not an array: {shown}", code="REFERENCE_ERROR")
            if self.scope.is_truncated(compiled.foreach_from):
                raise PlanError(f"The list {shown} was cut short (hasMore); leave out its limit.", code="TRUNCATED_LIST")
            if len(self.instances) + len(found) > MAX_INSTANCES:
                raise PlanError(f"A plan may make at most {MAX_INSTANCES} calls; this one makes more.", code="PLAN_TOO_LARGE")
        except ObsidianAgentError as error:
            self._fail(step, None, error)
            return []
        return found

    def _instance(self, step: Step, compiled: CompiledStep, scope: Scope, index: int | None) -> Any:
        if self.cancelled():
            raise PlanError("The preview was cancelled.", code="CANCELLED")
        number = len(self.instances)
        name = step.id if index is None else f"{step.id}_{index}"
        try:
            if not scope.truth(compiled.when):
                self._leave_out(step, index, "its condition is false")
                return None
            args = compiled.args.resolve(scope)
            self._note_literals(step, name, compiled.args)
            tool = self.tools[step.tool]
            proposal = self._propose(tool, args)
            for change in proposal.changes:
                self.overlay.apply(change, number)
        except ObsidianAgentError as error:
            self._fail(step, index, error)
            return None
        output = proposal.output.model_dump(mode="json", by_alias=True, exclude_unset=True)
        self._warn(warning.at(step.id, name) for warning in proposal.warnings)
        self.instances.append(
            Instance(name, step.id, index, step.tool, args, "ready", output, opaque=tool.opaque, depends_on=compiled.depends_on)
        )
        return output

    def _propose(self, tool: Tool, args: Any) -> Proposal:
        try:
            parsed = tool.input.model_validate(args)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise PlanError(f"{where or 'arguments'}: {first['msg']}", code="ARGUMENT_INVALID") from error
        return tool.propose(parsed, ToolContext(self.overlay, self.base, self.context))

    # --- the books -------------------------------------------------------------------------------------------------------------

    def _fail(self, step: Step, index: int | None, error: ObsidianAgentError) -> None:
        """Note a failed instance: an error under `stop`, a warning and a gap under `skip`."""
        name = step.id if index is None else f"{step.id}_{index}"
        problem = error.problem().at(step.id, name)
        if self.plan.on_error(step) == "skip":
            self._warn([problem])
        elif len(self.errors) < MAX_PROBLEMS:
            self.errors.append(problem)
        self.instances.append(Instance(name, step.id, index, step.tool, {}, "failed", reason=problem.message))
        if index is None or self.plan.on_error(step) != "skip":
            self.unavailable[step.id] = problem.message

    def _leave_out(self, step: Step, index: int | None, reason: str) -> None:
        name = step.id if index is None else f"{step.id}_{index}"
        self.instances.append(Instance(name, step.id, index, step.tool, {}, "skipped", reason=reason))

    def _note_literals(self, step: Step, name: str, template: Template) -> None:
        for head in sorted(template.literal_heads(self.scope)):
            text = f"${{{head}}} is not known here and stays as it is written."
            self._warn([Problem("UNKNOWN_REFERENCE", text, step.id, name)])

    def _warn(self, problems: Any) -> None:
        for problem in problems:
            if len(self.warnings) < MAX_PROBLEMS:
                self.warnings.append(problem)

    def _elapsed(self) -> float:
        return (time.perf_counter() - self.started) * 1000

    def _first_screen(self) -> None:
        """Show what is known, with its diffs, while the dry run goes on."""
        change_set = self.overlay.change_set()
        if len(change_set.changes) < FIRST_SCREEN:
            return
        for change in change_set.changes[:FIRST_SCREEN]:
            diff_of(change, self.base)
        self.first_screen_ms = self._elapsed()
        if self.on_first_screen is not None:
            timings = Timings(first_screen_ms=self.first_screen_ms)
            partial = Preview(
                self.plan, self.context, self.checked.risk, instances=tuple(self.instances), change_set=change_set, timings=timings
            )
            self.on_first_screen(partial)


def plan_hash(instances: list[Instance], change_set: ChangeSet) -> str:
    """SHA-256 over the expanded plan and every operation with its before- and after-hash: what an approval is bound to."""
    digest = hashlib.sha256()
    encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=str).encode
    for item in instances:
        digest.update(encode([item.name, item.tool, item.state, item.args]).encode("utf-8", "surrogatepass"))
    for owned in change_set.operations:
        digest.update(encode(_facts(owned.operation)).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _facts(operation: Operation) -> list[Any]:
    match operation:
        case MakeDir(path):
            return ["mkdir", path.text]
        case Move():
            return ["trash" if operation.trash else "move", operation.path.text, operation.new_path.text, operation.before_hash]
        case WriteFile():
            return ["write", operation.path.text, operation.before_hash, operation.after_hash]
