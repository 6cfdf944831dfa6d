"""What Obsidian itself writes down (read only): the vaults it knows, in `obsidian.json`, and the open files of one, in its `workspace.json`.

The registry lies in Obsidian's data folder: `~/.config/obsidian` on Linux (inside `~/.var/app` and `~/snap` for Flatpak and Snap),
`~/Library/Application Support/obsidian` on macOS, `%APPDATA%\\obsidian` on Windows. Under WSL the one of Windows counts as well. `workspace.json` is
written a while after something changed, so it may be old; its `active` is the id of a pane, which may show no file; then the tab in front
(`currentTab`) of the main group counts.

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

from obsidian_agent.dataclass import dataclass

_DRIVE: Final = re.compile(r"([A-Za-z]):[\\/]")
_WSL_USERS: Final = "/mnt/c/Users"


@dataclass(frozen=True, slots=True)
class KnownVault:
    """A vault in Obsidian's registry; `opened` is milliseconds since the epoch of its last use.

    Obsidian calls it by `id`, and its folder as it is `written` in the registry.
    """

    path: Path
    opened: int
    id: str = ""
    written: str = ""

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


def known_vault(folder: str) -> KnownVault | None:
    """The vault in this folder (a real path), if Obsidian knows it."""
    return next((vault for vault in known_vaults() if os.path.realpath(vault.path) == folder), None)


def _read(file: Path) -> Iterator[KnownVault]:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    vaults = document.get("vaults") if isinstance(document, dict) else None
    for id, entry in vaults.items() if isinstance(vaults, dict) else ():
        path, opened = (
            (entry.get("path"), entry.get("ts", 0)) if isinstance(entry, dict) else (None, 0)
        )
        if isinstance(path, str) and (folder := Path(_here(path))).is_dir():
            yield KnownVault(folder, opened if isinstance(opened, int) else 0, id, path)


def _here(path: str) -> str:
    """A path as this system writes it: under WSL `C:\\notes` is `/mnt/c/notes`."""
    drive = _DRIVE.match(path) if sys.platform == "linux" else None
    return path if drive is None else f"/mnt/{drive[1].lower()}/{path[3:]}".replace("\\", "/")


def _registry_files() -> Iterator[Path]:
    home = Path.home()
    if sys.platform == "darwin":
        yield home / "Library" / "Application Support" / "obsidian" / "obsidian.json"
    elif sys.platform == "win32":
        yield Path(os.environ.get("APPDATA", home)) / "obsidian" / "obsidian.json"
    else:
        yield (
            Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
            / "obsidian"
            / "obsidian.json"
        )
        yield (
            home / ".var" / "app" / "md.obsidian.Obsidian" / "config" / "obsidian" / "obsidian.json"
        )
        yield home / "snap" / "obsidian" / "current" / ".config" / "obsidian" / "obsidian.json"
        if "WSL_DISTRO_NAME" in os.environ:
            yield from Path(_WSL_USERS).glob("*/AppData/Roaming/obsidian/obsidian.json")


def active_file(document: object) -> str | None:
    """The vault path of the file that was in front; None when that was no file."""
    if not isinstance(document, Mapping):
        return None
    leaf = next(
        (leaf for leaf in _leaves(document) if leaf.get("id") == document.get("active")), None
    )
    return _file(leaf) or _file(_front(document.get("main")))


def recent_files(document: object) -> list[str]:
    """Files, folders and what is gone by now, the latest first."""
    files = document.get("lastOpenFiles") if isinstance(document, Mapping) else None
    return [name for name in files if isinstance(name, str)] if isinstance(files, list) else []


def _leaves(node: Any) -> Iterator[Mapping[str, Any]]:
    """Every pane below a part of the layout."""
    waiting = [node]
    while waiting:
        match waiting.pop():
            case {"type": "leaf"} as leaf:
                yield leaf
            case Mapping() as part:
                waiting += part.values()
            case list() as parts:
                waiting += parts


def _front(node: Any) -> Mapping[str, Any] | None:
    """The pane in front of the first group of tabs."""
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
