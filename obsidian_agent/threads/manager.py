"""The manager of active threads: several at once, each with its own conversation, turn and record.

A front end calls `start` and subscribes to the bus. A turn belongs to the thread in which it was
started, even if the screen displays another one meanwhile. Everything is on disk at any time, so a
thread is evicted from memory by dropping it.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct, field

from obsidian_agent.agent.conversation import Conversation
from obsidian_agent.agent.events import (
    AgentEvent,
    Answer,
    ExecutionResult,
    RoundsUsedUp,
    TurnFailed,
)
from obsidian_agent.agent.failures import explain
from obsidian_agent.agent.privacy.consent import ApproveShare, ShareDecision, ShareRequest
from obsidian_agent.agent.privacy.untrusted_text import visible
from obsidian_agent.agent.replies import whole_reply
from obsidian_agent.agent.summaries import Compacted, compact
from obsidian_agent.errors import ConfigError, Problem, ProviderError
from obsidian_agent.providers.base import ChatMessage, ChatRequest, Provider
from obsidian_agent.threads.log_store import ThreadStore, clean_title
from obsidian_agent.threads.recorder import Recorder, shared_record
from obsidian_agent.threads.state import ThreadFold, ThreadState

if TYPE_CHECKING:
    from obsidian_agent.services.session import Session


LONGEST: Final = 60
"""Characters of a title made from a message or by a model."""
MAX_OPEN: Final = 50
"""Number of threads in memory."""
IDLE: Final = 30 * 60.0
"""Seconds after which an unused thread is evicted from memory."""
REPAIRS: Final = 2
"""Rounds of repair in a row for runs that deviate from their preview."""
_TITLE_INPUT: Final = 1_000
"""Characters of the question, and of the answer, that a model gets to make a title."""
_POLITE: Final = re.compile(
    r"^(?:(?:hi|hello|hey|hallo|please|bitte|can you|could you|would you|kannst du|könntest du|"
    r"i(?:'d| would) like (?:you )?to|i want (?:you )?to|ich möchte,? dass du|help me(?: to)?|"
    r"tell me)\b[\s,!.:]*)+",
    re.IGNORECASE,
)
_COMMAND: Final = re.compile(r"^/\w+\s+")
_SENTENCE: Final = re.compile(r"(?<=[.!?。！？])\s|\n")
_INSTRUCTIONS: Final = (
    "Give the conversation below a title of three to seven words in the language of the question. "
    "Answer with the title alone: no quotes, no full stop."
)

TurnEnd = Literal["completed", "cancelled", "failed"]
Approve = Callable[[str, ShareRequest], Awaitable[ShareDecision]]
"""Ask the user about sharing, for the thread with this id."""


class ThreadTurnEvent(Struct, frozen=True):
    """An event of a thread's turn."""

    thread_id: str
    event: AgentEvent


class ThreadRetitled(Struct, frozen=True):
    """A thread has a new title."""

    thread_id: str
    title: str


class ThreadTurnEnded(Struct, frozen=True):
    """A thread's turn has ended, and everything is saved."""

    thread_id: str
    how: TurnEnd


ThreadEvent = ThreadTurnEvent | ThreadRetitled | ThreadTurnEnded


class ThreadBus(Struct):
    """A channel from the turns of threads to all subscribers, in order. For one event loop."""

    _subscribers: list[asyncio.Queue[ThreadEvent]] = field(default_factory=list)

    def publish(self, event: ThreadEvent) -> None:
        """Deliver an event to all subscribers."""
        for subscriber in self._subscribers:
            subscriber.put_nowait(event)

    @contextlib.contextmanager
    def subscribe(self, thread_id: str | None = None) -> Iterator[AsyncIterator[ThreadEvent]]:
        """Receive the events of one thread, or of all, until the block ends."""
        queue: asyncio.Queue[ThreadEvent] = asyncio.Queue()
        self._subscribers.append(queue)
        try:
            yield _from(queue, thread_id)
        finally:
            self._subscribers.remove(queue)


async def _from(
    queue: asyncio.Queue[ThreadEvent], thread_id: str | None
) -> AsyncIterator[ThreadEvent]:
    while True:
        event = await queue.get()
        if thread_id is None or event.thread_id == thread_id:
            yield event


def title_from(question: str, answer: str = "") -> str | None:
    """Return a title made from the question, or the answer; None if neither has enough words."""
    text = _POLITE.sub("", _COMMAND.sub("", visible(question).strip()))
    first = next((part for part in _SENTENCE.split(text) if part.strip()), "")
    plain = first.strip(" \t#*>-–—\"'`.,!")
    if len(re.findall(r"\w", plain)) < 3:
        plain = next(
            (line.lstrip("# ").strip() for line in visible(answer).splitlines() if line.strip()), ""
        )
    if len(re.findall(r"\w", plain)) < 3:
        return None
    return _shortened(plain[0].upper() + plain[1:])


