"""Obsidian's own records (read only): its vaults and, for each, the open files.

The registry `obsidian.json` is in Obsidian's data folder: `~/.config/obsidian` on Linux (inside
`~/.var/app` and `~/snap` for Flatpak and Snap), `~/Library/Application Support/obsidian` on macOS,
`%APPDATA%\\obsidian` on Windows. Under WSL, that of Windows is read as well. The open files are in
a vault's `workspace.json`, which is written some time after a change and may therefore be outdated.
Its `active` is the id of a pane, which may contain no file; then the front tab (`currentTab`) of
the main group is used.

Source: Obsidian help, "How Obsidian stores data".
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

_DRIVE: Final = re.compile(r"([A-Za-z]):[\\/]")
_WSL_USERS: Final = "/mnt/c/Users"


class KnownVault(Struct, frozen=True):
    """A vault in Obsidian's registry."""

    path: Path
    opened: int
    """The time of its last use, in milliseconds since the epoch."""
    id: str = ""
    """Obsidian's identifier of the vault."""
    written: str = ""
    """The folder's path as it is written in the registry."""

    @property
    def name(self) -> str:
        """The folder's name, which Obsidian displays."""
        return self.path.name


def known_vaults() -> list[KnownVault]:
    """Return the existing vaults, most recently opened first."""
    vaults: dict[Path, KnownVault] = {}
    for file in _registry_files():
        for vault in _read(file):
            if vault.path not in vaults or vaults[vault.path].opened < vault.opened:
                vaults[vault.path] = vault
    return sorted(vaults.values(), key=lambda vault: -vault.opened)


def known_vault(folder: str) -> KnownVault | None:
    """Return the vault in a folder (a real path), or None if Obsidian does not know it."""
    return next((vault for vault in known_vaults() if os.path.realpath(vault.path) == folder), None)


def _read(file: Path) -> Iterator[KnownVault]:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    vaults = document.get("vaults") if isinstance(document, dict) else None
    if not isinstance(vaults, dict):
        return
    for id, entry in vaults.items():
        if not isinstance(entry, dict):
            continue
        path, opened = entry.get("path"), entry.get("ts", 0)
        if isinstance(path, str) and (folder := Path(_native_path(path))).is_dir():
            yield KnownVault(folder, opened if isinstance(opened, int) else 0, id, path)


def _native_path(path: str) -> str:
    """Return a path in the form of this system: under WSL `C:\\notes` is `/mnt/c/notes`."""
    drive = _DRIVE.match(path) if sys.platform == "linux" else None
    return path if drive is None else f"/mnt/{drive[1].lower()}/{path[3:]}".replace("\\", "/")


def _registry_files() -> Iterator[Path]:
    home = Path.home()
    if sys.platform == "darwin":
        yield home / "Library" / "Application Support" / "obsidian" / "obsidian.json"
    elif sys.platform == "win32":
        yield Path(os.environ.get("APPDATA", home)) / "obsidian" / "obsidian.json"
    else:
        config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
        flatpak = home / ".var" / "app" / "md.obsidian.Obsidian" / "config"
        snap = home / "snap" / "obsidian" / "current" / ".config"
        for folder in (config, flatpak, snap):
            yield folder / "obsidian" / "obsidian.json"
        if "WSL_DISTRO_NAME" in os.environ:
            yield from Path(_WSL_USERS).glob("*/AppData/Roaming/obsidian/obsidian.json")


def active_file(document: object) -> str | None:
    """Return the vault path of the active file in a `workspace.json`, or None."""
    if not isinstance(document, Mapping):
        return None
    leaf = next(
        (leaf for leaf in _leaves(document) if leaf.get("id") == document.get("active")), None
    )
    return _file(leaf) or _file(_front_leaf(document.get("main")))


def recent_files(document: object) -> list[str]:
    """Return the recent files in a `workspace.json`, latest first.

    They may be folders, and may no longer exist.
    """
    files = document.get("lastOpenFiles") if isinstance(document, Mapping) else None
    return [name for name in files if isinstance(name, str)] if isinstance(files, list) else []


def _leaves(node: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every pane below a part of the layout."""
    pending = [node]
    while pending:
        match pending.pop():
            case {"type": "leaf"} as leaf:
                yield leaf
            case Mapping() as part:
                pending += part.values()
            case list() as parts:
                pending += parts


def _front_leaf(node: Any) -> Mapping[str, Any] | None:
    """Return the front pane of the first tab group."""
    while isinstance(node, Mapping):
        if node.get("type") == "leaf":
            return node
        parts, front = node.get("children"), node.get("currentTab")
        if not isinstance(parts, list) or not parts:
            return None
        node = parts[front if isinstance(front, int) and 0 <= front < len(parts) else 0]
    return None


def _file(leaf: Mapping[str, Any] | None) -> str | None:
    match leaf:
        case {"state": {"state": {"file": str(file)}}}:
            return file
    return None
