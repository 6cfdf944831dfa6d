"""The tools of the person's MCP servers, for the model's looking around: which are offered, what the person is asked, what a call comes to.

A tool is offered once the person has read all that a model would be told of it, and as long as its server tells the same: another name,
description or schema is asked about anew, with the difference. Before a call its arguments are shown, unless a rule (`tools_allow`) or an
answer in the conversation covers the tool; a line of the record is written before anything goes out. Plans never hold such a tool.
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import hashlib
import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

from obsidian_agent.agent.events import Emit, Notice, ShareDecided, ShareRequested
from obsidian_agent.agent.privacy.consent import REFUSED, ApproveShare, Grants, ShareRequest
from obsidian_agent.agent.privacy.record import AuditRecord, Kind
from obsidian_agent.agent.privacy.untrusted_text import neutral
from obsidian_agent.config.settings import McpServer
from obsidian_agent.dataclass import dataclass, field, replace
from obsidian_agent.errors import ConfigError, Problem, ServerError
from obsidian_agent.plan.policy import Policy
from obsidian_agent.providers.base import ToolOffer
from obsidian_agent.state_files import replace_file

LONGEST_TEXT: Final = 2000
"""Characters of a description."""
LARGEST_SCHEMA: Final = 16_000
"""Characters of the JSON of a schema; a tool with a larger one is not offered."""
MOST_ARGUMENTS: Final = 100_000
"""Characters of the JSON of one call's arguments."""
AGAIN_SECONDS: Final = 60.0
"""So long a server that failed is left alone: a turn must not wait for it each time."""
_WIRE: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Answered:
    """What a tool answered, as text; `failed`: it says that it could not do it."""

    text: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool as its server describes it."""

    name: str
    description: str
    schema: Mapping[str, Any]

    @property
    def text(self) -> str:
        """All that a model would be told of it, in lines for people."""
        return f"{self.name}\n{self.description}\n{json.dumps(self.schema, indent=2, sort_keys=True, ensure_ascii=False)}"

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()


class McpConnection(Protocol):
    """A connection to one MCP server, opened on the first request."""

    server: McpServer

    async def tools(self) -> tuple[ServerTool, ...]:
        """Return the server's tools. Raise `ServerError` if it cannot be reached."""
        ...

    async def call(self, tool: str, args: Mapping[str, Any]) -> Answered:
        """Call a tool. Raise `ServerError` if the server fails; a tool's own error is a result."""
        ...

    async def close(self) -> None:
        """End the server's process or session."""
        ...


Connect = Callable[[str, McpServer, Path], McpConnection]
"""Make a connection from the server's name, its settings and the path of its log. May block."""


@dataclass(frozen=True, slots=True)
class Offered:
    """A tool that a model may call as `offer.name`."""

    server: str
    tool: str
    offer: ToolOffer


