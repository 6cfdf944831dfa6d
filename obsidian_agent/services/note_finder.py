"""The search for a note to open: recent ones, then by name or alias, then by headings and text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.obsidian.registry import recent_files
from obsidian_agent.services.reading import (
    NoteLine,
    is_readable,
    recently_modified,
    search_lines,
)
from obsidian_agent.services.run_context import note_settings
from obsidian_agent.vault.index.name_search import NameHit, NameSearch
from obsidian_agent.vault.paths.path import ROOT

if TYPE_CHECKING:
    from obsidian_agent.services.open_vault import OpenVault

MAX_NAMES: Final = 60
MAX_LINES: Final = 100
MAX_RECENT: Final = 12


class NoteFinder:
    """A search for notes in one state of a vault. Every method may block."""

    def __init__(self, vault: OpenVault) -> None:
        self._vault = vault
        self._view = vault.view()
        self._paths = sorted(
            entry.path.text
            for entry in self._view.walk(ROOT)
            if entry.kind == "file" and is_readable(entry.path.text)
        )
        self._existing = frozenset(self._paths)
        self._names = NameSearch(self._paths)

    @property
    def count(self) -> int:
        """The number of notes, without canvases."""
        return sum(path.endswith(".md") for path in self._paths)

    def add_aliases(self) -> None:
        """Search by aliases as well, from the index, which is built if it is not there yet."""
        aliases = [(alias, path.text) for alias, path in self._view.index.aliases()]
        self._names = NameSearch(self._paths, aliases)

    def recent(self, opened: Iterable[str]) -> list[str]:
        """Return the notes `opened` here and in Obsidian, else the latest modified."""
        listed = dict.fromkeys(path for path in self._recent(opened) if path in self._existing)
        return list(listed or self._modified())[:MAX_RECENT]

    def _recent(self, opened: Iterable[str]) -> Iterator[str]:
        yield from opened
        try:
            yield from recent_files(self._vault.store.obsidian_config("workspace"))
        except ObsidianAgentError:
            return

    def _modified(self) -> list[str]:
        templates = note_settings(self._vault.store.obsidian_config).templates
        try:
            return recently_modified(self._view, MAX_RECENT, templates)
        except ObsidianAgentError:
            return []

    def names(self, query: str) -> Sequence[NameHit]:
        """Return the notes whose names or aliases match, best first."""
        return self._names.search(query, MAX_NAMES).hits

    def first(self, limit: int) -> list[str]:
        """Return the first notes by name."""
        return self._paths[:limit]

    def named(self, name: str) -> list[str]:
        """Return the notes whose path, or else whose file name, is `name`.

        Case and the extension `.md` do not matter.
        """
        return notes_named(self._paths, name)

    def lines(self, query: str, is_cancelled: Callable[[], bool]) -> list[NoteLine]:
        """Return the headings, then the lines of text that hold every word."""
        return search_lines(self._view, query, MAX_LINES, is_cancelled)


def notes_named(paths: Sequence[str], name: str) -> list[str]:
    """Return the paths that are `name`, or else those with this file name, without `.md`."""
    query = name.casefold().removesuffix(".md")
    keys = [path.casefold().removesuffix(".md") for path in paths]
    whole = [path for path, key in zip(paths, keys, strict=True) if key == query]
    return whole or [
        path for path, key in zip(paths, keys, strict=True) if key.rpartition("/")[2] == query
    ]
