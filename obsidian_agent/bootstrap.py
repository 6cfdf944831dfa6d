"""Composition root: the only module that names concrete classes together."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from fnmatch import fnmatchcase
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from obsidian_agent.config.live import LiveSettings
from obsidian_agent.dataclass import dataclass, field, replace
from obsidian_agent.errors import ObsidianError, VaultError
from obsidian_agent.journal import state_folder
from obsidian_agent.obsidian.transport import find_transport
from obsidian_agent.plan.policy import MODEL, Policy, PolicyLimits, SharingRules, vault_rules
from obsidian_agent.plan.result import SETTINGS
from obsidian_agent.services.hooks import Hooks
from obsidian_agent.services.macro_store import MacroStore
from obsidian_agent.services.open_vault import OpenVault
from obsidian_agent.services.plans import Plans
from obsidian_agent.services.runs import Runs
from obsidian_agent.services.session import Session
from obsidian_agent.services.trust import TrustStore
from obsidian_agent.tools.registry import TOOLS
from obsidian_agent.vault.filesystem.app_folder import FILE_LIMIT, AppFolder
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.paths.path import app_path
from obsidian_agent.vault.views.disk import DiskView

if TYPE_CHECKING:
    from obsidian_agent.agent.mcp_tools import McpConnection, McpTools
    from obsidian_agent.agent.privacy.record import AuditRecord, Ledger
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
    from obsidian_agent.services.vault_agents.library import FilesBelow, VaultAgents
    from obsidian_agent.threads.log_store import ThreadStore
    from obsidian_agent.threads.manager import ThreadManager
    from obsidian_agent.vault.filesystem.store import OpenFiles
    from obsidian_agent.vault.index.keeper import IndexKeeper


VAULT_POLICY: Final = app_path("policy.json")
"""What a vault itself forbids."""


@dataclass(frozen=True, slots=True)
class Wiring:
    """A vault, the person's settings for it, and where their state lies. `now` freezes the clock.

    `policy` None: the settings say what plans may do. `config`: the folder of the settings file, where keys may lie too.
    """

    store: VaultStore
    state: Path
    policy: Policy | None = Policy()
    now: datetime | None = None
    settings: LiveSettings = field(default_factory=LiveSettings)
    config: Path | None = None


def build_session(wiring: Wiring) -> Session:
    """A session on an open vault."""
    wiring.store.editor = _EditorBeside(wiring.store)
    runs = Runs(wiring.store, wiring.state)
    usage = _vault_state(wiring) / "macro-usage.json"
    saved = MacroStore(
        AppFolder(wiring.store, "macros"), usage, _trusted(wiring), TOOLS, runs.plan_of
    )

    vault = OpenVault(
        wiring.store,
        _clock(wiring.now),
        lambda: _keeper(wiring),
        lambda: open_obsidian(wiring.store),
    )
    hooks = Hooks(wiring.store.real_path, lambda: wiring.settings.current.hooks)
    plans = Plans(vault, TOOLS, partial(policy_of, wiring), runs, hooks)
    lasting = _Lasting(wiring, vault.files_below)
    session = Session(vault, plans, saved, wiring.settings, lambda: _models(wiring, lasting))
    lasting.tell = lambda state: session.on_agent(state)
    return session


def open_obsidian(store: VaultStore) -> Obsidian:
    """The Obsidian that may run beside this program, for a vault. It is not asked yet."""
    from obsidian_agent.obsidian.live import Obsidian

    return Obsidian(store.real_path, lambda: store.obsidian_config("workspace"))


@dataclass(frozen=True, slots=True)
class _EditorBeside:
    """The notes open in an Obsidian, if one runs. Without one nothing is imported for it: most headless runs have none."""

    store: VaultStore

    def save(
        self, paths: Iterable[str] | None, *, require_answer: bool = False
    ) -> OpenFiles | None:
        """As `Editor.save`."""
        try:
            find_transport()
        except ObsidianError:
            return None
        from obsidian_agent.obsidian.editing import ObsidianEditor

        return ObsidianEditor(open_obsidian(self.store)).save(paths, require_answer=require_answer)


def build_threads(wiring: Wiring, session: Session) -> ThreadManager:
    """The threads of a session's vault."""
    from obsidian_agent.threads.manager import ThreadManager

    return ThreadManager(open_threads(wiring), session, lambda: wiring.settings.current.auto_title)


