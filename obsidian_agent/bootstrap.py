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
from obsidian_agent.vault.disk import DiskView
from obsidian_agent.vault.store import VaultStore

if TYPE_CHECKING:
    from obsidian_agent.agent.planner import Planner
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


def build_session(wiring: Wiring) -> Session:
    """A session on an open vault."""
    runs = Runs(wiring.store, wiring.state)
    usage = wiring.state / "vaults" / vault_key(wiring.store.real_path) / "macro-usage.json"
    saved = SavedActions(MacroStore(AppFolder(wiring.store, "macros"), usage, TOOLS), runs, TOOLS)

    def planner() -> Planner:
        return _planner(wiring, saved, session.view)

    session = Session(wiring.store, planner, TOOLS, wiring.policy, runs, saved, _clock(wiring.now), lambda: _keeper(wiring))
    return session


def _keeper(wiring: Wiring) -> IndexKeeper:
    # Imported here, as the planner is.
    from obsidian_agent.agent.indexing import open_index

    return open_index(wiring.store, wiring.state)


def _clock(now: datetime | None) -> Callable[[], datetime]:
    return (lambda: now) if now is not None else (lambda: datetime.now().astimezone())


def _planner(wiring: Wiring, saved: SavedActions, view: Callable[[], DiskView]) -> Planner:
    # Imported here: a third of the time that a headless run takes to start, and most of them have their plan already.
    if wiring.model is None:
        from obsidian_agent.agent.offline import OfflinePlanner

        return OfflinePlanner(view, wiring.store.obsidian_config, TOOLS, saved.list)
    from obsidian_agent.agent.planner import ModelPlanner, Sampling
    from obsidian_agent.providers.registry import open_provider

    provider = open_provider(wiring.model, base_url=wiring.base_url)
    return ModelPlanner(provider, TOOLS, wiring.policy, Sampling(wiring.temperature, wiring.max_tokens))
