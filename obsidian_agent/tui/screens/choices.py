"""A plain list of lines to choose from, used by several screens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from textual.binding import Binding
from textual.content import Content

from obsidian_agent import terminal_text
from obsidian_agent.tui.widgets.virtual_list import VirtualList


@dataclass(frozen=True, slots=True)
class Choice:
    """One line: a main text, something dim beside it, a word in front. Texts are made safe when drawn."""

    key: str
    text: str
    note: str = ""
    word: str = ""
    word_style: str = "$primary"
    word_width: int = field(default=0)


class ChoiceList(VirtualList[Choice]):
    """Shows `Choice`s; its height is that of its rows."""

    DEFAULT_CSS = "ChoiceList { height: auto; }"
    BINDINGS = [Binding("enter", "choose", "Choose", key_display="⏎")]

    def draw_row(self, row: Choice, width: int) -> Content:
        word = f"{terminal_text.line(row.word):<{row.word_width}} " if row.word or row.word_width else ""
        return Content.assemble(
            (" ", ""),
            (word, row.word_style),
            (terminal_text.shortened(row.text, 300), "$foreground"),
            (f"  {terminal_text.shortened(row.note, 300)}" if row.note else "", "$quiet"),
        )

    def set_choices(self, choices: Sequence[Choice], cursor: int | None = None) -> None:
        """Other lines."""
        self.set_rows(choices, cursor)
