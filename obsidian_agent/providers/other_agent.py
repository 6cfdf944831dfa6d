"""Other agents as sources of answers: their turns, sessions and limits, for every transport.

An agent explores and thinks by itself. It works in an empty private folder, gets our MCP server as
its only access to the vault and is offered neither files nor a terminal. Every other permission
that it requests is refused and reported. Its own tools are disabled where a configuration can do so
(`DENIED`). This is not a sandbox: a program can do what its user can, so the state of the vault
before and after each turn is compared (`OtherAgent.watch`).
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from msgspec import Struct, field

from obsidian_agent.child_process import ProcessLog, split_command
from obsidian_agent.errors import ConfigError, Problem, ProviderError
from obsidian_agent.providers.agent_process import MOST_BYTES
from obsidian_agent.providers.base import (
    ChatDelta,
    ChatMessage,
    ChatRequest,
    Finished,
    OwnCall,
    Provider,
    Remark,
    Role,
    TextChunk,
    ToolCallChunk,
)
from obsidian_agent.state_files import replace_file

ACP: Final = "acp"
COMMANDS: Final[Mapping[str, str]] = {
    "opencode": "opencode acp",
    "opencode-http": "opencode serve",
    "claude": "claude-agent-acp",
    "gemini": "gemini --experimental-acp",
}
"""Commands of known agents. The user's settings may add others and override these."""
SERVER: Final = "obsidian-agent"
"""Name of our MCP server for agents."""
SILENCE: Final = 300.0
"""Default timeout in seconds without output. It is long because agents may think without output."""
TOOLS_TIMEOUT: Final = 20.0
"""Seconds within which an agent must list the tools of our MCP server before it gets a prompt."""
START_TIMEOUT: Final = 60.0
"""Minimum timeout in seconds for starting the agent and creating a session."""
CANCEL_TIMEOUT: Final = 3.0
"""Seconds within which a cancelled turn must end before the agent is ended."""
MAX_SESSIONS: Final = 100
"""Number of conversations whose session is stored."""

_OWN_TOOLS: Final = """bash edit glob grep list lsp patch question read skill task todoread
todowrite webfetch websearch write external_directory"""
DENIED: Final[Mapping[str, Any]] = {
    "share": "disabled",
    "autoupdate": False,
    "tools": dict.fromkeys(_OWN_TOOLS.split(), False),
    "permission": dict.fromkeys(_OWN_TOOLS.split(), "deny"),
}
"""Configuration of OpenCode that overrides the user's own."""
OUR_TOOL: Final = re.compile(
    rf"(?:mcp__{SERVER}__|{SERVER}[_.:/ ])?"
    r"(search_notes|read_note|read_multiple_notes|list_directory|get_frontmatter|get_backlinks"
    r"|get_note_outline|get_vault_overview|list_tasks|get_periodic_note|get_plan_language"
    r"|propose_note|propose_append|propose_properties|propose_move|preview_plan|propose_plan)"
    rf"(?: \({SERVER} MCP Server\))?"
)
"""Names that agents display for the tools of our MCP server. Group 1 is the tool's own name."""

_ROLES: Final[Mapping[Role, str]] = {
    "user": "USER",
    "assistant": "ASSISTANT",
    "tool": "RESULT",
    "system": "SYSTEM",
}

AcceptPlan = Callable[[Mapping[str, Any]], str]
"""Accepts a proposed plan and returns the reply to its agent."""
State = Literal["connecting", "ready", "working", "gone"]


class AgentState(Struct, frozen=True):
    """The state of an agent. `alarm` is a problem that is discovered after the turn has ended."""

    name: str
    state: State
    alarm: Problem | None = None


class _Session(Struct, frozen=True):
    """A session of the agent with the first `count` messages of a conversation.

    `digest` is their hash.
    """

    id: str
    count: int
    digest: str


