"""Where things of the person lie: settings, the journal and logs (never inside a vault or a synced folder), and the vaults that Obsidian knows.

Obsidian's registry `obsidian.json` is only read. It lies in `~/.config/obsidian` on Linux (inside `~/.var/app` and `~/snap` for Flatpak and
Snap), `~/Library/Application Support/obsidian` on macOS, `%APPDATA%\\obsidian` on Windows.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from platformdirs import PlatformDirs

STATE_VARIABLE = "OBSIDIAN_AGENT_STATE_DIR"
CONFIG_VARIABLE = "OBSIDIAN_AGENT_CONFIG"


@dataclass(frozen=True, slots=True)
class Directories:
    """`state` holds the journal and usage counts, one folder a vault; `config` is the settings file; `log` a folder."""

    state: Path
    config: Path
    log: Path


def directories(state_dir: str | None = None, config_file: str | None = None) -> Directories:
    """The person's folders; options win over environment variables, these over the platform's custom."""
    platform = PlatformDirs("obsidian-agent", appauthor=False)
    state = state_dir or os.environ.get(STATE_VARIABLE)
    config = config_file or os.environ.get(CONFIG_VARIABLE)
    state_path = Path(state) if state else platform.user_state_path
    return Directories(
        state=state_path.absolute(),
        config=Path(config).absolute() if config else platform.user_config_path / "config.toml",
        log=state_path.absolute() / "log" if state else platform.user_log_path,
    )


@dataclass(frozen=True, slots=True)
class KnownVault:
    """A vault in Obsidian's registry; `opened` is milliseconds since the epoch of its last use."""

    path: Path
    opened: int

    @property
    def name(self) -> str:
        """The folder's name, as Obsidian shows it."""
        return self.path.name


def known_vaults() -> list[KnownVault]:
    """Existing vaults, most recently opened first; empty when Obsidian has never run here."""
    found: dict[Path, KnownVault] = {}
    for file in _registry_files():
        for vault in _read(file):
            if vault.path not in found or found[vault.path].opened < vault.opened:
                found[vault.path] = vault
    return sorted(found.values(), key=lambda vault: -vault.opened)


def _read(file: Path) -> Iterator[KnownVault]:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    vaults = document.get("vaults") if isinstance(document, dict) else None
    for entry in vaults.values() if isinstance(vaults, dict) else ():
        path, opened = entry.get("path"), entry.get("ts", 0)
        if isinstance(path, str) and Path(path).is_dir():
            yield KnownVault(Path(path), opened if isinstance(opened, int) else 0)


def _registry_files() -> Iterator[Path]:
    home = Path.home()
    if sys.platform == "darwin":
        yield home / "Library" / "Application Support" / "obsidian" / "obsidian.json"
    elif sys.platform == "win32":
        yield Path(os.environ.get("APPDATA", home)) / "obsidian" / "obsidian.json"
    else:
        yield Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "obsidian" / "obsidian.json"
        yield home / ".var" / "app" / "md.obsidian.Obsidian" / "config" / "obsidian" / "obsidian.json"
        yield home / "snap" / "obsidian" / "current" / ".config" / "obsidian" / "obsidian.json"
