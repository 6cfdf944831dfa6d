"""Connections to the MCP servers in the settings.

A server is a process or an address, with one task that owns its connection and one log file. Its
messages are untrusted: their size is limited, and nothing in them is executed. Its environment has
only the variables that every program needs and those in its settings. It is asked for its tools,
resources and prompts, and cannot send requests itself. A server that is silent for too long, exits
or sends too much is killed with all its child processes, and restarted when it is needed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio
import httpx2
from mcp import Client, MCPError
from mcp.client.stdio import get_default_environment
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    EmbeddedResource,
    Implementation,
    ResourceLink,
    TextContent,
    TextResourceContents,
    jsonrpc_message_adapter,
)
from msgspec import Struct

from obsidian_agent import __version__
from obsidian_agent.agent.mcp_servers import (
    PromptArgument,
    ServerOffers,
    ServerPrompt,
    ServerResource,
    ServerTool,
    ToolAnswer,
)
from obsidian_agent.child_process import ProcessLog, end_group, runnable
from obsidian_agent.config.settings import McpServer
from obsidian_agent.errors import ServerError
from obsidian_agent.providers.errors import redact

START_SECONDS: Final = 30.0
"""Seconds until the first answer: some servers are downloaded before they run."""
MAX_BYTES: Final = 8 << 20
"""Bytes of a message."""
MAX_TOTAL_BYTES: Final = 256 << 20
"""Bytes of all messages of a connection, which is then restarted."""
MAX_TOOLS: Final = 100
"""Tools of a server."""
MAX_OFFERS: Final = 1_000
"""Resources, and prompts, of a server."""
MAX_PAGES: Final = 20
"""Pages of a list of a server."""
END_SECONDS: Final = 1.0
"""Seconds that a server may take to exit after its input is closed, and again after SIGTERM."""

Value = TypeVar("Value")
Streams = tuple[Any, Any]


class Connection:
    """A server, connected on its first request. For one event loop at a time."""

    def __init__(self, name: str, server: McpServer, log: Path) -> None:
        self.name = name
        self.server = server
        self._log = ProcessLog(log)
        self._owner: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._requests: asyncio.Queue[_Request] = asyncio.Queue()

    async def tools(self) -> tuple[ServerTool, ...]:
        """Return the tools that the server offers now. Raise `ServerError`."""

        async def list_tools(client: Client) -> tuple[ServerTool, ...]:
            tools = await _all_pages(client.list_tools, lambda page: page.tools, MAX_TOOLS)
            return tuple(
                ServerTool(tool.name, tool.description or "", tool.input_schema) for tool in tools
            )

        return await self._request(list_tools, START_SECONDS)

    async def offers(self) -> ServerOffers:
        """Return the resources and prompts that the server offers now. Raise `ServerError`."""

        async def list_offers(client: Client) -> ServerOffers:
            resources, prompts = [], []
            if client.server_capabilities.resources is not None:
                resources = await _all_pages(
                    client.list_resources, lambda page: page.resources, MAX_OFFERS
                )
            if client.server_capabilities.prompts is not None:
                prompts = await _all_pages(
                    client.list_prompts, lambda page: page.prompts, MAX_OFFERS
                )
            return ServerOffers(
                tuple(
                    ServerResource(resource.uri, resource.title or resource.name)
                    for resource in resources
                ),
                tuple(
                    ServerPrompt(
                        prompt.name,
                        prompt.title or prompt.description or "",
                        tuple(
                            PromptArgument(argument.name, argument.required or False)
                            for argument in prompt.arguments or ()
                        ),
                    )
                    for prompt in prompts
                ),
            )

        return await self._request(list_offers, START_SECONDS)

    async def read(self, uri: str) -> ToolAnswer:
        """Read a resource. Cancellation cancels the request. Raise `ServerError`."""

        async def read_resource(client: Client) -> ToolAnswer:
            result = await client.read_resource(uri, cache_mode="bypass")
            texts = [
                part.text if isinstance(part, TextResourceContents) else "[binary, omitted]"
                for part in result.contents
            ]
            return ToolAnswer("\n".join(texts))

        return await self._request(
            lambda client: _answered(read_resource(client)), self.server.timeout
        )

    async def prompt(self, name: str, args: Mapping[str, str]) -> ToolAnswer:
        """Return the messages of a prompt as text. Raise `ServerError`."""

        async def get_prompt(client: Client) -> ToolAnswer:
            result = await client.get_prompt(name, dict(args))
            texts = [_text_of(message.content) for message in result.messages]
            return ToolAnswer("\n\n".join(texts))

        return await self._request(
            lambda client: _answered(get_prompt(client)), self.server.timeout
        )

    async def call(self, tool: str, args: Mapping[str, Any]) -> ToolAnswer:
        """Call a tool and return its answer. Cancellation cancels the call.

        Raise `ServerError`.
        """

        async def call_tool(client: Client) -> ToolAnswer:
            result = await client.call_tool(tool, dict(args))
            parts = [_text_of(part) for part in result.content]
            if not parts and result.structured_content is not None:
                parts = [json.dumps(result.structured_content, ensure_ascii=False)]
            return ToolAnswer("\n".join(parts), result.is_error)

        return await self._request(lambda client: _answered(call_tool(client)), self.server.timeout)

    async def close(self) -> None:
        """Kill the server and its child processes."""
        if self._owner is not None and self._loop is asyncio.get_running_loop():
            self._owner.cancel()
            await asyncio.wait((self._owner,))

    async def _request(self, work: Callable[[Client], Awaitable[Value]], seconds: float) -> Value:
        loop = asyncio.get_running_loop()
        if self._owner is None or self._owner.done() or self._loop is not loop:
            self._requests = asyncio.Queue()
            self._loop, self._owner = loop, asyncio.ensure_future(self._own(self._requests))
        answer: asyncio.Future[Value] = loop.create_future()
        self._requests.put_nowait(_Request(work, seconds, answer))
        return await answer

    async def _own(self, requests: asyncio.Queue[_Request]) -> None:
        """Connect, answer the requests one after the other, and disconnect."""
        reason = "was stopped"
        unanswered: list[_Request] = []
        try:
            transport = (
                _connect_process(self.server, self._log)
                if self.server.command
                else _connect_http(self.server)
            )
            about = Implementation(name="obsidian-agent", version=__version__)
            async with contextlib.AsyncExitStack() as stack:
                async with asyncio.timeout(START_SECONDS):
                    client = await stack.enter_async_context(
                        Client(
                            _repaired(transport, self._log),
                            client_info=about,
                            cache=None,
                            input_required_max_rounds=1,
                        )
                    )
                self._log.begin(f"connected, protocol {client.protocol_version}\n")
                while True:
                    unanswered = [await requests.get()]
                    await unanswered[0].answer_by(client)
        except asyncio.CancelledError:
            raise
        except (Exception, BaseExceptionGroup) as error:
            reason = redact(_describe(error))
            self._log.write(f"failed: {reason}\n")
        finally:
            failure = ServerError(
                f"The MCP server {self.name} {reason}.", hint=f"Its log is {self._log.file}."
            )
            while not requests.empty():
                unanswered.append(requests.get_nowait())
            for request in unanswered:
                if not request.answer.done():
                    request.answer.set_exception(failure)


class _Request(Struct, frozen=True):
    """A request to a server, with the seconds that it may take and the future of its answer."""

    work: Callable[[Client], Awaitable[Any]]
    seconds: float
    answer: asyncio.Future[Any]

    async def answer_by(self, client: Client) -> None:
        """Answer the request, unless it was cancelled. Raise if the connection is broken."""
        if self.answer.done():
            return
        task = asyncio.ensure_future(self.work(client))
        self.answer.add_done_callback(lambda done: task.cancel())
        try:
            await asyncio.wait((task,), timeout=self.seconds)
            if not task.done():
                raise TimeoutError
        finally:
            task.cancel()
        if not task.cancelled() and not self.answer.done():
            self.answer.set_result(task.result())


async def _answered(work: Awaitable[ToolAnswer]) -> ToolAnswer:
    """Return an answer, also for an error with which the server answers."""
    try:
        return await work
    except MCPError as error:
        if error.code == CONNECTION_CLOSED:
            raise
        return ToolAnswer(error.message, failed=True)


async def _all_pages(
    list_page: Callable[..., Awaitable[Any]], items: Callable[[Any], Iterable[Any]], limit: int
) -> list[Any]:
    """Return the first `limit` items of a list with pages."""
    listed: list[Any] = []
    cursor = None
    for _ in range(MAX_PAGES):
        page = await list_page(cursor=cursor, cache_mode="bypass")
        listed += items(page)
        cursor = page.next_cursor
        if cursor is None or len(listed) > limit:
            break
    return listed[:limit]


def _describe(error: BaseException) -> str:
    """Return the reason of an error, or of the first one in a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    match error:
        case TimeoutError():
            return "did not answer in time and was stopped"
        case OSError(strerror=str(reason)):
            return f"cannot be reached ({reason})"
        case httpx2.TransportError():
            return f"cannot be reached ({str(error)[:200]})"
        case MCPError() if error.code == CONNECTION_CLOSED:
            return "exited or closed the connection"
        case _:
            return f"failed ({type(error).__name__}: {str(error)[:200]})".replace("\n", " ")