class Turn(Struct):
    """The output of a running turn that has not been forwarded yet. None in `deltas` ends it."""

    agent: str
    deltas: asyncio.Queue[ChatDelta | None] = field(default_factory=asyncio.Queue)
    calls: dict[str, dict[str, Any]] = field(default_factory=dict)
    plan: Mapping[str, Any] | None = None

    def accept_plan(self, plan: Mapping[str, Any]) -> str:
        """Accept the first proposed plan of the turn and return the reply to the agent."""
        if self.plan is not None:
            return "One plan at a time: the first one is shown to the user. End your turn."
        self.plan = plan
        return (
            "The user sees its whole preview when your turn is over, and decides. Describe in one "
            "sentence what you propose, and end your turn."
        )

    def refuse(self, tool: str, details: Any, *, quoted: bool = True) -> None:
        """Report a refused request. `quoted` marks a tool name that the agent chose."""
        name = f"“{tool}”" if quoted else tool
        request = f"{name} {excerpt(details or '')}".strip()
        message = f"{self.agent} asked for {request}; that was refused."
        self.deltas.put_nowait(Remark(Problem("AGENT_REFUSED", message), tool=tool))

    def add_text(self, text: str, *, thinking: bool) -> None:
        """Forward a piece of the answer or of the agent's reasoning."""
        self.deltas.put_nowait(TextChunk(text, thinking))

    def update_call(self, call_id: str, title: Any, args: Any, status: Any) -> None:
        """Update a tool call that the agent makes by itself.

        The call is reported once its arguments are known, and again when its status is "completed"
        or "failed".
        """
        call = self.calls.setdefault(
            call_id, {"title": "a tool", "args": {}, "begun": False, "ended": False}
        )
        if isinstance(title, str) and title.strip() and not call["begun"]:
            our_tool = OUR_TOOL.fullmatch(title)
            call["title"] = our_tool.group(1) if our_tool else title[:200]
        if isinstance(args, dict):
            call["args"] = args
        ended = status in ("completed", "failed")
        if not call["begun"] and (call["args"] or ended):
            call["begun"] = True
            self.deltas.put_nowait(OwnCall(call_id, call["title"], call["args"]))
        if ended and not call["ended"]:
            call["ended"] = True
            problem = None
            if status == "failed":
                problem = Problem("AGENT_CALL_FAILED", f"{call['title']} failed.")
            self.deltas.put_nowait(
                OwnCall(call_id, call["title"], call["args"], ended=True, problem=problem)
            )