async def title_by(provider: Provider, question: str, answer: str) -> str | None:
    """Return a title made by a model from question and answer; None if it fails.

    Nothing else is sent.
    """
    conversation = (
        f"Question: {visible(question)[:_TITLE_INPUT]}\n\nAnswer: {visible(answer)[:_TITLE_INPUT]}"
    )
    request = ChatRequest(
        (ChatMessage("system", _INSTRUCTIONS), ChatMessage("user", conversation)),
        max_tokens=64,
        timeout=20.0,
    )
    try:
        reply = await whole_reply(provider, request)
    except ProviderError:
        return None
    line = next((line.strip() for line in visible(reply.text).splitlines() if line.strip()), "")
    plain = re.sub(r"^(?:title|titel)\s*:\s*", "", line, flags=re.IGNORECASE).strip(" \"'`*#.")
    return _shortened(plain) if plain else None


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    if len(text) <= LONGEST:
        return text.rstrip(" .:;,!")
    start = text[:LONGEST]
    if " " in start:
        start = start.rsplit(" ", 1)[0]
    return f"{start.rstrip(' .:;,!')}…"


class ActiveThread(Struct, kw_only=True):
    """A thread in memory.

    `conversation` is what models get, `recorder` writes the file, and `task` runs the turn in the
    background. Unless it `proposes`, a model cannot propose plans in it.
    """

    conversation: Conversation
    recorder: Recorder
    used_at: float
    running: bool = False
    repairs_left: int = REPAIRS
    task: asyncio.Task[None] | None = None
    proposes: bool = True

    @property
    def id(self) -> str:
        """The id of the thread."""
        return self.conversation.id

    @property
    def state(self) -> ThreadState:
        """The current state: title, entries, usage."""
        return self.recorder.state

    @property
    def partial(self) -> str:
        """The part of the streaming answer received so far."""
        return self.recorder.partial


