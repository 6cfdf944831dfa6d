"""The executor: applies exactly the operations of an approved preview.

It checks, writes the journal, acts instance by instance and flushes, with progress, retries,
skipping and cancellation. It knows no tool and asks no questions. Each file is written only while
it still is what the preview read. Every run ends with a result, and every effect is in the journal.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from time import perf_counter
from typing import Any, Final

from msgspec.structs import replace

from obsidian_agent.agent.events import (
    ExecutionResult,
    RunEvent,
    RunFinished,
    RunStarted,
    RunStatus,
    StepFailed,
    StepFinished,
    StepRetrying,
    StepSkipped,
    StepStarted,
)
from obsidian_agent.errors import (
    Conflict,
    JournalError,
    ObsidianAgentError,
    Problem,
    ToolError,
    VaultError,
)
from obsidian_agent.journal.changes import effects_of
from obsidian_agent.journal.records import (
    Effects,
    NewRecord,
    Record,
    StepOutcome,
    StepShare,
    UndoPoint,
    step_outcomes,
    undo_points_between,
)
from obsidian_agent.journal.recovery import resolve_interrupted
from obsidian_agent.journal.writer import Journal
from obsidian_agent.plan.model import MAX_BACKOFF_MS, Step
from obsidian_agent.plan.result import Instance, Preview
from obsidian_agent.services.checks import Precheck, Work
from obsidian_agent.vault.filesystem.dirhandles import FolderHandles
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.paths.path import is_trash
from obsidian_agent.vault.transaction.actions import (
    Action,
    MoveEntry,
    PutFile,
    PutFolder,
    action_of,
    reverse,
    save_open_files,
)
from obsidian_agent.vault.transaction.apply import Applier, HalfDone

__all__ = ["Emit", "RunCommand", "execute"]

Emit = Callable[[RunEvent], None]
RunCommand = Callable[[str], Mapping[str, Any]]
"""Runs a command of Obsidian by its id.

