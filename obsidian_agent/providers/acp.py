"""Other agents, such as OpenCode, Claude Code or Gemini CLI, as a source of answers, by the Agent Client Protocol over standard input and output.

An agent looks around and thinks by itself. It works in an empty private folder, gets our MCP server as its only way to the vault, is offered
neither files nor a terminal, and every permission that it asks for anything else is refused and shown. Its own tools are switched off where
that can be said from outside (`DENIED`, `META`). That is no jail: a program can do what its user can, so whoever asks it compares what is in
the vault before and after (`AcpAgent.watch`). Protocol: agentclientprotocol.com, version 1.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import re
import shlex
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from obsidian_agent import __version__
from obsidian_agent.dataclass import dataclass, field
from obsidian_agent.errors import ConfigError, Problem, ProviderError
from obsidian_agent.providers.agent_process import MOST_BYTES, AgentProcess
from obsidian_agent.providers.base import (
    ChatDelta,
    ChatMessage,
    ChatRequest,
    Finished,
    OwnCall,
    Provider,
    Remark,
    TextChunk,
    ToolCallChunk,
    Usage,
)
from obsidian_agent.state_files import replace_file

if TYPE_CHECKING:
    from acp.connection import Connection

ACP: Final = "acp"
SERVER: Final = "obsidian-agent"
"""Our MCP server, as agents know it."""
COMMANDS: Final[Mapping[str, str]] = {"opencode": "opencode acp", "claude": "claude-agent-acp", "gemini": "gemini --experimental-acp"}
"""Agents whose command is known; the person's settings have others, and win."""
PATIENCE: Final = 5.0
"""So many times the timeout of a model may an agent be silent: it thinks and looks around without a word."""
START: Final = 60.0
"""Seconds that it has at least to start and to begin a session."""
GOODBYE: Final = 3.0
"""Seconds in which a turn that was cancelled must end."""
SESSIONS_KEPT: Final = 100
"""Conversations of which it is remembered which session is theirs."""

_OWN_TOOLS: Final = (
    "bash edit glob grep list lsp patch question read skill task todoread todowrite webfetch websearch write external_directory"
)
DENIED: Final[Mapping[str, Any]] = {
    "share": "disabled",
    "autoupdate": False,
    "tools": dict.fromkeys(_OWN_TOOLS.split(), False),
    "permission": dict.fromkeys(_OWN_TOOLS.split(), "deny"),
}
"""What OpenCode is told on top of the person's own configuration."""
META: Final[Mapping[str, Any]] = {"claudeCode": {"options": {"tools": [], "settingSources": []}}}
"""What claude-agent-acp is told with a session: no tools of its own, no servers, rules and hooks from settings. Others do not look at it."""

_ACTS: Final = frozenset({"execute", "edit", "delete", "move", "fetch"})
_OURS: Final = re.compile(
    rf"(?:mcp__{SERVER}__|{SERVER}[_.:/ ])?"
    r"(search_notes|read_note|read_multiple_notes|list_directory|get_frontmatter|get_backlinks|preview_plan|propose_plan)"
    rf"(?: \({SERVER} MCP Server\))?"
)

Take = Callable[[Mapping[str, Any]], str]
"""Takes a plan that was proposed and says what its agent is told."""
State = Literal["connecting", "ready", "working", "gone"]


@dataclass(frozen=True, slots=True)
class AgentState:
    """How an agent stands; `alarm` is what the person must know although no turn tells it any more."""

    name: str
    state: State
    alarm: Problem | None = None


@dataclass(frozen=True, slots=True)
class _Session:
    """A session of the agent's that goes on with a conversation: the first `count` messages are in it, of which `digest` is the hash."""

    id: str
    count: int
    digest: str


