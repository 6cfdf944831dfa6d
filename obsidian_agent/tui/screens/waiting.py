"""The plans of rules, clients and the user that wait for approval."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec import Struct
from textual import work
from textual.app import ComposeResult
from textual.content import Content

from obsidian_agent import terminal_text
from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.terminal_text import counted
from obsidian_agent.tui.bindings import binding, bindings
from obsidian_agent.tui.commands import Command
from obsidian_agent.tui.diff_lines import Diff, DiffLine, joined, parse_diff
from obsidian_agent.tui.screens.dialogs import ListScreen
from obsidian_agent.tui.screens.workspace import Workspace
from obsidian_agent.tui.turn.controller import PlanSource
from obsidian_agent.tui.turn.proposals import ClientPlan
from obsidian_agent.tui.widgets.diff import Detail, DiffView
from obsidian_agent.tui.widgets.panes import TopBar
from obsidian_agent.tui.widgets.row_list import VirtualList

if TYPE_CHECKING:
    from obsidian_agent.integrations.proposals import Outcome
    from obsidian_agent.services.plan_review import PlanReview
    from obsidian_agent.services.plans import Plans
    from obsidian_agent.services.rules import RuleOutcome, RuleRunner
    from obsidian_agent.services.waiting_plans import WaitingPlan, WaitingPlans
    from obsidian_agent.tui.turn.controller import Pending


log = logging.getLogger(__name__)

MAX_FILES: Final = 50
"""Files of a plan whose diffs are shown below the list. A plan of more is looked at as a whole."""
MIN_LINES: Final = 3
"""Lines of a plan's changes that must be on the screen before a key applies it."""
INBOX_SECONDS: Final = 2.0
"""Seconds between two looks for new plans."""

_KINDS: Final = {
    "create": "New",
    "modify": "Change",
    "delete": "To the trash:",
    "rename": "Move",
    "mkdir": "New folder",
}


class WaitingList(VirtualList["PlanReview"]):
    """One line a plan."""

    BINDINGS = [binding("list.choose", "Open")]
    DEFAULT_CSS = "WaitingList { height: auto; min-height: 3; }"

    def draw_row(self, row: PlanReview, width: int) -> Content:
        plan = row.plan
        source = terminal_text.shortened(plan.source or "you", 40)
        when = terminal_text.line(plan.created[:16].replace("T", " "))
        changes = "" if row.changes is None else f"  {counted(row.changes, 'change')}"
        if plan.replaces:
            changes += f" · replaces {counted(plan.replaces, 'earlier plan')}"
        warning = ""
        if row.problem is not None:
            warning = f"  ! {terminal_text.shortened(row.problem.sentence, 80)}"
        elif row.is_stale:
            warning = "  ! the vault changed since"
        return Content.assemble(
            (f" {terminal_text.shortened(plan.goal, 200)}", "$foreground"),
            (f"  {source} · {when}", "$quiet"),
            (changes, "$quiet"),
            (warning, "$warning"),
        )


class DisplayedPlan(Struct, frozen=True):
    """The plan whose changes are on the screen. Only a complete one can be applied from there."""

    row: PlanReview
    is_complete: bool


