"""The one place where the program gets its providers from: each made once, and shared by everything that asks the same model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from obsidian_agent.providers.base import Provider
from obsidian_agent.providers.catalogue import Catalogue
from obsidian_agent.providers.limiter import RateLimits
from obsidian_agent.providers.litellm_client import warm_up
from obsidian_agent.providers.registry import SCRIPTED, KeyFinder, endpoint_of, environment_key, find_vendor, open_provider
from obsidian_agent.providers.whole import WholeProvider


@dataclass(slots=True)
class ProviderManager:
    """Providers by `VENDOR/MODEL`. `base_url` is the address of the service called `base_url_of`, and of no other.

    Buckets of requests belong to services, so switching models back and forth asks a service no more often.
    """

    base_url: str | None = None
    base_url_of: str = "custom"
    find_key: KeyFinder = environment_key
    limits: RateLimits = field(default_factory=RateLimits)
    streaming: bool = True
    """Off: answers come in one piece."""
    wrap: Callable[[Provider], Provider] = lambda provider: provider
    """What every provider is put into."""
    catalogue: Catalogue = field(default_factory=Catalogue)
    _made: dict[str, Provider] = field(default_factory=dict)

    def get(self, spec: str) -> Provider:
        """The provider that a name stands for; the same one every time. Raises `ConfigError`."""
        spec = spec.strip()
        if spec not in self._made:
            vendor = spec.partition("/")[0].lower()
            base_url = self.base_url if vendor == self.base_url_of.lower() else None
            provider = open_provider(spec, base_url=base_url, find_key=self.find_key, limits=self.limits)
            self._made[spec] = self.wrap(provider if self.streaming else WholeProvider(provider))
        return self._made[spec]

    def warm_up(self, spec: str) -> None:
        """Prepare for the first request to a model, which takes seconds; nothing is sent. Blocks: call it in a thread that may be left."""
        if not spec.startswith(f"{SCRIPTED}/"):
            warm_up()

    async def models(self, vendor: str, *, fresh: bool = False) -> tuple[str, ...]:
        """The models of a service as `VENDOR/MODEL`, sorted. Raises `ConfigError` and `ProviderError`."""
        found = find_vendor(vendor)
        base_url = self.base_url if found.name == self.base_url_of.lower() else None
        endpoint, key = await asyncio.to_thread(lambda: endpoint_of(found, "", base_url=base_url, find_key=self.find_key))
        names = await self.catalogue.models(endpoint, key, fresh=fresh)
        return tuple(f"{found.name}/{name}" for name in names)

    def forget(self) -> None:
        """Make every provider anew when it is asked for: after a key or an address has changed."""
        self._made.clear()
