"""The agent of editors and other programs, over the Agent Client Protocol.

A client sends messages and displays the answers; planner, preview, executor and journal are those
of the app. A session of the client is a thread of the vault, and can be continued in the app.

Protocol: agentclientprotocol.com, version 1.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from acp import PROTOCOL_VERSION, AgentSideConnection, RequestError
from acp.schema import (
    AgentCapabilities,
    AudioContentBlock,
    ClientCapabilities,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    Implementation,
    InitializeResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    ResourceContentBlock,
    SetSessionModeResponse,
    TextContentBlock,
)

from obsidian_agent import __version__
from obsidian_agent.agent.context import mention_of
from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.integrations.acp_conversation import (
    AcpClient,
    AcpOptions,
    ConversationParts,
    EditorConversation,
)

MAX_MESSAGE: Final = 50 << 20
"""Bytes of one message of a client, which may hold a file that it embeds."""
_NAME: Final = "obsidian-agent"
_UNREADABLE: Final = (
    "Images and sound cannot be read here. Your message was not used: send its text alone, "
    "or attach a note."
)


class EditorAgent:
    """The sessions of one client. The methods are those of the protocol."""

    def __init__(self, options: AcpOptions) -> None:
        self._options = options
        self._connection: AgentSideConnection | None = None
        self._client: AcpClient | None = None
        self._conversations: dict[str, EditorConversation] = {}
        self._announcing: set[asyncio.Task[None]] = set()

    def on_connect(self, connection: AgentSideConnection) -> None:
        """Use this connection."""
        self._connection = connection

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: ClientCapabilities | None = None,
        client_info: Implementation | None = None,
        **_: Any,
    ) -> InitializeResponse:
        """Agree on the version of the protocol, and on what each side can do."""
        assert self._connection is not None
        offered = client_capabilities.elicitation if client_capabilities is not None else None
        self._client = AcpClient(
            self._connection,
            name=(client_info.title or client_info.name) if client_info is not None else "ACP",
            has_forms=offered is not None and offered.form is not None,
        )
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(
                load_session=True, prompt_capabilities=PromptCapabilities(embedded_context=True)
            ),
            agent_info=Implementation(name=_NAME, title="Obsidian Agent", version=__version__),
            auth_methods=[],
        )

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        """Start a conversation. The client's folder and its MCP servers are not used."""
        conversation = await self._open(None)
        return NewSessionResponse(session_id=conversation.id, modes=conversation.modes)

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> LoadSessionResponse:
        """Continue a conversation, after its messages were sent."""
        conversation = self._conversations.get(session_id) or await self._open(session_id)
        await conversation.replay()
        return LoadSessionResponse(modes=conversation.modes)

    async def set_session_mode(
        self, session_id: str, mode_id: str, **_: Any
    ) -> SetSessionModeResponse:
        """Change the mode of a session."""
        await self._conversation(session_id).set_mode(mode_id)
        return SetSessionModeResponse()

    async def prompt(self, session_id: str, prompt: Sequence[Any], **_: Any) -> PromptResponse:
        """Answer a message."""
        conversation = self._conversation(session_id)
        if any(isinstance(block, ImageContentBlock | AudioContentBlock) for block in prompt):
            conversation.write(_UNREADABLE)
            await conversation.flush()
            return PromptResponse(stop_reason="end_turn")
        message = partial(message_text, prompt, conversation.root)
        return PromptResponse(stop_reason=await conversation.prompt(message))

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Cancel the turn of a session."""
        if session_id in self._conversations:
            self._conversations[session_id].cancel()

    async def close(self) -> None:
        """End all conversations."""
        for conversation in self._conversations.values():
            await conversation.close()

    async def _open(self, thread_id: str | None) -> EditorConversation:
        if self._client is None:
            raise RequestError.invalid_request({"details": "Send initialize first."})

        def open_thread() -> tuple[ConversationParts, Any]:
            parts = self._options.open()
            threads = parts.threads
            return parts, threads.create() if thread_id is None else threads.open(thread_id)

        try:
            parts, thread = await asyncio.to_thread(open_thread)
        except ObsidianAgentError as error:
            if thread_id is not None:  # clients then begin another session
                raise RequestError.resource_not_found(thread_id) from error
            raise RequestError.invalid_params({"details": error.message}) from error
        conversation = EditorConversation(self._client, parts, thread, self._options)
        self._conversations[conversation.id] = conversation
        # The client knows the session once it has the response, which is sent first.
        task = asyncio.ensure_future(conversation.announce())
        self._announcing.add(task)
        task.add_done_callback(self._announcing.discard)
        return conversation

    def _conversation(self, session_id: str) -> EditorConversation:
        conversation = self._conversations.get(session_id)
        if conversation is None:
            raise RequestError.resource_not_found(session_id)
        return conversation


def message_text(blocks: Sequence[Any], root: PurePath) -> tuple[str, list[str]]:
    """Return the blocks of a message as text, and the names of those that are not used. May block.

    Files of the vault are mentions, as in the app: what a client embeds is read from the vault,
    under the rules for what may be sent. Files outside it are only named.
    """
    parts: list[str] = []
    unread: list[str] = []
    for block in blocks:
        match block:
            case TextContentBlock():
                parts.append(block.text)
                continue
            case ResourceContentBlock():
                uri = block.uri
            case EmbeddedResourceContentBlock():
                uri = block.resource.uri
            case _:
                continue
        address = urlsplit(uri)
        path = unquote(address.path)
        note = _note_at(path, root) if address.scheme == "file" else None
        if note is None:
            unread.append(PurePath(path).name or uri)
            parts.append(f"(a file outside the vault: {unread[-1]})")
        else:
            parts.append(mention_of(note))
    return "".join(parts), unread


def _note_at(path: str, root: PurePath) -> str | None:
    """Return the name of a file of the vault, None for another. The vault may be reached by a link.

    A link in the vault counts by its own name, as everywhere.
    """
    if "\0" in path:
        return None
    for location in (os.path.normpath(path), os.path.realpath(path)):
        if PurePath(location).is_relative_to(root):
            name = PurePath(location).relative_to(root).as_posix().removesuffix(".md")
            return None if '"' in name or "\n" in name else name
    return None


def serve(options: AcpOptions, signals: Sequence[signal.Signals]) -> bool:
    """Serve a client on standard input and output. Return False if a signal ended it."""
    return asyncio.run(_serve(options, signals))


async def _serve(options: AcpOptions, signals: Sequence[signal.Signals]) -> bool:
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in signals:
        with contextlib.suppress(NotImplementedError):  # Windows
            loop.add_signal_handler(number, stopped.set)
    reader, writer = await _streams()
    agent = EditorAgent(options)
    connection = AgentSideConnection(lambda _: agent, writer, reader, listening=False)
    listening = asyncio.ensure_future(connection.listen())
    stopping = asyncio.ensure_future(stopped.wait())
    try:
        await asyncio.wait((listening, stopping), return_when=asyncio.FIRST_COMPLETED)
    finally:
        await agent.close()
        for task in (listening, stopping):
            task.cancel()
        await asyncio.gather(listening, stopping, return_exceptions=True)
        with contextlib.suppress(ConnectionError):
            await connection.close()
    return not stopped.is_set()


async def _streams() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return the client's streams. What else is printed goes to standard error."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=MAX_MESSAGE)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    sys.stdout.flush()
    output = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.streams.FlowControlMixin(loop=loop), output
    )
    return reader, asyncio.StreamWriter(transport, protocol, None, loop)
