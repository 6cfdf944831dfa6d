"""Helpers for the tests of all packages."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from obsidian_agent.config.live import LiveSettings
from obsidian_agent.config.settings import Settings
from obsidian_agent.vault.filesystem.store import VaultStore

MakeVault = Callable[[Mapping[str, str | bytes]], VaultStore]
"""Make a vault of the given files on disk and open it."""

NOTE_PLAN: dict[str, Any] = {
    "version": "1.0",
    "goal": "Create a note",
    "riskLevel": "writes",
    "steps": [
        {
            "id": "note",
            "tool": "vault.createFile",
            "args": {"path": "Idea.md", "content": "# Idea\n"},
        }
    ],
}
"""A plan with one step."""


def options_for(vault: str | Path, folder: Path) -> tuple[str, ...]:
    """Return the options of a command for a vault, with its state and settings in a folder."""
    state, config = folder / "state", folder / "config.toml"
    return "--vault", str(vault), "--state-dir", str(state), "--config", str(config)


def settings_with(**values: Any) -> LiveSettings:
    """Return settings that are not on disk."""
    return LiveSettings(current=Settings(**values))


def symbolic_link(target: Path, name: Path) -> None:
    """Link `name` to `target` with a relative path, with the arguments of `os.link`."""
    name.symlink_to(os.path.relpath(target, name.parent))


def content_of(path: Path) -> str:
    """Return the text of a file, the target of a link, "" of a folder."""
    if path.is_symlink():
        return str(path.readlink())
    return path.read_text() if path.is_file() else ""
