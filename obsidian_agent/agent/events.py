"""The events of turns and runs: one closed union of frozen records.

Front ends `match` on an event and end in `assert_never`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct, field

from obsidian_agent.agent.privacy.consent import ShareDecision, ShareRequest
from obsidian_agent.errors import Problem
from obsidian_agent.expression import expression
from obsidian_agent.journal.records import Effects as Effects
from obsidian_agent.journal.records import StepOutcome
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.plan.result import Preview, Timings

RunStatus = Literal["done", "failed", "stopped", "cancelled", "conflict", "refused", "recovered"]
Outcome = Literal["done", "refused", "error", "needs-input"]

_LISTED = expression(r"(?m)^[ \t]*(?:[-*]|\d+\.)[ \t].*")
_LINK = expression(r"\[\[([^\]|#]+)")


class ExecutionResult(Struct, frozen=True, kw_only=True):
    """The end of a run: success, stop, cancellation, recovery. `run_id` is None if none started."""

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
    """The outcome of each step of the plan, as recorded in the journal."""
    remaining: Effects = Effects()
    """The effects of the approved plan that were not applied."""
    undo_available: bool = False
    timings: Timings = Timings()


# --- planning ---


class TurnStarted(Struct, frozen=True):
    """Work on a message of the user begins."""

    message: str


class TextDelta(Struct, frozen=True):
    """Streamed text of the model; `thinking` text is displayed separately and never parsed."""

    text: str
    thinking: bool = False


class PlanningRetry(Struct, frozen=True):
    """The answer was not a valid plan; the model is asked again (`attempt` of `attempts`)."""

    attempt: int
    attempts: int
    problems: tuple[Problem, ...]


def unlisted(text: str, sources: Sequence[str]) -> tuple[str, ...]:
    """Return the sources of an answer that no item of a list in its text links to."""
    targets = {target for item in _LISTED.findall(text) for target in _LINK.findall(item)}
    names = ((source, source.removesuffix(".md")) for source in sources)
    return tuple(source for source, name in names if not targets & {name, name.rpartition("/")[2]})


class Answer(Struct, frozen=True):
    """The turn ended with text instead of a plan.

    `sources` are the paths of the notes that the text is based on, `also_sent` those of other
    notes that were sent to the model. With `health` the answer is the health report about these
    kinds of findings (all if empty), and the text names it: the front end makes the report.
    """

    text: str
    sources: tuple[str, ...] = ()
    also_sent: tuple[str, ...] = ()
    health: tuple[str, ...] | None = None


class Phrase(Struct, frozen=True):
    """A part of a candidate's sentence: literal text, or the value of an input, "" if missing."""

    text: str
    input: str = ""


class UnknownName(Struct, frozen=True):
    """A text in a message that an input reads as a name, and the most similar existing names."""

    text: str
    kind: str
    input: str
    nearest: tuple[str, ...]


class Candidate(Struct, frozen=True, kw_only=True):
    """A plan that may match the instruction, with the values recognized for its parameters.

    `values` are texts as forms and `--param` accept them; parameters in `missing` have no value
    yet. `plan` is None until all required values are known. `recipe` names the recipe or macro
    (`macro:NAME`). `agent` is the policy's name for the agent that wrote the plan, or "".
    """

    title: str
    plan: ActionPlan | None
    values: Mapping[str, Any]
    missing: tuple[str, ...]
    recipe: str = ""
    doubts: tuple[str, ...] = ()
    """Sentences about why it may not match, apart from the following reasons."""
    agent: str = ""
    sentence: tuple[Phrase, ...] = ()
    """The sentence of what it does, in parts. `title` is the same as one text."""
    guesses: tuple[str, ...] = ()
    """The phrases without quotes that were read as values, each with what it was read as."""
    unused: tuple[str, ...] = ()
    """The parts of the message that it does not use."""
    unknown: tuple[UnknownName, ...] = ()
    """The names in the message that the vault does not have, but similar ones."""
    news: tuple[str, ...] = ()
    """The folders, tags and properties that it would add to the vault."""
    deletes: bool = False
    fails: bool = False
    """True if it was tried and would change nothing."""

    @property
    def doubt(self) -> str:
        """All reasons why it may not match, as one text; "" if there are none."""
        sentences = [f"Please check: {', '.join(self.guesses)}."] if self.guesses else []
        sentences += self.doubts
        if self.unused:
            sentences.append(f"Not used: {' and '.join(f'“{text}”' for text in self.unused)}.")
        sentences += (
            f"No {name.kind} is called “{name.text}”. Similar: {', '.join(name.nearest)}."
            for name in self.unknown
        )
        return " ".join(sentences)


class NeedsInput(Struct, frozen=True):
    """The user must choose a candidate, or enter the missing values."""

    message: str
    candidates: tuple[Candidate, ...] = ()
    missing: tuple[str, ...] = ()


