"""Running a plan from the command line: preview, approval, run, and the output of each."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from obsidian_agent.agent.event_documents import candidate_document, result_document
from obsidian_agent.agent.events import (
    Answer,
    Candidate,
    Effects,
    ExecutionResult,
    RunEvent,
    RunStatus,
    StepFailed,
    StepFinished,
    StepSkipped,
)
from obsidian_agent.agent.findings import findings
from obsidian_agent.cli.exits import Exit, interruptible, of_problems, of_result
from obsidian_agent.cli.output import Output, Stream, on_terminal, progress
from obsidian_agent.errors import PlanError, Problem, VaultError
from obsidian_agent.plan.parameters import MissingInput
from obsidian_agent.plan.result import Preview, change_document, preview_document, rejected_document
from obsidian_agent.services.plans import PreviewOptions
from obsidian_agent.services.session import Session
from obsidian_agent.terminal_text import counted
from obsidian_agent.vault.views.changes import NetChange

MAX_PATHS: Final = 3
"""Maximum number of paths listed in a message."""

_SIGNS: Final = {"create": "+", "modify": "~", "delete": "-", "rename": ">", "mkdir": "+"}


class RunRequest(Struct, frozen=True, kw_only=True):
    """A plan document to run, with its parameters."""

    document: object
    values: Mapping[str, Any]
    yes: bool
    """True if `--yes` approves the plan in advance."""
    expect_hash: str | None = None
    """The only hash of a plan that may run."""
    instruction: str | None = None
    agent: str = ""
    """The agent that made the plan."""
    tried: Preview | None = None
    """The preview that the planner already made of this document."""


class _StagedRun(Struct):
    """A run in one or more stages: steps that depend on a command are previewed after it has run.

    Each stage is approved on its own. `--yes` covers a later stage if its preview is the expected
    one. It never covers a plan that depends on notes that `share_deny` protects.
    """

    session: Session
    request: RunRequest
    out: Output
    results: list[ExecutionResult] = field(default_factory=list)
    outputs: Mapping[str, Any] = field(default_factory=dict)
    """The outputs of the steps of past stages."""
    start: datetime | None = None
    expected: Preview | None = None
    """The preview of the next stage, made before the last one ran."""

    def run(self) -> Exit:
        """Run all stages and print the result."""
        while True:
            try:
                preview = self._preview()
                following = self._following(preview)
            except MissingInput as error:
                return needs_input(error.message, self.out, missing=error.missing)
            except PlanError as error:
                if self.results:
                    return self._end(Problem(error.code, error.message))
                return refuse(error.problems, self.out)
            if not preview.valid:
                return self._refuse_invalid(preview)
            problem = self._conflict(preview)
            if problem is not None:
                return self._stop(preview, problem)
            is_covered = self.request.yes and not preview.discloses
            if not is_covered and not _approved(self.session, preview, self.out):
                return self._stop(preview, Problem("NOT_APPROVED", _not_approved(preview)))
            result = self._apply(preview, is_covered)
            if not preview.deferred or not result.success:
                if result.success:
                    print_findings(preview, result.outputs, self.out)
                return finish(_joined([*self.results, result]), self.out)
            self.results.append(result)
            self.start = preview.context.now
            self.outputs = {
                step: output
                for step, output in result.outputs.items()
                if step not in preview.deferred
            }
            self.expected = following

    def _preview(self) -> Preview:
        options = PreviewOptions(
            instruction=self.request.instruction,
            done=self.outputs,
            now=self.start,
            agent=self.request.agent,
            tried=None if self.results else self.request.tried,
        )
        return self.session.plans.dry_run(self.request.document, self.request.values, options)

    def _following(self, preview: Preview) -> Preview | None:
        """Return the preview of the next stage if the commands of this stage change no file."""
        if not preview.deferred or not preview.valid:
            return None
        return self.session.plans.expected(preview, self.request.document, self.request.values)

    def _conflict(self, preview: Preview) -> Problem | None:
        """Return the reason why this is not the plan that was approved in advance."""
        expect_hash = self.request.expect_hash
        if not self.results:
            if expect_hash is None or preview.plan_hash == expect_hash:
                return None
            return Problem(
                "CONFLICT",
                f"The plan no longer does what was approved: its hash is now {preview.plan_hash}.",
            )
        if not self.request.yes:
            return None
        if self.expected is not None and self.expected.plan_hash == preview.plan_hash:
            return None
        steps = ", ".join(self.outputs)
        return Problem(
            "CONFLICT", f"After {steps} the rest of the plan differs from what --yes covered."
        )

    def _apply(self, preview: Preview, is_covered: bool) -> ExecutionResult:
        with interruptible() as cancel, progress("Applying", self.out) as update:
            return self.session.plans.apply(
                preview,
                partial(_report_event, update=update, out=self.out),
                cancel,
                "options" if is_covered else "person",
            )

    def _refuse_invalid(self, preview: Preview) -> Exit:
        if self.results:
            return self._end(preview.errors[0])
        return refuse(
            preview.errors,
            self.out,
            warnings=preview.warnings,
            total=len(preview.instances),
        )

    def _stop(self, preview: Preview, problem: Problem) -> Exit:
        """Print the result of a run whose current stage does not start."""
        if self.results:
            return self._end(problem)
        result = ExecutionResult(
            run_id=None,
            status="conflict" if problem.code == "CONFLICT" else "refused",
            success=False,
            outcome="refused",
            total_steps=len(preview.instances),
            errors=(problem,),
        )
        return finish(result, self.out)

    def _end(self, problem: Problem) -> Exit:
        """Print the result of a run that ends after some of its stages."""
        status: RunStatus = "conflict" if problem.code == "CONFLICT" else "stopped"
        previous = self.results[-1]
        last = ExecutionResult(
            run_id=previous.run_id,
            status=status,
            success=False,
            outcome="error",
            errors=(problem,),
            outputs=previous.outputs,
        )
        joined = _joined([*self.results, last])
        return finish(replace(joined, undo_available=previous.undo_available), self.out)


def run_plan(session: Session, request: RunRequest, out: Output) -> Exit:
    """Preview a plan, have it approved, execute it and print the result."""
    return _StagedRun(session, request, out).run()


def _joined(stages: Sequence[ExecutionResult]) -> ExecutionResult:
    """Return the result of the last stage, with the steps, warnings and effects of all stages."""
    if len(stages) == 1:
        return stages[0]
    effects = {
        name: tuple(sorted({effect for stage in stages for effect in getattr(stage.effects, name)}))
        for name in Effects.__struct_fields__
    }
    return replace(
        stages[-1],
        completed_steps=sum(stage.completed_steps for stage in stages),
        total_steps=max(stage.total_steps for stage in stages),
        warnings=tuple(warning for stage in stages for warning in stage.warnings),
        effects=Effects(**effects),
    )


def dry_run(session: Session, document: object, values: Mapping[str, Any], out: Output) -> Exit:
    """Print the preview of a plan document. Nothing is run."""
    try:
        preview = session.plans.dry_run(document, values)
    except PlanError as error:
        return _reject(error, out)
    is_complete = print_preview(session, preview, out)
    if not preview.valid:
        return of_problems(preview.errors)
    return Exit.DONE if is_complete else Exit.CONFLICT


def refuse(
    problems: tuple[Problem, ...],
    out: Output,
    *,
    warnings: tuple[Problem, ...] = (),
    total: int = 0,
) -> Exit:
    """Print the result of a plan that was not run because of problems."""
    result = ExecutionResult(
        run_id=None,
        status="refused",
        success=False,
        outcome="refused",
        total_steps=total,
        errors=problems,
        warnings=warnings,
    )
    if not out.as_json or not problems:
        return finish(result, out)
    out.document(result_document(result) | {"message": problems[0].message})
    return of_result(result)


def finish(result: ExecutionResult, out: Output) -> Exit:
    """Print the result of a run and return its exit code."""
    if out.as_json:
        out.document(result_document(result))
    else:
        out.problems((*result.warnings, *result.errors))
        for line in _result_lines(result):
            out.line(line)
    return of_result(result)


def needs_input(
    message: str,
    out: Output,
    *,
    missing: tuple[str, ...] = (),
    candidates: tuple[Candidate, ...] = (),
) -> Exit:
    """Print the candidates to choose from, or the values to add, before anything is run."""
    if out.as_json:
        result = ExecutionResult(
            run_id=None,
            status="refused",
            success=False,
            outcome="needs-input",
            errors=(Problem("NEEDS_INPUT", message),),
        )
        details = {
            "message": message,
            "missing": list(missing),
            "candidates": [candidate_document(candidate) for candidate in candidates],
        }
        out.document(result_document(result) | details)
        return Exit.NOT_APPROVED
    out.line(message)
    print_candidates(candidates, out)
    if not candidates:
        for name in missing:
            out.line(f"- missing: {name} (add --param {name}=…)")
    return Exit.NOT_APPROVED


def print_candidates(candidates: Iterable[Candidate], out: Output) -> None:
    """Print numbered candidates, and how to choose one."""
    number = 0
    for number, candidate in enumerate(candidates, 1):
        news = f" ({', '.join(candidate.news)})" if candidate.news else ""
        out.line(f"{number}. {candidate.title}{news}")
        if candidate.missing:
            out.line(f"   missing: {', '.join(candidate.missing)}")
        if candidate.doubt:
            out.line(f"   {candidate.doubt}")
    if number:
        out.line(
            "Choose one with --pick N, and add missing values with --param NAME=VALUE. "
            "All recipes: obsidian-agent recipe list"
        )


def answered(event: Answer, out: Output) -> Exit:
    """Print an answer. No run was needed."""
    if out.as_json:
        result = ExecutionResult(run_id=None, status="done", success=True, outcome="done")
        answer = {"answer": event.text, "sources": list(event.sources)}
        out.document(result_document(result) | answer)
    out.answer(event.text)
    return Exit.DONE


def print_preview(session: Session, preview: Preview, out: Output) -> bool:
    """Print the whole preview. Each diff is computed when it is written.

    Return False if a file changed before its diff was computed.
    """
    problems: list[Problem] = []

    def diff_of(change: NetChange) -> str:
        try:
            return session.plans.diff(change)
        except VaultError as error:
            problems.append(error.problem())
            return ""

    changes = preview.change_set.changes
    if out.as_json:
        documents: list[Any] = []
        if changes:
            documents = Stream(change_document(change, diff_of(change)) for change in changes)
        out.document(preview_document(preview, documents))
    else:
        out.problems((*preview.warnings, *preview.errors))
        _print_changes(preview, diff_of, out)
        if preview.valid:
            print_findings(preview, preview.outputs, out)
    out.problems(problems)
    return not problems


def print_findings(approved: Preview, outputs: Mapping[str, Any], out: Output) -> None:
    """Print the outputs of a plan that only reads."""
    for title, lines in findings(approved, outputs):
        out.line(f"{title}:")
        out.text("\n".join(lines))


def _reject(error: PlanError, out: Output) -> Exit:
    """Print the problems of a plan that has no preview."""
    if not out.as_json:
        out.problems(error.problems)
    elif isinstance(error, MissingInput):
        details = {"outcome": "needs-input", "missing": list(error.missing)}
        out.document(rejected_document(error.problems) | details)
    else:
        out.document(rejected_document(error.problems))
    return Exit.NOT_APPROVED if isinstance(error, MissingInput) else of_problems(error.problems)


def _approved(session: Session, preview: Preview, out: Output) -> bool:
    """Print the preview and ask on the terminal. Without a terminal the answer is no."""
    if not out.as_json and print_preview(session, preview, out) and on_terminal(sys.stdin):
        approved = out.agreed("Do this? Type yes: ")
        if not approved:
            session.plans.reject(preview)
        return approved
    if preview.discloses:
        out.note("Run this in a terminal to be asked.")
    else:
        out.note("Add --yes to approve the plan, or run this in a terminal to be asked.")
    return False


def _not_approved(preview: Preview) -> str:
    """Return the message for a plan that was not approved."""
    paths = [flag.path or "" for flag in preview.flags if flag.kind == "deniedText"]
    if not paths:
        return "The plan was not approved."
    names = ", ".join(paths[:MAX_PATHS])
    if len(paths) > MAX_PATHS:
        names = f"{names} and {len(paths) - MAX_PATHS} more"
    return (
        "The plan was not approved: notes that share_deny protects are involved in what it does to "
        f"{names}. --yes never covers that."
    )


def _print_changes(preview: Preview, diff_of: Callable[[NetChange], str], out: Output) -> None:
    out.line(f"Goal: {preview.plan.goal}")
    deletes = any(change.kind == "delete" for change in preview.change_set.changes)
    out.line(f"Risk: {preview.risk.value}{', deletes files' if deletes else ''}")
    for text in preview.plan.assumptions:
        out.line(f"Assumes: {text}")
    for flag in preview.flags:
        out.line(f"Note: {flag.path + ': ' if flag.path else ''}{flag.detail}")
    out.line()
    for change in preview.change_set.changes:
        kind = "new folder" if change.kind == "mkdir" else change.kind
        path = f"{change.path}/" if change.folder else f"{change.path}"
        target = f" -> {change.new_path}" if change.new_path is not None else ""
        out.line(f"{_SIGNS[change.kind]} {kind} {path}{target}")
        if diff := diff_of(change):
            out.diff(diff.rstrip("\n"))
    if not preview.change_set.changes:
        out.line("Nothing would change.")


def _remaining_lines(remaining: Effects) -> Iterator[str]:
    """Yield the changes of the approved plan that the run did not make."""
    if remaining.is_empty:
        return
    yield f"Not done: {counted(remaining.files, 'file')}"
    yield from (f"  create {path}" for path in remaining.created)
    yield from (f"  modify {path}" for path in remaining.modified)
    yield from (f"  move to .trash {path}" for path in remaining.deleted)
    yield from (f"  rename {old} -> {new}" for old, new in remaining.renamed)
    yield from (f"  run {command}" for command in remaining.commands)


def _result_lines(result: ExecutionResult) -> Iterator[str]:
    if result.success and result.total_steps and not result.completed_steps:
        yield "Nothing was done: every step was skipped."
        return
    if result.run_id is None and not result.completed_steps and result.status == "refused":
        yield "Nothing was changed."
        return
    effects = result.effects
    counts = [
        (len(effects.created), "created"),
        (len(effects.modified), "modified"),
        (len(effects.deleted), "moved to .trash"),
        (len(effects.renamed), "renamed"),
        (len(effects.folders), "new folder" if len(effects.folders) == 1 else "new folders"),
        (len(effects.commands), "command run" if len(effects.commands) == 1 else "commands run"),
    ]
    changes = ", ".join(f"{count} {effect}" for count, effect in counts if count)
    steps = f"{result.completed_steps} of {counted(result.total_steps, 'step')}"
    yield f"{result.status}: {steps}, {changes or 'nothing changed'}."
    yield from _remaining_lines(result.remaining)
    if result.undo_available:
        yield f"Undo with: obsidian-agent undo {result.run_id}"


def _report_event(event: RunEvent, update: Callable[[int, int], None], out: Output) -> None:
    match event:
        case StepFinished() | StepSkipped():
            update(event.completed, event.total)
            if out.verbose:
                if isinstance(event, StepSkipped):
                    detail = f"skipped: {event.reason}"
                else:
                    detail = " ".join(event.paths)
                out.note(f"{event.completed}/{event.total} {event.instance} {detail}")
        case StepFailed() if out.verbose:
            out.note(f"{event.instance} failed: {event.problem.message}")
        case _:
            pass
