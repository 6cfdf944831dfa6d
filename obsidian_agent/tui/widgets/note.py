"""The note pane: a note to read and to select in. What is selected here is the selection of the next turn.

`DisplayedNote` is a note as shown and as it is: safe lines for the screen, and the way back to positions as Obsidian counts them.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static, TextArea
from textual.widgets.text_area import Selection as Marked

from obsidian_agent import terminal_text
from obsidian_agent.dataclass import dataclass
from obsidian_agent.terminal_text import DisplayLine
from obsidian_agent.tui.bindings import bindings, key_label

if TYPE_CHECKING:
    from obsidian_agent.tools.core.tool import EditorPosition, Selection


_INLINE = (
    (re.compile(r"!?\[\[[^\]\n]*\]\]"), "note--link"),
    (re.compile(r"`[^`\n]+`"), "note--code"),
    (re.compile(r"\*\*[^*\n]+\*\*"), "note--strong"),
    (re.compile(r"(?<![\w#/&])#[\w/-]*[^\W\d][\w/-]*"), "note--tag"),
)
_HEADING = re.compile(r"#{1,6}\s")
_MARKER = re.compile(r"\s*(?:[-*+]|\d+[.)])\s(?:\[.\]\s)?|\s*>+\s?")


class NoteRequested(Message):
    """A note is to be shown in the note pane."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path


class OutsideRequested(Message):
    """A note is to be opened in Obsidian, at a line (from 1) where one is known."""

    def __init__(self, path: str, line: int | None = None) -> None:
        super().__init__()
        self.path = path
        self.line = line


class NoteArea(TextArea):
    """The text of a note, read-only, lightly coloured."""

    DEFAULT_CSS = """
    NoteArea {
        border: none; padding: 0 1; background: $surface; scrollbar-size-vertical: 1;
        &:focus { border: none; }
        & .text-area--cursor-line { background: $boost; }
        & .text-area--gutter { color: $quiet; }
        & .text-area--cursor-gutter { color: $primary; background: $boost; }
    }
    NoteArea > .note--heading { color: $primary; text-style: bold; }
    NoteArea > .note--link { color: $secondary; }
    NoteArea > .note--code { color: $secondary; background: $boost; }
    NoteArea > .note--strong { text-style: bold; }
    NoteArea > .note--tag { color: $primary; }
    NoteArea > .note--marker { color: $primary; }
    NoteArea > .note--quiet { color: $quiet; }
    """
    COMPONENT_CLASSES = {
        "note--heading",
        "note--link",
        "note--code",
        "note--strong",
        "note--tag",
        "note--marker",
        "note--quiet",
    }
    BINDING_GROUP_TITLE = "Note"
    BINDINGS = bindings("note")

    class Outside(Message):
        """The note is to be opened in Obsidian."""

    class Left(Message):
        """Back to the message."""

    def __init__(self) -> None:
        super().__init__(
            read_only=True,
            soft_wrap=True,
            show_line_numbers=True,
            tab_behavior="focus",
            id="note-area",
        )
        self.note = DisplayedNote.of("")
        self._frontmatter_end = 0
        self._styles: dict[str, Style] = {}

    def load(self, note: DisplayedNote) -> None:
        """Show a note from its top. Where lines are shown in pieces their numbers would be wrong: there are none then."""
        lines = [line.text.rstrip() for line in note.shown[:401]]
        closing = lines.index("---", 1) if lines[0] == "---" and "---" in lines[1:] else 0
        self._frontmatter_end = closing + 1 if closing else 0
        self.note = note
        self.show_line_numbers = not note.in_pieces
        self.load_text(note.screen)

    def notify_style_update(self) -> None:
        self._styles = {}
        super().notify_style_update()

    def _style(self, name: str) -> Style:
        if name not in self._styles:
            part = self.get_component_styles(name)
            bold = part.text_style.bold
            self._styles[name] = Style(
                color=part.color.rich_color if part.has_rule("color") else None, bold=bold or None
            )
        return self._styles[name]

    def get_line(self, line_index: int) -> Text:
        text = super().get_line(line_index)
        plain = text.plain
        if line_index < self._frontmatter_end:
            text.stylize(self._style("note--quiet"))
            return text
        if _HEADING.match(plain):
            text.stylize(self._style("note--heading"))
            return text
        marker = _MARKER.match(plain)
        if marker:
            text.stylize(self._style("note--marker"), marker.start(), marker.end())
        for pattern, name in _INLINE:
            for match in pattern.finditer(plain):
                text.stylize(self._style(name), match.start(), match.end())
        return text

    def action_select_line(self) -> None:
        """Select the line; when whole lines are selected already, take one line more."""
        start, end = sorted(self.selection)
        first, last = self.note.rows_of_line(start[0])[0], self.note.rows_of_line(end[0])[1]
        empty = not self.document.get_line(end[0])
        if (
            start == (first, 0)
            and (start != end or empty)
            and end == (last, len(self.document.get_line(last)))
        ):
            last = self.note.rows_of_line(min(last + 1, self.document.line_count - 1))[1]
        self.selection = Marked((first, 0), (last, len(self.document.get_line(last))))

    def action_select_whole(self) -> None:
        self.select_all()

    def action_outside(self) -> None:
        self.post_message(self.Outside())

    def action_leave(self) -> None:
        self.post_message(self.Left())