def open_threads(wiring: Wiring) -> ThreadStore:
    """The threads of a vault on disk."""
    from obsidian_agent.threads.log_store import ThreadStore

    return ThreadStore(_vault_state(wiring) / "threads", _clock(wiring.now))


def open_ledger(wiring: Wiring) -> Ledger:
    """What of a vault was sent to models."""
    from obsidian_agent.agent.privacy.record import Ledger

    return Ledger(open_record(wiring))


def open_record(wiring: Wiring) -> AuditRecord:
    """What was done to a vault and handed over of it."""
    from obsidian_agent.agent.privacy.record import AuditRecord

    return AuditRecord(_vault_state(wiring), _clock(None))


def build_shared_vault(wiring: Wiring) -> SharedVault:
    """The vault as other agents get to know it."""
    from obsidian_agent.integrations.proposals import CLIENT_VARIABLE, SOCKET_VARIABLE
    from obsidian_agent.integrations.shared_vault import SharedVault

    session = build_session(wiring)
    given = os.environ.get(SOCKET_VARIABLE)
    place = Path(given) if given else app_socket(wiring)
    return SharedVault(
        session.vault,
        session.plans,
        open_ledger(wiring),
        proposals_folder(wiring),
        place,
        client=os.environ.get(CLIENT_VARIABLE, ""),
    )


def app_socket(wiring: Wiring) -> Path:
    """Where the open app of a vault takes plans that other agents propose."""
    from obsidian_agent.integrations.proposals import APP_SOCKET

    return _vault_state(wiring) / APP_SOCKET


def proposals_folder(wiring: Wiring) -> Path:
    """Where plans lie that other agents have proposed."""
    return _vault_state(wiring) / "proposals"


def build_app_services(wiring: Wiring, session: Session, threads: ThreadManager) -> AppServices:
    """What the program can tell of itself."""
    from obsidian_agent.app_services import AppServices
    from obsidian_agent.integrations.community_plugins import PluginMatches, search_plugins

    async def plugins(query: str) -> PluginMatches:
        return await search_plugins(
            open_plugin_index(wiring.state, wiring.now), wiring.store, query
        )

    vault_agents = build_vault_agents(wiring, files=session.vault.files_below)
    return AppServices(
        session, threads, open_ledger(wiring), plugins, vault_agents, build_keys(wiring)
    )


def _models(wiring: Wiring, lasting: _Lasting) -> Models | None:
    spec = wiring.settings.model
    if spec is None:
        return None
    # Imported here: a third of the time that a headless run takes to start, and most of them have their plan already.
    from obsidian_agent.agent.planner import Sampling
    from obsidian_agent.services.model_turns import Models

    settings, rules = wiring.settings.current, policy_of(wiring).sharing
    sampling = Sampling(settings.temperature, settings.max_tokens, settings.timeout)
    return Models(
        spec,
        _providers(wiring, spec, lasting),
        sampling,
        rules,
        open_ledger(wiring),
        lambda assistant: _turn_config(wiring, rules, assistant, lasting),
        settings.planning,
        settings.note_models,
    )


def _providers(wiring: Wiring, spec: str, lasting: _Lasting) -> ProviderManager:
    from obsidian_agent.agent.usage import CountedProvider
    from obsidian_agent.providers.registry import SCRIPTED, ProviderManager, environment_key

    settings = wiring.settings.current
    addresses = dict(settings.services) | (
        {spec.partition("/")[0].lower(): settings.base_url} if settings.base_url else {}
    )
    find_key = build_keys(wiring).find if wiring.config is not None else environment_key

    def counted(provider: Provider) -> Provider:
        # Scripts are played, not asked.
        return (
            provider
            if provider.name.startswith(f"{SCRIPTED}/")
            else CountedProvider(provider, lambda: open_monthly_cost(wiring))
        )

    limits, agent = lasting.limits, lasting.agent
    return ProviderManager(
        addresses,
        find_key=find_key,
        limits=limits,
        streaming=settings.streaming,
        wrap=counted,
        open_agent=agent,
    )


