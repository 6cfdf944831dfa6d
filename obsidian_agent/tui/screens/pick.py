"""One of several things, found by a few letters."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Input

from obsidian_agent.tui.screens.choices import Choice, ChoiceList
from obsidian_agent.tui.screens.modal import Modal
from obsidian_agent.tui.widgets.entry import LineEntry


class Pick(Modal[str]):
    """Dismisses with the key of the chosen row, or, with `free`, with what was typed when no row holds it.

    `rows` are pairs of a key and a note on it.
    """

    BINDINGS = [
        Binding("down", "move(1)", "Down", show=False, priority=True),
        Binding("up", "move(-1)", "Up", show=False, priority=True),
    ]
    AUTO_FOCUS = "LineEntry"

    def __init__(
        self, title: str, rows: Sequence[tuple[str, str]], *, hint: str = "", empty: str = "", free: bool = False, typed: str = ""
    ) -> None:
        super().__init__(title, hint)
        self._rows = rows
        self._empty = empty
        self._free = free
        self._typed = typed

    def body(self) -> ComposeResult:
        yield LineEntry(self._typed, placeholder="A few letters", compact=False)
        yield ChoiceList([], empty=self._empty)

    def on_mount(self) -> None:
        self.query_one(ChoiceList).can_focus = False
        self._find(self._typed)

    def on_input_changed(self, event: Input.Changed) -> None:
        self._find(event.value)

    def _find(self, query: str) -> None:
        words = query.casefold().split()
        found = [(key, note) for key, note in self._rows if all(word in f"{key} {note}".casefold() for word in words)]
        rows = [Choice(key, key, note) for key, note in found]
        self.query_one(ChoiceList).set_choices(rows, 0)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        listing = self.query_one(ChoiceList)
        if listing.current is not None:
            self.dismiss(listing.current.key)
        elif self._free and event.value.strip():
            self.dismiss(event.value.strip())

    def on_virtual_list_chosen(self, event: ChoiceList.Chosen) -> None:
        self.dismiss(event.list.rows[event.index].key)

    def action_move(self, step: int) -> None:
        self.query_one(ChoiceList).action_cursor(step)
