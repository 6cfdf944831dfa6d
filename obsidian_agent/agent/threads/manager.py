"""Threads at work: several at once, each with its own conversation, its own turn and its own record.

A front end either iterates over `ask`, or calls `start` and listens to the bus; in both cases a turn belongs to the thread that it was
begun in, whatever is on the screen meanwhile. Everything is on disk all the time, so that putting a thread away is forgetting it.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, Protocol, cast

from obsidian_agent.agent.conversation import Compacted, Conversation, compact
from obsidian_agent.agent.events import AgentEvent, ExecutionResult, RunFinished, TurnFailed
from obsidian_agent.agent.failures import explain
from obsidian_agent.agent.privacy.consent import ApproveShare, ShareDecision, ShareRequest
from obsidian_agent.agent.privacy.untrusted_text import visible
from obsidian_agent.agent.replies import whole_reply
from obsidian_agent.agent.threads.log_store import ThreadHit, ThreadStore, ThreadSummary, clean_title
from obsidian_agent.agent.threads.recorder import Recorder, shared_record
from obsidian_agent.agent.threads.state import ThreadFold, ThreadState
from obsidian_agent.agent.turn.state_machine import IllegalStep, TurnMachine, TurnState
from obsidian_agent.errors import ConfigError, Problem, ProviderError
from obsidian_agent.providers.base import ChatMessage, ChatRequest, Provider

if TYPE_CHECKING:
    from obsidian_agent.agent.session import Session


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
        """Tell all listeners."""
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


async def _from(queue: asyncio.Queue[ThreadEvent], thread_id: str | None) -> AsyncIterator[ThreadEvent]:
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
        plain = next((line.lstrip("# ").strip() for line in visible(answer).splitlines() if line.strip()), "")
    if len(re.findall(r"\w", plain)) < 3:
        return None
    return _shortened(plain[0].upper() + plain[1:])


async def title_by(provider: Provider, question: str, answer: str) -> str | None:
    """A title that a model makes of what it was asked and has answered; None when it fails. Nothing else is sent."""
    conversation = f"Question: {visible(question)[:_SHOWN]}\n\nAnswer: {visible(answer)[:_SHOWN]}"
    request = ChatRequest((ChatMessage("system", _INSTRUCTIONS), ChatMessage("user", conversation)), max_tokens=64, timeout=20.0)
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


@dataclass(frozen=True, slots=True)
class SessionTurns:
    """`Turns` over a session. `titles_by_model`: models make titles, else the person's own words do."""

    session: Session
    titles_by_model: Callable[[], bool] = bool

    def turn(self, chat: ActiveThread, text: str, approve: ApproveShare) -> AsyncIterator[AgentEvent]:
        """The events of one message; ends as `Session.answer` and `Session.turn` do."""
        if self.session.models is None:
            return self.session.turn(text)
        return self.session.answer(text, approve, conversation=chat.conversation, model=chat.state.model, assistant=chat.state.assistant)

    async def compact(self, chat: ActiveThread) -> Compacted:
        """Summarise a thread by its model. Raises `ConfigError`, also without a model."""
        models = self.session.models
        if models is None:
            raise ConfigError("There is no model, so there is nothing to make room for.", code="NO_MODEL")
        return await compact(chat.conversation, models.providers.get(chat.state.model or models.spec))

    async def title(self, chat: ActiveThread, question: str, answer: str) -> str | None:
        """A title by the thread's model, which knows both sides already."""
        models = self.session.models
        if models is None or not self.titles_by_model():
            return None
        try:
            provider = models.provider if chat.state.model is None else models.providers.get(chat.state.model)
        except ConfigError:
            return None
        return await title_by(provider, question, answer)


MOST_OPEN: Final = 50
IDLE: Final = 30 * 60.0
"""Threads in memory at most, and seconds after which one that is not used is put away. Both only forget what is on disk."""

Approve = Callable[[str, ShareRequest], Awaitable[ShareDecision]]
"""Asks the person about sharing, for the thread of this id."""