def open_monthly_cost(wiring: Wiring) -> MonthlyCost:
    """What models have cost, in all vaults, and the cap of the settings."""
    from obsidian_agent.agent.usage import MonthlyCost

    return MonthlyCost(
        wiring.state / "spending.jsonl", _clock(None), wiring.settings.current.spending_cap
    )


def build_keys(wiring: Wiring) -> KeyStore:
    """Where the person's keys are found and kept."""
    from obsidian_agent.providers.keys import KEY_FILE, KeyStore

    return KeyStore((wiring.config or wiring.state) / KEY_FILE)


@dataclass
class _Lasting:
    """What stays the same however often the models of a session change."""

    wiring: Wiring
    files: FilesBelow
    tell: Callable[[AgentState], object] = lambda state: None
    _agents: dict[str, OtherAgent] = field(default_factory=dict)

    def agent(self, name: str) -> OtherAgent:
        """An agent by name; the same one every time, with its sessions. Raises `ConfigError`."""
        from obsidian_agent.integrations.other_agents import open_agent

        if name not in self._agents:
            wiring = self.wiring
            self._agents[name] = open_agent(
                name,
                wiring.store,
                wiring.state,
                wiring.settings,
                open_record(wiring),
                lambda state: self.tell(state),
            )
        return self._agents[name]

    @cached_property
    def limits(self) -> RateLimits:
        """How often each service is asked."""
        from obsidian_agent.providers.middleware import RateLimits, TokenBucket

        return RateLimits(lambda: TokenBucket(self.wiring.settings.current.requests_per_minute))

    @cached_property
    def servers(self) -> McpTools:
        """The MCP servers whose tools models may call."""
        from obsidian_agent.agent.mcp_tools import McpTools

        wiring = self.wiring
        configured = lambda: wiring.settings.current.mcp_servers  # noqa: E731
        return McpTools(
            configured,
            lambda: policy_of(wiring),
            wiring.state / "mcp-tools.json",
            wiring.state / "log",
            open_record(wiring),
            _connect,
        )

    @cached_property
    def trace(self) -> Trace:
        """Where turns are traced when that is wanted."""
        from obsidian_agent.agent.trace import Trace

        return Trace(self.wiring.state / "log" / "trace.jsonl", _clock(None))


def _connect(name: str, server: McpServer, log: Path) -> McpConnection:
    """Make a connection to an MCP server. Imports the protocol's library, so it blocks once."""
    from obsidian_agent.integrations import mcp_client

    return mcp_client.Connection(name, server, log)


def _turn_config(
    wiring: Wiring, rules: SharingRules, assistant: str | None, lasting: _Lasting
) -> TurnConfig:
    """What an agent gets in its next turn. May block."""
    from obsidian_agent.agent.context import CONTEXT_FORMATS, Gatherer
    from obsidian_agent.agent.turn.model_tools import READ_TOOLS
    from obsidian_agent.agent.turn.preparation import TurnConfig
    from obsidian_agent.services.vault_agents.library import resolve

    settings = wiring.settings.current
    policy = policy_of(wiring)
    resolved = resolve(
        build_vault_agents(wiring, rules, lasting.files).library(),
        assistant,
        settings.system_message,
        READ_TOOLS,
    )
    offered = frozenset(READ_TOOLS) if resolved.only is None else resolved.only
    return TurnConfig(
        instructions=resolved.instructions,
        gatherer=Gatherer(settings.context_active_note, settings.context_notes),
        format=CONTEXT_FORMATS[settings.context_fusion],
        window=settings.context_window,
        detail=None if settings.prompt == "auto" else settings.prompt,
        tools=settings.tool_calling,
        only=frozenset(name for name in offered if policy.on_call(name).decision != "deny"),
        agent=resolved.agent,
        temperature=resolved.temperature,
        model=resolved.model,
        trace=lasting.trace if settings.tracing else None,
        sources=resolved.paths,
        notices=resolved.problems,
        servers=lasting.servers if settings.mcp_servers and resolved.only is None else None,
    )


