"""`health`: findings about a vault with evidence, and their repairs as one plan."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output, Stream, progress
from obsidian_agent.cli.parser import Commands, UsageError
from obsidian_agent.cli.session_factory import open_vault, parse_now

if TYPE_CHECKING:
    from collections.abc import Iterator

    from obsidian_agent.agent.events import Answer
    from obsidian_agent.health.finding import HealthFinding, HealthReport
    from obsidian_agent.health.survey import PropertyRule
    from obsidian_agent.services.health import Checkup
    from obsidian_agent.services.session import Session

MAX_FINDINGS = 20
"""Findings of one kind that are listed without --all or --only."""


def arguments(commands: Commands) -> None:
    """Add the parser of this command."""
    command = commands.add(
        "health",
        health_command,
        examples=[
            "health --vault ~/Notes",
            "health --only unresolved-link --only tag-spelling --json",
            "health --plan repairs.json",
            "health --rules",
            "health --ignore 3f2a90c1b7de --reason 'wanted later'",
        ],
    )
    command.add_argument(
        "--only", action="append", default=[], metavar="KIND", help="only findings of this kind"
    )
    command.add_argument(
        "--plan", metavar="FILE", help="write the clear repairs as a plan for `run`"
    )
    command.add_argument("--ignore", metavar="ID", help="ignore a finding from now on")
    command.add_argument("--reason", default="", metavar="TEXT", help="why it is ignored")
    command.add_argument("--unignore", metavar="ID", help="report an ignored finding again")
    command.add_argument("--all", action="store_true", help="print every finding")
    command.add_argument(
        "--rules",
        action="store_true",
        help="print the rules for properties that apply, declared and inferred, as JSON",
    )
    command.add_argument("--now", metavar="ISO", help="time of the report, instead of now")


def health_command(options: argparse.Namespace, out: Output) -> Exit:
    """Examine the vault and print the findings; exit 1 while there are any."""
    from datetime import datetime

    from obsidian_agent.cli.index import index_keeper
    from obsidian_agent.health.finding import KINDS
    from obsidian_agent.services.health import HealthRecord, VaultHealth
    from obsidian_agent.state_files import directories
    from obsidian_agent.vault.views.disk import DiskView

    kinds = [kind for kind in KINDS if not options.only or kind in options.only]
    if unknown := set(options.only) - set(KINDS):
        raise UsageError(
            f"There is no kind of finding called {min(unknown)!r}.",
            hint=f"Kinds: {', '.join(KINDS)}.",
        )
    state = directories(options.state_dir, options.config).state
    if options.ignore or options.unignore:
        with open_vault(options) as store:
            return _change_ignored(HealthRecord(state, store), options, out)
    now = parse_now(options.now) or datetime.now().astimezone()
    with index_keeper(options, out) as keeper, progress("Examining", out) as show:
        index = keeper.refresh()
        view, health = DiskView(keeper.store, lambda: index), VaultHealth(state, keeper.store)
        if options.rules:
            return _print_rules(health.rules(view, now), out)
        checkup = health.examine(view, now, only=kinds, progress=show)
    report = checkup.report
    if out.as_json:
        findings = Stream(finding.to_json() for finding in report.findings)
        document = {"findings": findings if report.findings else []}
        out.document(document | {"counts": report.counts, "ignored": len(report.ignored)})
    if options.plan:
        _write_plan(report, options.plan, out)
    is_listed = options.all or options.only
    limit = None if is_listed else MAX_FINDINGS
    for line in _lines(checkup, is_whole=not options.only, limit=limit):
        out.line(line)
    return Exit.FAILED if report.findings else Exit.DONE


def with_findings(answer: Answer, session: Session, options: argparse.Namespace) -> Answer:
    """Return an answer that asks for a health report with the findings as its text."""
    from msgspec.structs import replace

    from obsidian_agent.health.finding import KINDS
    from obsidian_agent.services.health import VaultHealth
    from obsidian_agent.state_files import directories

    if answer.health is None:
        return answer
    only = [kind for kind in KINDS if kind in answer.health]
    state = directories(options.state_dir, options.config).state
    vault = session.vault
    checkup = VaultHealth(state, vault.store).examine(
        vault.view(), vault.clock(), only=only or KINDS
    )
    lines = _lines(checkup, is_whole=not only, limit=None if only else MAX_FINDINGS)
    return replace(answer, text="\n".join(lines))


def _change_ignored(record: object, options: argparse.Namespace, out: Output) -> Exit:
    from obsidian_agent.services.health import HealthRecord

    assert isinstance(record, HealthRecord)
    if options.unignore:
        if not record.unignore(options.unignore):
            raise UsageError(f"{options.unignore} is not ignored.")
        out.line(f"{options.unignore} is reported again.")
    if options.ignore:
        record.ignore(options.ignore, options.reason)
        out.line(f"{options.ignore} is ignored from now on.")
    if out.as_json:
        out.document({"ignored": record.ignored()})
    return Exit.DONE


def _print_rules(rules: list[PropertyRule], out: Output) -> Exit:
    """Print rules in the form of the vault's own file of them."""
    from msgspec.json import decode, encode, format

    document = encode({"rules": rules})
    if out.as_json:
        out.document(decode(document))
    else:
        out.line(format(document).decode())
    return Exit.DONE


