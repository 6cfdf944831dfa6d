"""Models through litellm, which only this module imports, when a model is first called.

litellm knows the dialects of the services; everything else that it does is switched off. Both
environment variables must be set before its import, or it fetches lists from the network. Without
`suppress_debug_info` it prints to the screen, and its log handlers are removed for the same reason.
Its retries, and those of the client below it, are silent and take many seconds. Without
`_skip_mcp_handler`, tools make it import packages that are not installed. All its requests go
through `http_guard.GuardedClient`.

A stream that ends without a finish reason counts as interrupted: litellm reports "stop" then, but
also stores what the service reported.

Tools and calls have the shape of OpenAI chat completions, which litellm accepts and returns for
every service.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
from collections.abc import AsyncGenerator, Iterable
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field
from pydantic import SecretStr

from obsidian_agent.errors import ProviderError
from obsidian_agent.providers import errors
from obsidian_agent.providers.base import (
    SILENCE,
    ChatDelta,
    ChatMessage,
    ChatRequest,
    Finished,
    TextChunk,
    ToolCall,
    ToolCallChunk,
    ToolOffer,
    Usage,
    in_own_loop,
)

if TYPE_CHECKING:
    from obsidian_agent.providers.http_guard import GuardedClient


Dialect = Literal["openai", "anthropic", "ollama_chat"]

MAX_TEXT = 8 * 1024 * 1024
"""Characters of one answer, including thinking."""
_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")


def wire_tool(offer: ToolOffer) -> dict[str, Any]:
    function = {
        "name": offer.name,
        "description": offer.description,
        "parameters": dict(offer.parameters),
    }
    return {"type": "function", "function": function}


def wire_call(call: ToolCall) -> dict[str, Any]:
    """Return a call of an earlier assistant message.

    Arguments that are not a JSON object are replaced with an empty one, because some services
    refuse them. The result of the call already describes the mistake to the model.
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


class _PartialCall(Struct):
    """The received pieces of one call."""

    number: int
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """True if the arguments are a complete document, so that no further piece follows."""
        try:
            json.loads("".join(self.arguments))
        except (ValueError, RecursionError):
            return False
        return True


class CallReading(Struct):
    """Separates the calls of one answer.

    Services number calls properly, number all of them 0, or omit the number; some send no ids.
    """

    _by_index: dict[int, _PartialCall] = field(default_factory=dict)
    _last: _PartialCall | None = None
    _count: int = 0

    def read(self, pieces: Iterable[Any]) -> list[ToolCallChunk]:
        """Return the pieces of calls in one chunk of a stream."""
        return [chunk for piece in pieces if (chunk := self._read_piece(piece)) is not None]

    def _read_piece(self, piece: Any) -> ToolCallChunk | None:
        function = getattr(piece, "function", None)
        name = _text(getattr(function, "name", None))
        arguments = _text(getattr(function, "arguments", None))
        identity, index = _text(getattr(piece, "id", None)), getattr(piece, "index", None)
        if not (name or arguments or identity):
            return None
        call = self._by_index.get(index) if isinstance(index, int) else self._last
        if call is None or _starts_call(call, identity, name, arguments):
            call = _PartialCall(self._count)
            self._count += 1
        if isinstance(index, int):
            self._by_index[index] = call
        self._last = call
        call.id, call.name = call.id or identity, call.name or name
        call.arguments.append(arguments)
        return ToolCallChunk(call.number, arguments, identity, name)


def _starts_call(call: _PartialCall, identity: str, name: str, arguments: str) -> bool:
    """Return True if a piece starts a new call instead of continuing `call`."""
    if not name or not call.name:
        return False
    if identity and call.id:
        return identity != call.id
    return bool(arguments) and call.complete


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


class Endpoint(Struct, frozen=True, kw_only=True):
    """One model at one address.

    `json_mode` allows requests for a JSON object, also for one with a schema. `direct` ignores the
    proxies of the environment.
    """

    dialect: Dialect
    model: str
    base_url: str
    service: errors.Service
    needs_key: bool = True
    json_mode: bool = False
    direct: bool = False
    extra: tuple[tuple[str, Any], ...] = ()


