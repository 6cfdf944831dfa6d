"""The one place where the program gets its providers from: each made once, and shared by everything that asks the same model."""

from __future__ import annotations

from dataclasses import dataclass, field

from obsidian_agent.providers.base import Provider
from obsidian_agent.providers.limiter import RateLimits
from obsidian_agent.providers.registry import KeyFinder, environment_key, open_provider
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
    _made: dict[str, Provider] = field(default_factory=dict)

    def get(self, spec: str) -> Provider:
        """The provider that a name stands for; the same one every time. Raises `ConfigError`."""
        spec = spec.strip()
        if spec not in self._made:
            vendor = spec.partition("/")[0].lower()
            base_url = self.base_url if vendor == self.base_url_of.lower() else None
            provider = open_provider(spec, base_url=base_url, find_key=self.find_key, limits=self.limits)
            self._made[spec] = provider if self.streaming else WholeProvider(provider)
        return self._made[spec]

    def forget(self) -> None:
        """Make every provider anew when it is asked for: after a key or an address has changed."""
        self._made.clear()
