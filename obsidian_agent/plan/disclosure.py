"""The text of notes that `share_deny` names, on its way to a place where models may read it.

A plan is dry-run a second time without that text: the plan of a model or another agent without the notes at all, that of the user with
empty notes. Whatever then comes out differently at a shared place depends on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from obsidian_agent.dataclass import replace
from obsidian_agent.errors import Problem
from obsidian_agent.plan.policy import Policy
from obsidian_agent.plan.result import Flag, Preview, Verdict
from obsidian_agent.tools.core.tool import RunContext, Selection
from obsidian_agent.vault.paths.path import VaultPath, from_disk
from obsidian_agent.vault.views.changes import Move, NetChange
from obsidian_agent.vault.views.filtered import FilteredView, TextlessView
from obsidian_agent.vault.views.view import VaultView


class DryRunOutcome(NamedTuple):
    """The net changes of a plan, and the errors of its steps."""

    changes: tuple[NetChange, ...]
    errors: tuple[Problem, ...]


DryRun = Callable[[VaultView, RunContext], DryRunOutcome]
"""Run the same plan over another view and context."""


def with_disclosures(ready: Preview, policy: Policy, view: VaultView, dry_run: DryRun) -> Preview:
    """Return a preview with a flag for each place that would get text which `share_deny` keeps from models.

    A plan of a model that needs such notes is not valid. A preview over a view that hides them already stays as it is.
    """
    deny = policy.sharing.deny
    if not deny or ready.errors or isinstance(view, FilteredView):
        return ready
    if not policy.agent and not ready.change_set.changes:
        return ready
    kind = FilteredView if policy.agent else TextlessView
    shown = kind(view, deny.cover, view.real)
    other = dry_run(shown, _without_selection(ready.context, shown))
    if policy.agent and other.errors:
        return replace(ready, errors=tuple(map(_hidden, other.errors)), plan_hash=None)
    flags = {flag.path: flag for flag in _flags(ready, other, shown.hidden)}
    if not flags:
        return ready
    return replace(
        ready,
        flags=(*ready.flags, *flags.values()),
        approval=Verdict("ask", "text of notes that share_deny names is always asked about"),
    )


def _without_selection(context: RunContext, shown: FilteredView) -> RunContext:
    if context.active_file is None or not shown.hidden(context.active_file):
        return context
    selection = context.selection
    if selection is not None:
        selection = Selection("", selection.start, selection.end)
    return replace(context, selection=selection)


def _hidden(problem: Problem) -> Problem:
    message = (
        f"share_deny hides notes from models that this plan of a model needs: {problem.message}"
    )
    return replace(problem, code="PERMISSION_DENIED", message=message)


def _flags(
    ready: Preview, other: DryRunOutcome, hidden: Callable[[VaultPath], bool]
) -> Iterator[Flag]:
    same = {_outcome(change) for change in other.changes}
    for change in ready.change_set.changes:
        place = change.new_path or change.path
        if change.kind != "delete" and not hidden(place) and _outcome(change) not in same:
            detail = "It gets text of notes that share_deny names. Models may read it here."
            yield Flag("deniedText", detail, place.text)
    for owned in ready.change_set.operations:
        if isinstance(owned.operation, Move) and not owned.operation.trash:
            yield from _leaving(owned.operation, hidden)


def _outcome(change: NetChange) -> tuple[VaultPath, VaultPath | None, bytes | None]:
    return change.path, change.new_path, change.content


def _leaving(move: Move, hidden: Callable[[VaultPath], bool]) -> Iterator[Flag]:
    """Yield a flag for each file that share_deny names at its old place and not at the new one."""
    names = [""]
    if move.folder and move.inventory is not None:
        names = [item.name for item in move.inventory.items if item.kind == "file"]
    for name in names:
        old, new = _at(move.path, name), _at(move.new_path, name)
        if hidden(old) and not hidden(new):
            detail = f"share_deny names {old}, and not this place. Models may read it here."
            yield Flag("deniedText", detail, new.text)


def _at(path: VaultPath, name: str) -> VaultPath:
    for part in filter(None, name.split("/")):
        path = from_disk(path, part)
    return path
