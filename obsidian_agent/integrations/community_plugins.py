"""Obsidian's community plugins: its list, fetched once a day and kept on disk, a search in it, and a few well-known ones by name.

A copy that is too old is better than none: where the network fails it is used, and said to be old. The well-known ones need no network; they
are named where a plan cannot help. Nothing is ever installed: that is Obsidian's.
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

from obsidian_agent.dataclass import dataclass, replace
from obsidian_agent.errors import ProviderError
from obsidian_agent.expression import unicode_expression
from obsidian_agent.offline.sentence import stem
from obsidian_agent.providers.registry import is_loopback
from obsidian_agent.state_files import replace_file
from obsidian_agent.vault.filesystem.app_folder import VaultPlugins
from obsidian_agent.vault.filesystem.store import VaultStore

URL = "https://raw.githubusercontent.com/obsidianmd/obsidian-releases/master/community-plugins.json"
URL_VARIABLE = "OBSIDIAN_AGENT_PLUGIN_INDEX"
"""Names another address of the list, such as a mirror."""

MAX_AGE = timedelta(hours=24)
TIMEOUT_SECONDS = 20.0
MAX_BYTES = 32 * 1024 * 1024
"""Seconds and bytes that Obsidian's list of plugins may take."""
_FIELDS = ("id", "name", "author", "description", "repo")
_NAME, _DESCRIPTION, _AUTHOR = 1.0, 0.85, 0.6
_LEAST = 55.0


@dataclass(frozen=True, slots=True)
class CommunityPlugin:
    """A plugin as the list has it; `repo` is "owner/name" on GitHub."""

    id: str
    name: str
    author: str
    description: str
    repo: str

    @property
    def url(self) -> str:
        return f"https://github.com/{self.repo}"


@dataclass(frozen=True, slots=True)
class PluginList:
    """The list as it was at `fetched_at`. `stale`: older than a day, because a fresh one could not be had."""

    plugins: tuple[CommunityPlugin, ...]
    fetched_at: datetime
    stale: bool = False


class PluginIndex:
    """The list behind a file. `clock` gives the time with its zone; `url` is HTTPS, or HTTP to this machine."""

    def __init__(self, file: Path, clock: Callable[[], datetime], url: str | None = None) -> None:
        self._file = file
        self._clock = clock
        self._url = url or os.environ.get(URL_VARIABLE) or URL
        self._known: PluginList | None = None

    async def fetch(self, *, refresh: bool = False) -> PluginList:
        """The list: the kept one while it is fresh, else a new one, else the old one. ProviderError when there is none at all."""
        kept = self.cached()
        if kept is not None and not kept.stale and not refresh:
            return kept
        try:
            plugins = await self._download()
        except ProviderError:
            if kept is None:
                raise
            return replace(kept, stale=True)
        self._known = PluginList(plugins, self._clock())
        self._keep(self._known)
        return self._known

    def cached(self) -> PluginList | None:
        """The list as it is in memory or on disk, fresh or not; None when there is none. Never asks the network."""
        known = self._known or _read(self._file)
        if known is None:
            return None
        age = self._clock() - known.fetched_at
        self._known = replace(known, stale=not timedelta(0) <= age < MAX_AGE)
        return self._known

    async def _download(self) -> tuple[CommunityPlugin, ...]:
        # Imported here: a third of the time that a command takes to start.
        import httpx

        from obsidian_agent.providers.http_guard import GuardedClient

        address = urlsplit(self._url)
        if address.scheme != "https" and not (address.scheme == "http" and is_loopback(self._url)):
            raise ProviderError(
                f"The list of plugins is only fetched over HTTPS, not from {self._url}.",
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
            raise ProviderError(
                f"The list of plugins cannot be fetched: the server answers {response.status_code}.",
                retryable=True,
            )
        return _parsed(response.content)

    def _keep(self, plugins: PluginList) -> None:
        """Write the list, all or nothing. Worth no error: without it the list is fetched again."""
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
    """The plugins that fit best, each with its score from 0 to 1: by name before description before author, slips allowed."""
    from rapidfuzz import utils

    wanted = utils.default_process(query)
    found = (
        [(plugin, round(_score(wanted, plugin) / 100, 3)) for plugin in plugins] if wanted else []
    )
    likely = [(plugin, score) for plugin, score in found if score * 100 >= _LEAST]
    return sorted(likely, key=lambda match: (-match[1], match[0].name.casefold()))[:limit]


def _score(wanted: str, plugin: CommunityPlugin) -> float:
    from rapidfuzz import fuzz, utils

    name, about = utils.default_process(plugin.name), utils.default_process(plugin.description)
    words = wanted.split()
    named = 100.0 if wanted in (name, plugin.id.casefold()) else 0.97 * fuzz.WRatio(wanted, name)
    described = sum(
        max((fuzz.ratio(word, other) for other in about.split()), default=0.0) for word in words
    ) / len(words)
    made = fuzz.ratio(wanted, utils.default_process(plugin.author))
    return max(_NAME * named, _DESCRIPTION * described, _AUTHOR * made) + (
        2.0 if wanted in about and named < 98 else 0.0
    )


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
            "The list of plugins cannot be read: it is no JSON.", retryable=True
        ) from error
    if not plugins:
        raise ProviderError(
            "The list of plugins cannot be read: there are no plugins in it.", retryable=True
        )
    return plugins


