"""Obsidian's community plugins: the list, cached for a day, a search in it, and well-known plugins.

Without a network an old copy of the list is used and marked as stale. Well-known plugins, which are
suggested where a plan cannot help, need no list. Plugins are installed in Obsidian, never here.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from obsidian_agent.errors import ProviderError
from obsidian_agent.expression import unicode_expression
from obsidian_agent.offline.words import stem
from obsidian_agent.providers.registry import is_loopback
from obsidian_agent.state_files import replace_file
from obsidian_agent.vault.filesystem.app_folder import VaultPlugins
from obsidian_agent.vault.filesystem.store import VaultStore

URL = "https://raw.githubusercontent.com/obsidianmd/obsidian-releases/master/community-plugins.json"
URL_VARIABLE = "OBSIDIAN_AGENT_PLUGIN_INDEX"
"""The environment variable with another address of the list, such as a mirror."""

MAX_AGE = timedelta(hours=24)
TIMEOUT_SECONDS = 20.0
MAX_BYTES = 32 * 1024 * 1024
"""Limits for fetching the list."""
_FIELDS = ("id", "name", "author", "description", "repo")
_NAME, _DESCRIPTION, _AUTHOR = 1.0, 0.85, 0.6
"""Weights of matches."""
_MIN_SCORE = 55.0
_WORD = unicode_expression(r"[\p{L}\p{N}]+(?:['’]\p{L}+)?")


class CommunityPlugin(Struct, frozen=True):
    """A plugin in the list; `repo` is "owner/name" on GitHub."""

    id: str
    name: str
    author: str
    description: str
    repo: str

    @property
    def url(self) -> str:
        return f"https://github.com/{self.repo}"


class PluginList(Struct, frozen=True):
    """The list as it was at `fetched_at`; `stale` if it is older than a day."""

    plugins: tuple[CommunityPlugin, ...]
    fetched_at: datetime
    stale: bool = False


class PluginIndex:
    """The list, cached in a file. `url` is HTTPS, or HTTP to this machine."""

    def __init__(self, file: Path, clock: Callable[[], datetime], url: str | None = None) -> None:
        self._file = file
        self._clock = clock
        self._url = url or os.environ.get(URL_VARIABLE) or URL
        self._known: PluginList | None = None

    async def fetch(self, *, refresh: bool = False) -> PluginList:
        """Return the cached list while it is fresh, else download it, else return the stale one.

        Raise `ProviderError` if there is no list at all.
        """
        cached = self.cached()
        if cached is not None and not cached.stale and not refresh:
            return cached
        try:
            plugins = await self._download()
        except ProviderError:
            if cached is None:
                raise
            return replace(cached, stale=True)
        self._known = PluginList(plugins, self._clock())
        self._write(self._known)
        return self._known

    def cached(self) -> PluginList | None:
        """Return the list in memory or on disk, fresh or stale, without using the network."""
        known = self._known or _read(self._file)
        if known is None:
            return None
        age = self._clock() - known.fetched_at
        self._known = replace(known, stale=not timedelta(0) <= age < MAX_AGE)
        return self._known

    async def _download(self) -> tuple[CommunityPlugin, ...]:
        # This import takes a third of a command's start-up time.
        import httpx

        from obsidian_agent.providers.http_guard import GuardedClient

        address = urlsplit(self._url)
        if address.scheme != "https" and not (address.scheme == "http" and is_loopback(self._url)):
            raise ProviderError(
                f"The list of plugins must be fetched over HTTPS, not from {self._url}.",
                code="BASE_URL_REFUSED",
            )
        try:
            async with GuardedClient(
                origin=self._url, timeout=TIMEOUT_SECONDS, direct=False
            ) as client:
                response = await client.get(self._url)
        except (httpx.HTTPError, OSError) as error:
            reason = str(error) or type(error).__name__
            raise ProviderError(
                f"The list of plugins cannot be fetched: {reason}.",
                code="NETWORK_ERROR",
                retryable=True,
            ) from error
        if response.status_code != 200:
            message = f"The list of plugins cannot be fetched: status {response.status_code}."
            raise ProviderError(message, retryable=True)
        return _parsed(response.content)

    def _write(self, plugins: PluginList) -> None:
        """Write the list atomically. If that fails it is fetched again, which is not an error."""
        document = {
            "fetchedAt": plugins.fetched_at.isoformat(),
            "plugins": [
                {name: getattr(plugin, name) for name in _FIELDS} for plugin in plugins.plugins
            ],
        }
        with contextlib.suppress(OSError):
            replace_file(self._file, json.dumps(document, ensure_ascii=False).encode())


def search(
    plugins: Iterable[CommunityPlugin], query: str, limit: int = 10
) -> list[tuple[CommunityPlugin, float]]:
    """Return the best matches, each with its score from 0 to 1. Typing errors are tolerated.

    A match in the name counts more than one in the description, and that more than the author.
    """
    from rapidfuzz import utils

    text = utils.default_process(query)
    if not text:
        return []
    scores = [(plugin, round(_score(text, plugin) / 100, 3)) for plugin in plugins]
    matches = [(plugin, score) for plugin, score in scores if score * 100 >= _MIN_SCORE]
    return sorted(matches, key=lambda match: (-match[1], match[0].name.casefold()))[:limit]


def _score(query: str, plugin: CommunityPlugin) -> float:
    from rapidfuzz import fuzz, utils

    name = utils.default_process(plugin.name)
    description = utils.default_process(plugin.description)
    words = query.split()
    name_score = 100.0
    if query not in (name, plugin.id.casefold()):
        name_score = 0.97 * fuzz.WRatio(query, name)
    word_scores = [
        max((fuzz.ratio(word, other) for other in description.split()), default=0.0)
        for word in words
    ]
    description_score = sum(word_scores) / len(words)
    author_score = fuzz.ratio(query, utils.default_process(plugin.author))
    bonus = 2.0 if query in description and name_score < 98 else 0.0
    return bonus + max(_NAME * name_score, _DESCRIPTION * description_score, _AUTHOR * author_score)


def _read(file: Path) -> PluginList | None:
    try:
        if file.stat().st_size > MAX_BYTES:
            return None
        document = json.loads(file.read_bytes())
        fetched = datetime.fromisoformat(document["fetchedAt"])
        plugins = _listed(document["plugins"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return PluginList(plugins, fetched) if fetched.tzinfo is not None and plugins else None


def _parsed(data: bytes) -> tuple[CommunityPlugin, ...]:
    try:
        plugins = _listed(json.loads(data))
    except (ValueError, RecursionError) as error:
        raise ProviderError(
            "The list of plugins cannot be read: it is not JSON.", retryable=True
        ) from error
    if not plugins:
        raise ProviderError("The list of plugins cannot be read: it is empty.", retryable=True)
    return plugins


def _listed(document: Any) -> tuple[CommunityPlugin, ...]:
    """Return the complete entries."""
    entries: Sequence[Any] = document if isinstance(document, list) else []
    return tuple(
        CommunityPlugin(*(entry[name] for name in _FIELDS))
        for entry in entries
        if isinstance(entry, dict) and all(isinstance(entry.get(name), str) for name in _FIELDS)
    )


class KnownPlugin(Struct, frozen=True):
    """A well-known plugin, its purpose in a few words, and stemmed phrases that ask for it."""

    id: str
    name: str
    does: str
    phrases: tuple[tuple[str, ...], ...]


@cache
def known_plugins() -> tuple[KnownPlugin, ...]:
    """Return the well-known plugins, read on the first call."""
    data = (
        resources.files("obsidian_agent.integrations").joinpath("known_plugins.json").read_bytes()
    )
    return tuple(
        KnownPlugin(entry["id"], entry["name"], entry["does"], tuple(map(_stems, entry["asked"])))
        for entry in json.loads(data)
    )


def plugin_for(instruction: str) -> KnownPlugin | None:
    """Return the plugin whose longest phrase is in the instruction, word by word in order."""
    words = _stems(instruction)
    matches = [
        (len(phrase), plugin)
        for plugin in known_plugins()
        for phrase in plugin.phrases
        if _contains(words, phrase)
    ]
    return max(matches, key=lambda match: match[0])[1] if matches else None


def _stems(text: str) -> tuple[str, ...]:
    return tuple(stem(word) for word in _WORD.findall(text))


def _contains(words: tuple[str, ...], phrase: tuple[str, ...]) -> bool:
    rest = iter(words)
    return all(word in rest for word in phrase)


class PluginMatch(Struct, frozen=True):
    """A match of a search; `installed` and `enabled` are the plugin's state in the vault."""

    plugin: CommunityPlugin
    score: float
    installed: bool
    enabled: bool

    def to_json(self) -> dict[str, Any]:
        """Return `{id, name, author, description, repo, url, score, installed, enabled}`."""
        fields = {name: getattr(self.plugin, name) for name in (*_FIELDS, "url")}
        return fields | {"score": self.score, "installed": self.installed, "enabled": self.enabled}


class PluginMatches(Struct, frozen=True):
    """The matches of a search, best first, and the age of the list."""

    items: tuple[PluginMatch, ...]
    fetched_at: datetime
    stale: bool


async def search_plugins(
    index: PluginIndex, store: VaultStore, query: str, limit: int = 10, *, refresh: bool = False
) -> PluginMatches:
    """Search the plugins. The list is fetched at most once a day.

    Raise `ProviderError` if there is no list; its message names a well-known plugin that matches.
    """
    try:
        known = await index.fetch(refresh=refresh)
    except ProviderError as error:
        plugin = plugin_for(query)
        if plugin is None:
            raise
        message = f"{error.message} A plugin for {plugin.does} is {plugin.name}."
        raise ProviderError(message, code=error.code, retryable=error.retryable) from error
    in_vault = VaultPlugins.of(store)
    items = tuple(
        PluginMatch(plugin, score, plugin.id in in_vault.installed, plugin.id in in_vault.enabled)
        for plugin, score in search(known.plugins, query, limit)
    )
    return PluginMatches(items, known.fetched_at, known.stale)
