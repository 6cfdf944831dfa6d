"""Turns with a model: which one is asked, the agent that vault, settings and conversation make, and what it would be sent.

The model is the thread's own, else one that the open note or the vault's agent wishes for, else the one of the settings. Notes and agents come
from anywhere, so what they may choose is the person's to say: models of the service that the settings name, and those that match
`note_models`. They name a service and a model, never an address or a key.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from copy import deepcopy
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

from obsidian_agent.agent.conversation import Conversation
from obsidian_agent.agent.events import (
    AgentEvent,
    Emit,
    NeedsInput,
    Notice,
    TurnFailed,
    TurnStarted,
    Verdict,
)
from obsidian_agent.agent.planner import Planner, PlanRequest, Sampling
from obsidian_agent.agent.privacy.consent import REFUSED, ApproveShare, ShareDecision, ShareRequest
from obsidian_agent.agent.privacy.record import Ledger
from obsidian_agent.agent.token_budget import WindowUse
from obsidian_agent.agent.turn.loop import Agent, Vault
from obsidian_agent.agent.turn.preparation import TurnConfig
from obsidian_agent.agent.turn.prompts import exact_text
from obsidian_agent.agent.turn.tool_round import Scrubber
from obsidian_agent.dataclass import dataclass, replace
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
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.text import decode
from obsidian_agent.vault.views.view import VaultView

if TYPE_CHECKING:
    from obsidian_agent.providers.registry import ProviderManager


@dataclass(frozen=True)
class Models:
    """The models that a session asks (`spec` unless another one is named), how, under which rules, and where what is sent is written down."""

    spec: str
    providers: ProviderManager
    sampling: Sampling
    rules: SharingRules
    ledger: Ledger
    config: Callable[[str | None], TurnConfig] = lambda assistant: TurnConfig()
    """What else an agent gets, made for each turn, under the instructions of an agent of the vault (by name); may block."""
    planning: Planning = "auto"
    """Whether models pick from the menu."""
    choosable: tuple[str, ...] = ()
    """Patterns of models that notes and agents of the vault may choose, besides those of the settings' own service."""

    @property
    def provider(self) -> Provider:
        """The provider of the settings, made when it is first asked for. Raises `ConfigError`."""
        return self.providers.get(self.spec)


