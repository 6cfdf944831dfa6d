"""Models through litellm: the only module that imports it, when the first question is asked, in a thread with an event loop of its own.

litellm knows the services' dialects; everything it does beyond that is switched off. Both environment variables must be set before its
import, or it fetches lists from the network; `suppress_debug_info`, or it prints to the screen; its log handlers are removed; its retries
(and those of the client below it) are off, because they are silent and take many seconds; `_skip_mcp_handler`, or tools on offer make it
import packages that are not here. All its requests go through `http_guard.GuardedClient`.

A stream that simply ends counts as cut: litellm invents the finish reason "stop" then, but keeps what the service really said.

Tools and calls have the shape of OpenAI chat completions, which litellm takes for every service and gives back from every service.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
from collections.abc import AsyncGenerator, Iterable
from typing import TYPE_CHECKING, Any, Literal

from pydantic import SecretStr

from obsidian_agent.dataclass import dataclass, field
from obsidian_agent.errors import ProviderError
from obsidian_agent.providers import errors
from obsidian_agent.providers.base import (
    SILENCE,
    ChatDelta,
    ChatMessage,
    ChatRequest,
    Finished,
    FinishReason,
    TextChunk,
    ToolCall,
    ToolCallChunk,
    ToolOffer,
    Usage,
    in_own_loop,
)

if TYPE_CHECKING:
    from obsidian_agent.providers.http_guard import GuardedClient


def wire_tool(offer: ToolOffer) -> dict[str, Any]:
    function = {
        "name": offer.name,
        "description": offer.description,
        "parameters": dict(offer.parameters),
    }
    return {"type": "function", "function": function}


def wire_call(call: ToolCall) -> dict[str, Any]:
    """A call in an assistant's earlier message.

    Arguments that are no JSON object go back as an empty one: some services refuse them otherwise, and the call's result tells the model
    what was wrong.
    """
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": _object(call.arguments)},
    }


def _object(arguments: str) -> str:
    try:
        document = json.loads(arguments)
    except (ValueError, RecursionError):
        return "{}"
    return arguments if isinstance(document, dict) else "{}"


@dataclass(slots=True)
class _Begun:
    """The received pieces of one call."""

    number: int
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """True if the arguments are a complete document, so that no further piece belongs to it."""
        try:
            json.loads("".join(self.arguments))
        except (ValueError, RecursionError):
            return False
        return True


@dataclass(slots=True)
class CallReading:
    """Separates the calls of one answer.

    Services number calls properly, number all of them 0, or omit the number; some send no ids.
    """

    _by_index: dict[int, _Begun] = field(default_factory=dict)
    _last: _Begun | None = None
    _count: int = 0

    def take(self, pieces: Iterable[Any]) -> list[ToolCallChunk]:
        """Return the pieces of calls in one chunk of a stream."""
        return [found for piece in pieces if (found := self._read(piece)) is not None]

    def _read(self, piece: Any) -> ToolCallChunk | None:
        function = getattr(piece, "function", None)
        name, arguments = (
            _text(getattr(function, "name", None)),
            _text(getattr(function, "arguments", None)),
        )
        identity, index = _text(getattr(piece, "id", None)), getattr(piece, "index", None)
        if not (name or arguments or identity):
            return None
        known = self._by_index.get(index) if isinstance(index, int) else self._last
        if known is None or _another(known, identity, name, arguments):
            known = _Begun(self._count)
            self._count += 1
        if isinstance(index, int):
            self._by_index[index] = known
        self._last = known
        known.id, known.name = known.id or identity, known.name or name
        known.arguments.append(arguments)
        return ToolCallChunk(known.number, arguments, identity, name)


def _another(known: _Begun, identity: str, name: str, arguments: str) -> bool:
    """Return True if a piece starts a new call instead of continuing `known`."""
    if not name or not known.name:
        return False
    return identity != known.id if identity and known.id else bool(arguments) and known.complete


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


Dialect = Literal["openai", "anthropic", "ollama_chat"]

MAX_TEXT = 8 * 1024 * 1024
"""Characters of one answer, thinking included."""
_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One model behind one address. `json_mode`: it may be asked for a JSON object, also for one of a schema. `direct`: no proxy of the
    environment in between.
    """

    dialect: Dialect
    model: str
    base_url: str
    service: errors.Service
    needs_key: bool = True
    json_mode: bool = False
    direct: bool = False
    extra: tuple[tuple[str, Any], ...] = ()


