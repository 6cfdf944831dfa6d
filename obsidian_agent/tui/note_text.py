"""A note as shown and as it is: safe lines for the screen, and the way back to positions as Obsidian counts them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from obsidian_agent import terminal_text
from obsidian_agent.terminal_text import ShownLine

if TYPE_CHECKING:
    from obsidian_agent.tools.core.tool import Position, Selection

_LINE_END = re.compile("\r\n|\r|\n")
MAX_LINES = 50_000
MAX_CHARACTERS = 3_000_000

Location = tuple[int, int]
"""Row and column on the screen, both from 0, columns in code points."""


@dataclass(frozen=True, slots=True)
class NoteText:
    """The lines of a note without their ends (LF, CRLF and CR end a line, as in Obsidian's editor), and how each is shown."""

    source: tuple[str, ...]
    shown: tuple[ShownLine, ...]
    left_out: int = 0
    """Lines at the end that are not shown because the note is too long for a screen."""

    @classmethod
    def of(cls, text: str) -> NoteText:
        """Split and make safe."""
        lines = _LINE_END.split(text[:MAX_CHARACTERS])
        rest = text[MAX_CHARACTERS:].count("\n") + max(len(lines) - MAX_LINES, 0)
        kept = tuple(lines[:MAX_LINES])
        return cls(kept, tuple(terminal_text.note_line(line) for line in kept), rest)

    @property
    def screen(self) -> str:
        """The text for the screen."""
        return "\n".join(line.text for line in self.shown)

    def position(self, location: Location) -> Position:
        """A place on the screen as a place in the note."""
        from obsidian_agent.tools.core.tool import Position

        row = min(location[0], len(self.source) - 1)
        column = self.shown[row].source_column(location[1])
        return Position(row, utf16_length(self.source[row][:column]))

    def selection(self, start: Location, end: Location) -> Selection | None:
        """What lies between two places on the screen; None when that is nothing. Lines are joined with LF, as Obsidian's editor does."""
        from obsidian_agent.tools.core.tool import Selection

        first, last = sorted((start, end))
        if first == last:
            return None
        top, bottom = first[0], min(last[0], len(self.source) - 1)
        left, right = self.shown[top].source_column(first[1]), self.shown[bottom].source_column(last[1])
        if top == bottom:
            text = self.source[top][left:right]
        else:
            text = "\n".join([self.source[top][left:], *self.source[top + 1 : bottom], self.source[bottom][:right]])
        return Selection(text, self.position(first), self.position(last)) if text else None


def utf16_length(text: str) -> int:
    """Length in UTF-16 code units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
