"""The text of a wikilink to a file: its bare name where that can mean nothing else, its whole path otherwise.

That is what Obsidian writes by default ("Shortest path when possible"). Lookup there ignores case, takes a name as written before it tries
`.md`, and prefers the exact path of the vault, so the whole path always means the file.
"""

from __future__ import annotations

import unicodedata
from collections import Counter

from obsidian_agent.errors import VaultError
from obsidian_agent.vault import paths
from obsidian_agent.vault.paths import ROOT, PathUse, VaultPath
from obsidian_agent.vault.view import VaultView


class LinkWriter:
    """Makes wikilinks for one state of a vault; the names of all files are counted once, when first needed."""

    def __init__(self, view: VaultView) -> None:
        self._view = view
        self._names: Counter[str] | None = None

    def __call__(self, text: str) -> str:
        """`[[Name]]` or `[[folder/Name]]` when `text` is the path of a file, `[[text]]` for any other text."""
        try:
            entry = self._view.locate(paths.parse(text, PathUse.READ))
        except VaultError:
            entry = None
        return f"[[{self.target(entry.path)}]]" if entry is not None and entry.kind == "file" else f"[[{text}]]"

    def target(self, path: VaultPath) -> str:
        """What stands between the brackets of an unambiguous link to `path`: notes without `.md`, other files with their extension."""
        name = path.stem if path.is_note else path.name
        if self._is_unique(path, name):
            return name
        return path.text[: -len(path.suffix)] if path.is_note else path.text

    def _is_unique(self, path: VaultPath, name: str) -> bool:
        names = self._count_names()
        readings = {_key(path.name), _key(name), _key(f"{name}.md")}
        return sum(names[reading] for reading in readings) == 1

    def _count_names(self) -> Counter[str]:
        if self._names is None:
            self._names = Counter(_key(entry.path.name) for entry in self._view.walk(ROOT) if entry.kind == "file")
        return self._names


def _key(name: str) -> str:
    return name.lower() if name.isascii() else unicodedata.normalize("NFC", name).casefold()