@dataclass(frozen=True, slots=True)
class ModelTurns:
    """Makes who answers in one turn, by the models as the settings have them. Everything may block."""

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
        """The model that answers (`model`, or as chosen) under the instructions of an agent of the vault (`assistant`, by name).

        Raises `ConfigError` when the model cannot be opened.
        """
        models = self.models
        config = models.config(assistant)
        choice = self._choice(config, model)
        provider = models.providers.get(choice.spec)
        names = (provider.name.removeprefix(f"{ACP}/") if is_agent(provider) else "", config.agent)
        return Agent(
            provider=provider,
            tools=self.plans.tools,
            policy=self.plans.make_policy("/".join(filter(None, names)) or MODEL),
            vault=Vault(
                self.vault.view,
                self.vault.resolve,
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

    def menu(self, agent: Agent) -> MenuPlanner:
        """The agent, behind the menu where its model picks from that; what such a model plans is doubted as on the command line."""
        menu = self._menu(agent.name, lambda: agent.provider, agent)
        return replace(menu, questions=agent.dry_run is None, conversation=agent.conversation.id)

    def planner(self, approve: ApproveShare) -> MenuPlanner:
        """Return the planner that asks the model without letting it look around.

        Raises `ConfigError` when there is no such model.
        """

        def provider() -> Provider:
            return self.models.providers.get(self._choice(self.models.config(None), None).spec)

        name = self.models.provider.name
        return self._menu(name, provider, PlainAgent(name, self, approve))

    def _menu(
        self, name: str, open_model: Callable[[], Provider], otherwise: Planner
    ) -> MenuPlanner:
        models = self.models

        def picking() -> Provider | None:
            provider = open_model()
            return provider if picks(models.planning, provider) else None

        return MenuPlanner(
            name,
            picking,
            self.offline,
            otherwise,
            models.rules,
            self.vault.resolve,
            models.ledger,
            models.sampling,
        )

    def _choice(self, config: TurnConfig, model: str | None) -> ModelChoice:
        """Which model is asked: a denied note may not even wish."""
        active, deny = self.plans.context().active_file, self.models.rules.deny
        hidden = active is not None and (
            deny.cover(active) or deny.cover(self.vault.resolve(active))
        )
        wish = wish_of(self.vault.view(), None if hidden else active)
        return choose(self.models.spec, model, wish, config.model, self.models.choosable)


@dataclass(frozen=True, slots=True)
class PlainAgent:
    """A `Planner` over an agent that does not look around.

    Each turn makes its own agent, because the open note may name another model.
    """

    name: str
    turns: ModelTurns
    approve: ApproveShare

    async def plan(self, request: PlanRequest, emit: Emit) -> Verdict:
        """The agent's turn, in a conversation of its own."""
        try:
            agent = await asyncio.to_thread(self.agent)
        except ConfigError as error:
            return TurnFailed(error.problem())
        return await agent.plan(request, emit)

    def agent(self) -> Agent:
        """The agent of one turn. Raises `ConfigError`. May block."""
        agent = self.turns.agent(self.approve)
        return replace(agent, config=replace(agent.config, tools=False, gatherer=None))


async def traced(
    plan: Callable[[Emit], Awaitable[Verdict]], question: str, agent: Agent, emit: Emit
) -> Verdict:
    """A turn whose events are written to the trace, where one is wanted."""
    trace = agent.config.trace
    if trace is None:
        return await plan(emit)

    async def take(event: AgentEvent) -> None:
        if (degraded := trace.record(event, agent.conversation.id, agent.name)) is not None:
            await emit(Notice(degraded))

    async def both(event: AgentEvent) -> None:
        await take(event)
        await emit(event)

    await take(TurnStarted(question))
    verdict = await plan(both)
    await take(verdict)
    return verdict


@dataclass(frozen=True, slots=True)
class RequestPreview:
    """The request that a message would start with; where the model picks from the menu, that request before it.

    `text` is all of it, but for the random mark of its fences and what `questions` would add if they were answered with yes. `cost` is the
    most that it may cost in US dollars by the list price, the room for the reply included; None where the price is not known.
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
    """Look ahead. The conversation stays as it is. Raises `ConfigError` when the model cannot be opened."""
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
    said = copy.plain_messages() if agent.plain else copy.messages
    text = exact_text(prepared.prefix.request((*said, message), prepared.sampling))
    if menu := await _menu_first(turns, agent, request):
        text = f"{menu}\n\n=== and only if no action fits\n\n{text}"
    use = prepared.use(extra, message.text.replace(extra, "") if extra else message.text)
    price = prepared.facts.price
    cost = price.estimate(use.prompt, use.reply) if price is not None else None
    return RequestPreview(
        agent.provider.name,
        agent.provider.address,
        text,
        use,
        cost,
        tuple(questions),
        tuple(notices),
    )


async def _menu_first(turns: ModelTurns, agent: Agent, request: PlanRequest) -> str:
    """What a model that picks from the menu is asked before; "" for any other, and for words that are certain without a model."""
    if not picks(turns.models.planning, agent.provider):
        return ""
    planner = turns.menu(agent)
    known = await asyncio.to_thread(planner.offline.decide, request)
    if not isinstance(known, NeedsInput):
        return "=== nothing: this needs no model"
    return exact_text((await asyncio.to_thread(planner.first_request, request))[0])


_SPEC: Final = re.compile(r"(custom:)?[a-z0-9][a-z0-9_-]*/[^\s/][^\s]{0,200}")


_MODEL: Final = re.compile(r"[^\s/][^\s]{0,200}")


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model as `VENDOR/MODEL`, and what the person is told about the choice."""

    spec: str
    notices: tuple[Problem, ...] = ()


def choose(
    settings: str,
    thread: str | None,
    note: str | None,
    assistant: str | None,
    patterns: Sequence[str],
) -> ModelChoice:
    """Choose among the model of the settings, the thread's, and what the open note and the vault's agent wish for."""
    if thread is not None:
        return ModelChoice(thread)
    notices: list[Problem] = []
    for wish, who in ((note, "The open note"), (assistant, "The agent")):
        if wish is None or wish == settings:
            continue
        if may_choose(wish, settings, patterns):
            return ModelChoice(
                wish, (*notices, Problem("MODEL_CHOSEN", f"{who} has {wish} answer."))
            )
        message = f"{who} asks for {wish}, which vaults may not choose here; {settings} answers. Allow it under note_models in the settings."
        notices.append(Problem("MODEL_NOT_ALLOWED", message))
    return ModelChoice(settings, tuple(notices))


def may_choose(spec: str, settings: str, patterns: Sequence[str]) -> bool:
    """Whether something in a vault may choose this model."""
    vendor = spec.partition("/")[0]
    try:
        find_vendor(vendor)
    except ConfigError:
        return False
    same = vendor == settings.partition("/")[0].lower() and vendor != SCRIPTED
    return same or any(fnmatchcase(spec.lower(), pattern.lower()) for pattern in patterns)


def wish_of(view: VaultView, path: VaultPath | None) -> str | None:
    """The model that a note's properties name: `ai-model: VENDOR/MODEL`, or `aiService: VENDOR` with `model: MODEL`. May block."""
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
    service, model = (
        properties.get("aiService", properties.get("ai-service")),
        properties.get("model"),
    )
    if (
        not isinstance(service, str)
        or not isinstance(model, str)
        or _MODEL.fullmatch(model.strip()) is None
    ):
        return None
    found = f"{service.strip().lower()}/{model.strip()}"
    return found if _SPEC.fullmatch(found) else None