@dataclass(slots=True)
class _Turn:
    """What has come in a turn and was not taken yet; None at its end."""

    who: str
    deltas: asyncio.Queue[ChatDelta | None] = field(default_factory=asyncio.Queue)
    calls: dict[str, dict[str, Any]] = field(default_factory=dict)
    plan: Mapping[str, Any] | None = None

    def propose(self, plan: Mapping[str, Any]) -> str:
        """Take the first plan of the turn."""
        if self.plan is not None:
            return "One plan at a time: the first one is shown to the person. End your turn."
        self.plan = plan
        return (
            "The person sees its whole preview when your turn is over, and decides. Say in a sentence what you propose, and end your turn."
        )

    def refuse(self, what: str) -> None:
        message = f"{self.who} asked for {what}; that was refused."
        self.deltas.put_nowait(Remark(Problem("AGENT_REFUSED", message)))

    def take(self, update: Mapping[str, Any]) -> None:
        """A `session/update`, of which what is not known is left out."""
        kind, content = update.get("sessionUpdate"), update.get("content")
        if kind in ("agent_message_chunk", "agent_thought_chunk") and isinstance(content, dict) and isinstance(content.get("text"), str):
            self.deltas.put_nowait(TextChunk(content["text"], thinking=kind == "agent_thought_chunk"))
        elif kind in ("tool_call", "tool_call_update") and isinstance(update.get("toolCallId"), str):
            self._call(update["toolCallId"], update)

    def _call(self, call_id: str, update: Mapping[str, Any]) -> None:
        call = self.calls.setdefault(call_id, {"title": "a tool", "args": {}, "begun": False})
        if isinstance(title := update.get("title"), str) and title.strip() and not call["begun"]:
            ours = _OURS.fullmatch(title)
            call["title"] = ours.group(1) if ours else title[:200]
        if isinstance(args := update.get("rawInput"), dict):
            call["args"] = args
        status = update.get("status")
        ended = status in ("completed", "failed")
        if not call["begun"] and (call["args"] or ended):
            call["begun"] = True
            self.deltas.put_nowait(OwnCall(call_id, call["title"], call["args"]))
        if ended:
            problem = Problem("AGENT_CALL_FAILED", f"{call['title']} did not work.") if status == "failed" else None
            self.deltas.put_nowait(OwnCall(call_id, call["title"], call["args"], ended=True, problem=problem))


@dataclass(slots=True)
class _Link:
    """A running agent, the sessions that are open in it, and the turn that goes on in one."""

    process: AgentProcess
    connection: Connection
    resumes: bool = False
    opened: set[str] = field(default_factory=set)
    session: str = ""
    turn: _Turn | None = None


