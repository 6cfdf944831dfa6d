"""What the program keeps in a vault, and what it asks of Obsidian's own folder.

Small JSON files that a person may want to sync with the notes: `.obsidian-agent/<sub>/<name>.json`. Which community plugins a vault has: looked
up by name, never read, never changed. And the folder of one plugin, this program's own, which is written when the person asks for it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Final

from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import VaultError
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.paths.path import (
    VaultPath,
    app_path,
    clean_component,
    config_path,
    from_disk,
)

FILE_LIMIT: Final = 4 * 1024 * 1024
"""Largest file that is read, in bytes."""

_SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON value as it is in its file; `sha256` is of the file's bytes."""

    path: VaultPath
    value: object
    sha256: str


class AppFolder:
    """One sub-folder of `.obsidian-agent/`. Names are cleaned to legal file names; links on the way are refused, never followed."""

    def __init__(self, store: VaultStore, sub: str) -> None:
        self._store = store
        self._sub = clean_component(sub)

    def path(self, name: str) -> VaultPath:
        """Where the file of a name is."""
        return app_path(self._sub, clean_component(name) + _SUFFIX)

    def list(self) -> list[str]:
        """The names of the files, sorted, without `.json`; [] while the folder does not exist."""
        try:
            entries = self._store.scan(app_path(self._sub))
        except VaultError as error:
            if error.code == "FILE_NOT_FOUND":
                return []
            raise
        stems = (
            name.removesuffix(_SUFFIX)
            for name, kind, link in entries
            if kind == "file" and not link and name.endswith(_SUFFIX)
        )
        return sorted(stem for stem in stems if clean_component(stem) == stem)

    def read(self, name: str) -> Document:
        """The document of a name. FILE_NOT_FOUND, or NOT_TEXT when it is no JSON."""
        path = self.path(name)
        data = self._store.read(path, FILE_LIMIT)
        try:
            value: object = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise VaultError(
                f"{path.text} is not valid JSON ({error}); put it right or delete it.",
                code="NOT_TEXT",
                path=path.text,
            ) from error
        return Document(path, value, hashlib.sha256(data).hexdigest())

    def write(self, name: str, value: object) -> Document:
        """Write a document, all or nothing and durable. The folders are made when missing."""
        path = self.path(name)
        data = (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()
        self._store.make_folder(path.parent)
        self._store.write_atomic(path, data)
        return Document(path, value, hashlib.sha256(data).hexdigest())

    def delete(self, name: str) -> bool:
        """Remove the file of a name; False when there was none."""
        return self._store.remove(self.path(name))


@dataclass(frozen=True, slots=True)
class VaultPlugins:
    """Ids of plugins: those with a folder in `.obsidian/plugins`, and those that are switched on."""

    installed: frozenset[str] = frozenset()
    enabled: frozenset[str] = frozenset()

    @classmethod
    def of(cls, store: VaultStore) -> VaultPlugins:
        """As they are now. A plugin that is switched on counts as installed where its folder is not synced."""
        listed = store.obsidian_config("community-plugins")
        enabled = (
            frozenset(name for name in listed if isinstance(name, str))
            if isinstance(listed, list)
            else frozenset()
        )
        return cls(_folders(store) | enabled, enabled)


def _folders(store: VaultStore) -> frozenset[str]:
    try:
        entries = store.scan(config_path("plugins", folder=store.config_folder))
    except VaultError:
        return frozenset()
    return frozenset(name for name, kind, _ in entries if kind == "folder")


class PluginFolder:
    """The folder of a plugin in the vault. `config_folder` is the name of Obsidian's own folder (None: the one that is found)."""

    def __init__(self, store: VaultStore, id: str, config_folder: str | None = None) -> None:
        self._store = store
        self.path = config_path("plugins", id, folder=config_folder or store.config_folder)

    def read(self, name: str) -> bytes | None:
        """The content of a file; None when there is none."""
        try:
            return self._store.read(from_disk(self.path, name), FILE_LIMIT)
        except VaultError as error:
            if error.code == "FILE_NOT_FOUND":
                return None
            raise

    def write(self, files: Mapping[str, bytes]) -> None:
        """Write these files, each all or nothing. What else is in the folder, as the plugin's settings, stays."""
        self._store.make_folder(self.path)
        for name, data in files.items():
            self._store.write_atomic(from_disk(self.path, name), data)

    def remove(self) -> bool:
        """Remove the folder with the files in it; False when there was none. A folder in it stays, with what holds it."""
        try:
            entries = self._store.scan(self.path)
        except VaultError as error:
            if error.code == "FILE_NOT_FOUND":
                return False
            raise
        for name, kind, link in entries:
            if link or kind == "file":
                self._store.remove(from_disk(self.path, name))
        self._store.remove_folder(self.path)
        return True
