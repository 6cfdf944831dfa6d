"""Tasks of a conversation: those that were written down in it, and the plans that it made, with how far each has come.

One list for both, and no store of its own: found in what the thread says, ticked in the thread's own file. What became of a step is read
from the journal.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from obsidian_agent.dataclass import dataclass, replace
from obsidian_agent.journal.records import StepOutcome, StepState
from obsidian_agent.threads.state import Said, ThreadState

MOST_TASKS: Final = 200
"""Of one conversation; nobody reads more, and each is compared with each."""
_LONGEST: Final = 300
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
"""State of a step of a plan: `open` before any run, `unknown` when the journal has no record of its run."""


OutcomesOf = Callable[[str], Sequence[StepOutcome]]
"""Gives the outcome of each step of a run; nothing when the journal does not have it."""


@dataclass(frozen=True, slots=True)
class Task:
    """A task. `id` stays the same as long as its words do; `from_person`: the person wrote it, not a model."""

    id: str
    text: str
    done: bool
    from_person: bool


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """A plan of the conversation as a list of tasks. `run_id` and `status` are of its last run, None and "" before one.

    The states of its steps are those of the journal, so an undo changes them.
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


def tasks_of(state: ThreadState) -> list[Task]:
    """The tasks written down in a thread, in order, each once; ticks of the person win over what the text says."""
    found: dict[str, Task] = {}
    for said in state.said:
        if said.role not in ("person", "model"):
            continue
        for text, done in tasks_in(said.text):
            key = hashlib.sha256(
                " ".join(text.casefold().split()).encode("utf-8", "surrogatepass")
            ).hexdigest()[:12]
            old = found.get(key)
            ticked = state.done.get(key, done or (old is not None and old.done))
            found[key] = Task(
                key, text, ticked, old.from_person if old is not None else said.role == "person"
            )
    return list(found.values())[:MOST_TASKS]


def tasks_in(text: str) -> Iterator[tuple[str, bool]]:
    """Tasks in a text and whether each is done: boxes, `TODO:`, and numbered lists under a line that announces tasks. Not in code."""
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
    runs: list[list[Said]] = []
    for said in state.said:
        if said.role == "plan":
            plans.append(_plan(said))
            runs.append([])
        elif said.role == "run" and plans:
            runs[-1].append(said)
    return [
        _with_runs(plan, of_plan, outcomes_of) for plan, of_plan in zip(plans, runs, strict=True)
    ]


def _plan(said: Said) -> TaskPlan:
    document = said.data.get("plan")
    steps = document.get("steps") if isinstance(document, dict) else None
    listed: Sequence[Any] = steps if isinstance(steps, list) else ()
    open_steps: list[tuple[str, PlanStepState]] = [
        (_step(step), "open") for step in listed if isinstance(step, dict)
    ]
    return TaskPlan(said.text, tuple(open_steps), document if isinstance(document, dict) else {})


def _step(step: Mapping[str, Any]) -> str:
    return _short(str(step.get("preview") or step.get("tool") or step.get("id") or "?"))


def _with_runs(plan: TaskPlan, runs: Sequence[Said], outcomes_of: OutcomesOf) -> TaskPlan:
    """Return a plan with the outcome of its steps. A plan that runs in stages has a run for each of them."""
    ids = [run_id for said in runs if isinstance(run_id := said.data.get("runId"), str)]
    if not runs:
        return plan
    if not ids:
        return replace(plan, status=str(runs[-1].data.get("status", "")))
    states: dict[str, StepState] = {}
    for run_id in ids:
        for outcome in outcomes_of(run_id):
            if states.get(outcome.step) not in ("applied", "partly applied"):
                states[outcome.step] = outcome.state
    missing: PlanStepState = "not applied" if states else "unknown"
    listed = plan.plan.get("steps")
    named = [step for step in listed if isinstance(step, dict)] if plan.steps and listed else []
    steps = tuple(
        (text, states.get(str(step.get("id")), missing))
        for step, (text, _) in zip(named, plan.steps, strict=True)
    )
    status = str(runs[-1].data.get("status", ""))
    return TaskPlan(plan.goal, steps, plan.plan, ids[-1], _status_now(status, steps))


def _status_now(status: str, steps: Iterable[tuple[str, PlanStepState]]) -> str:
    """Return the status of a run, or that it is undone since."""
    states = {state for _, state in steps} - {"no changes", "not applied"}
    if "undone" not in states and not (status == "done" and "partly applied" in states):
        return status
    return "undone" if states == {"undone"} else "partly undone"


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
