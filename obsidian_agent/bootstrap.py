"""The composition root: the only module that combines concrete classes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from obsidian_agent.config.live import LiveSettings
from obsidian_agent.errors import ObsidianError
from obsidian_agent.journal import state_folder
from obsidian_agent.obsidian.transport import find_transport
from obsidian_agent.plan.policy import Policy, SharingRules
from obsidian_agent.services.hooks import Hooks
from obsidian_agent.services.macro_store import MacroStore
from obsidian_agent.services.open_vault import OpenVault
from obsidian_agent.services.plans import Plans
from obsidian_agent.services.runs import Runs
from obsidian_agent.services.session import Session
from obsidian_agent.services.trust import TrustStore
from obsidian_agent.services.user_policy import user_policy
from obsidian_agent.tools.registry import TOOLS
from obsidian_agent.vault.filesystem.app_folder import AppFolder
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.views.disk import DiskView

if TYPE_CHECKING:
    from obsidian_agent.agent.mcp_resources import McpResources
    from obsidian_agent.agent.mcp_servers import McpConnection, McpServers
    from obsidian_agent.agent.mcp_tools import McpTools
    from obsidian_agent.agent.privacy.ledger import Ledger
    from obsidian_agent.agent.privacy.record import AuditRecord
    from obsidian_agent.agent.trace import Trace
    from obsidian_agent.agent.turn.preparation import TurnConfig
    from obsidian_agent.agent.usage import MonthlyCost
    from obsidian_agent.app_services import AppServices
    from obsidian_agent.config.settings import McpServer
    from obsidian_agent.integrations.community_plugins import PluginIndex
    from obsidian_agent.integrations.shared_vault import SharedVault
    from obsidian_agent.obsidian.live import Obsidian
    from obsidian_agent.providers.base import Provider
    from obsidian_agent.providers.keys import KeyStore
    from obsidian_agent.providers.middleware import RateLimits
    from obsidian_agent.providers.other_agent import AgentState, OtherAgent
    from obsidian_agent.providers.registry import ProviderManager
    from obsidian_agent.services.model_turns import Models
    from obsidian_agent.services.rules import RuleRunner, RuleStore
    from obsidian_agent.services.vault_agents.library import FilesBelow, VaultAgents
    from obsidian_agent.services.waiting_plans import WaitingPlans
    from obsidian_agent.threads.log_store import ThreadStore
    from obsidian_agent.threads.manager import ThreadManager
    from obsidian_agent.vault.filesystem.store import OpenFiles
    from obsidian_agent.vault.index.keeper import IndexKeeper


class Wiring(Struct, frozen=True):
    """A vault, the user's settings for it, and the folder of the user's state.

    With `policy` None the settings limit what plans may do. `config` is the folder of the settings
    file, which may also hold keys. `now` freezes the clock.
    """

    store: VaultStore
    state: Path
    policy: Policy | None = Policy()
    now: datetime | None = None
    settings: LiveSettings = field(default_factory=LiveSettings)
    config: Path | None = None


def build_session(wiring: Wiring) -> Session:
    """Create a session on an open vault."""
    wiring.store.editor = _EditorBeside(wiring.store)
    runs = Runs(wiring.store, wiring.state)
    usage = _vault_state(wiring) / "macro-usage.json"
    saved = MacroStore(
        folder=AppFolder(wiring.store, "macros"),
        usage=usage,
        trust=_trusted(wiring),
        tools=TOOLS,
        plan_of=runs.plan_of,
    )

    vault = OpenVault(
        wiring.store,
        _clock(wiring.now),
        partial(_keeper, wiring),
        partial(open_obsidian, wiring.store),
    )
    plans = Plans(
        vault=vault,
        tools=TOOLS,
        make_policy=partial(policy_of, wiring),
        runs=runs,
        hooks=_hooks(wiring),
    )
    resources = _ModelResources(wiring, vault.files_below)
    return Session(vault, plans, saved, wiring.settings, partial(_models, wiring, resources))


def open_obsidian(store: VaultStore) -> Obsidian:
    """Return the client of an Obsidian that may be running, without a request to it."""
    from obsidian_agent.obsidian.live import Obsidian

    return Obsidian(store.real_path, lambda: store.obsidian_config("workspace"))


class _EditorBeside(Struct, frozen=True):
    """The notes open in a running Obsidian.

    Most headless runs have no Obsidian, so nothing is imported for it before one is detected.
    """

    store: VaultStore

    def save(
        self, paths: Iterable[str] | None, *, require_answer: bool = False
    ) -> OpenFiles | None:
        """Save open notes. See `Editor.save`."""
        try:
            find_transport()
        except ObsidianError:
            return None
        from obsidian_agent.obsidian.editing import ObsidianEditor

        return ObsidianEditor(open_obsidian(self.store)).save(paths, require_answer=require_answer)


def build_threads(wiring: Wiring, session: Session) -> ThreadManager:
    """Create the manager of a session's threads."""
    from obsidian_agent.threads.manager import ThreadManager

    return ThreadManager(open_threads(wiring), session, lambda: wiring.settings.current.auto_title)