class OtherAgent(Struct, kw_only=True):
    """A `Provider` that runs one agent for one conversation at a time.

    Subclasses implement a transport. `name` is `acp/NAME`, and `server` describes our MCP server in
    the form of ACP. A request is one turn of the agent and sends the messages that its session does
    not have yet. A plan that it proposes through the MCP server during the turn (`proposals`)
    becomes a call of `propose_plan`; the same connection reports that the agent listed the tools.

    `watch` records the state of the vault and returns a function that reports changes since then.
    `report` receives the agent's state. `note` writes the agent's own calls and refused requests to
    the audit record; it blocks.
    """

    lists_tools: ClassVar[bool] = False
    """True if every session starts our MCP server, whose tools the agent lists."""

    name: str
    command: tuple[str, ...]
    folder: Path
    log: ProcessLog
    server: Mapping[str, Any]
    proposals: Callable[[AcceptPlan, Callable[[], object]], AbstractAsyncContextManager[bool]]
    watch: Callable[[], Callable[[], Problem | None]]
    report: Callable[[AgentState], object] = lambda state: None
    note: Callable[[ChatDelta], object] = lambda delta: None
    local: bool = False
    _sessions: dict[str, _Session] | None = None
    _open: set[str] = field(default_factory=set)
    _session: str = ""
    _turn: Turn | None = None
    _busy: bool = False
    _listed: asyncio.Event = field(default_factory=asyncio.Event)

    # --- implemented by transports -------------------------------------------------------------

    @property
    def address(self) -> str:
        """The program. Which services it sends data to is not known."""
        raise NotImplementedError

    @property
    def alive(self) -> bool:
        """True while the agent runs and accepts prompts."""
        raise NotImplementedError

    async def _start(self) -> None:
        """Start the agent. Raise `ProviderError`, after which `_end` must be called."""
        raise NotImplementedError

    def _reset_count(self) -> None:
        """Reset the count of received bytes, which is limited per turn."""
        raise NotImplementedError

    async def _begin(self) -> str:
        """Create a session and return its id."""
        raise NotImplementedError

    async def _resume(self, session: str) -> bool:
        """Load a session of an earlier process; the messages that it repeats are not displayed.

        Return False if the agent cannot. An error AGENT_ERROR means the same.
        """
        raise NotImplementedError

    async def _prompt(self, session: str, pieces: Sequence[str], turn: Turn) -> Finished:
        """Send a prompt and wait for the end of the turn."""
        raise NotImplementedError

    async def _cancel(self, session: str) -> None:
        """Ask the agent to cancel the turn."""
        raise NotImplementedError

    async def _end(self) -> None:
        """End the agent."""
        raise NotImplementedError

    # --- errors --------------------------------------------------------------------------------

    def _flood_error(self) -> ProviderError:
        self.log.write(f"more than {MOST_BYTES:,} bytes in one turn\n")
        return ProviderError(
            f"{self._label} wrote more than {MOST_BYTES >> 20} MB in one turn and was ended.",
            code="AGENT_FLOOD",
        )

    def _exit_error(
        self, reason: str, hint: str = "The next message starts it again."
    ) -> ProviderError:
        return ProviderError(
            f"{self._label} ended unexpectedly ({reason}).",
            code="AGENT_GONE",
            hint=f"{hint} {self._log_hint}",
        )

    @property
    def _log_hint(self) -> str:
        return f"Its log is {self.log.file}."

    @property
    def _label(self) -> str:
        return self.name.partition("/")[2]

    # --- a turn --------------------------------------------------------------------------------

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """Run one turn of the agent. Raise `ProviderError`.

        Closing the iterator cancels the turn, and ends the agent if it does not react.
        """
        if not request.conversation:
            raise ProviderError(
                f"{self._label} manages its own conversations and cannot answer a single request.",
                code="AGENT_NOT_ASKED",
            )
        if self._busy:
            hint = "Wait for the answer, or cancel it."
            raise ProviderError(
                f"{self._label} is busy in another conversation.", code="AGENT_BUSY", hint=hint
            )
        self._busy = True
        turn = Turn(self._label)
        failure: ProviderError | None = None
        finished = Finished("error")
        changed = await asyncio.to_thread(self.watch)
        try:
            async with (
                self.proposals(turn.accept_plan, self._listed.set) as reachable,
                contextlib.aclosing(self._deltas(request, turn, reachable)) as deltas,
            ):
                async for delta in deltas:
                    await self._record(delta)
                    if isinstance(delta, Finished):
                        finished = delta
                    else:
                        yield delta
        except ProviderError as error:
            failure = error
        except BaseException:
            while not turn.deltas.empty():
                await self._record(turn.deltas.get_nowait())
            if (alarm := await asyncio.to_thread(changed)) is not None:
                self._report(alarm)
                await self._record(Remark(alarm, alarm=True))
            raise
        finally:
            self._busy = False
            self._report()
        if (alarm := await asyncio.to_thread(changed)) is not None:
            remark = Remark(alarm, alarm=True)
            await self._record(remark)
            yield remark
        if failure is not None:
            raise failure
        if turn.plan is not None:
            yield ToolCallChunk(0, json.dumps({"plan": turn.plan}), "", "propose_plan")
        yield finished

    async def _record(self, delta: ChatDelta | None) -> None:
        if isinstance(delta, OwnCall | Remark):
            await asyncio.to_thread(self.note, delta)

    async def _deltas(
        self, request: ChatRequest, turn: Turn, reachable: bool
    ) -> AsyncGenerator[ChatDelta, None]:
        silence = SILENCE if request.timeout is None else request.timeout
        try:
            async with asyncio.timeout(max(silence, START_TIMEOUT)):
                await self._connect()
                opened = set(self._open)
                self._listed.clear()
                session, pieces = await self._session_for(request)
            if not reachable:
                yield Remark(_unreachable(self._label))
            elif self.lists_tools and session not in opened and not await self._wait_for_tools():
                yield Remark(_without_tools(self._label))
        except TimeoutError:
            await self._end()
            raise ProviderError(
                f"{self._label} did not start within {max(silence, START_TIMEOUT):.0f} seconds.",
                code="API_TIMEOUT",
                hint=self._log_hint,
            ) from None
        self._session, self._turn = session, turn
        self._report(state="working")
        prompting = asyncio.create_task(self._prompt(session, pieces, turn))
        prompting.add_done_callback(lambda _: turn.deltas.put_nowait(None))
        try:
            while True:
                async with asyncio.timeout(silence):
                    delta = await turn.deltas.get()
                if delta is None:
                    break
                yield delta
            finished = prompting.result()
        except TimeoutError:
            message = f"{self._label} sent nothing for {silence:.0f} seconds and was stopped."
            raise ProviderError(message, code="API_TIMEOUT") from None
        finally:
            self._turn = None
            if not prompting.done():
                await self._stop(prompting)
        self._store_session(request, session)
        yield finished

    async def _wait_for_tools(self) -> bool:
        """Return True once the agent has listed our tools, False after a timeout."""
        try:
            async with asyncio.timeout(TOOLS_TIMEOUT):
                await self._listed.wait()
        except TimeoutError:
            return False
        return True

    async def _connect(self) -> None:
        """Start the agent unless it runs. Raise `ProviderError`."""
        self._reset_count()
        if not self.alive:
            await self._end()
            self._report(state="connecting")
            try:
                await self._start()
            except BaseException:
                await self._end()
                raise

    async def _stop(self, prompting: asyncio.Task[Finished]) -> None:
        """Cancel a turn. End the agent if it does not react."""
        with contextlib.suppress(ConnectionError, TimeoutError, ProviderError):
            async with asyncio.timeout(CANCEL_TIMEOUT):
                await self._cancel(self._session)
                await asyncio.wait([prompting])
        if not prompting.done():
            prompting.cancel()
            await self._end()
        else:
            prompting.exception()  # marks it as retrieved

    def _report(self, alarm: Problem | None = None, *, state: State | None = None) -> None:
        if state is None:
            state = "ready" if self.alive else "gone"
        self.report(AgentState(self.name, state, alarm))

    # --- sessions ------------------------------------------------------------------------------

    async def _session_for(self, request: ChatRequest) -> tuple[str, list[str]]:
        """Return the session of a conversation, and the part of the request that is new to it."""
        system, messages = request.messages[0], request.messages[1:]
        stored = (await asyncio.to_thread(self._load_sessions)).get(request.conversation)
        if stored is not None and _digest(messages[: stored.count]) == stored.digest:
            # The messages directly after those are the agent's own answer.
            start = stored.count
            while start < len(messages) and messages[start].role == "assistant":
                start += 1
            if stored.id in self._open or await self._try_resume(stored.id):
                self._open.add(stored.id)
                return stored.id, [_transcript(messages[start:])]
        session = await self._begin()
        self._open.add(session)
        return session, [system.text, _transcript(messages)]

    async def _try_resume(self, session: str) -> bool:
        try:
            return await self._resume(session)
        except ProviderError as error:
            if error.code != "AGENT_ERROR":
                raise
            return False

    def _load_sessions(self) -> dict[str, _Session]:
        if self._sessions is None:
            try:
                document = json.loads((self.folder / "sessions.json").read_bytes())
                self._sessions = {str(key): _Session(*item) for key, item in document.items()}
            except (OSError, ValueError, TypeError, AttributeError):
                self._sessions = {}
        return self._sessions

    def _store_session(self, request: ChatRequest, session: str) -> None:
        messages, sessions = request.messages[1:], self._load_sessions()
        sessions.pop(request.conversation, None)
        sessions[request.conversation] = _Session(session, len(messages), _digest(messages))
        for conversation in list(sessions)[:-MAX_SESSIONS]:
            del sessions[conversation]
        document = {key: (item.id, item.count, item.digest) for key, item in sessions.items()}
        # Without the file the next process sends the whole conversation again.
        with contextlib.suppress(OSError):
            replace_file(self.folder / "sessions.json", json.dumps(document).encode("ascii"))


