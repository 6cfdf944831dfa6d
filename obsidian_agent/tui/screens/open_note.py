"""The dialog that opens a note by a few letters of its name."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Input, Static

from obsidian_agent import terminal_text
from obsidian_agent.tui.screens.dialogs import SearchDialog
from obsidian_agent.tui.widgets.prompt import LineEntry
from obsidian_agent.tui.widgets.row_list import Choice, ChoiceList

MAX_MATCHES = 200


class OpenNote(SearchDialog):
    """A search for notes. Dismisses with the path of the chosen one.

    The list of notes is read in the background; the user can type meanwhile.
    """

    def __init__(self, load: Callable[[], Awaitable[Sequence[str]]], query: str = "") -> None:
        super().__init__("Open note")
        self._load = load
        self._query = query
        self._search: NoteSearch | None = None

    def body(self) -> ComposeResult:
        yield LineEntry(self._query, placeholder="A few letters of the name", compact=False)
        yield Static("Loading notes…", id="found", markup=False)
        yield ChoiceList()

    def on_mount(self) -> None:
        self.query_one(ChoiceList).can_focus = False
        self.run_flow("notes", self._read)

    async def _read(self) -> None:
        paths = await self._load()
        self._search = await asyncio.to_thread(NoteSearch, paths)
        if self.is_attached:
            await self._find(self.query_one(LineEntry).value)

    def on_input_changed(self, event: Input.Changed) -> None:
        self.run_flow("find", partial(self._find, event.value), exclusive=True)

    async def _find(self, query: str) -> None:
        if self._search is None:
            return
        paths = await asyncio.to_thread(self._search.find, query)
        if not self.is_attached:
            return
        self.query_one(ChoiceList).set_choices([_choice(path) for path in paths], 0)
        summary = terminal_text.counted(len(paths), "note") if paths else "No matching notes."
        self.query_one("#found", Static).update(Content(summary))


def notes_named(paths: Sequence[str], name: str) -> list[str]:
    """Return the notes whose path, or else whose file name, is `name`.

    Case and the extension `.md` do not matter.
    """
    query = name.casefold().removesuffix(".md")
    keys = [path.casefold().removesuffix(".md") for path in paths]
    whole = [path for path, key in zip(paths, keys, strict=True) if key == query]
    return whole or [
        path for path, key in zip(paths, keys, strict=True) if key.rpartition("/")[2] == query
    ]


def _choice(path: str) -> Choice:
    folder, _, name = path.rpartition("/")
    return Choice(path, name.removesuffix(".md"), folder)


class NoteSearch:
    """A search in a fixed list of paths. Not thread-safe, but usable from another thread."""

    def __init__(self, paths: Sequence[str]) -> None:
        # Imported here, in a background thread, because it takes as long as a few frames.
        from obsidian_agent.vault.index.name_search import NameSearch

        self._paths = paths
        self._names = NameSearch(paths)

    def find(self, query: str) -> list[str]:
        """Return at most `MAX_MATCHES` matches, best first; the first notes for an empty query."""
        if not query.strip():
            return list(self._paths[:MAX_MATCHES])
        return [hit.path for hit in self._names.search(query, MAX_MATCHES).hits]
