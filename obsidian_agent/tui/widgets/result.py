"""The result card: how the run ended, what changed, what went wrong, and what can be done about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from obsidian_agent import terminal_text
from obsidian_agent.tui.keys import bindings
from obsidian_agent.tui.messages import NoteRequested
from obsidian_agent.tui.widgets.plan import PlanPane
from obsidian_agent.tui.widgets.virtual_list import VirtualList

if TYPE_CHECKING:
    from obsidian_agent.agent.events import Effects, ExecutionResult
    from obsidian_agent.errors import Problem

_HEADS = {
    "done": ("✓ Done", "$success"),
    "recovered": ("✓ Recovered", "$success"),
    "failed": ("✗ Failed", "$error"),
    "stopped": ("✗ Stopped at an error", "$error"),
    "cancelled": ("↷ Cancelled", "$warning"),
    "conflict": ("▲ Conflict: a file changed since the preview", "$warning"),
    "refused": ("✗ Refused, nothing was changed", "$error"),
}
_WORD_STYLES = {
    "new": "$success",
    "edit": "$warning",
    "delete": "$error",
    "rename": "$secondary",
    "folder": "$success",
    "command": "$secondary",
    "error": "$error",
    "warning": "$warning",
}
_NOTES = frozenset({"new", "edit", "rename"})


@dataclass(frozen=True, slots=True)
class ResultRow:
    """A file, error or warning; Enter opens `path`, or shows the `whole` text."""

    word: str
    text: str
    path: str | None = None
    whole: str = ""


class ResultList(VirtualList[ResultRow]):
    """Problems, then files."""

    BINDING_GROUP_TITLE = "Result"

    def draw_row(self, row: ResultRow, width: int) -> Content:
        return Content.assemble((f" {row.word:<8}", _WORD_STYLES[row.word]), (terminal_text.shortened(row.text, 400), "$foreground"))


class ResultPane(Vertical):
    """Shows one `ExecutionResult`."""

    DEFAULT_CSS = """
    ResultPane { background: $surface; }
    ResultPane #result-head { height: auto; padding: 1 2; }
    ResultPane ResultList { height: 1fr; padding: 0 1; }
    ResultPane #result-status { height: auto; padding: 0 2; background: $boost; }
    """
    BINDING_GROUP_TITLE = "Result"
    BINDINGS = bindings("result")

    class Wanted(Message):
        """The person wants something done with the result: undo, save or close."""

        def __init__(self, what: str, result: ExecutionResult) -> None:
            super().__init__()
            self.what = what
            self.result = result

    def __init__(self) -> None:
        super().__init__(id="result")
        self.result: ExecutionResult | None = None
        self._undone = False

    def compose(self) -> ComposeResult:
        yield Static("", id="result-head", markup=False)
        yield ResultList(id="result-list")
        yield Static("", id="result-status", markup=False)

    def show(self, result: ExecutionResult) -> None:
        """Show how a run ended."""
        self.result, self._undone = result, False
        word, style = _HEADS[result.status]
        problems = [_problem_row("error", problem) for problem in result.errors]
        problems += [_problem_row("warning", problem) for problem in result.warnings]
        self._head(Content.assemble((word, f"{style} bold"), "\n", (sentence(result), "$foreground")))
        listing = self.query_one(ResultList)
        listing.empty = "Nothing was changed."
        listing.set_rows([*problems, *_file_rows(result.effects)], 0)
        self._draw_status()

    def mark_undone(self) -> None:
        """The run was undone."""
        self._undone = True
        self._head(Content.assemble(("↶ Undone", "$secondary bold"), ("\nThe files are as they were before the run.", "$foreground")))
        listing = self.query_one(ResultList)
        listing.empty = ""
        listing.set_rows([], 0)
        self._draw_status()

    def _head(self, content: Content) -> None:
        self.query_one("#result-head", Static).update(content)

    def _draw_status(self) -> None:
        rows = self.query_one(ResultList).rows
        words = ["shows the whole text"] if any(row.whole for row in rows) else []
        words += ["opens the note"] if any(row.path is not None for row in rows) else []
        self.query_one("#result-status", Static).update(
            Content.assemble(("Enter", "$primary bold"), (f" {', '.join(words)}", "$quiet")) if words else ""
        )
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        result = self.result
        if action == "undo":
            return result is not None and result.undo_available and not self._undone
        if action == "save_action":
            return result is not None and result.success and result.run_id is not None
        return True

    def on_virtual_list_chosen(self, event: ResultList.Chosen) -> None:
        event.stop()
        row = event.list.rows[event.index]
        if row.whole:
            self.post_message(PlanPane.DetailRequested(row.word.capitalize(), row.whole))
        elif row.path is not None:
            self.post_message(NoteRequested(row.path))

    def action_undo(self) -> None:
        self._want("undo")

    def action_save_action(self) -> None:
        self._want("save")

    def action_close(self) -> None:
        self._want("close")

    def _want(self, what: str) -> None:
        if self.result is not None:
            self.post_message(self.Wanted(what, self.result))


def sentence(result: ExecutionResult) -> str:
    """What happened, in words: `Created 10 files, modified 1 file.`"""
    effects = result.effects
    parts = [
        f"{verb} {len(items):,} {noun}{'s' if len(items) != 1 else ''}"
        for verb, items, noun in (
            ("created", effects.created, "file"),
            ("modified", effects.modified, "file"),
            ("renamed", effects.renamed, "file"),
            ("deleted", effects.deleted, "file"),
            ("made", effects.folders, "folder"),
            ("ran", effects.commands, "command"),
        )
        if items
    ]
    done = ", ".join(parts).capitalize() if parts else "No file was changed"
    if result.status in ("done", "recovered"):
        return f"{done}."
    return f"{done}. {result.completed_steps:,} of {result.total_steps:,} steps were done."


def _problem_row(word: str, problem: Problem) -> ResultRow:
    placed = _placed(problem.step_id, problem.path, problem.message)
    return ResultRow(word, placed, whole=terminal_text.block("\n\n".join(text for text in (placed, problem.code))))


def _placed(step_id: str | None, path: str | None, message: str) -> str:
    where = " · ".join(part for part in (step_id, path) if part and part not in message)
    return f"{where}: {message}" if where else message


def _file_rows(effects: Effects) -> list[ResultRow]:
    rows = [ResultRow("delete", path) for path in effects.deleted]
    rows += [ResultRow("rename", f"{old} → {new}", new) for old, new in effects.renamed]
    rows += [ResultRow("edit", path, path) for path in effects.modified]
    rows += [ResultRow("new", path, path) for path in effects.created]
    rows += [ResultRow("folder", path) for path in effects.folders]
    rows += [ResultRow("command", name) for name in effects.commands]
    return rows