def _write_plan(report: HealthReport, name: str, out: Output) -> None:
    import json

    from obsidian_agent.errors import ConfigError
    from obsidian_agent.health.repair_plan import preselected, repair_plan

    choices = preselected(report.findings)
    plan = repair_plan(choices)
    if plan is None:
        out.note("No repair is clear without your choice, so no plan was written.")
        return
    try:
        text = json.dumps(plan, ensure_ascii=False, indent=2) + "\n"
        Path(name).write_text(text, "utf-8")
    except OSError as error:
        raise ConfigError(f"{name} cannot be written: {error.strerror}.") from error
    has_deletes = any(step["tool"] == "vault.delete" for step in plan["steps"])
    command = f"run {name}{' --allow-deletes' if has_deletes else ''}"
    out.note(f"{len(choices)} repairs are in {name}. Preview and run them: {command}")


def _lines(checkup: Checkup, *, is_whole: bool, limit: int | None) -> Iterator[str]:
    """Yield the lines of a report, with at most `limit` findings of a kind."""
    report = checkup.report
    groups: dict[str, list[HealthFinding]] = {}
    for finding in report.findings:
        groups.setdefault(finding.kind, []).append(finding)
    for kind, findings in groups.items():
        repairs = sum(
            finding.repair is not None and finding.repair.preselected for finding in findings
        )
        certain = f", {repairs} with a repair" if repairs else ""
        yield f"{kind}  {len(findings)}{certain}"
        listed = findings[:limit]
        for finding in listed:
            yield f"  {_line(finding)}"
        if len(listed) < len(findings):
            yield f"  … {len(findings) - len(listed)} more: --all, or --only {kind}"
    total = len(report.findings)
    ignored = f" {len(report.ignored)} are ignored." if report.ignored else ""
    if not total:
        yield f"No findings.{ignored}"
        return
    since = ""
    if checkup.earlier is not None and is_whole:
        day, count = checkup.earlier
        comparison = "more" if total > count else "fewer"
        since = f" {abs(total - count)} {comparison} than on {day}." if total != count else ""
    yield f"{total} findings.{since}{ignored}"


def _line(finding: HealthFinding) -> str:
    location = finding.path if finding.line is None else f"{finding.path}:{finding.line}"
    evidence = f" ({finding.evidence})" if finding.evidence else ""
    repair = ""
    if finding.repair is not None and finding.repair.preselected:
        repair = f"  {finding.repair.choices[0].title}"
    return f"{finding.id}  {location}  {finding.text}{repair}{evidence}"
