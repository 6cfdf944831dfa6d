"""`rule …`: rules that let plans wait, at a time or when their result would be new."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.parser import Commands, add_actions, add_approval
from obsidian_agent.cli.session_factory import parameters, parse_now, state_of
from obsidian_agent.terminal_text import counted

if TYPE_CHECKING:
    from obsidian_agent.services.rules import RuleOutcome, RuleRunner, RuleStore
    from obsidian_agent.vault.index.keeper import IndexStatus


def arguments(commands: Commands) -> None:
    """Add the parser of this command and of its actions."""
    examples = [
        "rule add 'Inbox zero' --notes 'tag:#done' --recipe move --param folder=Archive",
        "rule add 'Roll over' --at '0 7 * * *' --recipe roll-over-tasks",
        "rule test 'Inbox zero'",
        "rule run",
        "rule watch",
        "rule log 'Inbox zero'",
    ]
    action = add_actions(commands.add("rule", None, examples=examples))
    command = action.add("add", _add, summary="add a rule, or replace the one of this name")
    command.add_argument("name", metavar="NAME")
    command.add_argument(
        "--notes", default="", metavar="QUERY", help="run when these notes change, e.g. tag:#done"
    )
    command.add_argument(
        "--at", default="", metavar="CRON", help="run at these times, e.g. 0 7 * * mon-fri"
    )
    command.add_argument("--recipe", default="", metavar="RECIPE")
    command.add_argument("--macro", default="", metavar="MACRO")
    command.add_argument(
        "--param", action="append", default=[], metavar="K=V", help="value of a parameter (repeat)"
    )
    command.add_argument(
        "--alone",
        action="store_true",
        help="run without approval what the settings allow; deletes always need it",
    )
    command.add_argument("--now", metavar="ISO", help="date and time to use, instead of now")
    action.add("list", _list, summary="list the rules of the vault")
    command = action.add(
        "test", _test, summary="show what a rule would have proposed in the last 30 days"
    )
    command.add_argument("name", metavar="NAME")
    command.add_argument("--now", metavar="ISO", help="date and time to use, instead of now")
    command = action.add(
        "run", _run, summary="run the rules that are due; their plans wait for approval"
    )
    command.add_argument(
        "name", nargs="?", metavar="NAME", help="only this rule, due or not, over all its notes"
    )
    command.add_argument("--now", metavar="ISO", help="date and time to use, instead of now")
    action.add("watch", _watch, summary="run the rules whenever notes change or a time comes")
    command = action.add(
        "log", _log, summary="list what each rule proposed, or why it proposed nothing"
    )
    command.add_argument("name", nargs="?", metavar="NAME", help="only this rule")
    command = action.add("remove", _remove, summary="remove a rule")
    command.add_argument("name", metavar="NAME")
    add_approval(command)


def _store(options: argparse.Namespace) -> RuleStore:
    from obsidian_agent.bootstrap import open_rules

    return open_rules(state_of(options, app=True))


def _runner(options: argparse.Namespace) -> RuleRunner:
    from obsidian_agent.bootstrap import build_rules, build_session

    wiring = state_of(options, app=True)  # what is proposed is approved later
    return build_rules(wiring, build_session(wiring))


def _add(options: argparse.Namespace, out: Output) -> Exit:
    from datetime import datetime

    from obsidian_agent.services.rules import Rule, local_zone

    now = parse_now(options.now) or datetime.now(local_zone())
    rule = Rule(
        name=options.name,
        cron=options.at,
        notes=options.notes,
        recipe=options.recipe,
        macro=options.macro,
        params=parameters(options),
        alone=options.alone,
        checked=now.isoformat(timespec="seconds"),
    )
    _store(options).put(rule)
    if out.as_json:
        out.document(rule.to_json())
    what = (
        "It runs what your settings allow; the rest waits." if rule.alone else "It only proposes."
    )
    out.line(f"The rule “{rule.name}” is on. {what} List its plans with: obsidian-agent plans list")
    return Exit.DONE


def _list(options: argparse.Namespace, out: Output) -> Exit:
    rules = _store(options).all()
    if out.as_json:
        out.document({"rules": [rule.to_json() for rule in rules]})
    for rule in rules:
        when = f"at {rule.cron}" if rule.cron else f"when notes change: {rule.notes}"
        then = rule.recipe or f"macro {rule.macro}"
        out.line(f"{rule.name}  {when}  {then}")
    if not rules:
        out.line("No rules yet.")
    return Exit.DONE


def _test(options: argparse.Namespace, out: Output) -> Exit:
    from obsidian_agent.errors import Problem
    from obsidian_agent.services.rules import MAX_TRIALS

    rule = _store(options).get(options.name)
    rows: list[dict[str, str | int]] = []
    trials = _runner(options).trial(rule)
    if len(trials) == MAX_TRIALS:
        out.note(f"Only its last {MAX_TRIALS} times are shown.")
    for time, preview in trials:
        when = time.isoformat(timespec="seconds")
        if isinstance(preview, Problem):
            rows.append({"time": when, "problem": preview.sentence})
        elif changes := len(preview.change_set.changes):
            rows.append({"time": when, "goal": preview.plan.goal, "changes": changes})
    if out.as_json:
        out.document({"proposals": rows})
    for row in rows:
        if "problem" in row:
            out.line(f"{row['time']}  no plan: {row['problem']}")
        else:
            out.line(f"{row['time']}  {row['goal']}  {counted(int(row['changes']), 'change')}")
    if not rows:
        out.line("The rule would have proposed nothing.")
    return Exit.DONE


def _run(options: argparse.Namespace, out: Output) -> Exit:
    if options.name is not None:
        _store(options).get(options.name)
    outcomes = _runner(options).run(options.name)
    proposals = [outcome.plan for outcome in outcomes if outcome.plan is not None]
    if out.as_json:
        out.document(
            {
                "proposals": [
                    {"id": plan.id, "from": plan.source, "goal": plan.goal, "changes": plan.changes}
                    for plan in proposals
                ]
            }
        )
    for outcome in outcomes:
        out.line(_described(outcome))
    if not outcomes:
        out.line("No rule is due.")
    return Exit.DONE


def _watch(options: argparse.Namespace, out: Output) -> Exit:
    """Run the rules until a signal ends the command."""
    import threading

    from obsidian_agent.bootstrap import build_rules, build_session
    from obsidian_agent.cli.exits import interruptible
    from obsidian_agent.services.rule_watch import watch

    wiring = state_of(options, app=True)
    session = build_session(wiring)
    changed = threading.Event()

    def report(status: IndexStatus) -> None:
        if status.done == status.total:
            changed.set()

    out.line("The rules are on until you press Ctrl+C.")
    session.vault.follow(report)
    try:
        with interruptible() as stop:
            for outcome in watch(build_rules(wiring, session), changed, stop, poll=0.5):
                if outcome.plan is not None or outcome.run_id is not None:
                    out.line(_described(outcome))
    finally:
        session.vault.unfollow()
    return Exit.DONE


def _log(options: argparse.Namespace, out: Output) -> Exit:
    entries = _store(options).entries(options.name)
    if out.as_json:
        out.document({"entries": entries})
    for entry in entries:
        what = entry.get("plan") or entry.get("run") or ""
        out.line(f"{entry.get('time')}  {entry.get('rule')}  {entry.get('text')}  {what}".rstrip())
    if not entries:
        out.line("No rule was due yet.")
    return Exit.DONE


def _described(outcome: RuleOutcome) -> str:
    text = outcome.reason
    if outcome.plan is not None:
        text = f"{outcome.text}. It waits: obsidian-agent plans run {outcome.plan.id}"
    elif outcome.run_id is not None:
        text = f"{text} Undo with: obsidian-agent undo {outcome.run_id}"
    return f"{outcome.rule}: {text}"


def _remove(options: argparse.Namespace, out: Output) -> Exit:
    store = _store(options)
    rule = store.get(options.name)
    if not out.confirmed(f"Remove the rule “{rule.name}”?", options.yes):
        return Exit.NOT_APPROVED
    store.remove(rule.name)
    if out.as_json:
        out.document({"removed": rule.name})
    out.line(f"The rule “{rule.name}” is removed.")
    return Exit.DONE