@dataclass(slots=True)
class LiteLLMProvider:
    """A `Provider` over litellm. The key is kept out of reprs and messages. Not `streaming`: it asks for answers in one piece."""

    name: str
    endpoint: Endpoint
    api_key: SecretStr | None = field(default=None, repr=False)
    streaming: bool = True
    _refused: frozenset[str] = frozenset()
    """Optional parameters that this service has refused."""

    @property
    def address(self) -> str:
        return self.endpoint.service.address

    @property
    def local(self) -> bool:
        """True if the service is on this machine."""
        return self.endpoint.service.local

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """One completion; closing the iterator closes the connection.

        One request to the service, and a second one when it refused an optional parameter of the first.
        """
        if self.endpoint.needs_key and not self.api_key:
            raise errors.key_missing(self.endpoint.service)
        while True:
            failure: ProviderError | None = None
            async with contextlib.aclosing(in_own_loop(lambda: self._attempt(request))) as deltas:
                async for delta in deltas:
                    if isinstance(delta, ProviderError):
                        failure = delta
                    else:
                        yield delta
            if failure is None:
                return
            refused = _named_parameters(failure) - self._refused
            if not refused:
                raise failure
            self._refused |= refused

    async def _attempt(
        self, request: ChatRequest
    ) -> AsyncGenerator[ChatDelta | ProviderError, None]:
        """The deltas of one request; a failure comes as a value, so that no handler's context, which holds headers, hangs on to it."""
        endpoint = self.endpoint
        client = _open_client(endpoint, _silence(request))
        failure: ProviderError | None = None
        try:
            async with contextlib.aclosing(self._deltas(request, client)) as deltas:
                async for delta in deltas:
                    yield delta
        except ProviderError as error:
            failure = error
        except Exception as error:
            failure = _explain(endpoint.service, client, error)
        finally:
            await client.aclose()
        if failure is not None:
            yield failure

    async def _deltas(
        self, request: ChatRequest, client: GuardedClient
    ) -> AsyncGenerator[ChatDelta, None]:
        litellm = _load()
        _know_model(litellm, self.endpoint)
        seconds = _silence(request)
        async with asyncio.timeout(seconds):
            response = await litellm.acompletion(**self._arguments(request, client))
        reading = _Reading(self.endpoint.service)
        if not self.streaming:
            for delta in reading.take(response):
                yield delta
            yield reading.ended(
                response.choices[0].finish_reason if response.choices else None, [response]
            )
            return
        async with contextlib.aclosing(response):
            chunks = aiter(response)
            while True:
                async with asyncio.timeout(seconds):
                    chunk = await anext(chunks, None)
                if chunk is None:
                    break
                for delta in reading.take(chunk):
                    yield delta
            yield reading.finish(response)

    def _arguments(self, request: ChatRequest, client: GuardedClient) -> dict[str, Any]:
        endpoint = self.endpoint
        optional: dict[str, Any] = {"temperature": request.temperature}
        if self.streaming:
            optional["stream_options"] = {"include_usage": True}
        if request.max_tokens is not None:
            optional["max_tokens"] = request.max_tokens
        if request.schema is not None and endpoint.json_mode:
            # For Ollama litellm makes its `format` of it; a shape that small is filled without thinking for a minute first.
            optional["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": request.schema},
            }
            optional |= {"think": False} if endpoint.dialect == "ollama_chat" else {}
        elif request.json_only and endpoint.json_mode:
            optional["response_format"] = {"type": "json_object"}
        if request.tools:
            optional["tools"] = [wire_tool(offer) for offer in request.tools]
        api_key = self.api_key.get_secret_value() if self.api_key is not None else "none"
        return {
            "model": f"{endpoint.dialect}/{endpoint.model}",
            "messages": [_wire_message(message, endpoint.dialect) for message in request.messages],
            "stream": self.streaming,
            "api_key": api_key,
            "api_base": endpoint.base_url,
            "timeout": _silence(request),
            "max_retries": 0,
            "drop_params": True,
            "_skip_mcp_handler": True,
            "client": _library_client(endpoint, client, api_key),
            **dict(endpoint.extra),
            **{name: value for name, value in optional.items() if name not in self._refused},
        }


