"""OpenCode by its own HTTP server and the events that it streams, on this machine only.

Either `opencode serve` is started here, with a password of its own, told of our MCP server and of what it may not; or the person's
settings name one that runs already (`http://127.0.0.1:PORT`, its password in OPENCODE_SERVER_PASSWORD). That one is told of our server
too. A session here may use our tools and no other.

A turn is one request that answers at its end (`POST /session/ID/message`); what happens meanwhile comes as events. A stream of events that ends
early is opened again, and what was missed is read from the session's messages. Routes and events: OpenCode 1.18, `GET /doc`; version 2 has others.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import secrets
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from obsidian_agent.dataclass import dataclass, field
from obsidian_agent.errors import ConfigError, ProviderError
from obsidian_agent.providers.agent_process import MOST_BYTES, AgentProcess
from obsidian_agent.providers.base import Finished, Usage
from obsidian_agent.providers.other_agent import (
    OURS,
    SERVER,
    START,
    OtherAgent,
    Turn,
    environment,
    shown,
    tokens,
)
from obsidian_agent.state_files import make_private

if TYPE_CHECKING:
    import httpx

PASSWORD: Final = "OPENCODE_SERVER_PASSWORD"
QUICK: Final = 30.0
"""Seconds for everything but a turn."""
EVENTS_SILENT: Final = 30.0
"""Seconds without an event or a heartbeat, of which there is one every ten, until the stream is opened again."""
PAUSE: Final = 0.5
"""Seconds between two attempts to open it."""

_READY: Final = re.compile(rb"listening on (http://\S+)")


def speaks_http(command: Sequence[str]) -> bool:
    """Whether a command of the settings is an OpenCode server, to be started or running."""
    return command[0].startswith("http:") or "serve" in command[1:]


@dataclass(slots=True)
class _Heard:
    """What was heard of the session in a turn. `old` are the messages that were there before, `texts` what of each part was handed on."""

    turn: Turn
    session: str
    old: frozenset[str]
    replies: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    """Parts that were read from the messages: what a delta adds to them may have been read already, so the next whole one counts."""
    kinds: dict[str, str] = field(default_factory=dict)
    texts: dict[str, int] = field(default_factory=dict)
    tokens: dict[str, tuple[int, int, int]] = field(default_factory=dict)

    def message(self, info: Mapping[str, Any]) -> None:
        if (
            info.get("role") == "assistant"
            and isinstance(id := info.get("id"), str)
            and id not in self.old
        ):
            self.replies.add(id)
            if isinstance(told := info.get("tokens"), dict):
                cache = told.get("cache")
                read = tokens(cache.get("read")) if isinstance(cache, dict) else 0
                self.tokens[id] = (
                    tokens(told.get("input")) + read,
                    tokens(told.get("output")) + tokens(told.get("reasoning")),
                    read,
                )

    def part(self, part: Mapping[str, Any]) -> None:
        """A part of a message as it is now."""
        id, kind = part.get("id"), part.get("type")
        if (
            not isinstance(id, str)
            or not isinstance(kind, str)
            or part.get("messageID") not in self.replies
        ):
            return
        self.kinds[id] = kind
        if isinstance(text := part.get("text"), str):
            self._say(id, text[self.texts.get(id, 0) :])
        elif kind == "tool" and isinstance(state := part.get("state"), dict):
            status = {"error": "failed"}.get(str(state.get("status")), state.get("status"))
            self.turn.call(id, part.get("tool"), state.get("input"), status)

    def _say(self, id: str, text: str) -> None:
        if text and self.kinds.get(id) in ("text", "reasoning"):
            self.texts[id] = self.texts.get(id, 0) + len(text)
            self.turn.say(text, thinking=self.kinds[id] == "reasoning")

    def event(self, kind: str, about: Mapping[str, Any]) -> None:
        """An event, of which what is not known is left out."""
        match kind, about.get("info"), about.get("part"):
            case "message.updated", dict(info), _ if info.get("sessionID") == self.session:
                self.message(info)
            case "message.part.updated", _, dict(part):
                self.part(part)
            case "message.part.delta", _, _ if (
                about.get("field") == "text" and about.get("messageID") in self.replies
            ):
                if (id := str(about.get("partID"))) not in self.read:
                    self._say(id, str(about.get("delta", "")))

    def usage(self) -> Usage | None:
        return Usage(*map(sum, zip(*self.tokens.values(), strict=True))) if self.tokens else None


@dataclass(slots=True)
class OpenCodeServer(OtherAgent):
    """An OpenCode that is spoken to by HTTP."""

    _process: AgentProcess | None = None
    _client: httpx.AsyncClient | None = None
    _said: int = 0
    """Bytes of this turn."""
    _flooded: bool = False

    @property
    def address(self) -> str:
        return self.command[0] if self._attached else f"http:{os.path.basename(self.command[0])}"

    @property
    def _attached(self) -> bool:
        return self.command[0].startswith("http:")

    @property
    def alive(self) -> bool:
        return self._client is not None and (self._process is None or self._process.alive)

    # --- the program ---------------------------------------------------------------------------------------------------------------

    async def _start(self) -> None:
        if self._attached:
            await asyncio.to_thread(make_private, self.folder / "work")
            self._open_client(_loopback(self.command[0]), os.environ.get(PASSWORD, ""))
        else:
            await self._serve()
        health = await self._call("GET", "/global/health")
        if not isinstance(health, dict) or not str(health.get("version", "")).startswith("1."):
            message = f"{self._who} is no OpenCode 1: of another version this program does not know how to ask it."
            raise ProviderError(
                message, code="AGENT_ERROR", hint="Install opencode-ai 1.18, or use `opencode acp`."
            )
        if self._attached:
            await self._call("POST", "/mcp", {"name": SERVER, "config": self._our_server()}, START)

    def _count_anew(self) -> None:
        self._said, self._flooded = 0, False

    async def _serve(self) -> None:
        password = secrets.token_urlsafe(24)
        told = environment(mcp={SERVER: self._our_server()}) | {PASSWORD: password}
        command = (*self.command, "--hostname", "127.0.0.1", "--port", "0")
        process = self._process = await AgentProcess.start(
            command, self.folder / "work", told, self.log
        )
        assert (output := process.protocol.stdout) is not None
        while not (
            ready := _READY.search(line := await output.readline())
        ):  # before that it accepts connections and never answers
            if not line:
                raise ProviderError(
                    f"{self._who} did not start ({process.last_words()}).",
                    code="AGENT_GONE",
                    hint=self._log_hint,
                )
        self._open_client(_loopback(ready[1].decode("ascii", "replace")), password)

    def _our_server(self) -> dict[str, Any]:
        given = {each["name"]: each["value"] for each in self.server["env"]}
        return {
            "type": "local",
            "command": [self.server["command"], *self.server["args"]],
            "environment": given,
            "enabled": True,
            "timeout": 60_000,
        }

    def _open_client(self, address: str, password: str) -> None:
        import httpx

        auth = httpx.BasicAuth("opencode", password) if password else None
        self._client = httpx.AsyncClient(
            base_url=address,
            params={"directory": str(self.folder / "work")},
            auth=auth,
            timeout=QUICK,
            trust_env=False,
        )

    async def _end(self) -> None:
        client, self._client, process, self._process = self._client, None, self._process, None
        self._open.clear()
        if client is not None:
            await client.aclose()
        if process is not None:
            await process.end()

    async def _call(
        self, method: str, path: str, body: Any = None, seconds: float | None = QUICK
    ) -> Any:
        """What a request answers as JSON, None where it is none. Raises `ProviderError`."""
        import httpx

        said = bytearray()
        try:
            async with self._request(method, path, seconds, body) as response:
                async for piece in response.aiter_bytes():
                    await self._limit(piece)
                    said += piece
        except httpx.HTTPError as error:
            raise await self._gone(error) from error
        document: Any = None
        with contextlib.suppress(ValueError, RecursionError):
            document = json.loads(said)
        if response.status_code >= 400:
            hint = f"Put its password into {PASSWORD}." if response.status_code == 401 else None
            raise ProviderError(
                f"{self._who} refused: {shown(document)} ({response.status_code}).",
                code="AGENT_ERROR",
                hint=hint,
            )
        return document

    def _request(
        self, method: str, path: str, seconds: float | None, body: Any = None
    ) -> AbstractAsyncContextManager[httpx.Response]:
        """A request; `seconds` may pass between two pieces of its answer."""
        import httpx

        if self._client is None:
            raise self._over("it was ended")
        return self._client.stream(
            method, path, json=body, timeout=httpx.Timeout(QUICK, read=seconds)
        )

    async def _limit(self, piece: bytes) -> None:
        self._said += len(piece)
        if self._said > MOST_BYTES:
            self._flooded = True
            raise await self._gone(None)

    async def _gone(self, error: Exception | None) -> ProviderError:
        """End what does not answer any more, and say why."""
        process = self._process
        if process is not None and not self._flooded:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.protocol.exited.wait(), 1.0)
        why = (
            process.last_words()
            if process is not None and not process.alive
            else str(error) or type(error).__name__
        )
        await self._end()
        if self._flooded:
            return self._flood()
        return self._over(why, "Start it again.") if self._attached else self._over(why)

    # --- sessions and turns ----------------------------------------------------------------------------------------------------------

    async def _begin(self) -> str:
        rules = [
            {"permission": name, "pattern": "*", "action": action}
            for name, action in (("*", "deny"), (f"{SERVER}_*", "allow"))
        ]
        made = await self._call(
            "POST", "/session", {"title": SERVER, "permission": rules}
        )  # the last one that fits counts
        return _id(str(made.get("id") if isinstance(made, dict) else ""))

    async def _resume(self, session: str) -> bool:
        await self._call("GET", f"/session/{_id(session)}")
        return True

    async def _prompt(self, session: str, pieces: Sequence[str], turn: Turn) -> Finished:
        heard = _Heard(
            turn, session, frozenset(each["info"]["id"] for each in await self._messages(session))
        )
        opened = asyncio.get_running_loop().create_future()
        tasks = [listening := asyncio.create_task(self._follow(heard, opened))]
        try:
            await asyncio.wait(
                (listening, opened), timeout=QUICK, return_when=asyncio.FIRST_COMPLETED
            )
            body = {"parts": [{"type": "text", "text": piece} for piece in pieces]}
            tasks.append(
                asked := asyncio.create_task(
                    self._call("POST", f"/session/{session}/message", body, None)
                )
            )
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            answered = asked.result() if asked.done() else listening.result()
            await self._catch_up(heard)
        finally:
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        info = answered.get("info") if isinstance(answered, dict) else None
        info = info if isinstance(info, dict) else {}
        if (
            isinstance(error := info.get("error"), dict)
            and error.get("name") != "MessageOutputLengthError"
        ):
            said = error.get("data")
            raise ProviderError(
                f"{self._who} failed: {shown(said.get('message') if isinstance(said, dict) else error)}.",
                code="AGENT_ERROR",
            )
        return Finished(
            "length" if info.get("finish") == "length" or info.get("error") else "stop",
            heard.usage(),
        )

    async def _cancel(self, session: str) -> None:
        await self._call("POST", f"/session/{session}/abort")

    async def _messages(self, session: str) -> list[dict[str, Any]]:
        found = await self._call("GET", f"/session/{session}/message")
        listed = found if isinstance(found, list) else []
        return [
            each
            for each in listed
            if isinstance(each, dict)
            and isinstance(each.get("info"), dict)
            and "id" in each["info"]
        ]

    async def _catch_up(self, heard: _Heard) -> None:
        """Read what the session holds, and hand on what no event has told; refuse what it waits for."""
        for each in await self._messages(heard.session):
            heard.message(each["info"])
            for part in each.get("parts", ()):
                heard.part(part)
                heard.read.add(str(part.get("id")))
        waiting = await self._call("GET", "/permission")
        for asked in waiting if isinstance(waiting, list) else ():
            await self._permission(heard, asked)

    async def _follow(self, heard: _Heard, opened: asyncio.Future[None]) -> None:
        """Hand on events for as long as the turn goes on, over as many streams as it takes. Raises `ProviderError`."""
        while True:
            with contextlib.suppress(ConnectionError):
                async with contextlib.aclosing(self._events()) as events:
                    async for kind, about in events:
                        if kind == "server.connected" and opened.done():
                            await self._catch_up(heard)
                        elif kind == "permission.asked":
                            await self._permission(heard, about)
                        else:
                            heard.event(kind, about)
                        if not opened.done():
                            opened.set_result(None)
            await asyncio.sleep(PAUSE)

    async def _events(self) -> AsyncGenerator[tuple[str, Mapping[str, Any]], None]:
        """One stream of events. Raises ConnectionError when it is cut, `ProviderError` when there is too much of it."""
        import httpx

        kept = b""
        try:
            async with self._request("GET", "/event", EVENTS_SILENT) as response:
                async for piece in response.aiter_bytes():
                    await self._limit(piece)
                    *lines, kept = (kept + piece).split(b"\n")
                    for line in lines:
                        event: Any = None
                        with contextlib.suppress(ValueError, RecursionError):
                            event = (
                                json.loads(line.removeprefix(b"data:"))
                                if line.startswith(b"data:")
                                else None
                            )
                        if isinstance(event, dict) and isinstance(event.get("properties"), dict):
                            yield str(event.get("type")), event["properties"]
        except httpx.HTTPError as error:
            raise ConnectionError from error

    async def _permission(self, heard: _Heard, asked: Any) -> None:
        """Yes to our own tools, no to everything else; of a server that is the person's, only in our session."""
        if (
            not isinstance(asked, dict)
            or asked.get("sessionID") != heard.session
            and self._attached
        ):
            return
        name = str(asked.get("permission") or "a tool")[:200]
        ours = name.startswith(f"{SERVER}_") and OURS.fullmatch(name) is not None
        if not ours:
            heard.turn.refuse(name, asked.get("metadata") or asked.get("patterns"))
        with contextlib.suppress(ProviderError):
            reply = (
                {"reply": "once"}
                if ours
                else {"reply": "reject", "message": "Only the tools of obsidian-agent may be used."}
            )
            await self._call("POST", f"/permission/{_id(str(asked.get('id')))}/reply", reply)


def _id(text: str) -> str:
    """An id of the server's, as part of a path. Raises `ProviderError` for what is none."""
    if re.fullmatch(r"\w{1,100}", text, re.ASCII) is None:
        raise ProviderError(
            f"OpenCode named something {shown(text)!r}, which is no id.", code="AGENT_ERROR"
        )
    return text


def _loopback(address: str) -> str:
    """An address of this machine. Raises `ConfigError` for any other."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
        if (
            parts.scheme == "http"
            and port
            and "@" not in address
            and (host == "localhost" or ip_address(host).is_loopback)
        ):
            return f"http://{f'[{host}]' if ':' in host else host}:{port}"
    except ValueError:
        pass
    hint = f"Name one like http://127.0.0.1:4096 under agents; its password goes into {PASSWORD}."
    raise ConfigError(f"{address!r} is no address of an OpenCode on this machine.", hint=hint)
