"""Resources and prompts of the user's MCP servers.

A message mentions a resource as `@SERVER:URI`. Its text is read when the message is sent, and goes
to the model as data once the user has seen it, or a rule for `mcp__SERVER__URI` covers it. A prompt
is chosen as `/SERVER:NAME`; its text is put into the message box, where the user reads it first.
"""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import time
from collections.abc import Callable, Collection, Mapping
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from obsidian_agent.agent.context import MentionCompletion, ResourceMention, mention_of
from obsidian_agent.agent.events import Emit
from obsidian_agent.agent.mcp_servers import (
    McpServers,
    ServerOffers,
    ServerPrompt,
    decide,
    full_name,
    record_use,
)
from obsidian_agent.agent.privacy.consent import ApproveShare, Gate, ShareRequest
from obsidian_agent.agent.privacy.record import AuditRecord
from obsidian_agent.agent.privacy.untrusted_text import fence, neutral, visible
from obsidian_agent.errors import ConfigError, Problem, ServerError
from obsidian_agent.plan.policy import Policy

MAX_AGE: Final = 30.0
"""Seconds after which the servers are asked again what they offer."""
MAX_URI: Final = 500
MAX_NAME: Final = 100
MAX_TEXT: Final = 200_000
"""Characters of a resource."""
MAX_PROMPT: Final = 20_000
"""Characters of a prompt."""
_CALL: Final = re.compile(r"/([a-zA-Z0-9-]+):(\S+)(?:\s+(.*))?", re.DOTALL)


class ResourceText(Struct, frozen=True):
    """The text of a resource that may be sent."""

    mention: ResourceMention
    text: str

    def fenced(self, mark: str, truncated: str | None = None) -> str:
        """Return the text, or its beginning `truncated`, as data."""
        uri = neutral(json.dumps(self.mention.uri, ensure_ascii=False))
        label = f"resource {uri} of the MCP server {self.mention.server}"
        if truncated is not None and len(truncated) < len(self.text):
            label += ", TRUNCATED: this is its beginning"
        return fence(label, self.text if truncated is None else truncated, mark)


class PromptCall(Struct, frozen=True):
    """A message that chooses a prompt of a server, with the text of its arguments."""

    server: str
    name: str
    arguments: str


def prompt_call(message: str, servers: Collection[str]) -> PromptCall | None:
    """Return the call in `/SERVER:NAME …`, None for other messages."""
    match = _CALL.fullmatch(message.strip())
    if match is None or match.group(1) not in servers:
        return None
    return PromptCall(match.group(1), match.group(2), (match.group(3) or "").strip())


def complete_resources(
    offers: Mapping[str, ServerOffers], typed: str, limit: int
) -> tuple[MentionCompletion, ...]:
    """Return the resources whose address or title contains the text after the `@`."""
    part = typed.casefold()
    matches: list[MentionCompletion] = []
    for server, offer in offers.items():
        for resource in offer.resources:
            name = f"{server}:{resource.uri}"
            if part in name.casefold() or part in resource.title.casefold():
                kind = f"{name}  resource"
                matches.append(MentionCompletion(resource.title, kind, mention_of(name)))
    return tuple(matches[:limit])


def complete_prompts(
    offers: Mapping[str, ServerOffers], typed: str, limit: int
) -> tuple[tuple[str, ServerPrompt], ...]:
    """Return the prompts, each with its server, whose name contains the text after the `/`."""
    part = typed.casefold()
    matches = [
        (server, prompt)
        for server, offer in offers.items()
        for prompt in offer.prompts
        if part in f"{server}:{prompt.name}".casefold()
    ]
    return tuple(matches[:limit])


def usage(prompt: ServerPrompt) -> str:
    """Return the arguments of a prompt as help displays them; the optional ones in brackets."""
    return " ".join(
        argument.name.upper() if argument.required else f"[{argument.name.upper()}]"
        for argument in prompt.arguments
    )


