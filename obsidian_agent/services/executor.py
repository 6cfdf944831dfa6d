"""Doing exactly what was approved: check, journal, act instance by instance, flush; with progress, retries, skipping and cancelling.

The executor knows no tool and asks nobody. It carries out the operations of a preview, and only while each file still is what the preview
read. Whatever happens it answers a result, and whatever it did is in the journal.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from time import perf_counter
from typing import Any, Final

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
from obsidian_agent.dataclass import replace
from obsidian_agent.errors import (
    Conflict,
    JournalError,
    ObsidianAgentError,
    Problem,
    ToolError,
    VaultError,
)
from obsidian_agent.journal.records import (
    Cut,
    Effects,
    NewRecord,
    Record,
    StepOutcome,
    StepShare,
    cuts_between,
    effects_of,
    step_outcomes,
)
from obsidian_agent.journal.recovery import settle
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


def execute(
    preview: Preview,
    store: VaultStore,
    journal: Journal,
    *,
    emit: Emit,
    cancel: threading.Event,
    run_command: RunCommand | None = None,
) -> ExecutionResult:
    """Carry out an approved preview. Always answers a result, and emits it last; what was done is journaled and can be undone.

    `cancel` is looked at between instances, between the files of a very large one, and while waiting to try again. A run that ends with
    status "failed" and a run id may have been cut off in the middle: then the journal lists it as interrupted, and recovery ends it.
    """
    execution = _Execution(preview, store, journal, _Listener(emit), cancel, run_command)
    try:
        result = execution.run()
    except Conflict as error:
        result = execution.result("conflict", error.problem())
    except ObsidianAgentError as error:
        result = execution.result("failed", error.problem())
    except Exception as error:
        result = execution.result(
            "failed",
            Problem(
                "INTERNAL_ERROR", f"The run stopped unexpectedly: {type(error).__name__}: {error}."
            ),
        )
    execution.emit(RunFinished(result))
    return result


class _Listener:
    """The front end's ear. One that fails is not spoken to again: the run goes on."""

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
        self._cuts: list[Cut] = []
        self._ended = False
        self._journal_ms = 0.0
        self._apply_ms = 0.0

    def run(self) -> ExecutionResult:
        """Do it. Raises what `execute` turns into a result."""
        preview = self._preview
        if not preview.valid:
            return replace(self.result("refused", *preview.errors), outcome="refused")
        if not preview.change_set.operations and not any(
            instance.opaque for instance in preview.instances
        ):
            return self._read_only()
        started = perf_counter()
        with self._journal.lock(), FolderHandles(self._store) as handles:
            settle(self._journal, self._store)
            editing = save_open_files(
                self._store, (action_of(owned.operation) for owned in preview.change_set.operations)
            )
            with self._journal.begin(_new_record(preview)) as writer:
                preflight = Precheck(handles, writer, preview.instances, editing)
                preflight.check(preview.change_set.operations)
                if preflight.problems:
                    stale = any(problem.code == "CONFLICT" for problem in preflight.problems)
                    return self.result("conflict" if stale else "failed", *preflight.problems)
                self._cuts = _cuts(preview, preflight.work)
                record = self._record = writer.commit(cuts=self._cuts)
            self._journal_ms = (perf_counter() - started) * 1000
            self._running.take(record, preflight.work)
            self.emit(RunStarted(record.run_id, len(preview.instances)))
            started = perf_counter()
            with Applier(handles, record.token, editing) as applier:
                status = self._running.go(applier)
                applier.complete()
                self._running.warnings += applier.warnings
            self._end(record, status)
            self._apply_ms = (perf_counter() - started) * 1000
        return self.result(status)

    def _end(self, record: Record, status: RunStatus) -> None:
        assert status != "refused"
        try:
            self._journal.finish(record, status, self._running.applied, effects=self._effects())
        except JournalError as error:
            self._running.warnings.append(
                Problem(
                    error.code,
                    f"The run's end could not be noted, recovery will do it: {error.message}",
                )
            )
        else:
            self._ended = True

    def _read_only(self) -> ExecutionResult:
        """A plan that changes nothing is recorded where that can be done, so that it can become a macro; it needs no flush."""
        record: Record | None = None
        nothing: list[list[Work]] = [[] for _ in self._preview.instances]
        with (
            suppress(JournalError),
            self._journal.lock(),
            self._journal.begin(_new_record(self._preview)) as writer,
        ):
            self._cuts = _cuts(self._preview, nothing)
            record = writer.commit(durable=False, cuts=self._cuts)
            self._journal.finish(record, "done", ())
        self._record = record
        self._running.take(record, nothing)
        self.emit(RunStarted(record.run_id if record else "", len(self._preview.instances)))
        return self.result(self._running.go(None))

    def _effects(self) -> Effects:
        running = self._running
        return effects_of(
            (one.action for work in running.work for one in work if one.number in running.applied),
            tuple(running.commands),
        )

    def _step_outcomes(self) -> tuple[StepOutcome, ...]:
        running = self._running
        texts = {step.id: step.title for step in self._preview.plan.steps}
        return tuple(
            step_outcomes(self._cuts, running.applied, commands=running.commands, texts=texts)
        )

    def _remaining(self) -> Effects:
        """Return what the approved plan would still do."""
        running = self._running
        left = Counter(
            command for one in self._preview.instances for command in _commands_of(one)
        ) - Counter(running.commands)
        return effects_of(
            (
                one.action
                for work in running.work
                for one in work
                if one.number not in running.applied
            ),
            tuple(left.elements()),
        )

    def result(self, status: RunStatus, *problems: Problem) -> ExecutionResult:
        """How it ended, with everything that was done until then."""
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
            undo_available=self._ended and bool(running.applied),
            timings=replace(
                self._preview.timings, journal_ms=self._journal_ms, apply_ms=self._apply_ms
            ),
        )


