"""What happens when the person decides: each wish that a pane posts, answered in one place."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, assert_never

from obsidian_agent.tui.screens.actions import MACRO
from obsidian_agent.tui.screens.confirm import Confirm
from obsidian_agent.tui.screens.diff import DiffScreen
from obsidian_agent.tui.screens.plan_editor import PlanEditor
from obsidian_agent.tui.widgets.plan import PlanPane
from obsidian_agent.tui.widgets.progress import ProgressPane
from obsidian_agent.tui.widgets.result import ResultPane

if TYPE_CHECKING:
    from obsidian_agent.agent.events import ExecutionResult
    from obsidian_agent.plan.result import Preview
    from obsidian_agent.tui.screens.desk import Desk
    from obsidian_agent.tui.screens.history import HistoryRequest
    from obsidian_agent.tui.screens.saving import Saving
    from obsidian_agent.tui.screens.turns import Turns
    from obsidian_agent.tui.screens.undoing import Undoing

Wish = PlanPane.Decided | PlanPane.StepToggled | PlanPane.DetailRequested | ProgressPane.CancelRequested | ResultPane.Wanted


class Deciding:
    """Knows the flows; holds nothing."""

    def __init__(self, desk: Desk, turns: Turns, undoing: Undoing, saving: Saving) -> None:
        self._desk = desk
        self._turns = turns
        self._undoing = undoing
        self._saving = saving

    def answer(self, wish: Wish) -> None:
        """Do what was wished."""
        match wish:
            case PlanPane.Decided():
                self._plan(wish.decision, wish.preview)
            case PlanPane.StepToggled():
                self._turns.toggle(wish.step_id)
            case PlanPane.DetailRequested():
                self._desk.app.push_screen(DiffScreen(wish.title, wish.content))
            case ProgressPane.CancelRequested():
                self._turns.cancel()
            case ResultPane.Wanted():
                self._result(wish.what, wish.result)
            case _:
                assert_never(wish)

    def _plan(self, decision: str, preview: Preview) -> None:
        match decision:
            case "approve":
                self._turns.approve(preview)
            case "cancel" if self._turns.engine.phase == "planning":
                self._turns.cancel()
            case "reject" | "cancel":
                self._turns.reject()
            case "edit":
                self._edit()
            case "undo":
                self._desk.run(self._ask_undo, "undo")

    def _edit(self) -> None:
        pending = self._turns.pending
        if pending is None or self._turns.engine.phase != "idle":
            return

        def edited(document: Mapping[str, Any] | None) -> None:
            if document is not None:
                self._turns.preview(document, frozenset(), pending.preview.context.params, message=pending.message)

        self._desk.app.push_screen(PlanEditor(pending.plan.to_json()), edited)

    def _result(self, what: str, result: ExecutionResult) -> None:
        match what:
            case "undo":
                self._desk.run(partial(self._undoing.undo, result.run_id), "undo")
            case "save":
                applied = self._turns.last
                if applied is not None and result.run_id is not None:
                    self._desk.run(partial(self._saving.save, result.run_id, applied.preview.approved_plan), "save")
            case "close":
                self._desk.panes.work.show("idle")
                self._desk.panes.go("chat")

    def history(self, request: HistoryRequest) -> None:
        """Undo a run of the past, whole or in part, or redo."""
        if self._turns.engine.phase == "running":
            self._desk.panes.chat.hint("A plan is being applied. Undo waits until it is done.")
            return
        match request.what:
            case "undo":
                self._desk.run(partial(self._undoing.undo, request.run_id), "undo")
            case "step" if request.run_id is not None:
                self._desk.run(partial(self._undoing.back_to_step, request.run_id), "undo")
            case _:
                self._desk.run(self._undoing.redo, "undo")

    def run_saved(self, name: str) -> None:
        """Preview a saved action."""
        if self._turns.engine.phase == "running":
            self._desk.panes.chat.hint("A plan is being applied. Try again when it is done.")
            return
        self._desk.run(partial(self._saving.run, name), "saved", exclusive=True)

    def run_action(self, name: str) -> None:
        """The form of an action of the menu, or its preview where it takes nothing; `macro:NAME` is one of the person's."""
        if name.startswith(MACRO):
            self.run_saved(name.removeprefix(MACRO))
        elif self._turns.engine.phase == "running":
            self._desk.panes.chat.hint("A plan is being applied. Try again when it is done.")
        else:
            self._desk.run(partial(self._saving.run_recipe, name), "saved", exclusive=True)

    def bring_back(self) -> None:
        """Preview the plan again that was rejected or applied last. Not in the place of one that waits."""
        last = self._turns.last
        if self._turns.pending is not None:
            self._desk.panes.chat.hint("A plan waits already. Approve or reject it; then /plan brings back the last one.")
            return
        if last is None or self._turns.engine.phase != "idle":
            self._desk.panes.chat.hint("There is no earlier plan.")
            return
        self._desk.freeze_focus()
        self._turns.preview(last.plan.to_json(), frozenset(), last.preview.context.params, message=last.message)

    async def _ask_undo(self) -> None:
        if await self._desk.app.push_screen_wait(
            Confirm("Undo", "Undo the last run? The plan on the screen is computed again afterwards.", "Undo")
        ):
            await self._undoing.undo(None)
            pending = self._turns.pending
            if pending is not None:
                self._turns.preview(pending.plan.to_json(), frozenset(), pending.preview.context.params, message=pending.message)