class NotePane(Vertical):
    """A head line with the path, and the note."""

    DEFAULT_CSS = """
    NotePane { background: $surface; }
    NotePane #note-head { height: 1; padding: 0 2; color: $quiet; background: $surface; margin: 1 0; }
    NotePane #note-empty { height: 1fr; padding: 1 2; color: $quiet; }
    NotePane NoteArea { height: 1fr; }
    """

    class FocusChanged(Message):
        """The note, the selection or the cursor changed."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.path: str | None = None

    def compose(self) -> ComposeResult:
        yield Static("", id="note-head", markup=False)
        yield Static("", id="note-empty", markup=False)

    def on_mount(self) -> None:
        self.refresh_keys()

    async def complete(self) -> None:
        """Add what nobody sees before a note is open."""
        await self.mount(NoteArea())
        self._show_parts()

    @property
    def area(self) -> NoteArea:
        return self.query_one(NoteArea)

    def open(self, path: str, text: str, line: int | None = None) -> None:
        """Show a note, with the cursor in a line (from 1). Without one the same note again keeps the cursor's line."""
        at = (
            line - 1
            if line is not None
            else self.area.note.line_at(self.area.cursor_location[0])
            if path == self.path
            else 0
        )
        self.path = path
        note = DisplayedNote.of(text)
        self.area.load(note)
        self.area.move_cursor((note.row_of(max(0, at)), 0), center=line is not None)
        self._show_parts()
        self.post_message(self.FocusChanged())

    def close(self) -> None:
        """Show no note."""
        self.path = None
        self.area.load(DisplayedNote.of(""))
        self._show_parts()
        self.post_message(self.FocusChanged())

    def selection(self) -> Selection | None:
        """The selected text with its place in the note, or None."""
        return self.area.note.selection(*self.area.selection) if self.path is not None else None

    def selected_lines(self) -> int:
        """How many lines are selected, in whole or in part."""
        start, end = sorted(self.area.selection)
        if start == end:
            return 0
        first, last = self.area.note.line_at(start[0]), self.area.note.line_at(end[0])
        return max(1, last - first + (1 if end != (self.area.note.row_of(last), 0) else 0))

    def cursor(self) -> EditorPosition | None:
        """The cursor's place in the note."""
        return self.area.note.position(self.area.cursor_location) if self.path is not None else None

    def on_note_area_outside(self) -> None:
        if (cursor := self.cursor()) is not None and self.path is not None:
            self.post_message(OutsideRequested(self.path, cursor.line + 1))

    def on_text_area_selection_changed(self) -> None:
        self.post_message(self.FocusChanged())

    def refresh_keys(self) -> None:
        """Say how a note is opened with the key that is in force."""
        opening = f"{key_label(self, 'main.open')} opens one by a few letters of its name."
        words = (
            f"No note is open.\n\n{opening}\nWhat you select in it goes along with your message."
        )
        self.query_one("#note-empty", Static).update(words)

    def _show_parts(self) -> None:
        is_open = self.path is not None
        self.query_one("#note-head").display = is_open
        self.query_one("#note-empty").display = not is_open
        self.area.display = is_open
        if self.path is not None:
            folder, _, name = self.path.rpartition("/")
            left_out = self.area.note.left_out
            rest = f"  {left_out:,} more lines are not shown" if left_out else ""
            self.query_one("#note-head", Static).update(
                Content.assemble(
                    (terminal_text.shortened(f"{folder}/" if folder else "", 200), "$quiet"),
                    (terminal_text.shortened(name, 200), "bold $foreground"),
                    (rest, "$warning"),
                )
            )