class McpResources(Struct, kw_only=True):
    """The resources and prompts of the user's servers, while the program runs.

    `policy` returns the current rules.
    """

    servers: McpServers
    policy: Callable[[], Policy]
    record: AuditRecord
    known: Mapping[str, ServerOffers] = field(default_factory=dict)
    """The offers of the servers when they were last asked."""
    _read_at: float = 0.0
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def is_current(self) -> bool:
        """True if the servers were asked a moment ago, or there are none."""
        return not self.servers.configured() or time.monotonic() - self._read_at < MAX_AGE

    async def refresh(self, on_offers: Callable[[], object]) -> None:
        """Ask the servers what they offer, unless that is known. Call `on_offers` for each answer.

        A server that fails has no offers.
        """
        async with self._reading:
            if self.is_current:
                return
            await self.servers.close_outdated()
            names = tuple(self.servers.configured())
            self.known = {name: offers for name, offers in self.known.items() if name in names}

            async def ask(name: str) -> None:
                offers = await self._offers(name) or ServerOffers()
                self.known = {**self.known, name: offers}
                on_offers()

            await asyncio.gather(*map(ask, names))
            self._read_at = time.monotonic()

    async def _offers(self, name: str) -> ServerOffers | None:
        """Return what can be mentioned or chosen of a server; None if it does not answer."""
        offers = await self.servers.listed(name, lambda server: server.offers())
        return None if isinstance(offers, Problem) else _typeable(offers)

    async def read(
        self,
        mention: ResourceMention,
        question: ShareRequest,
        gate: Gate,
        approve: ApproveShare,
        emit: Emit,
    ) -> ResourceText | None:
        """Return the text of a resource, or None if the user does not want to send it.

        `question` is completed by the text. Raise `ServerError` if a rule forbids it or the server
        fails, `ConfigError` if it cannot be recorded.
        """
        name = full_name(mention.server, mention.uri)
        verdict = (await asyncio.to_thread(self.policy)).on_call(name)
        if verdict.decision == "deny":
            raise ServerError(
                f"{name} may not be read: {verdict.rule} ({verdict.source}).",
                code="PERMISSION_DENIED",
            )
        connection = await self.servers.connection(mention.server)
        answer = await connection.read(mention.uri)
        if answer.failed:
            raise ServerError(
                f"The MCP server {mention.server} has no {mention.uri}: {answer.text[:200]}",
                code="MCP_RESOURCE_FAILED",
            )
        text = answer.text[:MAX_TEXT]
        allowed_by = "rule" if verdict.decision == "allow" else ""
        if not allowed_by and gate.open:
            allowed_by = "local"
        if not allowed_by and name in gate.grants.tools:
            allowed_by = "granted"
        if not allowed_by:
            question = replace(
                question,
                purpose=f"Send {mention.uri} of the MCP server {mention.server}",
                text=text or "(empty)",
            )
            allowed_by = await decide(question, approve, emit)
            if not allowed_by:
                return None
            if allowed_by == "thread":
                gate.grants.tools.add(name)
        names = {"server": mention.server, "resource": mention.uri}
        await record_use(self.record, text, allowed_by, names)
        return ResourceText(mention, text)

    async def prompt(self, call: PromptCall) -> str:
        """Return the text of a prompt for the message box, with a line that says where it is from.

        Raise `ConfigError` for an unknown prompt or a missing argument, `ServerError` if the server
        fails.
        """
        offers = await self.servers.listed(call.server, lambda server: server.offers())
        if isinstance(offers, Problem):
            raise ServerError(offers.message)
        named = [prompt for prompt in offers.prompts if prompt.name == call.name]
        if not named:
            raise ConfigError(f"The MCP server {call.server} has no prompt “{call.name}”.")
        prompt = named[0]
        arguments = _arguments(prompt, call)
        connection = await self.servers.connection(call.server)
        answer = await connection.prompt(call.name, arguments)
        if answer.failed:
            raise ServerError(f"The MCP server {call.server} refused: {answer.text[:200]}")
        text = visible(answer.text[:MAX_PROMPT])
        if len(answer.text) > MAX_PROMPT:
            text += "\n[truncated]"
        return f"Prompt “{call.name}” of the MCP server {call.server}:\n\n{text}"


def _typeable(offers: ServerOffers) -> ServerOffers:
    """Return the offers with short names, without hidden characters and what ends a mention."""
    resources = (
        resource
        for resource in offers.resources
        if len(resource.uri) <= MAX_URI and _is_plain(resource.uri) and '"' not in resource.uri
    )
    prompts = (
        prompt
        for prompt in offers.prompts
        if len(prompt.name) <= MAX_NAME
        and _is_plain(prompt.name)
        and not re.search(r"\s", prompt.name)
    )
    return ServerOffers(tuple(resources), tuple(prompts))


def _is_plain(text: str) -> bool:
    return visible(text) == text and "\n" not in text


def _arguments(prompt: ServerPrompt, call: PromptCall) -> dict[str, str]:
    """Divide the text after a prompt's name into its arguments; the last one gets the rest."""
    try:
        values = shlex.split(call.arguments)
    except ValueError:  # an apostrophe
        values = call.arguments.split()
    names = [argument.name for argument in prompt.arguments]
    if names and len(values) > len(names):
        last = len(names) - 1
        values = [*values[:last], " ".join(values[last:])]
    missing = [argument.name for argument in prompt.arguments[len(values) :] if argument.required]
    if missing or len(values) > len(names):
        raise ConfigError(f"Usage: /{call.server}:{call.name} {usage(prompt)}".rstrip())
    return dict(zip(names, values, strict=False))
