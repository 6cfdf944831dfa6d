"""The dry run: fold the steps of a validated plan over an overlay of the vault.

One `_DryRun` runs the steps in their order of execution. Every instance resolves its arguments
once, gets a proposal from its tool, and has the changes folded in for the next one to see. Nothing
is written. Errors under `onError: stop` make the plan invalid; under `skip` the instance is skipped
with a warning. The flags for the user are computed from the net changes, never from a model's
words.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from itertools import islice
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from obsidian_agent import budget
from obsidian_agent.budget import OutOfBudget
from obsidian_agent.errors import ObsidianAgentError, PlanError, Problem, ToolError, VaultError
from obsidian_agent.plan.active_content import added_content
from obsidian_agent.plan.arguments import parse_input
from obsidian_agent.plan.disclosure import DryRunOutcome, with_disclosures
from obsidian_agent.plan.left_out import LeftOut
from obsidian_agent.plan.model import MAX_INSTANCES, ActionPlan, Foreach, Step
from obsidian_agent.plan.parameters import MissingInput, bind
from obsidian_agent.plan.policy import Policy
from obsidian_agent.plan.references import CompiledStep, Scope, context_values, path_parameters
from obsidian_agent.plan.result import (
    Flag,
    Instance,
    Preview,
    Timings,
    diff_of,
    is_named,
)
from obsidian_agent.plan.validate import Validated, validate
from obsidian_agent.tools.core.filters import FilterContext, LinkWriter
from obsidian_agent.tools.core.tool import Proposal, RunContext, Tool, ToolContext
from obsidian_agent.tools.core.visible_context import visible_context
from obsidian_agent.vault.index.gc_pause import gc_paused
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.views.changes import (
    ChangeSet,
    FileChange,
    MakeDir,
    Move,
    NetChange,
    Operation,
    WriteFile,
)
from obsidian_agent.vault.views.hashed_base import HashedBase
from obsidian_agent.vault.views.overlay import OverlayVault
from obsidian_agent.vault.views.view import VaultView

FIRST_SCREEN = 40
"""Changes that fill the first screen of a preview on the largest terminals."""

PREVIEW_SECONDS = 300.0
"""The time limit of a preview.

