"""Which step needs which, and the order that follows from it."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Set

from obsidian_agent.errors import PlanError, Problem
from obsidian_agent.plan.compiled import CompiledStep
from obsidian_agent.plan.model import ActionPlan, Step


def edges(plan: ActionPlan, compiled: Mapping[str, CompiledStep]) -> dict[str, set[str]]:
    """For each step the ids of the steps that it needs: named in `dependsOn` or by a reference to an output or a captured value.

    Ids that no step has are left out; validation reports them.
    """
    captured = {step.capture_as: step.id for step in plan.steps if step.capture_as is not None}
    ids = {step.id for step in plan.steps}
    needed: dict[str, set[str]] = {}
    for step in plan.steps:
        found = set(step.depends_on)
        for reference in compiled[step.id].references if step.id in compiled else ():
            if reference.kind == "steps":
                found.add(reference.head)
            elif reference.kind == "vars" and reference.head in captured:
                found.add(captured[reference.head])
        needed[step.id] = found & ids
    return needed


def execution_order(plan: ActionPlan, needed: Mapping[str, Set[str]]) -> list[Step]:
    """The steps so that each comes after what it needs, ties as written; ids must be unique.

    PlanError DEPENDENCY_CYCLE (message `a -> b -> a`) if there is no such order.
    """
    place = {step.id: index for index, step in enumerate(plan.steps)}
    waiting = {step.id: len(needed[step.id]) for step in plan.steps}
    followers: dict[str, list[str]] = {step.id: [] for step in plan.steps}
    for step in plan.steps:
        for earlier in needed[step.id]:
            followers[earlier].append(step.id)
    ready = [place[step_id] for step_id, count in waiting.items() if count == 0]
    order: list[Step] = []
    while ready:
        step = plan.steps[heapq.heappop(ready)]
        order.append(step)
        for follower in followers[step.id]:
            waiting[follower] -= 1
            if waiting[follower] == 0:
                heapq.heappush(ready, place[follower])
    if len(order) < len(plan.steps):
        cycle = _cycle([step.id for step in plan.steps if waiting[step.id] > 0], needed)
        message = " -> ".join(cycle)
        raise PlanError(message, problems=[Problem("DEPENDENCY_CYCLE", message, cycle[0])])
    return order


def _cycle(blocked: list[str], needed: Mapping[str, Set[str]]) -> list[str]:
    """One cycle among steps that can never be ready, from its first written step back to itself."""
    place = {step_id: index for index, step_id in enumerate(blocked)}
    seen: dict[str, int] = {}
    path: list[str] = []
    current = blocked[0]
    while current not in seen:
        seen[current] = len(path)
        path.append(current)
        current = min((each for each in needed[current] if each in place), key=place.__getitem__)
    cycle = path[seen[current] :]
    first = cycle.index(min(cycle, key=place.__getitem__))
    cycle = cycle[first:] + cycle[:first]
    return [*cycle, cycle[0]]