class Turns(Protocol):
    """Who works on a message of a thread."""

    def turn(self, chat: ActiveThread, text: str, approve: ApproveShare) -> AsyncIterator[AgentEvent]:
        """The events of one message. Closing the iterator cancels."""
        ...

    async def compact(self, chat: ActiveThread) -> Compacted:
        """Summarise what models get of a thread. Raises `ConfigError`."""
        ...

    async def title(self, chat: ActiveThread, question: str, answer: str) -> str | None:
        """A title by a model, when the settings want that and it succeeds."""
        ...


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
        """The thread's id."""
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
    """All threads of one vault. Methods that are not async may block."""

    store: ThreadStore
    turns: Turns
    clock: Callable[[], float] = time.monotonic
    bus: Bus = field(default_factory=Bus)
    _open: OrderedDict[str, ActiveThread] = field(default_factory=OrderedDict)

    # --- threads -------------------------------------------------------------------------------------------------------------------

    def create(self, model: str | None = None) -> ActiveThread:
        """A new thread, on disk as soon as this returns."""
        return self._take_up(self.store.create(model))

    def open(self, thread_id: str) -> ActiveThread:
        """A thread, resumed if it is not in memory. Raises `ConfigError` (THREAD_NOT_FOUND and others)."""
        chat = self._open.get(thread_id)
        if chat is None:
            return self._take_up(self.store.load(thread_id))
        if not chat.running and chat.recorder.file.changed:  # by another program
            fresh = self._take_up(self.store.load(thread_id))
            fresh.conversation.grants, fresh.machine = chat.conversation.grants, chat.machine
            return fresh
        chat.used_at = self.clock()
        self._open.move_to_end(thread_id)
        return chat

    def summaries(self) -> list[ThreadSummary]:
        """All threads, the one that was used last first."""
        return self.store.summaries()

    def search(self, query: str, limit: int = 50) -> list[ThreadHit]:
        """Threads by their titles and words."""
        return self.store.search(query, limit)

    def rename(self, thread_id: str, title: str) -> str:
        """Give a thread a title of the person's."""
        chat = self._open.get(thread_id)
        if chat is None:
            kept = self.store.rename(thread_id, title)
        else:
            kept = clean_title(title)
            chat.recorder.set(title=kept, titledBy="person")
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
        chat = self._open.get(thread_id)
        if chat is not None:
            _check_free(chat)
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

    def note_run(self, thread_id: str, goal: str, result: ExecutionResult, unlike: Sequence[Problem] = ()) -> TurnState:
        """Keep with a thread what came of a plan of its; `unlike` is what `Plans.verify` found. Says how the turn stands.

        `RETRYING` means that `verify.repair_request` may be asked as the thread's next message, twice at most.
        """
        chat = self.open(thread_id)
        _advance(chat.machine, result, tuple(unlike))
        recorder = chat.recorder
        problems = [problem.to_json() for problem in result.errors]
        unlike_documents = [problem.to_json() for problem in unlike]
        told = {
            "runId": result.run_id,
            "status": result.status,
            "success": result.success,
            "problems": problems,
            "unlike": unlike_documents,
        }
        recorder.say("run", goal, **told)
        return chat.machine.state

    def tidy(self) -> int:
        """Put away what has not been used for half an hour; says how many. Front ends call it every few minutes."""
        idle = [key for key, chat in self._open.items() if not chat.running and self.clock() - chat.used_at >= IDLE]
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
        return [key for key, chat in self._open.items() if chat.running]

    # --- turns ---------------------------------------------------------------------------------------------------------------------

    async def ask(self, thread_id: str, text: str, approve: ApproveShare) -> AsyncGenerator[AgentEvent, None]:
        """One message of the person in a thread; events as `Session.answer` yields them. Closing the iterator cancels.

        Raises `ConfigError` THREAD_BUSY while an earlier message is being worked on.
        """
        chat = await asyncio.to_thread(self.open, thread_id)
        _check_free(chat)
        chat.running = True
        async with contextlib.aclosing(self._turn(chat, text, approve)) as events:
            async for event in events:
                yield event

    async def _turn(self, chat: ActiveThread, text: str, approve: ApproveShare) -> AsyncGenerator[AgentEvent, None]:
        """A turn that is written down, in a thread that no other program works in meanwhile."""
        recorder, conversation = chat.recorder, chat.conversation
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(recorder.file.held())
            except ConfigError as error:
                chat.running = False
                yield TurnFailed(error.problem())
                return
            try:
                try:
                    await asyncio.to_thread(recorder.begin, text)
                except ConfigError as error:
                    yield TurnFailed(error.problem())
                    return
                events = cast("AsyncGenerator[AgentEvent, None]", self.turns.turn(chat, text, approve))
                async with contextlib.aclosing(events):
                    async for event in events:
                        recorder.take(event)
                        with contextlib.suppress(IllegalStep):  # a new message may come while an old plan still waits or runs
                            chat.machine.hear(event)
                        yield event
            finally:
                shared = shared_record(conversation.told, conversation.plain, conversation.shared)
                try:
                    await asyncio.shield(asyncio.to_thread(recorder.end, shared))
                finally:
                    chat.running = False
                    chat.used_at = self.clock()

    async def compact(self, thread_id: str) -> Compacted:
        """Make room: summarise all turns of a thread but the last. Raises `ConfigError`: THREAD_BUSY, and as `conversation.compact`."""
        chat = await asyncio.to_thread(self.open, thread_id)
        _check_free(chat)
        chat.running = True
        try:
            with chat.recorder.file.held():
                done = await self.turns.compact(chat)
                chat.recorder.say("notice", done.words, code="COMPACTED")
                return done
        finally:
            chat.running = False

    def start(self, thread_id: str, text: str, approve: Approve) -> None:
        """Work on a message in the background; the bus tells what happens. Raises `ConfigError` THREAD_BUSY."""
        chat = self.open(thread_id)
        _check_free(chat)
        chat.running = True
        chat.task = asyncio.get_running_loop().create_task(self._run(chat, text, approve), name=f"thread {thread_id}")
        chat.task.add_done_callback(lambda _: self._ended(chat, "cancelled") if chat.running else None)

    def cancel(self, thread_id: str) -> bool:
        """Stop a turn that `start` began; what has come of the answer is kept, marked. False when none goes on."""
        chat = self._open.get(thread_id)
        return chat is not None and chat.task is not None and chat.task.cancel()

    async def close(self) -> None:
        """Stop everything that runs, and wait until it is saved."""
        tasks = [chat.task for chat in self._open.values() if chat.task is not None and not chat.task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, chat: ActiveThread, text: str, approve: Approve) -> None:
        async def approve_here(request: ShareRequest) -> ShareDecision:
            return await approve(chat.id, request)

        how: How = "failed"
        try:
            async with contextlib.aclosing(self._turn(chat, text, approve_here)) as events:
                async for event in events:
                    how = "failed" if isinstance(event, TurnFailed) else "completed"
                    self.bus.publish(Happened(chat.id, event))
        except asyncio.CancelledError:
            how = "cancelled"
            self._name(chat, title_from(_question(chat)))
            raise
        except Exception as error:
            how = "failed"
            problem = explain(error).problem()
            chat.recorder.say("failed", problem.message, code=problem.code)
            self.bus.publish(Happened(chat.id, TurnFailed(problem)))
        finally:
            self._ended(chat, how)
        await self.find_title(chat.id)

    def _ended(self, chat: ActiveThread, how: How) -> None:
        chat.running = False
        self.bus.publish(Ended(chat.id, how))

    async def find_title(self, thread_id: str) -> str | None:
        """After a first exchange: give the thread a title. `start` does it by itself, who iterates over `ask` calls it afterwards."""
        chat = self._open.get(thread_id)
        if chat is None or chat.state.titled_by != "time":
            return None
        question = _question(chat)
        answer = next((said.text for said in chat.state.said if said.role in ("model", "plan")), "")
        return self._name(chat, await self.turns.title(chat, question, answer) or title_from(question, answer))

    def _name(self, chat: ActiveThread, title: str | None) -> str | None:
        """Give a thread a title that has none yet."""
        if title is None or chat.state.titled_by != "time":
            return None
        with contextlib.suppress(ConfigError):
            chat.recorder.set(title=title, titledBy="program")
        self.bus.publish(Retitled(chat.id, title))
        return title

    # --- memory --------------------------------------------------------------------------------------------------------------------

    def _take_up(self, state: ThreadState) -> ActiveThread:
        conversation, file = state.conversation(), self.store.file(state.id)
        with contextlib.suppress(OSError):
            file.size = file.path.stat().st_size
        chat = ActiveThread(conversation, Recorder(file, ThreadFold(state), self.store.now), self.clock())
        conversation.keeper = chat.recorder
        self._open[state.id] = chat
        free = [key for key, each in self._open.items() if not each.running and key != state.id]
        for key in free[: max(0, len(self._open) - MOST_OPEN)]:
            del self._open[key]
        return chat


def _question(chat: ActiveThread) -> str:
    return next((said.text for said in chat.state.said if said.role == "person"), "")


def _advance(machine: TurnMachine, result: ExecutionResult, unlike: tuple[Problem, ...]) -> None:
    """Take a turn through its run, from wherever the events left it."""
    with contextlib.suppress(IllegalStep):
        if machine.state is not TurnState.EXECUTING and result.run_id is not None:
            machine.to(TurnState.EXECUTING)
        machine.hear(RunFinished(result))
        if machine.state is TurnState.VALIDATING:
            machine.checked(unlike)


def _check_free(chat: ActiveThread) -> None:
    if chat.running:
        raise _busy(chat)


def _busy(chat: ActiveThread) -> ConfigError:
    message = f"The conversation “{chat.state.title}” is still being worked on."
    return ConfigError(message, code="THREAD_BUSY", hint="Wait for the answer, or cancel it.")