class WaitingScreen(ListScreen["PlanReview", "PlanReview"]):
    """The waiting plans, with the changes of the one under the cursor below them.

    Dismisses with the plan to look at; the screen below previews it like any other plan.
    """

    BINDINGS = bindings("waiting")
    CSS = """
    WaitingScreen #box { width: 96%; max-width: 160; height: 100%; max-height: 100%; }
    WaitingScreen WaitingList { max-height: 33vh; }
    WaitingScreen Detail { min-height: 6; margin-top: 1; }
    """

    def __init__(self, waiting: WaitingPlans, plans: Plans) -> None:
        super().__init__(
            "Waiting plans",
            "“Apply all” skips plans whose changes differ now from what was proposed.",
        )
        self._displayed: DisplayedPlan | None = None
        self._waiting = waiting
        self._plans = plans
        self._is_busy = False

    def body(self) -> ComposeResult:
        yield WaitingList(empty=" No plans are waiting.")
        yield Detail()

    def load(self) -> Sequence[PlanReview]:
        from obsidian_agent.services.plan_review import review

        self._waiting.expire(datetime.now().astimezone())
        return [review(plan, self._plans) for plan in self._waiting.all()]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("drop", "apply", "apply_all"):
            rows = self.query(WaitingList)
            return True if rows and rows.first().rows and not self._is_busy else None
        return True

    async def reload(self) -> None:
        await super().reload()
        if self.is_attached and self.row is None:
            self._displayed = None
            self.query_one(Detail).clear()

    def on_virtual_list_highlighted(self, event: WaitingList.Highlighted) -> None:
        self._displayed = None
        if self.row is not None:
            self.run_flow("changes", partial(self._show, self.row), exclusive=True)

    async def _show(self, row: PlanReview) -> None:
        """Show what a plan changes, and first what is different from when it was proposed."""
        detail = self.query_one(Detail)
        title = row.plan.goal
        if row.preview is None or row.problem is not None:
            detail.show_text(title, terminal_text.block(_problem(row)))
            return
        changes = row.preview.change_set.changes
        diff = await asyncio.to_thread(changes_of, row, self._plans)
        if row is not self.row or not self.is_attached:
            return
        has_remarks = bool(row.differences or row.preview.warnings)
        detail.show_diff(title, diff, from_top=has_remarks)
        self._displayed = DisplayedPlan(row, is_complete=len(changes) <= MAX_FILES)

    def on_virtual_list_chosen(self, event: WaitingList.Chosen) -> None:
        self.dismiss(event.row)

    def action_drop(self) -> None:
        if self.row is not None:
            self.run_flow("drop", partial(self._drop, self.row.plan))

    async def _drop(self, plan: WaitingPlan) -> None:
        await asyncio.to_thread(self._waiting.drop, plan.id)
        await self.reload()

    def action_apply(self) -> None:
        """Apply the plan under the cursor if all of it is on the screen, else look at it."""
        displayed = self._displayed
        if self.query_one(DiffView).size.height < MIN_LINES:
            displayed = None
        if displayed is None or displayed.row is not self.row:
            return
        preview = displayed.row.preview
        needs_look = displayed.row.is_stale or not displayed.is_complete
        if preview is None or needs_look or preview.deferred or preview.discloses:
            self.dismiss(displayed.row)
            return
        self._is_busy = True
        self.refresh_bindings()
        self.run_flow("apply", partial(self._apply, displayed.row), exclusive=True)

    async def _apply(self, row: PlanReview) -> None:
        from obsidian_agent.services.plan_review import apply_reviewed

        try:
            problem = await asyncio.to_thread(apply_reviewed, row, self._waiting, self._plans)
        finally:
            self._is_busy = False
        if not self.is_attached:
            return
        await self.reload()
        self.show_problem("" if problem is None else problem.sentence)

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
            verb = "needs" if left == 1 else "need"
            text += f" {counted(left, 'plan')} {verb} your review."
        self.show_problem(text)


def changes_of(row: PlanReview, plans: Plans) -> Diff:
    """Return all changes of a plan as one diff, with a line before each file. May block."""
    assert row.preview is not None
    changes = row.preview.change_set.changes
    parts = [_notes([f"! {line}" for line in row.differences])]
    parts.append(_notes([f"! {problem.sentence}" for problem in row.preview.warnings]))
    for change in changes[:MAX_FILES]:
        target = "" if change.new_path is None else f" → {change.new_path.text}"
        parts.append(_notes([f"{_KINDS[change.kind]} {change.path.text}{target}"]))
        parts.append(parse_diff(plans.diff(change)))
    if len(changes) > MAX_FILES:
        parts.append(_notes([f"… and {len(changes) - MAX_FILES:,} more. Enter shows all."]))
    return joined(parts)


def _notes(lines: Sequence[str]) -> Diff:
    return Diff(tuple(DiffLine("note", terminal_text.shortened(line, 300)) for line in lines))


def _problem(row: PlanReview) -> str:
    return "The plan cannot run." if row.problem is None else row.problem.sentence


class WatchedRules:
    """The rules of the vault in a thread. `report` is called there with runs without approval."""

    def __init__(
        self, make_runner: Callable[[], RuleRunner], report: Callable[[RuleOutcome], object]
    ) -> None:
        self._make_runner = make_runner
        self._report = report
        self._stopped = threading.Event()
        self.changed = threading.Event()
        """Set after notes have changed."""

    def start(self) -> None:
        """Start the thread, and look at all rules."""
        self.changed.set()
        threading.Thread(target=self._run, name="rules", daemon=True).start()

    def stop(self) -> None:
        """Stop after the rule that is being looked at."""
        self._stopped.set()
        self.changed.set()

    def _run(self) -> None:
        from obsidian_agent.services.rule_watch import watch

        try:
            for outcome in watch(self._make_runner(), self.changed, self._stopped):
                if outcome.run_id is not None:
                    self._report(outcome)
        except (ObsidianAgentError, OSError) as error:
            log.warning("the rules stopped: %s", error)


