"""What tests of all packages share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from obsidian_agent.config.live import LiveSettings
from obsidian_agent.config.settings import Settings
from obsidian_agent.vault.filesystem.store import VaultStore

MakeVault = Callable[[Mapping[str, str | bytes]], VaultStore]
"""Make a vault of the given files on disk and open it."""


def settings_with(**values: Any) -> LiveSettings:
    """Settings that are nowhere on disk."""
    return LiveSettings(current=Settings(**values))
