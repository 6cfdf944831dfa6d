"""Turns with a model that looks around: what a session needs for them, and the one call that front ends make."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from obsidian_agent.agent.conversation import Conversation
from obsidian_agent.agent.events import AgentEvent, NeedsInput, Notice, PlanReady, TurnFailed, TurnStarted
from obsidian_agent.agent.menu_planner import MenuPlanner, Planning, picks
from obsidian_agent.agent.planner import ModelPlanner, PlanRequest, Sampling
from obsidian_agent.agent.privacy.consent import ApproveShare, SharingRules
from obsidian_agent.agent.privacy.ledger import Ledger
from obsidian_agent.agent.turn.config import Choice, TurnConfig, choose, wish_of
from obsidian_agent.agent.turn.loop import Agent, Vault
from obsidian_agent.agent.turn.plain import GuardedPlanner, MadePlanner
from obsidian_agent.agent.turn.prompts import detail_for
from obsidian_agent.agent.turn.proposals import DryRun, dry_run_over
from obsidian_agent.agent.turn.tool_round import Scrubber
from obsidian_agent.errors import ConfigError, VaultError
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.providers.base import Provider
from obsidian_agent.providers.registry import ProviderManager
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.views.view import VaultView

if TYPE_CHECKING:
    from obsidian_agent.agent.session import Session


@dataclass(frozen=True)
class Models:
    """The models that a session asks (`spec` unless another one is named), how, under which rules, and where what is sent is written down."""

    spec: str
    providers: ProviderManager
    sampling: Sampling
    rules: SharingRules
    ledger: Ledger
    brief: Callable[[str | None], TurnConfig] = lambda assistant: TurnConfig()
    """What else an agent gets, made for each turn, under the instructions of an agent of the vault (by name); may block."""
    planning: Planning = "auto"
    """Whether models pick from the menu."""
    choosable: tuple[str, ...] = ()
    """Patterns of models that notes and agents of the vault may choose, besides those of the settings' own service."""

    @property
    def provider(self) -> Provider:
        """The provider of the settings, made when it is first asked for. Raises `ConfigError`."""
        return self.providers.get(self.spec)


async def answer(
    session: Session,
    question: str,
    approve_share: ApproveShare,
    *,
    conversation: Conversation | None = None,
    propose: bool = True,
    model: str | None = None,
    assistant: str | None = None,
    pick: int | None = None,
    params: Mapping[str, str] | None = None,
) -> AsyncIterator[AgentEvent]:
    """One message of the person to the session's model (or to `model`), in a conversation (None: a new one).

    `assistant` is the agent of the vault whose instructions hold, by name. `pick`: the person chose this one, from 1, of the candidates that
    the same message was asked back with, and gave `params` for it.

    A model that picks from the menu does so first, and looks around where no action fits.

    Ends with Answer, PreviewReady (of a plan that the model proposes; without `propose` none is offered to it), NeedsInput (actions to pick
    from, values of the plan), RoundsUsedUp or TurnFailed. Nothing of the vault is sent that the session's rules or `approve_share` do not allow.
    """
    yield TurnStarted(question)
    try:
        conversation = conversation or Conversation()
        agent = await asyncio.to_thread(make_agent, session, approve_share, conversation, propose=propose, model=model, assistant=assistant)
    except ConfigError as error:
        yield TurnFailed(error.problem())
        return
    plan: ActionPlan | None = None
    trace = agent.brief.trace
    if trace is not None and (degraded := trace.take(TurnStarted(question), conversation.id, agent.name)) is not None:
        yield Notice(degraded)
    context = await asyncio.to_thread(session.context, {})
    assert session.models is not None, "an agent has a model"
    planner = menu_over(session, session.models, agent, questions=not propose)
    events = cast("AsyncGenerator[AgentEvent, None]", planner.plan(PlanRequest(question, context, params=params or {}, pick=pick)))
    async with contextlib.aclosing(events):
        async for event in events:
            if isinstance(event, PlanReady):
                plan = event.plan
            elif isinstance(event, NeedsInput):
                session.ask_back(question)
            if trace is not None and (degraded := trace.take(event, conversation.id, agent.name)) is not None:
                yield Notice(degraded)
            yield event
    if plan is not None:
        async for following in session.preview_plan(plan.to_json(), instruction=question):
            yield following


