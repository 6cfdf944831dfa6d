"""The dialog that opens a note by its name, an alias, a heading or its text."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Input, Static

from obsidian_agent import terminal_text
from obsidian_agent.tui.screens.dialogs import SearchDialog, SearchEntry
from obsidian_agent.tui.widgets.prompt import LineEntry
from obsidian_agent.tui.widgets.row_list import VirtualList
from obsidian_agent.vault.paths.rules import display_name

if TYPE_CHECKING:
    from obsidian_agent.services.note_finder import NoteFinder
    from obsidian_agent.services.reading import NoteLine

MIN_LETTERS = 2
"""Letters from which headings and texts are searched."""

PAUSE = 0.12
"""Seconds without a key after which they are searched."""


MIN_NOTE = 24
"""Columns that the remark on a row gets where its text is long."""


class NoteRow(Struct, frozen=True):
    """A note that can be opened, or a line (from 1) of one. Texts are made safe when drawn."""

    path: str
    text: str
    note: str = ""
    line: int | None = None


Row = NoteRow | str
"""A row, or the heading of a group."""


class NoteList(VirtualList[NoteRow]):
    """Notes and lines of notes in groups."""

    DEFAULT_CSS = "NoteList { height: auto; max-height: 60vh; }"

    def draw_row(self, row: NoteRow, width: int) -> Content:
        text, note = terminal_text.line(row.text[:200]), terminal_text.line(row.note[:200])
        note_room = min(len(note), max(width - len(text) - 4, MIN_NOTE))
        content = Content.styled(f" {text}", "$foreground")
        return Content.assemble(
            content.truncate(max(width - note_room - 3, MIN_NOTE), ellipsis=True),
            (f"  {note}" if note else "", "$quiet"),
        )


class NoteSearchDialog(SearchDialog[NoteRow]):
    """A search box above a list of notes. Dismisses with the chosen row."""

    def __init__(self, title: str, query: str = "", placeholder: str = "Type to filter") -> None:
        super().__init__(title)
        self._query = query
        self._placeholder = placeholder

    def body(self) -> ComposeResult:
        yield SearchEntry(self._query, placeholder=self._placeholder, compact=False)
        yield Static("", id="found", markup=False)
        yield NoteList()

    def on_mount(self) -> None:
        self.listing.can_focus = False

    @property
    def listing(self) -> NoteList:
        return self.query_one(NoteList)

    def show_count(self, text: str) -> None:
        """Show the text between search box and list."""
        self.query_one("#found", Static).update(Content(text))


class OpenNote(NoteSearchDialog):
    """A search for a note: recent ones at first, then by names, headings and text.

    The vault is read in the background; the user can type meanwhile.
    """

    def __init__(
        self,
        title: str,
        make_finder: Callable[[], NoteFinder],
        opened: Sequence[str] = (),
        query: str = "",
    ) -> None:
        super().__init__(title, query, "Name, alias, heading or text")
        self._make_finder = make_finder
        self._opened = opened
        self._finder: NoteFinder | None = None

    def on_mount(self) -> None:
        super().on_mount()
        self.show_count("Loading notes…")
        self.run_flow("notes", self._load)

    async def _load(self) -> None:
        self._finder = await asyncio.to_thread(self._make_finder)
        self._search(self.query_one(LineEntry).value)
        await asyncio.to_thread(self._finder.add_aliases)

    def on_input_changed(self, event: Input.Changed) -> None:
        self._search(event.value)

    def _search(self, query: str) -> None:
        if self._finder is not None and self.is_attached:
            self.run_flow("find", partial(self._find, self._finder, query), exclusive=True)

    async def _find(self, finder: NoteFinder, query: str) -> None:
        if not query.strip():
            await self._show_recent(finder)
            return
        names = [] if query.startswith("#") else await asyncio.to_thread(finder.names, query)
        rows = [_name_row(hit.path, hit.alias) for hit in names]
        self._show(rows, "Names")
        if len(query.strip()) < MIN_LETTERS:
            return
        await asyncio.sleep(PAUSE)
        cancelled = threading.Event()
        try:
            lines = await asyncio.to_thread(finder.lines, query, cancelled.is_set)
        finally:
            cancelled.set()
        self._show(rows, "Names", lines)

    async def _show_recent(self, finder: NoteFinder) -> None:
        self._show([_name_row(path) for path in finder.first(200)], "All")
        self.show_count(terminal_text.counted(finder.count, "note"))
        recent = await asyncio.to_thread(finder.recent, self._opened)
        others = [path for path in finder.first(200) if path not in recent]
        rows: list[Row] = ["Recent", *map(_name_row, recent)] if recent else []
        if others:
            rows += ["All", *map(_name_row, others)]
        if self.is_attached:
            self.listing.set_rows(rows, 0)

    def _show(self, names: Sequence[NoteRow], title: str, lines: Sequence[NoteLine] = ()) -> None:
        """Show groups of rows. The cursor stays on its row."""
        if not self.is_attached:
            return
        rows: list[Row] = []
        for heading, group in (
            (title, names),
            ("Headings", [_line_row(line) for line in lines if line.is_heading]),
            ("Text", [_line_row(line) for line in lines if not line.is_heading]),
        ):
            if group:
                rows += [heading, *group]
        current = self.listing.current
        cursor = rows.index(current) if lines and current in rows else 0
        self.listing.set_rows(rows, cursor)
        notes = {row.path for row in rows if isinstance(row, NoteRow)}
        self.show_count(terminal_text.counted(len(notes), "note") if notes else "No match.")


class LinePicker(NoteSearchDialog):
    """The lines of notes to choose from, such as an outline or backlinks."""

    def __init__(self, title: str, rows: Sequence[NoteRow], empty: str) -> None:
        super().__init__(title)
        self._rows = rows
        self._empty = empty

    def on_mount(self) -> None:
        super().on_mount()
        self._filter("")

    def on_input_changed(self, event: Input.Changed) -> None:
        self._filter(event.value)

    def _filter(self, query: str) -> None:
        words = query.casefold().split()
        rows = [
            row
            for row in self._rows
            if all(word in f"{row.text} {row.note}".casefold() for word in words)
        ]
        self.listing.set_rows(rows, 0)
        summary = "" if rows else "No match."
        self.show_count(summary if self._rows else self._empty)


def outline_rows(path: str, headings: Sequence[tuple[int, str, int]]) -> Iterator[NoteRow]:
    """Yield the headings of a note, indented by their levels."""
    least = min((level for level, _, _ in headings), default=1)
    for level, text, line in headings:
        yield NoteRow(path, f"{'  ' * (level - least)}{text}", line=line)


def backlink_rows(mentions: Sequence[NoteLine]) -> Iterator[NoteRow]:
    """Yield the lines that link to a note."""
    for mention in mentions:
        yield NoteRow(mention.path, display_name(mention.path), mention.text, mention.line)


def _name_row(path: str, alias: str | None = None) -> NoteRow:
    folder = path.rpartition("/")[0]
    if alias:
        return NoteRow(path, alias, f"alias of {display_name(path)}")
    return NoteRow(path, display_name(path), folder)


def _line_row(mention: NoteLine) -> NoteRow:
    text = mention.text.lstrip("# ") if mention.is_heading else mention.text
    return NoteRow(mention.path, text, display_name(mention.path), mention.line)
