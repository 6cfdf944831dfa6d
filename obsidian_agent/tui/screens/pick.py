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

    def __init__(self, title: str, rows: Sequence[tuple[str, str]], *, hint: str = "", empty: str = "", free: bool = False) -> None:
        super().__init__(title, hint)
        self._rows = rows
        self._empty = empty
        self._free = free

    def body(self) -> ComposeResult:
        yield LineEntry(placeholder="A few letters", compact=False)
        yield ChoiceList([], empty=self._empty)

    def on_mount(self) -> None:
        self.query_one(ChoiceList).can_focus = False
        self._find("")

    def on_input_changed(self, event: Input.Changed) -> None:
        self._find(event.value)

    def _find(self, query: str) -> None:
        words = query.casefold().split()
        begun = self._free and query.rstrip().endswith("/") and any(key == query.strip() for key, _ in self._rows)
        found = [] if begun else [(key, note) for key, note in self._rows if all(word in f"{key} {note}".casefold() for word in words)]
        rows = [Choice(key, key, note) for key, note in found]
        self.query_one(ChoiceList).set_choices(rows, 0)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        listing = self.query_one(ChoiceList)
        if listing.current is not None:
            self._take(listing.current.key)
        elif self._free and event.value.strip():
            self.dismiss(event.value.strip())

    def on_virtual_list_chosen(self, event: ChoiceList.Chosen) -> None:
        self._take(event.list.rows[event.index].key)

    def _take(self, key: str) -> None:
        """What ends with a slash is only a beginning, where something of one's own may be typed."""
        if self._free and key.endswith("/"):
            entry = self.query_one(LineEntry)
            entry.value = key
            entry.cursor_position = len(key)
            entry.focus()
        else:
            self.dismiss(key)

    def action_move(self, step: int) -> None:
        self.query_one(ChoiceList).action_cursor(step)
