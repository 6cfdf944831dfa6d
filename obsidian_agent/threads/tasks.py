"""Tasks of a conversation: those that were written down in it, and the plans that it made, with how far each has come.

One list for both, and no store of its own: found in what the thread says, ticked in the thread's own file.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from obsidian_agent.dataclass import dataclass
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

StepState = Literal["open", "done", "failed", "skipped"]


@dataclass(frozen=True, slots=True)
class Task:
    """A task. `id` stays the same as long as its words do; `from_person`: the person wrote it, not a model."""

    id: str
    text: str
    done: bool
    from_person: bool


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """A plan of the conversation as a list of tasks. `run_id` and `status` are of its last run, None and "" before one."""

    goal: str
    steps: tuple[tuple[str, StepState], ...]
    plan: Mapping[str, Any]
    run_id: str | None = None
    status: str = ""

    @property
    def progress(self) -> float:
        """Steps done, from 0.0 to 1.0."""
        return (
            sum(1 for _, state in self.steps if state == "done") / len(self.steps)
            if self.steps
            else 0.0
        )


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


def plans_of(state: ThreadState) -> list[TaskPlan]:
    """The plans of a thread, the newest last, each with what came of it."""
    found: list[TaskPlan] = []
    for said in state.said:
        if said.role == "plan":
            found.append(_plan(said))
        elif said.role == "run" and found:
            found[-1] = _run(found[-1], said)
    return found


def _plan(said: Said) -> TaskPlan:
    document = said.data.get("plan")
    steps = document.get("steps") if isinstance(document, dict) else None
    listed: Sequence[Any] = steps if isinstance(steps, list) else ()
    named = tuple((_step(step), _OPEN) for step in listed if isinstance(step, dict))
    return TaskPlan(said.text, named, document if isinstance(document, dict) else {})


_OPEN: Final[StepState] = "open"


def _step(step: Mapping[str, Any]) -> str:
    return _short(str(step.get("preview") or step.get("tool") or step.get("id") or "?"))


def _run(plan: TaskPlan, said: Said) -> TaskPlan:
    """A plan after its run: all steps done, or those before the first that failed."""
    problems = said.data.get("problems")
    failed = (
        {each.get("stepId") for each in problems if isinstance(each, dict)}
        if isinstance(problems, list)
        else set()
    )
    ids = [str(step.get("id")) for step in plan.plan.get("steps", ()) if isinstance(step, dict)]
    success = said.data.get("success") is True
    states: list[StepState] = []
    broken = False
    for identity in ids:
        if success:
            states.append("done")
        elif identity in failed:
            states.append("failed")
            broken = True
        else:
            states.append("skipped" if broken or not failed else "done")
    run_id = said.data.get("runId")
    steps = tuple((text, state) for (text, _), state in zip(plan.steps, states, strict=False))
    return TaskPlan(
        plan.goal,
        steps,
        plan.plan,
        run_id if isinstance(run_id, str) else None,
        str(said.data.get("status", "")),
    )


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