def _without_tools(agent: str) -> Problem:
    return Problem(
        "AGENT_WITHOUT_TOOLS",
        f"{agent} did not request the vault's tools within {TOOLS_TIMEOUT:.0f} seconds. Its answer "
        "may not be based on your notes.",
    )


def _unreachable(agent: str) -> Problem:
    return Problem(
        "PROPOSALS_UNREACHABLE",
        f"Plans that {agent} proposes cannot be displayed here because their socket cannot be "
        "opened. They wait until you run them with plans run.",
    )


def excerpt(value: Any) -> str:
    """Return the beginning of a value for a message, as JSON unless it is a string."""
    text = value
    if not isinstance(text, str):
        text = json.dumps(value, ensure_ascii=False, default=str)
    return text[:200]


def tokens(value: Any) -> int:
    """Return a token count of the agent, or 0 if the value is not a count."""
    return value if isinstance(value, int) and value >= 0 else 0


def _digest(messages: Sequence[ChatMessage]) -> str:
    document = [[message.role, message.text] for message in messages]
    return hashlib.sha256(json.dumps(document).encode("ascii")).hexdigest()


def _transcript(messages: Sequence[ChatMessage]) -> str:
    """Return the prompt for the last message, with the messages before it as one text."""
    *earlier, last = messages
    if not earlier:
        return last.text
    texts = [f"{_ROLES[message.role]}: {message.text}" for message in earlier if message.text]
    return "\n\n".join(["# Earlier conversation", *texts, "# Current message", last.text])