def _silence(request: ChatRequest) -> float:
    """Return the seconds without a piece of the answer after which the service is given up; keep-alive messages do not extend them."""
    return SILENCE if request.timeout is None else request.timeout


def _wire_message(message: ChatMessage, dialect: Dialect) -> dict[str, Any]:
    """A message as litellm takes it. Anthropic remembers a system prompt, at a fraction of its price, only where it is marked."""
    if dialect == "anthropic" and message.role == "system":
        part = {"type": "text", "text": message.text, "cache_control": {"type": "ephemeral"}}
        return {"role": message.role, "content": [part]}
    if message.role == "tool":
        return {"role": message.role, "tool_call_id": message.call_id, "content": message.text}
    if message.calls:
        return {
            "role": message.role,
            "content": message.text or None,
            "tool_calls": [wire_call(call) for call in message.calls],
        }
    return {"role": message.role, "content": message.text}


def _named_parameters(failure: ProviderError) -> frozenset[str]:
    """Return the optional parameters that a refusal names."""
    if failure.code != "API_BAD_REQUEST":
        return frozenset()
    return frozenset(
        name
        for name in ("temperature", "stream_options", "max_tokens", "response_format", "think")
        if name in failure.message
    )


@dataclass(slots=True)
class _Reading:
    """The received part of one answer."""

    service: errors.Service
    length: int = 0
    calls: CallReading = field(default_factory=CallReading)

    def take(self, chunk: Any) -> list[TextChunk | ToolCallChunk]:
        """Return the text and the pieces of calls in a chunk or a complete answer."""
        found: list[TextChunk | ToolCallChunk] = []
        for choice in chunk.choices[:1]:
            delta = choice.delta if hasattr(choice, "delta") else choice.message
            thinking = getattr(delta, "reasoning_content", None) or getattr(
                delta, "reasoning", None
            )
            for text, is_thinking in ((thinking, True), (delta.content, False)):
                if isinstance(text, str) and text:
                    self.length += len(text)
                    found.append(TextChunk(text, thinking=is_thinking))
            for piece in self.calls.take(getattr(delta, "tool_calls", None) or ()):
                self.length += len(piece.name) + len(piece.arguments)
                found.append(piece)
        if self.length > MAX_TEXT:
            raise errors.too_large(self.service)
        return found

    def finish(self, response: Any) -> Finished:
        """Return the end that the service reported, without litellm's guesses at reason and usage."""
        return self.ended(
            response.received_finish_reason or response.intermittent_finish_reason, response.chunks
        )

    def ended(self, told: str | None, chunks: list[Any]) -> Finished:
        """Return the end of an answer with this reason. Raise `ProviderError` if it is not complete."""
        if told is None:
            raise (
                errors.stream_cut(self.service)
                if self.length
                else errors.stream_empty(self.service)
            )
        if told in ("content_filter", "safety", "refusal"):
            raise errors.content_blocked(self.service)
        reason: FinishReason = "length" if told in ("length", "max_tokens") else "stop"
        return Finished(reason, _usage(chunks))


def _usage(chunks: list[Any]) -> Usage | None:
    """Tokens by the service's own count: the largest figures, since some services count as they go."""
    told = [usage for chunk in chunks if (usage := getattr(chunk, "usage", None)) is not None]
    if not any(usage.prompt_tokens or usage.completion_tokens for usage in told):
        return None
    return Usage(
        max(usage.prompt_tokens or 0 for usage in told),
        max(usage.completion_tokens or 0 for usage in told),
        max(_cached(usage) for usage in told),
    )


def _cached(usage: Any) -> int:
    """Return the number of cached prompt tokens, which services report in different fields."""
    details = getattr(usage, "prompt_tokens_details", None)
    said = (
        getattr(details, "cached_tokens", None),
        getattr(usage, "cache_read_input_tokens", None),
    )
    return max((count for count in said if isinstance(count, int)), default=0)


