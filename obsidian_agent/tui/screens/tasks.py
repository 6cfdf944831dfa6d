"""The tasks of a conversation: its plans with their progress, and its written tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from textual.app import ComposeResult
from textual.content import Content

from obsidian_agent import terminal_text
from obsidian_agent.errors import JournalError
from obsidian_agent.tui.bindings import binding, bindings
from obsidian_agent.tui.report_lines import STEP_SIGNS
from obsidian_agent.tui.screens.dialogs import ListScreen
from obsidian_agent.tui.widgets.row_list import VirtualList

if TYPE_CHECKING:
    from obsidian_agent.journal.records import StepOutcome
    from obsidian_agent.threads.manager import ThreadManager
    from obsidian_agent.threads.tasks import ConversationTask, PlanStepState, TaskPlan

_TICKS = {True: ("✓", "$success"), False: ("○", "$quiet")}


class TaskRequest(Struct, frozen=True):
    """A request to preview a plan again, or to undo its run, whole or back to a step."""

    what: Literal["preview", "undo", "step"]
    plan: TaskPlan


class StepLine(Struct, frozen=True):
    """The line of a plan's step."""

    text: str
    state: PlanStepState


class TaskList(VirtualList["TaskPlan | StepLine | ConversationTask"]):
    """The plans with their steps, then the tasks."""

    DEFAULT_CSS = "TaskList { height: auto; min-height: 3; }"
    BINDINGS = [binding("list.choose", "Preview")]

    def can_stop(self, row: TaskPlan | StepLine | ConversationTask | str) -> bool:
        return not isinstance(row, str | StepLine)

    def draw_row(self, row: TaskPlan | StepLine | ConversationTask, width: int) -> Content:
        from obsidian_agent.threads.tasks import ConversationTask, TaskPlan

        match row:
            case StepLine():
                sign, style = STEP_SIGNS[row.state]
                state = "" if row.state == "open" else f"  {row.state}"
                return Content.assemble(
                    (f"     {sign} ", style),
                    (terminal_text.shortened(row.text, 200), "$quiet"),
                    (state, style),
                )
            case TaskPlan():
                status = terminal_text.line(row.status) if row.run_id else "not applied"
                style = "$success" if row.completed == len(row.steps) else "$warning"
                return Content.assemble(
                    (f" {row.completed}/{len(row.steps)} ", style),
                    (terminal_text.shortened(row.goal, 200), "$foreground"),
                    (f"  {status}", "$quiet"),
                )
            case ConversationTask():
                sign, style = _TICKS[row.done]
                text_style = "$quiet strike" if row.done else "$foreground"
                return Content.assemble(
                    (f" {sign} ", style),
                    (terminal_text.shortened(row.text, 240), text_style),
                    ("  yours" if row.from_user else "", "$quiet"),
                )


class Tasks(ListScreen["TaskPlan | StepLine | ConversationTask", TaskRequest]):
    """The list of plans and tasks. Dismisses with a request that concerns a plan."""

    BINDINGS = bindings("tasks")

    def __init__(self, threads: ThreadManager, thread_id: str) -> None:
        super().__init__(
            "Tasks of this conversation",
            "Ticks are stored with the conversation. They change no note.",
        )
        self._threads = threads
        self._of_thread = thread_id

    def body(self) -> ComposeResult:
        yield TaskList(
            empty=" No tasks yet. Messages with - [ ] boxes, TODO: or numbered steps add tasks."
        )

    def load(self) -> Sequence[str | TaskPlan | StepLine | ConversationTask]:
        return build_rows(self._threads, self._of_thread)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        from obsidian_agent.threads.tasks import TaskPlan

        if action not in ("undo", "step"):
            return True
        row = self.row if self.is_mounted else None
        return isinstance(row, TaskPlan) and row.run_id is not None

    def on_virtual_list_highlighted(self) -> None:
        self.refresh_bindings()

    def on_virtual_list_chosen(self, event: TaskList.Chosen) -> None:
        from obsidian_agent.threads.tasks import TaskPlan

        row = event.row
        if isinstance(row, TaskPlan):
            self.dismiss(TaskRequest("preview", row))
        else:
            self.action_tick()

    def action_tick(self) -> None:
        from obsidian_agent.threads.tasks import ConversationTask

        if isinstance(self.row, ConversationTask):
            self.run_flow("tick", partial(self._tick, self.row))

    async def _tick(self, task: ConversationTask) -> None:
        await asyncio.to_thread(self._threads.tick, self._of_thread, task.id, not task.done)
        await self.reload()

    def action_step(self) -> None:
        self._request("step")

    def action_undo(self) -> None:
        self._request("undo")

    def _request(self, what: Literal["undo", "step"]) -> None:
        from obsidian_agent.threads.tasks import TaskPlan

        row = self.row
        if isinstance(row, TaskPlan) and row.run_id is not None:
            self.dismiss(TaskRequest(what, row))


def build_rows(
    threads: ThreadManager, thread_id: str
) -> Sequence[str | TaskPlan | StepLine | ConversationTask]:
    """Return the plans of a conversation, newest first, with their steps, then its tasks.

    May block.
    """
    from obsidian_agent.threads.tasks import plans_of, tasks_of

    def outcomes_of(run_id: str) -> Sequence[StepOutcome]:
        try:
            return threads.session.runs.step_outcomes(run_id)
        except JournalError:
            return ()

    state = threads.open(thread_id).state
    rows: list[str | TaskPlan | StepLine | ConversationTask] = []
    plans = plans_of(state, outcomes_of)
    if plans:
        rows.append(f"Plans ({len(plans)})")
        for plan in reversed(plans):
            rows += [plan, *(StepLine(text, step) for text, step in plan.steps)]
    tasks = tasks_of(state)
    if tasks:
        rows += [f"Tasks ({sum(task.done for task in tasks)} of {len(tasks)} done)", *tasks]
    return rows
