"""Threads at work: several at once, each with its own conversation, its own turn and its own record.

A front end calls `start` and listens to the bus; a turn belongs to the thread that it was begun in, whatever is on the screen meanwhile.
Everything is on disk all the time, so that putting a thread away is forgetting it.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, Literal

from obsidian_agent.agent.conversation import Compacted, Conversation, compact
from obsidian_agent.agent.events import AgentEvent, ExecutionResult, RunFinished, TurnFailed
from obsidian_agent.agent.failures import explain
from obsidian_agent.agent.planner import whole_reply
from obsidian_agent.agent.privacy.consent import ApproveShare, ShareDecision, ShareRequest
from obsidian_agent.agent.privacy.untrusted_text import visible
from obsidian_agent.dataclass import dataclass, field
from obsidian_agent.errors import ConfigError, Problem, ProviderError
from obsidian_agent.providers.base import ChatMessage, ChatRequest, Provider
from obsidian_agent.threads.log_store import ThreadStore, clean_title
from obsidian_agent.threads.recorder import (
    IllegalStep,
    Recorder,
    TurnMachine,
    TurnState,
    shared_record,
)
from obsidian_agent.threads.state import ThreadFold, ThreadState

if TYPE_CHECKING:
    from obsidian_agent.services.session import Session


@dataclass(frozen=True, slots=True)
class Happened:
    """An event of a thread's turn."""

    thread_id: str
    event: AgentEvent


@dataclass(frozen=True, slots=True)
class Retitled:
    """A thread has another title."""

    thread_id: str
    title: str


How = Literal["completed", "cancelled", "failed"]


@dataclass(frozen=True, slots=True)
class Ended:
    """A thread's turn is over, and everything of it is saved."""

    thread_id: str
    how: How


ThreadEvent = Happened | Retitled | Ended


@dataclass(slots=True)
class Bus:
    """Hands everything that happens to everybody who listens, in order. For one event loop."""

    _listeners: list[asyncio.Queue[ThreadEvent]] = field(default_factory=list)

    def publish(self, happening: ThreadEvent) -> None:
        for listener in self._listeners:
            listener.put_nowait(happening)

    @contextlib.contextmanager
    def listen(self, thread_id: str | None = None) -> Iterator[AsyncIterator[ThreadEvent]]:
        """Everything from now on (of one thread, or of all), until the block ends."""
        queue: asyncio.Queue[ThreadEvent] = asyncio.Queue()
        self._listeners.append(queue)
        try:
            yield _from(queue, thread_id)
        finally:
            self._listeners.remove(queue)


async def _from(
    queue: asyncio.Queue[ThreadEvent], thread_id: str | None
) -> AsyncIterator[ThreadEvent]:
    while True:
        happening = await queue.get()
        if thread_id is None or happening.thread_id == thread_id:
            yield happening


LONGEST: Final = 60
_SHOWN: Final = 1_000
"""Characters of question and answer that a model gets to make a title of."""
_POLITE: Final = re.compile(
    r"^(?:(?:hi|hello|hey|hallo|please|bitte|can you|could you|would you|kannst du|könntest du|i(?:'d| would) like (?:you )?to|"
    r"i want (?:you )?to|ich möchte,? dass du|help me(?: to)?|tell me)\b[\s,!.:]*)+",
    re.IGNORECASE,
)
_COMMAND: Final = re.compile(r"^/\w+\s+")
_SENTENCE: Final = re.compile(r"(?<=[.!?。！？])\s|\n")
_INSTRUCTIONS: Final = (
    "Give the conversation below a title of three to seven words in the language of the question. "
    "Answer with the title alone: no quotes, no full stop."
)


def title_from(question: str, answer: str = "") -> str | None:
    """A title from what was said; None when that says nothing."""
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
    """A title that a model makes of what it was asked and has answered; None when it fails. Nothing else is sent."""
    conversation = f"Question: {visible(question)[:_SHOWN]}\n\nAnswer: {visible(answer)[:_SHOWN]}"
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
    cut = text[:LONGEST].rsplit(" ", 1)[0] if " " in text[:LONGEST] else text[:LONGEST]
    return f"{cut.rstrip(' .:;,!')}…"


