"""The program's own files in a vault, and the plugin folders of Obsidian.

`AppFolder` stores small JSON files that users may want to sync with their notes:
`.obsidian-agent/<sub>/<name>.json`. `VaultPlugins` lists a vault's community plugins, which are
neither read nor changed. `PluginFolder` is the folder of one plugin, this program's own, and is
written when the user requests it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

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
"""Size of the largest file that is read, in bytes."""

_SUFFIX = ".json"


class Document(Struct, frozen=True):
    """A JSON value with its file. `sha256` is the hash of the file's bytes."""

    path: VaultPath
    value: object
    sha256: str


class AppFolder:
    """A sub-folder of `.obsidian-agent/`.

    Names are cleaned to legal file names. Links on the path are refused, never followed.
    """

    def __init__(self, store: VaultStore, sub: str) -> None:
        self._store = store
        self._sub = clean_component(sub)

    def path(self, name: str) -> VaultPath:
        """Return the path of a document's file."""
        return app_path(self._sub, clean_component(name) + _SUFFIX)

    def list(self) -> list[str]:
        """Return the names of the documents, sorted, or [] if the folder does not exist."""
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
        """Read a document. Raises FILE_NOT_FOUND, or NOT_TEXT if the file is not JSON."""
        path = self.path(name)
        data = self._store.read(path, FILE_LIMIT)
        try:
            value: object = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise VaultError(
                f"{path.text} is not valid JSON ({error}); correct it or delete it.",
                code="NOT_TEXT",
                path=path.text,
            ) from error
        return Document(path, value, hashlib.sha256(data).hexdigest())

    def write(self, name: str, value: object) -> Document:
        """Write a document atomically and durably. Missing folders are created."""
        path = self.path(name)
        data = (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()
        self._store.make_folder(path.parent)
        self._store.write_atomic(path, data)
        return Document(path, value, hashlib.sha256(data).hexdigest())

    def delete(self, name: str) -> bool:
        """Delete a document. Return False if it did not exist."""
        return self._store.remove(self.path(name))


class VaultPlugins(Struct, frozen=True):
    """The ids of a vault's community plugins.

    `installed` plugins have a folder in `.obsidian/plugins` or are enabled. Where plugins are not
    synced, an enabled one has no folder.
    """

    installed: frozenset[str] = frozenset()
    enabled: frozenset[str] = frozenset()

    @classmethod
    def of(cls, store: VaultStore) -> VaultPlugins:
        """Read the current plugins of a vault."""
        listed = store.obsidian_config("community-plugins")
        enabled: frozenset[str] = frozenset()
        if isinstance(listed, list):
            enabled = frozenset(name for name in listed if isinstance(name, str))
        return cls(_folders(store) | enabled, enabled)


def _folders(store: VaultStore) -> frozenset[str]:
    try:
        entries = store.scan(config_path("plugins", folder=store.config_folder))
    except VaultError:
        return frozenset()
    return frozenset(name for name, kind, _ in entries if kind == "folder")


class PluginFolder:
    """The folder of a plugin in the vault.

    `config_folder` is the name of Obsidian's configuration folder; None stands for the one that the
    vault has.
    """

    def __init__(self, store: VaultStore, id: str, config_folder: str | None = None) -> None:
        self._store = store
        self.path = config_path("plugins", id, folder=config_folder or store.config_folder)

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, or None if it does not exist."""
        try:
            return self._store.read(from_disk(self.path, name), FILE_LIMIT)
        except VaultError as error:
            if error.code == "FILE_NOT_FOUND":
                return None
            raise

    def write(self, files: Mapping[str, bytes]) -> None:
        """Write these files, each atomically. Other files, such as the settings, stay."""
        self._store.make_folder(self.path)
        for name, data in files.items():
            self._store.write_atomic(from_disk(self.path, name), data)

    def remove(self) -> bool:
        """Remove the folder and the files in it. Return False if it did not exist.

        A sub-folder stays, and with it the folder itself.
        """
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
