"""Composition root: the only module that names concrete classes together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from obsidian_agent.agent.macros import MacroStore
from obsidian_agent.agent.runs import Runs
from obsidian_agent.agent.saved import SavedActions
from obsidian_agent.agent.session import Session
from obsidian_agent.journal.store import vault_key
from obsidian_agent.plan.policy import Policy
from obsidian_agent.tools.registry import TOOLS
from obsidian_agent.vault.appfolder import AppFolder
from obsidian_agent.vault.store import VaultStore

if TYPE_CHECKING:
    from obsidian_agent.agent.answering import Models
    from obsidian_agent.agent.planner import Planner
    from obsidian_agent.agent.threads.chats import Chats
    from obsidian_agent.providers.plugin_index import PluginIndex
    from obsidian_agent.vault.index_keeper import IndexKeeper


@dataclass(frozen=True, slots=True)
class Wiring:
    """Plain values from options and settings. `model` None means the offline planner; `now` freezes the clock."""

    store: VaultStore
    state: Path
    policy: Policy = Policy()
    model: str | None = None
    base_url: str | None = None
    temperature: float = 0.2
    max_tokens: int | None = None
    now: datetime | None = None
    share_allow: tuple[str, ...] = ()
    share_deny: tuple[str, ...] = ()
    share_local: bool = False
    auto_title: bool = False


def build_session(wiring: Wiring) -> Session:
    """A session on an open vault."""
    runs = Runs(wiring.store, wiring.state)
    usage = wiring.state / "vaults" / vault_key(wiring.store.real_path) / "macro-usage.json"
    saved = SavedActions(MacroStore(AppFolder(wiring.store, "macros"), usage, TOOLS), runs, TOOLS)

    def planner() -> Planner:
        return _planner(wiring, saved, session)

    def models() -> Models | None:
        return _models(wiring, wiring.model) if wiring.model is not None else None

    session = Session(wiring.store, planner, TOOLS, wiring.policy, runs, saved, _clock(wiring.now), lambda: _keeper(wiring), models)
    return session


def build_chats(wiring: Wiring, session: Session) -> Chats:
    """The threads of a session's vault."""
    from obsidian_agent.agent.threads.chats import Chats
    from obsidian_agent.agent.threads.store import ThreadStore
    from obsidian_agent.agent.threads.turning import SessionTurns

    folder = wiring.state / "vaults" / vault_key(wiring.store.real_path) / "threads"
    return Chats(ThreadStore(folder, _clock(wiring.now)), SessionTurns(session, wiring.auto_title))


def _models(wiring: Wiring, spec: str) -> Models:
    # Imported here, as the planner is.
    from obsidian_agent.agent.answering import Models
    from obsidian_agent.agent.ledger import Ledger
    from obsidian_agent.agent.planner import Sampling
    from obsidian_agent.agent.sharing import SharingRules
    from obsidian_agent.providers.manager import ProviderManager

    ledger = Ledger(wiring.state / "vaults" / vault_key(wiring.store.real_path) / "sent.jsonl", _clock(None))
    rules = SharingRules.of(wiring.share_allow, wiring.share_deny, local=wiring.share_local)
    sampling = Sampling(wiring.temperature, wiring.max_tokens)
    vendor = spec.partition("/")[0]
    return Models(spec, ProviderManager(wiring.base_url, base_url_of=vendor), sampling, rules, ledger)


def _keeper(wiring: Wiring) -> IndexKeeper:
    # Imported here, as the planner is.
    from obsidian_agent.agent.indexing import open_index

    return open_index(wiring.store, wiring.state)


def open_plugin_index(state: Path, now: datetime | None = None) -> PluginIndex:
    """Obsidian's list of community plugins, kept beside the vaults' folders; one for all vaults."""
    from obsidian_agent.providers.plugin_index import PluginIndex

    return PluginIndex(state / "plugin-index.json", _clock(now))


def _clock(now: datetime | None) -> Callable[[], datetime]:
    return (lambda: now) if now is not None else (lambda: datetime.now().astimezone())


def _planner(wiring: Wiring, saved: SavedActions, session: Session) -> Planner:
    # Imported here: a third of the time that a headless run takes to start, and most of them have their plan already.
    models = session.models
    if models is None:
        from obsidian_agent.agent.offline import OfflinePlanner

        return OfflinePlanner(session.view, wiring.store.obsidian_config, TOOLS, saved.list)
    from obsidian_agent.agent.answering import real_path
    from obsidian_agent.agent.guarded import GuardedPlanner
    from obsidian_agent.agent.planner import ModelPlanner

    planner = ModelPlanner(models.provider, TOOLS, wiring.policy, models.sampling)
    return GuardedPlanner(planner, models.rules, real_path(wiring.store), models.ledger)
