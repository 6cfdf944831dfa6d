"""The text of a wikilink to a file: its bare name where that can mean nothing else, its whole path otherwise.

That is what Obsidian writes by default ("Shortest path when possible"), whatever the vault's settings say: these links are texts in a plan.
"""

from __future__ import annotations

from obsidian_agent.errors import VaultError
from obsidian_agent.vault import paths
from obsidian_agent.vault.linktext import link_target
from obsidian_agent.vault.paths import ROOT, PathUse, VaultPath
from obsidian_agent.vault.resolve import LinkResolver
from obsidian_agent.vault.view import VaultView


class LinkWriter:
    """Makes wikilinks for one state of a vault; the names of all files are read once, when first needed."""

    def __init__(self, view: VaultView) -> None:
        self._view = view
        self._resolver: LinkResolver | None = None

    def __call__(self, text: str) -> str:
        """`[[Name]]` or `[[folder/Name]]` when `text` is the path of a file, `[[text]]` for any other text."""
        try:
            entry = self._view.locate(paths.parse(text, PathUse.READ))
        except VaultError:
            entry = None
        return f"[[{self.target(entry.path)}]]" if entry is not None and entry.kind == "file" else f"[[{text}]]"

    def target(self, path: VaultPath) -> str:
        """What stands between the brackets of a link to `path` that means it from every note."""
        if self._resolver is None:
            self._resolver = LinkResolver(entry.path for entry in self._view.walk(ROOT) if entry.kind == "file")
        return link_target(self._resolver, path, path)
