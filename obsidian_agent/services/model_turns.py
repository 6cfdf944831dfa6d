"""Turns with a model: the choice of the model, its agent, and a preview of the first request.

The model is the thread's own, else the one that the open note or the vault's agent asks for, else
that of the settings. Notes and agents can come from anywhere, so they can only choose models of the
service in the settings, and those that match `note_models`. They name a service and a model, never
an address or a key.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from copy import deepcopy
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from obsidian_agent.agent.conversation import Conversation
from obsidian_agent.agent.events import (
    AgentEvent,
    Emit,
    NeedsInput,
    Notice,
    PlanningResult,
    TurnFailed,
    TurnStarted,
)
from obsidian_agent.agent.planner import Planner, PlanRequest
from obsidian_agent.agent.privacy.consent import REFUSED, ApproveShare, ShareDecision, ShareRequest
from obsidian_agent.agent.privacy.ledger import Ledger
from obsidian_agent.agent.replies import Sampling
from obsidian_agent.agent.token_budget import WindowUse
from obsidian_agent.agent.turn.loop import Agent, Vault
from obsidian_agent.agent.turn.preparation import TurnConfig
from obsidian_agent.agent.turn.prompts import exact_text
from obsidian_agent.agent.turn.tool_round import Scrubber
from obsidian_agent.errors import ConfigError, Problem, VaultError
from obsidian_agent.plan.policy import MODEL, SharingRules
from obsidian_agent.providers.base import Provider
from obsidian_agent.providers.other_agent import ACP, is_agent
from obsidian_agent.providers.registry import SCRIPTED, find_vendor
from obsidian_agent.services.menu_planner import MenuPlanner, Planning, picks
from obsidian_agent.services.offline_planner import OfflinePlanner
from obsidian_agent.services.open_vault import OpenVault
from obsidian_agent.services.plans import Plans
from obsidian_agent.vault.frontmatter.properties import read_properties
from obsidian_agent.vault.index.file_names import FileNames
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.text import decode
from obsidian_agent.vault.views.view import VaultView

if TYPE_CHECKING:
    from obsidian_agent.agent.mcp_resources import McpResources
    from obsidian_agent.providers.registry import ProviderManager


_SPEC: Final = re.compile(r"(custom:)?[a-z0-9][a-z0-9_-]*/[^\s/][^\s]{0,200}")
_MODEL: Final = re.compile(r"[^\s/][^\s]{0,200}")


class Models(Struct, frozen=True, kw_only=True):
    """The models of a session, with the rules for sharing and the ledger of what is sent.

    `spec` is the default model.
    """

    spec: str
    providers: ProviderManager
    sampling: Sampling
    rules: SharingRules
    ledger: Ledger
    config: Callable[[str | None], TurnConfig] = lambda assistant: TurnConfig()
    """Returns the configuration of a turn with an agent of the vault, by name. May block."""
    planning: Planning = "auto"
    """The way a model answers: an action of the menu, or a plan of its own."""
    choosable: tuple[str, ...] = ()
    """Patterns of further models that notes and agents of the vault may choose."""
    servers: McpResources | None = None
    """The resources and prompts of MCP servers, for messages to models."""

    @property
    def provider(self) -> Provider:
        """The provider of the settings, opened on first use. Raises `ConfigError`."""
        return self.providers.get(self.spec)


class ModelTurns(Struct, frozen=True):
    """Creates the agents and planners of turns with a model. Every method may block."""

    vault: OpenVault
    plans: Plans
    offline: OfflinePlanner
    models: Models

    def agent(
        self,
        approve: ApproveShare,
        conversation: Conversation | None = None,
        *,
        propose: bool = True,
        model: str | None = None,
        assistant: str | None = None,
    ) -> Agent:
        """Return the agent of a turn. Without `propose` it cannot propose plans.

        `model` overrides the choice of the model. `assistant` names the vault's agent whose
        instructions apply. Raise `ConfigError` if the model cannot be opened.
        """
        models = self.models
        config = models.config(assistant)
        choice = self._choice(config, model)
        provider = models.providers.get(choice.spec)
        program = provider.name.removeprefix(f"{ACP}/") if is_agent(provider) else ""
        policy_name = "/".join(filter(None, (program, config.agent))) or MODEL
        return Agent(
            provider=provider,
            tools=self.plans.tools,
            policy=self.plans.make_policy(policy_name),
            vault=Vault(
                self.vault.view,
                FileNames(self.vault.store),
                Scrubber.of(self.vault.store.real_path, str(models.ledger.record.folder)),
            ),
            rules=models.rules,
            approve=approve,
            ledger=models.ledger,
            conversation=conversation or Conversation(),
            dry_run=self.plans.proposed if propose else None,
            sampling=models.sampling,
            config=replace(config, notices=(*config.notices, *choice.notices)),
        )

    def menu(self, agent: Agent, *, offers: bool = False) -> MenuPlanner:
        """Return the agent behind the menu, which is used if its model picks from it.

        With `offers` the likely actions are offered while it picks.
        """
        return replace(
            self._menu(agent.name, lambda: agent.provider, agent),
            questions=agent.dry_run is None,
            conversation=agent.conversation.id,
            offers=offers,
        )

    def planner(self, approve: ApproveShare) -> MenuPlanner:
        """Return the planner whose model cannot read notes by itself.

        Raise `ConfigError` if there is no such model.
        """

        def provider() -> Provider:
            return self.models.providers.get(self._choice(self.models.config(None), None).spec)

        name = self.models.provider.name
        return self._menu(name, provider, PlainAgent(name, self, approve))

    def _menu(
        self, name: str, open_model: Callable[[], Provider], otherwise: Planner
    ) -> MenuPlanner:
        models = self.models

        def open_picking_model() -> Provider | None:
            provider = open_model()
            return provider if picks(models.planning, provider) else None

        return MenuPlanner(
            name=name,
            make=open_picking_model,
            offline=self.offline,
            otherwise=otherwise,
            rules=models.rules,
            ledger=models.ledger,
            sampling=models.sampling,
        )

    def _choice(self, config: TurnConfig, model: str | None) -> ModelChoice:
        """Choose the model. A note that is never shared cannot ask for one."""
        active, names = self.plans.context().active_file, FileNames(self.vault.store)
        if active is not None and self.models.rules.verdict(active, names).decision == "deny":
            active = None
        wish = wish_of(self.vault.view(), active)
        return choose(self.models.spec, model, wish, config.model, self.models.choosable)


class PlainAgent(Struct, frozen=True):
    """A `Planner` over an agent that cannot read notes by itself.

    Each turn creates its own agent, because the open note may name another model.
    """

    name: str
    turns: ModelTurns
    approve: ApproveShare

    async def plan(self, request: PlanRequest, emit: Emit) -> PlanningResult:
        """Run the agent's turn in a conversation of its own."""
        try:
            agent = await asyncio.to_thread(self.agent)
        except ConfigError as error:
            return TurnFailed(error.problem())
        return await agent.plan(request, emit)

    def agent(self) -> Agent:
        """Return the agent of one turn. Raise `ConfigError`. May block."""
        agent = self.turns.agent(self.approve)
        return replace(agent, config=replace(agent.config, tools=False, gatherer=None))


