"""Obsidian's community plugins that may help: a search, told with what the vault has of them, and a few well-known ones by name.

The well-known ones need no network; they are named where a plan cannot help. Nothing is installed: that is Obsidian's.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Any

import regex

from obsidian_agent.errors import ProviderError
from obsidian_agent.offline.words import stem
from obsidian_agent.providers.plugin_index import CommunityPlugin, PluginIndex, search
from obsidian_agent.vault.filesystem.app_folder import VaultPlugins
from obsidian_agent.vault.filesystem.store import VaultStore

_WORD = regex.compile(r"[\p{L}\p{N}]+(?:['’]\p{L}+)?")


@dataclass(frozen=True, slots=True)
class KnownPlugin:
    """A plugin, what it does in a few words, and how people ask for that."""

    id: str
    name: str
    does: str
    asked: tuple[tuple[str, ...], ...]


@cache
def known_plugins() -> tuple[KnownPlugin, ...]:
    """Those that are known here, read at the first call."""
    data = resources.files("obsidian_agent.agent").joinpath("known_plugins.json").read_bytes()
    return tuple(KnownPlugin(each["id"], each["name"], each["does"], tuple(map(_stems, each["asked"]))) for each in json.loads(data))


def helpful(instruction: str) -> KnownPlugin | None:
    """The plugin that does what is asked for: the one of which the most words are said, all of a way to ask for it, in order."""
    said = _stems(instruction)
    found = [(len(asked), plugin) for plugin in known_plugins() for asked in plugin.asked if _holds(said, asked)]
    return max(found, key=lambda each: each[0])[1] if found else None


def _stems(text: str) -> tuple[str, ...]:
    return tuple(stem(word) for word in _WORD.findall(text))


def _holds(said: tuple[str, ...], asked: tuple[str, ...]) -> bool:
    rest = iter(said)
    return all(word in rest for word in asked)


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
