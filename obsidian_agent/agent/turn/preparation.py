"""Before the first request of a turn: what the model may know of what is open, selected and mentioned, and how it fits into its window."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from obsidian_agent.agent.context import (
    REQUESTED,
    ContextFormat,
    ContextItem,
    Gathered,
    Gatherer,
    Missed,
    fit_items,
    structured_context,
)
from obsidian_agent.agent.conversation import Conversation
from obsidian_agent.agent.events import Emit, Notice
from obsidian_agent.agent.mcp_tools import McpTools, Offered
from obsidian_agent.agent.planner import Sampling
from obsidian_agent.agent.privacy.consent import (
    AllowedBy,
    Level,
    RequestKind,
    SharedPart,
    ShareItem,
    ShareRequest,
    tokens_of,
)
from obsidian_agent.agent.privacy.record import Sending
from obsidian_agent.agent.summaries import old_part, summarise
from obsidian_agent.agent.token_budget import (
    UNKNOWN_WINDOW,
    WindowUse,
    divide,
    estimate,
    estimate_messages,
)
from obsidian_agent.agent.trace import Trace
from obsidian_agent.agent.turn.model_tools import Detail
from obsidian_agent.agent.turn.prompts import FILES_SHOWN, SELECTION_SHOWN, RequestPrefix
from obsidian_agent.agent.turn.read_calls import Asker, Permission, selection_item
from obsidian_agent.dataclass import dataclass, field, replace
from obsidian_agent.errors import Problem
from obsidian_agent.providers.base import Provider, Usage
from obsidian_agent.providers.prices import ModelFacts, facts_of
from obsidian_agent.tools.core.tool import AppCommand, RunContext
from obsidian_agent.vault.paths.path import PathUse, parse
from obsidian_agent.vault.views.view import VaultView


@dataclass(frozen=True, slots=True)
class TurnConfig:
    """`instructions` stand in the system prompt, so only what the person wrote or trusted may be in them; `sources` are the vault's files
    whose text that is. `notices` are told at the beginning of a turn.

    `window` is the person's own figure for the model's window, in tokens; without it the list's counts. `tools` off: the model may not look
    around. `only`: it may look around with these tools alone (None: with all read tools). `temperature`: another one than the settings'.
    """

    instructions: str = ""
    gatherer: Gatherer | None = Gatherer()
    """Finds what goes along with a message; None: nothing does."""
    format: ContextFormat = structured_context
    window: int | None = None
    tools: bool = True
    only: frozenset[str] | None = None
    agent: str = ""
    """The vault's agent whose instructions hold."""
    temperature: float | None = None
    model: str | None = None
    """The model that the vault's agent wishes for."""
    sources: tuple[str, ...] = ()
    notices: tuple[Problem, ...] = ()
    trace: Trace | None = None
    facts: Callable[[str], ModelFacts] = facts_of
    servers: McpTools | None = None
    """The tools of MCP servers that the model may call besides."""
    detail: Detail | None = None
    """How much the model is told of tools and plans; None: as fits it."""


