"""The tasks of a conversation: those written in its messages, and its plans with their progress.

Neither is stored separately. Tasks are parsed from the messages and ticked in the thread's file.
The journal has the outcome of a plan's steps.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from obsidian_agent.journal.records import StepOutcome, StepState, current_status
from obsidian_agent.threads.state import ThreadEntry, ThreadState

MAX_TASKS: Final = 200
"""Number of tasks listed for one conversation."""
_MAX_LENGTH: Final = 300
"""Characters of a task."""
_BOX: Final = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+\[([ xX-])\]\s+(\S.*)$")
_TODO: Final = re.compile(
    r"^\s*(?:[-*+]\s+|#+\s+|>\s*)*(?:TODO|TO-DO|FIXME|Aufgabe)\s*:\s*(\S.*)$", re.IGNORECASE
)
_NUMBERED: Final = re.compile(r"^\s*\d+[.)]\s+(\S.*)$")
_ANNOUNCED: Final = re.compile(
    r"\b(?:tasks?|to-?dos?|steps|next steps|plan|aufgaben|schritte)\b[^\n]*:\s*$", re.IGNORECASE
)
_FENCE: Final = re.compile(r"^\s*(`{3,}|~{3,})")

PlanStepState = StepState | Literal["open", "unknown"]
"""State of a step: `open` before any run, `unknown` if the journal has no record of its run."""

OutcomesOf = Callable[[str], Sequence[StepOutcome]]
"""Return the outcome of each step of a run; empty if the journal has no record of it."""


class ConversationTask(Struct, frozen=True):
    """A task written down in a conversation. `id` depends on its words alone.

    `from_user`: written by the user, not by a model.
    """

    id: str
    text: str
    done: bool
    from_user: bool


class TaskPlan(Struct, frozen=True, kw_only=True):
    """A plan of the conversation as a list of tasks.

    `run_id` and `status` belong to its last run (None and "" before one). The states of its steps
    come from the journal, so an undo changes them.
    """

    goal: str
    steps: tuple[tuple[str, PlanStepState], ...]
    plan: Mapping[str, Any]
    run_id: str | None = None
    status: str = ""

    @property
    def completed(self) -> int:
        """Number of steps that have nothing left to apply."""
        return sum(state in ("applied", "no changes") for _, state in self.steps)


def tasks_of(state: ThreadState) -> list[ConversationTask]:
    """Return the tasks in a thread's messages, in order and without duplicates.

    The user's ticks take precedence over the text.
    """
    tasks: dict[str, ConversationTask] = {}
    for entry in state.entries:
        if entry.role not in ("person", "model"):
            continue
        for text, done in tasks_in(entry.text):
            task_id = _task_id(text)
            old = tasks.get(task_id)
            done = done or (old is not None and old.done)
            tasks[task_id] = ConversationTask(
                task_id,
                text,
                state.done.get(task_id, done),
                old.from_user if old is not None else entry.role == "person",
            )
    return list(tasks.values())[:MAX_TASKS]


def _task_id(text: str) -> str:
    words = " ".join(text.casefold().split())
    return hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def tasks_in(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the tasks in a text, each with whether it is done.

    These are checkboxes, `TODO:` lines, and numbered lists below a line that announces tasks.
    Code blocks are skipped.
    """
    fence = ""
    announced = False
    for line in text.splitlines():
        if (mark := _FENCE.match(line)) is not None:
            fence = "" if fence and mark.group(1).startswith(fence) else fence or mark.group(1)
            continue
        if fence:
            continue
        if (box := _BOX.match(line)) is not None:
            yield _short(box.group(2)), box.group(1) != " "
        elif (todo := _TODO.match(line)) is not None:
            yield _short(todo.group(1)), False
        elif announced and (numbered := _NUMBERED.match(line)) is not None:
            yield _short(numbered.group(1)), False
        elif line.strip():
            announced = _ANNOUNCED.search(line) is not None


def plans_of(state: ThreadState, outcomes_of: OutcomesOf) -> list[TaskPlan]:
    """Return the plans of a thread, the newest last, with the outcome of their steps."""
    plans: list[TaskPlan] = []
    runs: list[list[ThreadEntry]] = []
    for entry in state.entries:
        if entry.role == "plan":
            plans.append(_plan(entry))
            runs.append([])
        elif entry.role == "run" and plans:
            runs[-1].append(entry)
    return [
        _with_runs(plan, of_plan, outcomes_of) for plan, of_plan in zip(plans, runs, strict=True)
    ]


def _plan(entry: ThreadEntry) -> TaskPlan:
    document = entry.data.get("plan")
    steps = document.get("steps") if isinstance(document, dict) else None
    listed: Sequence[Any] = steps if isinstance(steps, list) else ()
    open_steps: list[tuple[str, PlanStepState]] = [
        (_step(step), "open") for step in listed if isinstance(step, dict)
    ]
    return TaskPlan(
        goal=entry.text,
        steps=tuple(open_steps),
        plan=document if isinstance(document, dict) else {},
    )


def _step(step: Mapping[str, Any]) -> str:
    return _short(str(step.get("preview") or step.get("tool") or step.get("id") or "?"))


def _with_runs(plan: TaskPlan, runs: Sequence[ThreadEntry], outcomes_of: OutcomesOf) -> TaskPlan:
    """Return a plan with the outcome of its steps. A plan with stages has a run for each stage."""
    ids = [run_id for run in runs if isinstance(run_id := run.data.get("runId"), str)]
    if not runs:
        return plan
    if not ids:
        return replace(plan, status=str(runs[-1].data.get("status", "")))
    outcomes = [outcome for run_id in ids for outcome in outcomes_of(run_id)]
    states: dict[str, StepState] = {}
    for outcome in outcomes:
        if states.get(outcome.step) not in ("applied", "partly applied"):
            states[outcome.step] = outcome.state
    missing: PlanStepState = "not applied" if states else "unknown"
    listed = plan.plan.get("steps")
    named = [step for step in listed if isinstance(step, dict)] if plan.steps and listed else []
    steps = tuple(
        (text, states.get(str(step.get("id")), missing))
        for step, (text, _) in zip(named, plan.steps, strict=True)
    )
    status = current_status(
        runs[-1].data.get("status", ""),
        undone=any(outcome.undone for outcome in outcomes),
        in_effect=any(outcome.in_effect for outcome in outcomes),
    )
    return TaskPlan(goal=plan.goal, steps=steps, plan=plan.plan, run_id=ids[-1], status=status)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 1]}…"
