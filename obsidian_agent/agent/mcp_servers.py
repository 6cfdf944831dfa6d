"""The user's MCP servers: what they offer, and their connections.

All texts of a server are untrusted.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from msgspec import Struct, field

from obsidian_agent.agent.events import Emit, ShareDecided, ShareRequested
from obsidian_agent.agent.privacy.consent import REFUSED, ApproveShare, ShareRequest
from obsidian_agent.agent.privacy.record import AuditRecord
from obsidian_agent.config.settings import McpServer
from obsidian_agent.errors import ConfigError, Problem, ServerError

RETRY_SECONDS: Final = 60.0
"""Seconds before a server that failed is tried again, so that turns don't wait for it."""

Value = TypeVar("Value")


class ToolAnswer(Struct, frozen=True):
    """The answer of a server as text. If it `failed`, the text is its error."""

    text: str
    failed: bool = False


class ServerTool(Struct, frozen=True):
    """A tool as its server describes it."""

    name: str
    description: str
    schema: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The whole description that a model would get, formatted for the user."""
        schema = json.dumps(self.schema, indent=2, sort_keys=True, ensure_ascii=False)
        return f"{self.name}\n{self.description}\n{schema}"

    @property
    def sha256(self) -> str:
        """The hash of `text`."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()


class ServerResource(Struct, frozen=True):
    """A text that a server offers: its address there, and its title."""

    uri: str
    title: str


class PromptArgument(Struct, frozen=True):
    """An argument of a prompt."""

    name: str
    required: bool


class ServerPrompt(Struct, frozen=True):
    """A prompt that a server offers. `title` is its title or description, "" without any."""

    name: str
    title: str
    arguments: tuple[PromptArgument, ...]


class ServerOffers(Struct, frozen=True):
    """The resources and prompts of a server."""

    resources: tuple[ServerResource, ...] = ()
    prompts: tuple[ServerPrompt, ...] = ()


class McpConnection(Protocol):
    """A connection to one MCP server, opened on the first request."""

    server: McpServer

    async def tools(self) -> tuple[ServerTool, ...]:
        """Return the server's tools. Raise `ServerError` if it cannot be reached."""
        ...

    async def call(self, tool: str, args: Mapping[str, Any]) -> ToolAnswer:
        """Call a tool. Raise `ServerError` if the server fails; a tool's own error is a result."""
        ...

    async def offers(self) -> ServerOffers:
        """Return the server's resources and prompts. Raise `ServerError`."""
        ...

    async def read(self, uri: str) -> ToolAnswer:
        """Read a resource. Raise `ServerError` if the server fails."""
        ...

    async def prompt(self, name: str, args: Mapping[str, str]) -> ToolAnswer:
        """Return a prompt with its arguments. Raise `ServerError` if the server fails."""
        ...

    async def close(self) -> None:
        """End the server's process or session."""
        ...


Connect = Callable[[str, McpServer, Path], McpConnection]
"""Make a connection from the server's name, its settings and the path of its log. May block."""


class McpServers(Struct, kw_only=True):
    """The servers of the settings while the program runs, connected when they are needed.

    `logs` is the folder of their logs.
    """

    configured: Callable[[], Mapping[str, McpServer]]
    logs: Path
    connect: Connect
    _connections: dict[str, McpConnection] = field(default_factory=dict)
    _down: dict[str, tuple[float, Problem]] = field(default_factory=dict)

    async def close_outdated(self) -> None:
        """Close the connections to servers whose settings have changed."""
        servers = self.configured()
        outdated = [
            name
            for name, connection in self._connections.items()
            if servers.get(name) != connection.server
        ]
        for name in outdated:
            await self._connections.pop(name).close()
            self._down.pop(name, None)

    def address(self, name: str) -> str:
        """Return the address or the command of a server."""
        server = self.configured()[name]
        return server.url or " ".join([server.command, *server.args])

    async def connection(self, name: str) -> McpConnection:
        """Return the connection to a server."""
        if name not in self._connections:
            log = self.logs / f"mcp-{name}.log"
            server = self.configured()[name]
            # In a thread: the first connection imports the client, which takes half a second.
            connection = await asyncio.to_thread(self.connect, name, server, log)
            self._connections.setdefault(name, connection)
        return self._connections[name]

    async def listed(
        self, name: str, work: Callable[[McpConnection], Awaitable[Value]]
    ) -> Value | Problem:
        """Return a list of a server, or why there is none. After a failure it has a pause."""
        retry_at, problem = self._down.get(name, (0.0, None))
        if problem is not None and time.monotonic() < retry_at:
            return problem
        try:
            return await work(await self.connection(name))
        except ServerError as error:
            problem = error.problem()
            self._down[name] = (time.monotonic() + RETRY_SECONDS, problem)
            return problem
        except ImportError:
            return Problem(
                "NOT_INSTALLED", "MCP servers need the package mcp: install obsidian-agent[mcp]."
            )


def full_name(server: str, name: str) -> str:
    """Return the name by which rules know a tool, or the address of a resource, of a server."""
    return f"mcp__{server}__{name}"


async def decide(request: ShareRequest, approve: ApproveShare, emit: Emit) -> str:
    """Return the scope of the user's permission; "" if refused or if the question fails."""
    await emit(ShareRequested(request))
    try:
        decision = await approve(request)
    except Exception:
        decision = REFUSED
    await emit(ShareDecided(request, decision))
    return "" if decision.scope == "no" else decision.scope


async def record_use(
    record: AuditRecord, text: str, allowed_by: str, names: Mapping[str, str]
) -> None:
    """Write the entry of a call, before it is made, or of a resource, before its text is sent.

    Raise `ConfigError`.
    """
    entry = {
        "kind": "call",
        **names,
        "allowedBy": allowed_by,
        "characters": len(text),
        "sha256": hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
    }
    try:
        await asyncio.to_thread(record.append, [entry])
    except OSError as error:
        raise ConfigError(
            f"The server was not used, because that cannot be recorded: {error.strerror}.",
            code="LEDGER_ERROR",
        ) from error
