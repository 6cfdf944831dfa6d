"""OpenCode over its own HTTP server and event stream, on this machine only.

Either `opencode serve` is started here, with a random password, our MCP server and restricted
permissions; or the user's settings name a server that already runs (`http://127.0.0.1:PORT`, with
its password in OPENCODE_SERVER_PASSWORD), to which our MCP server is added. Our sessions may use
only our tools.

A turn is one request that is answered at its end (`POST /session/ID/message`); progress arrives as
events. If the event stream breaks, it is opened again, and missed events are read from the messages
of the session. Routes and events: OpenCode 1.18, `GET /doc`; version 2 has others.
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

from msgspec import Struct, field

from obsidian_agent.errors import ConfigError, ProviderError
from obsidian_agent.providers.agent_process import MOST_BYTES, AgentProcess
from obsidian_agent.providers.base import Finished, Usage
from obsidian_agent.providers.other_agent import (
    OUR_TOOL,
    SERVER,
    START_TIMEOUT,
    OtherAgent,
    Turn,
    environment,
    excerpt,
    tokens,
)
from obsidian_agent.state_files import make_private

if TYPE_CHECKING:
    import httpx

PASSWORD: Final = "OPENCODE_SERVER_PASSWORD"
REQUEST_TIMEOUT: Final = 30.0
"""Timeout in seconds of every request except a turn."""
EVENTS_TIMEOUT: Final = 30.0
"""Seconds without an event until the stream is opened again. Heartbeats come every ten seconds."""
PAUSE: Final = 0.5
"""Seconds between two attempts to open the event stream."""

_READY: Final = re.compile(rb"listening on (http://\S+)")


def speaks_http(command: Sequence[str]) -> bool:
    """Return True if a command of the settings starts or addresses an OpenCode server."""
    return command[0].startswith("http:") or "serve" in command[1:]


class _SessionReader(Struct):
    """Forwards the new messages of a session to the turn, from events and from the message list."""

    turn: Turn
    session: str
    earlier: frozenset[str]
    """Ids of the messages before the turn."""
    replies: set[str] = field(default_factory=set)
    """Ids of the answers in this turn."""
    listed: set[str] = field(default_factory=set)
    """Ids of parts that were read from the message list.

    Later deltas of such a part may repeat text, so they are ignored until the next complete part.
    """
    kinds: dict[str, str] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)
    """Number of characters of each part that were forwarded."""
    tokens: dict[str, tuple[int, int, int]] = field(default_factory=dict)

    def read_message(self, info: Mapping[str, Any]) -> None:
        """Register a message if it is an answer of this turn, with its current token counts."""
        id = info.get("id")
        if info.get("role") != "assistant" or not isinstance(id, str) or id in self.earlier:
            return
        self.replies.add(id)
        counts = info.get("tokens")
        if isinstance(counts, dict):
            cache = counts.get("cache")
            cached = tokens(cache.get("read")) if isinstance(cache, dict) else 0
            self.tokens[id] = (
                tokens(counts.get("input")) + cached,
                tokens(counts.get("output")) + tokens(counts.get("reasoning")),
                cached,
            )

    def read_part(self, part: Mapping[str, Any]) -> None:
        """Forward what is new in the current state of a part of a message."""
        id, kind = part.get("id"), part.get("type")
        if (
            not isinstance(id, str)
            or not isinstance(kind, str)
            or part.get("messageID") not in self.replies
        ):
            return
        self.kinds[id] = kind
        if isinstance(text := part.get("text"), str):
            self._add_text(id, text[self.lengths.get(id, 0) :])
        elif kind == "tool" and isinstance(state := part.get("state"), dict):
            status = state.get("status")
            if status == "error":
                status = "failed"
            self.turn.update_call(id, part.get("tool"), state.get("input"), status)

    def _add_text(self, id: str, text: str) -> None:
        if text and self.kinds.get(id) in ("text", "reasoning"):
            self.lengths[id] = self.lengths.get(id, 0) + len(text)
            self.turn.add_text(text, thinking=self.kinds[id] == "reasoning")

    def read_event(self, kind: str, properties: Mapping[str, Any]) -> None:
        """Process an event. Unknown kinds are ignored."""
        match kind, properties.get("info"), properties.get("part"):
            case "message.updated", dict(info), _ if info.get("sessionID") == self.session:
                self.read_message(info)
            case "message.part.updated", _, dict(part):
                self.read_part(part)
            case "message.part.delta", _, _ if (
                properties.get("field") == "text" and properties.get("messageID") in self.replies
            ):
                if (id := str(properties.get("partID"))) not in self.listed:
                    self._add_text(id, str(properties.get("delta", "")))

    def usage(self) -> Usage | None:
        """Return the tokens of all answers of this turn, or None if unknown."""
        if not self.tokens:
            return None
        return Usage(*map(sum, zip(*self.tokens.values(), strict=True)))


class OpenCodeServer(OtherAgent):
    """An OpenCode server, which is started here or attached to."""

    _process: AgentProcess | None = None
    _client: httpx.AsyncClient | None = None
    _received: int = 0
    """Bytes received in this turn."""
    _flooded: bool = False
    _end_reason: str = ""
    """The reason of its end, for requests of the same turn that find it gone."""

    @property
    def address(self) -> str:
        """The address of the server, or the program that is started."""
        if self._is_attached:
            return self.command[0]
        return f"http:{os.path.basename(self.command[0])}"

    @property
    def _is_attached(self) -> bool:
        return self.command[0].startswith("http:")

    @property
    def alive(self) -> bool:
        """True while the server is connected and its process, if started here, runs."""
        return self._client is not None and (self._process is None or self._process.alive)

    async def _start(self) -> None:
        if self._is_attached:
            await asyncio.to_thread(make_private, self.folder / "work")
            self._open_client(_loopback(self.command[0]), os.environ.get(PASSWORD, ""))
        else:
            await self._serve()
        health = await self._call("GET", "/global/health")
        if not isinstance(health, dict) or not str(health.get("version", "")).startswith("1."):
            message = f"{self._label} is not OpenCode 1. Other versions are not supported."
            raise ProviderError(
                message, code="AGENT_ERROR", hint="Install opencode-ai 1.18, or use `opencode acp`."
            )
        if self._is_attached:
            await self._call(
                "POST", "/mcp", {"name": SERVER, "config": self._our_server()}, START_TIMEOUT
            )

    def _reset_count(self) -> None:
        self._received, self._flooded, self._end_reason = 0, False, ""

    async def _serve(self) -> None:
        password = secrets.token_urlsafe(24)
        variables = environment(mcp={SERVER: self._our_server()}) | {PASSWORD: password}
        command = (*self.command, "--hostname", "127.0.0.1", "--port", "0")
        process = self._process = await AgentProcess.start(
            command, self.folder / "work", variables, self.log
        )
        assert (output := process.protocol.stdout) is not None
        # Before this line the server accepts connections but never answers.
        while not (ready := _READY.search(line := await output.readline())):
            if not line:
                raise ProviderError(
                    f"{self._label} did not start ({process.last_words()}).",
                    code="AGENT_GONE",
                    hint=self._log_hint,
                )
        self._open_client(_loopback(ready[1].decode("ascii", "replace")), password)

    def _our_server(self) -> dict[str, Any]:
        variables = {item["name"]: item["value"] for item in self.server["env"]}
        return {
            "type": "local",
            "command": [self.server["command"], *self.server["args"]],
            "environment": variables,
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
            timeout=REQUEST_TIMEOUT,
            trust_env=False,
        )

    async def _end(self) -> None:
        client, self._client = self._client, None
        process, self._process = self._process, None
        self._open.clear()
        if client is not None:
            await client.aclose()
        if process is not None:
            await process.end()

    async def _call(
        self, method: str, path: str, body: Any = None, seconds: float | None = REQUEST_TIMEOUT
    ) -> Any:
        """Return the answer to a request as JSON, None if it is not JSON. Raise `ProviderError`."""
        import httpx

        answer = bytearray()
        try:
            async with self._request(method, path, seconds, body) as response:
                async for piece in response.aiter_bytes():
                    await self._count(piece)
                    answer += piece
        except httpx.HTTPError as error:
            raise await self._end_with(error) from error
        document: Any = None
        with contextlib.suppress(ValueError, RecursionError):
            document = json.loads(answer)
        if response.status_code >= 400:
            hint = f"Set {PASSWORD} to its password." if response.status_code == 401 else None
            raise ProviderError(
                f"{self._label} refused: {excerpt(document)} ({response.status_code}).",
                code="AGENT_ERROR",
                hint=hint,
            )
        return document

    def _request(
        self, method: str, path: str, seconds: float | None, body: Any = None
    ) -> AbstractAsyncContextManager[httpx.Response]:
        """Open a request with a timeout of `seconds` between two pieces of its answer."""
        import httpx

        if self._client is None:
            raise self._exit_error(self._end_reason or "it was stopped")
        return self._client.stream(
            method, path, json=body, timeout=httpx.Timeout(REQUEST_TIMEOUT, read=seconds)
        )

    async def _count(self, piece: bytes) -> None:
        """Count received bytes. End the server and raise `ProviderError` above the limit."""
        self._received += len(piece)
        if self._received > MOST_BYTES:
            self._flooded = True
            raise await self._end_with(None)

    async def _end_with(self, error: Exception | None) -> ProviderError:
        """End a server that failed, and return the error with its reason."""
        process = self._process
        if process is not None and not self._flooded:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.protocol.exited.wait(), 1.0)
        if process is not None and not process.alive:
            reason = process.last_words()
        else:
            reason = self._end_reason or str(error) or type(error).__name__
        self._end_reason = reason
        await self._end()
        if self._flooded:
            return self._flood_error()
        if self._is_attached:
            return self._exit_error(reason, "Start it again.")
        return self._exit_error(reason)

    async def _begin(self) -> str:
        # The last matching rule applies.
        rules = [
            {"permission": name, "pattern": "*", "action": action}
            for name, action in (("*", "deny"), (f"{SERVER}_*", "allow"))
        ]
        session = await self._call("POST", "/session", {"title": SERVER, "permission": rules})
        return _id(str(session.get("id") if isinstance(session, dict) else ""))

    async def _resume(self, session: str) -> bool:
        await self._call("GET", f"/session/{_id(session)}")
        return True

    async def _prompt(self, session: str, pieces: Sequence[str], turn: Turn) -> Finished:
        earlier = frozenset(message["info"]["id"] for message in await self._messages(session))
        reader = _SessionReader(turn, session, earlier)
        opened = asyncio.get_running_loop().create_future()
        following = asyncio.create_task(self._follow(reader, opened))
        tasks = [following]
        try:
            await asyncio.wait(
                (following, opened),
                timeout=REQUEST_TIMEOUT,
                return_when=asyncio.FIRST_COMPLETED,
            )
            body = {"parts": [{"type": "text", "text": piece} for piece in pieces]}
            request = self._call("POST", f"/session/{session}/message", body, None)
            prompting = asyncio.create_task(request)
            tasks.append(prompting)
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            answer = prompting.result() if prompting.done() else following.result()
            await self._catch_up(reader)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return self._finished(answer, reader)

    def _finished(self, answer: Any, reader: _SessionReader) -> Finished:
        """Interpret the answer to a prompt. Raise `ProviderError` if the turn failed."""
        info = answer.get("info") if isinstance(answer, dict) else None
        if not isinstance(info, dict):
            info = {}
        error = info.get("error")
        if isinstance(error, dict) and error.get("name") != "MessageOutputLengthError":
            data = error.get("data")
            reason = data.get("message") if isinstance(data, dict) else error
            raise ProviderError(f"{self._label} failed: {excerpt(reason)}.", code="AGENT_ERROR")
        is_truncated = info.get("finish") == "length" or bool(error)
        return Finished("length" if is_truncated else "stop", reader.usage())

    async def _cancel(self, session: str) -> None:
        await self._call("POST", f"/session/{session}/abort")

    async def _messages(self, session: str) -> list[dict[str, Any]]:
        answer = await self._call("GET", f"/session/{session}/message")
        return [
            message
            for message in (answer if isinstance(answer, list) else [])
            if isinstance(message, dict)
            and isinstance(message.get("info"), dict)
            and "id" in message["info"]
        ]

    async def _catch_up(self, reader: _SessionReader) -> None:
        """Read the messages of the session, and answer the permissions that it waits for."""
        for message in await self._messages(reader.session):
            reader.read_message(message["info"])
            for part in message.get("parts", ()):
                reader.read_part(part)
                reader.listed.add(str(part.get("id")))
        requests = await self._call("GET", "/permission")
        for request in requests if isinstance(requests, list) else ():
            await self._answer_permission(reader, request)

    async def _follow(self, reader: _SessionReader, opened: asyncio.Future[None]) -> None:
        """Forward events until cancelled, and open the stream again when it breaks.

        `opened` is completed at the first event. Raise `ProviderError`.
        """
        while True:
            with contextlib.suppress(ConnectionError):
                async with contextlib.aclosing(self._events()) as events:
                    async for kind, properties in events:
                        if kind == "server.connected" and opened.done():
                            await self._catch_up(reader)
                        elif kind == "permission.asked":
                            await self._answer_permission(reader, properties)
                        else:
                            reader.read_event(kind, properties)
                        if not opened.done():
                            opened.set_result(None)
            await asyncio.sleep(PAUSE)

    async def _events(self) -> AsyncGenerator[tuple[str, Mapping[str, Any]], None]:
        """Yield type and properties of the events of one stream.

        Raise `ConnectionError` if it breaks, `ProviderError` if it exceeds the limit.
        """
        import httpx

        rest = b""
        try:
            async with self._request("GET", "/event", EVENTS_TIMEOUT) as response:
                async for piece in response.aiter_bytes():
                    await self._count(piece)
                    *lines, rest = (rest + piece).split(b"\n")
                    for line in lines:
                        if (event := _event(line)) is not None:
                            yield event
        except httpx.HTTPError as error:
            raise ConnectionError from error

    async def _answer_permission(self, reader: _SessionReader, request: Any) -> None:
        """Allow our own tools and refuse everything else.

        On a server that the user started, only requests of our session are answered.
        """
        if not isinstance(request, dict):
            return
        if self._is_attached and request.get("sessionID") != reader.session:
            return
        name = str(request.get("permission") or "a tool")[:200]
        reply = {"reply": "once"}
        if not name.startswith(f"{SERVER}_") or OUR_TOOL.fullmatch(name) is None:
            reader.turn.refuse(name, request.get("metadata") or request.get("patterns"))
            message = "Only the tools of obsidian-agent may be used."
            reply = {"reply": "reject", "message": message}
        with contextlib.suppress(ProviderError):
            await self._call("POST", f"/permission/{_id(str(request.get('id')))}/reply", reply)


def _event(line: bytes) -> tuple[str, Mapping[str, Any]] | None:
    """Return type and properties of an event from a line of the stream, or None."""
    if not line.startswith(b"data:"):
        return None
    try:
        event = json.loads(line.removeprefix(b"data:"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict) or not isinstance(event.get("properties"), dict):
        return None
    return str(event.get("type")), event["properties"]


def _id(text: str) -> str:
    """Return an id of the server for use in a path. Raise `ProviderError` if it is not valid."""
    if re.fullmatch(r"\w{1,100}", text, re.ASCII) is None:
        raise ProviderError(
            f"OpenCode sent {excerpt(text)!r}, which is not a valid id.", code="AGENT_ERROR"
        )
    return text


def _loopback(address: str) -> str:
    """Return an address of this machine, normalized. Raise `ConfigError` for any other."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
        if (
            parts.scheme == "http"
            and port
            and "@" not in address
            and (host == "localhost" or ip_address(host).is_loopback)
        ):
            if ":" in host:
                host = f"[{host}]"
            return f"http://{host}:{port}"
    except ValueError:
        pass
    raise ConfigError(
        f"{address!r} is not the address of an OpenCode server on this machine.",
        hint=(
            "Enter an address like http://127.0.0.1:4096 under agents in the settings, and set "
            f"{PASSWORD} to its password."
        ),
    )
