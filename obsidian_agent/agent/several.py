"""A message that holds several instructions: each is planned over what those before it would make, and the plans are joined.

When every clause is sure, so is the whole. Where a clause may mean several things, the ways to read the whole are offered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from obsidian_agent.agent.compound import after, implied, joined, pointed
from obsidian_agent.agent.events import Candidate, NeedsInput, PlanReady, TurnEvent
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.plan.result import Preview
from obsidian_agent.vault.view import VaultView

MOST_WAYS = 3

Decide = Callable[[str, VaultView], TurnEvent]
"""What becomes of one clause over a vault."""

Try = Callable[[ActionPlan, VaultView], Preview | None]
"""The dry run of a plan whose parameters all have values; None when it cannot run."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to read the clauses so far. `done` is the last one's preview, `view` the vault as they would leave it."""

    view: VaultView
    plans: tuple[ActionPlan, ...] = ()
    done: Preview | None = None
    sure: bool = True
    score: float = 1.0


def several(clauses: Sequence[str], view: VaultView, decide: Decide, dry_run: Try, now_ms: float) -> TurnEvent | None:
    """The plan of all clauses, or the ways to choose from; None when one of the clauses is not understood."""
    ways = [Way(view)]
    for clause in clauses:
        ways = list(islice((further for way in ways for further in _further(clause, way, decide, dry_run, now_ms)), MOST_WAYS))
    if not ways:
        return None
    if len(ways) == 1 and ways[0].sure:
        return PlanReady(joined(ways[0].plans))
    candidates = tuple(_candidate(way) for way in ways)
    return NeedsInput(f"I am not sure what you mean. {'Is it this?' if len(ways) == 1 else 'Which of these is it?'}", candidates)


def _further(clause: str, way: Way, decide: Decide, dry_run: Try, now_ms: float) -> Iterator[Way]:
    """The ways to go on with a clause."""
    for words in _wordings(clause, way):
        found = list(_plans(decide(words, way.view)))
        if words != clause:  # what is to be deleted must be named
            found = [each for each in found if not any(step.tool == "vault.delete" for step in each[0].steps)]
        ways = []
        for plan, sure, score in found:
            done = dry_run(plan, way.view)
            following = after(way.view, done.change_set.changes, now_ms) if done is not None else None
            if following is not None:
                ways.append(
                    replace(way, view=following, plans=(*way.plans, plan), done=done, sure=way.sure and sure, score=way.score * score)
                )
        if ways:
            yield from ways
            return


def _wordings(clause: str, way: Way) -> Iterator[str]:
    """A clause with names for its pronouns; one that needs none, and then with the note that it may leave out."""
    if way.done is None:
        yield clause
        return
    words = pointed(clause, way.done)
    if words is None:
        return
    yield words
    if words == clause and (whole := implied(clause, way.done)) is not None:
        yield whole


def _plans(event: TurnEvent) -> Iterator[tuple[ActionPlan, bool, float]]:
    match event:
        case PlanReady(plan=plan) if plan.steps:
            yield plan, True, 1.0
        case NeedsInput(candidates=candidates):
            for each in candidates:
                if each.plan is not None and each.plan.steps and not each.missing:
                    yield each.plan, False, each.score
        case _:
            return


def _candidate(way: Way) -> Candidate:
    plan = joined(way.plans)
    values = {name: declared.default for name, declared in plan.parameters.items() if declared.default is not None}
    return Candidate(plan.goal, plan, values, (), round(way.score, 3))
