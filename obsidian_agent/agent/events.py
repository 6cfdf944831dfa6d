"""Everything that happens in a turn or a run, as one closed union of frozen events; front ends `match` on it and end in `assert_never`.

Below `stream` there are no iterators: a function that takes `emit` awaits it for each event and returns what it came to. `stream` runs it only
as far as the next event that somebody asks for, in the task that asks.
Also the results as the JSON documents of the contract, and what a plan that only reads has found, in words.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import types
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterator,
    Mapping,
)
from typing import Any, Literal

from obsidian_agent.agent.privacy.consent import ShareDecision, ShareRequest
from obsidian_agent.dataclass import dataclass, field
from obsidian_agent.errors import Problem
from obsidian_agent.journal.records import Effects as Effects
from obsidian_agent.journal.records import StepOutcome
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.plan.result import Preview, Timings
from obsidian_agent.tools.core.tool import Risk

RunStatus = Literal["done", "failed", "stopped", "cancelled", "conflict", "refused", "recovered"]
Outcome = Literal["done", "refused", "error", "needs-input"]


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    """How a run ended: on success, stop, cancel and recovery alike. `run_id` is None when nothing started."""

    run_id: str | None
    status: RunStatus
    success: bool
    outcome: Outcome
    completed_steps: int = 0
    total_steps: int = 0
    outputs: Mapping[str, Any] = field(default_factory=dict)
    errors: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    effects: Effects = Effects()
    steps: tuple[StepOutcome, ...] = ()
    """Outcome of each step of the plan, as the journal has it."""
    remaining: Effects = Effects()
    """What the approved plan would still have done."""
    undo_available: bool = False
    timings: Timings = Timings()


# --- planning -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """A message of the person is being worked on."""

    message: str


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Streamed text of the model; `thinking` text is shown apart and never parsed."""

    text: str
    thinking: bool = False


@dataclass(frozen=True, slots=True)
class PlanningRetry:
    """The answer was no valid plan; it is asked for again (`attempt` of `attempts`)."""

    attempt: int
    attempts: int
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """The turn ended in words, not in a plan. `sources` are vault paths of what it rests on, `besides` of what the model was shown else."""

    text: str
    sources: tuple[str, ...] = ()
    also_sent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A plan that the instruction may mean, with the values found for its parameters.

    `values` are texts as forms and `--param` take them. What is `missing` has no value yet; `plan` is None until it is known. `recipe` names
    the recipe or macro (`macro:NAME`); `doubt` says what speaks against it; `agent` made the plan, "" for nobody whom the policy knows.
    """

    title: str
    plan: ActionPlan | None
    values: Mapping[str, Any]
    missing: tuple[str, ...]
    recipe: str = ""
    doubt: str = ""
    agent: str = ""


@dataclass(frozen=True, slots=True)
class NeedsInput:
    """The person must choose among candidates, or give what is missing."""

    message: str
    candidates: tuple[Candidate, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanReady:
    """A plan was made and is about to be previewed. `notes` name what the parser mended; `preview` is its dry run, if there was one already;
    `agent` made it, "" for nobody whom the policy knows."""

    plan: ActionPlan
    notes: tuple[str, ...] = ()
    preview: Preview | None = None
    agent: str = ""


@dataclass(frozen=True, slots=True)
class PreviewStarted:
    """The first changes are known while the dry run goes on; approval stays locked until `PreviewReady`."""

    partial: Preview


@dataclass(frozen=True, slots=True)
class PreviewReady:
    """The dry run is complete. With errors there is nothing to approve."""

    preview: Preview


@dataclass(frozen=True, slots=True)
class TurnFailed:
    """The turn ended without a plan, an answer or a run; nothing was changed. `problems` are what the last attempt was rejected for."""

    problem: Problem
    problems: tuple[Problem, ...] = ()


# --- looking around -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolCallStarted:
    """The model looks at something. `purpose` says what the tool does, `why` is the model's reason, if it gave one."""

    call_id: str
    tool: str
    purpose: str
    args: Mapping[str, Any]
    why: str = ""


@dataclass(frozen=True, slots=True)
class ToolCallFinished:
    """The call's result is known and goes to the model.

    `paths` are the files of which something is in it; not `complete`: the person held something back. `problem`: the model gets an error.
    """

    call_id: str
    tool: str
    paths: tuple[str, ...] = ()
    characters: int = 0
    complete: bool = True
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class ShareRequested:
    """The person is being asked whether something may be sent."""

    request: ShareRequest


