"""Earlier runs, newest first; each can be undone, the last undo redone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from textual.app import ComposeResult
from textual.content import Content

from obsidian_agent import terminal_text
from obsidian_agent.dataclass import dataclass
from obsidian_agent.tui.bindings import bindings
from obsidian_agent.tui.screens.dialogs import Modal
from obsidian_agent.tui.widgets.row_list import VirtualList

if TYPE_CHECKING:
    from obsidian_agent.agent.events import Effects
    from obsidian_agent.agent.execution.runs import Runs
    from obsidian_agent.journal.records import HistoryEntry

_SHOWN_PROBLEMS = 5
_STYLES = {
    "done": "$success",
    "recovered": "$success",
    "failed": "$error",
    "stopped": "$error",
    "conflict": "$warning",
    "cancelled": "$warning",
}


@dataclass(frozen=True, slots=True)
class HistoryRequest:
    """Undo the run `run_id`, whole or back to a step of it, or redo."""

    what: Literal["undo", "step", "redo"]
    run_id: str | None = None


class HistoryList(VirtualList["HistoryEntry"]):
    """One line a run."""

    DEFAULT_CSS = "HistoryList { height: auto; min-height: 3; }"

    def draw_row(self, row: HistoryEntry, width: int) -> Content:
        undone = row.undone and row.effects.anything
        status, style = ("undone", "$quiet") if undone else (row.status, _STYLES.get(row.status, "$quiet"))
        return Content.assemble(
            (f" {terminal_text.line(row.time[:16].replace('T', ' '))} ", "$quiet"),
            (f"{terminal_text.line(status):<10}", style),
            (terminal_text.shortened(row.goal, 200), "$foreground" if not undone else "$quiet strike"),
            (f"  {effects_in_words(row.effects)}", "$quiet"),
        )


class History(Modal[HistoryRequest]):
    """Dismisses with what to do; the screen below does it, so conflicts and results are shown in one way."""

    BINDINGS = bindings("history")

    def __init__(self, runs: Runs) -> None:
        super().__init__("History", "Undo restores what a run changed; files that changed since are never overwritten unasked.")
        self._runs = runs
        self._entries: Sequence[HistoryEntry] = ()

    def body(self) -> ComposeResult:
        yield HistoryList(empty=" No runs yet.")

    def on_mount(self) -> None:
        self.query_one(HistoryList).focus()
        self.run_flow("history", self._reload)

    async def _reload(self) -> None:
        self._entries = await asyncio.to_thread(self._runs.history)
        if not self.is_attached:
            return
        listing = self.query_one(HistoryList)
        listing.set_rows(self._entries, 0)
        wrong = await asyncio.to_thread(self._runs.examine)
        if wrong and self.is_attached:
            self.problem(terminal_text.folded("\n".join(problem.message for problem in wrong), _SHOWN_PROBLEMS))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("undo", "step"):
            return True if self._entries else None
        return True

    def on_virtual_list_chosen(self, event: HistoryList.Chosen) -> None:
        self.action_undo()

    def action_undo(self) -> None:
        self._request("undo")

    def action_step(self) -> None:
        self._request("step")

    def _request(self, what: Literal["undo", "step"]) -> None:
        entry = self.query_one(HistoryList).current
        if entry is None:
            return
        if entry.undone or not entry.undoable:
            self.problem("Nothing of this run is left to undo." if entry.undone else "This run cannot be undone.")
            return
        self.dismiss(HistoryRequest(what, entry.run_id))

    def action_redo(self) -> None:
        self.dismiss(HistoryRequest("redo"))


def effects_in_words(effects: Effects) -> str:
    """`10 new · 1 edited`."""
    parts = ((effects.deleted, "deleted"), (effects.renamed, "renamed"), (effects.modified, "edited"), (effects.created, "new"))
    return " · ".join(f"{len(items):,} {word}" for items, word in parts if items)