_LINE_END = re.compile("\r\n|\r|\n")
MAX_LINES = 50_000
MAX_CHARACTERS = 3_000_000
PIECE = 2_000
"""Characters of a line that are shown as one row: what is drawn anew with each key, whatever the length of the line."""
_LONGEST_CLUSTER = 32

Location = tuple[int, int]
"""Row and column on the screen, both from 0, columns in code points."""


@dataclass(frozen=True, slots=True)
class DisplayedNote:
    """The lines of a note without their ends (LF, CRLF and CR end a line, as in Obsidian's editor), and the rows that show them."""

    source: tuple[str, ...]
    shown: tuple[DisplayLine, ...]
    """A row for each line, and several for a line of more than `PIECE` characters."""
    places: tuple[tuple[int, int], ...]
    """For each row the line that it shows, and the column where it begins."""
    left_out: int = 0
    """Lines at the end that are not shown because the note is too long for a screen."""

    @classmethod
    def of(cls, text: str) -> DisplayedNote:
        """Split and make safe."""
        lines = _LINE_END.split(text[:MAX_CHARACTERS])
        rest = text[MAX_CHARACTERS:].count("\n") + max(len(lines) - MAX_LINES, 0)
        kept = tuple(lines[:MAX_LINES])
        pieces = [
            (row, start, piece) for row, line in enumerate(kept) for start, piece in _pieces(line)
        ]
        shown = tuple(terminal_text.note_line(piece) for _, _, piece in pieces)
        return cls(kept, shown, tuple((row, start) for row, start, _ in pieces), rest)

    @property
    def screen(self) -> str:
        """The text for the screen."""
        return "\n".join(line.text for line in self.shown)

    @property
    def in_pieces(self) -> bool:
        """Whether some line has several rows."""
        return len(self.shown) > len(self.source)

    def line_at(self, row: int) -> int:
        """The line, from 0, that a row shows."""
        return self.places[min(row, len(self.places) - 1)][0]

    def row_of(self, line: int) -> int:
        """The first row of a line, or of the last line there is."""
        return bisect_left(self.places, (min(line, len(self.source) - 1), 0))

    def rows_of_line(self, row: int) -> tuple[int, int]:
        """The first and the last row of the line that a row shows."""
        line = self.line_at(row)
        return self.row_of(line), bisect_right(self.places, (line + 1, -1)) - 1

    def position(self, location: Location) -> EditorPosition:
        """A place on the screen as a place in the note."""
        from obsidian_agent.tools.core.tool import EditorPosition

        line, column = self._source(location)
        return EditorPosition(line, utf16_length(self.source[line][:column]))

    def _source(self, location: Location) -> tuple[int, int]:
        row = min(location[0], len(self.places) - 1)
        line, start = self.places[row]
        return line, start + self.shown[row].source_column(location[1])

    def selection(self, start: Location, end: Location) -> Selection | None:
        """What lies between two places on the screen; None when that is nothing. Lines are joined with LF, as Obsidian's editor does."""
        from obsidian_agent.tools.core.tool import Selection

        first, last = sorted((start, end))
        (top, left), (bottom, right) = self._source(first), self._source(last)
        if top == bottom:
            text = self.source[top][left:right]
        else:
            text = "\n".join(
                [
                    self.source[top][left:],
                    *self.source[top + 1 : bottom],
                    self.source[bottom][:right],
                ]
            )
        return Selection(text, self.position(first), self.position(last)) if text else None


def _pieces(line: str) -> Iterator[tuple[int, str]]:
    """A line in pieces with the column of each; what is drawn as one character stays together."""
    start = 0
    while len(line) - start > PIECE:
        end = start + PIECE
        while _joined(line[end - 1], line[end]) and end > start + PIECE - _LONGEST_CLUSTER:
            end -= 1
        yield start, line[start:end]
        start = end
    yield start, line[start:]


def _joined(left: str, right: str) -> bool:
    """Whether two neighbours belong to one character on the screen: a mark, a joiner, a variant or a skin tone."""
    return (
        unicodedata.category(right)[0] == "M"
        or "\u200d" in (left, right)
        or "\U0001f3fb" <= right <= "\U0001f3ff"
    )


def utf16_length(text: str) -> int:
    """Length in UTF-16 code units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
