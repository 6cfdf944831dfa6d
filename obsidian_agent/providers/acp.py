"""Other agents, such as OpenCode, Claude Code or Gemini CLI, by the Agent Client Protocol over standard input and output.

Protocol: agentclientprotocol.com, version 1.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from obsidian_agent import __version__
from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import ProviderError
from obsidian_agent.providers.agent_process import AgentProcess
from obsidian_agent.providers.base import Finished, Usage
from obsidian_agent.providers.errors import redact
from obsidian_agent.providers.other_agent import OURS, SERVER, OtherAgent, Turn, environment, tokens

if TYPE_CHECKING:
    from acp.connection import Connection

META: Final[Mapping[str, Any]] = {"claudeCode": {"options": {"tools": [], "settingSources": []}}}
"""What claude-agent-acp is told with a session: no tools of its own, no servers, rules and hooks from settings. Others do not look at it."""

_ACTS: Final = frozenset({"execute", "edit", "delete", "move", "fetch"})


@dataclass(slots=True)
class _Link:
    """A running agent."""

    process: AgentProcess
    connection: Connection
    resumes: bool = False


@dataclass(slots=True)
class AcpAgent(OtherAgent):
    """An agent on standard input and output. It starts our MCP server for each session."""

    lists_tools: ClassVar[bool] = True
    _link: _Link | None = None

    @property
    def address(self) -> str:
        return f"stdio:{os.path.basename(self.command[0])}"

    @property
    def alive(self) -> bool:
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
        link = self._link = _Link(process, Connection(self._asked, process))
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

    def _count_anew(self) -> None:
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
            said = f"{str(error).rstrip('.')}{f': {details}' if details else ''}"[:300]
            self.log.write(f"{method} refused: {redact(said)}\n")
            raise ProviderError(
                f"{self._who} refused: {said}.", code="AGENT_ERROR", hint=hint
            ) from error
        except ConnectionError as error:
            flooded = link.process.flooded
            await self._end()
            raise self._flood() if flooded else self._over(link.process.last_words()) from error
        return answer if isinstance(answer, dict) else {}

    async def _begin(self) -> str:
        return str((await self._ask("session/new", self._place())).get("sessionId"))

    async def _resume(self, session: str) -> bool:
        if self._link is None or not self._link.resumes:
            return False
        await self._ask("session/load", {"sessionId": session, **self._place()})
        return True

    def _place(self) -> dict[str, Any]:
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

    # --- what it asks --------------------------------------------------------------------------------------------------------------

    async def _asked(self, method: str, params: Any, notification: bool) -> Any:
        """What the agent says or asks. Never awaits, so that everything comes in its order."""
        from acp.exceptions import RequestError

        given = params if isinstance(params, dict) else {}
        turn = self._turn if given.get("sessionId") == self._session else None
        if method == "session/request_permission":
            return _permission(given, turn)
        if method == "session/update":
            if turn is not None:
                _update(given.get("update"), turn)
            return None
        if notification:
            return None
        if turn is not None:
            turn.refuse(method[:100], given.get("path") or given.get("command"), named=False)
        raise RequestError.method_not_found(method)


def _update(update: Any, turn: Turn) -> None:
    """A `session/update`, of which what is not known is left out."""
    match update:
        case {
            "sessionUpdate": "agent_message_chunk" | "agent_thought_chunk" as kind,
            "content": {"text": str(text)},
        }:
            turn.say(text, thinking=kind == "agent_thought_chunk")
        case {"sessionUpdate": "tool_call" | "tool_call_update", "toolCallId": str(id)}:
            turn.call(id, update.get("title"), update.get("rawInput"), update.get("status"))


def _permission(asked: Mapping[str, Any], turn: Turn | None) -> dict[str, Any]:
    """Yes to our own tools while a turn goes on, no to everything else."""
    found = asked.get("toolCall")
    call = found if isinstance(found, dict) else {}
    title = str(call.get("title") or "a tool")[:200]
    ours = (
        turn is not None
        and OURS.fullmatch(title) is not None
        and SERVER in title
        and call.get("kind") not in _ACTS
    )
    if not ours and turn is not None:
        turn.refuse(title, call.get("rawInput"))
    offered = asked.get("options")
    options = {
        each.get("kind"): each.get("optionId")
        for each in (offered if isinstance(offered, list) else ())
        if isinstance(each, dict)
    }
    chosen = next(
        (
            options[kind]
            for kind in (("allow_once", "allow_always") if ours else ("reject_once",))
            if kind in options
        ),
        None,
    )
    return {
        "outcome": {"outcome": "selected", "optionId": chosen}
        if chosen is not None
        else {"outcome": "cancelled"}
    }


def _usage(found: Any) -> Usage | None:
    if not isinstance(found, dict):
        return None
    return Usage(
        *(tokens(found.get(key)) for key in ("inputTokens", "outputTokens", "cachedReadTokens"))
    )
