"""What the word that is being typed may become: commands behind a slash, notes, folders and tags behind an @."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual.content import Content
from textual.message import Message

from obsidian_agent import terminal_text
from obsidian_agent.tui.widgets.virtual_list import VirtualList

MOST = 8


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Text that may take the place of the last `length` characters before the cursor. `send`: with it the message is complete."""

    insert: str
    length: int
    note: str = ""
    label: str = ""
    send: bool = False


class Suggestions(VirtualList[Suggestion], can_focus=False):
    """A few lines above the message box, steered by the box: it keeps the focus."""

    DEFAULT_CSS = """
    Suggestions { height: auto; max-height: 8; background: $panel; display: none; padding: 0 1; }
    Suggestions > .virtual-list--cursor { background: $block-cursor-background; color: $block-cursor-foreground; }
    """

    class Accepted(Message):
        """One was taken. `send`: with Enter, as a whole message."""

        def __init__(self, suggestion: Suggestion, *, send: bool) -> None:
            super().__init__()
            self.suggestion = suggestion
            self.send = send

    def __init__(self) -> None:
        super().__init__()
        self._behind = ""

    def offer(self, suggestions: Sequence[Suggestion], behind: str = "", *, chosen: bool = True) -> None:
        """Show these; none takes the list away. `behind`: the text before the cursor that they are for; `chosen`: the first one is taken
        unless the person moves, else what was typed holds."""
        self._behind = behind
        self.display = bool(suggestions)
        self.set_rows(list(suggestions), 0)
        if not chosen:
            self.cursor = -1

    def take(self, key: str, before: str) -> bool:
        """A key that was pressed in the message box; True when it was for this list. `before`: the text before the cursor now; whoever
        types faster than suggestions come does not get those for less text."""
        if not self.display or not self.rows:
            return False
        suggestion = self.current
        match key:
            case "up" | "down":
                self.cursor = (max(self.cursor, 0 if key == "up" else -1) + (1 if key == "down" else -1)) % len(self.rows)
            case "tab" | "enter" if before == self._behind and suggestion is not None:
                self.display = False
                self.post_message(self.Accepted(suggestion, send=key == "enter" and suggestion.send))
            case "escape":
                self.display = False
            case _:
                return False
        return True

    def draw_row(self, row: Suggestion, width: int) -> Content:
        return Content.assemble(
            (terminal_text.shortened(row.label or row.insert, 120), "$foreground"),
            (f"  {terminal_text.shortened(row.note, 120)}" if row.note else "", "$quiet"),
        )
