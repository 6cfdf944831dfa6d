"""`preview`, `run`, `plan`, `do` and `rename`: from a document or an instruction to a result."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, assert_never

from obsidian_agent.cli.exits import PERMISSION_CODES, Exit, of_problems
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.parser import (
    Commands,
    UsageError,
    add_approval,
    context_options,
    planner_options,
    whole_number,
)
from obsidian_agent.cli.session_factory import (
    file_not_found,
    open_session,
    parameters,
    read_bytes,
)
from obsidian_agent.errors import Problem

if TYPE_CHECKING:
    from obsidian_agent.agent.events import PlanReady
    from obsidian_agent.services.session import Session

REFUSALS = PERMISSION_CODES | {"PATH_OUTSIDE_VAULT", "PATH_NOT_ALLOWED", "PATH_INVALID"}
"""Codes of a planner that refuses an instruction."""


def arguments(commands: Commands) -> None:
    """Add the parsers of these commands."""
    command = commands.add(
        "preview",
        preview_command,
        context_options(),
        examples=["preview plan.json --vault ~/Notes --json"],
    )
    command.add_argument("plan", metavar="PLAN.json", help="a file, or - for standard input")
    command.set_defaults(by_author=True)
    command = commands.add(
        "run",
        run_command,
        context_options(),
        examples=["run plan.json --vault ~/Notes", "run plan.json --yes --expect-hash H"],
    )
    command.add_argument(
        "plan", nargs="?", metavar="PLAN.json", help="a file, or - for standard input"
    )
    command.add_argument(
        "--plan", dest="proposed", metavar="ID", help="the id of a plan that waits"
    )
    add_approval(command)
    command.add_argument(
        "--expect-hash", metavar="H", help="run only if the planHash of the fresh preview is H"
    )
    command.set_defaults(by_author=True)
    examples = [
        "plan \"move all notes tagged #done to 'Archive'\" --json",
        "plan --parse answer.txt",
    ]
    command = commands.add(
        "plan", plan_command, context_options(), planner_options(), examples=examples
    )
    command.add_argument(
        "instruction", nargs="?", metavar="INSTRUCTION", help="what should change, in your words"
    )
    command.add_argument(
        "--parse", metavar="FILE", help="read a model's raw answer from a file or -"
    )
    examples = [
        "do \"append 'Call Ada' to Inbox\" --vault ~/Notes",
        'do "put the #done notes away" --pick 1 --param folder=Archive',
    ]
    command = commands.add(
        "do", do_command, context_options(), planner_options(), examples=examples
    )
    command.add_argument(
        "instruction", metavar="INSTRUCTION", help="what should change, in your words"
    )
    command.add_argument(
        "--pick",
        type=whole_number,
        metavar="N",
        help="choose the Nth of the actions that were offered; add values with --param",
    )
    command.add_argument(
        "--later", action="store_true", help="store the plan for approval later; see plans"
    )
    add_approval(command)
    command = commands.add(
        "rename",
        rename_command,
        context_options(),
        examples=["rename Inbox 'Archive/Old inbox' --vault ~/Notes"],
    )
    command.add_argument("old", metavar="FROM", help="path of the note or folder; .md is optional")
    command.add_argument("new", metavar="TO", help="full new path; .md is optional for a note")
    add_approval(command)


def preview_command(options: argparse.Namespace, out: Output) -> Exit:
    """Validate and dry-run a plan. Nothing is written."""
    from obsidian_agent.cli.report import dry_run

    return dry_run(open_session(options), _document(options.plan), parameters(options), out)


def run_command(options: argparse.Namespace, out: Output) -> Exit:
    """Preview a plan, ask for approval and execute it."""
    from obsidian_agent.cli.report import RunRequest, run_plan

    if (options.plan is None) == (options.proposed is None):
        raise UsageError("Give PLAN.json, or --plan ID for a plan that waits.")
    if options.plan is not None:
        document, agent = _document(options.plan), ""
    else:
        document, agent = _proposed(options)
    request = RunRequest(
        document=document,
        values=parameters(options),
        yes=options.yes,
        expect_hash=options.expect_hash,
        agent=agent,
    )
    return run_plan(open_session(options), request, out)


def _proposed(options: argparse.Namespace) -> tuple[object, str]:
    from obsidian_agent.cli.plans import waiting_plans

    plan = waiting_plans(options).get(options.proposed)
    return plan.plan, plan.source


def plan_command(options: argparse.Namespace, out: Output) -> Exit:
    """Make a plan, or read one from a model's raw answer. Nothing is run."""
    import asyncio

    if (options.parse is None) == (options.instruction is None):
        raise UsageError("Give an instruction, or --parse FILE.")
    if options.parse is not None:
        return _parse(options, out)
    verdict = asyncio.run(_plan(open_session(options), options, out))
    return verdict if isinstance(verdict, Exit) else _print_plan(verdict.plan, out)


