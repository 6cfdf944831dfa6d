"""Doing exactly what was approved: check, journal, act, flush.

The executor knows no tool and asks nobody. It carries out the operations of a preview, and only while each file still is what the preview
read. Whatever happens it answers a result, and whatever it did is in the journal.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from time import perf_counter

from obsidian_agent.agent.events import ExecutionResult, RunEvent, RunFinished, RunStarted, RunStatus
from obsidian_agent.agent.execution.checks import Precheck, Work
from obsidian_agent.agent.execution.instance_runner import Emit, InstanceRunner, RunCommand
from obsidian_agent.dataclass import replace
from obsidian_agent.errors import Conflict, JournalError, ObsidianAgentError, Problem
from obsidian_agent.journal.records import Cut, Effects, NewRecord, Record, cuts_between, effects_of
from obsidian_agent.journal.recovery import settle
from obsidian_agent.journal.writer import Journal
from obsidian_agent.plan.result import Preview
from obsidian_agent.vault.filesystem.dirhandles import FolderHandles
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.transaction.actions import action_of, settle_open
from obsidian_agent.vault.transaction.apply import Applier

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
        result = execution.result("failed", Problem("INTERNAL_ERROR", f"The run stopped unexpectedly: {type(error).__name__}: {error}."))
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
        self._ended = False
        self._journal_ms = 0.0
        self._apply_ms = 0.0

    def run(self) -> ExecutionResult:
        """Do it. Raises what `execute` turns into a result."""
        preview = self._preview
        if not preview.valid:
            return replace(self.result("refused", *preview.errors), outcome="refused")
        if not preview.change_set.operations and not any(instance.opaque for instance in preview.instances):
            return self._read_only()
        started = perf_counter()
        with self._journal.lock(), FolderHandles(self._store) as handles:
            settle(self._journal, self._store)
            editing = settle_open(self._store, [action_of(owned.operation) for owned in preview.change_set.operations])
            with self._journal.begin(_new_record(preview)) as writer:
                preflight = Precheck(handles, writer, preview.instances, editing)
                preflight.check(preview.change_set.operations)
                if preflight.problems:
                    stale = any(problem.code == "CONFLICT" for problem in preflight.problems)
                    return self.result("conflict" if stale else "failed", *preflight.problems)
                record = self._record = writer.commit(cuts=_cuts(preview, preflight.work))
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
            self._running.warnings.append(Problem(error.code, f"The run's end could not be noted, recovery will do it: {error.message}"))
        else:
            self._ended = True

    def _read_only(self) -> ExecutionResult:
        """A plan that changes nothing is recorded where that can be done, so that it can become a macro; it needs no flush."""
        record: Record | None = None
        with suppress(JournalError), self._journal.lock(), self._journal.begin(_new_record(self._preview)) as writer:
            record = writer.commit(durable=False)
            self._journal.finish(record, "done", ())
        self._record = record
        self._running.take(record, [[] for _ in self._preview.instances])
        self.emit(RunStarted(record.run_id if record else "", len(self._preview.instances)))
        return self.result(self._running.go(None))

    def _effects(self) -> Effects:
        running = self._running
        return effects_of((one.action for work in running.work for one in work if one.number in running.applied), tuple(running.commands))

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
            undo_available=self._ended and bool(running.applied),
            timings=replace(self._preview.timings, journal_ms=self._journal_ms, apply_ms=self._apply_ms),
        )


def _cuts(preview: Preview, work: Sequence[Sequence[Work]]) -> list[Cut]:
    return cuts_between([each.step_id for each in preview.instances], [len(each) for each in work], preview.change_set.joined)


def _new_record(preview: Preview) -> NewRecord:
    return NewRecord("run", preview.plan.goal, preview.approved_plan.to_json(), preview.plan_hash)
