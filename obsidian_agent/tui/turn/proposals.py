"""Plans that other programs propose through `mcp serve`, shown one at a time to an idle user."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct, field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from obsidian_agent.agent.events import ExecutionResult
    from obsidian_agent.integrations.proposals import ClientProposal, Outcome

MAX_WAITING: Final = 8
"""Number of queued proposals beyond which further ones are refused."""


class ClientPlan(Struct, frozen=True, eq=False):
    """A proposed plan, and the decision that its client waits for."""

    proposal: ClientProposal
    outcome: asyncio.Future[Outcome]
    is_connected: bool = True
    """True if the client receives the outcome; False for the author of a waiting plan."""
    remark: str = ""
    """The differences from the plan as it was proposed, in lines."""

    def decide(
        self,
        status: Literal["applied", "failed", "refused", "shown"],
        message: str,
        run_id: str | None = None,
    ) -> None:
        """Send the decision to the client; only the first one counts."""
        from obsidian_agent.integrations.proposals import Outcome

        if not self.outcome.done():
            self.outcome.set_result(Outcome(status, message, run_id))

    def report_run(
        self, approved: Mapping[str, Any], result: ExecutionResult, *, is_partial: bool
    ) -> None:
        """Send the outcome of the run to the client, without anything from notes.

        `is_partial` is True if the user left changes out.
        """
        has_edits = is_partial or approved.get("steps") != self.proposal.plan.get("steps")
        approval = f"The user approved the plan{' with changes' if has_edits else ''}"
        if result.success:
            self.decide("applied", f"{approval}, and it was applied.", result.run_id)
        else:
            self.decide("failed", f"{approval}, but the run did not succeed.", result.run_id)


class Proposals(Struct):
    """The queue of proposals."""

    is_ready: Callable[[], bool]
    """Returns True if a proposal can be shown now."""
    show: Callable[[ClientPlan], None]
    _waiting: list[ClientPlan] = field(default_factory=list)

    async def submit(self, proposal: ClientProposal) -> Outcome:
        """Show a plan as soon as possible, and wait for the decision.

        A plan whose task is cancelled before it was shown leaves the queue.
        """
        if len(self._waiting) >= MAX_WAITING:
            from obsidian_agent.integrations.proposals import Outcome

            return Outcome("busy", f"{MAX_WAITING} plans are already waiting for a decision.")
        plan = ClientPlan(proposal, asyncio.get_running_loop().create_future())
        self._waiting.append(plan)
        self.show_next()
        try:
            return await plan.outcome
        finally:
            if plan in self._waiting:
                self._waiting.remove(plan)

    def show_next(self) -> None:
        """Show the next proposal if that is possible now."""
        if self._waiting and self.is_ready():
            self.show(self._waiting.pop(0))