def _text_of(part: Any) -> str:
    match part:
        case TextContent():
            return part.text
        case EmbeddedResource(resource=TextResourceContents() as resource):
            return f"{resource.uri}\n{resource.text}"
        case ResourceLink():
            return f"{part.name}: {part.uri}"
        case _:
            return f"[{part.type}, omitted]"


@contextlib.asynccontextmanager
async def _repaired(
    transport: AbstractAsyncContextManager[Streams], log: ProcessLog
) -> AsyncIterator[Streams]:
    """Repair the lists of a server, since the SDK refuses a list with one bad entry."""
    async with transport as (read, write):
        forward, repaired = anyio.create_memory_object_stream[SessionMessage | Exception](0)

        async def pass_on() -> None:
            async with forward:
                async for message in read:
                    if isinstance(message, SessionMessage):
                        _repair(message, log)
                    await forward.send(message)

        task = asyncio.ensure_future(pass_on())
        try:
            yield repaired, write
        finally:
            task.cancel()
            forward.close()
            repaired.close()


def _repair(message: SessionMessage, log: ProcessLog) -> None:
    """Reduce the entries of a list to what this program uses of them; drop unusable ones."""
    result = getattr(message.message, "result", None)
    if not isinstance(result, dict):
        return
    for kind, repaired in _ENTRIES.items():
        if isinstance(result.get(kind), list):
            entries = [entry for item in result[kind] if (entry := repaired(item)) is not None]
            if len(entries) < len(result[kind]):
                log.write(f"{len(result[kind]) - len(entries)} unusable {kind} were ignored\n")
            result[kind] = entries