class WaitingActions(Workspace):
    """Actions on the plans that wait, and the rules that propose them."""

    _inbox_stamp: int | None = None
    _inbox: frozenset[str] | None = None
    """The ids of the waiting plans; None before the first look."""
    _rules: WatchedRules | None = None

    SLASH: ClassVar[tuple[Command, ...]] = (
        Command("plans", "Waiting plans", "Proposed by rules and other programs", "waiting_plans"),
        Command("rules", "Rules", "Propose plans when notes change or at set times", "rules"),
    )

    def watch_inbox(self) -> None:
        """Show from now on how many plans wait, report new ones, and run the vault's rules."""
        self.set_interval(INBOX_SECONDS, self._look_for_plans)
        self._look_for_plans()
        self._rules = WatchedRules(self.services.rules, self._rule_ran)
        self._rules.start()

    def stop_rules(self) -> None:
        """Stop running the rules."""
        if self._rules is not None:
            self._rules.stop()

    def notes_changed(self) -> None:
        """Let the rules of notes be looked at soon."""
        if self._rules is not None:
            self._rules.changed.set()

    def _rule_ran(self, outcome: RuleOutcome) -> None:
        self.app.call_from_thread(self.add_entry, "note", outcome.reason)

    @work(group="inbox", exclusive=True, exit_on_error=False)
    async def _look_for_plans(self) -> None:
        waiting = self.services.waiting
        stamp = await asyncio.to_thread(lambda: waiting.stamp)
        if stamp == self._inbox_stamp:
            return
        plans = await asyncio.to_thread(waiting.all)
        self._inbox_stamp = stamp
        known, self._inbox = self._inbox, frozenset(plan.id for plan in plans)
        self.query_one(TopBar).show_waiting(len(plans))
        new = [plan for plan in plans if known is not None and plan.id not in known]
        for plan in new:
            if plan.source:
                goal = terminal_text.shortened(plan.goal, 80)
                source = terminal_text.shortened(plan.source, 40)
                self.plan_arrived(f"A plan waits: {goal} ({source})")

    def plan_arrived(self, text: str) -> None:
        """Report a new plan in the app and, while it has no focus, through the terminal."""
        raise NotImplementedError

    def action_waiting_plans(self) -> None:
        """Show the plans that wait."""
        if not self.ensure_idle():
            return
        screen = WaitingScreen(self.services.waiting, self.session.plans)
        self.app.push_screen(screen, self._look_at)

    def action_rules(self) -> None:
        """Show the rules of the vault."""
        from obsidian_agent.tui.screens.rules import RulesScreen

        screen = RulesScreen(self.services.rules, self.session)
        self.app.push_screen(screen, lambda _: self.notes_changed())

    def _look_at(self, row: PlanReview | None) -> None:
        self._look_for_plans()
        if row is None or not self.ensure_idle():
            return
        plan = row.plan
        outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        outcome.add_done_callback(lambda ended: self._decided_on(plan, ended.result()))
        from obsidian_agent.integrations.proposals import ClientProposal

        proposal = ClientProposal(plan.source, plan.plan)
        client = ClientPlan(
            proposal, outcome, is_connected=False, remark="\n".join(row.differences)
        )
        source = PlanSource(client=client)
        self.freeze_focus()
        self.turn.preview(plan.plan, frozenset(), {}, source=source)

    def _decided_on(self, plan: WaitingPlan, outcome: Outcome) -> None:
        if outcome.status in ("applied", "refused"):
            self._drop_waiting(plan)

    @work(group="waiting", exit_on_error=False)
    async def _drop_waiting(self, plan: WaitingPlan) -> None:
        await asyncio.to_thread(self.services.waiting.drop, plan.id)
        self._look_for_plans()

    @work(group="waiting", exit_on_error=False)
    async def put_aside(self, plan: Pending) -> None:
        """Store a plan of the user that is not decided on."""
        await asyncio.to_thread(self._store, plan)
        self._look_for_plans()

    def _store(self, pending: Pending) -> None:
        from obsidian_agent.services.plan_review import put_aside

        put_aside(
            self.services.waiting,
            pending.preview,
            source="",
            now=datetime.now().astimezone(),
            is_whole=not (pending.disabled or pending.left_out),
        )