def real_path(store: VaultStore) -> Callable[[VaultPath], VaultPath]:
    """Where paths lead when links are followed: never raises, and a link that is not followed leads to itself."""

    def real(path: VaultPath) -> VaultPath:
        try:
            return store.resolve(path)
        except VaultError:
            return path

    return real


def _choice(session: Session, models: Models, brief: TurnConfig, model: str | None) -> Choice:
    """Which model is asked: a denied note may not even wish."""
    active = session.context({}).active_file
    hidden = active is not None and (models.rules.deny.cover(active) or models.rules.deny.cover(real_path(session.store)(active)))
    wish = wish_of(session.view(), None if hidden else active)
    return choose(models.spec, model, wish, brief.model, models.choosable)


def make_planner(session: Session, models: Models) -> MenuPlanner:
    """The planner of a session whose model does not look around. Raises `ConfigError` when the model of the settings cannot be opened."""

    def chosen() -> tuple[TurnConfig, Choice, Provider]:
        brief = models.brief(None)
        choice = _choice(session, models, brief, None)
        return brief, choice, models.providers.get(choice.spec)

    def picking() -> Provider | None:
        provider = chosen()[2]
        return provider if picks(models.planning, provider) else None

    def make() -> MadePlanner:
        brief, choice, provider = chosen()
        detail = detail_for(brief.detail, provider, brief.window or brief.facts(choice.spec).window)
        planner = ModelPlanner(provider, session.tools, session.policy, models.sampling, instructions=brief.instructions, detail=detail)
        return MadePlanner(planner, brief.sources, (*brief.notices, *choice.notices))

    real, name = real_path(session.store), models.provider.name
    whole = GuardedPlanner(name, make, models.rules, real, models.ledger)
    return MenuPlanner(name, picking, session.offline, whole, models.rules, real, models.ledger, models.sampling, checked=True)


def menu_over(session: Session, models: Models, agent: Agent, *, questions: bool) -> MenuPlanner:
    """The agent, behind the menu where its model picks from that. The person is asked before anything is done, so its plans are not doubted."""

    def picking() -> Provider | None:
        return agent.provider if picks(models.planning, agent.provider) else None

    return MenuPlanner(
        agent.name,
        picking,
        session.offline,
        agent,
        models.rules,
        agent.vault.real,
        models.ledger,
        agent.sampling,
        questions=questions,
        conversation=agent.conversation.id,
    )


def make_agent(
    session: Session,
    approve_share: ApproveShare,
    conversation: Conversation,
    *,
    propose: bool = True,
    model: str | None = None,
    assistant: str | None = None,
) -> Agent:
    """An agent over a session's vault and model; see `answer`. May block.

    Raises `ConfigError` when no model is chosen, or it cannot be opened.
    """
    models, store = session.models, session.store
    if models is None:
        raise ConfigError("There is no model to answer this.", code="NO_MODEL", hint="Choose one first.")

    brief = models.brief(assistant)
    choice = _choice(session, models, brief, model)
    brief = replace(brief, notices=(*brief.notices, *choice.notices))

    def dry_run(open_view: Callable[[], VaultView]) -> DryRun:
        return dry_run_over(open_view, session.context, session.tools)

    return Agent(
        provider=models.providers.get(choice.spec),
        tools=session.tools,
        policy=session.policy,
        vault=Vault(session.view, real_path(store), Scrubber.of(store.real_path, str(models.ledger.file.parent))),
        rules=models.rules,
        approve=approve_share,
        ledger=models.ledger,
        conversation=conversation,
        dry_run=dry_run if propose else None,
        sampling=models.sampling,
        brief=brief,
    )
