"""Where the index of a vault is kept."""

from __future__ import annotations

from pathlib import Path

from obsidian_agent.journal import state_folder
from obsidian_agent.vault.index_keeper import IndexKeeper
from obsidian_agent.vault.store import VaultStore


def open_index(store: VaultStore, state: Path) -> IndexKeeper:
    """The keeper of a vault's index, in the vault's folder of the state; nothing is read or written yet."""
    return IndexKeeper(store, state_folder.find(state, store) / "index")