MOST_OPEN: Final = 50
IDLE: Final = 30 * 60.0
"""Threads in memory at most, and seconds after which one that is not used is put away. Both only forget what is on disk."""

Approve = Callable[[str, ShareRequest], Awaitable[ShareDecision]]
"""Asks the person about sharing, for the thread of this id."""


@dataclass(slots=True)
class ActiveThread:
    """A thread in memory. `conversation` is the conversation as models get it, `recorder` what is written down.

    `machine` says how its turn stands; `task` runs in the background.
    """

    conversation: Conversation
    recorder: Recorder
    used_at: float
    running: bool = False
    machine: TurnMachine = field(default_factory=TurnMachine)
    task: asyncio.Task[None] | None = None

    @property
    def id(self) -> str:
        return self.conversation.id

    @property
    def state(self) -> ThreadState:
        """The thread as it is now: title, what was said, usage."""
        return self.recorder.state

    @property
    def partial(self) -> str:
        """The answer that is coming, as far as it has come."""
        return self.recorder.partial


@dataclass(slots=True)
class ThreadManager:
    """All threads of one vault that are alive; `store` has their files, `bus` tells what happens in them. Methods that are not async may block.

    `titles_by_model`: models make titles, else the person's own words do.
    """

    store: ThreadStore
    session: Session
    titles_by_model: Callable[[], bool] = bool
    clock: Callable[[], float] = time.monotonic
    bus: Bus = field(default_factory=Bus)
    _open: OrderedDict[str, ActiveThread] = field(default_factory=OrderedDict)

    # --- threads -------------------------------------------------------------------------------------------------------------------

    def create(self, model: str | None = None) -> ActiveThread:
        """A new thread, on disk as soon as this returns."""
        return self._take_up(self.store.create(model))

    def open(self, thread_id: str) -> ActiveThread:
        """A thread, resumed if it is not in memory. Raises `ConfigError` (THREAD_NOT_FOUND and others)."""
        thread = self._open.get(thread_id)
        if thread is None:
            return self._take_up(self.store.load(thread_id))
        if not thread.running and thread.recorder.file.changed:  # by another program
            fresh = self._take_up(self.store.load(thread_id))
            fresh.conversation.grants, fresh.machine = thread.conversation.grants, thread.machine
            return fresh
        thread.used_at = self.clock()
        self._open.move_to_end(thread_id)
        return thread

    def rename(self, thread_id: str, title: str) -> str:
        """Give a thread a title of the person's."""
        thread = self._open.get(thread_id)
        if thread is None:
            kept = self.store.rename(thread_id, title)
        else:
            kept = clean_title(title)
            thread.recorder.set(title=kept, titledBy="person")
        self.bus.publish(Retitled(thread_id, kept))
        return kept

    def choose_model(self, thread_id: str, model: str | None) -> None:
        """Let a thread use another model from its next message on; None: the one of the settings."""
        self.open(thread_id).recorder.set(model=model)

    def choose_assistant(self, thread_id: str, name: str | None) -> None:
        """Let an agent of the vault's own answer in a thread from its next message on; None: nobody in particular."""
        self.open(thread_id).recorder.set(assistant=name)

    def delete(self, thread_id: str) -> bool:
        """Remove a thread for good. Raises `ConfigError` THREAD_BUSY while its turn goes on."""
        thread = self._open.get(thread_id)
        if thread is not None:
            _check_free(thread)
            del self._open[thread_id]
        return self.store.delete(thread_id)

    def rewind(self, thread_id: str, version: int) -> ActiveThread:
        """Go back to the end of an earlier turn. Raises `ConfigError`: THREAD_BUSY, NO_VERSION."""
        _check_free(self.open(thread_id))
        del self._open[thread_id]
        return self._take_up(self.store.rewind(thread_id, version))

    def tick(self, thread_id: str, task: str, on: bool) -> None:
        """Tick a task that was found in a thread, or untick it (see `agent.tasks`)."""
        self.open(thread_id).recorder.add({"k": "done", "index": task, "on": on})

    def note_run(
        self, thread_id: str, goal: str, result: ExecutionResult, unlike: Sequence[Problem] = ()
    ) -> TurnState:
        """Keep with a thread what came of a plan of its; `unlike` is what `Plans.verify` found. Says how the turn stands.

        `RETRYING` means that `repair_request` may be asked as the thread's next message, twice at most.
        """
        thread = self.open(thread_id)
        _advance(thread.machine, result, tuple(unlike))
        problems = [problem.to_json() for problem in result.errors]
        found = [problem.to_json() for problem in unlike]
        thread.recorder.say(
            "run",
            goal,
            runId=result.run_id,
            status=result.status,
            success=result.success,
            problems=problems,
            unlike=found,
        )
        return thread.machine.state

    def tidy(self) -> int:
        """Put away what has not been used for half an hour; says how many. Front ends call it every few minutes."""
        idle = [
            key
            for key, thread in self._open.items()
            if not thread.running and self.clock() - thread.used_at >= IDLE
        ]
        for key in idle:
            del self._open[key]
        return len(idle)

    @property
    def in_memory(self) -> list[str]:
        """Ids of the threads in memory, the one that was used last at the end."""
        return [*self._open]

    @property
    def running(self) -> list[str]:
        """Ids of the threads whose turn goes on."""
        return [key for key, thread in self._open.items() if thread.running]

    # --- turns ---------------------------------------------------------------------------------------------------------------------

    async def _turn(
        self, thread: ActiveThread, text: str, approve: ApproveShare
    ) -> AsyncGenerator[AgentEvent, None]:
        """A turn that is written down, in a thread that no other program works in meanwhile."""
        recorder, conversation = thread.recorder, thread.conversation
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(recorder.file.held())
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
                        recorder.take(event)
                        with contextlib.suppress(
                            IllegalStep
                        ):  # a new message may come while an old plan still waits or runs
                            thread.machine.hear(event)
                        yield event
            finally:
                shared = shared_record(conversation.told, conversation.plain, conversation.shared)
                try:
                    await asyncio.shield(asyncio.to_thread(recorder.end, shared))
                finally:
                    thread.running = False
                    thread.used_at = self.clock()

    def _events(
        self, thread: ActiveThread, text: str, approve: ApproveShare
    ) -> AsyncGenerator[AgentEvent, None]:
        if self.session.models is None:
            return self.session.turn(text)
        return self.session.answer(
            text,
            approve,
            conversation=thread.conversation,
            model=thread.state.model,
            assistant=thread.state.assistant,
        )

    def _provider(self, thread: ActiveThread) -> Provider | None:
        """The model that a thread talks to; None without one. Raises `ConfigError`."""
        models = self.session.models
        return None if models is None else models.providers.get(thread.state.model or models.spec)

    async def compact(self, thread_id: str) -> Compacted:
        """Make room: summarise all turns of a thread but the last. Raises `ConfigError`: THREAD_BUSY, and as `conversation.compact`."""
        thread = await asyncio.to_thread(self.open, thread_id)
        _check_free(thread)
        provider = self._provider(thread)
        if provider is None:
            raise ConfigError(
                "There is no model, so there is nothing to make room for.", code="NO_MODEL"
            )
        thread.running = True
        try:
            with thread.recorder.file.held():
                done = await compact(thread.conversation, provider)
                thread.recorder.say("notice", done.words, code="COMPACTED")
                return done
        finally:
            thread.running = False

    def start(self, thread_id: str, text: str, approve: Approve) -> None:
        """Work on a message in the background; the bus tells what happens. Raises `ConfigError` THREAD_BUSY."""
        thread = self.open(thread_id)
        _check_free(thread)
        thread.running = True
        thread.task = asyncio.get_running_loop().create_task(
            self._run(thread, text, approve), name=f"thread {thread_id}"
        )

        def over(task: asyncio.Task[None]) -> None:
            # Cancelled before it began. An earlier task may still look for a title while the next message is worked on.
            if thread.running and thread.task is task:
                self._ended(thread, "cancelled")

        thread.task.add_done_callback(over)

    def cancel(self, thread_id: str) -> bool:
        """Stop a turn that `start` began; what has come of the answer is kept, marked. False when none goes on."""
        thread = self._open.get(thread_id)
        return thread is not None and thread.task is not None and thread.task.cancel()

    async def close(self) -> None:
        """Stop everything that runs, and wait until it is saved."""
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

        how: How = "failed"
        try:
            async with contextlib.aclosing(self._turn(thread, text, approve_here)) as events:
                async for event in events:
                    how = "failed" if isinstance(event, TurnFailed) else "completed"
                    self.bus.publish(Happened(thread.id, event))
        except asyncio.CancelledError:
            how = "cancelled"
            self._name(thread, title_from(_question(thread)))
            raise
        except Exception as error:
            how = "failed"
            problem = explain(error)
            thread.recorder.say("failed", problem.message, code=problem.code)
            self.bus.publish(Happened(thread.id, TurnFailed(problem)))
        finally:
            self._ended(thread, how)
        await self.find_title(thread.id)

    def _ended(self, thread: ActiveThread, how: How) -> None:
        thread.running = False
        self.bus.publish(Ended(thread.id, how))

    async def find_title(self, thread_id: str) -> str | None:
        """After a first exchange: give the thread a title, by its model where models may, which knows both sides already."""
        thread = self._open.get(thread_id)
        if thread is None or thread.state.titled_by != "time":
            return None
        question = _question(thread)
        answer = next(
            (said.text for said in thread.state.said if said.role in ("model", "plan")), ""
        )
        made: str | None = None
        with contextlib.suppress(ConfigError):
            if self.titles_by_model() and (provider := self._provider(thread)) is not None:
                made = await title_by(provider, question, answer)
        return self._name(thread, made or title_from(question, answer))

    def _name(self, thread: ActiveThread, title: str | None) -> str | None:
        """Give a thread a title that has none yet."""
        if title is None or thread.state.titled_by != "time":
            return None
        with contextlib.suppress(ConfigError):
            thread.recorder.set(title=title, titledBy="program")
        self.bus.publish(Retitled(thread.id, title))
        return title

    # --- memory --------------------------------------------------------------------------------------------------------------------

    def _take_up(self, state: ThreadState) -> ActiveThread:
        conversation, file = state.conversation(), self.store.file(state.id)
        with contextlib.suppress(OSError):
            file.size = file.path.stat().st_size
        thread = ActiveThread(
            conversation, Recorder(file, ThreadFold(state), self.store.now), self.clock()
        )
        conversation.keeper = thread.recorder
        self._open[state.id] = thread
        free = [key for key, each in self._open.items() if not each.running and key != state.id]
        for key in free[: max(0, len(self._open) - MOST_OPEN)]:
            del self._open[key]
        return thread


def _question(thread: ActiveThread) -> str:
    return next((said.text for said in thread.state.said if said.role == "person"), "")


def _advance(machine: TurnMachine, result: ExecutionResult, unlike: tuple[Problem, ...]) -> None:
    """Take a turn through its run, from wherever the events left it."""
    with contextlib.suppress(IllegalStep):
        if machine.state is not TurnState.EXECUTING and result.run_id is not None:
            machine.to(TurnState.EXECUTING)
        machine.hear(RunFinished(result))
        if machine.state is TurnState.VALIDATING:
            machine.checked(unlike)


def _check_free(thread: ActiveThread) -> None:
    if thread.running:
        message = f"The conversation “{thread.state.title}” is still being worked on."
        raise ConfigError(message, code="THREAD_BUSY", hint="Wait for the answer, or cancel it.")
