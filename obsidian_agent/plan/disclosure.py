"""Detection of `share_deny` text that a plan would copy to where models may read it.

The plan is dry-run a second time without that text: the plan of a model or another agent without
the denied notes, a plan of the user with empty notes. Any change at a shared path that differs
depends on denied text.
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
"""A function that runs the same plan over another view and context."""


def with_disclosures(ready: Preview, policy: Policy, view: VaultView, dry_run: DryRun) -> Preview:
    """Return the preview with a flag for each shared path that would receive denied text.

    A model's plan that needs denied notes is invalid. A preview over a view that already hides them
    stays unchanged.
    """
    deny = policy.sharing.deny
    if not deny or ready.errors or isinstance(view, FilteredView):
        return ready
    if not policy.agent and not ready.change_set.changes:
        return ready
    kind = FilteredView if policy.agent else TextlessView
    without_text = kind(view, deny.cover, view.real)
    other = dry_run(without_text, _without_selection(ready.context, without_text))
    if policy.agent and other.errors:
        return replace(ready, errors=tuple(map(_hidden, other.errors)), plan_hash=None)
    flags = {flag.path: flag for flag in _flags(ready, other, without_text.is_hidden)}
    if not flags:
        return ready
    return replace(
        ready,
        flags=(*ready.flags, *flags.values()),
        approval=Verdict("ask", "copying text of notes in share_deny always needs approval"),
    )


def _without_selection(context: RunContext, without_text: FilteredView) -> RunContext:
    if context.active_file is None or not without_text.is_hidden(context.active_file):
        return context
    selection = context.selection
    if selection is not None:
        selection = Selection("", selection.start, selection.end)
    return replace(context, selection=selection)


def _hidden(problem: Problem) -> Problem:
    message = f"The plan of a model needs notes that share_deny hides: {problem.message}"
    return replace(problem, code="PERMISSION_DENIED", message=message)


def _flags(
    ready: Preview, other: DryRunOutcome, hidden: Callable[[VaultPath], bool]
) -> Iterator[Flag]:
    same = {_outcome(change) for change in other.changes}
    for change in ready.change_set.changes:
        path = change.new_path or change.path
        if change.kind != "delete" and not hidden(path) and _outcome(change) not in same:
            detail = "It receives text of notes in share_deny, and models may read it here."
            yield Flag("deniedText", detail, path.text)
    for owned in ready.change_set.operations:
        if isinstance(owned.operation, Move) and not owned.operation.trash:
            yield from _moved_out(owned.operation, hidden)


def _outcome(change: NetChange) -> tuple[VaultPath, VaultPath | None, bytes | None]:
    return change.path, change.new_path, change.content


def _moved_out(move: Move, hidden: Callable[[VaultPath], bool]) -> Iterator[Flag]:
    """Yield a flag for each file that `share_deny` covers at its old path only."""
    names = [""]
    if move.folder and move.inventory is not None:
        names = [item.name for item in move.inventory.items if item.kind == "file"]
    for name in names:
        old, new = _at(move.path, name), _at(move.new_path, name)
        if hidden(old) and not hidden(new):
            detail = f"share_deny covers {old}, but not this path. Models may read it here."
            yield Flag("deniedText", detail, new.text)


def _at(path: VaultPath, name: str) -> VaultPath:
    for part in filter(None, name.split("/")):
        path = from_disk(path, part)
    return path
