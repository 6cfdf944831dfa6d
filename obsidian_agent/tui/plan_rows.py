"""The rows of the plan pane for a preview.

The order is errors, warnings, assumptions, steps, then files with deletions first.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from obsidian_agent import terminal_text
from obsidian_agent.dataclass import dataclass

if TYPE_CHECKING:
    from obsidian_agent.errors import Problem
    from obsidian_agent.plan.model import ActionPlan, Step
    from obsidian_agent.plan.result import Flag, Instance, Preview
    from obsidian_agent.vault.views.changes import ChangeKind, NetChange

FOLD_AT = 6
"""Remarks from which a section is folded; files and steps never are."""

CHANGE_ORDER: tuple[ChangeKind, ...] = ("delete", "rename", "modify", "create", "mkdir")
CHANGE_WORDS = {
    "delete": "delete",
    "rename": "rename",
    "modify": "edit",
    "create": "new",
    "mkdir": "folder",
}
FLAG_WORDS = {
    "remoteUrl": "loads from the internet",
    "runsAsCode": "runs as code in Obsidian",
    "shrink": "loses much of its text",
    "manyFiles": "many files",
    "notNamed": "not named in your message",
    "opaque": "has no preview",
    "riskRaised": "riskier than the plan states",
    "deniedText": "text that is never shared",
}


@dataclass(frozen=True, slots=True)
class SectionRow:
    """A heading."""

    title: str


@dataclass(frozen=True, slots=True)
class RemarkRow:
    """An error, warning, flag or assumption."""

    kind: str
    text: str
    detail: str


@dataclass(frozen=True, slots=True)
class MoreRow:
    """The hidden rest of a folded section."""

    section: str
    hidden: int


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step of the original plan with the counts of its instances in the preview."""

    step: Step
    is_on: bool
    calls: int
    failed: int
    skipped: int


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """A file or folder that changes."""

    change: NetChange


PlanRow = SectionRow | RemarkRow | MoreRow | StepRow | ChangeRow


def build_rows(
    preview: Preview, plan: ActionPlan, disabled: frozenset[str], unfolded: frozenset[str]
) -> list[PlanRow]:
    """Return all rows.

    `plan` has all steps, also those with an id in `disabled`. `unfolded` are the titles of the
    sections that are displayed in full.
    """
    rows: list[PlanRow] = []
    errors = [_problem_row("error", problem) for problem in preview.errors]
    notices = [
        *(_flag_row(flag) for flag in preview.flags),
        *(_problem_row("warning", problem) for problem in preview.warnings),
    ]
    assumptions = [
        RemarkRow("assumption", terminal_text.shortened(text, 300), terminal_text.block(text))
        for text in plan.assumptions
    ]
    for title, remarks in (
        ("Errors", errors),
        ("Warnings", notices),
        ("Assumptions", assumptions),
    ):
        rows += _section(title, remarks, unfolded)
    if plan.steps:
        calls, failed, skipped = _instances(preview.instances)
        rows.append(SectionRow(f"Steps ({len(plan.steps)})"))
        rows += [
            StepRow(
                step, step.id not in disabled, calls[step.id], failed[step.id], skipped[step.id]
            )
            for step in plan.steps
        ]
    changes = preview.change_set.changes
    if changes:
        rows.append(SectionRow(f"Files ({len(changes):,})"))
        rows += [
            ChangeRow(change)
            for change in sorted(changes, key=lambda change: CHANGE_ORDER.index(change.kind))
        ]
    return rows


def _section(
    title: str, remarks: Sequence[RemarkRow], unfolded: frozenset[str]
) -> Iterator[PlanRow]:
    if not remarks:
        return
    yield SectionRow(f"{title} ({len(remarks):,})")
    if title in unfolded or len(remarks) <= FOLD_AT:
        yield from remarks
    else:
        yield from remarks[: FOLD_AT - 1]
        yield MoreRow(title, len(remarks) - FOLD_AT + 1)


def _problem_row(kind: str, problem: Problem) -> RemarkRow:
    where = terminal_text.shortened(problem.file or "", 120)
    text = terminal_text.shortened(problem.sentence, 300)
    detail = "\n".join(part for part in (terminal_text.block(problem.sentence), where) if part)
    return RemarkRow(kind, f"{text}  {where}" if where and where not in text else text, detail)


def _flag_row(flag: Flag) -> RemarkRow:
    word = FLAG_WORDS[flag.kind]
    where = terminal_text.line(flag.path) if flag.path else ""
    text = ": ".join(part for part in (where, word) if part)
    return RemarkRow(
        "notice",
        f"{text}. {terminal_text.shortened(flag.detail, 200)}",
        f"{text}.\n{terminal_text.block(flag.detail)}",
    )


def _instances(instances: Iterable[Instance]) -> tuple[Counter[str], Counter[str], Counter[str]]:
    calls: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    for instance in instances:
        calls[instance.step_id] += 1
        failed[instance.step_id] += instance.state == "failed"
        skipped[instance.step_id] += instance.state == "skipped"
    return calls, failed, skipped


def step_detail(step: Step, preview: Preview) -> str:
    """Return the reasons why instances of a step do not run, then the step as JSON."""
    document = step.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    text = json.dumps(document, ensure_ascii=False, indent=2)
    reasons = [
        f"{instance.name}: {instance.reason}"
        for instance in preview.instances
        if instance.step_id == step.id and instance.reason
    ]
    more = [f"… {len(reasons) - 20:,} more"] if len(reasons) > 20 else []
    return terminal_text.block("\n".join([*reasons[:20], *more, *([""] if reasons else []), text]))


def change_counts(changes: Iterable[NetChange]) -> list[tuple[str, str]]:
    """Return the number of changes per kind as (kind, text), the most dangerous kind first.

    An example is `("delete", "3 deleted")`.
    """
    numbers = Counter(change.kind for change in changes)
    words = {
        "delete": "deleted",
        "rename": "renamed",
        "modify": "edited",
        "create": "new",
        "mkdir": "new folder" + ("s" if numbers["mkdir"] != 1 else ""),
    }
    return [(kind, f"{numbers[kind]:,} {words[kind]}") for kind in CHANGE_ORDER if numbers[kind]]


def deletions(changes: Iterable[NetChange]) -> list[str]:
    """Return the deleted paths, quoted and safe to display, with the file counts of folders."""
    return [
        f"“{terminal_text.line(change.path.text)}”"
        + (f" with {terminal_text.counted(change.files, 'file')}" if change.files else "")
        for change in changes
        if change.kind == "delete"
    ]


def has_effect(preview: Preview) -> bool:
    """Return True unless all steps are switched off or skipped."""
    return any(instance.state == "ready" for instance in preview.instances)