@dataclass(slots=True)
class AcpAgent:
    """A `Provider` over one agent, which works for one conversation at a time. `name` is `acp/NAME`, `server` our MCP server as ACP has it.

    A request is one turn of the agent; of its messages those go out that its session does not have yet. A plan that it proposes by the MCP
    server in that time (`proposals`) comes as a call of `propose_plan`. `watch` looks at the vault and gives what says what changed since;
    `tell` hears how the agent stands.
    """

    name: str
    command: tuple[str, ...]
    folder: Path
    server: Mapping[str, Any]
    proposals: Callable[[Take], AbstractAsyncContextManager[object]]
    watch: Callable[[], Callable[[], Problem | None]]
    tell: Callable[[AgentState], object] = lambda state: None
    local: bool = False
    _link: _Link | None = None
    _sessions: dict[str, _Session] | None = None
    _busy: bool = False

    @property
    def address(self) -> str:
        """The program; where that sends what it is told is its own matter."""
        return f"stdio:{os.path.basename(self.command[0])}"

    @property
    def _who(self) -> str:
        return self.name.partition("/")[2]

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """One turn of the agent. Raises `ProviderError`; closing the iterator cancels the turn, and ends an agent that goes on all the same."""
        if not request.conversation:
            raise ProviderError(f"{self._who} keeps its conversations itself; this is not for it.", code="AGENT_NOT_ASKED")
        if self._busy:
            hint = "Wait for the answer, or cancel it."
            raise ProviderError(f"{self._who} works in another conversation.", code="AGENT_BUSY", hint=hint)
        self._busy, turn, failure = True, _Turn(self._who), None
        changed = await asyncio.to_thread(self.watch)
        finished = Finished("error")
        try:
            async with self.proposals(turn.propose), contextlib.aclosing(self._deltas(request, turn)) as deltas:
                async for delta in deltas:
                    if isinstance(delta, Finished):
                        finished = delta
                    else:
                        yield delta
        except ProviderError as error:
            failure = error
        except BaseException:
            if (alarm := await asyncio.to_thread(changed)) is not None:
                self._tell(alarm)
            raise
        finally:
            self._busy = False
            self._tell()
        if (alarm := await asyncio.to_thread(changed)) is not None:
            yield Remark(alarm, alarm=True)
        if failure is not None:
            raise failure
        if turn.plan is not None:
            yield ToolCallChunk(0, json.dumps({"plan": turn.plan}), "", "propose_plan")
        yield finished

    async def _deltas(self, request: ChatRequest, turn: _Turn) -> AsyncGenerator[ChatDelta, None]:
        silence = request.timeout * PATIENCE
        try:
            async with asyncio.timeout(max(silence, START)):
                link = await self._connected()
                link.process.said, link.turn = 0, None
                session, text = await self._opened(link, request)
        except TimeoutError:
            await self._end()
            raise ProviderError(
                f"{self._who} did not begin to work within {max(silence, START):.0f} seconds.", code="API_TIMEOUT"
            ) from None
        link.session, link.turn = session, turn
        self._tell(state="working")
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": piece} for piece in text]}
        asked = asyncio.create_task(self._ask(link, "session/prompt", prompt))
        asked.add_done_callback(lambda _: turn.deltas.put_nowait(None))
        try:
            while True:
                async with asyncio.timeout(silence):
                    delta = await turn.deltas.get()
                if delta is None:
                    break
                yield delta
            answered = asked.result()
        except TimeoutError:
            message = f"{self._who} gave no sign for {silence:.0f} seconds and was stopped."
            raise ProviderError(message, code="API_TIMEOUT") from None
        finally:
            link.turn = None
            if not asked.done():
                await self._stop(link, asked)
        self._remember(request, session)
        yield Finished("length" if answered.get("stopReason") == "max_tokens" else "stop", _usage(answered.get("usage")))

    async def _stop(self, link: _Link, asked: asyncio.Task[Any]) -> None:
        """Cancel a turn; end the agent where that does not help."""
        with contextlib.suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(GOODBYE):
                await link.connection.send_notification("session/cancel", {"sessionId": link.session})
                await asyncio.wait([asked])
        if not asked.done():
            asked.cancel()
            await self._end()
        else:
            asked.exception()

    # --- the program ---------------------------------------------------------------------------------------------------------------

    async def _connected(self) -> _Link:
        """The agent, started anew where it is gone."""
        if self._link is not None and self._link.process.alive:
            return self._link
        try:
            from acp.connection import Connection
        except ImportError as error:
            message = "The package agent-client-protocol is not installed."
            raise ProviderError(message, code="NOT_INSTALLED", hint="Install obsidian-agent[acp,mcp].") from error
        await self._end()
        self._tell(state="connecting")
        process = await AgentProcess.start(self.command, self.folder / "work", _environment())
        link = self._link = _Link(process, Connection(self._asked, process))
        offer = {
            "protocolVersion": 1,
            "clientCapabilities": {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False},
            "clientInfo": {"name": SERVER, "version": __version__},
        }
        try:
            told = await self._ask(link, "initialize", offer)
        except BaseException:
            await self._end()
            raise
        capabilities = told.get("agentCapabilities")
        link.resumes = isinstance(capabilities, dict) and capabilities.get("loadSession") is True
        return link

    async def _end(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            await link.connection.close()
            await link.process.end()

    async def _ask(self, link: _Link, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        from acp.exceptions import RequestError

        try:
            answer = await link.connection.send_request(method, dict(params))
        except RequestError as error:
            hint = "Sign in with it in a terminal first." if error.code == -32000 else None
            details = error.data.get("details") if isinstance(error.data, dict) else None
            said = f"{str(error).rstrip('.')}{f': {details}' if details else ''}"[:300]
            raise ProviderError(f"{self._who} refused: {said}.", code="AGENT_ERROR", hint=hint) from error
        except ConnectionError as error:
            flooded, process = link.process.flooded, link.process
            await self._end()
            if flooded:
                message = f"{self._who} wrote more than {MOST_BYTES >> 20} MB in one turn and was ended."
                raise ProviderError(message, code="AGENT_FLOOD") from error
            hint = "The next message starts it again."
            raise ProviderError(f"{self._who} ended in the middle ({process.last_words()}).", code="AGENT_GONE", hint=hint) from error
        return answer if isinstance(answer, dict) else {}

    def _tell(self, alarm: Problem | None = None, *, state: State | None = None) -> None:
        there = self._link is not None and self._link.process.alive
        self.tell(AgentState(self.name, state or ("ready" if there else "gone"), alarm))

    # --- sessions ------------------------------------------------------------------------------------------------------------------

    async def _opened(self, link: _Link, request: ChatRequest) -> tuple[str, list[str]]:
        """The session of a conversation, and what of the request is new to it."""
        system, messages = request.messages[0], request.messages[1:]
        known = (await asyncio.to_thread(self._known)).get(request.conversation)
        if known is not None and _digest(messages[: known.count]) == known.digest:
            # What follows directly is its own answer.
            new = next((at for at in range(known.count, len(messages)) if messages[at].role != "assistant"), len(messages))
            if known.id in link.opened or await self._loaded(link, known.id):
                return known.id, [_transcript(messages[new:])]
        answer = await self._ask(link, "session/new", self._place())
        session = str(answer.get("sessionId"))
        link.opened.add(session)
        return session, [system.text, _transcript(messages)]

    async def _loaded(self, link: _Link, session: str) -> bool:
        """Whether the agent takes up a session of an earlier start again; what it repeats of it is not shown."""
        if not link.resumes:
            return False
        try:
            await self._ask(link, "session/load", {"sessionId": session, **self._place()})
        except ProviderError as error:
            if error.code != "AGENT_ERROR":
                raise
            return False
        link.opened.add(session)
        return True

    def _place(self) -> dict[str, Any]:
        return {"cwd": str(self.folder / "work"), "mcpServers": [dict(self.server)], "_meta": META}

    def _known(self) -> dict[str, _Session]:
        if self._sessions is None:
            try:
                found = json.loads((self.folder / "sessions.json").read_bytes())
                self._sessions = {str(key): _Session(*each) for key, each in found.items()}
            except (OSError, ValueError, TypeError, AttributeError):
                self._sessions = {}
        return self._sessions

    def _remember(self, request: ChatRequest, session: str) -> None:
        messages, known = request.messages[1:], self._known()
        known.pop(request.conversation, None)
        known[request.conversation] = _Session(session, len(messages), _digest(messages))
        for old in list(known)[:-SESSIONS_KEPT]:
            del known[old]
        document = {key: (each.id, each.count, each.digest) for key, each in known.items()}
        with contextlib.suppress(OSError):  # the conversation is told again then
            replace_file(self.folder / "sessions.json", json.dumps(document).encode("ascii"))

    # --- what it asks --------------------------------------------------------------------------------------------------------------

    async def _asked(self, method: str, params: Any, notification: bool) -> Any:
        """What the agent says or asks. Never awaits, so that everything comes in its order."""
        from acp.exceptions import RequestError

        link, given = self._link, params if isinstance(params, dict) else {}
        turn = link.turn if link is not None and given.get("sessionId") == link.session else None
        if method == "session/request_permission":
            return _permission(given, turn)
        if method == "session/update":
            if turn is not None and isinstance(given.get("update"), dict):
                turn.take(given["update"])
            return None
        if notification:
            return None
        if turn is not None:
            turn.refuse(f"{method} {_shown(given.get('path') or given.get('command') or '')}".strip()[:300])
        raise RequestError.method_not_found(method)


def _permission(asked: Mapping[str, Any], turn: _Turn | None) -> dict[str, Any]:
    """Yes to our own tools while a turn goes on, no to everything else."""
    found = asked.get("toolCall")
    call = found if isinstance(found, dict) else {}
    title = str(call.get("title") or "a tool")[:200]
    ours = turn is not None and _OURS.fullmatch(title) is not None and SERVER in title and call.get("kind") not in _ACTS
    if not ours and turn is not None:
        turn.refuse(f"“{title}” {_shown(call.get('rawInput') or '')}".strip())
    offered = asked.get("options")
    options = {each.get("kind"): each.get("optionId") for each in (offered if isinstance(offered, list) else ()) if isinstance(each, dict)}
    chosen = next((options[kind] for kind in (("allow_once", "allow_always") if ours else ("reject_once",)) if kind in options), None)
    return {"outcome": {"outcome": "selected", "optionId": chosen} if chosen is not None else {"outcome": "cancelled"}}


def _shown(value: Any) -> str:
    return (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))[:200]


def _usage(found: Any) -> Usage | None:
    if not isinstance(found, dict):
        return None
    counted = [found.get(key) for key in ("inputTokens", "outputTokens", "cachedReadTokens")]
    prompt, completion, cached = (each if isinstance(each, int) and each >= 0 else 0 for each in counted)
    return Usage(prompt, completion, cached)


def _digest(messages: Sequence[ChatMessage]) -> str:
    said = [[each.role, each.text] for each in messages]
    return hashlib.sha256(json.dumps(said).encode("ascii")).hexdigest()


def _transcript(messages: Sequence[ChatMessage]) -> str:
    """What the agent was not told yet; an earlier conversation as one text before the last message."""
    *earlier, last = messages
    if not earlier:
        return last.text
    role = {"user": "THE PERSON", "assistant": "THE ASSISTANT", "tool": "RESULT", "system": "SYSTEM"}
    return "\n\n".join(["# Said before", *(f"{role[each.role]}: {each.text}" for each in earlier if each.text), "# Now", last.text])


def _environment() -> dict[str, str]:
    """What the person's programs see, without our own keys and where we were started."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("OBSIDIAN_AGENT_") and key not in ("PWD", "OLDPWD")}
    own: Any = None
    with contextlib.suppress(ValueError):
        own = json.loads(kept.get("OPENCODE_CONFIG_CONTENT", ""))
    return kept | {"OPENCODE_CONFIG_CONTENT": json.dumps({**(own if isinstance(own, dict) else {}), **DENIED})}


def agent_command(name: str, own: Mapping[str, str]) -> tuple[str, ...]:
    """The command of an agent, from the person's settings or those that are known. Raises `ConfigError`."""
    line = own.get(name) or COMMANDS.get(name)
    if line is None:
        known = ", ".join(dict.fromkeys([*own, *COMMANDS]))
        raise ConfigError(f"There is no agent {name!r}; there are {known}.", code="AGENT_NOT_FOUND", hint="Name its command under agents.")
    try:
        parts = shlex.split(line)
    except ValueError:
        parts = []
    if not parts:
        raise ConfigError(f"The command of the agent {name} cannot be read: {line!r}.", hint="Correct it under agents in the settings.")
    return (os.path.expanduser(parts[0]), *parts[1:])


def is_agent(provider: Provider) -> bool:
    """Whether a provider is an agent that looks around by itself."""
    return provider.name.startswith(f"{ACP}/")
