"""The history of runs: their list, and the steps and files of one run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from textual.app import ComposeResult
from textual.content import Content

from obsidian_agent import terminal_text
from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import JournalError, ObsidianAgentError
from obsidian_agent.tui.bindings import binding, bindings
from obsidian_agent.tui.screens.dialogs import DiffScreen, Modal
from obsidian_agent.tui.widgets.diff import parse_diff
from obsidian_agent.tui.widgets.row_list import VirtualList
from obsidian_agent.tui.widgets.run import ResultList, file_rows, step_rows

if TYPE_CHECKING:
    from textual.screen import Screen

    from obsidian_agent.agent.events import Effects
    from obsidian_agent.journal.records import HistoryEntry
    from obsidian_agent.services.runs import Runs


_MAX_PROBLEM_LINES = 5
_STYLES = {
    "done": "$success",
    "recovered": "$success",
    "failed": "$error",
    "stopped": "$error",
    "conflict": "$warning",
    "cancelled": "$warning",
    "partly undone": "$warning",
}


@dataclass(frozen=True, slots=True)
class HistoryRequest:
    """Undo the run `run_id`, whole or back to a step of it, or redo."""

    what: Literal["undo", "step", "redo"]
    run_id: str | None = None


class HistoryList(VirtualList["HistoryEntry"]):
    """The runs, one a line."""

    BINDINGS = [binding("list.choose", "Show")]
    DEFAULT_CSS = "HistoryList { height: auto; min-height: 3; }"

    def draw_row(self, row: HistoryEntry, width: int) -> Content:
        undone = row.undone and not row.effects.is_empty
        status = row.current_status
        style = _STYLES.get(status, "$quiet")
        return Content.assemble(
            (f" {terminal_text.line(row.time[:16].replace('T', ' '))} ", "$quiet"),
            (f"{terminal_text.line(status):<14}", style),
            (terminal_text.shortened(row.goal, 200), "$quiet strike" if undone else "$foreground"),
            (f"  {describe_effects(row.effects)}", "$quiet"),
        )


class FileRows(ResultList):
    """The steps and files of a run in a dialog."""

    DEFAULT_CSS = "FileRows { height: auto; min-height: 3; max-height: 50vh; }"
    BINDINGS = [binding("list.choose", "Show diff")]


class History(Modal[HistoryRequest]):
    """The list of runs. Dismisses with a request, which the main screen carries out."""

    BINDINGS = bindings("history")

    def __init__(self, runs: Runs) -> None:
        super().__init__(
            "History",
            "Undo restores the files a run changed. It asks before it overwrites later changes.",
        )
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
        self.refresh_bindings()
        problems = await asyncio.to_thread(self._runs.examine)
        if problems and self.is_attached:
            text = "\n".join(problem.message for problem in problems)
            self.show_problem(terminal_text.folded(text, _MAX_PROBLEM_LINES))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("undo", "step") and not self._entries:
            return None
        return True

    def on_virtual_list_chosen(self, event: HistoryList.Chosen) -> None:
        entry = self._entries[event.index]
        self.app.push_screen(RunOutcome(self._runs, entry), self._leave_for)

    def _leave_for(self, request: HistoryRequest | None) -> None:
        if request is not None:
            self.dismiss(request)

    def action_undo(self) -> None:
        self._request("undo")

    def action_step(self) -> None:
        self._request("step")

    def _request(self, what: Literal["undo", "step"]) -> None:
        entry = self.query_one(HistoryList).current
        if entry is None:
            return
        if reason := reason_against_undo(entry):
            self.show_problem(reason)
        else:
            self.dismiss(HistoryRequest(what, entry.run_id))

    def action_redo(self) -> None:
        self.dismiss(HistoryRequest("redo"))


def reason_against_undo(entry: HistoryEntry) -> str:
    """Return why a run cannot be undone; "" when it can."""
    if entry.undone:
        return "This run is already undone."
    if not entry.undoable:
        return "This run cannot be undone."
    return ""


class RunOutcome(Modal[HistoryRequest]):
    """One run of the history: the outcome of each step, and the files it changed."""

    BINDINGS = bindings("outcome")

    def __init__(self, runs: Runs, entry: HistoryEntry) -> None:
        when = entry.time[:16].replace("T", " ")
        super().__init__(entry.goal, f"{when} · {entry.current_status}")
        self._runs = runs
        self._entry = entry

    def body(self) -> ComposeResult:
        yield FileRows()

    def on_mount(self) -> None:
        self.query_one(FileRows).focus()
        self.run_flow("outcome", self._load)

    async def _load(self) -> None:
        rows = file_rows(self._entry.effects)
        try:
            steps = await asyncio.to_thread(self._runs.step_outcomes, self._entry.run_id)
        except JournalError as error:
            steps = []
            self.show_problem(error.message)
        if self.is_attached:
            self.query_one(FileRows).set_rows([*step_rows(steps), *rows], 0)

    def on_virtual_list_chosen(self, event: FileRows.Chosen) -> None:
        row = event.list.rows[event.index]
        if row.path is not None:
            load = partial(self._runs.conflict_diff, self._entry.run_id)
            self.run_flow("diff", partial(show_diff, self, load, row.path), exclusive=True)

    def action_undo(self) -> None:
        self._request("undo")

    def action_step(self) -> None:
        self._request("step")

    def _request(self, what: Literal["undo", "step"]) -> None:
        if reason := reason_against_undo(self._entry):
            self.show_problem(reason)
        else:
            self.dismiss(HistoryRequest(what, self._entry.run_id))


async def show_diff(screen: Screen[Any], load: Callable[[str], str], path: str) -> None:
    """Show the diff that an undo or redo would apply to the current text of a file."""
    try:
        diff = parse_diff(await asyncio.to_thread(load, path))
    except ObsidianAgentError as error:
        screen.app.push_screen(DiffScreen(path, error.problem().message))
        return
    content = diff if diff.lines else "The text of this file does not change."
    screen.app.push_screen(DiffScreen(path, content))


def describe_effects(effects: Effects) -> str:
    """Return the numbers of affected files, such as `10 new · 1 edited`."""
    parts = (
        (effects.deleted, "deleted"),
        (effects.renamed, "renamed"),
        (effects.modified, "edited"),
        (effects.created, "new"),
    )
    return " · ".join(f"{len(items):,} {word}" for items, word in parts if items)
