"""The base of an overlay: a view with the hashes of all contents that were read."""

from __future__ import annotations

from typing import Final

from obsidian_agent.errors import VaultError
from obsidian_agent.vault.filesystem.inventory import HASHED_FILE, Inventory
from obsidian_agent.vault.paths.path import VaultPath, collision_key
from obsidian_agent.vault.views.changes import content_hash
from obsidian_agent.vault.views.view import VaultEntry, VaultView

_CACHED_BYTES: Final = 8 << 20
"""Size of the cache of contents: enough for an ordinary plan, little next to a large one."""


class HashedBase:
    """A base view, with the hash of every file that was read and the names in its trash."""

    def __init__(self, view: VaultView) -> None:
        self.view = view
        self._hashes: dict[str, str] = {}
        self._sizes: dict[str, int] = {}
        self._read: list[VaultPath] = []
        """The files with a hash."""
        self._inventories: dict[str, Inventory | None] = {}
        self._cache: dict[str, bytes] = {}
        self._cached_bytes = 0
        self._trash_names: frozenset[str] | None = None

    def read(self, path: VaultPath) -> bytes:
        """Return the bytes of a file. Recent contents are cached."""
        data = self._cache.get(path.text)
        if data is None:
            data = self.view.read(path)
            if path.text not in self._hashes:
                self._hashes[path.text], self._sizes[path.text] = content_hash(data), len(data)
                self._read.append(path)
            self._cached_bytes += len(data)
            if self._cached_bytes > _CACHED_BYTES:
                self._cache, self._cached_bytes = {}, len(data)
            self._cache[path.text] = data
        return data

    def known_hash(self, path: VaultPath) -> str | None:
        """Return the hash of a file, or None if it was not read."""
        return self._hashes.get(path.text)

    def hash_of(self, path: VaultPath) -> str:
        """Return the hash of a file when it was first read."""
        known = self._hashes.get(path.text)
        if known is None:
            self.read(path)
            known = self._hashes[path.text]
        return known

    def changed(self, now: VaultView) -> list[VaultPath]:
        """Return the files that have other contents in `now` than when they were read."""
        return [path for path in self._read if _hash_in(now, path) != self._hashes[path.text]]

    def size_of(self, path: VaultPath) -> int:
        """Return the number of bytes of a file when it was first read."""
        self.hash_of(path)
        return self._sizes[path.text]

    def state_before_move(
        self, path: VaultPath, *, folder: bool
    ) -> tuple[str | None, Inventory | None]:
        """Return the state that an entry must still have when it is moved.

        It is the hash of a file, or the inventory of a folder or of a file over `HASHED_FILE`.
        """
        if not folder and self.view.stat(path).size <= HASHED_FILE:
            return self.hash_of(path), None
        inventory = self._inventories.get(path.text)
        if inventory is None:
            inventory = self._inventories[path.text] = self.view.inventory(path)
        return None, inventory

    def path_of(self, path: VaultPath) -> VaultPath | None:
        """Return the path in the spelling of the base, or None if nothing is there."""
        entry = self.view.locate(path)
        return entry.path if entry else None

    def is_folder(self, path: VaultPath) -> bool:
        """Return whether the base has a folder with exactly this spelling."""
        return self.view.locate(path) == VaultEntry(path, "folder")

    def trash_names(self) -> frozenset[str]:
        """Return the collision keys of the names in the trash."""
        if self._trash_names is None:
            self._trash_names = frozenset(map(collision_key, self.view.trash_names()))
        return self._trash_names


def _hash_in(view: VaultView, path: VaultPath) -> str | None:
    try:
        return content_hash(view.read(path))
    except VaultError:
        return None
