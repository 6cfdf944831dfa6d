"""The plans of rules, clients and the user that wait for approval."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.content import Content

from obsidian_agent import terminal_text
from obsidian_agent.terminal_text import counted
from obsidian_agent.tui.bindings import binding, bindings
from obsidian_agent.tui.commands import Command
from obsidian_agent.tui.screens.dialogs import ListScreen
from obsidian_agent.tui.screens.workspace import Workspace
from obsidian_agent.tui.turn.controller import PlanSource
from obsidian_agent.tui.turn.proposals import ClientPlan
from obsidian_agent.tui.widgets.row_list import VirtualList

if TYPE_CHECKING:
    from obsidian_agent.integrations.proposals import Outcome
    from obsidian_agent.services.plan_review import PlanReview
    from obsidian_agent.services.plans import Plans
    from obsidian_agent.services.waiting_plans import WaitingPlan, WaitingPlans
    from obsidian_agent.tui.turn.controller import Pending


class WaitingList(VirtualList["PlanReview"]):
    """One line a plan."""

    BINDINGS = [binding("list.choose", "Look")]
    DEFAULT_CSS = "WaitingList { height: auto; min-height: 3; }"

    def draw_row(self, row: PlanReview, width: int) -> Content:
        plan = row.plan
        source = terminal_text.shortened(plan.source or "you", 40)
        when = terminal_text.line(plan.created[:16].replace("T", " "))
        changes = "" if row.changes is None else f"  {counted(row.changes, 'change')}"
        warning = ""
        if row.problem is not None:
            warning = f"  ! {terminal_text.shortened(row.problem.message, 80)}"
        elif row.is_stale:
            warning = "  ! the vault changed since"
        return Content.assemble(
            (f" {terminal_text.shortened(plan.goal, 200)}", "$foreground"),
            (f"  {source} · {when}", "$quiet"),
            (changes, "$quiet"),
            (warning, "$warning"),
        )


class WaitingScreen(ListScreen["PlanReview", "WaitingPlan"]):
    """Dismisses with the plan to look at; the screen below previews it like any other plan."""

    BINDINGS = bindings("waiting")

    def __init__(self, waiting: WaitingPlans, plans: Plans) -> None:
        super().__init__(
            "Waiting plans",
            "“Apply all” runs the plans that do exactly what they did when they were proposed. "
            "Each is a run of its own in the history.",
        )
        self._waiting = waiting
        self._plans = plans
        self._is_busy = False

    def body(self) -> ComposeResult:
        yield WaitingList(empty=" No plans are waiting.")

    def load(self) -> Sequence[PlanReview]:
        from obsidian_agent.services.plan_review import review

        return [review(plan, self._plans) for plan in self._waiting.all()]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("drop", "apply_all"):
            rows = self.query(WaitingList)
            return True if rows and rows.first().rows and not self._is_busy else None
        return True

    def on_virtual_list_chosen(self, event: WaitingList.Chosen) -> None:
        self.dismiss(event.list.rows[event.index].plan)

    def action_drop(self) -> None:
        if self.row is not None:
            self.run_flow("drop", partial(self._drop, self.row.plan))

    async def _drop(self, plan: WaitingPlan) -> None:
        await asyncio.to_thread(self._waiting.drop, plan.id)
        await self.reload()

    def action_apply_all(self) -> None:
        self._is_busy = True
        self.refresh_bindings()
        self.run_flow("apply", self._apply_all, exclusive=True)

    async def _apply_all(self) -> None:
        from obsidian_agent.services.plan_review import apply_unchanged

        try:
            applied, left = await asyncio.to_thread(apply_unchanged, self._waiting, self._plans)
        finally:
            self._is_busy = False
        if not self.is_attached:
            return
        await self.reload()
        text = f"{counted(len(applied), 'plan')} applied."
        if left:
            text += f" {counted(left, 'plan')} must be looked at."
        self.show_problem(text)


class WaitingActions(Workspace):
    """Actions on the plans that wait."""

    SLASH: ClassVar[tuple[Command, ...]] = (
        Command("plans", "Waiting plans", "Proposed by rules and other programs", "waiting_plans"),
    )

    def action_waiting_plans(self) -> None:
        """Show the plans that wait."""
        if not self.ensure_idle():
            return
        screen = WaitingScreen(self.services.waiting, self.session.plans)
        self.app.push_screen(screen, self._look_at)

    def _look_at(self, plan: WaitingPlan | None) -> None:
        if plan is None or not self.ensure_idle():
            return
        outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        outcome.add_done_callback(lambda ended: self._decided_on(plan, ended.result()))
        from obsidian_agent.integrations.proposals import ClientProposal

        proposal = ClientProposal(plan.source, plan.plan)
        source = PlanSource(client=ClientPlan(proposal, outcome, is_connected=False))
        self.freeze_focus()
        self.turn.preview(plan.plan, frozenset(), {}, source=source)

    def _decided_on(self, plan: WaitingPlan, outcome: Outcome) -> None:
        if outcome.status in ("applied", "refused"):
            self._drop_waiting(plan)

    @work(group="waiting", exit_on_error=False)
    async def _drop_waiting(self, plan: WaitingPlan) -> None:
        await asyncio.to_thread(self.services.waiting.drop, plan.id)

    @work(group="waiting", exit_on_error=False)
    async def put_aside(self, plan: Pending) -> None:
        """Store a plan of the user that is not decided on."""
        await asyncio.to_thread(self._store, plan)

    def _store(self, pending: Pending) -> None:
        from obsidian_agent.services.plan_review import put_aside

        put_aside(
            self.services.waiting,
            pending.preview,
            source="",
            now=datetime.now().astimezone(),
            is_whole=not (pending.disabled or pending.left_out),
        )
