"""Plans that other programs propose through `mcp serve`: shown one at a time, each when nothing else waits for the person."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Literal

from obsidian_agent.dataclass import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from obsidian_agent.agent.events import ExecutionResult
    from obsidian_agent.integrations.proposals import ClientProposal, Outcome

MOST_WAITING: Final = 8
"""More proposals than this are turned away until the person has decided some."""


@dataclass(frozen=True, slots=True, eq=False)
class ClientPlan:
    """A proposed plan, and the decision that its client waits for."""

    proposal: ClientProposal
    outcome: asyncio.Future[Outcome]

    def decide(
        self,
        status: Literal["applied", "failed", "refused"],
        message: str,
        run_id: str | None = None,
    ) -> None:
        """Tell the client; what is told first counts."""
        from obsidian_agent.integrations.proposals import Outcome

        if not self.outcome.done():
            self.outcome.set_result(Outcome(status, message, run_id))

    def applied(self, approved: Mapping[str, Any], result: ExecutionResult) -> None:
        """Tell the client how the run went, and nothing of what is in notes."""
        changed = (
            " with changes" if approved.get("steps") != self.proposal.plan.get("steps") else ""
        )
        if result.success:
            self.decide(
                "applied",
                f"The person approved the plan{changed}, and it was carried out.",
                result.run_id,
            )
        else:
            self.decide(
                "failed",
                f"The person approved the plan{changed}, but the run did not succeed.",
                result.run_id,
            )


@dataclass(slots=True)
class Proposals:
    """Those that wait. `ready`: whether one may be shown now; `show` shows it."""

    ready: Callable[[], bool]
    show: Callable[[ClientPlan], None]
    _waiting: list[ClientPlan] = field(default_factory=list)

    async def take(self, proposal: ClientProposal) -> Outcome:
        """Show a plan as soon as may be, and wait for the decision. Cancelled before it was shown, it is taken back."""
        if len(self._waiting) >= MOST_WAITING:
            from obsidian_agent.integrations.proposals import Outcome

            return Outcome("busy", f"{MOST_WAITING} plans wait for the person already.")
        plan = ClientPlan(proposal, asyncio.get_running_loop().create_future())
        self._waiting.append(plan)
        self.show_next()
        try:
            return await plan.outcome
        finally:
            if plan in self._waiting:
                self._waiting.remove(plan)

    def show_next(self) -> None:
        """Something has come to an end: show the next one if it may be."""
        if self._waiting and self.ready():
            self.show(self._waiting.pop(0))