def open_threads(wiring: Wiring) -> ThreadStore:
    """Open the threads of a vault on disk."""
    from obsidian_agent.threads.log_store import ThreadStore

    return ThreadStore(_vault_state(wiring) / "threads", _clock(wiring.now))


def open_ledger(wiring: Wiring) -> Ledger:
    """Open the ledger of what was sent to models."""
    from obsidian_agent.agent.privacy.ledger import Ledger

    return Ledger(open_record(wiring))


def open_record(wiring: Wiring) -> AuditRecord:
    """Open the audit record of a vault."""
    from obsidian_agent.agent.privacy.record import AuditRecord

    return AuditRecord(_vault_state(wiring), _clock(None))


def build_shared_vault(wiring: Wiring) -> SharedVault:
    """Create the vault as other agents see it."""
    from obsidian_agent.integrations.proposals import CLIENT_VARIABLE, SOCKET_VARIABLE
    from obsidian_agent.integrations.shared_vault import SharedVault

    session = build_session(wiring)
    path = os.environ.get(SOCKET_VARIABLE)
    return SharedVault(
        vault=session.vault,
        plans=session.plans,
        ledger=open_ledger(wiring),
        waiting=open_inbox(wiring),
        app=Path(path) if path else app_socket(wiring),
        client=os.environ.get(CLIENT_VARIABLE, ""),
    )


def app_socket(wiring: Wiring) -> Path:
    """Return the socket on which the app accepts plans of other agents."""
    from obsidian_agent.integrations.proposals import APP_SOCKET

    return _vault_state(wiring) / APP_SOCKET


def proposals_folder(wiring: Wiring) -> Path:
    """Return the folder of plans that other agents proposed."""
    return _vault_state(wiring) / "proposals"


def open_inbox(wiring: Wiring) -> WaitingPlans:
    """Open the plans that wait for approval, from all sources."""
    from obsidian_agent.services.waiting_plans import WaitingPlan, WaitingPlans

    hooks = _hooks(wiring)

    def announce(plan: WaitingPlan) -> None:
        hooks.fire(
            "plan_waiting",
            planId=plan.id,
            source=plan.source,
            goal=plan.goal,
            changes=plan.changes,
        )

    return WaitingPlans(proposals_folder(wiring), announce)


def open_rules(wiring: Wiring) -> RuleStore:
    """Open the rules of the vault: those of the settings, and those that were added."""
    from obsidian_agent.services.rules import Rule, RuleStore

    configured = [
        Rule(
            name=rule.name,
            cron=rule.at,
            notes=rule.notes,
            recipe=rule.recipe,
            macro=rule.macro,
            params=rule.params,
            alone=rule.alone,
        )
        for rule in wiring.settings.current.rules
    ]
    return RuleStore(_vault_state(wiring), configured)


def build_rules(wiring: Wiring, session: Session) -> RuleRunner:
    """Create the runner of the vault's rules. Its clock has the time zone of this machine."""
    from obsidian_agent.services.rules import RuleRunner, local_zone

    zone = local_zone()

    def clock() -> datetime:
        return wiring.now or datetime.now(zone)

    return RuleRunner(open_rules(wiring), open_inbox(wiring), session, clock)


def _hooks(wiring: Wiring) -> Hooks:
    return Hooks(wiring.store.real_path, lambda: wiring.settings.current.hooks)