@dataclass(slots=True)
class McpTools:
    """The servers of the settings, for as long as the program runs. `policy` says what the rules say now, `pins` is the file with the tools that
    the person has accepted.
    """

    configured: Callable[[], Mapping[str, McpServer]]
    policy: Callable[[], Policy]
    pins: Path
    logs: Path
    record: AuditRecord
    connect: Connect
    known: dict[str, Offered] = field(default_factory=dict)
    """What was on offer last."""
    _connections: dict[str, McpConnection] = field(default_factory=dict)
    _refused: set[str] = field(default_factory=set)
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Turns of several conversations ask one after the other, and about nothing twice."""
    _down: dict[str, tuple[float, Problem]] = field(default_factory=dict)

    async def offered(self, approve: ApproveShare, emit: Emit) -> dict[str, Offered]:
        """The tools on offer in a turn, by the names that models call; asks about what is new or has changed, and tells what failed."""
        async with self._asking:
            self.known = await self._offered(approve, emit)
            return self.known

    async def _offered(self, approve: ApproveShare, emit: Emit) -> dict[str, Offered]:
        servers = self.configured()
        for name in [
            name for name, each in self._connections.items() if servers.get(name) != each.server
        ]:
            await self._connections.pop(name).close()
            self._down.pop(name, None)
        policy = await asyncio.to_thread(self.policy)
        listed = await asyncio.gather(
            *(self._listed(name, server) for name, server in servers.items())
        )
        found: dict[str, Offered] = {}
        for name, tools in zip(servers, listed, strict=True):
            if isinstance(tools, Problem):
                await emit(Notice(tools))
                continue
            permitted = [
                tool for tool in tools if policy.on_call(_wire(name, tool)).decision != "deny"
            ]
            for tool in await self._accepted(name, permitted, approve, emit):
                offer = _offer(name, tool)
                if offer is None:
                    await emit(
                        Notice(
                            Problem(
                                "MCP_TOOL_LEFT_OUT",
                                f"A tool of the MCP server {name} cannot be offered: {tool.name[:60]!r}.",
                            )
                        )
                    )
                else:
                    found[offer.name] = Offered(name, tool.name, offer)
        return found

    async def call(
        self,
        called: Offered,
        args: Mapping[str, Any],
        approve: ApproveShare,
        grants: Grants,
        emit: Emit,
        call_id: str,
    ) -> Answered | None:
        """What a tool answers; None when the person refuses the call. Raises `ServerError` and `ConfigError`."""
        text = json.dumps(args, indent=2, ensure_ascii=False)
        if len(text) > MOST_ARGUMENTS:
            raise ServerError(
                f"The arguments are longer than {MOST_ARGUMENTS:,} characters.",
                code="ARGUMENT_INVALID",
            )
        ruled = (await asyncio.to_thread(self.policy)).on_call(called.offer.name)
        if ruled.decision == "deny":
            await self._note(
                "denial",
                provider=f"mcp/{called.server}",
                denied=[{"tool": called.tool, "rule": ruled.rule}],
            )
            raise ServerError(
                f"{called.offer.name} may not be called: {ruled.rule} ({ruled.source}).",
                code="PERMISSION_DENIED",
            )
        by = (
            "rule"
            if ruled.decision == "allow"
            else "granted"
            if called.offer.name in grants.tools
            else ""
        )
        if not by:
            request = _question(
                "call", called.server, f"Call {called.tool}", text, self._place(called.server)
            )
            decision = await _decide(
                replace(request, tool=called.offer.name, call_id=call_id, args=args), approve, emit
            )
            if not decision:
                await self._note("refusal", provider=f"mcp/{called.server}", tool=called.tool)
                return None
            by = decision
            if decision == "thread":
                grants.tools.add(called.offer.name)
        entry = {"kind": "call", "server": called.server, "tool": called.tool, "allowedBy": by}
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        try:
            await asyncio.to_thread(
                self.record.append, [{**entry, "characters": len(text), "sha256": digest}]
            )
        except OSError as error:
            raise ConfigError(
                f"The call cannot be written down ({error.strerror}), so it was not made.",
                code="LEDGER_ERROR",
            ) from error
        return await (await self._connection(called.server, self.configured()[called.server])).call(
            called.tool, args
        )

    def _place(self, name: str) -> str:
        server = self.configured()[name]
        return server.url or " ".join([server.command, *server.args])

    async def _connection(self, name: str, server: McpServer) -> McpConnection:
        if name not in self._connections:
            log = self.logs / f"mcp-{name}.log"
            # In a thread, because the first connection imports the client, which takes half a second.
            connection = await asyncio.to_thread(self.connect, name, server, log)
            self._connections.setdefault(name, connection)
        return self._connections[name]

    async def _listed(self, name: str, server: McpServer) -> tuple[ServerTool, ...] | Problem:
        again, problem = self._down.get(name, (0.0, None))
        if problem is not None and time.monotonic() < again:
            return problem
        try:
            return await (await self._connection(name, server)).tools()
        except ServerError as error:
            problem = error.problem()
            self._down[name] = (time.monotonic() + AGAIN_SECONDS, problem)
            return problem
        except ImportError:
            return Problem(
                "NOT_INSTALLED", "MCP servers need the package mcp: install obsidian-agent[mcp]."
            )

    # --- what was accepted ---------------------------------------------------------------------------------------------------------

    async def _accepted(
        self, server: str, tools: Iterable[ServerTool], approve: ApproveShare, emit: Emit
    ) -> list[ServerTool]:
        """Those that are as the person has accepted them, after asking about the others."""
        pinned = await asyncio.to_thread(self._pinned)
        known = pinned.get(server, {})
        listed = {tool.name: tool for tool in tools}
        fresh = [tool for tool in listed.values() if known.get(tool.name) != tool.text]
        asked = [tool for tool in fresh if tool.sha256 not in self._refused]
        if asked:
            changed = sorted(tool.name for tool in asked if tool.name in known)
            what = f"Changed since you accepted them: {', '.join(changed)}" if changed else "New"
            text = "\n\n".join(_difference(known.get(tool.name), tool.text) for tool in asked)
            if await _decide(
                _question("tools", server, what, text, self._place(server)), approve, emit
            ):
                pinned[server] = known | {tool.name: tool.text for tool in asked}
                with contextlib.suppress(OSError):  # then it is asked again
                    await asyncio.to_thread(
                        replace_file, self.pins, json.dumps(pinned).encode("ascii")
                    )
                for tool in asked:
                    await self._note("trust", path=f"mcp/{server}/{tool.name}", sha256=tool.sha256)
                fresh = [tool for tool in fresh if tool not in asked]
            else:
                self._refused |= {tool.sha256 for tool in asked}
                await self._note(
                    "refusal", provider=f"mcp/{server}", tools=[tool.name for tool in asked]
                )
        return [tool for tool in listed.values() if tool not in fresh]

    async def _note(self, kind: Kind, **details: Any) -> None:
        await asyncio.to_thread(partial(self.record.note, kind, **details))

    def _pinned(self) -> dict[str, dict[str, str]]:
        try:
            found = json.loads(self.pins.read_bytes())
            return {
                server: {tool: str(text) for tool, text in tools.items()}
                for server, tools in found.items()
            }
        except (OSError, ValueError, AttributeError):
            return {}  # everything is asked about again


def _difference(old: str | None, new: str) -> str:
    if old is None:
        return new
    return "\n".join(
        list(
            difflib.unified_diff(
                old.split("\n"), new.split("\n"), "as accepted", "as it is now", lineterm="", n=1000
            )
        )
    )


def _question(kind: Any, server: str, purpose: str, text: str, place: str) -> ShareRequest:
    return ShareRequest("", kind, "", purpose, {}, (), f"the MCP server {server}", place, text=text)


async def _decide(request: ShareRequest, approve: ApproveShare, emit: Emit) -> str:
    """The scope of a yes; "" for a no, which is also what a question comes to that fails."""
    await emit(ShareRequested(request))
    try:
        decision = await approve(request)
    except Exception:
        decision = REFUSED
    await emit(ShareDecided(request, decision))
    return "" if decision.scope == "no" else decision.scope


def _wire(server: str, tool: ServerTool) -> str:
    """What a model calls a tool, and the rules."""
    return f"mcp__{server}__{tool.name}"


def _offer(server: str, tool: ServerTool) -> ToolOffer | None:
    """A tool as models are told of it; None when they cannot be."""
    name = _wire(server, tool)
    try:
        size = len(json.dumps(tool.schema))
    except (ValueError, RecursionError):
        return None
    if not _WIRE.fullmatch(name) or size > LARGEST_SCHEMA or tool.schema.get("type") != "object":
        return None
    description = (
        f"Of the MCP server {server}, which says: {neutral(tool.description)[:LONGEST_TEXT]}"
    )
    return ToolOffer(name, description, _harmless(tool.schema))


def _harmless(value: Any) -> Any:
    """A schema without texts that could pass for anything else."""
    match value:
        case str():
            return neutral(value)[:LONGEST_TEXT]
        case dict():
            return {name: _harmless(each) for name, each in value.items()}
        case list():
            return [_harmless(each) for each in value]
        case _:
            return value
