"""The vault below an overlay: its bytes, read once where they are asked for in a row, and the hashes of what was read."""

from __future__ import annotations

from obsidian_agent.vault.changes import content_hash
from obsidian_agent.vault.inventory import HASHED_FILE, Inventory
from obsidian_agent.vault.paths import VaultPath
from obsidian_agent.vault.view import Entry, VaultView


class HashedBase:
    """Reads of a base view with the hash of everything read, and the names in its trash."""

    def __init__(self, view: VaultView) -> None:
        self.view = view
        self._hashes: dict[str, str] = {}
        self._inventories: dict[str, Inventory | None] = {}
        self._last_read: tuple[str, bytes] | None = None
        self._trash_names: frozenset[str] | None = None

    def read(self, path: VaultPath) -> bytes:
        """The bytes of a file; reading the one that was read last costs nothing."""
        if self._last_read is not None and self._last_read[0] == path.nfc:
            return self._last_read[1]
        data = self.view.read(path)
        self._hashes.setdefault(path.nfc, content_hash(data))
        self._last_read = (path.nfc, data)
        return data

    def hash_of(self, path: VaultPath) -> str:
        """The hash that a file had when it was read first."""
        known = self._hashes.get(path.nfc)
        if known is None:
            self.read(path)
            known = self._hashes[path.nfc]
        return known

    def bound(self, path: VaultPath, *, folder: bool) -> tuple[str | None, Inventory | None]:
        """What an entry that is moved must still be: a file its hash, a folder, or a file over `HASHED_FILE`, its inventory."""
        if not folder and self.view.stat(path).size <= HASHED_FILE:
            return self.hash_of(path), None
        known = self._inventories.get(path.nfc)
        if known is None:
            look = getattr(self.view, "inventory", None)
            known = self._inventories[path.nfc] = None if look is None else look(path)
        return None, known

    def is_link(self, path: VaultPath) -> bool:
        """Whether an entry is a link. Only a disk has them."""
        look = getattr(self.view, "is_link", None)
        return look is not None and look(path)

    def path_of(self, path: VaultPath) -> VaultPath | None:
        """The path as the base spells it; None: not there."""
        entry = self.view.locate(path)
        return entry.path if entry else None

    def children(self, folder: VaultPath) -> list[Entry]:
        """What is directly in a folder; nothing where there is none."""
        entry = self.view.locate(folder)
        return self.view.children(entry.path) if entry is not None and entry.kind == "folder" else []

    def trash_names(self) -> frozenset[str]:
        """The names taken in the trash, case folded."""
        if self._trash_names is None:
            names = getattr(self.view, "trash_names", None)
            self._trash_names = frozenset(name.casefold() for name in names()) if names is not None else frozenset()
        return self._trash_names