class LiteLLMProvider(Struct, kw_only=True):
    """A `Provider` over litellm. The key is in no repr and no message.

    Without `streaming` an answer is requested in one piece.
    """

    name: str
    endpoint: Endpoint
    api_key: SecretStr | None = None
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
        """Stream one completion. Closing the iterator closes the connection.

        A request is repeated once without the optional parameters that the service refused.
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
        """Yield the deltas of one request, then its failure.

        A raised failure would refer to the exceptions of the library, which hold headers.
        """
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
            for delta in reading.read(response):
                yield delta
            yield reading.end(
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
                for delta in reading.read(chunk):
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
            # litellm passes it to Ollama as `format`. A schema that small needs no thinking, which
            # can take a minute.
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
    """Return the seconds to wait for a piece of the answer. Keep-alive messages do not count."""
    return SILENCE if request.timeout is None else request.timeout


def _wire_message(message: ChatMessage, dialect: Dialect) -> dict[str, Any]:
    """Return a message in the shape of litellm.

    Anthropic caches a system prompt, at a fraction of its price, only if it is marked.
    """
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


class _Reading(Struct):
    """The received part of one answer."""

    service: errors.Service
    length: int = 0
    calls: CallReading = field(default_factory=CallReading)

    def read(self, chunk: Any) -> list[TextChunk | ToolCallChunk]:
        """Return the text and the pieces of calls in a chunk or a complete answer."""
        pieces: list[TextChunk | ToolCallChunk] = []
        for choice in chunk.choices[:1]:
            delta = choice.delta if hasattr(choice, "delta") else choice.message
            thinking = getattr(delta, "reasoning_content", None) or getattr(
                delta, "reasoning", None
            )
            for text, is_thinking in ((thinking, True), (delta.content, False)):
                if isinstance(text, str) and text:
                    self.length += len(text)
                    pieces.append(TextChunk(text, thinking=is_thinking))
            for piece in self.calls.read(getattr(delta, "tool_calls", None) or ()):
                self.length += len(piece.name) + len(piece.arguments)
                pieces.append(piece)
        if self.length > MAX_TEXT:
            raise errors.too_large(self.service)
        return pieces

    def finish(self, response: Any) -> Finished:
        """Return the end of a stream, by the reason and the usage that the service reported."""
        return self.end(
            response.received_finish_reason or response.intermittent_finish_reason, response.chunks
        )

    def end(self, service_reason: str | None, chunks: list[Any]) -> Finished:
        """Return the end of an answer. Raise `ProviderError` if the answer is incomplete."""
        if service_reason is None:
            raise (
                errors.stream_cut(self.service)
                if self.length
                else errors.stream_empty(self.service)
            )
        if service_reason in ("content_filter", "safety", "refusal"):
            raise errors.content_blocked(self.service)
        is_cut = service_reason in ("length", "max_tokens")
        return Finished("length" if is_cut else "stop", _usage(chunks))


def _usage(chunks: list[Any]) -> Usage | None:
    """Return the number of tokens by the service's own count.

    These are the largest figures, because some services report intermediate ones.
    """
    usages = [usage for chunk in chunks if (usage := getattr(chunk, "usage", None)) is not None]
    if not any(usage.prompt_tokens or usage.completion_tokens for usage in usages):
        return None
    return Usage(
        max(usage.prompt_tokens or 0 for usage in usages),
        max(usage.completion_tokens or 0 for usage in usages),
        max(_cached(usage) for usage in usages),
    )


def _cached(usage: Any) -> int:
    """Return the number of cached prompt tokens, which services report in different fields."""
    details = getattr(usage, "prompt_tokens_details", None)
    counts = (
        getattr(details, "cached_tokens", None),
        getattr(usage, "cache_read_input_tokens", None),
    )
    return max((count for count in counts if isinstance(count, int)), default=0)


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
    _skip_renaming_of_keys()
    _keep_thinking_in_content()
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


def _skip_renaming_of_keys() -> None:
    """Stop OpenAI's client from renaming the keys of every message, which have their names already.

    It takes 100 ms for a conversation of 500 messages. The replacement only omits unset values.
    """
    from openai._utils import is_given
    from openai.resources.chat.completions import completions

    async def without_unset(body: Any, expected_type: object) -> Any:
        return (
            {name: value for name, value in body.items() if is_given(value)}
            if isinstance(body, dict)
            else body
        )

    if hasattr(completions, "async_maybe_transform"):
        completions.async_maybe_transform = without_unset


def _keep_thinking_in_content() -> None:
    """Stop litellm from removing `<think>` tags from the chunks of an Ollama stream.

    It loses the answer when an end tag is split over two chunks. `thinking.py` reads the tags of
    every service.
    """
    from litellm.llms.ollama.chat.transformation import OllamaChatCompletionResponseIterator

    parse = OllamaChatCompletionResponseIterator.chunk_parser
    if getattr(parse, "keeps_thinking", False):
        return

    def chunk_parser(self: Any, chunk: dict[str, Any]) -> Any:
        message = chunk.get("message")
        if not isinstance(message, dict):
            return parse(self, chunk)
        parsed = parse(self, {**chunk, "message": {**message, "content": ""}})
        parsed.choices[0].delta.content = message.get("content")
        return parsed

    chunk_parser.keeps_thinking = True  # type: ignore[attr-defined]
    OllamaChatCompletionResponseIterator.chunk_parser = chunk_parser


def _know_model(litellm: Any, endpoint: Endpoint) -> None:
    """Correct the entries of a model in litellm's table that would change the protocol.

    litellm requests the details of an Ollama model without a price, from the default server. It
    uses another protocol, with packages that are not installed, for models that OpenAI offers
    without chat, although other services offer them with it.
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
    """Return the client object that litellm expects for a dialect, on top of `client`."""
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