async def traced(
    plan: Callable[[Emit], Awaitable[PlanningResult]], question: str, agent: Agent, emit: Emit
) -> PlanningResult:
    """Run a turn, and write its events to the trace if tracing is on."""
    trace = agent.config.trace
    if trace is None:
        return await plan(emit)

    async def record(event: AgentEvent) -> None:
        if (degraded := trace.record(event, agent.conversation.id, agent.name)) is not None:
            await emit(Notice(degraded))

    async def record_and_emit(event: AgentEvent) -> None:
        await record(event)
        await emit(event)

    await record(TurnStarted(question))
    verdict = await plan(record_and_emit)
    await record(verdict)
    return verdict


class RequestPreview(Struct, frozen=True, kw_only=True):
    """The first request of a message, preceded by the menu request if the model picks from it.

    `text` is exact except for the random mark of its fences, and without what consent to the
    `questions` would add. `cost` is its maximum in US dollars by the list price, including the
    reply; `None` if the price is unknown.
    """

    provider: str
    address: str
    text: str
    use: WindowUse
    cost: float | None
    questions: tuple[ShareRequest, ...] = ()
    notices: tuple[Problem, ...] = ()


async def preview_request(
    turns: ModelTurns,
    conversation: Conversation,
    draft: str,
    *,
    model: str | None = None,
    assistant: str | None = None,
) -> RequestPreview:
    """Return the first request of a message without sending it or changing the conversation.

    Raise `ConfigError` if the model cannot be opened.
    """
    questions: list[ShareRequest] = []
    notices: list[Problem] = []

    async def note(request: ShareRequest) -> ShareDecision:
        questions.append(request)
        return REFUSED

    async def emit(event: AgentEvent) -> None:
        if isinstance(event, Notice):
            notices.append(event.problem)

    copy = deepcopy(replace(conversation, keeper=None))
    agent = await asyncio.to_thread(
        lambda: turns.agent(note, copy, model=model, assistant=assistant)
    )
    request = PlanRequest(draft, await asyncio.to_thread(turns.plans.context))
    prepared = await agent.prepare(request.context)
    prepared.is_preview = True
    prepared.asker = replace(prepared.asker, record=None)
    await prepared.run(draft, emit)
    message, extra = agent.message(request, prepared), prepared.extra
    history = copy.plain_messages() if agent.plain else copy.messages
    text = exact_text(prepared.prefix.request((*history, message), prepared.sampling))
    if menu := await _menu_request(turns, agent, request):
        text = f"{menu}\n\n=== and only if no action fits\n\n{text}"
    use = prepared.use(extra, message.text.replace(extra, "") if extra else message.text)
    price = prepared.facts.price
    return RequestPreview(
        provider=agent.provider.name,
        address=agent.provider.address,
        text=text,
        use=use,
        cost=price.estimate(use.prompt, use.reply) if price is not None else None,
        questions=tuple(questions),
        notices=tuple(notices),
    )