def do_command(options: argparse.Namespace, out: Output) -> Exit:
    """Plan an instruction, preview the plan, ask for approval and execute it."""
    import asyncio

    from obsidian_agent.cli.report import RunRequest, run_plan

    session = open_session(options)
    verdict = asyncio.run(_plan(session, options, out))
    if isinstance(verdict, Exit):
        return verdict
    values: dict[str, str] = {}
    # A recipe has used the values already; a model's plan only refers to its parameters.
    if options.pick is None and session.planner is not session.offline:
        names = verdict.plan.parameters
        values = {name: value for name, value in parameters(options).items() if name in names}
    if options.later:
        return _store_for_later(options, session, verdict, values, out)
    request = RunRequest(
        document=verdict.plan.to_json(),
        values=values,
        yes=options.yes,
        instruction=options.instruction,
        agent=verdict.agent,
        tried=verdict.preview,
    )
    return run_plan(session, request, out)


def _store_for_later(
    options: argparse.Namespace,
    session: Session,
    planned: PlanReady,
    values: Mapping[str, str],
    out: Output,
) -> Exit:
    """Preview a plan and store it among the waiting plans. Nothing is run."""
    from obsidian_agent.cli.plans import waiting_plans
    from obsidian_agent.cli.report import refuse
    from obsidian_agent.errors import PlanError
    from obsidian_agent.services.plan_review import put_aside
    from obsidian_agent.services.plans import PreviewOptions

    document = planned.plan.to_json()
    for name, value in values.items():
        document["parameters"][name]["default"] = value
    try:
        preview = session.plans.dry_run(
            document,
            options=PreviewOptions(instruction=options.instruction, agent=planned.agent),
        )
    except PlanError as error:
        return refuse(error.problems, out)
    if not preview.valid:
        return refuse(preview.errors, out, warnings=preview.warnings)
    waiting = put_aside(
        waiting_plans(options), preview, source=planned.agent, now=preview.context.now
    )
    if out.as_json:
        out.document({"id": waiting.id, "goal": waiting.goal, "changes": waiting.changes})
    out.line(f"The plan waits for approval: obsidian-agent plans run {waiting.id}")
    return Exit.DONE


def rename_command(options: argparse.Namespace, out: Output) -> Exit:
    """Run a plan of one step that renames a note or folder. The `.md` of a note is optional."""
    from obsidian_agent.cli.report import RunRequest, run_plan
    from obsidian_agent.offline.recipe_plan import escape
    from obsidian_agent.vault.views.view import locate_by_name

    session = open_session(options)
    entry = locate_by_name(session.vault.view(), options.old)
    if entry is None:
        raise file_not_found(options.old)
    new = options.new
    if entry.path.is_note and not new.lower().endswith(".md"):
        new = f"{new}.md"
    step = {
        "id": "rename",
        "tool": "vault.rename",
        "args": {"from": escape(entry.path.text), "to": escape(new)},
    }
    document = {
        "version": "1.0",
        "goal": f"Rename {entry.path} to {new}",
        "riskLevel": "writes",
        "steps": [step],
    }
    return run_plan(session, RunRequest(document=document, values={}, yes=options.yes), out)