def _tool(entry: object) -> dict[str, Any] | None:
    """Return a tool's name, description and schema; None without a name.

    A tool whose schema is missing, or describes no object, accepts any.
    """
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or not entry["name"]:
        return None
    schemas = (entry.get(key) for key in ("inputSchema", "input_schema", "parameters"))
    schema = next((schema for schema in schemas if isinstance(schema, dict)), {})
    if schema.get("type", "object") != "object":
        schema = {}
    tool = {"name": entry["name"], "inputSchema": {**schema, "type": "object"}}
    if isinstance(entry.get("description"), str):
        tool["description"] = entry["description"]
    return tool


def _resource(entry: object) -> dict[str, Any] | None:
    if not isinstance(entry, dict) or not isinstance(entry.get("uri"), str) or not entry["uri"]:
        return None
    return {"name": entry["uri"]} | _texts(entry, "uri", "name", "title")


def _prompt(entry: object) -> dict[str, Any] | None:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or not entry["name"]:
        return None
    listed = entry.get("arguments")
    arguments = [
        {"name": argument["name"], "required": argument.get("required") is True}
        for argument in (listed if isinstance(listed, list) else ())
        if isinstance(argument, dict) and isinstance(argument.get("name"), str)
    ]
    return _texts(entry, "name", "title", "description") | {"arguments": arguments}


