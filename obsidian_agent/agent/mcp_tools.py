"""Tools of the user's MCP servers that a model may call: offers, questions to the user, calls.

A tool is offered after the user has read and accepted its name, description and schema. When its
server changes one of them, the user is asked again and sees the difference. Before a call the user
sees its arguments, unless a rule (`tools_allow`) or an answer in the conversation covers the tool;
an entry of the record is written before anything is sent. Plans never contain these tools.
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from obsidian_agent.agent.events import Emit, Notice
from obsidian_agent.agent.mcp_servers import (
    McpServers,
    ServerTool,
    ToolAnswer,
    decide,
    full_name,
    record_use,
)
from obsidian_agent.agent.privacy.consent import ApproveShare, Grants, ShareRequest
from obsidian_agent.agent.privacy.record import AuditRecord, Kind
from obsidian_agent.agent.privacy.untrusted_text import neutral
from obsidian_agent.errors import Problem, ServerError
from obsidian_agent.plan.policy import Policy
from obsidian_agent.plan.result import Verdict
from obsidian_agent.providers.base import ToolOffer
from obsidian_agent.state_files import replace_file

MAX_DESCRIPTION: Final = 2000
"""Characters of a description."""
MAX_SCHEMA: Final = 16_000
"""Characters of a schema as JSON; a tool with a larger one is not offered."""
MAX_CALL_ARGUMENTS: Final = 100_000
"""Characters of one call's arguments as JSON."""
MAX_NAME: Final = 64
"""Characters of the name of a function that every service accepts."""
_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_-]")


class OfferedTool(Struct, frozen=True):
    """A tool that a model may call as `offer.name`."""

    server: str
    tool: str
    offer: ToolOffer

    @property
    def names(self) -> tuple[str, str]:
        """The names that rules can give the tool: its full name, and the one that models call."""
        return full_name(self.server, self.tool), self.offer.name


class McpTools(Struct, kw_only=True):
    """The tools of the user's servers, while the program runs.

    `policy` returns the current rules; `pins` is the file with the descriptions that the user has
    accepted.
    """

    servers: McpServers
    policy: Callable[[], Policy]
    pins: Path
    record: AuditRecord
    known: dict[str, OfferedTool] = field(default_factory=dict)
    """The tools offered in the last turn."""
    _refused: set[str] = field(default_factory=set)
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while asking, so that simultaneous turns don't ask about the same tool twice."""

    async def offered(self, approve: ApproveShare, emit: Emit) -> dict[str, OfferedTool]:
        """Return the tools on offer in a turn, by the names that models call.

        Ask the user about new and changed tools, and emit a notice for each server that failed.
        """
        async with self._asking:
            self.known = await self._offered(approve, emit)
            return self.known

    async def _offered(self, approve: ApproveShare, emit: Emit) -> dict[str, OfferedTool]:
        await self.servers.close_outdated()
        servers = self.servers.configured()
        policy = await asyncio.to_thread(self.policy)
        listed = await asyncio.gather(
            *(self.servers.listed(name, lambda server: server.tools()) for name in servers)
        )
        offered: dict[str, OfferedTool] = {}
        for name, tools in zip(servers, listed, strict=True):
            if isinstance(tools, Problem):
                await emit(Notice(tools))
                continue
            offers: list[tuple[ServerTool, OfferedTool]] = []
            for tool in tools:
                offer = _offer(name, tool)
                if offer is None:
                    message = (
                        f"A tool of the MCP server {name} cannot be offered: {tool.name[:60]!r}."
                    )
                    await emit(Notice(Problem("MCP_TOOL_LEFT_OUT", message)))
                    continue
                server_tool = OfferedTool(name, tool.name, offer)
                if _verdict(policy, server_tool).decision != "deny":
                    offers.append((tool, server_tool))
            accepted = await self._accepted(name, [tool for tool, _ in offers], approve, emit)
            names = {tool.name for tool in accepted}
            offered |= {
                server_tool.offer.name: server_tool
                for tool, server_tool in offers
                if tool.name in names
            }
        return offered

    async def call(
        self,
        tool: OfferedTool,
        args: Mapping[str, Any],
        approve: ApproveShare,
        grants: Grants,
        emit: Emit,
        call_id: str,
    ) -> ToolAnswer | None:
        """Call a tool and return its answer, or None if the user refuses.

        Raise `ServerError` if a rule forbids the call or the server fails, `ConfigError` if the
        call cannot be recorded.
        """
        text = json.dumps(args, indent=2, ensure_ascii=False)
        if len(text) > MAX_CALL_ARGUMENTS:
            raise ServerError(
                f"The arguments are longer than {MAX_CALL_ARGUMENTS:,} characters.",
                code="ARGUMENT_INVALID",
            )
        allowed_by = await self._allowed_by(tool, grants)
        if not allowed_by:
            request = _question("call", tool.server, self.servers.address(tool.server), text)
            allowed_by = await decide(
                replace(
                    request,
                    purpose=f"Call {tool.tool}",
                    tool=tool.offer.name,
                    call_id=call_id,
                    args=args,
                ),
                approve,
                emit,
            )
            if not allowed_by:
                await self._note("refusal", provider=f"mcp/{tool.server}", tool=tool.tool)
                return None
            if allowed_by == "thread":
                grants.tools.add(tool.offer.name)
        names = {"server": tool.server, "tool": tool.tool}
        await record_use(self.record, text, allowed_by, names)
        connection = await self.servers.connection(tool.server)
        return await connection.call(tool.tool, args)

    async def _allowed_by(self, tool: OfferedTool, grants: Grants) -> str:
        """Return the reason why a call needs no question, or "". Raise if a rule forbids it."""
        verdict = _verdict(await asyncio.to_thread(self.policy), tool)
        if verdict.decision == "deny":
            await self._note(
                "denial",
                provider=f"mcp/{tool.server}",
                denied=[{"tool": tool.tool, "rule": verdict.rule}],
            )
            raise ServerError(
                f"{tool.offer.name} may not be called: {verdict.rule} ({verdict.source}).",
                code="PERMISSION_DENIED",
            )
        if verdict.decision == "allow":
            return "rule"
        return "granted" if tool.offer.name in grants.tools else ""

    # --- accepted tools ---

    async def _accepted(
        self, server: str, tools: Iterable[ServerTool], approve: ApproveShare, emit: Emit
    ) -> list[ServerTool]:
        """Return the tools that the user has accepted, after asking about the others."""
        pinned = await asyncio.to_thread(self._pinned)
        known = pinned.get(server, {})
        listed = {tool.name: tool for tool in tools}
        fresh = [tool for tool in listed.values() if known.get(tool.name) != tool.text]
        open_tools = [tool for tool in fresh if tool.sha256 not in self._refused]
        if open_tools:
            changed = sorted(tool.name for tool in open_tools if tool.name in known)
            purpose = "New"
            if changed:
                purpose = f"Changed since you allowed them: {', '.join(changed)}"
            text = "\n\n".join(_difference(known.get(tool.name), tool.text) for tool in open_tools)
            question = _question("tools", server, self.servers.address(server), text)
            if await decide(replace(question, purpose=purpose), approve, emit):
                pinned[server] = known | {tool.name: tool.text for tool in open_tools}
                with contextlib.suppress(OSError):  # the user is asked again next time
                    await asyncio.to_thread(
                        replace_file, self.pins, json.dumps(pinned).encode("ascii")
                    )
                for tool in open_tools:
                    await self._note("trust", path=f"mcp/{server}/{tool.name}", sha256=tool.sha256)
                fresh = [tool for tool in fresh if tool not in open_tools]
            else:
                self._refused |= {tool.sha256 for tool in open_tools}
                await self._note(
                    "refusal", provider=f"mcp/{server}", tools=[tool.name for tool in open_tools]
                )
        return [tool for tool in listed.values() if tool not in fresh]

    async def _note(self, kind: Kind, **details: Any) -> None:
        await asyncio.to_thread(partial(self.record.note, kind, **details))

    def _pinned(self) -> dict[str, dict[str, str]]:
        try:
            document = json.loads(self.pins.read_bytes())
            return {
                server: {tool: str(text) for tool, text in tools.items()}
                for server, tools in document.items()
            }
        except (OSError, ValueError, AttributeError):
            return {}  # the user is asked about every tool again