def _cuts(preview: Preview, work: Sequence[Sequence[Work]]) -> list[Cut]:
    shares: list[StepShare] = []
    for instance, actions in zip(preview.instances, work, strict=True):
        numbers = range(actions[0].number, actions[-1].number + 1) if actions else range(0)
        writes = frozenset(one.number for one in actions if isinstance(one.action, PutFile))
        shares.append(StepShare(instance.step_id, numbers, _commands_of(instance), writes))
    return cuts_between(shares, preview.change_set.joined)


def _commands_of(instance: Instance) -> tuple[str, ...]:
    return (str(instance.args.get("id", "")),) if instance.opaque else ()


def _new_record(preview: Preview) -> NewRecord:
    return NewRecord("run", preview.plan.goal, preview.approved_plan.to_json(), preview.plan_hash)


Emit = Callable[[RunEvent], None]
RunCommand = Callable[[str], Mapping[str, Any]]
"""Runs a command of Obsidian by its id and answers the output of `commands.run`: `{id, executed, errorMessage?}`."""

_JITTER: Final = 0.2
_LONG: Final = 200
"""Number of actions from which an instance can be cancelled inside."""


class _Cancelled(Exception):
    """The person cancelled; seen in this module only."""


class InstanceRunner:
    """What a run has done so far, and what went wrong."""

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
        self._settled = 0
        self._failed_steps: set[str] = set()
        self._failed_paths: set[str] = set()
        self._trash: Work | None = None
        self.work: list[list[Work]] = []
        """The actions of each instance."""
        self.applied: set[int] = set()
        """Numbers of the actions in effect."""
        self.completed = 0
        """Instances of which every change is applied."""
        self._waiting: dict[int, tuple[StepFinished, set[int]]] = {}
        """Instances that ran, and the later ones that write what they changed."""
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

    def take(self, record: Record | None, work: list[list[Work]]) -> None:
        """What is to be done, as journaled."""
        self._record, self.work = record, work

    def go(self, applier: Applier | None) -> RunStatus:
        """Run every instance, until the end, a failure that stops, or a cancel. HalfDone when the disk leaves something undecided."""
        status: RunStatus = "done"
        for number, (instance, planned) in enumerate(
            zip(self._preview.instances, self.work, strict=True)
        ):
            if self._cancel.is_set():
                return self._was_cancelled(number)
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
                return self._was_cancelled(number)
            if problem is None:
                continue
            if problem.code == "CONFLICT":
                status = "conflict"
            if self._preview.plan.on_error(step) != "skip":
                self._forget_from(number)
                return status if status == "conflict" else "stopped"
            self._drop_waiting(number, self._steps[instance.step_id].title)
        return status

    def _with_trash(self, work: list[Work]) -> list[Work]:
        """The actions of an instance, with the making of the trash first if it needs that and those before it came to nothing."""
        owed = self._trash
        if (
            owed is None
            or owed in work
            or not any(
                isinstance(one.action, MoveEntry) and is_trash(one.action.new_path) for one in work
            )
        ):
            return work
        self._trash = None
        return [owed, *work]

    def _forget_from(self, number: int) -> None:
        """Drop the outputs that the preview expected of instances that did not run, or whose changes were not written."""
        for left in (*self._waiting, *range(number, self._total)):
            self._put_output(self._preview.instances[left], None)

    def _was_cancelled(self, number: int) -> RunStatus:
        self._forget_from(number)
        self.errors.append(
            Problem(
                "CANCELLED", "The run was cancelled; what it had done until then can be undone."
            )
        )
        return "cancelled"

    # --- skipping --------------------------------------------------------------------------------------------------------------

    def _reason_to_skip(self, instance: Instance, work: list[Work]) -> str | None:
        if instance.state != "ready":
            return instance.reason or f"it was {instance.state} in the preview"
        for step in sorted(instance.depends_on & self._failed_steps):
            return f"it depends on “{self._steps[step].title}”, which did not succeed"
        for one in work if self._failed_paths else ():
            for path in _paths(one.action):
                if self._is_lost(path):
                    return f"an earlier step failed at {path}"
        return None

    def _is_lost(self, path: str) -> bool:
        """Whether a path, or a folder it is in, belongs to an instance that did not run."""
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
        self._settled += 1
        self._emit(StepSkipped(instance.step_id, instance.name, reason, self._settled, self._total))

    def _lose(self, instance: Instance, work: list[Work]) -> None:
        self._failed_steps.add(instance.step_id)
        for one in work:
            if isinstance(one.action, PutFolder) and is_trash(one.action.path):
                self._trash = None if one.number in self.applied else one
            else:
                self._failed_paths.update(_paths(one.action))
        self._put_output(instance, None)

    def _put_output(self, instance: Instance, output: object) -> None:
        if instance.index is None:
            self.outputs[instance.step_id] = output
            return
        outputs = self.outputs.get(instance.step_id)
        if isinstance(outputs, list) and instance.index < len(outputs):
            outputs[instance.index] = output

    # --- doing -----------------------------------------------------------------------------------------------------------------

    def _do(
        self, number: int, step: Step, work: list[Work], applier: Applier | None
    ) -> Problem | None:
        """Run instance `number`. Return the problem when it failed for good."""
        instance = self._preview.instances[number]
        started = perf_counter()
        self._emit(StepStarted(instance.step_id, instance.name, step.title))
        try:
            if instance.opaque:
                self._put_output(
                    instance, self._with_retries(instance, step, lambda: self._command(instance))
                )
            for at, one in enumerate(work):
                if at and len(work) > _LONG and self._cancel.is_set():
                    raise _Cancelled
                assert applier is not None
                self._carry_out(instance, step, one, applier)
        except HalfDone:
            raise
        except ObsidianAgentError as error:
            return self._failed(instance, step, work, applier, error)
        elapsed = (perf_counter() - started) * 1000
        paths = tuple([_paths(one.action)[-1] for one in work])
        finished = StepFinished(instance.step_id, instance.name, 0, self._total, elapsed, paths)
        self._waiting[number] = (finished, set(self._writers.get(number, ())))
        self._emit_finished(number)
        return None

    def _emit_finished(self, number: int) -> None:
        """Report the instances of which every change is applied now that instance `number` ran."""
        for candidate in (*self._contributors.get(number, ()), number):
            finished, writers = self._waiting.get(candidate, (None, set[int]()))
            writers.discard(number)
            if finished is not None and not writers:
                del self._waiting[candidate]
                self._settled += 1
                self.completed += 1
                self._emit(replace(finished, completed=self._settled))

    def _drop_waiting(self, number: int, title: str) -> None:
        """Report the instances whose changes are lost because instance `number`, which was to write them, did not run."""
        for contributor in self._contributors.get(number, ()):
            if self._waiting.pop(contributor, None) is None:
                continue
            instance = self._preview.instances[contributor]
            reason = f"“{title}” was to write its changes and did not run"
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
        self._settled += 1
        skipped = self._preview.plan.on_error(step) == "skip"
        (self.warnings if skipped and problem.code != "CONFLICT" else self.errors).append(problem)
        if applier is not None and skipped:
            self._take_back(work, applier)
        self._lose(instance, work)
        self._emit(StepFailed(instance.step_id, instance.name, problem))
        return problem

    def _carry_out(self, instance: Instance, step: Step, one: Work, applier: Applier) -> None:
        try:
            done = applier.carry_out(one.action, one.number, one.content)
        except VaultError as error:
            if not error.retryable:
                raise
            done = self._with_retries(
                instance,
                step,
                lambda: applier.carry_out(one.action, one.number, one.content),
                error,
            )
        if done:
            self.applied.add(one.number)

    def _with_retries(
        self,
        instance: Instance,
        step: Step,
        attempt: Callable[[], Any],
        first: ObsidianAgentError | None = None,
    ) -> Any:
        """Try until it works or the step's attempts are used up; `first` is the error of an attempt already made."""
        policy = self._preview.plan.retry(step)
        tried, error = (0, None) if first is None else (1, first)
        while True:
            if error is not None:
                if (
                    tried >= policy.max_attempts
                    or not error.retryable
                    or isinstance(error, HalfDone)
                ):
                    raise error
                delay = min(
                    policy.backoff_ms * 2.0 ** (tried - 1), MAX_BACKOFF_MS
                ) * random.uniform(1 - _JITTER, 1 + _JITTER)
                problem = error.problem().at(instance.step_id, instance.name)
                self._emit(
                    StepRetrying(
                        instance.step_id,
                        instance.name,
                        tried + 1,
                        policy.max_attempts,
                        delay,
                        problem,
                    )
                )
                if self._cancel.wait(delay / 1000):
                    raise _Cancelled
            tried += 1
            try:
                return attempt()
            except ObsidianAgentError as raised:
                error = raised

    def _command(self, instance: Instance) -> dict[str, Any]:
        """Run a command of Obsidian: not previewed, not journaled before, not undone."""
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

    def _take_back(self, work: list[Work], applier: Applier) -> None:
        """An instance that is left out leaves nothing behind, as far as the disk allows."""
        done = [one for one in reversed(work) if one.number in self.applied]
        if not done or self._record is None:
            return
        with suppress(JournalError):
            _, images = self._journal.load(self._record)
            for one in done:
                action = reverse(one.action)
                try:
                    applier.carry_out(action, one.number, images.for_action(action))
                except HalfDone:
                    raise
                except VaultError:
                    return
                self.applied.discard(one.number)


def _paths(action: Action) -> tuple[str, ...]:
    """The paths that an action is about, the one it leads to last."""
    return (
        (action.path.text, action.new_path.text)
        if isinstance(action, MoveEntry)
        else (action.path.text,)
    )
