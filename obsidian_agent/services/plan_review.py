"""Waiting plans, previewed again before the user decides."""

from __future__ import annotations

import threading
from datetime import datetime
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from obsidian_agent.errors import PlanError, Problem
from obsidian_agent.plan.parameters import MissingInput
from obsidian_agent.plan.result import Preview
from obsidian_agent.services.plans import Plans, PreviewOptions
from obsidian_agent.services.waiting_plans import ProposedResult, WaitingPlan, WaitingPlans
from obsidian_agent.terminal_text import counted
from obsidian_agent.vault.views.changes import NetChange, content_hash

MAX_EFFECTS: Final = 1_000
"""Changes that are stored with a waiting plan."""
MAX_NAMES: Final = 3
"""Paths that a difference names."""


class PlanReview(Struct, frozen=True):
    """A waiting plan as it would run now. Without a `preview`, `problem` says why there is none."""

    plan: WaitingPlan
    preview: Preview | None = None
    problem: Problem | None = None

    @property
    def changes(self) -> int | None:
        """The number of changed paths, as previewed now or when the plan was proposed."""
        return self.plan.changes if self.preview is None else len(self.preview.change_set.changes)

    @property
    def is_stale(self) -> bool:
        """True if the plan would now do something else than when it was proposed."""
        if self.plan.plan_hash is None:
            return False
        return self.preview is None or self.preview.plan_hash != self.plan.plan_hash

    @property
    def differences(self) -> tuple[str, ...]:
        """The differences from what the plan did when it was proposed, in lines."""
        if not self.is_stale or self.preview is None:
            return ()
        if not self.plan.effects:
            return ("The vault changed since the plan was proposed.",)
        earlier = dict(map(_path_and_result, self.plan.effects))
        now = dict(map(_path_and_result, effects_of(self.preview)))
        lines = [
            *_listed("no longer changes", sorted(earlier.keys() - now.keys())),
            *_listed("now also changes", sorted(now.keys() - earlier.keys())),
            *_listed(
                "now has another result for",
                sorted(path for path in earlier.keys() & now.keys() if earlier[path] != now[path]),
            ),
        ]
        return tuple(lines) or ("The vault changed since the plan was proposed.",)

    @property
    def can_run_unseen(self) -> bool:
        """True if the plan does exactly what its proposal said, and deletes and leaks nothing."""
        preview = self.preview
        return (
            preview is not None
            and preview.valid
            and not preview.deferred
            and not preview.discloses
            and self.plan.plan_hash == preview.plan_hash
        )


def review(plan: WaitingPlan, plans: Plans) -> PlanReview:
    """Preview a waiting plan again. Blocks."""
    try:
        preview = plans.dry_run(plan.plan, options=PreviewOptions(agent=plan.source))
    except PlanError as error:
        return PlanReview(plan, problem=error.problem())
    except MissingInput as error:
        return PlanReview(plan, problem=Problem("NEEDS_INPUT", error.message))
    return PlanReview(plan, preview, preview.errors[0] if preview.errors else None)


def contains(preview: Preview, plan: WaitingPlan, plans: Plans) -> bool:
    """Return whether a preview does everything that a waiting plan would do now. Blocks.

    A plan that would do nothing now is contained; one that cannot run now is not.
    """
    if len(preview.change_set.changes) > MAX_EFFECTS:
        return False
    now = review(plan, plans)
    if now.preview is None or now.problem is not None:
        return False
    return set(effects_of(preview)).issuperset(effects_of(now.preview))


def apply_unchanged(waiting: WaitingPlans, plans: Plans) -> tuple[list[WaitingPlan], int]:
    """Run the waiting plans that do exactly what their proposals said, the oldest first.

    Each is previewed after the ones before it ran. Return the plans that ran, and the number of
    those that still wait. Blocks.
    """
    applied: list[WaitingPlan] = []
    for plan in reversed(waiting.all()):
        current = review(plan, plans)
        if not current.can_run_unseen or current.preview is None:
            continue
        if plans.apply(current.preview, lambda event: None, threading.Event()).success:
            waiting.drop(plan.id)
            applied.append(plan)
    return applied, len(waiting.all())


def apply_reviewed(row: PlanReview, waiting: WaitingPlans, plans: Plans) -> Problem | None:
    """Run exactly the preview that the user approved. Return why it failed. Blocks.

    A plan that was decided on elsewhere meanwhile does not run.
    """
    assert row.preview is not None
    if waiting.find(row.plan.id) is None:
        return Problem("PLAN_NOT_FOUND", "The plan was already approved or dropped elsewhere.")
    result = plans.apply(row.preview, lambda event: None, threading.Event())
    if not result.success:
        return result.errors[0] if result.errors else Problem("CONFLICT", "The run stopped.")
    waiting.drop(row.plan.id)
    return None


def put_aside(
    waiting: WaitingPlans,
    preview: Preview,
    *,
    source: str,
    now: datetime,
    is_whole: bool = True,
) -> WaitingPlan:
    """Store a plan with its values, to be decided on later. Raises OSError.

    Unless it `is_whole`, parts of the preview are left out, and it is not compared with it later.
    """
    result = result_of(preview)
    if not is_whole:
        result = replace(result, plan_hash=None)
    return waiting.add(document_with_values(preview), source=source, now=now, result=result)


def document_with_values(preview: Preview) -> dict[str, Any]:
    """Return the plan of a preview with its values as defaults."""
    document = preview.approved_plan.to_json()
    for name, parameter in document.get("parameters", {}).items():
        if name in preview.context.params:
            parameter["default"] = preview.context.params[name]
    return document


def result_of(preview: Preview) -> ProposedResult:
    """Return the result of a plan as it is stored with one that waits."""
    return ProposedResult(preview.plan_hash, len(preview.change_set.changes), effects_of(preview))


def effects_of(preview: Preview) -> tuple[str, ...]:
    """Return a line for each change of a preview: its path, and the hash of its result."""
    return tuple(map(_effect, preview.change_set.changes[:MAX_EFFECTS]))


def _effect(change: NetChange) -> str:
    new_path = "" if change.new_path is None else change.new_path.text
    content = "" if change.content is None else content_hash(change.content)[:16]
    return f"{change.path.text}\t{change.kind} {new_path} {content}"


def _path_and_result(effect: str) -> tuple[str, str]:
    path, _, result = effect.partition("\t")
    return path, result


def _listed(what: str, paths: list[str]) -> list[str]:
    if not paths:
        return []
    names = ", ".join(paths[:MAX_NAMES])
    more = f" and {counted(len(paths) - MAX_NAMES, 'more path')}" if len(paths) > MAX_NAMES else ""
    return [f"The plan {what} {names}{more}."]
