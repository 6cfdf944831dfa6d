"""Another agent as a source of answers, whatever way it is spoken to: a turn of it, its sessions, what it may not.

An agent looks around and thinks by itself. It works in an empty private folder, gets our MCP server as its only way to the vault, is offered
neither files nor a terminal, and every permission that it asks for anything else is refused and shown. Its own tools are switched off where
that can be said from outside (`DENIED`). That is no jail: a program can do what its user can, so whoever asks it compares what is in the
vault before and after (`OtherAgent.watch`).
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

from obsidian_agent.child_process import ProcessLog, split_command
from obsidian_agent.dataclass import dataclass, field
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
"""Agents whose command is known; the person's settings have others, and win."""
SERVER: Final = "obsidian-agent"
"""Our MCP server, as agents know it."""
SILENCE: Final = 300.0
"""Seconds that an agent may be silent where the settings name none: it thinks and looks around without a word."""
TOOLS: Final = 20.0
"""Seconds within which an agent must ask our MCP server for its tools before it is asked anything."""
START: Final = 60.0
"""Seconds that it has at least to start and to begin a session."""
GOODBYE: Final = 3.0
"""Seconds in which a turn that was cancelled must end."""
SESSIONS_KEPT: Final = 100
"""Conversations of which it is remembered which session is theirs."""