def _texts(entry: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: entry[name] for name in names if isinstance(entry.get(name), str)}


_ENTRIES: Final[Mapping[str, Callable[[object], dict[str, Any] | None]]] = {
    "tools": _tool,
    "resources": _resource,
    "prompts": _prompt,
}
"""The used parts of the entries of a server's lists."""


# --- transports ------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def _connect_process(server: McpServer, log: ProcessLog) -> AsyncIterator[Streams]:
    """Run a server as a process in a group of its own, with JSON lines on its standard streams.

    Its standard error goes to the log.
    """
    process = await asyncio.create_subprocess_exec(
        *runnable((server.command, *server.args)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=get_default_environment() | _expanded(server.env),
        cwd=server.cwd,
        start_new_session=True,
        limit=MAX_BYTES,
    )
    incoming, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    tasks = [
        asyncio.ensure_future(work)
        for work in (
            _receive(process, incoming, log),
            _send(process, outgoing),
            _errors(process, log),
        )
    ]
    try:
        yield read, write
    finally:
        for task in tasks:
            task.cancel()
        await _end(process)
        for stream in (incoming, read, write, outgoing):
            stream.close()


def _expanded(values: Mapping[str, str]) -> dict[str, str]:
    """Replace `$NAME` by environment variables, so that the settings need not contain keys."""
    return {name: os.path.expandvars(value) for name, value in values.items()}


async def _receive(process: asyncio.subprocess.Process, incoming: Any, log: ProcessLog) -> None:
    assert process.stdout is not None
    remaining = MAX_TOTAL_BYTES
    async with incoming:
        while remaining > 0:
            try:
                line = await process.stdout.readline()
            except ValueError:
                log.write(f"a message of more than {MAX_BYTES:,} bytes: stopped\n")
                return
            if not line:
                return
            remaining -= len(line)
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:
                log.write("a line that is not a message was ignored\n")
                continue
            await incoming.send(SessionMessage(message))


async def _send(process: asyncio.subprocess.Process, outgoing: Any) -> None:
    assert process.stdin is not None
    async with outgoing:
        async for item in outgoing:
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(text.encode() + b"\n")
            with contextlib.suppress(ConnectionError):
                await process.stdin.drain()


async def _errors(process: asyncio.subprocess.Process, log: ProcessLog) -> None:
    assert process.stderr is not None
    while data := await process.stderr.read(65_536):
        log.write(redact(data.decode("utf-8", "replace")))


async def _end(process: asyncio.subprocess.Process) -> None:
    """Close the input of a process, then terminate its group, then kill it."""
    assert process.stdin is not None
    process.stdin.close()
    for force in (None, False, True):
        if force is not None:
            end_group(process.pid, force=force)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), END_SECONDS)
    # Without a reader the transport does not notice the end, and nothing public closes it.
    process._transport.close()  # type: ignore[attr-defined]


@contextlib.asynccontextmanager
async def _connect_http(server: McpServer) -> AsyncIterator[Streams]:
    """Connect to a server at an address by streamable HTTP."""
    timeout = httpx2.Timeout(server.timeout, connect=10.0)
    async with (
        httpx2.AsyncClient(
            headers=_expanded(server.headers), timeout=timeout, transport=_Limited()
        ) as http,
        streamable_http_client(
            server.url or "", http_client=http, max_sse_event_size=MAX_BYTES
        ) as streams,
    ):
        yield streams[0], streams[1]


class _Limited(httpx2.AsyncHTTPTransport):
    """A transport that raises for large bodies, except for event streams."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        if "text/event-stream" not in response.headers.get("content-type", ""):
            response.stream = _LimitedBody(response.stream)
        return response


class _LimitedBody(httpx2.AsyncByteStream):
    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total = 0
        async for chunk in self._inner:
            total += len(chunk)
            if total > MAX_BYTES:
                raise httpx2.ReadError(f"an answer of more than {MAX_BYTES:,} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()
