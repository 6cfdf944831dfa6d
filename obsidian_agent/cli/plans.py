"""`preview`, `run`, `plan` and `do`: from a document or an instruction to a result."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, assert_never

from obsidian_agent.agent.document import candidate_document, result_document
from obsidian_agent.agent.events import (
    AgentEvent,
    Answer,
    Candidate,
    ExecutionResult,
    NeedsInput,
    Notice,
    PlanningRetry,
    PlanReady,
    RoundsUsedUp,
    RunEvent,
    StepFailed,
    StepFinished,
    StepSkipped,
    TurnFailed,
)
from obsidian_agent.agent.session import Session
from obsidian_agent.cli.exits import PERMISSION_CODES, Exit, of_problems, of_result
from obsidian_agent.cli.interrupts import interruptible
from obsidian_agent.cli.output import Output, result_lines, show_changes, show_findings
from obsidian_agent.cli.parser import UsageError
from obsidian_agent.cli.session_factory import open_session, parameters, read_bytes
from obsidian_agent.errors import PlanError, Problem
from obsidian_agent.plan.flags import Policy
from obsidian_agent.plan.json_text import read_json
from obsidian_agent.plan.llm_output import ParsedPlan, ParsedProse, ParseFailed, parse_plan
from obsidian_agent.plan.parameters import MissingInput
from obsidian_agent.plan.result import Preview, preview_document, rejected_document
from obsidian_agent.plan.validate import validate
from obsidian_agent.tools.registry import TOOLS

REFUSALS = PERMISSION_CODES | {"PATH_OUTSIDE_VAULT", "PATH_NOT_ALLOWED", "PATH_INVALID"}
"""What a planner may answer when an instruction must not be followed."""


def preview_command(options: argparse.Namespace, out: Output) -> Exit:
    """Validate and dry-run; nothing is written."""
    session = open_session(options)
    try:
        ready = session.plans.dry_run(load_document(options.plan), parameters(options))
    except PlanError as error:
        return reject(error, out)
    show_preview(session, ready, out)
    return Exit.DONE if ready.valid else of_problems(ready.errors)


def run_command(options: argparse.Namespace, out: Output) -> Exit:
    """Preview, ask, execute."""
    session = open_session(options)
    return run_document(session, load_document(options.plan), parameters(options), options.yes, out, expect_hash=options.expect_hash)


def plan_command(options: argparse.Namespace, out: Output) -> Exit:
    """Make a plan, or read a model's raw answer; run nothing."""
    if (options.parse is None) == (options.instruction is None):
        raise UsageError("Give an instruction, or --parse FILE.")
    if options.parse is not None:
        return _parse(options, out)
    session = open_session(options)
    found = asyncio.run(_plan(session, options.instruction, out, parameters(options)))
    match found:
        case PlanReady(plan=plan):
            return _shown(plan, out)
        case Exit():
            return found
        case _:
            assert_never(found)


def do_command(options: argparse.Namespace, out: Output) -> Exit:
    """Plan, preview, ask, run."""
    session = open_session(options)
    given = parameters(options)
    found = asyncio.run(_plan(session, options.instruction, out, given, options.pick))
    match found:
        case PlanReady(plan=plan):
            # Recipes have read what was given; a model's plan only names it.
            read = options.pick is not None or session.planner is session.offline
            values = {} if read else {name: value for name, value in given.items() if name in plan.parameters}
            return run_document(session, plan.to_json(), values, options.yes, out, instruction=options.instruction)
        case Exit():
            return found
        case _:
            assert_never(found)


def rename_command(options: argparse.Namespace, out: Output) -> Exit:
    """A plan of one step."""
    from obsidian_agent.offline.recipe_plan import escaped

    step = {"id": "rename", "tool": "vault.rename", "args": {"from": escaped(options.old), "to": escaped(options.new)}}
    goal = f"Rename {options.old} to {options.new}"
    document = {"version": "1.0", "goal": goal, "riskLevel": "writes", "steps": [step]}
    return run_document(open_session(options), document, {}, options.yes, out)