def build_app_services(wiring: Wiring, session: Session, threads: ThreadManager) -> AppServices:
    """Create the services that screens need in addition to a session."""
    from obsidian_agent.app_services import AppServices
    from obsidian_agent.integrations.community_plugins import PluginMatches, search_plugins
    from obsidian_agent.services.health import VaultHealth

    async def plugins(query: str) -> PluginMatches:
        return await search_plugins(
            open_plugin_index(wiring.state, wiring.now), wiring.store, query
        )

    vault_agents = build_vault_agents(wiring, files=session.vault.files_below)
    return AppServices(
        session=session,
        threads=threads,
        ledger=open_ledger(wiring),
        plugins=plugins,
        vault_agents=vault_agents,
        keys=build_keys(wiring),
        waiting=open_inbox(wiring),
        rules=lambda: build_rules(wiring, session),
        health=VaultHealth(wiring.state, wiring.store),
    )


def _models(
    wiring: Wiring, resources: _ModelResources, report: Callable[[AgentState], object]
) -> Models | None:
    spec = wiring.settings.model
    if spec is None:
        return None
    # This import takes a third of a headless run's start-up time, and most runs need no model.
    from obsidian_agent.agent.replies import Sampling
    from obsidian_agent.services.model_turns import Models

    settings, rules = wiring.settings.current, policy_of(wiring).sharing
    sampling = Sampling(settings.temperature, settings.max_tokens, settings.timeout)
    return Models(
        spec=spec,
        providers=_providers(wiring, spec, resources, report),
        sampling=sampling,
        rules=rules,
        ledger=open_ledger(wiring),
        config=lambda assistant: _turn_config(wiring, rules, assistant, resources),
        planning=settings.planning,
        choosable=settings.note_models,
        servers=resources.server_resources,
    )


def _providers(
    wiring: Wiring, spec: str, resources: _ModelResources, report: Callable[[AgentState], object]
) -> ProviderManager:
    from obsidian_agent.agent.usage import CountedProvider
    from obsidian_agent.providers.registry import SCRIPTED, ProviderManager, environment_key

    settings = wiring.settings.current
    addresses = dict(settings.services)
    if settings.base_url:
        addresses[spec.partition("/")[0].lower()] = settings.base_url

    def with_cost(provider: Provider) -> Provider:
        if provider.name.startswith(f"{SCRIPTED}/"):
            return provider  # scripts cost nothing
        return CountedProvider(provider, lambda: open_monthly_cost(wiring))

    return ProviderManager(
        addresses,
        find_key=build_keys(wiring).find if wiring.config is not None else environment_key,
        limits=resources.limits,
        streaming=settings.streaming,
        wrap=with_cost,
        open_agent=partial(resources.agent, report=report),
    )


def open_monthly_cost(wiring: Wiring) -> MonthlyCost:
    """Open the record of what models cost in all vaults, with the cap of the settings."""
    from obsidian_agent.agent.usage import MonthlyCost

    return MonthlyCost(
        wiring.state / "spending.jsonl", _clock(None), wiring.settings.current.spending_cap
    )


def build_keys(wiring: Wiring) -> KeyStore:
    """Create the store of the user's keys."""
    from obsidian_agent.providers.keys import KEY_FILE, KeyStore

    return KeyStore((wiring.config or wiring.state) / KEY_FILE)


class _ModelResources(Struct, dict=True):
    """Resources of models that outlive a change of the settings."""

    wiring: Wiring
    files: FilesBelow
    _agents: dict[str, OtherAgent] = field(default_factory=dict)

    def agent(self, name: str, report: Callable[[AgentState], object]) -> OtherAgent:
        """Return an external agent by name, always the same one. Raise `ConfigError`.

        `report` receives its state.
        """
        from obsidian_agent.integrations.other_agents import open_agent

        if name not in self._agents:
            wiring = self.wiring
            self._agents[name] = open_agent(
                name,
                store=wiring.store,
                state=wiring.state,
                settings=wiring.settings,
                record=open_record(wiring),
                report=report,
            )
        return self._agents[name]

    @cached_property
    def limits(self) -> RateLimits:
        """The rate limits of services."""
        from obsidian_agent.providers.middleware import RateLimits, TokenBucket

        return RateLimits(lambda: TokenBucket(self.wiring.settings.current.requests_per_minute))

    @cached_property
    def servers(self) -> McpServers:
        """The MCP servers of the settings."""
        from obsidian_agent.agent.mcp_servers import McpServers

        wiring = self.wiring
        return McpServers(
            configured=lambda: wiring.settings.current.mcp_servers,
            logs=wiring.state / "log",
            connect=_connect,
        )

    @cached_property
    def server_tools(self) -> McpTools:
        """The tools of MCP servers that models may call."""
        from obsidian_agent.agent.mcp_tools import McpTools

        wiring = self.wiring
        return McpTools(
            servers=self.servers,
            policy=lambda: policy_of(wiring),
            pins=wiring.state / "mcp-tools.json",
            record=open_record(wiring),
        )

    @cached_property
    def server_resources(self) -> McpResources:
        """The resources and prompts of MCP servers."""
        from obsidian_agent.agent.mcp_resources import McpResources

        wiring = self.wiring
        return McpResources(
            servers=self.servers, policy=lambda: policy_of(wiring), record=open_record(wiring)
        )

    @cached_property
    def trace(self) -> Trace:
        """The trace of turns, used if tracing is on."""
        from obsidian_agent.agent.trace import Trace

        return Trace(file=self.wiring.state / "log" / "trace.jsonl", now=_clock(None))