async def _menu_request(turns: ModelTurns, agent: Agent, request: PlanRequest) -> str:
    """Return the text of the menu request, "" for a model that does not pick from the menu."""
    if not picks(turns.models.planning, agent.provider):
        return ""
    planner = turns.menu(agent)
    known = await asyncio.to_thread(planner.offline.decide, request)
    if not isinstance(known, NeedsInput):
        return "=== nothing: this needs no model"
    chat_request, _ = await asyncio.to_thread(planner.first_request, request)
    return exact_text(chat_request)


class ModelChoice(Struct, frozen=True):
    """A model as `VENDOR/MODEL`, and notices for the user about the choice."""

    spec: str
    notices: tuple[Problem, ...] = ()


def choose(
    settings: str,
    thread: str | None,
    note: str | None,
    assistant: str | None,
    patterns: Sequence[str],
) -> ModelChoice:
    """Choose the model of a turn.

    `note` and `assistant` are the models that the open note and the vault's agent ask for,
    `patterns` the models that they may choose outside the service of the settings.
    """
    if thread is not None:
        return ModelChoice(thread)
    notices: list[Problem] = []
    for wish, source in ((note, "The open note"), (assistant, "The agent")):
        if wish is None or wish == settings:
            continue
        if may_choose(wish, settings, patterns):
            chosen = Problem("MODEL_CHOSEN", f"{source} chose {wish} for this message.")
            return ModelChoice(wish, (*notices, chosen))
        message = (
            f"{source} asks for {wish}, which vaults may not choose, so {settings} answers. "
            "To allow it, add it to note_models in the settings."
        )
        notices.append(Problem("MODEL_NOT_ALLOWED", message))
    return ModelChoice(settings, tuple(notices))


def may_choose(spec: str, settings: str, patterns: Sequence[str]) -> bool:
    """Return whether notes and agents of a vault may choose this model."""
    vendor = spec.partition("/")[0]
    try:
        find_vendor(vendor)
    except ConfigError:
        return False
    is_same_service = vendor == settings.partition("/")[0].lower() and vendor != SCRIPTED
    return is_same_service or any(
        fnmatchcase(spec.lower(), pattern.lower()) for pattern in patterns
    )


def wish_of(view: VaultView, path: VaultPath | None) -> str | None:
    """Return the model that a note's properties ask for. May block.

    They are `ai-model: VENDOR/MODEL`, or `aiService: VENDOR` and `model: MODEL`.
    """
    if path is None or not path.is_note:
        return None
    try:
        properties = read_properties(decode(view.read(path), path.text))
    except VaultError:
        return None
    return _wish(properties)


def _wish(properties: dict[str, Any]) -> str | None:
    spec = properties.get("ai-model", properties.get("aiModel"))
    if isinstance(spec, str):
        return spec.strip() if _SPEC.fullmatch(spec.strip()) else None
    service = properties.get("aiService", properties.get("ai-service"))
    model = properties.get("model")
    if not isinstance(service, str) or not isinstance(model, str):
        return None
    if _MODEL.fullmatch(model.strip()) is None:
        return None
    spec = f"{service.strip().lower()}/{model.strip()}"
    return spec if _SPEC.fullmatch(spec) else None