@dataclass(frozen=True, slots=True)
class ShareDecided:
    """The person has answered."""

    request: ShareRequest
    decision: ShareDecision


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that the person should know and need do nothing about; `alarm`: that they must not overlook."""

    problem: Problem
    alarm: bool = False


@dataclass(frozen=True, slots=True)
class TokensUsed:
    """What a turn has used so far: tokens as the service counts them, `cached` those of the prompt that it remembered.

    `cost` is in US dollars by the list prices (None: not known). Seconds: `seconds` from the first request on, `first` to the first token of
    the first answer, `tools` for looking around (waiting for the person left out).
    """

    model: str
    prompt: int
    completion: int
    requests: int = 1
    cached: int = 0
    cost: float | None = None
    seconds: float = 0.0
    first: float | None = None
    tools: float = 0.0


@dataclass(frozen=True, slots=True)
class RoundsUsedUp:
    """The turn ended without an answer: the model has looked around in `rounds` rounds. Whatever the person says next lets it go on."""

    rounds: int


# --- running ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The journal is durable; the vault is about to change."""

    run_id: str
    total: int


@dataclass(frozen=True, slots=True)
class StepStarted:
    """An instance begins. `text` is the step's preview line or a line made from its tool."""

    step_id: str
    instance: str
    text: str


@dataclass(frozen=True, slots=True)
class StepFinished:
    """Every change of an instance is applied; `paths` are the files it wrote, `elapsed_ms` what it took."""

    step_id: str
    instance: str
    completed: int
    total: int
    elapsed_ms: float
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StepSkipped:
    """An instance does not run; `reason` says why."""

    step_id: str
    instance: str
    reason: str
    completed: int
    total: int


@dataclass(frozen=True, slots=True)
class StepRetrying:
    """An instance failed in a way that may pass; it is tried again after `delay_ms`."""

    step_id: str
    instance: str
    attempt: int
    attempts: int
    delay_ms: float
    problem: Problem


