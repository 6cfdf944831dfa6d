"""What becomes of the plans that a model proposes in one turn: shown to the person, sent back a few times, or given up."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from obsidian_agent.agent.calls import ProposalCall
from obsidian_agent.agent.events import PlanningRetry, PlanReady, TurnFailed
from obsidian_agent.agent.planner import FAILED_CODE, FAILED_MESSAGE
from obsidian_agent.agent.proposals import Accepted, DryRun, Rejected, judge
from obsidian_agent.agent.round import Round, Surroundings
from obsidian_agent.errors import Problem
from obsidian_agent.plan.policy import Policy
from obsidian_agent.tools.base import Tool

MAX_CORRECTIONS: Final = 2


@dataclass(slots=True)
class Judging:
    """The plans of one turn. `dry_run` sees what the model may know of."""

    tools: Mapping[str, Tool]
    policy: Policy
    dry_run: DryRun
    around: Surroundings
    corrections: int = 0

    async def propose(self, call: ProposalCall, work: Round) -> PlanReady | TurnFailed | None:
        """A plan that was proposed by a call; None when it went back to the model."""
        verdict = await self._verdict(call.document, ())
        if isinstance(verdict, Accepted):
            work.accept(call)
            return PlanReady(verdict.plan, verdict.notes)
        work.reject(call, verdict.problems, verdict.usage)
        return self._given_up(verdict)

    async def written(self, document: object, notes: tuple[str, ...]) -> PlanReady | TurnFailed | Rejected:
        """A plan that was written down as an answer; `Rejected` is to go back to the model."""
        verdict = await self._verdict(document, notes)
        return PlanReady(verdict.plan, verdict.notes) if isinstance(verdict, Accepted) else self._given_up(verdict) or verdict

    def again(self, rejected: Rejected) -> PlanningRetry:
        """What is told when a plan goes back."""
        return PlanningRetry(self.corrections + 1, MAX_CORRECTIONS + 1, rejected.problems)

    async def _verdict(self, document: object, notes: tuple[str, ...]) -> Accepted | Rejected:
        tell_all = self.around.asker.gate.open
        return await asyncio.to_thread(judge, document, self.tools, self.policy, self.dry_run, tell_all=tell_all, notes=notes)

    def _given_up(self, verdict: Rejected) -> PlanReady | TurnFailed | None:
        """The end after too many corrections: what can be shown is shown with its problems; None while the model may try again."""
        self.corrections += 1
        if self.corrections <= MAX_CORRECTIONS:
            return None
        if verdict.plan is not None:
            return PlanReady(verdict.plan)
        return TurnFailed(Problem(FAILED_CODE, FAILED_MESSAGE), verdict.problems)