def _explain(service: errors.Service, client: GuardedClient, error: Exception) -> ProviderError:
    """Return the error for a failure, based on the most reliable evidence available."""
    exchange = client.exchange
    if exchange.status is not None and exchange.status >= 300:
        return errors.from_status(service, exchange.status, exchange.headers, exchange.error_body)
    if exchange.failure is not None:
        failure = errors.from_exception(service, exchange.failure)
        return (
            errors.hung_up(service)
            if failure.code == "API_STREAM_CUT" and exchange.status is None
            else failure
        )
    if exchange.status is not None and not isinstance(error, TimeoutError):
        return errors.from_error_event(service, error)
    return errors.from_exception(service, error)


def _open_client(endpoint: Endpoint, timeout: float) -> GuardedClient:
    from obsidian_agent.providers.http_guard import GuardedClient

    return GuardedClient(origin=endpoint.base_url, timeout=timeout, direct=endpoint.direct)


def _load() -> Any:
    """Return litellm, silent and offline. The first call takes seconds."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", "True")
    import litellm as module

    litellm: Any = module
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    _send_bodies_as_they_are()
    _leave_thinking_in_content()
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = False
        logger.setLevel(logging.CRITICAL + 1)
    return litellm


def warm_up() -> None:
    """Import what the first request needs, which takes seconds. Blocks; later calls do nothing."""
    _load()
    from obsidian_agent.providers import http_guard

    http_guard.prepare()


def _send_bodies_as_they_are() -> None:
    """Keep OpenAI's client from walking through every message of a request to rename keys that are named right already.

    That takes 100 ms for a conversation of 500 messages, before anything is sent. Values that were not given are left out here too.
    """
    from openai._utils import is_given
    from openai.resources.chat.completions import completions

    async def given(body: Any, expected_type: object) -> Any:
        return (
            {name: value for name, value in body.items() if is_given(value)}
            if isinstance(body, dict)
            else body
        )

    if hasattr(completions, "async_maybe_transform"):
        completions.async_maybe_transform = given


def _leave_thinking_in_content() -> None:
    """Keep litellm's reader of Ollama streams from removing `<think>` tags by the chunk: with an end tag in two chunks the answer is lost.

    `thinking.py` reads the tags of every service.
    """
    from litellm.llms.ollama.chat.transformation import OllamaChatCompletionResponseIterator

    parse = OllamaChatCompletionResponseIterator.chunk_parser
    if getattr(parse, "leaves_thinking", False):
        return

    def chunk_parser(self: Any, chunk: dict[str, Any]) -> Any:
        message = chunk.get("message")
        if not isinstance(message, dict):
            return parse(self, chunk)
        parsed = parse(self, {**chunk, "message": {**message, "content": ""}})
        parsed.choices[0].delta.content = message.get("content")
        return parsed

    chunk_parser.leaves_thinking = True  # type: ignore[attr-defined]
    OllamaChatCompletionResponseIterator.chunk_parser = chunk_parser


def _know_model(litellm: Any, endpoint: Endpoint) -> None:
    """Set what litellm believes about a model where it would leave the way we chose.

    It asks an Ollama server (its default one) for the details of models that it has no price for, and takes another protocol, through
    packages that are not here, for models that OpenAI itself offers no chat for, although other services do.
    """
    if endpoint.dialect == "openai":
        for name in (endpoint.model, f"openai/{endpoint.model}", endpoint.model.rpartition("/")[2]):
            if litellm.model_cost.get(name, {}).get("mode") == "responses":
                litellm.model_cost[name] = {**litellm.model_cost[name], "mode": "chat"}
    elif endpoint.dialect == "ollama_chat":
        free = {
            "litellm_provider": "ollama_chat",
            "mode": "chat",
            "input_cost_per_token": 0.0,
            "output_cost_per_token": 0.0,
        }
        litellm.model_cost.setdefault(f"{endpoint.dialect}/{endpoint.model}", free)


def _library_client(endpoint: Endpoint, client: GuardedClient, api_key: str) -> Any:
    """Return the client object that litellm expects for a dialect, based on ours."""
    if endpoint.dialect == "openai":
        from openai import AsyncOpenAI

        return AsyncOpenAI(
            api_key=api_key, base_url=endpoint.base_url, http_client=client, max_retries=0
        )
    from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

    ours = type(
        "GuardedHandler",
        (AsyncHTTPHandler,),
        {"create_client": lambda self, *arguments, **options: client},
    )
    return ours(timeout=client.timeout)
