"""From the texts of paths that a listing of the vault has shown back to judged paths."""

from __future__ import annotations

from obsidian_agent.vault.paths import ROOT, VaultPath, from_disk


class KnownPaths:
    """Judges texts again, each folder once. PathRefused for a text that no listing can have shown."""

    def __init__(self) -> None:
        self._folders: dict[str, VaultPath] = {"": ROOT}

    def __call__(self, text: str) -> VaultPath:
        folder, _, name = text.rpartition("/")
        return from_disk(self._folder(folder), name)

    def _folder(self, text: str) -> VaultPath:
        known = self._folders.get(text)
        if known is None:
            above, _, name = text.rpartition("/")
            known = self._folders[text] = from_disk(self._folder(above), name)
        return known
