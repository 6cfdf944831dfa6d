"""The steps of a run, one of which is to be the last that stays done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult

from obsidian_agent.tui.screens.choices import Choice, ChoiceList
from obsidian_agent.tui.screens.modal import Modal

if TYPE_CHECKING:
    from obsidian_agent.plan.model import ActionPlan
    from obsidian_agent.tui.port import Cut

_HINT = "What the run did up to the end of this step stays; what came after it is undone."
_JOINED = "later steps changed its files further"


class Steps(Modal[str]):
    """Dismisses with the id of the chosen step."""

    def __init__(self, plan: ActionPlan, cuts: Sequence[Cut]) -> None:
        super().__init__("Back to which step?", _HINT)
        self._words = {step.id: step.preview or step.tool for step in plan.steps}
        self._cuts = cuts[:-1]

    def body(self) -> ComposeResult:
        rows = [
            Choice(cut.step, self._words.get(cut.step, cut.step), "" if cut.clean else _JOINED, f"{number}")
            for number, cut in enumerate(self._cuts, 1)
        ]
        listing = ChoiceList([], empty=" This run has one step only, or is older than this program's record of steps.")
        listing.set_choices(rows, 0 if rows else None)
        yield listing

    def on_mount(self) -> None:
        self.query_one(ChoiceList).focus()

    def on_virtual_list_chosen(self, event: ChoiceList.Chosen) -> None:
        cut = self._cuts[event.index]
        if cut.clean:
            self.dismiss(cut.step)
        else:
            self.problem("What its files held at the end of this step is not kept: later steps changed them before they were written.")