def _document(name: str) -> object:
    """Read a plan file, which must be strict JSON."""
    from obsidian_agent.plan.json_text import MAX_FILE_BYTES, read_json

    return read_json(read_bytes(name, MAX_FILE_BYTES), "The plan" if name == "-" else name)


def _parse(options: argparse.Namespace, out: Output) -> Exit:
    from obsidian_agent.plan.llm_output import (
        MAX_BYTES,
        ParsedPlan,
        ParsedProse,
        ParseFailed,
        parse_plan,
    )

    parsed = parse_plan(read_bytes(options.parse, MAX_BYTES))
    match parsed:
        case ParsedPlan(document=document, repairs=repairs):
            for repair in repairs:
                out.note(f"The answer was repaired: {repair}")
            return _print_plan(document, out)
        case ParsedProse(text=text):
            problem = Problem("NO_PLAN", f"The answer is text, not a plan: {text[:200]}")
        case ParseFailed(code=code, message=message):
            problem = Problem(code, message)
        case _:
            assert_never(parsed)
    return _invalid((problem,), out)


def _print_plan(document: object, out: Output) -> Exit:
    """Print a plan, or its problems. Permissions are not checked before it runs."""
    from obsidian_agent.plan.policy import UNRESTRICTED
    from obsidian_agent.plan.validate import validate
    from obsidian_agent.tools.registry import TOOLS

    checked = validate(document, TOOLS, UNRESTRICTED)
    if checked.plan is None:
        return _invalid(checked.problems, out)
    out.problems(checked.warnings)
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


async def _plan(session: Session, options: argparse.Namespace, out: Output) -> PlanReady | Exit:
    """Return the planner's plan. If there is none, print its verdict and return the exit code."""
    from obsidian_agent.agent import events
    from obsidian_agent.cli.consent import share_approval
    from obsidian_agent.cli.report import answered, needs_input

    async def emit(event: events.AgentEvent) -> None:
        match event:
            case events.PlanningRetry(attempt, attempts, problems):
                out.note(f"Asking again ({attempt} of {attempts}).")
                out.problems(problems[:1])
            case events.Notice(problem):
                out.problems([problem])
            case _:
                pass

    pick = getattr(options, "pick", None)
    verdict = await session.plan(
        options.instruction, parameters(options), pick, emit, share_approval(out)
    )
    match verdict:
        case events.PlanReady():
            for note in verdict.notes:
                out.note(f"The model's answer was repaired: {note}")
            return verdict
        case events.NeedsInput():
            return needs_input(
                verdict.message, out, missing=verdict.missing, candidates=verdict.candidates
            )
        case events.Answer():
            from obsidian_agent.cli.health import with_findings

            return answered(with_findings(verdict, session, options), out)
        case events.TurnFailed():
            return _failed(verdict.problem, out, verdict.problems)
        case events.RoundsUsedUp():
            return _failed(Problem("API_ERROR", "The planner ended without a plan."), out)
        case _:
            assert_never(verdict)


def _failed(problem: Problem, out: Output, causes: tuple[Problem, ...] = ()) -> Exit:
    """Print the problem with its causes: a refusal of the instruction, or a failed service."""
    from obsidian_agent.agent.event_documents import result_document
    from obsidian_agent.agent.events import ExecutionResult
    from obsidian_agent.cli.report import refuse

    if problem.code in REFUSALS | {"ARGUMENT_INVALID"}:
        out.problems(causes)
        return refuse((problem,), out)
    if out.as_json:
        result = ExecutionResult(
            run_id=None, status="failed", success=False, outcome="error", errors=(problem, *causes)
        )
        out.document(result_document(result))
    out.problems([problem, *causes])
    return Exit.SERVICE
