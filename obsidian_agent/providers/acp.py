"""Other agents, such as OpenCode, Claude Code or Gemini CLI, over the Agent Client Protocol.

Messages are exchanged over standard input and output.

Protocol: agentclientprotocol.com, version 1.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from msgspec import Struct

from obsidian_agent import __version__
from obsidian_agent.errors import ProviderError
from obsidian_agent.providers.agent_process import AgentProcess
from obsidian_agent.providers.base import Finished, Usage
from obsidian_agent.providers.errors import redact
from obsidian_agent.providers.other_agent import (
    OUR_TOOL,
    SERVER,
    OtherAgent,
    Turn,
    environment,
    tokens,
)

if TYPE_CHECKING:
    from acp.connection import Connection

META: Final[Mapping[str, Any]] = {"claudeCode": {"options": {"tools": [], "settingSources": []}}}
"""Session metadata for claude-agent-acp: no tools of its own, and no servers, rules or hooks.

Other agents ignore it.
"""

_ACTS: Final = frozenset({"execute", "edit", "delete", "move", "fetch"})
"""Kinds of tool calls that are refused whatever their name is."""


class _Link(Struct):
    """A running agent with its connection."""

    process: AgentProcess
    connection: Connection
    resumes: bool = False


class AcpAgent(OtherAgent):
    """An agent on standard input and output, which starts our MCP server for each session."""

    lists_tools: ClassVar[bool] = True
    _link: _Link | None = None

    @property
    def address(self) -> str:
        """The program that the agent runs."""
        return f"stdio:{os.path.basename(self.command[0])}"

    @property
    def alive(self) -> bool:
        """True while the process runs."""
        return self._link is not None and self._link.process.alive

    async def _start(self) -> None:
        try:
            from acp.connection import Connection
        except ImportError as error:
            message = "The package agent-client-protocol is not installed."
            raise ProviderError(
                message, code="NOT_INSTALLED", hint="Install obsidian-agent[acp,mcp]."
            ) from error
        process = await AgentProcess.start(
            self.command, self.folder / "work", environment(), self.log
        )
        link = self._link = _Link(process, Connection(self._handle, process))
        offer = {
            "protocolVersion": 1,
            "clientCapabilities": {
                "fs": {"readTextFile": False, "writeTextFile": False},
                "terminal": False,
            },
            "clientInfo": {"name": SERVER, "version": __version__},
        }
        capabilities = (await self._ask("initialize", offer)).get("agentCapabilities")
        link.resumes = isinstance(capabilities, dict) and capabilities.get("loadSession") is True

    def _reset_count(self) -> None:
        if self._link is not None:
            self._link.process.received = 0

    async def _end(self) -> None:
        link, self._link = self._link, None
        self._open.clear()
        if link is not None:
            await link.connection.close()
            await link.process.end()

    async def _ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        from acp.exceptions import RequestError

        assert (link := self._link) is not None
        try:
            answer = await link.connection.send_request(method, dict(params))
        except RequestError as error:
            hint = "Sign in with it in a terminal first." if error.code == -32000 else None
            details = error.data.get("details") if isinstance(error.data, dict) else None
            reason = str(error).rstrip(".")
            if details:
                reason += f": {details}"
            reason = reason[:300]
            self.log.write(f"{method} refused: {redact(reason)}\n")
            raise ProviderError(
                f"{self._label} refused: {reason}.", code="AGENT_ERROR", hint=hint
            ) from error
        except ConnectionError as error:
            flooded = link.process.flooded
            await self._end()
            raise (
                self._flood_error() if flooded else self._exit_error(link.process.last_words())
            ) from error
        return answer if isinstance(answer, dict) else {}

    async def _begin(self) -> str:
        return str((await self._ask("session/new", self._session_params())).get("sessionId"))

    async def _resume(self, session: str) -> bool:
        if self._link is None or not self._link.resumes:
            return False
        await self._ask("session/load", {"sessionId": session, **self._session_params()})
        return True

    def _session_params(self) -> dict[str, Any]:
        return {"cwd": str(self.folder / "work"), "mcpServers": [dict(self.server)], "_meta": META}

    async def _prompt(self, session: str, pieces: Sequence[str], turn: Turn) -> Finished:
        prompt = [{"type": "text", "text": piece} for piece in pieces]
        answered = await self._ask("session/prompt", {"sessionId": session, "prompt": prompt})
        return Finished(
            "length" if answered.get("stopReason") == "max_tokens" else "stop",
            _usage(answered.get("usage")),
        )

    async def _cancel(self, session: str) -> None:
        if self._link is not None:
            await self._link.connection.send_notification("session/cancel", {"sessionId": session})

    async def _handle(self, method: str, params: Any, notification: bool) -> Any:
        """Handle a request or notification. Never awaits, which preserves the order of messages."""
        from acp.exceptions import RequestError

        arguments = params if isinstance(params, dict) else {}
        turn = self._turn if arguments.get("sessionId") == self._session else None
        if method == "session/request_permission":
            return _permission(arguments, turn)
        if method == "session/update":
            if turn is not None:
                _update(arguments.get("update"), turn)
            return None
        if notification:
            return None
        if turn is not None:
            turn.refuse(
                method[:100], arguments.get("path") or arguments.get("command"), quoted=False
            )
        raise RequestError.method_not_found(method)


def _update(update: Any, turn: Turn) -> None:
    """Process a `session/update`. Unknown kinds are ignored."""
    match update:
        case {
            "sessionUpdate": "agent_message_chunk" | "agent_thought_chunk" as kind,
            "content": {"text": str(text)},
        }:
            turn.add_text(text, thinking=kind == "agent_thought_chunk")
        case {"sessionUpdate": "tool_call" | "tool_call_update", "toolCallId": str(id)}:
            turn.update_call(id, update.get("title"), update.get("rawInput"), update.get("status"))


def _permission(params: Mapping[str, Any], turn: Turn | None) -> dict[str, Any]:
    """Allow our own tools during a turn, and refuse everything else."""
    tool_call = params.get("toolCall")
    call = tool_call if isinstance(tool_call, dict) else {}
    title = str(call.get("title") or "a tool")[:200]
    is_ours = (
        turn is not None
        and OUR_TOOL.fullmatch(title) is not None
        and SERVER in title
        and call.get("kind") not in _ACTS
    )
    if not is_ours and turn is not None:
        turn.refuse(title, call.get("rawInput"))
    offered = params.get("options")
    options = {
        option.get("kind"): option.get("optionId")
        for option in (offered if isinstance(offered, list) else ())
        if isinstance(option, dict)
    }
    kinds = ("allow_once", "allow_always") if is_ours else ("reject_once",)
    chosen = next((options[kind] for kind in kinds if kind in options), None)
    if chosen is None:
        return {"outcome": {"outcome": "cancelled"}}
    return {"outcome": {"outcome": "selected", "optionId": chosen}}


def _usage(document: Any) -> Usage | None:
    if not isinstance(document, dict):
        return None
    return Usage(
        *(tokens(document.get(key)) for key in ("inputTokens", "outputTokens", "cachedReadTokens"))
    )