Returns the output of `commands.run`: `{id, executed, errorMessage?}`.
"""

_JITTER: Final = 0.2
_CANCELLABLE_ACTIONS: Final = 200
"""An instance with more actions can be cancelled between two of them."""


def execute(
    preview: Preview,
    store: VaultStore,
    journal: Journal,
    *,
    emit: Emit,
    cancel: threading.Event,
    run_command: RunCommand | None = None,
) -> ExecutionResult:
    """Apply an approved preview. Return a result in every case, and emit it last.

    `cancel` is checked between instances, between the files of a very large instance, and while
    waiting for a retry. A run that ends with status "failed" and a run id may be incomplete: then
    the journal lists it as interrupted, and recovery finishes it or rolls it back.
    """
    execution = _Execution(
        preview,
        store,
        journal,
        emit=_Listener(emit),
        cancel=cancel,
        run_command=run_command,
    )
    try:
        result = execution.run()
    except Conflict as error:
        result = execution.result("conflict", error.problem())
    except ObsidianAgentError as error:
        result = execution.result("failed", error.problem())
    except Exception as error:
        message = f"The run stopped unexpectedly: {type(error).__name__}: {error}."
        result = execution.result("failed", Problem("INTERNAL_ERROR", message))
    execution.emit(RunFinished(result))
    return result


class _Listener:
    """A progress listener. One that raises is dropped; the run continues."""

    def __init__(self, emit: Emit) -> None:
        self._emit: Emit | None = emit

    def __call__(self, event: RunEvent) -> None:
        if self._emit is None:
            return
        try:
            self._emit(event)
        except Exception:
            self._emit = None


class _Execution:
    """One call of `execute`, from the lock to the result."""

    def __init__(
        self,
        preview: Preview,
        store: VaultStore,
        journal: Journal,
        emit: _Listener,
        cancel: threading.Event,
        run_command: RunCommand | None,
    ) -> None:
        self.emit = emit
        self._preview = preview
        self._store = store
        self._journal = journal
        self._running = InstanceRunner(preview, journal, emit, cancel, run_command)
        self._record: Record | None = None
        self._undo_points: list[UndoPoint] = []
        self._is_finished = False
        self._journal_ms = 0.0
        self._apply_ms = 0.0

    def run(self) -> ExecutionResult:
        """Execute the preview. Raise what `execute` turns into a result."""
        preview = self._preview
        if not preview.valid:
            return replace(self.result("refused", *preview.errors), outcome="refused")
        if not preview.change_set.operations and not any(
            instance.opaque for instance in preview.instances
        ):
            return self._read_only()
        started = perf_counter()
        with self._journal.lock(), FolderHandles(self._store) as handles:
            resolve_interrupted(self._journal, self._store)
            editing = save_open_files(
                self._store, (action_of(owned.operation) for owned in preview.change_set.operations)
            )
            with self._journal.begin(_new_record(preview)) as writer:
                preflight = Precheck(handles, writer, preview.instances, editing)
                preflight.check(preview.change_set.operations)
                if preflight.problems:
                    stale = any(problem.code == "CONFLICT" for problem in preflight.problems)
                    return self.result("conflict" if stale else "failed", *preflight.problems)
                self._undo_points = _undo_points(preview, preflight.work)
                record = self._record = writer.commit(undo_points=self._undo_points)
            self._journal_ms = (perf_counter() - started) * 1000
            self._running.begin(record, preflight.work)
            self.emit(RunStarted(record.run_id, len(preview.instances)))
            started = perf_counter()
            with Applier(handles, record.token, editing) as applier:
                status = self._running.run(applier)
                applier.complete()
                self._running.warnings += applier.warnings
            self._finish(record, status)
            self._apply_ms = (perf_counter() - started) * 1000
        return self.result(status)

    def _finish(self, record: Record, status: RunStatus) -> None:
        assert status != "refused"
        try:
            self._journal.finish(record, status, self._running.applied, effects=self._effects())
        except JournalError as error:
            message = (
                "The run could not be marked as finished in the journal; recovery will do it: "
                f"{error.message}"
            )
            self._running.warnings.append(Problem(error.code, message))
        else:
            self._is_finished = True

    def _read_only(self) -> ExecutionResult:
        """Run a plan that changes nothing.

        It is recorded if possible, so that it can become a macro. There is nothing to flush.
        """
        record: Record | None = None
        no_work: list[list[Work]] = [[] for _ in self._preview.instances]
        with (
            suppress(JournalError),
            self._journal.lock(),
            self._journal.begin(_new_record(self._preview)) as writer,
        ):
            self._undo_points = _undo_points(self._preview, no_work)
            record = writer.commit(durable=False, undo_points=self._undo_points)
            self._journal.finish(record, "done", ())
        self._record = record
        self._running.begin(record, no_work)
        self.emit(RunStarted(record.run_id if record else "", len(self._preview.instances)))
        return self.result(self._running.run(None))

    def _effects(self) -> Effects:
        running = self._running
        items = (item for work in running.work for item in work)
        return effects_of(
            (item.action for item in items if item.number in running.applied),
            tuple(running.commands),
        )

    def _step_outcomes(self) -> tuple[StepOutcome, ...]:
        running = self._running
        texts = {step.id: step.title for step in self._preview.plan.steps}
        return tuple(
            step_outcomes(
                self._undo_points, running.applied, commands=running.commands, texts=texts
            )
        )

    def _remaining(self) -> Effects:
        """Return the effects of the approved plan that did not take place."""
        running = self._running
        planned = Counter(
            command for instance in self._preview.instances for command in _commands_of(instance)
        )
        pending = (item for work in running.work for item in work)
        return effects_of(
            (item.action for item in pending if item.number not in running.applied),
            tuple((planned - Counter(running.commands)).elements()),
        )

    def result(self, status: RunStatus, *problems: Problem) -> ExecutionResult:
        """Return the result with everything that was done so far."""
        running = self._running
        errors = (*running.errors, *problems)
        return ExecutionResult(
            run_id=self._record.run_id if self._record else None,
            status=status,
            success=status == "done" and not errors,
            outcome="done" if status == "done" else "error",
            completed_steps=running.completed,
            total_steps=len(self._preview.instances),
            outputs=running.outputs,
            errors=errors,
            warnings=(*self._preview.warnings, *running.warnings),
            effects=self._effects(),
            steps=self._step_outcomes(),
            remaining=self._remaining(),
            undo_available=self._is_finished and bool(running.applied),
            timings=replace(
                self._preview.timings, journal_ms=self._journal_ms, apply_ms=self._apply_ms
            ),
        )


def _undo_points(preview: Preview, work: Sequence[Sequence[Work]]) -> list[UndoPoint]:
    shares: list[StepShare] = []
    for instance, actions in zip(preview.instances, work, strict=True):
        numbers = range(actions[0].number, actions[-1].number + 1) if actions else range(0)
        writes = frozenset(item.number for item in actions if isinstance(item.action, PutFile))
        shares.append(StepShare(instance.step_id, numbers, _commands_of(instance), writes))
    return undo_points_between(shares, preview.change_set.joined)


def _commands_of(instance: Instance) -> tuple[str, ...]:
    return (str(instance.args.get("id", "")),) if instance.opaque else ()


def _new_record(preview: Preview) -> NewRecord:
    left_out = preview.left_out.summary()
    return NewRecord(
        kind="run",
        goal=preview.plan.goal,
        plan=preview.approved_plan.to_json() | ({"leftOut": left_out} if left_out else {}),
        plan_hash=preview.plan_hash,
    )


class _Cancelled(Exception):
    """A cancellation by the user. It never leaves this module."""


class InstanceRunner:
    """Runs the instances of a preview, and holds what was done and what went wrong."""

    def __init__(
        self,
        preview: Preview,
        journal: Journal,
        emit: Emit,
        cancel: threading.Event,
        run_command: RunCommand | None,
    ) -> None:
        self._preview = preview
        self._journal = journal
        self._emit = emit
        self._cancel = cancel
        self._run_command = run_command
        self._record: Record | None = None
        self._steps = {step.id: step for step in preview.plan.steps}
        self._total = len(preview.instances)
        self._finished = 0
        """Number of instances that ran, failed or were skipped."""
        self._failed_steps: set[str] = set()
        self._failed_paths: set[str] = set()
        self._trash: Work | None = None
        """The creation of the trash folder, if the instance that was to do it did not."""
        self.work: list[list[Work]] = []
        """The actions of each instance."""
        self.applied: set[int] = set()
        """The numbers of the actions in effect."""
        self.completed = 0
        """The number of instances whose changes are all applied."""
        self._waiting: dict[int, tuple[StepFinished, set[int]]] = {}
        """Instances that ran, with the later instances that write their changes."""
        self._writers: dict[int, set[int]] = {}
        self._contributors: dict[int, list[int]] = {}
        for first, second in sorted(preview.change_set.joined):
            self._writers.setdefault(first, set()).add(second)
            self._contributors.setdefault(second, []).append(first)
        self.commands: list[str] = []
        self.errors: list[Problem] = []
        self.warnings: list[Problem] = []
        self.outputs: dict[str, Any] = {
            step: list(output) if isinstance(output, list) else output
            for step, output in preview.outputs.items()
        }

    def begin(self, record: Record | None, work: list[list[Work]]) -> None:
        """Set the journaled work of each instance."""
        self._record, self.work = record, work

    def run(self, applier: Applier | None) -> RunStatus:
        """Run every instance until the end, a failure that stops the plan, or a cancellation.

        Raise `HalfDone` if an action could neither be completed nor rolled back.
        """
        status: RunStatus = "done"
        for number, (instance, planned) in enumerate(
            zip(self._preview.instances, self.work, strict=True)
        ):
            if self._cancel.is_set():
                return self._cancelled(number)
            work = self._with_trash(planned)
            reason = self._reason_to_skip(instance, work)
            if reason is not None:
                self._skip(instance, work, reason)
                self._drop_waiting(number, self._steps[instance.step_id].title)
                continue
            step = self._steps[instance.step_id]
            try:
                problem = self._do(number, step, work, applier)
            except _Cancelled:
                return self._cancelled(number)
            if problem is None:
                continue
            if problem.code == "CONFLICT":
                status = "conflict"
            if self._preview.plan.on_error(step) != "skip":
                self._drop_outputs_from(number)
                return status if status == "conflict" else "stopped"
            self._drop_waiting(number, self._steps[instance.step_id].title)
        return status

    def _with_trash(self, work: list[Work]) -> list[Work]:
        """Return the actions of an instance, preceded by the creation of the trash if needed.

        It is needed if the instance moves something there and the creation failed before.
        """
        creation = self._trash
        needs_trash = any(
            isinstance(item.action, MoveEntry) and is_trash(item.action.new_path) for item in work
        )
        if creation is None or creation in work or not needs_trash:
            return work
        self._trash = None
        return [creation, *work]

    def _drop_outputs_from(self, number: int) -> None:
        """Drop the previewed outputs of instances that did not run or whose changes are lost."""
        for index in (*self._waiting, *range(number, self._total)):
            self._put_output(self._preview.instances[index], None)

    def _cancelled(self, number: int) -> RunStatus:
        self._drop_outputs_from(number)
        message = "The run was cancelled. What it had changed by then can be undone."
        self.errors.append(Problem("CANCELLED", message))
        return "cancelled"

    # --- skipping ----------------------------------------------------------------------

    def _reason_to_skip(self, instance: Instance, work: list[Work]) -> str | None:
        if instance.state != "ready":
            return instance.reason or f"it was {instance.state} in the preview"
        for step in sorted(instance.depends_on & self._failed_steps):
            return f"it depends on “{self._steps[step].title}”, which did not succeed"
        if not self._failed_paths:
            return None
        for item in work:
            for path in _paths(item.action):
                if self._is_lost(path):
                    return f"an earlier step failed at {path}"
        return None

    def _is_lost(self, path: str) -> bool:
        """Return whether a path, or a folder above it, belongs to an instance that did not run."""
        while path:
            if path in self._failed_paths:
                return True
            path = path.rpartition("/")[0]
        return False

    def _skip(self, instance: Instance, work: list[Work], reason: str) -> None:
        if instance.state == "ready":
            self._lose(instance, work)
            self._warn_of_skipped(instance, f"was skipped: {reason}.")
        self._emit_skipped(instance, reason)

    def _warn_of_skipped(self, instance: Instance, what: str) -> None:
        title = self._steps[instance.step_id].title
        self.warnings.append(
            Problem(
                "SKIPPED",
                f"{instance.name} {what}",
                step_id=instance.step_id,
                instance=instance.name,
                plain=f"“{title}” {what}",
            )
        )

    def _emit_skipped(self, instance: Instance, reason: str) -> None:
        self._finished += 1
        self._emit(
            StepSkipped(
                step_id=instance.step_id,
                instance=instance.name,
                reason=reason,
                completed=self._finished,
                total=self._total,
            )
        )

    def _lose(self, instance: Instance, work: list[Work]) -> None:
        """Mark the step and the paths of an instance that did not run as failed."""
        self._failed_steps.add(instance.step_id)
        for item in work:
            if isinstance(item.action, PutFolder) and is_trash(item.action.path):
                self._trash = None if item.number in self.applied else item
            else:
                self._failed_paths.update(_paths(item.action))
        self._put_output(instance, None)

    def _put_output(self, instance: Instance, output: object) -> None:
        if instance.index is None:
            self.outputs[instance.step_id] = output
            return
        outputs = self.outputs.get(instance.step_id)
        if isinstance(outputs, list) and instance.index < len(outputs):
            outputs[instance.index] = output

    # --- running ----------------------------------------------------------------------

    def _do(
        self, number: int, step: Step, work: list[Work], applier: Applier | None
    ) -> Problem | None:
        """Run instance `number`. Return the problem if it failed after all retries."""
        instance = self._preview.instances[number]
        started = perf_counter()
        self._emit(StepStarted(instance.step_id, instance.name, step.title))
        try:
            if instance.opaque:
                self._put_output(
                    instance, self._with_retries(instance, step, lambda: self._command(instance))
                )
            for index, item in enumerate(work):
                if index and len(work) > _CANCELLABLE_ACTIONS and self._cancel.is_set():
                    raise _Cancelled
                assert applier is not None
                self._carry_out(instance, step, item, applier)
        except HalfDone:
            raise
        except ObsidianAgentError as error:
            return self._failed(instance, step, work, applier, error)
        elapsed = (perf_counter() - started) * 1000
        paths = tuple([_paths(item.action)[-1] for item in work])
        finished = StepFinished(
            step_id=instance.step_id,
            instance=instance.name,
            completed=0,
            total=self._total,
            elapsed_ms=elapsed,
            paths=paths,
        )
        self._waiting[number] = (finished, set(self._writers.get(number, ())))
        self._emit_finished(number)
        return None

    def _emit_finished(self, number: int) -> None:
        """Report the instances whose changes are all applied now that instance `number` ran."""
        for candidate in (*self._contributors.get(number, ()), number):
            finished, writers = self._waiting.get(candidate, (None, set[int]()))
            writers.discard(number)
            if finished is not None and not writers:
                del self._waiting[candidate]
                self._finished += 1
                self.completed += 1
                self._emit(replace(finished, completed=self._finished))

    def _drop_waiting(self, number: int, title: str) -> None:
        """Report the instances whose changes instance `number` should have written but did not."""
        for contributor in self._contributors.get(number, ()):
            if self._waiting.pop(contributor, None) is None:
                continue
            instance = self._preview.instances[contributor]
            reason = f"“{title}”, which would have written its changes, did not run"
            self._warn_of_skipped(instance, f"is not applied: {reason}.")
            self._failed_steps.add(instance.step_id)
            self._put_output(instance, None)
            self._emit_skipped(instance, reason)

    def _failed(
        self,
        instance: Instance,
        step: Step,
        work: list[Work],
        applier: Applier | None,
        error: ObsidianAgentError,
    ) -> Problem:
        problem = error.problem().at(instance.step_id, instance.name)
        self._finished += 1
        is_skipped = self._preview.plan.on_error(step) == "skip"
        if is_skipped and problem.code != "CONFLICT":
            self.warnings.append(problem)
        else:
            self.errors.append(problem)
        if applier is not None and is_skipped:
            self._revert(work, applier)
        self._lose(instance, work)
        self._emit(StepFailed(instance.step_id, instance.name, problem))
        return problem

    def _carry_out(self, instance: Instance, step: Step, item: Work, applier: Applier) -> None:
        try:
            done = applier.carry_out(item.action, item.number, item.content)
        except VaultError as error:
            if not error.retryable:
                raise
            done = self._with_retries(
                instance,
                step,
                lambda: applier.carry_out(item.action, item.number, item.content),
                error,
            )
        if done:
            self.applied.add(item.number)

    def _with_retries(
        self,
        instance: Instance,
        step: Step,
        attempt: Callable[[], Any],
        first: ObsidianAgentError | None = None,
    ) -> Any:
        """Call `attempt` until it succeeds or the step's attempts are used up.

        `first` is the error of an attempt that was already made.
        """
        policy = self._preview.plan.retry(step)
        attempts, error = (0, None) if first is None else (1, first)
        while True:
            if error is not None:
                if (
                    attempts >= policy.max_attempts
                    or not error.retryable
                    or isinstance(error, HalfDone)
                ):
                    raise error
                delay = min(policy.backoff_ms * 2.0 ** (attempts - 1), MAX_BACKOFF_MS)
                delay *= random.uniform(1 - _JITTER, 1 + _JITTER)
                self._emit(
                    StepRetrying(
                        step_id=instance.step_id,
                        instance=instance.name,
                        attempt=attempts + 1,
                        attempts=policy.max_attempts,
                        delay_ms=delay,
                        problem=error.problem().at(instance.step_id, instance.name),
                    )
                )
                if self._cancel.wait(delay / 1000):
                    raise _Cancelled
            attempts += 1
            try:
                return attempt()
            except ObsidianAgentError as raised:
                error = raised

    def _command(self, instance: Instance) -> dict[str, Any]:
        """Run a command of Obsidian, which is neither previewed nor journaled nor undone."""
        command = str(instance.args.get("id", ""))
        if self._run_command is None:
            raise ToolError(
                f"The command {command} cannot be run: Obsidian is not connected.",
                code="COMMAND_FAILED",
            )
        try:
            output = dict(self._run_command(command))
        except ObsidianAgentError:
            raise
        except Exception as error:
            raise ToolError(
                f"The command {command} failed: {error}.", code="COMMAND_FAILED"
            ) from error
        if not output.get("executed"):
            reason = output.get("errorMessage") or "Obsidian did not run it"
            raise ToolError(f"The command {command} failed: {reason}.", code="COMMAND_FAILED")
        self.commands.append(command)
        return output

    def _revert(self, work: list[Work], applier: Applier) -> None:
        """Revert the actions of a skipped instance, as far as the disk allows."""
        applied = [item for item in reversed(work) if item.number in self.applied]
        if not applied or self._record is None:
            return
        with suppress(JournalError):
            _, images = self._journal.load(self._record)
            for item in applied:
                action = reverse(item.action)
                try:
                    applier.carry_out(action, item.number, images.for_action(action))
                except HalfDone:
                    raise
                except VaultError:
                    return
                self.applied.discard(item.number)


def _paths(action: Action) -> tuple[str, ...]:
    """Return the paths of an action, its target last."""
    if isinstance(action, MoveEntry):
        return action.path.text, action.new_path.text
    return (action.path.text,)