def build_vault_agents(
    wiring: Wiring, rules: SharingRules | None = None, files: FilesBelow | None = None
) -> VaultAgents:
    """The vault's own agents, skills and instructions. `files` says where files are (None: the disk)."""
    from obsidian_agent.services.vault_agents.library import VaultAgents, files_below

    known = rules or policy_of(wiring).sharing
    return VaultAgents(
        wiring.store,
        files or (lambda start: files_below(DiskView(wiring.store), start)),
        _trusted(wiring),
        known.deny.cover,
    )


def _trusted(wiring: Wiring) -> TrustStore:
    """What of the vault the person trusts on this computer."""
    return TrustStore(_vault_state(wiring) / "trusted.json", open_record(wiring))


def policy_of(wiring: Wiring, agent: str = "") -> Policy:
    """What may happen, as options and settings have it now, and the vault's own file narrows it. May block.

    `agent` plans ("": the person): a program, an agent of the vault, or PROGRAM/AGENT, which is held to what either is held to.
    """
    settings = wiring.settings.current
    base = wiring.policy or Policy(
        allow_deletes=settings.allow_deletes, allow_commands=settings.allow_commands
    )
    root = wiring.store.real_path
    own = PolicyLimits.of(
        SETTINGS,
        settings.level,
        settings.write_allow,
        settings.write_deny,
        root=root,
        extensions=settings.write_extensions,
        largest=settings.write_largest,
        tools_deny=settings.tools_deny,
        commands_deny=settings.commands_deny,
    )
    vaults, told = vault_rules(_vault_policy(wiring.store), VAULT_POLICY.text, settings.level, root)
    program, names = _named("" if agent == MODEL else agent.casefold(), settings.agents)
    levels = [
        level
        for name, level in settings.agent_levels.items()
        if any(fnmatchcase(each, name.casefold()) for each in names)
    ]
    deny = (*settings.share_deny, *vaults.share_deny.patterns)
    return replace(
        base,
        limits=(own, vaults, *(PolicyLimits("agent_levels", level) for level in levels)),
        confirm_writes=settings.confirm_writes,
        auto_approve_read_only=settings.auto_approve_read_only,
        tools_allow=settings.tools_allow,
        commands_allow=settings.commands_allow,
        sharing=SharingRules.of(settings.share_allow, deny, local=settings.share_local, root=root),
        problems=told,
        agent=agent,
        program=program,
    )


def _named(agent: str, own: Mapping[str, str]) -> tuple[str, list[str]]:
    """Which other program an agent is, "" none, and the names that rules may have for it. All in lower case."""
    if not agent:
        return "", []
    from obsidian_agent.providers.other_agent import COMMANDS

    known = (name.casefold() for name in (*COMMANDS, *own))
    program = max(
        (name for name in known if f"{agent}/".startswith(f"{name}/")), key=len, default=""
    )
    return program, [agent, program, agent.removeprefix(f"{program}/")]


def _vault_policy(store: VaultStore) -> bytes | None:
    try:
        return store.read(VAULT_POLICY, FILE_LIMIT)
    except VaultError as error:
        return (
            None if error.code == "FILE_NOT_FOUND" else b""
        )  # what cannot be read counts as broken


def _vault_state(wiring: Wiring) -> Path:
    """Where the state of the vault lies."""
    return state_folder.find(wiring.state, wiring.store)


def _keeper(wiring: Wiring) -> IndexKeeper:
    # Imported here, as the models are.
    from obsidian_agent.vault.index.keeper import IndexKeeper

    return IndexKeeper(wiring.store, state_folder.index_folder(wiring.state, wiring.store))


def open_plugin_index(state: Path, now: datetime | None = None) -> PluginIndex:
    """Obsidian's list of community plugins, kept beside the vaults' folders; one for all vaults."""
    from obsidian_agent.integrations.community_plugins import PluginIndex

    return PluginIndex(state / "plugin-index.json", _clock(now))


def _clock(now: datetime | None) -> Callable[[], datetime]:
    return (lambda: now) if now is not None else (lambda: datetime.now().astimezone())
