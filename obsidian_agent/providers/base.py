"""The interface of model providers: one request, one stream of deltas, one error (`ProviderError`).

Client libraries may block their event loop, so they run in a loop of their own in a thread
(`in_own_loop`); the loop that draws the screen only receives finished items.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, Final, Generic, Literal, Protocol, TypeVar

from msgspec import Struct, field

from obsidian_agent.errors import Problem

SILENCE: Final = 120.0
"""Default timeout in seconds without a piece of the answer."""
CLOSING_SECONDS: Final = 1.0
"""Seconds that closing waits for the clean-up; a thread in the middle of an import takes longer."""

Item = TypeVar("Item")

FinishReason = Literal["stop", "length", "error"]
Role = Literal["system", "user", "assistant", "tool"]


class ToolOffer(Struct, frozen=True):
    """A function that the model may call.

    `name` contains only letters, digits, _ and -. `parameters` is a JSON Schema of an object.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]


class ToolCall(Struct, frozen=True):
    """A call by the model. `arguments` is the text that it wrote, which should be JSON."""

    id: str
    name: str
    arguments: str


class ChatMessage(Struct, frozen=True):
    """One message of the conversation in the form that is sent to the model.

    An assistant's message may contain `calls`. Each call is answered by one message of role "tool"
    with its `call_id`, before any other message.
    """

    role: Role
    text: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""


class ChatRequest(Struct, frozen=True):
    """A request for one completion.

    `json_only` requests a JSON object and `schema` (a JSON Schema of an object) one of that shape.
    The answer may still have another form: not every service can guarantee it. `timeout` is the
    permitted silence in seconds, None for the provider's default.

    A service that cannot call tools refuses a request with `tools` with API_TOOLS_UNSUPPORTED.
    """

    messages: tuple[ChatMessage, ...]
    temperature: float = 0.2
    max_tokens: int | None = None
    json_only: bool = False
    timeout: float | None = None
    tools: tuple[ToolOffer, ...] = ()
    schema: Mapping[str, Any] | None = None
    conversation: str = ""
    """Id of the conversation, for providers that store conversations; "" if there is none."""


class TextChunk(Struct, frozen=True):
    """Streamed text. `thinking` marks the model's reasoning, which is displayed separately."""

    text: str
    thinking: bool = False


class ToolCallChunk(Struct, frozen=True):
    """A piece of call `number`, counted from 0. The first piece has `id` and `name`."""

    number: int
    arguments: str
    id: str = ""
    name: str = ""


class Usage(Struct, frozen=True):
    """Tokens of one request, as the service counts them.

    `cached_tokens` are those of the prompt that it had cached from an earlier request.
    """

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0


class Finished(Struct, frozen=True):
    """The last event of a stream.

    The reason `length` means that the text was truncated. `usage` is None if unknown.
    """

    reason: FinishReason
    usage: Usage | None = None


class Waiting(Struct, frozen=True):
    """A pause before the request is sent, `attempt` of `attempts`.

    A first attempt waits for the rate limit, a later one follows a failure without an answer.
    """

    seconds: float
    attempt: int
    attempts: int
    problem: Problem


class OwnCall(Struct, frozen=True):
    """A tool call that the provider itself makes and answers.

    `ended` is True when it is over, and `problem` is set if it failed.
    """

    id: str
    tool: str
    args: Mapping[str, Any]
    ended: bool = False
    problem: Problem | None = None


class Remark(Struct, frozen=True):
    """A notice for the user; one with `alarm` must not be missed.

    `tool` is the tool that the provider was refused.
    """

    problem: Problem
    alarm: bool = False
    tool: str = ""


ChatDelta = TextChunk | ToolCallChunk | Waiting | OwnCall | Remark | Finished


class Provider(Protocol):
    """A source of completions."""

    @property
    def name(self) -> str:
        """The name for display and settings: `openai/gpt-5`, `scripted/answers.jsonl`."""
        ...

    @property
    def address(self) -> str:
        """Scheme and host to which requests are sent; "" if there are none."""
        ...

    @property
    def local(self) -> bool:
        """True if requests stay on this machine (loopback)."""
        ...

    def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """Stream one completion as deltas, ended by exactly one `Finished`.

        Closing the iterator cancels the request. Raise `ProviderError`.
        """
        ...


class _Ended(Struct, frozen=True):
    failure: Exception | None


class _Worker(Struct, Generic[Item]):
    """The part that runs in the thread, from which `deliver` is called at any time."""

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
            # `cancel` sets `closing` before it reads the task, so one of both sees the other.
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
    """Return the result of the awaitable from `make`, awaited in a loop of its own."""

    async def once() -> AsyncGenerator[Item, None]:
        yield await make()

    async with contextlib.aclosing(in_own_loop(once)) as values:
        return await anext(values)


async def in_own_loop(make: Callable[[], AsyncGenerator[Item, None]]) -> AsyncGenerator[Item, None]:
    """Yield the items of the generator from `make`, which runs in a loop of its own.

    Its exception is raised here. Closing this generator cancels and closes that one.
    """
    home = asyncio.get_running_loop()
    items: asyncio.Queue[Item | _Ended] = asyncio.Queue()
    ended = asyncio.Event()

    def receive(item: Item | _Ended) -> None:
        if isinstance(item, _Ended):
            ended.set()
        items.put_nowait(item)

    def deliver(item: Item | _Ended) -> None:
        with contextlib.suppress(RuntimeError):  # the receiving loop is closed
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
                async with asyncio.timeout(CLOSING_SECONDS):
                    await ended.wait()