class ActionsOffered(Struct, frozen=True):
    """The actions that are likely without the model, which still chooses. `NeedsInput` follows.

    The user may choose one at once, which ends the turn.
    """

    candidates: tuple[Candidate, ...]
    model: str


class PlanReady(Struct, frozen=True):
    """A plan is ready to be previewed.

    `notes` list the parser's repairs; `preview` is its dry run, if one was done already. `agent`
    is the policy's name for the agent that wrote the plan, or "".
    """

    plan: ActionPlan
    notes: tuple[str, ...] = ()
    preview: Preview | None = None
    agent: str = ""


class PreviewStarted(Struct, frozen=True):
    """The first changes, while the dry run continues; approval is locked until `PreviewReady`."""

    partial: Preview


class PreviewReady(Struct, frozen=True):
    """The dry run is complete. A preview with errors cannot be approved."""

    preview: Preview


class TurnFailed(Struct, frozen=True):
    """The turn ended without a plan, an answer or a run; nothing was changed.

    `problems` are the reasons why the last attempt was rejected.
    """

    problem: Problem
    problems: tuple[Problem, ...] = ()


# --- reading and sharing ---


class ToolCallStarted(Struct, frozen=True, kw_only=True):
    """The model calls a tool. `purpose` is the tool's, `why` the model's reason, if it gave one."""

    call_id: str
    tool: str
    purpose: str
    args: Mapping[str, Any]
    why: str = ""


class ToolCallFinished(Struct, frozen=True, kw_only=True):
    """The result of a call is known and goes to the model.

    `paths` are the files whose text it contains. It is not `complete` if the user withheld a part.
    With a `problem`, the model gets an error instead.
    """

    call_id: str
    tool: str
    paths: tuple[str, ...] = ()
    characters: int = 0
    complete: bool = True
    problem: Problem | None = None


class ShareRequested(Struct, frozen=True):
    """The user is asked whether something may be sent."""

    request: ShareRequest


class ShareDecided(Struct, frozen=True):
    """The user has answered."""

    request: ShareRequest
    decision: ShareDecision


class Notice(Struct, frozen=True):
    """Information that needs no action. An `alarm` is displayed prominently."""

    problem: Problem
    alarm: bool = False


class TokensUsed(Struct, frozen=True):
    """The usage of a turn so far, in tokens as the service counts them.

    `cached` is the part of the prompt that came from the service's cache. `cost` is in US dollars
    by list prices, None if they are unknown. Times are in seconds: `seconds` since the first
    request, `first` until the first token of the first answer, `tools` in tool calls without the
    time spent waiting for the user.
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


class RoundsUsedUp(Struct, frozen=True):
    """The turn ended without an answer after `rounds` rounds of tool calls.

    Any further message lets the model continue.
    """

    rounds: int


# --- running ---


class RunStarted(Struct, frozen=True):
    """The journal is durable; the vault is about to change."""

    run_id: str
    total: int


class StepStarted(Struct, frozen=True):
    """An instance begins. `text` is the step's preview line, or a line derived from its tool."""

    step_id: str
    instance: str
    text: str


class StepFinished(Struct, frozen=True, kw_only=True):
    """All changes of an instance are applied; `paths` are the files that it wrote."""

    step_id: str
    instance: str
    completed: int
    total: int
    elapsed_ms: float
    paths: tuple[str, ...] = ()


class StepSkipped(Struct, frozen=True, kw_only=True):
    """An instance was skipped, for `reason`."""

    step_id: str
    instance: str
    reason: str
    completed: int
    total: int


class StepRetrying(Struct, frozen=True, kw_only=True):
    """An instance failed with a temporary error; it is retried after `delay_ms`."""

    step_id: str
    instance: str
    attempt: int
    attempts: int
    delay_ms: float
    problem: Problem


class StepFailed(Struct, frozen=True):
    """An instance failed permanently."""

    step_id: str
    instance: str
    problem: Problem


class RunFinished(Struct, frozen=True):
    """The run ended, successfully or not."""

    result: ExecutionResult


RunEvent = (
    RunStarted | StepStarted | StepFinished | StepSkipped | StepRetrying | StepFailed | RunFinished
)
ReadEvent = (
    ToolCallStarted
    | ToolCallFinished
    | ShareRequested
    | ShareDecided
    | Notice
    | TokensUsed
    | RoundsUsedUp
)
PlanningResult = Answer | NeedsInput | PlanReady | TurnFailed | RoundsUsedUp
"""The result of planning a message."""
PlanEvent = (
    TurnStarted
    | TextDelta
    | PlanningRetry
    | Answer
    | ActionsOffered
    | NeedsInput
    | PlanReady
    | PreviewStarted
    | PreviewReady
    | TurnFailed
)
TurnEvent = PlanEvent | ReadEvent
AgentEvent = TurnEvent | RunEvent


Emit = Callable[[AgentEvent], Awaitable[None]]
"""Emit an event; return when the consumer has received it."""
