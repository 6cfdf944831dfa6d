"""Detection of plans that depend on notes in `share_deny`, or change them for a model.

The plan is dry-run a second time without these notes: the plan of a model or another agent as if
they did not exist, a plan of the user as if they were empty. A difference at a shared path depends
on denied notes. For a model a missing change counts too, because it tells as much as an added one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from msgspec.structs import replace

from obsidian_agent.errors import PathRefused, Problem
from obsidian_agent.plan.policy import Policy
from obsidian_agent.plan.result import Flag, Instance, Preview, Verdict
from obsidian_agent.tools.core.tool import RunContext
from obsidian_agent.tools.core.visible_context import visible_context
from obsidian_agent.vault.paths.path import PathUse, VaultPath, from_disk, parse
from obsidian_agent.vault.views.changes import Move, NetChange
from obsidian_agent.vault.views.filtered import FilteredView, TextlessView
from obsidian_agent.vault.views.view import VaultView

IsHidden = Callable[[VaultPath], bool]
"""Returns whether models may not know a path."""


class DryRunOutcome(NamedTuple):
    """The net changes of a plan, and its calls."""

    changes: tuple[NetChange, ...]
    instances: tuple[Instance, ...]


DryRun = Callable[[VaultView, RunContext], DryRunOutcome]
"""A function that runs the same plan over another view and context."""


def with_disclosures(ready: Preview, policy: Policy, view: VaultView, dry_run: DryRun) -> Preview:
    """Return the preview with a flag for each path where denied notes decide what happens.

    A model's plan is invalid if a step fails only because it may not know such a note, and each
    change to one is flagged. A preview over a view that already hides them stays unchanged.
    """
    deny = policy.sharing.deny
    if not deny or ready.errors or isinstance(view, FilteredView):
        return ready
    if not policy.agent and not ready.change_set.changes:
        return ready
    kind = FilteredView if policy.agent else TextlessView
    without = kind(view, deny.cover)
    other = dry_run(without, visible_context(ready.context, without))
    flags_of = _flags_for_user
    if policy.agent:
        flags_of = _flags_for_model
        refusals = tuple(_refusals(ready.instances, other.instances, without.is_hidden))
        if refusals:
            return replace(ready, errors=refusals, plan_hash=None)
    flags = {flag.path: flag for flag in flags_of(ready, other, without.is_hidden)}
    if not flags:
        return ready
    return replace(
        ready,
        flags=(*ready.flags, *flags.values()),
        approval=Verdict("ask", "a plan that depends on notes in share_deny needs approval"),
    )


def _refusals(
    real: Iterable[Instance], other: Iterable[Instance], hidden: IsHidden
) -> Iterator[Problem]:
    """Yield a refusal for each step that fails only without the denied notes.

    `onError: skip` does not matter.
    """
    failures = Counter((item.step_id, item.problem.code) for item in real if item.problem)
    refused = set[str]()
    for item in other:
        if item.problem is None or item.step_id in refused:
            continue
        failure = (item.step_id, item.problem.code)
        if failures[failure]:
            failures[failure] -= 1
            continue
        refused.add(item.step_id)
        yield _refusal(item.problem, hidden)


def _refusal(problem: Problem, hidden: IsHidden) -> Problem:
    note = "notes that share_deny hides from models"
    with suppress(PathRefused):
        if problem.file is not None and hidden(parse(problem.file, PathUse.READ)):
            note = f"“{problem.file}”, which share_deny hides from models"
    message = f"The model's plan uses {note}. Change the rule, or do this step yourself."
    return replace(problem, code="PERMISSION_DENIED", message=message, plain=None)


def _flags_for_user(ready: Preview, other: DryRunOutcome, hidden: IsHidden) -> Iterator[Flag]:
    changes = (change for change in ready.change_set.changes if change.kind != "delete")
    shared = [change for change in changes if not hidden(change.new_path or change.path)]
    yield from _different(shared, other.changes, hidden)
    for move in _moves(ready):
        for old, new in _moved_files(move):
            if not move.trash and hidden(old) and not hidden(new):
                detail = f"share_deny covers {old}, but not this path. Models may read it here."
                yield Flag("deniedText", detail, new.text)


def _flags_for_model(ready: Preview, other: DryRunOutcome, hidden: IsHidden) -> Iterator[Flag]:
    changes = ready.change_set.changes
    yield from _different(changes, other.changes, hidden)
    yield from _different(other.changes, changes, hidden)
    paths = [path for change in changes for path in _paths(change)]
    paths += [old for move in _moves(ready) for old, _ in _moved_files(move)]
    for path in paths:
        if hidden(path):
            detail = "share_deny hides it from models, and a model's plan changes it."
            yield Flag("deniedText", detail, path.text)


def _different(
    changes: Iterable[NetChange], others: Iterable[NetChange], hidden: IsHidden
) -> Iterator[Flag]:
    """Yield a flag for each change at a shared path that is not among `others`."""
    same = set(map(_outcome, others))
    for change in changes:
        path = next((path for path in _paths(change) if not hidden(path)), None)
        if path is not None and _outcome(change) not in same:
            detail = "Notes in share_deny decide what happens here, and models may read it."
            yield Flag("deniedText", detail, path.text)


def _outcome(change: NetChange) -> tuple[str, VaultPath, VaultPath | None, bytes | None]:
    return change.kind, change.path, change.new_path, change.content


def _paths(change: NetChange) -> Iterator[VaultPath]:
    """Yield the new path of a change, if it has one, and the old one."""
    if change.new_path is not None:
        yield change.new_path
    yield change.path


def _moves(ready: Preview) -> Sequence[Move]:
    operations = (owned.operation for owned in ready.change_set.operations)
    return [operation for operation in operations if isinstance(operation, Move)]


def _moved_files(move: Move) -> Iterator[tuple[VaultPath, VaultPath]]:
    """Yield the old and the new path of each file."""
    names = [""]
    if move.folder and move.inventory is not None:
        names = [item.name for item in move.inventory.items if item.kind == "file"]
    for name in names:
        yield _at(move.path, name), _at(move.new_path, name)


def _at(path: VaultPath, name: str) -> VaultPath:
    for part in filter(None, name.split("/")):
        path = from_disk(path, part)
    return path
