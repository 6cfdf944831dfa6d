"""Preparation of a turn's first request.

It resolves open files, selection and mentions, asks the user what may be sent, and fits the result
into the model's window.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from obsidian_agent.agent.context import (
    REQUESTED,
    ContextFormat,
    ContextItem,
    Gathered,
    Gatherer,
    Missed,
    beginning,
    fit_items,
    resources_in,
    structured_context,
)
from obsidian_agent.agent.conversation import Conversation
from obsidian_agent.agent.events import Emit, Notice
from obsidian_agent.agent.mcp_resources import McpResources, ResourceText
from obsidian_agent.agent.mcp_tools import McpTools, OfferedTool
from obsidian_agent.agent.privacy.consent import (
    AllowedBy,
    Level,
    RequestKind,
    SharedPart,
    ShareItem,
    ShareRequest,
    tokens_of,
)
from obsidian_agent.agent.privacy.ledger import Sending
from obsidian_agent.agent.replies import Sampling
from obsidian_agent.agent.summaries import old_message_count, summarize
from obsidian_agent.agent.token_budget import (
    UNKNOWN_WINDOW,
    WindowUse,
    divide,
    estimate,
    estimate_messages,
)
from obsidian_agent.agent.trace import Trace
from obsidian_agent.agent.turn.model_tools import Detail
from obsidian_agent.agent.turn.prompts import MAX_FILES, MAX_SELECTION, RequestPrefix
from obsidian_agent.agent.turn.read_calls import Asker, Permission, selection_item
from obsidian_agent.errors import ObsidianAgentError, Problem
from obsidian_agent.providers.base import Provider, Usage
from obsidian_agent.providers.prices import ModelFacts, facts_of
from obsidian_agent.tools.core.tool import AppCommand, RunContext
from obsidian_agent.tools.core.visible_context import visible_context
from obsidian_agent.vault.paths.path import PathUse, parse
from obsidian_agent.vault.views.view import VaultView


class TurnConfig(Struct, frozen=True, kw_only=True):
    """The settings of a turn.

    `instructions` are part of the system prompt, so they may only hold text that the user wrote or
    trusts; `sources` are the files of the vault that they come from. `notices` are emitted at the
    beginning of a turn. `window` is the user's setting for the model's window, in tokens; it
    overrides the list of models. Without `tools` the model may not call any; `only` limits the read
    tools to these. `temperature` overrides the settings.
    """

    instructions: str = ""
    gatherer: Gatherer | None = Gatherer()
    """Collects the context of a message; None for no context."""
    format: ContextFormat = structured_context
    window: int | None = None
    tools: bool = True
    only: frozenset[str] | None = None
    agent: str = ""
    """The vault's agent whose instructions are in use."""
    temperature: float | None = None
    model: str | None = None
    """The model that the vault's agent prefers."""
    sources: tuple[str, ...] = ()
    notices: tuple[Problem, ...] = ()
    trace: Trace | None = None
    facts: Callable[[str], ModelFacts] = facts_of
    servers: McpTools | None = None
    """The tools of MCP servers that the model may call."""
    resources: McpResources | None = None
    """The resources of MCP servers that messages may mention."""
    detail: Detail | None = None
    """The length of the prompt; None chooses it by the model."""