def _difference(old: str | None, new: str) -> str:
    if old is None:
        return new
    lines = difflib.unified_diff(
        old.split("\n"), new.split("\n"), "accepted", "now", lineterm="", n=1000
    )
    return "\n".join(lines)


def _question(kind: Literal["tools", "call"], server: str, address: str, text: str) -> ShareRequest:
    return ShareRequest(
        call_id="",
        kind=kind,
        tool="",
        purpose="",
        args={},
        items=(),
        provider=f"the MCP server {server}",
        address=address,
        text=text,
    )


def _verdict(policy: Policy, tool: OfferedTool) -> Verdict:
    """Return the verdict on a tool. A rule may name it as its server or as models do."""
    verdicts = [policy.on_call(name) for name in tool.names]
    for decision in ("deny", "allow"):
        for verdict in verdicts:
            if verdict.decision == decision:
                return verdict
    return verdicts[0]


def _callable_name(name: str) -> str:
    """Return a name that models can call: the same, or with a hash if it had to change."""
    plain = _NOT_IN_NAMES.sub("_", name)
    if plain == name and len(name) <= MAX_NAME:
        return name
    end = "_" + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return plain[: MAX_NAME - len(end)] + end


def _offer(server: str, tool: ServerTool) -> ToolOffer | None:
    """Return the function to offer, or None if models would not accept it."""
    try:
        size = len(json.dumps(tool.schema))
    except (ValueError, RecursionError):
        return None
    if size > MAX_SCHEMA or tool.schema.get("type") != "object":
        return None
    text = neutral(tool.description)[:MAX_DESCRIPTION]
    description = f"Of the MCP server {server}, which says: {text}"
    name = _callable_name(full_name(server, tool.name))
    return ToolOffer(name, description, _neutralized(tool.schema))


def _neutralized(value: Any) -> Any:
    match value:
        case str():
            return neutral(value)[:MAX_DESCRIPTION]
        case dict():
            return {name: _neutralized(item) for name, item in value.items()}
        case list():
            return [_neutralized(item) for item in value]
        case _:
            return value