@dataclass(frozen=True, slots=True)
class StepFailed:
    """An instance failed for good."""

    step_id: str
    instance: str
    problem: Problem


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The run ended, however it ended."""

    result: ExecutionResult


RunEvent = (
    RunStarted | StepStarted | StepFinished | StepSkipped | StepRetrying | StepFailed | RunFinished
)
LookEvent = (
    ToolCallStarted
    | ToolCallFinished
    | ShareRequested
    | ShareDecided
    | Notice
    | TokensUsed
    | RoundsUsedUp
)
Verdict = Answer | NeedsInput | PlanReady | TurnFailed | RoundsUsedUp
"""What a planner made of a message."""
PlanEvent = (
    TurnStarted
    | TextDelta
    | PlanningRetry
    | Answer
    | NeedsInput
    | PlanReady
    | PreviewStarted
    | PreviewReady
    | TurnFailed
)
TurnEvent = PlanEvent | LookEvent
AgentEvent = TurnEvent | RunEvent


Emit = Callable[[AgentEvent], Awaitable[None]]
"""Tells of an event; returns when it was taken."""


class _Emitted:
    """An event on its way up. Awaited, it hands itself to `_next`, through every function between them at once."""

    __slots__ = ("event",)

    def __init__(self, event: AgentEvent) -> None:
        self.event = event

    def __await__(self) -> Generator[Any, None, None]:
        yield self


async def stream(
    work: Callable[[Emit], Coroutine[Any, Any, object]],
) -> AsyncGenerator[AgentEvent, None]:
    """The events that `work(emit)` emits; its exception is raised where it came. Closing the iterator cancels it, at the event it waits at.

    `emit` may only be awaited by `work` itself and what it awaits, not by other tasks.
    """
    running = work(_Emitted)
    try:
        while (emitted := await _next(running, None)) is not None:
            yield emitted.event
    finally:
        cancelled = asyncio.CancelledError()
        error: BaseException | None = cancelled
        while inspect.getcoroutinestate(running) != inspect.CORO_CLOSED:
            try:
                await _next(running, error)  # what it emits while it ends, nobody hears
            except asyncio.CancelledError as raised:
                if raised is not cancelled:
                    raise
            error = None


@types.coroutine
def _next(
    running: Coroutine[Any, Any, object], error: BaseException | None
) -> Generator[Any, Any, _Emitted | None]:
    """Run a coroutine, from an exception thrown into it if there is one, up to its next event; None at its end."""
    given: Any = None
    while True:
        try:
            waits_for = running.send(given) if error is None else running.throw(error)
        except StopIteration:
            return None
        if isinstance(waits_for, _Emitted):
            return waits_for
        try:
            given, error = (yield waits_for), None
        except BaseException as thrown:
            error = thrown


async def in_thread(
    work: Callable[[Callable[[AgentEvent], None]], None],
    emit: Emit,
    abandoned: threading.Event | None = None,
) -> None:
    """Run `work(tell)` in a thread and emit what it tells, in order. Its exception is raised at the end.

    Cancelling does not stop the thread, since work that writes must finish. It sets `abandoned`, for work that only reads.
    """
    loop = asyncio.get_running_loop()
    told: asyncio.Queue[AgentEvent | None] = asyncio.Queue()

    def tell(event: AgentEvent | None) -> None:
        loop.call_soon_threadsafe(told.put_nowait, event)

    def run() -> None:
        try:
            work(tell)
        finally:
            tell(None)

    task = asyncio.ensure_future(asyncio.to_thread(run))
    try:
        while (event := await told.get()) is not None:
            await emit(event)
    finally:
        if abandoned is not None:
            abandoned.set()
        await asyncio.shield(task)


MOST_LINES = 200
"""Of one step; how many more there are is told."""


def findings(approved: Preview, outputs: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """For each step that no other goes on with, what it does and the lines of its output; none for a plan that changes something.

    The texts come from notes and models: front ends make them safe to show.
    """
    if approved.risk is not Risk.READ_ONLY:
        return []
    used = {name for instance in approved.instances for name in instance.depends_on}
    return [
        (step.preview or step.tool, _cut(list(_lines(outputs[step.id]))))
        for step in approved.plan.steps
        if step.id not in used and outputs.get(step.id) is not None
    ]


def _cut(lines: list[str]) -> list[str]:
    more = len(lines) - MOST_LINES
    return lines if more <= 0 else [*lines[:MOST_LINES], f"… and {more:,} more lines."]


def _lines(value: Any, indent: str = "") -> Iterator[str]:
    """Lists as items, objects as their fields, texts of several lines below their name."""
    match value:
        case list() if not value:
            yield f"{indent}nothing"
        case list():
            for item in value:
                first, *rest = _lines(item, "")
                yield f"{indent}- {first}"
                yield from (f"{indent}  {line}" for line in rest)
        case Mapping() if not value:
            yield f"{indent}nothing"
        case Mapping():
            for name, each in value.items():
                lines = list(_lines(each, ""))
                if len(lines) == 1 and not (isinstance(each, list | Mapping) and each):
                    yield f"{indent}{name}: {lines[0]}"
                else:
                    yield f"{indent}{name}:"
                    yield from (f"{indent}  {line}" for line in lines)
        case bool():
            yield f"{indent}{'yes' if value else 'no'}"
        case None:
            yield f"{indent}nothing"
        case _:
            yield from (f"{indent}{line}" for line in str(value).split("\n"))


def effects_document(effects: Effects) -> dict[str, Any]:
    """`{created, modified, deleted, renamed, folders, commands}`, renames as {from, to}."""
    return {
        "created": list(effects.created),
        "modified": list(effects.modified),
        "deleted": list(effects.deleted),
        "renamed": [{"from": old, "to": new} for old, new in effects.renamed],
        "folders": list(effects.folders),
        "commands": list(effects.commands),
    }


def timings_document(timings: Timings) -> dict[str, float]:
    """Milliseconds, to a hundredth."""
    return {
        "previewMs": round(timings.preview_ms, 2),
        "firstScreenMs": round(timings.first_screen_ms, 2),
        "journalMs": round(timings.journal_ms, 2),
        "applyMs": round(timings.apply_ms, 2),
    }


def result_document(result: ExecutionResult) -> dict[str, Any]:
    return {
        "runId": result.run_id,
        "status": result.status,
        "success": result.success,
        "outcome": result.outcome,
        "completedSteps": result.completed_steps,
        "totalSteps": result.total_steps,
        "outputs": dict(result.outputs),
        "errors": [problem.to_json() for problem in result.errors],
        "warnings": [problem.to_json() for problem in result.warnings],
        "effects": effects_document(result.effects),
        "undoAvailable": result.undo_available,
        "timings": timings_document(result.timings),
    }


def candidate_document(candidate: Candidate) -> dict[str, Any]:
    """A plan that an instruction may mean: `{recipe, title, values, missing, doubt?}`."""
    document = {
        "recipe": candidate.recipe,
        "title": candidate.title,
        "values": dict(candidate.values),
        "missing": list(candidate.missing),
    }
    return document | ({"doubt": candidate.doubt} if candidate.doubt else {})


def asked_document(asked: NeedsInput) -> dict[str, Any]:
    """What a person must decide first: `{message, missing, candidates}`."""
    return {
        "message": asked.message,
        "missing": list(asked.missing),
        "candidates": [candidate_document(candidate) for candidate in asked.candidates],
    }