class Preparation(Struct, kw_only=True):
    """The first request of a turn.

    `run` removes denied files from `context` and sets `extra` (the context as text), `parts` (the
    files in it) and `show_selection`.
    """

    provider: Provider
    config: TurnConfig
    conversation: Conversation
    asker: Asker
    open_view: Callable[[], VaultView]
    prefix: RequestPrefix
    sampling: Sampling
    mark: str
    facts: ModelFacts
    context: RunContext
    commands: tuple[AppCommand, ...] = ()
    """The commands of Obsidian that a plan may run."""
    show_selection: bool = False
    extra: str = ""
    parts: list[tuple[SharedPart, AllowedBy]] = field(default_factory=list)
    requested: frozenset[str] = frozenset()
    """The files in `parts` that the user asked for, by a mention for example."""
    usage: Usage | None = None
    """The usage of the request for a summary, if there was one."""
    is_preview: bool = False
    """True for the preview of a request: no model and no server is called."""
    server_tools: Mapping[str, OfferedTool] = field(default_factory=dict)
    """The tools of MCP servers on offer, by the names that models call."""

    @property
    def window(self) -> int:
        """The model's window in tokens, or the size assumed for it."""
        return self.config.window or self.facts.window or UNKNOWN_WINDOW

    def use(self, extra: str = "", message: str = "") -> WindowUse:
        """Return the use of the window by a request.

        If `message` contains the context already, `extra` must be empty.
        """
        known = self.config.window is not None or self.facts.window is not None
        budget = divide(self.window, 0, reply=self.sampling.max_tokens)
        history = estimate_messages(self.conversation.messages) + estimate(message)
        return WindowUse(
            self.window,
            system=self.prefix.tokens,
            instructions=self.prefix.instruction_tokens,
            context=estimate(extra),
            history=history,
            reply=budget.reply,
            known=known,
        )

    def sending(self, text: str) -> Sending:
        """Return the entry of the ledger for the message; `text` is the message as it is sent."""
        return Sending("context", "", text, tuple(self.parts))

    async def run(self, message: str, emit: Emit) -> None:
        """Resolve the context, ask the user, and summarize older turns if the window is full."""
        if (servers := self.config.servers) is not None and self.prefix.offers:
            if self.is_preview:
                self.server_tools = servers.known
            else:
                self.server_tools = await servers.offered(self.asker.approve, emit)
            offers = (*self.prefix.offers, *(tool.offer for tool in self.server_tools.values()))
            self.prefix = replace(self.prefix, offers=offers)
        for problem in (*self.config.notices, *self._trim()):
            await emit(Notice(problem))
        await self._change_provider(emit)
        self.context = await asyncio.to_thread(self._visible_context)
        await self._add_open_files(emit)
        await self._add_context(message, emit)

    # --- open files and selection ---

    async def _change_provider(self, emit: Emit) -> None:
        """Ask whether a new provider may see the parts of the vault in the conversation."""
        recipient = f"{self.provider.name} {self.provider.address}"
        if not self.conversation.recipient or self.conversation.recipient == recipient:
            self.conversation.recipient = recipient
            return
        parts = [part for part in self.conversation.shared.values() if part.path]
        self.conversation.move(recipient, keep=True)
        self._use_new_grants()
        items = tuple(_item(part) for part in parts)
        permission = await self._ask("history", "Send the conversation so far", items, emit)
        if permission.paths >= {item.path.text for item in items}:
            self.parts += [(part, permission.allowed[part.path]) for part in parts]
            return
        self.conversation.move(recipient, keep=False)
        self._use_new_grants()
        message = (
            f"{self.provider.name} starts a new conversation: it was not sent the messages so far."
        )
        await emit(Notice(Problem("HISTORY_NOT_SHARED", message)))

    def _use_new_grants(self) -> None:
        """Replace the grants, which the user gave to the previous provider."""
        self.asker = replace(
            self.asker, gate=replace(self.asker.gate, grants=self.conversation.grants)
        )

    async def _add_open_files(self, emit: Emit) -> None:
        run = self.context
        names = [
            path
            for path in (
                run.active_file,
                *run.open_files[:MAX_FILES],
                *run.recent_files[:MAX_FILES],
            )
            if path is not None
        ]
        self.parts += [
            (SharedPart(path.text, Level.NAME, len(path.text)), "context")
            for path in dict.fromkeys(names)
        ]
        item = selection_item(run, limit=MAX_SELECTION)
        if item is None:
            self.show_selection = True  # the message says that nothing is selected
            return
        if run.selection is not None and run.selection.from_argument:
            permission = Permission({item.path.text: "context"})
        else:
            permission = await self._ask(
                "selection", "Send the selected text with your message", (item,), emit
            )
        if item.path.text in permission.allowed:
            self.show_selection = True
            part = SharedPart(item.path.text, item.level, len(item.previews[0]))
            self.parts.append((part, permission.allowed[item.path.text]))

    def _visible_context(self) -> RunContext:
        return visible_context(self.context, self.open_view())

    # --- context ---

    async def _add_context(self, message: str, emit: Emit) -> None:
        gathered = await asyncio.to_thread(self._gathered, message)
        for missed in gathered.missed:
            await emit(Notice(_not_found(missed)))
        allowed = await self._allowed(gathered, emit)
        resources = await self._resources(message, emit)
        await self._make_room(message, emit)
        items = [
            item for item in gathered.items if item.path.text in allowed and self._is_new(item)
        ]
        used = self.use(message=message)
        budget = divide(
            self.window, used.system, instructions=used.instructions, reply=self.sampling.max_tokens
        )
        remaining = max(0, self.window - used.prompt - budget.reply)
        pieces: list[str] = []
        for resource in resources:
            text = beginning(resource.text, remaining)
            remaining -= estimate(text)
            pieces.append(resource.fenced(self.mark, text))
        fitting, omitted = fit_items(items, max(0, remaining))
        if omitted or gathered.more:
            total = omitted + gathered.more
            subject = "1 note does" if total == 1 else f"{total} notes do"
            text = f"{subject} not fit into the model's window, and will not be sent."
            await emit(Notice(Problem("CONTEXT_FULL", text)))
        notes = self.config.format(fitting, self.mark)
        self.extra = "\n\n".join([notes, *pieces] if notes else pieces)
        self.parts += [
            (SharedPart(item.path.text, Level.TEXT, len(item.text)), allowed[item.path.text])
            for item in fitting
        ]
        self.requested = frozenset(item.path.text for item in fitting if item.why in REQUESTED)
        sources = [path for path in self.config.sources if path not in self.conversation.shared]
        self.parts += [(SharedPart(path, Level.TEXT, 0), "trusted") for path in sources]

    def _gathered(self, message: str) -> Gathered:
        gatherer = self.config.gatherer
        if gatherer is None:
            return Gathered()
        if not self.asker.gate.may_allow:
            gatherer = replace(gatherer, matching=0)  # the user is never asked about search matches
        if not gatherer.wants(message, self.context):
            return Gathered()
        return gatherer.gather(message, self.context, self.open_view())

    async def _allowed(self, gathered: Gathered, emit: Emit) -> dict[str, AllowedBy]:
        """Ask one question for all notes that the user requested.

        Search matches need a rule or an earlier answer.
        """
        requested = tuple(item.share_item() for item in gathered.items if item.why in REQUESTED)
        matches = tuple(item.share_item() for item in gathered.items if item.why not in REQUESTED)
        purpose = "Send these notes with your message"
        permission = Permission()
        if requested:
            permission = await self._ask("files", purpose, requested, emit)
        granted = self.asker.granted(self._request("files", purpose, matches))
        return {**granted, **permission.allowed}

    async def _resources(self, message: str, emit: Emit) -> list[ResourceText]:
        """Read the resources of MCP servers that the message mentions, with the permission of each.

        The message is sent without those that cannot be read.
        """
        source = self.config.resources
        if source is None:
            return []
        texts: list[ResourceText] = []
        for mention in resources_in(message, source.servers.configured()):
            if self.is_preview:
                texts.append(ResourceText(mention, "(read when the message is sent)"))
                continue
            question = self._request("resource", "", ())
            try:
                text = await source.read(
                    mention, question, self.asker.gate, approve=self.asker.approve, emit=emit
                )
            except ObsidianAgentError as error:
                await emit(Notice(error.problem()))
                continue
            if text is not None:
                texts.append(text)
        return texts

    def _is_new(self, item: ContextItem) -> bool:
        """Return False for a search match that the model has been sent already."""
        known = self.conversation.shared.get(item.path.text)
        return item.why in REQUESTED or known is None or known.level < Level.TEXT

    # --- window ---

    def _trim(self) -> list[Problem]:
        """Truncate instructions that would use more than their share of the window."""
        prefix = self.prefix
        budget = divide(
            self.window,
            prefix.tokens,
            instructions=prefix.instruction_tokens,
            reply=self.sampling.max_tokens,
        )
        self.prefix = prefix.within(budget.instructions)
        if self.prefix is prefix:
            return []
        message = (
            f"The instructions have {prefix.instruction_tokens:,} tokens; "
            f"this model gets the first {budget.instructions:,} of them."
        )
        return [Problem("INSTRUCTIONS_CUT", message)]

    async def _make_room(self, message: str, emit: Emit) -> None:
        """Summarize older turns when the window is nearly full."""
        count = old_message_count(self.conversation.messages)
        if self.is_preview or not count or not self.use(message=message).full:
            return
        summary = await summarize(self.provider, self.conversation.messages, count, self.mark)
        self.usage = summary.usage
        self.conversation.compact(summary.count, summary.message)
        text = (
            "Older messages were summarized for the model to make room. You still see all of them."
        )
        await emit(Notice(Problem("COMPACTED", text)))

    # --- questions ---

    async def _ask(
        self, kind: RequestKind, purpose: str, items: tuple[ShareItem, ...], emit: Emit
    ) -> Permission:
        return await self.asker.ask(self._request(kind, purpose, items), emit)

    def _request(
        self, kind: RequestKind, purpose: str, items: tuple[ShareItem, ...]
    ) -> ShareRequest:
        return ShareRequest(
            call_id="",
            kind=kind,
            tool="",
            purpose=purpose,
            args={},
            items=items,
            provider=self.provider.name,
            address=self.provider.address,
        )


def _item(part: SharedPart) -> ShareItem:
    size = part.characters
    return ShareItem(
        path=parse(part.path, PathUse.READ), level=part.level, size=size, tokens=tokens_of(size)
    )


def _not_found(missed: Missed) -> Problem:
    hint = f" Did you mean {missed.nearest}?" if missed.nearest else ""
    return Problem("MENTION_NOT_FOUND", f"@{missed.text} is not a note, folder or tag.{hint}")