def run_document(
    session: Session,
    document: object,
    values: Mapping[str, Any],
    yes: bool,
    out: Output,
    *,
    expect_hash: str | None = None,
    instruction: str | None = None,
) -> Exit:
    """Preview a plan document, have it approved, execute it, print the result."""
    try:
        ready = session.plans.dry_run(document, values, instruction=instruction)
    except MissingInput as error:
        return needs_input(error.message, out, missing=error.missing)
    except PlanError as error:
        return refuse(error.problems, out)
    if not ready.valid:
        return refuse(ready.errors, out, warnings=ready.warnings, total=len(ready.instances))
    if expect_hash is not None and ready.plan_hash != expect_hash:
        stale = Problem("CONFLICT", f"The plan now does something else than what was approved: its hash is {ready.plan_hash}.")
        return finish(ExecutionResult(None, "conflict", False, "refused", total_steps=len(ready.instances), errors=(stale,)), out)
    if not yes and not _approved(session, ready, out):
        not_approved = Problem("NOT_APPROVED", "The plan was not approved.")
        return finish(ExecutionResult(None, "refused", False, "refused", total_steps=len(ready.instances), errors=(not_approved,)), out)
    with interruptible() as cancel:
        result = session.plans.apply(ready, _progress(out), cancel)
    if result.success:
        show_findings(ready, result.outputs, out)
    return finish(result, out)


def refuse(problems: tuple[Problem, ...], out: Output, *, warnings: tuple[Problem, ...] = (), total: int = 0) -> Exit:
    """Print a result that says why nothing was run."""
    result = ExecutionResult(None, "refused", False, "refused", total_steps=total, errors=problems, warnings=warnings)
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
        for line in result_lines(result):
            out.line(line)
    return of_result(result)


def needs_input(message: str, out: Output, *, missing: tuple[str, ...] = (), candidates: tuple[Candidate, ...] = ()) -> Exit:
    """Say what a person must decide first. Nothing was run."""
    problem = Problem("NEEDS_INPUT", message)
    if out.as_json:
        document = result_document(ExecutionResult(None, "refused", False, "needs-input", errors=(problem,)))
        found = [candidate_document(candidate) for candidate in candidates]
        out.document(document | {"message": message, "missing": list(missing), "candidates": found})
        return Exit.NOT_APPROVED
    out.line(message)
    for line in candidate_lines(candidates):
        out.line(line)
    if candidates:
        out.line("Take one with --pick N, and give what is missing with --param NAME=VALUE.")
    for name in missing if not candidates else ():
        out.line(f"- missing: {name} (give it with --param {name}=…)")
    return Exit.NOT_APPROVED


def candidate_lines(candidates: Iterable[Candidate]) -> Iterator[str]:
    """What may be meant, numbered: its values, what is missing, what speaks against it."""
    for number, candidate in enumerate(candidates, 1):
        values = ", ".join(f"{name}: {value}" for name, value in candidate.values.items())
        yield f"{number}. {candidate.title}{f' ({values})' if values else ''}"
        if candidate.missing:
            yield f"   missing: {', '.join(candidate.missing)}"
        if candidate.doubt:
            yield f"   {candidate.doubt}"


def reject(error: PlanError, out: Output) -> Exit:
    """Print a preview that says why there is nothing to show."""
    if not out.as_json:
        out.problems(error.problems)
    elif isinstance(error, MissingInput):
        out.document(rejected_document(error.problems) | {"outcome": "needs-input", "missing": list(error.missing)})
    else:
        out.document(rejected_document(error.problems))
    return Exit.NOT_APPROVED if isinstance(error, MissingInput) else of_problems(error.problems)


def show_preview(session: Session, ready: Preview, out: Output) -> None:
    """The whole preview with every diff."""
    if out.as_json:
        out.document(preview_document(ready, lambda change: session.plans.diff(ready, change)))
        return
    out.problems((*ready.warnings, *ready.errors))
    show_changes(ready, [session.plans.diff(ready, change) for change in ready.change_set.changes], out)
    if ready.valid:
        show_findings(ready, ready.outputs, out)


def load_document(name: str) -> object:
    """A plan file's JSON value: strict JSON, as written by a person or a program."""
    return read_json(read_bytes(name), "The plan" if name == "-" else name)


