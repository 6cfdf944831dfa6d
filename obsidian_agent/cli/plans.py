"""`plans …`: the plans that wait for approval."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.parser import Commands, add_actions, add_approval, context_options
from obsidian_agent.cli.session_factory import open_session, state_of
from obsidian_agent.terminal_text import counted

if TYPE_CHECKING:
    from obsidian_agent.services.plan_review import PlanReview
    from obsidian_agent.services.plans import Plans
    from obsidian_agent.services.waiting_plans import WaitingPlan, WaitingPlans


def arguments(commands: Commands) -> None:
    """Add the parser of this command and of its actions."""
    action = add_actions(
        commands.add("plans", None, examples=["plans list", "plans show ID", "plans run ID --yes"])
    )
    action.add("list", _list, context_options(), summary="list waiting plans, newest first")
    command = action.add("show", _show, context_options(), summary="preview a waiting plan again")
    command.add_argument("id", metavar="ID")
    command = action.add(
        "run", _run, context_options(), summary="preview a waiting plan, ask, run it"
    )
    command.add_argument("id", metavar="ID")
    add_approval(command)
    command = action.add("drop", _drop, summary="remove a waiting plan")
    command.add_argument("id", metavar="ID")


def waiting_plans(options: argparse.Namespace) -> WaitingPlans:
    """Return the waiting plans of the vault that the options name."""
    from datetime import datetime

    from obsidian_agent.bootstrap import open_inbox

    waiting = open_inbox(state_of(options))
    waiting.expire(datetime.now().astimezone())
    return waiting


def _list(options: argparse.Namespace, out: Output) -> Exit:
    from obsidian_agent.services.plan_review import review

    waiting = waiting_plans(options).all()
    plans = open_session(options).plans if waiting else None
    rows = [_document(review(plan, plans)) for plan in waiting if plans is not None]
    if out.as_json:
        out.document({"plans": rows})
    for plan, row in zip(waiting, rows, strict=True):
        changes = "" if row["changes"] is None else f"  {counted(row['changes'], 'change')}"
        stale = "  changed since it was proposed" if row["stale"] else ""
        source = row["from"] or "you"
        out.line(f"{row['id']}  {row['created']}  {source}  {row['goal']}{changes}{stale}")
        if plan.replacement:
            out.line(f"              {plan.replacement}")
    if not rows:
        out.line("No plans are waiting.")
    return Exit.DONE


def _document(current: PlanReview) -> dict[str, Any]:
    plan = current.plan
    return {
        "id": plan.id,
        "from": plan.source,
        "goal": plan.goal,
        "created": plan.created,
        "changes": current.changes,
        "stale": current.is_stale,
    }


def _show(options: argparse.Namespace, out: Output) -> Exit:
    from obsidian_agent.cli.report import dry_run

    plan, session = waiting_plans(options).get(options.id), open_session(options)
    _print_differences(plan, session.plans, out)
    return dry_run(session, plan.plan, {}, out)


def _print_differences(plan: WaitingPlan, plans: Plans, out: Output) -> None:
    """Print first what a plan does otherwise than when it was proposed."""
    from obsidian_agent.services.plan_review import review

    for text in review(plan, plans).differences:
        out.note(text)


def _run(options: argparse.Namespace, out: Output) -> Exit:
    """Run a waiting plan. `--yes` covers only what the plan did when it was proposed."""
    from obsidian_agent.cli.report import RunRequest, run_plan

    plans = waiting_plans(options)
    plan = plans.get(options.id)
    session = open_session(options)
    if not options.yes:
        _print_differences(plan, session.plans, out)
    request = RunRequest(
        document=plan.plan,
        values={},
        yes=options.yes,
        expect_hash=plan.plan_hash if options.yes else None,
        agent=plan.source,
    )
    exit_code = run_plan(session, request, out)
    if exit_code is Exit.DONE:
        plans.drop(plan.id)
    return exit_code


def _drop(options: argparse.Namespace, out: Output) -> Exit:
    plans = waiting_plans(options)
    plan = plans.get(options.id)
    plans.drop(plan.id)
    if out.as_json:
        out.document({"dropped": plan.id})
    out.line(f"The plan “{plan.goal}” no longer waits.")
    return Exit.DONE
