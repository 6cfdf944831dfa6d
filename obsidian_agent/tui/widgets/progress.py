"""The run while it happens: bar, current step, log, time. Drawn at most ten times a second however fast the events come."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Static

from obsidian_agent import terminal_text
from obsidian_agent.tui.keys import bindings
from obsidian_agent.tui.widgets.virtual_list import VirtualList

if TYPE_CHECKING:
    from obsidian_agent.agent.events import RunStarted, StepFailed, StepFinished, StepRetrying, StepSkipped, StepStarted

LogKind = Literal["done", "failed", "skipped", "retry"]

_SIGNS: dict[LogKind, tuple[str, str]] = {
    "done": ("✓ done   ", "$success"),
    "failed": ("✗ failed ", "$error"),
    "skipped": ("↷ skipped", "$quiet"),
    "retry": ("⟳ again  ", "$warning"),
}


@dataclass(frozen=True, slots=True)
class LogRow:
    """One line of the log; its texts are as they came."""

    kind: LogKind
    name: str
    text: str
    note: str = ""


class RunLog(VirtualList[LogRow]):
    """What has been done."""

    BINDING_GROUP_TITLE = "Run"
    BINDINGS = [Binding("enter", "choose", show=False)]

    def draw_row(self, row: LogRow, width: int) -> Content:
        sign, style = _SIGNS[row.kind]
        return Content.assemble(
            (f" {sign} ", style),
            (terminal_text.shortened(row.text or row.name, 300), "$foreground"),
            (f"  {terminal_text.shortened(row.note, 200)}" if row.note else "", "$quiet"),
        )


class ProgressPane(Vertical):
    """Follows the events of one run."""

    DEFAULT_CSS = """
    ProgressPane { background: $surface; }
    ProgressPane #run-head { height: auto; padding: 1 2; }
    ProgressPane RunLog { height: 1fr; padding: 0 1; }
    ProgressPane #run-status { height: 1; padding: 0 2; background: $boost; }
    """
    BINDING_GROUP_TITLE = "Run"
    BINDINGS = bindings("run")

    class CancelRequested(Message):
        """The run is to stop after the current file."""

    def __init__(self) -> None:
        super().__init__(id="run")
        self._log: list[LogRow] = []
        self._goal = ""
        self._now = ""
        self._completed = 0
        self._total = 0
        self._started = 0.0
        self._cancelling = False
        self._timer: Timer | None = None

    def compose(self) -> ComposeResult:
        yield Static("", id="run-head", markup=False)
        yield RunLog(id="run-log")
        yield Static("", id="run-status", markup=False)

    def on_mount(self) -> None:
        self._timer = self.set_interval(0.1, self._draw, pause=True)

    # --- events ---------------------------------------------------------------------------------------------------------------

    def prepare(self, goal: str, total: int) -> None:
        """A plan was approved: nothing has been written yet."""
        self._log, self._goal, self._now = [], goal, "Securing what can be undone…"
        self._completed, self._total, self._cancelling = 0, total, False
        self._started = time.monotonic()
        self.query_one(RunLog).set_rows([])
        self._draw()
        if self._timer is not None:
            self._timer.resume()

    def started(self, event: RunStarted) -> None:
        self._total, self._now = event.total, "Starting"

    def step_started(self, event: StepStarted) -> None:
        self._now = event.text or event.instance

    def step_finished(self, event: StepFinished) -> None:
        self._completed, self._total = event.completed, event.total
        paths = event.paths
        text = paths[0] + (f" and {len(paths) - 1} more" if len(paths) > 1 else "") if paths else event.instance
        self._log.append(LogRow("done", event.instance, text, f"{event.elapsed_ms:.0f} ms"))

    def step_skipped(self, event: StepSkipped) -> None:
        self._completed, self._total = event.completed, event.total
        self._log.append(LogRow("skipped", event.instance, event.instance, event.reason))

    def step_retrying(self, event: StepRetrying) -> None:
        self._log.append(
            LogRow("retry", event.instance, f"{event.instance} (attempt {event.attempt} of {event.attempts})", event.problem.message)
        )

    def step_failed(self, event: StepFailed) -> None:
        self._log.append(LogRow("failed", event.instance, event.problem.path or event.instance, event.problem.message))

    def finish(self) -> None:
        """The run ended: draw what is left and rest."""
        if self._timer is not None:
            self._timer.pause()
        self._draw()

    # --- drawing --------------------------------------------------------------------------------------------------------------

    def cancelling(self) -> None:
        """The person asked to stop; the current file is finished first."""
        self._cancelling = True
        self._draw()

    def _draw(self) -> None:
        width = max(self.size.width - 4, 10)
        share = self._completed / self._total if self._total else 0.0
        label = f" {self._completed:,}/{self._total:,}  {share:.0%}"
        bar = max(width - len(label), 4)
        full = int(bar * share)
        head = Content.assemble(
            (terminal_text.folded(self._goal, 2), "bold"),
            "\n\n",
            ("━" * full, "$primary"),
            ("─" * (bar - full), "$panel"),
            (label, "$foreground"),
            "\n",
            (terminal_text.shortened(self._now, 200), "$quiet"),
        )
        self.query_one("#run-head", Static).update(head)
        log = self.query_one(RunLog)
        if len(log.rows) != len(self._log):
            log.set_rows(tuple(self._log), follow=True)
        self.query_one("#run-status", Static).update(self._status())

    def _status(self) -> Content:
        elapsed = time.monotonic() - self._started
        parts = [f"{_clock(elapsed)} elapsed"]
        left = remaining(elapsed, self._completed, self._total)
        if left is not None:
            parts.append(f"about {_clock(left)} left")
        if self._cancelling:
            return Content.assemble(("Stopping after the current file…", "$warning"), (f"  {parts[0]}", "$quiet"))
        return Content.assemble((" · ".join(parts), "$quiet"), ("   Esc", "$primary bold"), (" stops after the current file", "$quiet"))

    def action_cancel(self) -> None:
        self.post_message(self.CancelRequested())


def remaining(elapsed: float, completed: int, total: int) -> float | None:
    """Seconds left by the mean time of what is done; None while too little is known."""
    if completed < 3 or completed >= total or elapsed < 0.5:
        return None
    return elapsed / completed * (total - completed)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d}"