def _connect(name: str, server: McpServer, log: Path) -> McpConnection:
    """Create a connection to an MCP server. The first call imports the library and blocks."""
    from obsidian_agent.integrations import mcp_client

    return mcp_client.Connection(name, server, log)


def _turn_config(
    wiring: Wiring, rules: SharingRules, assistant: str | None, resources: _ModelResources
) -> TurnConfig:
    """Return the configuration of an agent's next turn. May block."""
    from obsidian_agent.agent.context import CONTEXT_FORMATS, Gatherer
    from obsidian_agent.agent.turn.model_tools import READ_TOOLS
    from obsidian_agent.agent.turn.preparation import TurnConfig
    from obsidian_agent.services.vault_agents.library import resolve

    settings = wiring.settings.current
    policy = policy_of(wiring)
    resolved = resolve(
        build_vault_agents(wiring, rules, resources.files).library(),
        assistant,
        settings.system_message,
        READ_TOOLS,
    )
    offered = frozenset(READ_TOOLS) if resolved.only is None else resolved.only
    return TurnConfig(
        instructions=resolved.instructions,
        gatherer=Gatherer(
            settings.context_active_note, settings.context_notes, frozenset(settings.mcp_servers)
        ),
        format=CONTEXT_FORMATS[settings.context_fusion],
        window=settings.context_window,
        detail=None if settings.prompt == "auto" else settings.prompt,
        tools=settings.tool_calling,
        only=frozenset(name for name in offered if policy.on_call(name).decision != "deny"),
        agent=resolved.agent,
        temperature=resolved.temperature,
        model=resolved.model,
        trace=resources.trace if settings.tracing else None,
        sources=resolved.paths,
        notices=resolved.problems,
        servers=resources.server_tools if settings.mcp_servers and resolved.only is None else None,
        resources=resources.server_resources if settings.mcp_servers else None,
    )


def build_vault_agents(
    wiring: Wiring, rules: SharingRules | None = None, files: FilesBelow | None = None
) -> VaultAgents:
    """Open the vault's agents, skills and instructions. `files` lists files, by default on disk."""
    from obsidian_agent.services.vault_agents.library import VaultAgents, files_below

    known = rules or policy_of(wiring).sharing
    return VaultAgents(
        wiring.store,
        files or (lambda start: files_below(DiskView(wiring.store), start)),
        _trusted(wiring),
        known.deny.cover,
    )


def _trusted(wiring: Wiring) -> TrustStore:
    """Open the store of trusted files of the vault."""
    return TrustStore(_vault_state(wiring) / "trusted.json", open_record(wiring))


def policy_of(wiring: Wiring, agent: str = "") -> Policy:
    """Return the current policy for the plans of an agent, "" for the user. May block."""
    return user_policy(wiring.store, wiring.settings.current, wiring.policy, agent)


def _vault_state(wiring: Wiring) -> Path:
    return state_folder.find(wiring.state, wiring.store)


def _keeper(wiring: Wiring) -> IndexKeeper:
    # Most headless runs need no index.
    from obsidian_agent.vault.index.keeper import IndexKeeper

    return IndexKeeper(wiring.store, state_folder.index_folder(wiring.state, wiring.store))


def open_plugin_index(state: Path, now: datetime | None = None) -> PluginIndex:
    """Open Obsidian's list of community plugins, which all vaults share."""
    from obsidian_agent.integrations.community_plugins import PluginIndex

    return PluginIndex(state / "plugin-index.json", _clock(now))


def _clock(now: datetime | None) -> Callable[[], datetime]:
    if now is not None:
        return lambda: now
    return lambda: datetime.now().astimezone()
