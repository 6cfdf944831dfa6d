"""Types that tests share."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from obsidian_agent.vault.filesystem.store import VaultStore

MakeVault = Callable[[Mapping[str, str | bytes]], VaultStore]
"""Make a vault of the given files on disk and open it."""