def environment(**config: Any) -> dict[str, str]:
    """Return the user's environment without our own variables and the working directory.

    `config` is added to the configuration of OpenCode.
    """
    variables = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("OBSIDIAN_AGENT_") and key not in ("PWD", "OLDPWD")
    }
    own: Any = None
    with contextlib.suppress(ValueError):
        own = json.loads(variables.get("OPENCODE_CONFIG_CONTENT", ""))
    merged = {**(own if isinstance(own, dict) else {}), **DENIED, **config}
    return variables | {"OPENCODE_CONFIG_CONTENT": json.dumps(merged)}


def agent_command(name: str, own: Mapping[str, str]) -> tuple[str, ...]:
    """Return the command of an agent, from the user's settings `own` or `COMMANDS`.

    Raise `ConfigError` if there is none.
    """
    line = own.get(name) or COMMANDS.get(name)
    if line is None:
        known = ", ".join(dict.fromkeys([*own, *COMMANDS]))
        raise ConfigError(
            f"There is no agent {name!r}. Known agents: {known}.",
            code="AGENT_NOT_FOUND",
            hint="Add its command under agents in the settings.",
        )
    try:
        parts = split_command(line)
    except ValueError:
        parts = ()
    if not parts:
        raise ConfigError(
            f"The command of the agent {name} cannot be read: {line!r}.",
            hint="Correct it under agents in the settings.",
        )
    return parts


def is_agent(provider: Provider) -> bool:
    """Return True if the provider is an agent, which explores the vault by itself."""
    return provider.name.startswith(f"{ACP}/")
