"""The progress of a run and its result."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widgets import ProgressBar, Static

from obsidian_agent import terminal_text
from obsidian_agent.tui.bindings import bindings, key_label
from obsidian_agent.tui.change_groups import kinds_of
from obsidian_agent.tui.widgets.note import NoteRequested, OutsideRequested
from obsidian_agent.tui.widgets.plan import PlanPane
from obsidian_agent.tui.widgets.plan_list import ROW_WORDS
from obsidian_agent.tui.widgets.row_list import VirtualList
from obsidian_agent.tui.widgets.run_files import (
    FOLD_KEYS,
    RunFile,
    RunFiles,
    rows_of_effects,
    step_rows,
    step_rows_unless_applied,
)

if TYPE_CHECKING:
    from obsidian_agent.agent.events import (
        Effects,
        ExecutionResult,
        RunStarted,
        StepFailed,
        StepFinished,
        StepRetrying,
        StepSkipped,
        StepStarted,
    )
    from obsidian_agent.errors import Problem
    from obsidian_agent.journal.records import StepOutcome
    from obsidian_agent.plan.result import Preview

DRAW_SECONDS: Final = 0.25
"""Seconds between two states of a run; each lays out the screen, while keys wait."""

LogKind = Literal["applied", "failed", "skipped", "retry"]

_SIGNS: dict[LogKind, tuple[str, str]] = {
    "applied": ("✓", "$success"),
    "failed": ("✗", "$error"),
    "skipped": ("↷", "$quiet"),
    "retry": ("⟳", "$warning"),
}

_HEADS = {
    "done": ("✓ Done", "$success"),
    "recovered": ("✓ Recovered", "$success"),
    "failed": ("✗ Failed", "$error"),
    "stopped": ("✗ Stopped at an error", "$error"),
    "cancelled": ("↷ Cancelled", "$warning"),
    "conflict": ("▲ Conflict: a file changed since the preview", "$warning"),
    "refused": ("✗ Refused: nothing was changed", "$error"),
}
_UNDONE = ("↶ Undone", "$secondary")
_PARTLY_UNDONE = ("↶ Partly undone", "$warning")


class LogRow(Struct, frozen=True):
    """A line of the log with texts that are not safe yet.

    `word` is that of the file in the plan, for instance "edit", or says what happened to a step.
    """

    kind: LogKind
    word: str
    text: str
    note: str = ""


class RunLog(VirtualList[LogRow]):
    """The log of a run."""

    BINDING_GROUP_TITLE = "Run"

    def draw_row(self, row: LogRow, width: int) -> Content:
        sign, style = _SIGNS[row.kind]
        return Content.assemble(
            (f" {sign} {row.word:<7} ", style),
            (terminal_text.shortened(row.text, 300), "$foreground"),
            (f"  {terminal_text.shortened(row.note, 200)}" if row.note else "", "$quiet"),
        )


class ProgressPane(Vertical):
    """The progress of one run with its log."""

    DEFAULT_CSS = """
    ProgressPane { background: $surface; }
    ProgressPane #run-head { height: auto; padding: 1 2; }
    ProgressPane #run-head Static { height: auto; }
    ProgressPane ProgressBar { width: 100%; margin-top: 1; }
    ProgressPane Bar { width: 1fr; }
    ProgressPane Bar > .bar--bar, ProgressPane Bar > .bar--complete {
        color: $primary; background: $panel;
    }
    ProgressPane RunLog { height: 1fr; padding: 0 1; }
    ProgressPane #run-status { height: 1; padding: 0 2; background: $boost; }
    """
    BINDING_GROUP_TITLE = "Run"
    BINDINGS = bindings("run")

    class CancelRequested(Message):
        """A stop after the current file is requested."""

    def __init__(self) -> None:
        super().__init__(id="run")
        self._log: list[LogRow] = []
        self._goal = ""
        self._now = ""
        self._completed = 0
        self._total = 0
        self._started = 0.0
        self._cancelling = False
        self._titles: dict[str, str] = {}
        """The title of each instance of the plan."""
        self._words: dict[str, str] = {}
        """The word of the plan for each file that changes."""
        self._timer: Timer | None = None

    def compose(self) -> ComposeResult:
        with Vertical(id="run-head"):
            yield Static("", id="run-goal", markup=False)
            yield ProgressBar(total=1, show_eta=False)
            yield Static("", id="run-now", markup=False)
        yield RunLog(id="run-log")
        yield Static("", id="run-status", markup=False)

    def on_mount(self) -> None:
        self._timer = self.set_interval(DRAW_SECONDS, self._draw, pause=True)

    # --- events -----------------------------------------------------------------------------------

    def prepare(self, preview: Preview) -> None:
        """Start to show the run of an approved preview, before anything is written."""
        titles = {step.id: step.title for step in preview.plan.steps}
        self._titles = {
            instance.name: titles[instance.step_id]
            + (f" ({instance.index + 1})" if instance.index is not None else "")
            for instance in preview.instances
        }
        kind_of = kinds_of(preview.change_set)
        self._words = {
            change.path.text: ROW_WORDS[kind_of(change)] for change in preview.change_set.changes
        }
        self._log, self._goal, self._now = [], preview.plan.goal, "Backing up the files for undo…"
        self._completed, self._total, self._cancelling = 0, len(preview.instances), False
        self._started = time.monotonic()
        self.query_one(RunLog).set_rows([])
        self._draw()
        if self._timer is not None:
            self._timer.resume()

    def _title(self, instance: str) -> str:
        return self._titles.get(instance, instance)

    def started(self, event: RunStarted) -> None:
        self._total, self._now = event.total, "Starting"

    def step_started(self, event: StepStarted) -> None:
        self._now = self._title(event.instance)

    def step_finished(self, event: StepFinished) -> None:
        self._completed, self._total = event.completed, event.total
        paths = event.paths
        word, text = "done", self._title(event.instance)
        if paths:
            word, text = self._words.get(paths[0], "done"), paths[0]
        if len(paths) > 1:
            text += f" and {len(paths) - 1} more"
        self._log.append(LogRow("applied", word, text, f"{event.elapsed_ms:.0f} ms"))

    def step_skipped(self, event: StepSkipped) -> None:
        self._completed, self._total = event.completed, event.total
        self._log.append(LogRow("skipped", "skipped", self._title(event.instance), event.reason))

    def step_retrying(self, event: StepRetrying) -> None:
        self._log.append(
            LogRow(
                "retry",
                "retry",
                f"{self._title(event.instance)} (attempt {event.attempt} of {event.attempts})",
                event.problem.sentence,
            )
        )

    def step_failed(self, event: StepFailed) -> None:
        self._log.append(
            LogRow(
                "failed",
                "failed",
                event.problem.file or self._title(event.instance),
                event.problem.sentence,
            )
        )

    def finish(self) -> None:
        """Show the final state of the run and stop the clock."""
        if self._timer is not None:
            self._timer.pause()
        self._draw()

    # --- drawing ----------------------------------------------------------------------------------

    def show_cancelling(self) -> None:
        """Show that the run stops after the current file."""
        self._cancelling = True
        self._draw()

    def _draw(self) -> None:
        self.query_one("#run-goal", Static).update(
            Content.styled(terminal_text.folded(self._goal, 2), "bold")
        )
        self.query_one(ProgressBar).update(total=max(self._total, 1), progress=self._completed)
        count = (f"{self._completed:,}/{self._total:,}  ", "$foreground")
        self.query_one("#run-now", Static).update(
            Content.assemble(count, (terminal_text.shortened(self._now, 200), "$quiet"))
        )
        log = self.query_one(RunLog)
        if len(log.rows) != len(self._log):
            log.set_rows(tuple(self._log), follow=True)
        self.query_one("#run-status", Static).update(self._status())

    def _status(self) -> Content:
        elapsed = time.monotonic() - self._started
        parts = [f"{_clock(elapsed)} elapsed"]
        rest = seconds_left(elapsed, self._completed, self._total)
        if rest is not None:
            parts.append(f"about {_clock(rest)} left")
        if self._cancelling:
            return Content.assemble(
                ("Stopping after the current file…", "$warning"), (f"  {parts[0]}", "$quiet")
            )
        return Content.assemble(
            (" · ".join(parts), "$quiet"),
            (f"   {key_label(self, 'run.cancel')}", "$primary bold"),
            (" stops after the current file", "$quiet"),
        )

    def action_cancel(self) -> None:
        self.post_message(self.CancelRequested())


def seconds_left(elapsed: float, completed: int, total: int) -> float | None:
    """Estimate the seconds left from the mean time per instance, None at the start."""
    if completed < 3 or completed >= total or elapsed < 0.5:
        return None
    return elapsed / completed * (total - completed)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d}"


class ResultList(RunFiles, inherit_bindings=False):
    """The problems, steps and files of a result."""

    BINDING_GROUP_TITLE = "Result"
    BINDINGS = [*bindings("list", without=("list.previous", "list.top")), *FOLD_KEYS]


class ResultPane(Vertical):
    """The result of one run."""

    DEFAULT_CSS = """
    ResultPane { background: $surface; }
    ResultPane #result-head { height: auto; padding: 1 2; }
    ResultPane ResultList { height: 1fr; padding: 0 1; }
    ResultPane #result-status { height: auto; padding: 0 2; background: $boost; }
    """
    BINDING_GROUP_TITLE = "Result"
    BINDINGS = bindings("result")

    class Requested(Message):
        """The user requested an action on the result: undo, redo, save or close."""

        def __init__(self, action: str, result: ExecutionResult) -> None:
            super().__init__()
            self.action = action
            self.result = result

    class DiffRequested(Message):
        """The user wants to see what the run changed in a file."""

        def __init__(self, run_id: str, path: str) -> None:
            super().__init__()
            self.run_id = run_id
            self.path = path

    def __init__(self) -> None:
        super().__init__(id="result")
        self.result: ExecutionResult | None = None
        self._files: Sequence[RunFile] = ()
        self._steps: Sequence[StepOutcome] = ()
        self._is_undone = False

    def compose(self) -> ComposeResult:
        yield Static("", id="result-head", markup=False)
        yield ResultList(id="result-list")
        yield Static("", id="result-status", markup=False)

    def show(self, result: ExecutionResult) -> None:
        """Show the result of a run."""
        self.result, self._files = result, rows_of_effects(result.effects)
        listing = self.query_one(ResultList)
        listing.clear()
        self.update_steps(result.steps)
        listing.action_first()

    def show_files(self, run_id: str, files: Sequence[RunFile]) -> None:
        """Show the files of the run with what it changed in them, once that is read."""
        if self.result is not None and self.result.run_id == run_id:
            self._files = files
            self.update_steps(self._steps)

    def update_steps(self, steps: Sequence[StepOutcome]) -> None:
        """Show the state of the run after an undo or redo, from the outcome of its steps."""
        from obsidian_agent.agent.result_text import describe_result

        result, self._steps = self.result, tuple(steps)
        if result is None:
            return
        if self._steps == result.steps:
            self._is_undone = False
            problems = [_problem_row("error", problem) for problem in result.errors]
            problems += [_problem_row("warning", problem) for problem in result.warnings]
            self._draw(
                _HEADS[result.status],
                describe_result(result),
                [
                    *problems,
                    *step_rows_unless_applied(steps),
                    *_remaining_rows(result.remaining),
                    *self._files,
                ],
            )
            return
        states = {step.state for step in steps}
        self._is_undone = "undone" in states and states <= {"undone", "not applied", "no changes"}
        if self._is_undone:
            self._draw(_UNDONE, "All changes of the run were undone.", step_rows(steps))
        else:
            self._draw(
                _PARTLY_UNDONE, "Some changes of the run are still applied.", step_rows(steps)
            )

    def _draw(self, head: tuple[str, str], text: str, rows: Sequence[RunFile]) -> None:
        word, style = head
        self.query_one("#result-head", Static).update(
            Content.assemble((word, f"{style} bold"), "\n", (text, "$foreground"))
        )
        listing = self.query_one(ResultList)
        listing.empty = "Nothing was changed."
        listing.show(rows)
        self._draw_status()

    def _draw_status(self) -> None:
        rows = self.query_one(ResultList).entries
        uses = []
        if any(row.word in ("error", "warning") for row in rows):
            uses.append("the full text")
        if any(file.paths for row in rows for file in row.files):
            uses.append("the changes")
        status = Content("")
        if uses:
            key = key_label(self, "list.choose")
            status = Content.assemble(
                (key, "$primary bold"), (f" shows {' or '.join(uses)}", "$quiet")
            )
        self.query_one("#result-status", Static).update(status)
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        result = self.result
        if action == "undo":
            return result is not None and result.undo_available and not self._is_undone
        if action == "redo":
            return self._is_undone
        if action == "preview_again":
            return result is not None and result.status == "conflict"
        if action == "rest":
            return self._has_rest
        if action == "save_macro":
            return result is not None and result.success and result.run_id is not None
        return True

    @property
    def _has_rest(self) -> bool:
        """True if a cancelled run left changes that can still be made."""
        result = self.result
        return (
            result is not None
            and result.status == "cancelled"
            and not result.remaining.is_empty
            and not self._is_undone
        )

    def on_virtual_list_chosen(self, event: ResultList.Chosen) -> None:
        event.stop()
        row = event.row
        if row.path is not None and self.result is not None and self.result.run_id is not None:
            self.post_message(self.DiffRequested(self.result.run_id, row.path))
        elif row.no_diff:
            text = terminal_text.block(row.no_diff)
            self.post_message(PlanPane.DetailRequested(row.word.capitalize(), text))

    def action_open_note(self) -> None:
        listing = self.query_one(ResultList)
        row = listing.current
        if row is not None and listing.path is not None and row.word != "delete":
            self.post_message(NoteRequested(listing.path))

    def action_outside(self) -> None:
        path = self.query_one(ResultList).path
        if path is not None:
            self.post_message(OutsideRequested(path))

    def action_undo(self) -> None:
        self._request("undo")

    def action_redo(self) -> None:
        self._request("redo")

    def action_preview_again(self) -> None:
        self._request("preview")

    def action_rest(self) -> None:
        self._request("rest")

    def action_save_macro(self) -> None:
        self._request("save")

    def action_close(self) -> None:
        self._request("close")

    def _request(self, action: str) -> None:
        if self.result is not None:
            self.post_message(self.Requested(action, self.result))


def _problem_row(word: str, problem: Problem) -> RunFile:
    text, file = problem.sentence, problem.file
    message = f"{file}: {text}" if file and file not in text else text
    return RunFile(word=word, text=message, no_diff=message)


def _remaining_rows(remaining: Effects) -> list[RunFile]:
    """Return a row for each change that the run did not make."""
    rows = rows_of_effects(remaining)
    return [RunFile(word="pending", text=f"{row.word} {row.text}") for row in rows]
