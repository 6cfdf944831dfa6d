"""The recorder of a turn: writes the user's message first, then messages and the streaming answer.

If the program is killed, the file holds all but the last `BEHIND` seconds of a stream; reading it
back marks interrupted answers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct, field

from obsidian_agent.agent.conversation import Conversation
from obsidian_agent.agent.events import (
    AgentEvent,
    Answer,
    NeedsInput,
    Notice,
    PlanReady,
    RoundsUsedUp,
    TextDelta,
    TokensUsed,
    ToolCallFinished,
    ToolCallStarted,
    TurnFailed,
)
from obsidian_agent.agent.privacy.consent import SharedPart
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
"""Seconds that the file may lag behind a stream; the promise is one second."""


class Recorder(Struct):
    """The record of one thread, on disk and in memory: the `Keeper` of its conversation.

    An error of the disk during a turn does not stop the turn; `problem` holds the first one.
    """

    file: ThreadFile
    fold: ThreadFold
    now: Callable[[], str]
    problem: Problem | None = None
    used: TokensUsed | None = None
    """The tokens that the turn has used so far."""
    _partial: list[str] = field(default_factory=list)
    _unwritten: list[str] = field(default_factory=list)
    _written_at: float = 0.0
    _timer: asyncio.TimerHandle | None = None
    _answered: bool = False
    """True once the model has sent a message in this turn."""
    _shared: Record | None = None
    _looks: dict[str, ToolCallStarted] = field(default_factory=dict)

    @property
    def state(self) -> ThreadState:
        """The thread as recorded so far."""
        return self.fold.state

    @property
    def partial(self) -> str:
        """The part of the streaming answer received so far."""
        return "".join(self._partial)

    def begin(self, text: str) -> None:
        """Record the user's message. May block.

        Raises `ConfigError` if it cannot be saved; then nothing must be sent either.
        """
        self._answered, self.used = False, None
        self._put({"k": "asked", "text": text, "time": self.now()}, durable=True)

    def handle(self, event: AgentEvent) -> None:
        """Record an event of the turn."""
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
                self.add_entry("notice", problem.message, code=problem.code)
            case RoundsUsedUp(rounds):
                self.add_entry(
                    "notice",
                    f"The model called tools in {rounds} rounds without an answer.",
                    code="ROUNDS_USED_UP",
                )
            case PlanReady(plan):
                self.add_entry("plan", plan.goal, plan=plan.to_json())
            case NeedsInput(message, _, missing):
                self.add_entry("notice", message, code="NEEDS_INPUT", missing=list(missing))
            case Answer(text, sources, also_sent):
                if not self._answered:
                    self.add_entry("model", text)
                if sources or also_sent:
                    self._add({"k": "sources", "paths": list(sources), "besides": list(also_sent)})
            case TurnFailed(problem, problems):
                self.add_entry(
                    "failed",
                    problem.message,
                    code=problem.code,
                    problems=[further.to_json() for further in problems],
                )
            case _:
                pass

    def add_entry(self, role: str, text: str, **data: Any) -> None:
        """Record an entry that users see and models do not."""
        entry: dict[str, Any] = {"k": "said", "role": role, "text": text, "time": self.now()}
        if data:
            entry["data"] = data
        self._add(entry)

    def message(self, message: ChatMessage) -> None:
        """Record a message. The conversation calls this."""
        if message.role == "assistant":
            self._answered = True
            self._forget_stream()
        self._add(message_record(message, self.now()))

    def moved(self) -> None:
        """Record that the model no longer gets the messages so far. The conversation calls this."""
        self._add({"k": "moved"})

    def compacted(self, count: int, summary: ChatMessage) -> None:
        """Record that a summary replaces the first messages. The conversation calls this."""
        self._add({"k": "compacted", "upTo": count, "summary": summary.text})

    def sending(self, conversation: Conversation) -> None:
        """Record the shared content before a request is sent. The conversation calls this."""
        record = shared_record(conversation.recipient, conversation.plain, conversation.shared)
        if record != self._shared:
            self._shared = record
            self._add(record)

    def end(self, shared: Record) -> None:
        """Record the end of the turn as a version to return to. May block."""
        self._flush()
        self._forget_stream()
        number = self.state.versions[-1].number + 1 if self.state.versions else 1
        if self.used is not None:
            self._add(usage_record(self.used))
        self._add(shared)
        self._add(version_record(number, self.now(), summary_of(self.state)), durable=True)

    def set(self, **settings: Any) -> None:
        """Record settings: title and titledBy, model, assistant or mode. Raises `ConfigError`."""
        self._put({"k": "set", **settings})

    def add(self, record: Record) -> None:
        """Append any other record. Raises `ConfigError`."""
        self._put(record)

    def _stream(self, text: str) -> None:
        self._partial.append(text)
        self._unwritten.append(text)
        elapsed = time.monotonic() - self._written_at
        if elapsed >= BEHIND:
            self._flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(BEHIND - elapsed, self._flush)

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
        """Discard the pieces of an answer whose message is recorded."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._unwritten.clear()
        self._partial.clear()

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
        self.add_entry("look", started.purpose if started is not None else event.tool, **data)

    def _add(self, record: Record, *, durable: bool = False) -> None:
        try:
            self._put(record, durable=durable)
        except ConfigError as error:
            self.fold.apply(record)
            self.problem = self.problem or error.problem()

    def _put(self, record: Record, *, durable: bool = False) -> None:
        self.file.add(record, durable=durable)
        self.fold.apply(record)


def shared_record(recipient: str, plain: set[str], shared: Mapping[str, SharedPart]) -> Record:
    """Return the record of the vault's content in the messages of a thread, and their recipient."""
    parts = {path: [int(part.level), part.characters] for path, part in shared.items()}
    return {"k": "shared", "shared": parts, "told": recipient, "plain": sorted(plain)}