Patterns and loops of a plan could otherwise run for days.
"""

MAX_PROBLEMS = 200
"""The maximum number of errors, and of warnings, that a preview stores."""


DoneItems = Mapping[str, Mapping[int | None, Any]]
"""The outputs of the items of loops that have run, by the step and the index of the item."""
NOTHING: Final = LeftOut()
LEFT_OUT: Final = "you left it out"
"""The reason why a call does not run whose changes the user left out."""

MANY_FILES = 50
"""More changed files than this are flagged."""
SHRINK_BYTES = 200
"""A note that loses more bytes than this may be flagged."""
SHRINK_RATIO = 0.5
"""The flag is set if less than this share of the note is left."""
MAX_NAMES = 5
"""The maximum number of hosts or other names in one message."""

_DESTRUCTIVE: Final = re.compile(
    r"delet|remov|trash|eras|wipe|purge|clear|reset|revert|overwrit|uninstall", re.IGNORECASE
)
"""Words in the ids and names of commands that delete something, in Obsidian and most plugins."""


def dry_run(  # noqa: PLR0913 - the whole input of a run; options are keywords
    document: object,
    tools: Mapping[str, Tool],
    policy: Policy,
    view: VaultView,
    context: RunContext,
    values: Mapping[str, Any] | None = None,
    *,
    disabled: frozenset[str] = frozenset(),
    left_out: LeftOut = NOTHING,
    instruction: str | None = None,
    on_first_screen: Callable[[Preview], None] | None = None,
    done: Mapping[str, Any] | None = None,
    done_items: DoneItems | None = None,
) -> Preview:
    """Dry-run a plan, or the result of its validation, with parameter `values` against `view`.

    Steps after an opaque step (`Preview.deferred`) are previewed again once it has run, with the
    outputs of the steps in `done`; `done_items` are those of items of a loop. `disabled` steps are
    skipped, and the changes in `left_out` are not made. `instruction` is the user's request.
    `on_first_screen` receives a partial preview, which has no hash and cannot be approved, as soon
    as one screen of changes is known. Raise PlanError for an invalid plan or value, and
    MissingInput for parameters without values.
    """
    checked = document if isinstance(document, Validated) else validate(document, tools, policy)
    if checked.plan is None:
        raise PlanError("The plan is not valid.", problems=checked.problems)
    bound = bind(checked.plan, values or {})
    if bound.problems:
        raise PlanError("A value is not valid.", problems=bound.problems)
    if bound.missing:
        raise MissingInput(bound.missing)
    context = replace(visible_context(context, view), params={**context.params, **bound.values})
    ran = done or {}
    dry_run = partial(
        _DryRun,
        checked=checked,
        plan=checked.plan,
        tools=tools,
        disabled=disabled,
        left_out=left_out,
        done_items=done_items or {},
    )

    def dry_run_again(other: VaultView, around: RunContext) -> DryRunOutcome:
        # Outputs of steps that have run may hold anything.
        second = dry_run(base=other, context=around, done=dict.fromkeys(ran))
        return DryRunOutcome(second.fold().changes, tuple(second.instances))

    run = dry_run(base=view, context=context, done=ran, on_first_screen=on_first_screen)
    try:
        with gc_paused(), budget.limited(PREVIEW_SECONDS):
            return with_disclosures(run.run(instruction), checked.policy, view, dry_run_again)
    except OutOfBudget as error:
        raise PlanError(f"The preview was ended. {error}", code=error.code) from error


class _DryRun(Struct, dict=True, kw_only=True):
    checked: Validated
    plan: ActionPlan
    tools: Mapping[str, Tool]
    base: VaultView
    context: RunContext
    disabled: frozenset[str]
    left_out: LeftOut
    done_items: DoneItems
    done: Mapping[str, Any]
    on_first_screen: Callable[[Preview], None] | None = None
    started: float = field(default_factory=time.perf_counter)
    first_screen_ms: float | None = None
    looped: int = 0
    outputs: dict[str, Any] = field(default_factory=dict)
    captured: dict[str, Any] = field(default_factory=dict)
    instances: list[Instance] = field(default_factory=list)
    errors: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    unavailable: dict[str, str] = field(default_factory=dict)
    """Steps whose failure or skipping skips their dependents, with the reason."""
    excluded: set[str] = field(default_factory=set)
    """Disabled steps, and the steps that need one of them."""
    deferred: list[str] = field(default_factory=list)
    """Steps after an opaque one."""
    failures: dict[str, str] = field(default_factory=dict)
    """The first failure of each failed step."""

    def __post_init__(self) -> None:
        self.warnings.extend(self.checked.warnings)

    @cached_property
    def overlay(self) -> OverlayVault:
        """The vault as the steps so far would leave it."""
        return OverlayVault(self.base, self.context.now.timestamp() * 1000)

    @cached_property
    def links(self) -> LinkWriter:
        """The writer of links for the vault before the current step."""
        return LinkWriter(self.overlay)

    @cached_property
    def scope(self) -> Scope:
        """The scope of references, whose values grow with each step."""
        return Scope(
            context=context_values(self.context),
            params=self.context.params,
            path_params=path_parameters(self.plan),
            steps=self.outputs,
            vars=self.captured,
            filters=FilterContext(link_for=lambda text: self.links(text), now=self.context.now),
        )

    def fold(self) -> ChangeSet:
        """Dry-run every step. Return their combined changes."""
        for step in self.checked.order:
            cause = next(
                (item for item in self.instances if item.opaque and item.step_id != step.id), None
            )
            if step.id in self.done:
                self._record(step, self.done[step.id])
            elif cause is not None:
                self.deferred.append(step.id)
                self._leave_out(step, None, f"it is previewed again after {cause.name} has run")
                self._record(step, None)
            else:
                self._step(step, self.checked.compiled[step.id])
        return self.overlay.change_set()

    def run(self, instruction: str | None) -> Preview:
        """Dry-run the plan, check its changes against the policy, and compute the flags."""
        change_set = self.fold()
        policy = self.checked.policy
        self.errors.extend(
            islice(policy.refusals(change_set, self.instances, self.base), MAX_PROBLEMS)
        )
        if not self.errors:
            self.errors.extend(self.left_out.problems(change_set, self.overlay.before))
        self._warn(policy.problems)
        self._warn(broken_symlink_warnings(change_set, self.instances))
        self._warn(hard_link_warnings(change_set.changes, self.overlay.before.view))
        flags = (
            *self.checked.flags,
            *opaque_flags(self.instances, self.context),
            *flags_of(change_set.changes, self.overlay.before),
            *self._not_named(change_set, instruction),
        )
        digest = None if self.errors else plan_hash(self.instances, change_set)
        elapsed = self._elapsed()
        return Preview(
            plan=self.plan,
            context=self.context,
            risk=self.checked.risk,
            errors=tuple(self.errors),
            warnings=tuple(self.warnings),
            flags=flags,
            instances=tuple(self.instances),
            outputs=self.outputs,
            change_set=change_set,
            plan_hash=digest,
            excluded=frozenset(self.excluded),
            left_out=self.left_out,
            deferred=tuple(self.deferred),
            approval=policy.approval(change_set, self.instances, self.tools),
            agent=policy.agent,
            after=self.overlay,
            timings=Timings(
                preview_ms=elapsed,
                first_screen_ms=elapsed if self.first_screen_ms is None else self.first_screen_ms,
            ),
        )

    def _not_named(self, change_set: ChangeSet, instruction: str | None) -> Iterator[Flag]:
        if instruction is not None and any(
            change.path != self.context.active_file and not is_named(change.path, instruction)
            for change in change_set.changes
        ):
            from obsidian_agent.plan.not_named import NamedFiles, all_needed

            request = NamedFiles(
                instruction=instruction,
                plan=self.plan,
                instances=self.instances,
                needed=all_needed(self.checked.needed),
                tools=self.tools,
                context=self.context,
                view=self.overlay.before.view,
            )
            yield from request.flags(change_set)

    # --- one step ---

    def _step(self, step: Step, compiled: CompiledStep) -> None:
        self.links = LinkWriter(self.overlay)
        if step.id in self.disabled or not self.excluded.isdisjoint(self.checked.needed[step.id]):
            self.excluded.add(step.id)
        reason = self._why_not(step)
        if reason is not None:
            self._leave_out(step, None, reason)
            self.unavailable[step.id] = reason
            self._record(step, None)
        elif step.foreach is None:
            self._record(step, self._instance(step, compiled, self.scope, None))
        else:
            outputs = self._loop(step, compiled, step.foreach)
            self._record(step, outputs)
            if outputs and step.id in self.failures and all(output is None for output in outputs):
                self.unavailable[step.id] = self.failures[step.id]

    def _loop(self, step: Step, compiled: CompiledStep, loop: Foreach) -> list[Any]:
        outputs = []
        for index, item in enumerate(self._items(step, compiled)):
            scope = self.scope.child(loop.item_name, item, loop.index_name, index)
            outputs.append(self._instance(step, compiled, scope, index))
            if self.first_screen_ms is None and len(self.instances) >= FIRST_SCREEN:
                self._first_screen(self.overlay)
        return outputs

    def _why_not(self, step: Step) -> str | None:
        if step.id in self.disabled:
            return "switched off"
        for name in sorted(self.checked.needed[step.id]):
            if name in self.unavailable:
                return f"step {name} did not run: {self.unavailable[name]}"
        return None

    def _items(self, step: Step, compiled: CompiledStep) -> list[Any]:
        try:
            items = compiled.items(self.scope)
            if self.looped + len(items) > MAX_INSTANCES:
                raise PlanError(
                    f"The loops of this plan run more than {MAX_INSTANCES} times in total.",
                    code="PLAN_TOO_LARGE",
                )
        except ObsidianAgentError as error:
            self._fail(step, None, error)
            return []
        self.looped += len(items)
        return items

    def _instance(self, step: Step, compiled: CompiledStep, scope: Scope, index: int | None) -> Any:
        """Dry-run one call. Return its output, or None if it is skipped or fails."""
        budget.check()
        name = _name(step, index)
        items = self.done_items.get(step.id, {})
        if index in items:
            self._leave_out(step, index, "it is done already")
            return items[index]
        tool = self.tools[step.tool]
        notes: list[str] = []
        try:
            if not compiled.when.condition(scope):
                self._leave_out(step, index, "its condition is false")
                return None
            args = compiled.args.resolve(scope, notes)
            _refuse_null(step.args, args)
            proposal = tool.propose(
                parse_input(tool, args),
                ToolContext(self.overlay, self.base, self.context, self._show),
            )
            changes = self.left_out.remaining(proposal.changes, self.overlay)
            if changes is None:
                self._leave_out(step, index, LEFT_OUT)
                return None
            self.overlay.apply(changes, len(self.instances))
        except ObsidianAgentError as error:
            self._fail(step, index, error)
            return None
        self._note(step, name, notes, proposal)
        output = proposal.output.model_dump(mode="json", by_alias=True, exclude_unset=True)
        budget.spend(sum(len(text) for text in output.values() if isinstance(text, str)))
        depends_on = self.checked.needed[step.id]
        self.instances.append(
            Instance(
                name=name,
                step_id=step.id,
                index=index,
                tool=step.tool,
                args=args,
                state="ready",
                output=output,
                opaque=tool.opaque,
                depends_on=depends_on,
            )
        )
        return output

    # --- records ---

    def _fail(self, step: Step, index: int | None, error: ObsidianAgentError) -> None:
        """Record a failed instance: an error under `stop`, a warning and a gap under `skip`."""
        name = _name(step, index)
        problem = error.problem().at(step.id, name)
        if self.plan.on_error(step) == "skip":
            self._warn([problem])
        elif len(self.errors) < MAX_PROBLEMS:
            self.errors.append(problem)
        self.instances.append(
            Instance(
                name=name,
                step_id=step.id,
                index=index,
                tool=step.tool,
                args={},
                state="failed",
                reason=problem.message,
                problem=problem,
            )
        )
        self.failures.setdefault(step.id, problem.message)
        if index is None or self.plan.on_error(step) != "skip":
            self.unavailable[step.id] = problem.message

    def _leave_out(self, step: Step, index: int | None, reason: str) -> None:
        self.instances.append(
            Instance(
                name=_name(step, index),
                step_id=step.id,
                index=index,
                tool=step.tool,
                args={},
                state="skipped",
                reason=reason,
            )
        )

    def _note(self, step: Step, name: str, notes: list[str], proposal: Proposal[Any]) -> None:
        """Record the warnings of one call: replaced characters in names, and those of the tool."""
        self._warn(Problem("PATH_INVALID", note, step.id, name) for note in notes)
        self._warn(warning.at(step.id, name) for warning in proposal.warnings)

    def _record(self, step: Step, output: Any) -> None:
        self.outputs[step.id] = output
        if step.capture_as is not None:
            self.captured[step.capture_as] = output

    def _warn(self, problems: Iterable[Problem]) -> None:
        for problem in problems:
            if len(self.warnings) < MAX_PROBLEMS:
                self.warnings.append(problem)

    def _elapsed(self) -> float:
        return (time.perf_counter() - self.started) * 1000

    def _show(self, changes: Sequence[FileChange]) -> None:
        """Display the first screen of a plan whose first change is one call with many files."""
        if (
            self.first_screen_ms is None
            and len(changes) == FIRST_SCREEN
            and not self.overlay.change_set().operations
        ):
            overlay = OverlayVault(self.base, self.context.now.timestamp() * 1000)
            overlay.apply(changes, len(self.instances))
            self._first_screen(overlay)

    def _first_screen(self, overlay: OverlayVault) -> None:
        """Display the known changes with their diffs while the dry run continues."""
        change_set = overlay.change_set()
        if len(change_set.changes) < FIRST_SCREEN:
            return
        for change in change_set.changes[:FIRST_SCREEN]:
            diff_of(change, self.base)
        self.first_screen_ms = self._elapsed()
        if self.on_first_screen is not None:
            timings = Timings(first_screen_ms=self.first_screen_ms)
            partial = Preview(
                plan=self.plan,
                context=self.context,
                risk=self.checked.risk,
                instances=tuple(self.instances),
                change_set=change_set,
                timings=timings,
            )
            self.on_first_screen(partial)


def _refuse_null(written: Mapping[str, Any], args: Mapping[str, Any]) -> None:
    """Raise ToolError for an argument that resolves to null.

    It is not the same as an omitted argument, without which a tool may act on the whole vault.
    """
    for name, value in args.items():
        if value is None and written.get(name) is not None:
            raise ToolError(
                f"{name} is null: {written[name]} has no value here.", code="REFERENCE_ERROR"
            )
        if value is None:
            raise ToolError(
                f"{name} is null.",
                code="ARGUMENT_INVALID",
                hint="Omit the argument instead.",
            )


def _name(step: Step, index: int | None) -> str:
    return step.id if index is None else f"{step.id}_{index}"


def plan_hash(instances: list[Instance], change_set: ChangeSet) -> str:
    """Return the SHA-256 of the expanded plan and of every operation with its hashes.

    An approval is bound to it.
    """
    digest = hashlib.sha256()
    encode = json.JSONEncoder(
        ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=str
    ).encode
    for item in instances:
        digest.update(
            encode([item.name, item.tool, item.state, item.args]).encode("utf-8", "surrogatepass")
        )
    for owned in change_set.operations:
        digest.update(encode(_facts(owned.operation)).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _facts(operation: Operation) -> list[Any]:
    match operation:
        case MakeDir(path):
            return ["mkdir", path.text]
        case Move():
            inside = operation.inventory.digest if operation.inventory is not None else None
            return [
                "trash" if operation.trash else "move",
                operation.path.text,
                operation.new_path.text,
                operation.before_hash,
                inside,
            ]
        case WriteFile():
            return ["write", operation.path.text, operation.before_hash, operation.after_hash]


def broken_symlink_warnings(
    change_set: ChangeSet, instances: Sequence[Instance]
) -> Iterator[Problem]:
    """Yield a warning for each symbolic link in a moved folder whose target changes."""
    for owned in change_set.operations:
        move = owned.operation
        if not isinstance(move, Move) or move.trash or move.inventory is None:
            continue
        for item in move.inventory.items:
            if item.link and item.hash is not None and _changes_target(move, item.name, item.hash):
                path, instance = f"{move.new_path}/{item.name}", instances[owned.instance]
                message = (
                    f"{path} is a symbolic link to {item.hash}, which changes its target there."
                )
                yield Problem("LINKS_UNRESOLVED", message, path=path).at(
                    instance.step_id, instance.name
                )


def hard_link_warnings(changes: Sequence[NetChange], before: VaultView) -> Iterator[Problem]:
    """Yield a warning for each file with several names of which more than one is written."""
    names = defaultdict[tuple[int, int], list[VaultPath]](list)
    for change in budget.checked(changes):
        if change.before is None or change.content is None:
            continue
        with suppress(VaultError):
            if (file := before.stat(change.before).shared) is not None:
                names[file].append(change.before)
    for first, *others in names.values():
        if others:
            listed = ", ".join(path.text for path in (first, *others[:MAX_NAMES]))
            message = (
                f"{listed} are hard links to one file. "
                "Each is written separately, so they become separate files."
            )
            yield Problem("DUPLICATE_PATH", message, path=first.text)


def _changes_target(move: Move, name: str, target: str) -> bool:
    """Return whether a relative link at `name` in a moved folder has another target afterwards.

    Absolute targets are not checked.
    """
    if target.startswith("/"):
        return False
    old, new = (
        posixpath.normpath(posixpath.join(posixpath.dirname(f"{folder}/{name}"), target))
        for folder in (move.path, move.new_path)
    )
    inside = old == move.path.text or old.startswith(f"{move.path}/")
    return new != (move.new_path.text + old[len(move.path.text) :] if inside else old)


def flags_of(changes: Sequence[NetChange], before: HashedBase) -> tuple[Flag, ...]:
    """Return the flags of changes to a vault."""
    flags: list[Flag] = []
    touched = [change for change in changes if change.kind != "mkdir"]
    if len(touched) > MANY_FILES:
        flags.append(Flag("manyFiles", f"{len(touched)} files and folders change."))
    arriving = {change.new_path.key: change for change in touched if change.new_path is not None}
    for change in budget.checked(touched):
        flags.extend(_content_flags(change, before) if not change.folder else _folder_flags(change))
        if (
            change.kind == "delete"
            and not change.folder
            and (other := arriving.get(change.path.key)) is not None
        ):
            flags.append(
                Flag(
                    "shrink",
                    f"It goes to .trash and is replaced by {other.path}.",
                    change.path.text,
                )
            )
    return tuple(flags)


def opaque_flags(instances: Iterable[Instance], context: RunContext) -> tuple[Flag, ...]:
    """Return a flag for each call whose effect cannot be previewed.

    It names the command, and says whether that may delete something.
    """

    def detail(item: Instance) -> str:
        id = str(item.args.get("id", ""))
        name = next((command.name for command in context.commands() if command.id == id), id)
        what = "It may delete things, and what" if _DESTRUCTIVE.search(f"{id} {name}") else "What"
        return (
            f"{item.name} runs the command “{name}” ({id}). "
            f"{what} it does cannot be previewed or undone."
        )

    return tuple(
        Flag("opaque", detail(item)) for item in instances if item.opaque and item.state == "ready"
    )


def _folder_flags(change: NetChange) -> Iterator[Flag]:
    """Yield a flag with the number of files in a deleted folder, which is one change."""
    if change.kind == "delete" and change.files:
        files = f"{change.files} file{'s' if change.files > 1 else ''}"
        yield Flag("manyFiles", f"The folder goes to .trash with {files} in it.", change.path.text)


def _content_flags(change: NetChange, before: HashedBase) -> Iterator[Flag]:
    content = change.content
    if content is None:
        return
    path = (change.new_path or change.path).text
    old = change.before
    # Obsidian loads what a note displays as soon as it is opened: that can leak text of a vault.
    active = added_content(
        path,
        content,
        lambda: b"" if old is None else before.read(old),
        None if old is None else old.text,
    )
    if active.hosts:
        yield Flag("remoteUrl", f"Obsidian would load from {_few(active.hosts)}.", path)
    if active.code:
        yield Flag(
            "runsAsCode",
            f"It contains text that plugins may run as code: {_few(active.code)}.",
            path,
        )
    size = 0 if old is None else before.size_of(old)
    lost_bytes = size - len(content)
    if lost_bytes > SHRINK_BYTES and len(content) < SHRINK_RATIO * size:
        yield Flag("shrink", f"It loses {round(100 * lost_bytes / size)} % of its text.", path)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:MAX_NAMES]) + (
        f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    )
