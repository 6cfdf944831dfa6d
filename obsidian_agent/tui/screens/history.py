"""The history: the runs on one side, the files and diffs of the highlighted run on the other."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input, Static

from obsidian_agent import terminal_text
from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tui.bindings import binding, bindings
from obsidian_agent.tui.diff_lines import parse_diff
from obsidian_agent.tui.screens.conflicts import HistoryRequest
from obsidian_agent.tui.screens.dialogs import DiffScreen, Modal
from obsidian_agent.tui.widgets.diff import Detail
from obsidian_agent.tui.widgets.note import OutsideRequested
from obsidian_agent.tui.widgets.prompt import LineEntry
from obsidian_agent.tui.widgets.row_list import VirtualList
from obsidian_agent.tui.widgets.run_files import (
    RunFile,
    RunFiles,
    RunGroup,
    rows_of_effects,
    run_rows,
)

if TYPE_CHECKING:
    from textual.screen import Screen

    from obsidian_agent.agent.events import Effects
    from obsidian_agent.journal.records import HistoryEntry
    from obsidian_agent.services.runs import Runs
    from obsidian_agent.tui.report_lines import Speaker


MAX_RUNS: Final = 1_000
"""The number of runs that the list shows at most."""
HIGHLIGHT_SECONDS: Final = 0.06
"""The delay before the files of a highlighted run are loaded."""

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
_OUTCOME_STYLES = {"good": "$success", "bad": "$error"}


class HistoryList(VirtualList["HistoryEntry"]):
    """The runs, one a line, below the days on which they ran."""

    DEFAULT_CSS = "HistoryList { height: 1fr; }"
    BINDINGS = [binding("list.choose", "Files")]

    def draw_row(self, row: HistoryEntry, width: int) -> Content:
        status = row.current_status
        changes = row.effects.files or len(row.effects.folders) or len(row.effects.commands)
        tail = Content.assemble(
            (f" {changes:>5,}", "$quiet"),
            (
                "" if status in ("done", "recovered") else f"  {status}",
                _STYLES.get(status, "$quiet"),
            ),
            " ",
        )
        head = Content.assemble(
            (f"  {local_time(row.time):%H:%M} ", "$quiet"),
            (
                terminal_text.shortened(row.goal, 200),
                "$quiet strike" if status == "undone" else "$foreground",
            ),
        )
        space = max(width - tail.cell_length, 10)
        return Content.assemble(head.truncate(space, ellipsis=True, pad=True), tail)


class History(Modal[None]):
    """The runs of the vault.

    `change` is called with each request. It shows a preview and asks, reports the result with
    `show_outcome`, and calls `reload`.
    """

    BINDINGS = bindings("history")
    AUTO_FOCUS = "HistoryList"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]

    def __init__(self, runs: Runs, change: Callable[[HistoryRequest], object]) -> None:
        super().__init__("History")
        self._runs = runs
        self._change = change
        self._entries: Sequence[HistoryEntry] = ()
        self._entry: HistoryEntry | None = None
        self._query = ""

    def body(self) -> ComposeResult:
        with Horizontal(id="history"):
            with Vertical(id="history-runs"):
                yield LineEntry(
                    placeholder="Words of a run, or part of a path", id="history-filter"
                )
                yield HistoryList(empty=" No run has changed this vault yet.")
            with Vertical(id="history-run"):
                yield Static("", id="run-title", markup=False)
                yield LineEntry(placeholder="Part of a path", id="files-filter")
                yield RunFiles()
                yield Detail()
        yield Static("", id="history-outcome", markup=False)

    def on_mount(self) -> None:
        for entry in self.query(LineEntry):
            entry.display = False
        self.run_flow("history", self._load)
        self.run_flow("problems", self._examine)

    # --- the runs ---------------------------------------------------------------------------------

    def reload(self) -> None:
        """Load the runs again, after an undo or redo."""
        if self.is_attached:
            self.run_flow("history", self._load, exclusive=True)

    async def _load(self) -> None:
        entries = await asyncio.to_thread(self._runs.history, MAX_RUNS)
        if not self.is_attached:
            return
        self._entries = [
            entry for entry in entries if not entry.effects.is_empty or entry.status == "applying"
        ]
        self._draw_runs()

    async def _examine(self) -> None:
        problems = await asyncio.to_thread(self._runs.examine)
        if problems and self.is_attached:
            text = "\n".join(problem.message for problem in problems)
            self.show_problem(terminal_text.folded(text, _MAX_PROBLEM_LINES))

    def _draw_runs(self) -> None:
        listing = self.query_one(HistoryList)
        current = self._entry.run_id if self._entry is not None else None
        entries = [entry for entry in self._entries if _matches(entry, self._query)]
        listing.empty = " No run has changed this vault yet."
        if self._query:
            listing.empty = f" No run matches “{terminal_text.shortened(self._query, 60)}”."
        rows = list(grouped_by_day(entries, datetime.now().astimezone().date()))
        cursor = 0
        for index, row in enumerate(rows):
            if not isinstance(row, str) and row.run_id == current:
                cursor = index
        self._entry = None
        listing.set_rows(rows, cursor)
        self.refresh_bindings()

    def on_virtual_list_highlighted(self, event: VirtualList.Highlighted) -> None:
        if isinstance(event.list, HistoryList):
            self._highlight(event.list.current if event.index >= 0 else None)
        else:
            self._show_file(self.query_one(RunFiles).current)
        self.refresh_bindings()

    def _highlight(self, entry: HistoryEntry | None) -> None:
        if entry is self._entry and entry is not None:
            return
        is_other = self._entry is None or entry is None or entry.run_id != self._entry.run_id
        self._entry = entry
        title = self.query_one("#run-title", Static)
        files = self.query_one(RunFiles)
        if is_other:
            files.clear()
            self.query_one("#files-filter").display = False
        if entry is None:
            title.update("")
            self.query_one(Detail).clear()
            self.workers.cancel_group(self, "run")
            return
        title.update(describe_run(entry))
        self.run_flow("run", partial(self._load_run, entry), exclusive=True)

    # --- the highlighted run ----------------------------------------------------------------------

    async def _load_run(self, entry: HistoryEntry) -> None:
        await asyncio.sleep(HIGHLIGHT_SECONDS)
        cancelled = threading.Event()
        try:
            rows = await asyncio.to_thread(self._rows_of, entry, cancelled.is_set)
        except ObsidianAgentError as error:
            self.show_problem(error.problem().message)
            rows = rows_of_effects(entry.effects)
        finally:
            cancelled.set()
        if self.is_attached and entry is self._entry:
            files = self.query_one(RunFiles)
            files.empty = "   No files."
            files.show(rows)

    def _rows_of(self, entry: HistoryEntry, is_cancelled: Callable[[], bool]) -> list[RunFile]:
        """Return the rows of a run. May block."""
        run = self._runs.show(entry.run_id, is_cancelled)
        steps = self._runs.step_outcomes(entry.run_id)
        conflicts: dict[str, str] = {}
        if entry.undoable and not entry.undone and not is_cancelled():
            preview = self._runs.undo_preview(entry.run_id)
            conflicts = {conflict.path: conflict.reason for conflict in preview.conflicts}
        return run_rows(run, steps, conflicts)

    def _show_file(self, row: RunFile | RunGroup | None) -> None:
        detail = self.query_one(Detail)
        if row is None or not detail.display:
            detail.clear()
        elif isinstance(row, RunGroup):
            names = "\n".join(file.text for file in row.files)
            detail.show_text(row.text, terminal_text.block(names))
        else:
            self.run_flow("file", partial(self._show_diff, row), exclusive=True)

    async def _show_diff(self, row: RunFile) -> None:
        detail = self.query_one(Detail)
        if not row.diff:
            detail.show_text(row.text, terminal_text.block(row.no_diff))
            return
        diff = await asyncio.to_thread(parse_diff, row.diff)
        if self.is_attached:
            detail.show_diff(row.text, diff)

    def on_resize(self) -> None:
        self._show_file(self.query_one(RunFiles).current)

    def on_virtual_list_chosen(self, event: VirtualList.Chosen) -> None:
        if isinstance(event.list, HistoryList):
            self.query_one(RunFiles).focus()
            return
        self.run_flow("open diff", partial(open_file_diff, self, event.row), exclusive=True)

    # --- actions ----------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if not self.is_mounted:
            return True
        if action in ("undo", "step"):
            return True if self._entry is not None else None
        if action in ("mark", "outside"):
            row = self.query_one(RunFiles).current
            return self.query_one(RunFiles).has_focus and row is not None and bool(row.files)
        return True

    def on_descendant_focus(self) -> None:
        self.refresh_bindings()

    def action_mark(self) -> None:
        files = self.query_one(RunFiles)
        files.mark()
        files.action_cursor(1)
        self._draw_marks()

    def _draw_marks(self) -> None:
        if self._entry is None:
            return
        marked = self.query_one(RunFiles).marked
        title = describe_run(self._entry)
        if marked:
            count = terminal_text.counted(len(marked), "file")
            title = Content.assemble(title, (f"\n{count} marked for undo", "$primary"))
        self.query_one("#run-title", Static).update(title)

    def action_undo(self) -> None:
        files = self.query_one(RunFiles)
        self._request("undo", files.marked)

    def action_step(self) -> None:
        self._request("step", frozenset())

    def _request(self, what: Literal["undo", "step"], paths: frozenset[str]) -> None:
        entry = self._entry
        if entry is None:
            return
        reason = reason_against_undo(entry)
        self.show_problem(reason)
        if not reason:
            self._change(HistoryRequest(what, entry.run_id, paths, entry.effects.commands))

    def action_redo(self) -> None:
        self.show_problem("")
        self._change(HistoryRequest("redo"))

    def show_outcome(self, speaker: Speaker, text: str) -> None:
        """Show the outcome of a request."""
        style = _OUTCOME_STYLES.get(speaker, "$quiet")
        self.query_one("#history-outcome", Static).update(
            Content.styled(terminal_text.line(text), style)
        )

    def action_outside(self) -> None:
        path = self.query_one(RunFiles).path
        if path is not None:
            self.post_message(OutsideRequested(path))

    def action_filter(self) -> None:
        """Filter the list that has the focus."""
        is_for_files = self.query_one(RunFiles).has_focus
        entry = self.query_one("#files-filter" if is_for_files else "#history-filter", LineEntry)
        entry.display = True
        entry.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.input.id == "files-filter":
            self.query_one(RunFiles).filter(event.value.strip())
        else:
            self._query = event.value.strip()
            self._draw_runs()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._filtered(event.input).focus()

    def _filtered(self, entry: Input) -> HistoryList | RunFiles:
        """Return the list that a filter is for."""
        if entry.id == "files-filter":
            return self.query_one(RunFiles)
        return self.query_one(HistoryList)

    def action_close(self) -> None:
        """Leave a filter, then the files; close the history from the list of runs."""
        runs = self.query_one(HistoryList)
        filters = [entry for entry in self.query(LineEntry) if entry.display]
        if filters:
            entry = filters[-1]
            entry.value = ""
            entry.display = False
            self._filtered(entry).focus()
        elif not runs.has_focus:
            runs.focus()
        else:
            self.dismiss(None)


async def open_file_diff(screen: Screen[Any], row: RunFile) -> None:
    """Show the diff of a file as the run made it, on the whole screen."""
    if row.diff:
        diff = await asyncio.to_thread(parse_diff, row.diff)
        screen.app.push_screen(DiffScreen(row.text, diff))
    elif row.no_diff:
        screen.app.push_screen(DiffScreen(row.text, terminal_text.block(row.no_diff)))


def _matches(entry: HistoryEntry, query: str) -> bool:
    effects = entry.effects
    paths = [*effects.created, *effects.modified, *effects.deleted, *effects.folders]
    paths += [path for pair in effects.renamed for path in pair]
    text = "\n".join([entry.goal, entry.current_status, *paths, *effects.commands]).casefold()
    return all(word in text for word in query.casefold().split())


def grouped_by_day(entries: Iterable[HistoryEntry], today: date) -> Iterable[HistoryEntry | str]:
    """Yield runs, newest first, each day below a heading."""
    last: date | None = None
    for entry in entries:
        day = local_time(entry.time).date()
        if day != last:
            yield name_day(day, today)
            last = day
        yield entry


def name_day(day: date, today: date) -> str:
    """Return a day as `Today`, `Yesterday`, `Sunday 22 November` or with its year."""
    if day == today:
        return "Today"
    if day == today - timedelta(days=1):
        return "Yesterday"
    year = "" if day.year == today.year else f" {day.year}"
    return f"{day:%A} {day.day} {day:%B}{year}"


def local_time(time: str) -> datetime:
    """Return the time of a run in the time zone of this machine."""
    return datetime.fromisoformat(time).astimezone()


def describe_run(entry: HistoryEntry) -> Content:
    """Return the goal of a run, its time, status and numbers of files."""
    time = local_time(entry.time)
    details = [f"{time:%Y-%m-%d %H:%M}", entry.current_status, describe_effects(entry.effects)]
    return Content.assemble(
        (terminal_text.folded(entry.goal, 2), "bold"),
        ("\n" + terminal_text.line(" · ".join(filter(None, details))), "$quiet"),
    )


def reason_against_undo(entry: HistoryEntry) -> str:
    """Return why a run cannot be undone; "" when it can."""
    effects = entry.effects
    if effects.commands and not effects.files and not effects.folders:
        return "This run only executed commands of Obsidian. Commands cannot be undone."
    if entry.undone:
        return "This run is already undone."
    if not entry.undoable:
        return "This run cannot be undone: its earlier texts are no longer stored."
    return ""


def describe_effects(effects: Effects) -> str:
    """Return the numbers of affected files, such as `10 new · 1 edited`."""
    parts = (
        (effects.deleted, "deleted"),
        (effects.renamed, "renamed"),
        (effects.modified, "edited"),
        (effects.created, "new"),
    )
    return " · ".join(f"{len(items):,} {word}" for items, word in parts if items)
