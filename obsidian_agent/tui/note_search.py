"""Finding a note by a few letters of its name, ranked as everywhere else."""

from __future__ import annotations

from collections.abc import Sequence

LIMIT = 200


class NoteSearch:
    """Searches a fixed list of paths. Not thread-safe; made to be called in a thread, one call at a time."""

    def __init__(self, paths: Sequence[str]) -> None:
        # Imported here: it takes as long as a few frames, and nobody waits for it in the thread that this is made in.
        from obsidian_agent.vault.index.name_search import NameSearch

        self._paths = paths
        self._names = NameSearch(paths)

    def find(self, query: str) -> list[str]:
        """The best matches, best first, at most `LIMIT`; the first notes for an empty query."""
        if not query.strip():
            return list(self._paths[:LIMIT])
        return [hit.path for hit in self._names.search(query, LIMIT).hits]