@dataclass(slots=True)
class Preparation:
    """What goes out with the first request of a turn. After `run`: `context` without what is denied, `extra` (what goes along, as text),
    `parts` (of which files), and whether the model sees the selected text.
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
    """Those of Obsidian that a plan may run."""
    show_selection: bool = False
    extra: str = ""
    parts: list[tuple[SharedPart, AllowedBy]] = field(default_factory=list)
    wanted: frozenset[str] = frozenset()
    """The files in `parts` that the person asked for, by a mention for example."""
    usage: Usage | None = None
    """What a summary took, if one was made."""
    ahead: bool = False
    """Whether this only looks ahead: neither a model nor a server is asked for anything."""
    others: Mapping[str, Offered] = field(default_factory=dict)
    """The tools of MCP servers that are on offer, by the names that models call."""

    @property
    def window(self) -> int:
        """The model's window, as far as anybody knows."""
        return self.config.window or self.facts.window or UNKNOWN_WINDOW

    def use(self, extra: str = "", message: str = "") -> WindowUse:
        """What a request with this message, and `extra` along with it, takes (`extra` is not counted again where the message holds it)."""
        known = self.config.window is not None or self.facts.window is not None
        budget = divide(self.window, 0, reply=self.sampling.max_tokens)
        history = estimate_messages(self.conversation.messages) + estimate(message)
        return WindowUse(
            self.window,
            self.prefix.tokens,
            self.prefix.instruction_tokens,
            estimate(extra),
            history,
            budget.reply,
            known,
        )

    def sending(self, text: str) -> Sending:
        """What the message of the person shares of the vault, for the ledger; `text` is the message as it goes out."""
        return Sending("context", "", text, tuple(self.parts))

    async def run(self, message: str, emit: Emit) -> None:
        """Settle everything, ask what has to be asked, and make room where the window is full."""
        if (servers := self.config.servers) is not None and self.prefix.offers:
            self.others = (
                servers.known if self.ahead else await servers.offered(self.asker.approve, emit)
            )
            self.prefix = replace(
                self.prefix,
                offers=(*self.prefix.offers, *(each.offer for each in self.others.values())),
            )
        for problem in (*self.config.notices, *self._trim()):
            await emit(Notice(problem))
        await self._change_provider(emit)
        self.context = self._without_denied(self.context)
        await self._settle_open_files(emit)
        await self._gather(message, emit)

    # --- what is open and selected -------------------------------------------------------------------------------------------------

    async def _change_provider(self, emit: Emit) -> None:
        """When the conversation goes on with another provider: ask whether that one may see what it holds of the vault."""
        told = f"{self.provider.name} {self.provider.address}"
        if not self.conversation.recipient or self.conversation.recipient == told:
            self.conversation.recipient = told
            return
        before = [part for part in self.conversation.shared.values() if part.path]
        self.conversation.move(told, keep=True)
        self._use_new_grants()
        items = tuple(_item(part) for part in before)
        permission = await self._ask(
            "history", "Send along what was said in this conversation so far", items, emit
        )
        if permission.paths >= {item.path.text for item in items}:
            self.parts += [(part, permission.allowed[part.path]) for part in before]
            return
        self.conversation.move(told, keep=False)
        self._use_new_grants()
        message = f"{self.provider.name} does not get to see what was said so far; the conversation begins anew."
        await emit(Notice(Problem("HISTORY_NOT_SHARED", message)))

    def _use_new_grants(self) -> None:
        """What the person allowed was for the provider before."""
        self.asker = replace(
            self.asker, gate=replace(self.asker.gate, grants=self.conversation.grants)
        )

    async def _settle_open_files(self, emit: Emit) -> None:
        run = self.context
        names = [
            path
            for path in (
                run.active_file,
                *run.open_files[:FILES_SHOWN],
                *run.recent_files[:FILES_SHOWN],
            )
            if path is not None
        ]
        self.parts += [
            (SharedPart(path.text, Level.NAME, len(path.text)), "context")
            for path in dict.fromkeys(names)
        ]
        item = selection_item(run, most=SELECTION_SHOWN)
        if item is None:
            self.show_selection = True  # there is nothing to hide, and the model is told so
            return
        if run.selection is not None and run.selection.from_argument:
            permission = Permission({item.path.text: "context"})
        else:
            permission = await self._ask(
                "selection", "Send the selected text along with your message", (item,), emit
            )
        if item.path.text in permission.allowed:
            self.show_selection = True
            self.parts.append(
                (
                    SharedPart(item.path.text, item.level, len(item.previews[0])),
                    permission.allowed[item.path.text],
                )
            )

    def _without_denied(self, run: RunContext) -> RunContext:
        gate = self.asker.gate
        active = (
            run.active_file
            if run.active_file is not None and not gate.denied(run.active_file)
            else None
        )
        lost = run.active_file is not None and active is None
        return replace(
            run,
            active_file=active,
            selection=None if lost else run.selection,
            cursor=None if lost else run.cursor,
            open_files=tuple(path for path in run.open_files if not gate.denied(path)),
            recent_files=tuple(path for path in run.recent_files if not gate.denied(path)),
        )

    # --- what goes along -----------------------------------------------------------------------------------------------------------

    async def _gather(self, message: str, emit: Emit) -> None:
        gathered = await asyncio.to_thread(self._gathered, message)
        for missed in gathered.missed:
            await emit(Notice(_not_found(missed)))
        allowed = await self._allowed(gathered, emit)
        await self._make_room(message, emit)
        items = [
            item for item in gathered.items if item.path.text in allowed and self._is_news(item)
        ]
        used = self.use(message=message)
        budget = divide(
            self.window, used.system, instructions=used.instructions, reply=self.sampling.max_tokens
        )
        left = max(0, self.window - used.prompt - budget.reply)
        kept, left_out = fit_items(
            items, min(max(budget.context, self.window - used.prompt - budget.reply), left)
        )
        if left_out or gathered.more:
            total = left_out + gathered.more
            text = f"{total} {'note does' if total == 1 else 'notes do'} not fit and will not go along."
            await emit(Notice(Problem("CONTEXT_FULL", text)))
        self.extra = self.config.format(kept, self.mark)
        self.parts += [
            (SharedPart(item.path.text, Level.TEXT, len(item.text)), allowed[item.path.text])
            for item in kept
        ]
        self.wanted = frozenset(item.path.text for item in kept if item.why in REQUESTED)
        told = [path for path in self.config.sources if path not in self.conversation.shared]
        self.parts += [(SharedPart(path, Level.TEXT, 0), "trusted") for path in told]

    def _gathered(self, message: str) -> Gathered:
        gatherer = self.config.gatherer
        if gatherer is None:
            return Gathered()
        if not self.asker.gate.may_allow:
            gatherer = replace(gatherer, matching=0)  # what is merely found is never asked about
        return (
            gatherer.gather(message, self.context, self.open_view())
            if gatherer.wants(message, self.context)
            else Gathered()
        )

    async def _allowed(self, gathered: Gathered, emit: Emit) -> dict[str, AllowedBy]:
        """One question for everything that the person wants to go along; what was merely found needs a rule or an earlier answer."""
        asked = tuple(item.share_item() for item in gathered.items if item.why in REQUESTED)
        found = tuple(item.share_item() for item in gathered.items if item.why not in REQUESTED)
        purpose = "Send these notes along with your message"
        permission = await self._ask("files", purpose, asked, emit) if asked else Permission()
        return {**self.asker.granted(self._request("files", purpose, found)), **permission.allowed}

    def _is_news(self, item: ContextItem) -> bool:
        """Whether the model does not have it already: what was merely found is not sent twice."""
        known = self.conversation.shared.get(item.path.text)
        return item.why in REQUESTED or known is None or known.level < Level.TEXT

    # --- room ----------------------------------------------------------------------------------------------------------------------

    def _trim(self) -> list[Problem]:
        """Cut instructions that would take more than their share of the window."""
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
        message = f"The instructions take {prefix.instruction_tokens:,} tokens; this model gets the first {budget.instructions:,} of them."
        return [Problem("INSTRUCTIONS_CUT", message)]

    async def _make_room(self, message: str, emit: Emit) -> None:
        """Summarise older turns when the window is nearly full."""
        count = old_part(self.conversation.messages)
        if self.ahead or not count or not self.use(message=message).full:
            return
        summary = await summarise(self.provider, self.conversation.messages, count, self.mark)
        self.usage = summary.usage
        self.conversation.compact(summary.count, summary.message)
        await emit(
            Notice(
                Problem(
                    "COMPACTED",
                    "The older part of this conversation was summarised to make room; all of it is kept here.",
                )
            )
        )

    # --- questions -----------------------------------------------------------------------------------------------------------------

    async def _ask(
        self, kind: RequestKind, purpose: str, items: tuple[ShareItem, ...], emit: Emit
    ) -> Permission:
        return await self.asker.ask(self._request(kind, purpose, items), emit)

    def _request(
        self, kind: RequestKind, purpose: str, items: tuple[ShareItem, ...]
    ) -> ShareRequest:
        return ShareRequest(
            "", kind, "", purpose, {}, items, self.provider.name, self.provider.address
        )


def _item(part: SharedPart) -> ShareItem:
    size = part.characters
    return ShareItem(parse(part.path, PathUse.READ), part.level, size, tokens_of(size))


def _not_found(missed: Missed) -> Problem:
    hint = f" Did you mean {missed.nearest}?" if missed.nearest else ""
    return Problem("MENTION_NOT_FOUND", f"@{missed.text} is no note, folder or tag here.{hint}")
