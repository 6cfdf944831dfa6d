"""Search among Obsidian's community plugins, told with what the vault has of them. Only recommends: installing is Obsidian's."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from obsidian_agent.agent.known_plugins import helpful
from obsidian_agent.errors import ProviderError
from obsidian_agent.providers.plugin_index import CommunityPlugin, PluginIndex, search
from obsidian_agent.vault.plugins import VaultPlugins
from obsidian_agent.vault.store import VaultStore


@dataclass(frozen=True, slots=True)
class FoundPlugin:
    """A plugin that fits a search; `installed` and `enabled` say what the vault has."""

    plugin: CommunityPlugin
    score: float
    installed: bool
    enabled: bool

    def to_json(self) -> dict[str, Any]:
        """`{id, name, author, description, repo, url, score, installed, enabled}`."""
        plugin = self.plugin
        told = {name: getattr(plugin, name) for name in ("id", "name", "author", "description", "repo", "url")}
        return told | {"score": self.score, "installed": self.installed, "enabled": self.enabled}


@dataclass(frozen=True, slots=True)
class FoundPlugins:
    """What a search found, best first, and how old the list is that it was made in."""

    items: tuple[FoundPlugin, ...]
    fetched_at: datetime
    stale: bool


async def search_plugins(index: PluginIndex, store: VaultStore, query: str, limit: int = 10, *, refresh: bool = False) -> FoundPlugins:
    """Plugins for a query. Asks the network at most once a day; ProviderError when there is no list at all; it names a well-known plugin that fits."""
    try:
        known = await index.fetch(refresh=refresh)
    except ProviderError as error:
        likely = helpful(query)
        if likely is None:
            raise
        message = f"{error.message} Known without it: {likely.name}, for {likely.does}."
        raise ProviderError(message, code=error.code, retryable=error.retryable) from error
    has = VaultPlugins.of(store)
    items = tuple(
        FoundPlugin(match.plugin, match.score, match.plugin.id in has.installed, match.plugin.id in has.enabled)
        for match in search(known.plugins, query, limit)
    )
    return FoundPlugins(items, known.fetched_at, known.stale)