_OWN_TOOLS: Final = "bash edit glob grep list lsp patch question read skill task todoread todowrite webfetch websearch write external_directory"
DENIED: Final[Mapping[str, Any]] = {
    "share": "disabled",
    "autoupdate": False,
    "tools": dict.fromkeys(_OWN_TOOLS.split(), False),
    "permission": dict.fromkeys(_OWN_TOOLS.split(), "deny"),
}
"""What OpenCode is told on top of the person's own configuration."""
OURS: Final = re.compile(
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
class Turn:
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
        return "The person sees its whole preview when your turn is over, and decides. Say in a sentence what you propose, and end your turn."

    def refuse(self, tool: str, about: Any, *, named: bool = True) -> None:
        """Something that it asked for was refused; `named`: the tool is called by a name of the agent's choice."""
        what = f"{f'“{tool}”' if named else tool} {shown(about or '')}".strip()
        self.deltas.put_nowait(
            Remark(
                Problem("AGENT_REFUSED", f"{self.who} asked for {what}; that was refused."),
                tool=tool,
            )
        )

    def say(self, text: str, *, thinking: bool) -> None:
        self.deltas.put_nowait(TextChunk(text, thinking))

    def call(self, call_id: str, title: Any, args: Any, status: Any) -> None:
        """A call of its own as it is now, perhaps again: told when its arguments are known, and when it is "completed" or "failed"."""
        call = self.calls.setdefault(
            call_id, {"title": "a tool", "args": {}, "begun": False, "ended": False}
        )
        if isinstance(title, str) and title.strip() and not call["begun"]:
            ours = OURS.fullmatch(title)
            call["title"] = ours.group(1) if ours else title[:200]
        if isinstance(args, dict):
            call["args"] = args
        ended = status in ("completed", "failed")
        if not call["begun"] and (call["args"] or ended):
            call["begun"] = True
            self.deltas.put_nowait(OwnCall(call_id, call["title"], call["args"]))
        if ended and not call["ended"]:
            call["ended"] = True
            problem = (
                Problem("AGENT_CALL_FAILED", f"{call['title']} did not work.")
                if status == "failed"
                else None
            )
            self.deltas.put_nowait(
                OwnCall(call_id, call["title"], call["args"], ended=True, problem=problem)
            )


@dataclass(slots=True)
class OtherAgent:
    """A `Provider` over one agent, which works for one conversation at a time. `name` is `acp/NAME`, `server` our MCP server as ACP has it.
    A transport says how it is started, asked and cancelled.

    A request is one turn of the agent; of its messages those go out that its session does not have yet. A plan that it proposes by the MCP
    server in that time (`proposals`) comes as a call of `propose_plan`; the same connection reports that the server has listed its tools. `watch` looks at the vault and gives what says what changed since;
    `tell` hears how the agent stands; `note` writes into the record what it did and was refused, and blocks.
    """

    lists_tools: ClassVar[bool] = False
    """Whether every session starts our MCP server, whose tools the agent lists meanwhile."""

    name: str
    command: tuple[str, ...]
    folder: Path
    log: ProcessLog
    server: Mapping[str, Any]
    proposals: Callable[[Take, Callable[[], object]], AbstractAsyncContextManager[bool]]
    watch: Callable[[], Callable[[], Problem | None]]
    tell: Callable[[AgentState], object] = lambda state: None
    note: Callable[[ChatDelta], object] = lambda delta: None
    local: bool = False
    _sessions: dict[str, _Session] | None = None
    _open: set[str] = field(default_factory=set)
    _session: str = ""
    _turn: Turn | None = None
    _busy: bool = False
    _listed: asyncio.Event = field(default_factory=asyncio.Event)

    # --- what a transport does -----------------------------------------------------------------------------------------------------

    @property
    def address(self) -> str:
        """The program; where that sends what it is told is its own matter."""
        raise NotImplementedError

    @property
    def alive(self) -> bool:
        """Whether it runs and can be asked."""
        raise NotImplementedError

    async def _start(self) -> None:
        """Start the agent. Raises `ProviderError`, and may leave it half started then."""
        raise NotImplementedError

    def _count_anew(self) -> None:
        """Forget how much it said in the turns before."""
        raise NotImplementedError

    async def _begin(self) -> str:
        """A new session; its id."""
        raise NotImplementedError

    async def _resume(self, session: str) -> bool:
        """Whether the agent takes up a session of an earlier start again; what it repeats of it is not shown. AGENT_ERROR is a no."""
        raise NotImplementedError

    async def _prompt(self, session: str, pieces: Sequence[str], turn: Turn) -> Finished:
        """Ask, and wait for the end of the turn."""
        raise NotImplementedError

    async def _cancel(self, session: str) -> None:
        """Tell it that nobody wants its answer any more."""
        raise NotImplementedError

    async def _end(self) -> None:
        """End the agent."""
        raise NotImplementedError

    def _flood(self) -> ProviderError:
        self.log.write(f"more than {MOST_BYTES:,} bytes in one turn\n")
        return ProviderError(
            f"{self._who} wrote more than {MOST_BYTES >> 20} MB in one turn and was ended.",
            code="AGENT_FLOOD",
        )

    def _over(self, why: str, hint: str = "The next message starts it again.") -> ProviderError:
        return ProviderError(
            f"{self._who} ended in the middle ({why}).",
            code="AGENT_GONE",
            hint=f"{hint} {self._log_hint}",
        )

    @property
    def _log_hint(self) -> str:
        return f"Its log is {self.log.file}."

    # --- a turn --------------------------------------------------------------------------------------------------------------------

    @property
    def _who(self) -> str:
        return self.name.partition("/")[2]

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """One turn of the agent. Raises `ProviderError`; closing the iterator cancels the turn, and ends an agent that goes on all the same."""
        if not request.conversation:
            raise ProviderError(
                f"{self._who} keeps its conversations itself; this is not for it.",
                code="AGENT_NOT_ASKED",
            )
        if self._busy:
            hint = "Wait for the answer, or cancel it."
            raise ProviderError(
                f"{self._who} works in another conversation.", code="AGENT_BUSY", hint=hint
            )
        self._busy, turn, failure = True, Turn(self._who), None
        changed = await asyncio.to_thread(self.watch)
        finished = Finished("error")
        try:
            async with (
                self.proposals(turn.propose, self._listed.set) as reachable,
                contextlib.aclosing(self._deltas(request, turn, reachable)) as deltas,
            ):
                async for delta in deltas:
                    await self._noted(delta)
                    if isinstance(delta, Finished):
                        finished = delta
                    else:
                        yield delta
        except ProviderError as error:
            failure = error
        except BaseException:
            while not turn.deltas.empty():
                await self._noted(turn.deltas.get_nowait())
            if (alarm := await asyncio.to_thread(changed)) is not None:
                self._tell(alarm)
                await self._noted(Remark(alarm, alarm=True))
            raise
        finally:
            self._busy = False
            self._tell()
        if (alarm := await asyncio.to_thread(changed)) is not None:
            await self._noted(remark := Remark(alarm, alarm=True))
            yield remark
        if failure is not None:
            raise failure
        if turn.plan is not None:
            yield ToolCallChunk(0, json.dumps({"plan": turn.plan}), "", "propose_plan")
        yield finished

    async def _noted(self, delta: ChatDelta | None) -> None:
        if isinstance(delta, OwnCall | Remark):
            await asyncio.to_thread(self.note, delta)

    async def _deltas(
        self, request: ChatRequest, turn: Turn, reachable: bool
    ) -> AsyncGenerator[ChatDelta, None]:
        silence = SILENCE if request.timeout is None else request.timeout
        try:
            async with asyncio.timeout(max(silence, START)):
                await self._connect()
                opened = set(self._open)
                self._listed.clear()
                session, pieces = await self._placed(request)
            if not reachable:
                yield Remark(_unreachable(self._who))
            elif self.lists_tools and session not in opened and not await self._tools_listed():
                yield Remark(_without_tools(self._who))
        except TimeoutError:
            await self._end()
            raise ProviderError(
                f"{self._who} did not begin to work within {max(silence, START):.0f} seconds.",
                code="API_TIMEOUT",
                hint=self._log_hint,
            ) from None
        self._session, self._turn = session, turn
        self._tell(state="working")
        asked = asyncio.create_task(self._prompt(session, pieces, turn))
        asked.add_done_callback(lambda _: turn.deltas.put_nowait(None))
        try:
            while True:
                async with asyncio.timeout(silence):
                    delta = await turn.deltas.get()
                if delta is None:
                    break
                yield delta
            finished = asked.result()
        except TimeoutError:
            message = f"{self._who} gave no sign for {silence:.0f} seconds and was stopped."
            raise ProviderError(message, code="API_TIMEOUT") from None
        finally:
            self._turn = None
            if not asked.done():
                await self._stop(asked)
        self._remember(request, session)
        yield finished

    async def _tools_listed(self) -> bool:
        """Wait until our MCP server has answered the agent's request for its tools: without them it answers blindly."""
        try:
            async with asyncio.timeout(TOOLS):
                await self._listed.wait()
        except TimeoutError:
            return False
        return True

    async def _connect(self) -> None:
        """Start the agent where it is gone. Raises `ProviderError`."""
        self._count_anew()
        if not self.alive:
            await self._end()
            self._tell(state="connecting")
            try:
                await self._start()
            except BaseException:
                await self._end()
                raise

    async def _stop(self, asked: asyncio.Task[Finished]) -> None:
        """Cancel a turn; end the agent where that does not help."""
        with contextlib.suppress(ConnectionError, TimeoutError, ProviderError):
            async with asyncio.timeout(GOODBYE):
                await self._cancel(self._session)
                await asyncio.wait([asked])
        if not asked.done():
            asked.cancel()
            await self._end()
        else:
            asked.exception()

    def _tell(self, alarm: Problem | None = None, *, state: State | None = None) -> None:
        self.tell(AgentState(self.name, state or ("ready" if self.alive else "gone"), alarm))

    # --- sessions ------------------------------------------------------------------------------------------------------------------

    async def _placed(self, request: ChatRequest) -> tuple[str, list[str]]:
        """The session of a conversation, and what of the request is new to it."""
        system, messages = request.messages[0], request.messages[1:]
        known = (await asyncio.to_thread(self._known)).get(request.conversation)
        if known is not None and _digest(messages[: known.count]) == known.digest:
            # What follows directly is its own answer.
            new = next(
                (
                    at
                    for at in range(known.count, len(messages))
                    if messages[at].role != "assistant"
                ),
                len(messages),
            )
            if known.id in self._open or await self._resumed(known.id):
                self._open.add(known.id)
                return known.id, [_transcript(messages[new:])]
        session = await self._begin()
        self._open.add(session)
        return session, [system.text, _transcript(messages)]

    async def _resumed(self, session: str) -> bool:
        try:
            return await self._resume(session)
        except ProviderError as error:
            if error.code != "AGENT_ERROR":
                raise
            return False

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


def _without_tools(who: str) -> Problem:
    return Problem(
        "AGENT_WITHOUT_TOOLS",
        f"{who} did not ask for the vault's tools within {TOOLS:.0f} seconds. Its answer may not be based on your notes.",
    )


def _unreachable(who: str) -> Problem:
    return Problem(
        "PROPOSALS_UNREACHABLE",
        f"Plans that {who} proposes cannot be shown here: the socket for them cannot be opened. "
        "They wait until you run them with plans run.",
    )


def shown(value: Any) -> str:
    return (
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    )[:200]


def tokens(value: Any) -> int:
    """A count as it was told; 0 for what is none."""
    return value if isinstance(value, int) and value >= 0 else 0


def _digest(messages: Sequence[ChatMessage]) -> str:
    said = [[each.role, each.text] for each in messages]
    return hashlib.sha256(json.dumps(said).encode("ascii")).hexdigest()


def _transcript(messages: Sequence[ChatMessage]) -> str:
    """What the agent was not told yet; an earlier conversation as one text before the last message."""
    *earlier, last = messages
    if not earlier:
        return last.text
    role = {
        "user": "THE PERSON",
        "assistant": "THE ASSISTANT",
        "tool": "RESULT",
        "system": "SYSTEM",
    }
    return "\n\n".join(
        [
            "# Said before",
            *(f"{role[each.role]}: {each.text}" for each in earlier if each.text),
            "# Now",
            last.text,
        ]
    )


def environment(**config: Any) -> dict[str, str]:
    """What the person's programs see, without our own keys and where we were started; `config` is what else OpenCode is told."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("OBSIDIAN_AGENT_") and key not in ("PWD", "OLDPWD")
    }
    own: Any = None
    with contextlib.suppress(ValueError):
        own = json.loads(kept.get("OPENCODE_CONFIG_CONTENT", ""))
    return kept | {
        "OPENCODE_CONFIG_CONTENT": json.dumps(
            {**(own if isinstance(own, dict) else {}), **DENIED, **config}
        )
    }


def agent_command(name: str, own: Mapping[str, str]) -> tuple[str, ...]:
    """The command of an agent, from the person's settings or those that are known. Raises `ConfigError`."""
    line = own.get(name) or COMMANDS.get(name)
    if line is None:
        known = ", ".join(dict.fromkeys([*own, *COMMANDS]))
        raise ConfigError(
            f"There is no agent {name!r}; there are {known}.",
            code="AGENT_NOT_FOUND",
            hint="Name its command under agents.",
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
    """Whether a provider is an agent that looks around by itself."""
    return provider.name.startswith(f"{ACP}/")
