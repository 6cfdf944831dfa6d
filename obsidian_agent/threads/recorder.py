"""Writing a turn down while it goes on: the person's words before anything else, messages as they come, the answer as it streams.

Whatever kills the program, the file holds everything up to at most `BEHIND` seconds of a stream; reading it back marks what was cut.

`TurnMachine` is a turn as one state machine, from the person's words to a checked run. It moves on events alone, and refuses what cannot follow.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Final

from obsidian_agent.agent.conversation import Conversation
from obsidian_agent.agent.events import (
    AgentEvent,
    Answer,
    NeedsInput,
    Notice,
    PlanReady,
    PreviewReady,
    RoundsUsedUp,
    RunFinished,
    RunStarted,
    TextDelta,
    TokensUsed,
    ToolCallFinished,
    ToolCallStarted,
    TurnFailed,
    TurnStarted,
)
from obsidian_agent.agent.privacy.consent import Part
from obsidian_agent.dataclass import dataclass, field
from obsidian_agent.errors import ConfigError, Problem
from obsidian_agent.providers.base import ChatMessage
from obsidian_agent.threads.log_store import ThreadFile, summary_of, version_record
from obsidian_agent.threads.state import (
    Record,
    ThreadFold,
    ThreadState,
    message_record,
    usage_record,
)

BEHIND: Final = 0.5
"""Seconds that what is on disk may be behind a stream; the promise is one second."""


@dataclass(slots=True)
class Recorder:
    """The record of one thread, on disk and in memory at once. It is the conversation's keeper.

    A disk that fails in mid-turn does not stop the turn: `problem` says what was not saved.
    """

    file: ThreadFile
    folding: ThreadFold
    now: Callable[[], str]
    problem: Problem | None = None
    used: TokensUsed | None = None
    """What the turn has used so far."""
    _partial: list[str] = field(default_factory=list)
    _unwritten: list[str] = field(default_factory=list)
    _written_at: float = 0.0
    _timer: asyncio.TimerHandle | None = None
    _answered: bool = False
    """Whether a message of the model came in this turn."""
    _shared: Record | None = None
    _looks: dict[str, ToolCallStarted] = field(default_factory=dict)

    @property
    def state(self) -> ThreadState:
        return self.folding.state

    @property
    def partial(self) -> str:
        """The answer that is coming, as far as it has come."""
        return "".join(self._partial)

    def begin(self, text: str) -> None:
        """The person's words. Raises `ConfigError` when they cannot be saved: then nothing is sent either. May block."""
        self._answered, self.used = False, None
        self._put({"k": "asked", "text": text, "time": self.now()}, durable=True)

    def take(self, event: AgentEvent) -> None:
        match event:
            case TextDelta(text, thinking):
                if not thinking:
                    self._stream(text)
            case ToolCallStarted():
                self._looks[event.call_id] = event
            case ToolCallFinished():
                self._look(event)
            case TokensUsed():
                self.used = event
            case Notice(problem):
                self.say("notice", problem.message, code=problem.code)
            case RoundsUsedUp(rounds):
                self.say(
                    "notice",
                    f"The model looked around {rounds} times without an answer.",
                    code="ROUNDS_USED_UP",
                )
            case PlanReady(plan):
                self.say("plan", plan.goal, plan=plan.to_json())
            case NeedsInput(message, _, missing):
                self.say("notice", message, code="NEEDS_INPUT", missing=list(missing))
            case Answer(text, sources, besides):
                if not self._answered:
                    self.say("model", text)
                if sources or besides:
                    self._add({"k": "sources", "paths": list(sources), "besides": list(besides)})
            case TurnFailed(problem, problems):
                self.say(
                    "failed",
                    problem.message,
                    code=problem.code,
                    problems=[each.to_json() for each in problems],
                )
            case _:
                pass

    def say(self, role: str, text: str, **data: Any) -> None:
        """Something that people see and models don't."""
        self._add(
            {
                "k": "said",
                "role": role,
                "text": text,
                "time": self.now(),
                **({"data": data} if data else {}),
            }
        )

    def message(self, message: ChatMessage) -> None:
        """A message of the conversation (it calls this itself)."""
        if message.role == "assistant":
            self._answered = True
            self._forget_stream()
        self._add(message_record(message, self.now()))

    def moved(self) -> None:
        """The conversation begins anew for the model (it calls this itself)."""
        self._add({"k": "moved"})

    def compacted(self, count: int, summary: ChatMessage) -> None:
        """The first messages became a summary for the model (the conversation calls this itself)."""
        self._add({"k": "compacted", "upTo": count, "summary": summary.text})

    def sending(self, conversation: Conversation) -> None:
        """A request is about to go out (the conversation calls this itself)."""
        record = shared_record(conversation.told, conversation.plain, conversation.shared)
        if record != self._shared:
            self._shared = record
            self._add(record)

    def end(self, shared: Record) -> None:
        """The turn is over: a version to come back to. May block."""
        self._flush()
        self._forget_stream()
        number = self.state.versions[-1].number + 1 if self.state.versions else 1
        if self.used is not None:
            self._add(usage_record(self.used))
        self._add(shared)
        self._add(version_record(number, self.now(), summary_of(self.state)), durable=True)

    def set(self, **chosen: Any) -> None:
        """A choice for the thread: title and titledBy, or model. Raises `ConfigError`."""
        self._put({"k": "set", **chosen})

    def add(self, record: Record) -> None:
        """Any other record. Raises `ConfigError`."""
        self._put(record)

    # --- the stream ------------------------------------------------------------------------------------------------------------

    def _stream(self, text: str) -> None:
        self._partial.append(text)
        self._unwritten.append(text)
        late = time.monotonic() - self._written_at
        if late >= BEHIND:
            self._flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(BEHIND - late, self._flush)

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._unwritten:
            text = "".join(self._unwritten)
            self._unwritten.clear()
            self._written_at = time.monotonic()
            self._add({"k": "stream", "text": text})

    def _forget_stream(self) -> None:
        """What came is in a message now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._unwritten.clear()
        self._partial.clear()

    # --- writing -----------------------------------------------------------------------------------------------------------------

    def _look(self, event: ToolCallFinished) -> None:
        started = self._looks.pop(event.call_id, None)
        data: dict[str, Any] = {
            "tool": event.tool,
            "paths": list(event.paths),
            "characters": event.characters,
            "complete": event.complete,
        }
        if started is not None:
            data |= {"args": dict(started.args), "why": started.why}
        if event.problem is not None:
            data["problem"] = event.problem.to_json()
        self.say("look", started.purpose if started is not None else event.tool, **data)

    def _add(self, record: Record, *, durable: bool = False) -> None:
        try:
            self._put(record, durable=durable)
        except ConfigError as error:
            self.folding.take(record)
            self.problem = self.problem or error.problem()

    def _put(self, record: Record, *, durable: bool = False) -> None:
        self.file.add(record, durable=durable)
        self.folding.take(record)


def shared_record(told: str, plain: set[str], shared: Mapping[str, Part]) -> Record:
    """What of the vault is in the messages of a thread, as a record."""
    parts = {path: [int(part.level), part.characters] for path, part in shared.items()}
    return {"k": "shared", "shared": parts, "told": told, "plain": sorted(plain)}


REPAIRS: Final = 2
"""Rounds in which a run that did not come out as previewed may be repaired."""


class TurnState(Enum):
    """Where a turn is."""

    IDLE = "idle"
    PLANNING = "planning"
    AWAITING_APPROVAL = "awaiting approval"
    EXECUTING = "executing"
    VALIDATING = "validating"
    RETRYING = "retrying"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


_S = TurnState
_BEGIN: Final = frozenset({_S.PLANNING, _S.AWAITING_APPROVAL})
FOLLOWING: Final[Mapping[TurnState, frozenset[TurnState]]] = MappingProxyType(
    {
        _S.IDLE: _BEGIN,
        _S.PLANNING: frozenset({_S.AWAITING_APPROVAL, _S.COMPLETED, _S.FAILED, _S.CANCELLED}),
        _S.AWAITING_APPROVAL: frozenset(
            {_S.EXECUTING, _S.PLANNING, _S.AWAITING_APPROVAL, _S.FAILED, _S.CANCELLED}
        ),
        _S.EXECUTING: frozenset({_S.VALIDATING, _S.FAILED, _S.CANCELLED}),
        _S.VALIDATING: frozenset({_S.COMPLETED, _S.RETRYING, _S.FAILED}),
        _S.RETRYING: frozenset({_S.PLANNING, _S.AWAITING_APPROVAL, _S.FAILED, _S.CANCELLED}),
        _S.COMPLETED: _BEGIN,
        _S.FAILED: _BEGIN,
        _S.CANCELLED: _BEGIN,
    }
)
"""What may follow what."""

ENDS: Final = frozenset({_S.COMPLETED, _S.FAILED, _S.CANCELLED})


class IllegalStep(RuntimeError):
    """A state cannot follow another: a mistake in the program."""


@dataclass(slots=True)
class TurnMachine:
    """One turn at a time. `repairs` counts the rounds of repair of this turn."""

    state: TurnState = TurnState.IDLE
    repairs: int = 0

    def to(self, state: TurnState) -> TurnState:
        """Go on to a state. Raises `IllegalStep`."""
        if state not in FOLLOWING[self.state]:
            raise IllegalStep(f"{state.value!r} cannot follow {self.state.value!r}.")
        if self.state in ENDS or self.state is TurnState.IDLE:
            self.repairs = 0
        if state is TurnState.RETRYING:
            self.repairs += 1
        self.state = state
        return state

    def hear(self, event: AgentEvent) -> TurnState:
        """Go on as an event says; events that decide nothing leave everything as it is."""
        match event:
            case TurnStarted():
                return self.to(TurnState.PLANNING)
            case PreviewReady(preview):
                return self.to(TurnState.AWAITING_APPROVAL if preview.valid else TurnState.FAILED)
            case NeedsInput():
                return self.to(TurnState.AWAITING_APPROVAL)
            case Answer() | RoundsUsedUp():
                return self.to(TurnState.COMPLETED)
            case TurnFailed():
                return self.to(TurnState.FAILED)
            case RunStarted():
                return self.to(TurnState.EXECUTING)
            case RunFinished(result):
                if result.status == "cancelled":
                    return self.to(TurnState.CANCELLED)
                if self.state is TurnState.AWAITING_APPROVAL:
                    return self.to(TurnState.FAILED)  # it was refused before anything happened
                return self.to(
                    TurnState.VALIDATING if result.status == "done" else TurnState.FAILED
                )
            case _:
                return self.state

    def checked(self, problems: tuple[Problem, ...]) -> TurnState:
        """What a comparison of vault and preview found: done, one more round of repair, or failed after so many."""
        if not problems:
            return self.to(TurnState.COMPLETED)
        return self.to(TurnState.RETRYING if self.repairs < REPAIRS else TurnState.FAILED)
