"""Which community plugins a vault has: looked up by name, never read, never changed."""

from __future__ import annotations

from dataclasses import dataclass

from obsidian_agent.errors import VaultError
from obsidian_agent.vault.paths import config_path, from_disk
from obsidian_agent.vault.store import VaultStore


@dataclass(frozen=True, slots=True)
class VaultPlugins:
    """Ids of plugins: those with a folder in `.obsidian/plugins`, and those that are switched on."""

    installed: frozenset[str] = frozenset()
    enabled: frozenset[str] = frozenset()

    @classmethod
    def of(cls, store: VaultStore) -> VaultPlugins:
        """As they are now. A plugin that is switched on counts as installed where its folder is not synced."""
        listed = store.obsidian_config("community-plugins")
        enabled = frozenset(name for name in listed if isinstance(name, str)) if isinstance(listed, list) else frozenset()
        return cls(_folders(store) | enabled, enabled)


def _folders(store: VaultStore) -> frozenset[str]:
    try:
        entries = store.scan(from_disk(config_path("app").parent, "plugins"))
    except VaultError:
        return frozenset()
    return frozenset(name for name, kind, _ in entries if kind == "folder")
