"""What a planner asks of a model, and what it gets back: one request, one stream of deltas, one way to fail (`ProviderError`).

Client libraries block their event loop, so they get one of their own, in a thread (`in_own_loop`); the loop that draws only receives finished items.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, Final, Generic, Literal, Protocol, TypeVar

from obsidian_agent.dataclass import dataclass, field
from obsidian_agent.errors import Problem

SILENCE: Final = 120.0
"""Seconds without a piece of the answer before a service is given up, where the settings name none."""

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """A function that the model may call. `name` holds letters, digits, _ and - only; `parameters` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the model made it. `arguments` is the text that it wrote: JSON when all went well."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of the conversation as it goes to the model.

    An assistant's message may hold `calls`; each is answered by one message of role "tool", before any other message, whose `call_id` is
    the call's.
    """

    role: Role
    text: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One completion. `json_only` asks for a JSON object where the service can promise one, `schema` (a JSON Schema of an object) for one
    of that shape. What comes need not keep to either: services without such a promise answer as they like. `timeout`: seconds of silence
    before it is given up, None: the provider's own.

    A service that cannot call tools refuses a request with `tools` with the code API_TOOLS_UNSUPPORTED.
    """

    messages: tuple[ChatMessage, ...]
    temperature: float = 0.2
    max_tokens: int | None = None
    json_only: bool = False
    timeout: float | None = None
    tools: tuple[ToolOffer, ...] = ()
    schema: Mapping[str, Any] | None = None
    conversation: str = ""
    """Whose request this is, for a provider that keeps conversations itself; "" for one that belongs to none."""


@dataclass(frozen=True, slots=True)
class TextChunk:
    """Streamed text; `thinking` is the model's reasoning, shown apart."""

    text: str
    thinking: bool = False


@dataclass(frozen=True, slots=True)
class ToolCallChunk:
    """A piece of a call; pieces of call `number` (from 0, in the order of the calls) join to one. `id` and `name` come with its first."""

    number: int
    arguments: str
    id: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request, as the service counts them. `cached_tokens` of the prompt's are what it remembered from an earlier one."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0


FinishReason = Literal["stop", "length", "error"]


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of a stream. `length` means that the text was cut. `usage` is None when the service does not tell."""

    reason: FinishReason
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """The request goes out by itself after a pause: again, when it failed before anything of the answer came, or for the first time
    (`attempt` 1), when too many went out before it.

    `attempt` is the one that comes after the pause, of `attempts`.
    """

    seconds: float
    attempt: int
    attempts: int
    problem: Problem


@dataclass(frozen=True, slots=True)
class OwnCall:
    """A call that a provider makes which looks around by itself; nobody here answers it. `ended`: it is over, with `problem` in vain."""

    id: str
    tool: str
    args: Mapping[str, Any]
    ended: bool = False
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that the person should know; `alarm`: that they must see. `tool`: what a provider wanted to use and was refused."""

    problem: Problem
    alarm: bool = False
    tool: str = ""


ChatDelta = TextChunk | ToolCallChunk | Waiting | OwnCall | Remark | Finished


class Provider(Protocol):
    """A source of completions."""

    @property
    def name(self) -> str:
        """How it is shown and chosen: `openai/gpt-5`, `scripted/answers.jsonl`."""
        ...

    @property
    def address(self) -> str:
        """Where requests go, as scheme and host; "" when they go nowhere."""
        ...

    @property
    def local(self) -> bool:
        """Whether requests stay on this machine (loopback)."""
        ...

    def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """One completion as deltas, ended by exactly one `Finished`. Raises `ProviderError`; closing the iterator cancels the request."""
        ...


Item = TypeVar("Item")

LONGEST_GOODBYE = 1.0
"""Seconds that closing waits for the generator's own clean-up; a thread in the middle of an import is not waited for any longer."""


@dataclass(frozen=True, slots=True)
class _Ended:
    failure: Exception | None


@dataclass(slots=True)
class _Worker(Generic[Item]):
    """The thread's side. `deliver` may be called from it at any time."""

    make: Callable[[], AsyncGenerator[Item, None]]
    deliver: Callable[[Item | _Ended], None]
    closing: threading.Event = field(default_factory=threading.Event)
    loop: asyncio.AbstractEventLoop | None = None
    task: asyncio.Task[None] | None = None

    def run(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(self._pump())

    async def _pump(self) -> None:
        self.loop, self.task = asyncio.get_running_loop(), asyncio.current_task()
        failure: Exception | None = None
        try:
            # Set first, looked at second; `cancel` does it the other way round, so one of both sees the other.
            if not self.closing.is_set():
                async with contextlib.aclosing(self.make()) as items:
                    async for item in items:
                        self.deliver(item)
        except Exception as error:
            failure = error
        finally:
            self.deliver(_Ended(failure))

    def cancel(self) -> None:
        self.closing.set()
        if self.loop is not None and self.task is not None:
            with contextlib.suppress(RuntimeError):  # the loop closed in the meantime
                self.loop.call_soon_threadsafe(self.task.cancel)


async def value_in_own_loop(make: Callable[[], Awaitable[Item]]) -> Item:
    """What the awaitable made by `make` comes to, worked on in a loop of its own."""

    async def once() -> AsyncGenerator[Item, None]:
        yield await make()

    async with contextlib.aclosing(in_own_loop(once)) as values:
        return await anext(values)


async def in_own_loop(make: Callable[[], AsyncGenerator[Item, None]]) -> AsyncGenerator[Item, None]:
    """Yield what the generator made by `make` yields. Its exception is raised here; closing this one cancels and closes that one."""
    home = asyncio.get_running_loop()
    items: asyncio.Queue[Item | _Ended] = asyncio.Queue()
    ended = asyncio.Event()

    def receive(item: Item | _Ended) -> None:
        if isinstance(item, _Ended):
            ended.set()
        items.put_nowait(item)

    def deliver(item: Item | _Ended) -> None:
        with contextlib.suppress(RuntimeError):  # nobody is listening any more
            home.call_soon_threadsafe(receive, item)

    worker = _Worker(make, deliver)
    threading.Thread(target=worker.run, name="model", daemon=True).start()
    try:
        while not isinstance(item := await items.get(), _Ended):
            yield item
        if item.failure is not None:
            raise item.failure
    finally:
        if not ended.is_set():
            worker.cancel()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LONGEST_GOODBYE):
                    await ended.wait()
