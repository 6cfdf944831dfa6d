"""The vault below an overlay: its bytes, read once where they are asked for in a row, and the hashes of what was read."""

from __future__ import annotations

from obsidian_agent.vault.changes import content_hash
from obsidian_agent.vault.paths import VaultPath
from obsidian_agent.vault.view import Entry, VaultView

HASHED_MOVE_LIMIT = 16 * 1024 * 1024
"""Larger files are moved without a content check: their bytes do not change, and reading them would make the preview wait."""


class HashedBase:
    """Reads of a base view with the hash of everything read, and the names in its trash."""

    def __init__(self, view: VaultView) -> None:
        self.view = view
        self._hashes: dict[str, str] = {}
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

    def hash_for_move(self, path: VaultPath) -> str | None:
        """As `hash_of`; None for a file over `HASHED_MOVE_LIMIT`."""
        return None if self.view.stat(path).size > HASHED_MOVE_LIMIT else self.hash_of(path)

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
