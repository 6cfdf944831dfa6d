"""Turns with a model: the agent that a session's vault, settings and conversation make, and who plans where nobody can be asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from obsidian_agent.agent.conversation import Conversation
from obsidian_agent.agent.event_stream import Emit
from obsidian_agent.agent.events import AgentEvent, Notice, TurnFailed, TurnStarted, Verdict
from obsidian_agent.agent.menu_planner import MenuPlanner, Planning, picks
from obsidian_agent.agent.offline import OfflinePlanner
from obsidian_agent.agent.open_vault import OpenVault
from obsidian_agent.agent.planner import Planner, PlanRequest, Sampling
from obsidian_agent.agent.plans import Plans
from obsidian_agent.agent.privacy.consent import REFUSED, ApproveShare, ShareDecision, ShareRequest, SharingRules
from obsidian_agent.agent.privacy.ledger import Ledger
from obsidian_agent.agent.turn.config import Choice, TurnConfig, choose, wish_of
from obsidian_agent.agent.turn.loop import Agent, Vault
from obsidian_agent.agent.turn.tool_round import Scrubber
from obsidian_agent.errors import ConfigError
from obsidian_agent.providers.base import Provider

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


async def share_selection(request: ShareRequest) -> ShareDecision:
    """The answer where nobody is asked: who has a plan made for a selection wants the planner to know of it, and nothing else goes out."""
    return ShareDecision("once") if request.kind == "selection" else REFUSED


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
        conversation: Conversation,
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
        return Agent(
            provider=models.providers.get(choice.spec),
            tools=self.plans.tools,
            policy=self.plans.policy,
            vault=Vault(self.vault.view, self.vault.resolve, Scrubber.of(self.vault.store.real_path, str(models.ledger.file.parent))),
            rules=models.rules,
            approve=approve,
            ledger=models.ledger,
            conversation=conversation,
            dry_run=self.plans.proposed if propose else None,
            sampling=models.sampling,
            config=replace(config, notices=(*config.notices, *choice.notices)),
        )

    def menu(self, agent: Agent, *, questions: bool) -> MenuPlanner:
        """The agent, behind the menu where its model picks from that; what such a model plans is doubted as on the command line.

        `questions`: nothing may be changed.
        """
        return replace(self._menu(agent.name, lambda: agent.provider, agent), questions=questions, conversation=agent.conversation.id)

    def planner(self) -> MenuPlanner:
        """The planner that asks the model without letting it look around. Raises `ConfigError` when there is no such model."""

        def provider() -> Provider:
            return self.models.providers.get(self._choice(self.models.config(None), None).spec)

        name = self.models.provider.name
        return self._menu(name, provider, UnaskedAgent(name, self))

    def _menu(self, name: str, open_model: Callable[[], Provider], otherwise: Planner) -> MenuPlanner:
        models = self.models

        def picking() -> Provider | None:
            provider = open_model()
            return provider if picks(models.planning, provider) else None

        return MenuPlanner(name, picking, self.offline, otherwise, models.rules, self.vault.resolve, models.ledger, models.sampling)

    def _choice(self, config: TurnConfig, model: str | None) -> Choice:
        """Which model is asked: a denied note may not even wish."""
        active, deny = self.plans.context().active_file, self.models.rules.deny
        hidden = active is not None and (deny.cover(active) or deny.cover(self.vault.resolve(active)))
        wish = wish_of(self.vault.view(), None if hidden else active)
        return choose(self.models.spec, model, wish, config.model, self.models.choosable)


@dataclass(frozen=True, slots=True)
class UnaskedAgent:
    """A `Planner` over an agent that does not look around, made anew for each turn: the open note may wish for another model."""

    name: str
    turns: ModelTurns
    approve: ApproveShare = share_selection

    async def plan(self, request: PlanRequest, emit: Emit) -> Verdict:
        """The agent's turn, in a conversation of its own."""
        try:
            agent = await asyncio.to_thread(self.agent)
        except ConfigError as error:
            return TurnFailed(error.problem())
        return await agent.plan(request, emit)

    def agent(self) -> Agent:
        """The agent of one turn. Raises `ConfigError`. May block."""
        agent = self.turns.agent(self.approve, Conversation())
        return replace(agent, config=replace(agent.config, tools=False, gatherer=None))


async def traced(plan: Callable[[Emit], Awaitable[Verdict]], question: str, agent: Agent, emit: Emit) -> Verdict:
    """A turn whose events are written to the trace, where one is wanted."""
    trace = agent.config.trace
    if trace is None:
        return await plan(emit)

    async def take(event: AgentEvent) -> None:
        if (degraded := trace.take(event, agent.conversation.id, agent.name)) is not None:
            await emit(Notice(degraded))

    async def both(event: AgentEvent) -> None:
        await take(event)
        await emit(event)

    await take(TurnStarted(question))
    verdict = await plan(both)
    await take(verdict)
    return verdict
