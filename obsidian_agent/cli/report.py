"""A plan on its way on the command line: preview, approval, run, and what people and programs read of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

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
from obsidian_agent.dataclass import fields, replace
from obsidian_agent.errors import PlanError, Problem, VaultError
from obsidian_agent.plan.parameters import MissingInput
from obsidian_agent.plan.result import Preview, change_document, preview_document, rejected_document
from obsidian_agent.services.plans import PreviewOptions
from obsidian_agent.services.session import Session
from obsidian_agent.terminal_text import counted
from obsidian_agent.vault.views.changes import NetChange


def run_document(
    session: Session,
    document: object,
    values: Mapping[str, Any],
    yes: bool,
    out: Output,
    *,
    expect_hash: str | None = None,
    instruction: str | None = None,
    agent: str = "",
    tried: Preview | None = None,
) -> Exit:
    """Preview a plan document (made by `agent`, who `tried` it just now), have it approved, execute it, print the result.

    What stands behind a command is a stage of its own: previewed when that has run, and asked about; `--yes` covers it where it is as expected.
    `--yes` never covers text of notes that `share_deny` names on its way to another place.
    """
    expected: Preview | None = None
    past: list[ExecutionResult] = []
    done: dict[str, Any] = {}
    began: datetime | None = None
    while True:
        try:
            ready = session.plans.dry_run(
                document,
                values,
                PreviewOptions(
                    instruction=instruction,
                    done=done,
                    now=began,
                    agent=agent,
                    tried=None if past else tried,
                ),
            )
            following = (
                session.plans.expected(ready, document, values)
                if ready.deferred and ready.valid
                else None
            )
        except MissingInput as error:
            return needs_input(error.message, out, missing=error.missing)
        except PlanError as error:
            return (
                _ended(past, Problem(error.code, error.message), out)
                if past
                else refuse(error.problems, out)
            )
        if not ready.valid:
            if past:
                return _ended(past, ready.errors[0], out)
            return refuse(ready.errors, out, warnings=ready.warnings, total=len(ready.instances))
        if expect_hash is not None and not past and ready.plan_hash != expect_hash:
            stale = Problem(
                "CONFLICT",
                f"The plan now does something else than what was approved: its hash is {ready.plan_hash}.",
            )
            return finish(
                ExecutionResult(
                    None,
                    "conflict",
                    False,
                    "refused",
                    total_steps=len(ready.instances),
                    errors=(stale,),
                ),
                out,
            )
        if past and yes and (expected is None or expected.plan_hash != ready.plan_hash):
            return _ended(
                past,
                Problem(
                    "CONFLICT",
                    f"After {', '.join(done)} the rest of the plan is no longer what --yes covered.",
                ),
                out,
            )
        covered = yes and not ready.discloses
        if not covered and not _approved(session, ready, out):
            not_approved = Problem("NOT_APPROVED", _not_approved(ready))
            if past:
                return _ended(past, not_approved, out)
            return finish(
                ExecutionResult(
                    None,
                    "refused",
                    False,
                    "refused",
                    total_steps=len(ready.instances),
                    errors=(not_approved,),
                ),
                out,
            )
        with interruptible() as cancel, progress("Applying", out) as show:
            result = session.plans.apply(
                ready,
                partial(_tell, show=show, out=out),
                cancel,
                "options" if covered else "person",
            )
        if not ready.deferred or not result.success:
            break
        past.append(result)
        began = ready.context.now
        done = {
            step: output for step, output in result.outputs.items() if step not in ready.deferred
        }
        expected = following
    if result.success:
        show_findings(ready, result.outputs, out)
    return finish(_joined([*past, result]), out)


def _ended(past: Sequence[ExecutionResult], problem: Problem, out: Output) -> Exit:
    """Print the result of a plan whose later stages are not run."""
    status: RunStatus = "conflict" if problem.code == "CONFLICT" else "stopped"
    last = ExecutionResult(
        past[-1].run_id, status, False, "error", errors=(problem,), outputs=past[-1].outputs
    )
    return finish(replace(_joined([*past, last]), undo_available=past[-1].undo_available), out)


def _joined(stages: Sequence[ExecutionResult]) -> ExecutionResult:
    """The result of all stages: how the last one ended, with what all of them did."""
    effects = Effects(
        *(
            tuple(sorted({each for stage in stages for each in getattr(stage.effects, item.name)}))
            for item in fields(Effects)
        )
    )
    return replace(
        stages[-1],
        completed_steps=sum(stage.completed_steps for stage in stages),
        total_steps=max(stage.total_steps for stage in stages),
        warnings=tuple(warning for stage in stages for warning in stage.warnings),
        effects=effects if len(stages) > 1 else stages[-1].effects,
    )


def dry_run(session: Session, document: object, values: Mapping[str, Any], out: Output) -> Exit:
    """Preview a plan document and run nothing."""
    try:
        ready = session.plans.dry_run(document, values)
    except PlanError as error:
        return _reject(error, out)
    shown = show_preview(session, ready, out)
    return of_problems(ready.errors) if not ready.valid else Exit.DONE if shown else Exit.CONFLICT


def refuse(
    problems: tuple[Problem, ...],
    out: Output,
    *,
    warnings: tuple[Problem, ...] = (),
    total: int = 0,
) -> Exit:
    """Print a result that says why nothing was run."""
    result = ExecutionResult(
        None, "refused", False, "refused", total_steps=total, errors=problems, warnings=warnings
    )
    if not out.as_json or not problems:
        return finish(result, out)
    out.document(result_document(result) | {"message": problems[0].message})
    return of_result(result)


def finish(result: ExecutionResult, out: Output) -> Exit:
    """Print a result and answer its exit code."""
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
    """Say what a person must decide first. Nothing was run."""
    if out.as_json:
        result = ExecutionResult(
            None, "refused", False, "needs-input", errors=(Problem("NEEDS_INPUT", message),)
        )
        found = [candidate_document(candidate) for candidate in candidates]
        out.document(
            result_document(result)
            | {"message": message, "missing": list(missing), "candidates": found}
        )
        return Exit.NOT_APPROVED
    out.line(message)
    show_candidates(candidates, out)
    for name in missing if not candidates else ():
        out.line(f"- missing: {name} (give it with --param {name}=…)")
    return Exit.NOT_APPROVED


def show_candidates(candidates: Iterable[Candidate], out: Output) -> None:
    """What may be meant, numbered: its values, what is missing, what speaks against it; and how one is taken."""
    number = 0
    for number, candidate in enumerate(candidates, 1):
        values = ", ".join(f"{name}: {value}" for name, value in candidate.values.items())
        out.line(f"{number}. {candidate.title}{f' ({values})' if values else ''}")
        if candidate.missing:
            out.line(f"   missing: {', '.join(candidate.missing)}")
        if candidate.doubt:
            out.line(f"   {candidate.doubt}")
    if number:
        out.line(
            "Take one with --pick N, and give what is missing with --param NAME=VALUE. All there is: obsidian-agent recipe list"
        )


def answered(event: Answer, out: Output) -> Exit:
    """Print an answer in place of a result: nothing was to be done."""
    if out.as_json:
        result = result_document(ExecutionResult(None, "done", True, "done"))
        out.document(result | {"answer": event.text, "sources": list(event.sources)})
    out.answer(event.text)
    return Exit.DONE


def show_preview(session: Session, ready: Preview, out: Output) -> bool:
    """The whole preview with every diff, each made when it is written; whether all files were still there for that as they were read."""
    changed: list[Problem] = []

    def diff(change: NetChange) -> str:
        try:
            return session.plans.diff(change)
        except VaultError as error:
            changed.append(error.problem())
            return ""

    changes = ready.change_set.changes
    if out.as_json:
        out.document(
            preview_document(
                ready,
                Stream(change_document(change, diff(change)) for change in changes)
                if changes
                else [],
            )
        )
    else:
        out.problems((*ready.warnings, *ready.errors))
        _show_changes(ready, diff, out)
        if ready.valid:
            show_findings(ready, ready.outputs, out)
    out.problems(changed)
    return not changed


def show_findings(approved: Preview, outputs: Mapping[str, Any], out: Output) -> None:
    """What a plan that only reads has found."""
    for what, lines in findings(approved, outputs):
        out.line(f"{what}:")
        out.text("\n".join(lines))


def _reject(error: PlanError, out: Output) -> Exit:
    """Print a preview that says why there is nothing to show."""
    if not out.as_json:
        out.problems(error.problems)
    elif isinstance(error, MissingInput):
        out.document(
            rejected_document(error.problems)
            | {"outcome": "needs-input", "missing": list(error.missing)}
        )
    else:
        out.document(rejected_document(error.problems))
    return Exit.NOT_APPROVED if isinstance(error, MissingInput) else of_problems(error.problems)


def _approved(session: Session, ready: Preview, out: Output) -> bool:
    """Show the preview and ask on the terminal; without one the answer is no."""
    if not out.as_json and show_preview(session, ready, out) and on_terminal(sys.stdin):
        agreed = out.agreed("Do this? Type yes: ")
        if not agreed:
            session.plans.reject(ready)
        return agreed
    way = "" if ready.discloses else "add --yes, or "
    out.note(f"Not approved: {way}run it in a terminal to be asked.")
    return False


def _not_approved(ready: Preview) -> str:
    """Return why a plan does not run. `--yes` does not cover every plan."""
    places = [flag.path or "" for flag in ready.flags if flag.kind == "deniedText"]
    if not places:
        return "The plan was not approved."
    more = f" and {len(places) - 3} more" if len(places) > 3 else ""
    text = f"it puts text of notes that share_deny names into {', '.join(places[:3])}{more}"
    return f"The plan was not approved: {text}, which --yes never covers."


_SIGNS: Final = {"create": "+", "modify": "~", "delete": "-", "rename": ">", "mkdir": "+"}


def _show_changes(preview: Preview, diff_of: Callable[[NetChange], str], out: Output) -> None:
    out.line(f"Goal: {preview.plan.goal}")
    out.line(f"Risk: {preview.risk.value}")
    for text in preview.plan.assumptions:
        out.line(f"Assumes: {text}")
    for flag in preview.flags:
        out.line(f"Note: {flag.path + ': ' if flag.path else ''}{flag.detail}")
    out.line()
    for change in preview.change_set.changes:
        target = f" -> {change.new_path}" if change.new_path is not None else ""
        what = "new folder" if change.kind == "mkdir" else change.kind
        out.line(
            f"{_SIGNS[change.kind]} {what} {change.path}{'/' if change.folder else ''}{target}"
        )
        if diff := diff_of(change):
            out.diff(diff.rstrip("\n"))
    if not preview.change_set.changes:
        out.line("Nothing would change.")


def _left_lines(left: Effects) -> Iterator[str]:
    """Yield the changes of the approved plan that the run did not make."""
    if not left.anything:
        return
    yield f"Left: {counted(left.files, 'file')}"
    yield from (f"  create {path}" for path in left.created)
    yield from (f"  modify {path}" for path in left.modified)
    yield from (f"  move to .trash {path}" for path in left.deleted)
    yield from (f"  rename {old} -> {new}" for old, new in left.renamed)
    yield from (f"  run {command}" for command in left.commands)


def _result_lines(result: ExecutionResult) -> Iterator[str]:
    effects = result.effects
    counts = [
        (len(effects.created), "created"),
        (len(effects.modified), "modified"),
        (len(effects.deleted), "moved to .trash"),
        (len(effects.renamed), "renamed"),
        (len(effects.folders), "new folder" if len(effects.folders) == 1 else "new folders"),
        (len(effects.commands), "command run" if len(effects.commands) == 1 else "commands run"),
    ]
    told = ", ".join(f"{count} {word}" for count, word in counts if count) or "nothing changed"
    yield f"{result.status}: {result.completed_steps} of {counted(result.total_steps, 'step')}, {told}."
    yield from _left_lines(result.remaining)
    if result.undo_available:
        yield f"Undo with: obsidian-agent undo {result.run_id}"


def _tell(event: RunEvent, show: Callable[[int, int], None], out: Output) -> None:
    match event:
        case StepFinished() | StepSkipped():
            show(event.completed, event.total)
            if out.verbose:
                skipped = (
                    f"skipped: {event.reason}"
                    if isinstance(event, StepSkipped)
                    else " ".join(event.paths)
                )
                out.note(f"{event.completed}/{event.total} {event.instance} {skipped}")
        case StepFailed() if out.verbose:
            out.note(f"{event.instance} failed: {event.problem.message}")
        case _:
            pass
