"""The rows of the plan pane for a preview.

The order is errors, warnings, assumptions, steps, then the changes with deletions first.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from obsidian_agent import terminal_text
from obsidian_agent.terminal_text import counted
from obsidian_agent.tui.change_groups import (
    KIND_WORDS,
    KINDS,
    Group,
    Kind,
    LineEdit,
    grouped,
    kinds_of,
)

if TYPE_CHECKING:
    from obsidian_agent.errors import Problem
    from obsidian_agent.plan.left_out import LeftOut
    from obsidian_agent.plan.model import ActionPlan, Step
    from obsidian_agent.plan.result import Flag, Preview
    from obsidian_agent.vault.views.changes import ChangeSet, NetChange
    from obsidian_agent.vault.views.diff import TextEdit

FLAG_WORDS = {
    "remoteUrl": "loads from the internet",
    "runsAsCode": "runs as code in Obsidian",
    "shrink": "loses much of its text",
    "manyFiles": "many files",
    "notNamed": "not mentioned in your message",
    "opaque": "has no preview",
    "riskRaised": "riskier than the plan states",
    "deniedText": "depends on notes that are never shared",
}
_LISTED_REASONS = 20
_LISTED_REMARKS = 200
_NAMED = 3
"""Paths of a difference between two plans that are named."""


class RemarkRow(Struct, frozen=True):
    """An error, warning, flag or assumption."""

    kind: str
    text: str
    detail: str
    is_inside: bool = False
    """True in an opened fold."""


class RemarksRow(Struct, frozen=True, kw_only=True):
    """The fold of several remarks of one kind."""

    key: str
    kind: str
    text: str
    detail: str
    is_open: bool


class StepRow(Struct, frozen=True, kw_only=True):
    """A step of the original plan with its effect in the preview."""

    step: Step
    number: int
    is_on: bool
    effect: str
    problems: str
    """The numbers of its calls that fail or are skipped."""
    has_failed: bool


class GroupRow(Struct, frozen=True):
    """The fold of several changes."""

    group: Group
    is_open: bool
    left_out: int = 0
    """The number of changes that are left out."""


class ChangeRow(Struct, frozen=True, kw_only=True):
    """A file or folder that changes."""

    change: NetChange
    kind: Kind
    edit: LineEdit | None = None
    """The changed lines, once they are counted."""
    is_inside: bool = False
    """True in an opened fold."""
    is_left_out: bool = False
    parts_left_out: int = 0
    """The number of its edits that are left out."""


class PartRow(Struct, frozen=True):
    """One edit of an opened file."""

    change: NetChange
    part: TextEdit
    is_left_out: bool


PlanRow = RemarkRow | RemarksRow | StepRow | GroupRow | ChangeRow | PartRow


class PlanState(Struct, frozen=True, kw_only=True):
    """A preview and what is excluded from it.

    `plan` has all steps, also those with an id in `disabled`. A preview that is not `complete`
    cannot be approved.
    """

    preview: Preview
    plan: ActionPlan
    disabled: frozenset[str] = frozenset()
    left_out: LeftOut | None = None
    complete: bool = True


class PlanView(Struct, frozen=True, kw_only=True):
    """A preview with the state of its list: open folds, edits, exclusions and filter."""

    state: PlanState
    toggled: frozenset[str] = frozenset()
    """The keys of the folds that the user opened."""
    edits: Mapping[str, LineEdit] | None = None
    """The edits of files by their paths, None until they are known."""
    excluded: Mapping[str, NetChange] = field(default_factory=dict)
    """The files that are left out, and those of which edits are, as they would be changed."""
    parts: Mapping[str, Sequence[TextEdit]] = field(default_factory=dict)
    """The edits of opened files, which can be left out one by one."""
    query: str = ""
    """Words that the paths of the listed changes contain."""

    def is_left_out(self, change: NetChange) -> bool:
        """Return True if a whole file is left out."""
        left_out = self.state.left_out
        return left_out is not None and change.path.text in left_out.files

    def parts_left_out(self, change: NetChange) -> frozenset[TextEdit]:
        """Return the edits of a file that are left out."""
        left_out = self.state.left_out
        return frozenset() if left_out is None else left_out.edits_in(change.path.text)


def build_rows(view: PlanView) -> list[PlanRow | str]:
    """Return all rows."""
    preview, plan = view.state.preview, view.state.plan
    rows: list[PlanRow | str] = []
    if not view.query:
        errors = [(problem.code, _problem_row("error", problem), "") for problem in preview.errors]
        notices = [
            *((flag.kind, _flag_row(flag), FLAG_WORDS[flag.kind]) for flag in preview.flags),
            *((problem.code, _problem_row("warning", problem), "") for problem in preview.warnings),
        ]
        assumptions = [
            (text, RemarkRow("assumption", _short(text), terminal_text.block(text)), "")
            for text in plan.assumptions
        ]
        rows += _section("Errors", errors, view.toggled)
        rows += _section("Warnings", notices, view.toggled)
        rows += _section("Assumptions", assumptions, view.toggled)
        if plan.steps:
            rows.append(f"Steps ({len(plan.steps)})")
            rows += _step_rows(view)
    return [*rows, *_change_rows(view)]


def _section(
    title: str, remarks: Sequence[tuple[str, RemarkRow, str]], toggled: frozenset[str]
) -> Iterator[PlanRow | str]:
    """Yield the rows of remarks, given with a key and words for all that have this key."""
    if not remarks:
        return
    yield f"{title} ({len(remarks):,})"
    kinds: dict[str, list[tuple[RemarkRow, str]]] = {}
    for key, row, words in remarks:
        kinds.setdefault(key, []).append((row, words))
    for kind, members in kinds.items():
        first, words = members[0]
        if len(members) == 1:
            yield first
            continue
        key = f"{title} {kind}"
        is_open = key in toggled
        text = f"{counted(len(members), 'file')}: {words}" if words else first.text
        more = "" if words else f"  and {len(members) - 1:,} more like it"
        detail = "\n".join(row.text for row, _ in members[:_LISTED_REMARKS])
        yield RemarksRow(key=key, kind=first.kind, text=text + more, detail=detail, is_open=is_open)
        if is_open:
            for row, _ in members:
                yield RemarkRow(row.kind, row.text, row.detail, is_inside=True)


def _short(text: str) -> str:
    return terminal_text.shortened(text, 300)


def _problem_row(kind: str, problem: Problem) -> RemarkRow:
    where = terminal_text.shortened(problem.file or "", 120)
    text = _short(problem.sentence)
    detail = "\n".join(part for part in (terminal_text.block(problem.sentence), where) if part)
    return RemarkRow(kind, f"{text}  {where}" if where and where not in text else text, detail)


def _flag_row(flag: Flag) -> RemarkRow:
    if flag.path is None:
        return RemarkRow("notice", _short(flag.detail), terminal_text.block(flag.detail))
    path = terminal_text.line(flag.path)
    return RemarkRow(
        "notice",
        f"{path}: {terminal_text.shortened(flag.detail, 200)}",
        f"{path}:\n{terminal_text.block(flag.detail)}",
    )


# --- steps ----------------------------------------------------------------------------------------


def _step_rows(view: PlanView) -> Iterator[StepRow]:
    preview = view.state.preview
    effects = _effects_by_step(preview)
    unchanged = _unchanged_by_step(preview)
    for number, step in enumerate(view.state.plan.steps, 1):
        states = Counter(
            instance.state for instance in preview.instances if instance.step_id == step.id
        )
        counts = effects[step.id]
        kinds = sorted(counts, key=lambda kind: (kind == "mkdir", KINDS.index(kind)))
        parts = [kind_count(kind, counts[kind]) for kind in kinds]
        if parts and unchanged[step.id]:
            parts.append(f"{unchanged[step.id]:,} unchanged")
        effect = ", ".join(parts)
        problems = []
        if states["failed"]:
            problems.append(f"{states['failed']:,} not possible")
        if states["skipped"]:
            problems.append(f"{states['skipped']:,} skipped")
        yield StepRow(
            step=step,
            number=number,
            is_on=step.id not in view.state.disabled,
            effect=effect or _reads(preview.outputs.get(step.id)),
            problems=", ".join(problems),
            has_failed=bool(states["failed"]),
        )


def _effects_by_step(preview: Preview) -> defaultdict[str, Counter[Kind]]:
    """Return the number of changes of each kind that a step makes, alone or with others."""
    from obsidian_agent.vault.views.changes import MakeDir, Move

    effects: defaultdict[str, Counter[Kind]] = defaultdict(Counter)
    movers: dict[int, str] = {}
    # The first screen of a preview has changes of an instance that is not complete yet.
    step_of = {index: instance.step_id for index, instance in enumerate(preview.instances)}
    for owned in preview.change_set.operations:
        step = step_of.get(owned.instance, "")
        match owned.operation:
            case Move(trash=True):
                effects[step]["delete"] += 1
            case Move():
                effects[step]["rename"] += 1
                movers[owned.instance] = step
            case MakeDir():
                effects[step]["mkdir"] += 1
    for change in preview.change_set.changes:
        if change.content is None:
            continue
        steps = {step_of.get(writer, "") for writer in change.writers}
        linking = {movers[writer] for writer in change.writers if writer in movers}
        for step in steps:
            kind: Kind = "create" if change.kind == "create" else "modify"
            effects[step]["links" if step in linking else kind] += 1
    return effects


def _unchanged_by_step(preview: Preview) -> Counter[str]:
    """Return the number of instances of a step that run and change nothing."""
    change_set = preview.change_set
    changing = {owned.instance for owned in change_set.operations}
    changing |= {writer for change in change_set.changes for writer in change.writers}
    return Counter(
        instance.step_id
        for index, instance in enumerate(preview.instances)
        if instance.state == "ready" and index not in changing
    )


def _reads(output: object) -> str:
    """Return the number of notes or items in the output of a step."""
    if not isinstance(output, Mapping):
        return ""
    for name, noun in (("files", "note"), ("items", "item")):
        if isinstance(output.get(name), list):
            return counted(len(output[name]), noun)
    return ""


def step_detail(step: Step, preview: Preview) -> str:
    """Return the reasons why instances of a step do not run, then its tool and arguments."""
    reasons = [
        f"{instance.name}: {instance.reason}"
        for instance in preview.instances
        if instance.step_id == step.id and instance.reason
    ]
    hidden = len(reasons) - _LISTED_REASONS
    more = [f"… {hidden:,} more"] if hidden > 0 else []
    lines = [f"Tool   {step.tool}"]
    if step.foreach is not None:
        source = step.foreach.from_
        items = source if isinstance(source, str) else counted(len(source), "value")
        lines.append(f"For each {step.foreach.item_name} of {items}")
    lines += [f"{name:<6} {_argument(value)}" for name, value in step.args.items()]
    top = [*reasons[:_LISTED_REASONS], *more, ""] if reasons else []
    return terminal_text.block("\n".join([*top, *lines]))


def _argument(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# --- changes --------------------------------------------------------------------------------------


def _change_rows(view: PlanView) -> Iterator[PlanRow | str]:
    groups = visible_groups(view)
    count = sum(len(group.changes) for group in groups)
    if view.query:
        yield f"Files that match “{_short(view.query)}” ({count:,})"
    elif count:
        left = sum(view.is_left_out(change) for group in groups for change in group.changes)
        more = f", {left:,} left out" if left else ""
        yield f"Files ({count - left:,}{more})"
    for group in groups:
        is_open = group_key(group) in view.toggled
        if group.is_folded:
            left = sum(view.is_left_out(change) for change in group.changes)
            yield GroupRow(group, is_open, left)
        if is_open or not group.is_folded:
            for change in group.changes:
                yield from _file_rows(view, group, change)


def _file_rows(view: PlanView, group: Group, change: NetChange) -> Iterator[PlanRow | str]:
    """Yield the row of a file, and those of its edits if it is opened."""
    path = change.path.text
    parts_left_out = view.parts_left_out(change)
    yield ChangeRow(
        change=change,
        kind=group.kind,
        edit=(view.edits or {}).get(path),
        is_inside=group.is_folded,
        is_left_out=view.is_left_out(change),
        parts_left_out=len(parts_left_out),
    )
    if path in view.toggled:
        for part in view.parts.get(path, ()):
            is_left_out = part in parts_left_out or view.is_left_out(change)
            yield PartRow(change, part, is_left_out)


def group_key(group: Group) -> str:
    """Return the key of the fold of a group."""
    return f"{group.kind} {group.key}"


def visible_groups(view: PlanView) -> list[Group]:
    """Return the groups of the changes that match the query, in the order of the rows.

    They include the changes that are left out.
    """
    words = view.query.casefold().split()
    change_set = view.state.preview.change_set
    known = {change.path.text for change in change_set.changes}
    changes = [
        *change_set.changes,
        *(change for path, change in view.excluded.items() if path not in known),
    ]
    changes.sort(key=lambda change: change.path.text)
    matching = [change for change in changes if _matches(change, words)]
    return grouped(matching, kinds_of(change_set), view.edits)


def _matches(change: NetChange, words: Sequence[str]) -> bool:
    paths = f"{change.path.text}\n{change.new_path.text if change.new_path else ''}".casefold()
    return all(word in paths for word in words)


def change_counts(change_set: ChangeSet) -> list[tuple[Kind, str]]:
    """Return the number of changes per kind as (kind, text), the most dangerous kind first.

    An example is `("delete", "3 deleted")`.
    """
    numbers = Counter(map(kinds_of(change_set), change_set.changes))
    return [(kind, kind_count(kind, numbers[kind])) for kind in KINDS if numbers[kind]]


def kind_count(kind: Kind, count: int) -> str:
    """Return a number of changes in words, such as “3 deleted”."""
    if kind == "links":
        return f"links in {counted(count, 'file')}"
    plural = "s" if kind == "mkdir" and count != 1 else ""
    return f"{count:,} {KIND_WORDS[kind]}{plural}"


def describe_difference(before: ChangeSet, after: ChangeSet) -> str:
    """Describe in one line what a plan changes that another one did not, and the opposite."""
    old = {change.path.text: change for change in before.changes if change.kind != "mkdir"}
    new = {change.path.text: change for change in after.changes if change.kind != "mkdir"}
    parts = [
        _named("more", [path for path in new if path not in old]),
        _named("fewer", [path for path in old if path not in new]),
        _named(
            "different",
            [path for path in new if path in old and _effect(new[path]) != _effect(old[path])],
        ),
    ]
    described = "; ".join(part for part in parts if part)
    return f"Compared with the previous plan: {described or 'no other change'}."


def _effect(change: NetChange) -> tuple[object, ...]:
    return (change.kind, change.new_path, change.content)


def _named(word: str, paths: Sequence[str]) -> str:
    if not paths:
        return ""
    names = ", ".join(terminal_text.shortened(path, 60) for path in paths[:_NAMED])
    more = f", … {len(paths) - _NAMED:,} more" if len(paths) > _NAMED else ""
    return f"{len(paths):,} {word} ({names}{more})"


def deletions(changes: Iterable[NetChange]) -> list[str]:
    """Return the deleted paths, quoted and safe to display, with the file counts of folders."""
    return [
        f"“{terminal_text.line(change.path.text)}”"
        + (f" with {counted(change.files, 'file')}" if change.files else "")
        for change in changes
        if change.kind == "delete"
    ]


def reason_without_effect(preview: Preview) -> str:
    """Return why a plan would change nothing and show nothing; "" if it does either."""
    ready = [instance for instance in preview.instances if instance.state == "ready"]
    if not ready:
        return "all steps are off or skipped"
    if (
        preview.change_set.changes
        or preview.risk.value == "read-only"
        or any(call.opaque or call.tool == "workspace.openFile" for call in ready)
    ):
        return ""
    if preview.left_out:
        return "all changes are left out"
    called = {instance.step_id for instance in preview.instances} | preview.excluded
    if any(step.id not in called for step in preview.plan.steps):
        return "its steps find nothing to work on"
    return "the files already match the plan"