class ThreadManager(Struct):
    """The active threads of one vault. Methods that are not async may block.

    `store` has their files, `bus` publishes their events. With `titles_by_model` models make the
    titles, otherwise they come from the user's messages.
    """

    store: ThreadStore
    session: Session
    titles_by_model: Callable[[], bool] = bool
    clock: Callable[[], float] = time.monotonic
    bus: ThreadBus = field(default_factory=ThreadBus)
    _open: OrderedDict[str, ActiveThread] = field(default_factory=OrderedDict)

    def create(self, model: str | None = None) -> ActiveThread:
        """Create a thread. It is on disk when this returns."""
        return self._activate(self.store.create(model))

    def open(self, thread_id: str) -> ActiveThread:
        """Return a thread, loaded if it is not in memory.

        Raises `ConfigError` (THREAD_NOT_FOUND and others).
        """
        thread = self._open.get(thread_id)
        if thread is None:
            return self._activate(self.store.load(thread_id))
        if not thread.running and thread.recorder.file.changed:  # by another program
            fresh = self._activate(self.store.load(thread_id))
            fresh.conversation.grants = thread.conversation.grants
            fresh.repairs_left = thread.repairs_left
            return fresh
        thread.used_at = self.clock()
        self._open.move_to_end(thread_id)
        return thread

    def rename(self, thread_id: str, title: str) -> str:
        """Set a title given by the user and return it as stored."""
        thread = self._open.get(thread_id)
        if thread is None:
            cleaned = self.store.rename(thread_id, title)
        else:
            cleaned = clean_title(title)
            thread.recorder.set(title=cleaned, titledBy="person")
        self.bus.publish(ThreadRetitled(thread_id, cleaned))
        return cleaned

    def choose_model(self, thread_id: str, model: str | None) -> None:
        """Set the model from the next message on; None for the one in the settings."""
        self.open(thread_id).recorder.set(model=model)

    def choose_assistant(self, thread_id: str, name: str | None) -> None:
        """Set the vault's agent that answers from the next message on; None for the default."""
        self.open(thread_id).recorder.set(assistant=name)

    def choose_mode(self, thread_id: str, mode: str) -> None:
        """Set the mode in which editors continue the thread."""
        self.open(thread_id).recorder.set(mode=mode)

    def delete(self, thread_id: str) -> bool:
        """Delete a thread permanently. Raises `ConfigError` THREAD_BUSY while its turn runs."""
        thread = self._open.get(thread_id)
        if thread is not None:
            _check_free(thread)
            del self._open[thread_id]
        return self.store.delete(thread_id)

    def rewind(self, thread_id: str, version: int) -> ActiveThread:
        """Return to the end of another turn. No note changes.

        Raises `ConfigError` THREAD_BUSY or NO_VERSION.
        """
        thread = self.open(thread_id)
        _check_free(thread)
        with thread.recorder.file.locked():
            state = self.store.rewind(thread_id, version)
        return self._activate(state)

    def tick(self, thread_id: str, task: str, on: bool) -> None:
        """Tick or untick a task of a thread (see `threads.tasks`)."""
        self.open(thread_id).recorder.add({"k": "done", "index": task, "on": on})

    def record_run(
        self, thread_id: str, goal: str, result: ExecutionResult, deviations: Sequence[Problem] = ()
    ) -> bool:
        """Record the run of a thread's plan. `deviations` are the results of `Plans.verify`.

        The goal takes the place of a title made from a message.
        Return True if `repair_request` may be sent as the thread's next message, which it may
        `REPAIRS` times in a row.
        """
        thread = self.open(thread_id)
        can_repair = bool(deviations) and result.status == "done" and thread.repairs_left > 0
        thread.repairs_left = thread.repairs_left - 1 if can_repair else REPAIRS
        thread.recorder.add_entry(
            "run",
            goal,
            runId=result.run_id,
            status=result.status,
            success=result.success,
            problems=[problem.to_json() for problem in result.errors],
            unlike=[problem.to_json() for problem in deviations],
        )
        title = title_from(goal) if result.success and not self.titles_by_model() else None
        if title is not None and thread.state.titled_by == "program":
            thread.recorder.set(title=title, titledBy="program")
        return can_repair

    def evict_idle(self) -> int:
        """Evict the threads unused for `IDLE` seconds from memory and return their number.

        Front ends call it every few minutes.
        """
        idle = [
            thread_id
            for thread_id, thread in self._open.items()
            if not thread.running and self.clock() - thread.used_at >= IDLE
        ]
        for thread_id in idle:
            del self._open[thread_id]
        return len(idle)

    @property
    def in_memory(self) -> list[str]:
        """Ids of the threads in memory, the most recently used last."""
        return [*self._open]

    @property
    def running(self) -> list[str]:
        """Ids of the threads whose turn is running."""
        return [thread_id for thread_id, thread in self._open.items() if thread.running]

    async def _turn(
        self, thread: ActiveThread, text: str, approve: ApproveShare
    ) -> AsyncGenerator[AgentEvent, None]:
        """Run and record a turn, with the thread locked against other programs."""
        recorder, conversation = thread.recorder, thread.conversation
        with contextlib.ExitStack() as lock:
            try:
                lock.enter_context(recorder.file.locked())
            except ConfigError as error:
                thread.running = False
                yield TurnFailed(error.problem())
                return
            try:
                try:
                    await asyncio.to_thread(recorder.begin, text)
                except ConfigError as error:
                    yield TurnFailed(error.problem())
                    return
                async with contextlib.aclosing(self._events(thread, text, approve)) as events:
                    async for event in events:
                        recorder.handle(event)
                        if isinstance(event, Answer | RoundsUsedUp | TurnFailed):
                            thread.repairs_left = REPAIRS  # this turn repairs nothing
                        yield event
            finally:
                shared = shared_record(
                    conversation.recipient, conversation.plain, conversation.shared
                )
                try:
                    await asyncio.shield(asyncio.to_thread(recorder.end, shared))
                finally:
                    thread.running = False
                    thread.used_at = self.clock()

    def _events(
        self, thread: ActiveThread, text: str, approve: ApproveShare
    ) -> AsyncGenerator[AgentEvent, None]:
        if not self.session.has_model:
            return self.session.turn(text)
        return self.session.answer(
            text,
            approve,
            conversation=thread.conversation,
            propose=thread.proposes,
            model=thread.state.model,
            assistant=thread.state.assistant,
        )

    def _provider(self, thread: ActiveThread) -> Provider | None:
        """Return the provider of a thread; None without a model. Raise `ConfigError`. May block."""
        models = self.session.open_models()
        return None if models is None else models.providers.get(thread.state.model or models.spec)

    async def compact(self, thread_id: str) -> Compacted:
        """Summarize all turns of a thread but the last to free context.

        Raises `ConfigError`: THREAD_BUSY, NO_MODEL, and those of `conversation.compact`.
        """
        thread = await asyncio.to_thread(self.open, thread_id)
        provider = await asyncio.to_thread(self._provider, thread)
        if provider is None:
            raise ConfigError(
                "No model is configured, so there is no context to free.", code="NO_MODEL"
            )
        _check_free(thread)
        thread.running = True
        try:
            with thread.recorder.file.locked():
                compacted = await compact(thread.conversation, provider)
                thread.recorder.add_entry("notice", compacted.text, code="COMPACTED")
                return compacted
        finally:
            thread.running = False

    def start(self, thread_id: str, text: str, approve: Approve) -> None:
        """Start a turn in the background; the bus publishes its events.

        Raises `ConfigError` THREAD_BUSY.
        """
        thread = self.open(thread_id)
        _check_free(thread)
        thread.running = True
        thread.task = asyncio.get_running_loop().create_task(
            self._run(thread, text, approve), name=f"thread {thread_id}"
        )

        def on_done(task: asyncio.Task[None]) -> None:
            # Only for a task cancelled before it began. An earlier task may still be making a title
            # while the next turn runs.
            if thread.running and thread.task is task:
                self._ended(thread, "cancelled")

        thread.task.add_done_callback(on_done)

    def cancel(self, thread_id: str) -> bool:
        """Cancel a turn; return False if none is running.

        The part of the answer received so far stays in the thread, marked as interrupted.
        """
        thread = self._open.get(thread_id)
        return thread is not None and thread.task is not None and thread.task.cancel()

    async def close(self) -> None:
        """Cancel all running turns and wait until they are saved."""
        tasks = [
            thread.task
            for thread in self._open.values()
            if thread.task is not None and not thread.task.done()
        ]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, thread: ActiveThread, text: str, approve: Approve) -> None:
        async def approve_here(request: ShareRequest) -> ShareDecision:
            return await approve(thread.id, request)

        how: TurnEnd = "failed"
        try:
            async with contextlib.aclosing(self._turn(thread, text, approve_here)) as events:
                async for event in events:
                    how = "failed" if isinstance(event, TurnFailed) else "completed"
                    self.bus.publish(ThreadTurnEvent(thread.id, event))
        except asyncio.CancelledError:
            how = "cancelled"
            self._name(thread, title_from(_question(thread)))
            raise
        except Exception as error:
            how = "failed"
            problem = explain(error)
            thread.recorder.add_entry("failed", problem.message, code=problem.code)
            self.bus.publish(ThreadTurnEvent(thread.id, TurnFailed(problem)))
        finally:
            self._ended(thread, how)
        await self.make_title(thread.id)

    def _ended(self, thread: ActiveThread, how: TurnEnd) -> None:
        thread.running = False
        self.bus.publish(ThreadTurnEnded(thread.id, how))

    async def make_title(self, thread_id: str) -> str | None:
        """Give a thread its first title and return it; None if it has one already.

        Its model, which has seen the question and the answer, makes the title if the settings allow
        it.
        """
        thread = self._open.get(thread_id)
        if thread is None or thread.state.titled_by != "time":
            return None
        question = _question(thread)
        answer = next(
            (entry.text for entry in thread.state.entries if entry.role in ("model", "plan")), ""
        )
        title: str | None = None
        with contextlib.suppress(ConfigError):
            if self.titles_by_model():
                provider = await asyncio.to_thread(self._provider, thread)
                if provider is not None:
                    title = await title_by(provider, question, answer)
        return self._name(thread, title or title_from(question, answer))

    def _name(self, thread: ActiveThread, title: str | None) -> str | None:
        """Set the title of a thread that has none yet."""
        if title is None or thread.state.titled_by != "time":
            return None
        with contextlib.suppress(ConfigError):
            thread.recorder.set(title=title, titledBy="program")
        self.bus.publish(ThreadRetitled(thread.id, title))
        return title

    def _activate(self, state: ThreadState) -> ActiveThread:
        conversation, file = state.conversation(), self.store.file(state.id)
        with contextlib.suppress(OSError):
            file.size = file.path.stat().st_size
        thread = ActiveThread(
            conversation=conversation,
            recorder=Recorder(file, ThreadFold(state), self.store.now),
            used_at=self.clock(),
        )
        conversation.keeper = thread.recorder
        self._open[state.id] = thread
        evictable = [
            thread_id
            for thread_id, active in self._open.items()
            if not active.running and thread_id != state.id
        ]
        for thread_id in evictable[: max(0, len(self._open) - MAX_OPEN)]:
            del self._open[thread_id]
        return thread


def _question(thread: ActiveThread) -> str:
    return next((entry.text for entry in thread.state.entries if entry.role == "person"), "")


def _check_free(thread: ActiveThread) -> None:
    if thread.running:
        message = f"The conversation “{thread.state.title}” is still waiting for an answer."
        raise ConfigError(message, code="THREAD_BUSY", hint="Wait for the answer, or cancel it.")