def _listed(document: Any) -> tuple[CommunityPlugin, ...]:
    """The entries that are whole; others are left out."""
    entries: Sequence[Any] = document if isinstance(document, list) else []
    return tuple(
        CommunityPlugin(*(entry[name] for name in _FIELDS))
        for entry in entries
        if isinstance(entry, dict) and all(isinstance(entry.get(name), str) for name in _FIELDS)
    )


_WORD = unicode_expression(r"[\p{L}\p{N}]+(?:['’]\p{L}+)?")


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
    data = (
        resources.files("obsidian_agent.integrations").joinpath("known_plugins.json").read_bytes()
    )
    return tuple(
        KnownPlugin(each["id"], each["name"], each["does"], tuple(map(_stems, each["asked"])))
        for each in json.loads(data)
    )


def plugin_for(instruction: str) -> KnownPlugin | None:
    """The plugin that does what is asked for: the one of which the most words are said, all of a way to ask for it, in order."""
    said = _stems(instruction)
    found = [
        (len(asked), plugin)
        for plugin in known_plugins()
        for asked in plugin.asked
        if _holds(said, asked)
    ]
    return max(found, key=lambda each: each[0])[1] if found else None


def _stems(text: str) -> tuple[str, ...]:
    return tuple(stem(word) for word in _WORD.findall(text))


def _holds(said: tuple[str, ...], asked: tuple[str, ...]) -> bool:
    rest = iter(said)
    return all(word in rest for word in asked)


@dataclass(frozen=True, slots=True)
class PluginMatch:
    """A plugin that fits a search; `installed` and `enabled` say what the vault has."""

    plugin: CommunityPlugin
    score: float
    installed: bool
    enabled: bool

    def to_json(self) -> dict[str, Any]:
        """`{id, name, author, description, repo, url, score, installed, enabled}`."""
        plugin = self.plugin
        told = {
            name: getattr(plugin, name)
            for name in ("id", "name", "author", "description", "repo", "url")
        }
        return told | {"score": self.score, "installed": self.installed, "enabled": self.enabled}


@dataclass(frozen=True, slots=True)
class PluginMatches:
    """What a search found, best first, and how old the list is that it was made in."""

    items: tuple[PluginMatch, ...]
    fetched_at: datetime
    stale: bool


async def search_plugins(
    index: PluginIndex, store: VaultStore, query: str, limit: int = 10, *, refresh: bool = False
) -> PluginMatches:
    """Plugins for a query. Asks the network at most once a day; ProviderError when there is no list at all; it names a well-known plugin that fits."""
    try:
        known = await index.fetch(refresh=refresh)
    except ProviderError as error:
        likely = plugin_for(query)
        if likely is None:
            raise
        message = f"{error.message} Known without it: {likely.name}, for {likely.does}."
        raise ProviderError(message, code=error.code, retryable=error.retryable) from error
    has = VaultPlugins.of(store)
    items = tuple(
        PluginMatch(plugin, score, plugin.id in has.installed, plugin.id in has.enabled)
        for plugin, score in search(known.plugins, query, limit)
    )
    return PluginMatches(items, known.fetched_at, known.stale)