def _parse(options: argparse.Namespace, out: Output) -> Exit:
    parsed = parse_plan(read_bytes(options.parse))
    match parsed:
        case ParsedPlan(document=document, repairs=repairs):
            for repair in repairs:
                out.note(f"The answer was mended: {repair}")
            return _shown(document, out)
        case ParsedProse(text=text):
            problems = (Problem("NO_PLAN", f"The answer is text, not a plan: {text[:200]}"),)
        case ParseFailed(code=code, message=message):
            problems = (Problem(code, message),)
        case _:
            assert_never(parsed)
    return _invalid(problems, out)


def _shown(document: object, out: Output) -> Exit:
    """Print a plan, or why it is none. What only the settings of a run can allow is asked when it runs."""
    checked = validate(document, TOOLS, Policy(allow_deletes=True, allow_commands=True))
    if checked.plan is None:
        return _invalid(checked.problems, out)
    for warning in checked.warnings:
        out.note(f"{warning.code}: {warning.message}")
    plan = checked.plan.to_json()
    if out.as_json:
        out.document(plan)
    out.answer(json.dumps(plan, ensure_ascii=False, indent=2))
    return Exit.DONE


def _invalid(problems: tuple[Problem, ...], out: Output) -> Exit:
    if out.as_json:
        out.document({"errors": [problem.to_json() for problem in problems]})
    out.problems(problems)
    return of_problems(problems)


def answered(event: Answer, out: Output) -> Exit:
    """Print an answer in place of a result: nothing was to be done."""
    if out.as_json:
        result = result_document(ExecutionResult(None, "done", True, "done"))
        out.document(result | {"answer": event.text, "sources": list(event.sources)})
    out.answer(event.text)
    return Exit.DONE


async def _plan(session: Session, instruction: str, out: Output, given: Mapping[str, str], pick: int | None = None) -> PlanReady | Exit:
    """Let the planner work; a plan, or the exit code after telling what came instead. `pick`: one of the recipes that were offered."""

    async def emit(event: AgentEvent) -> None:
        match event:
            case PlanningRetry():
                out.note(f"Asking again ({event.attempt} of {event.attempts}): {event.problems[0].message if event.problems else ''}")
            case Notice(problem):
                out.note(problem.message)
            case _:
                pass

    verdict = await session.planner.plan(session.request(instruction, given, pick), emit)
    match verdict:
        case PlanReady():
            for note in verdict.notes:
                out.note(f"The model's answer was mended: {note}")
            return verdict
        case NeedsInput():
            return needs_input(verdict.message, out, missing=verdict.missing, candidates=verdict.candidates)
        case Answer():
            return answered(verdict, out)
        case TurnFailed():
            out.problems(verdict.problems)
            return _failed(verdict.problem, out)
        case RoundsUsedUp():
            return _failed(Problem("API_ERROR", "The planner ended without a plan."), out)
        case _:
            assert_never(verdict)


def _failed(problem: Problem, out: Output) -> Exit:
    """Tell why there is no plan: a refusal of what was asked for, or a failure of the service."""
    if problem.code in REFUSALS | {"ARGUMENT_INVALID"}:
        return refuse((problem,), out)
    if out.as_json:
        out.document(result_document(ExecutionResult(None, "failed", False, "error", errors=(problem,))))
    out.problems([problem])
    return Exit.SERVICE


def _approved(session: Session, ready: Preview, out: Output) -> bool:
    """Show the preview and ask on the terminal; without one the answer is no."""
    if out.as_json or not sys.stdin.isatty():
        out.note("Not approved: add --yes, or run it in a terminal to be asked.")
        return False
    show_preview(session, ready, out)
    return out.agreed("Do this? Type yes: ")


def _progress(out: Output) -> Any:
    def emit(event: RunEvent) -> None:
        if not out.verbose:
            return
        match event:
            case StepFinished():
                out.note(f"{event.completed}/{event.total} {event.instance} {' '.join(event.paths)}")
            case StepSkipped():
                out.note(f"{event.completed}/{event.total} {event.instance} skipped: {event.reason}")
            case StepFailed():
                out.note(f"{event.instance} failed: {event.problem.message}")
            case _:
                pass

    return emit
