"""The note pane, in which text is selected for the next message.

`DisplayedNote` maps the rows on the screen to positions in the note as Obsidian counts them.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct
from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static, TextArea
from textual.widgets.text_area import Selection as Marked

from obsidian_agent import terminal_text
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

_LINE_END = re.compile("\r\n|\r|\n")
MAX_LINES = 50_000
MAX_CHARACTERS = 3_000_000
MAX_ROW = 2_000
"""Characters of a line that one row displays at most, as each key renders a whole row."""

_LONGEST_CLUSTER = 32

Location = tuple[int, int]
"""A 0-based row and column on the screen, the column in code points."""


class NoteRequested(Message):
    """A note is requested in the note pane."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path


class OutsideRequested(Message):
    """A note is requested in Obsidian, at a 1-based line if it is known."""

    def __init__(self, path: str, line: int | None = None) -> None:
        super().__init__()
        self.path = path
        self.line = line


class NoteArea(TextArea):
    """The text of a note, read-only and with light highlighting."""

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
        """The note is requested in Obsidian."""

    class Left(Message):
        """The user leaves the note for the message box."""

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
        """Show a note from its top.

        A note with lines in several rows has no line numbers, which would count rows.
        """
        lines = [line.text.rstrip() for line in note.display_lines[:401]]
        closing = lines.index("---", 1) if lines[0] == "---" and "---" in lines[1:] else 0
        self._frontmatter_end = closing + 1 if closing else 0
        self.note = note
        self.show_line_numbers = not note.has_split_lines
        self.load_text(note.display_text)

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
        """Select the line, or extend a selection of whole lines by one."""
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
    """The pane with a note below its path."""

    DEFAULT_CSS = """
    NotePane { background: $surface; }
    NotePane #note-head {
        height: 1; padding: 0 2; color: $quiet; background: $surface; margin: 1 0;
    }
    NotePane #note-empty { height: 1fr; padding: 1 2; color: $quiet; }
    NotePane NoteArea { height: 1fr; }
    """

    class FocusChanged(Message):
        """The note, the selection or the cursor has changed."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.path: str | None = None

    def compose(self) -> ComposeResult:
        yield Static("", id="note-head", markup=False)
        yield Static("", id="note-empty", markup=False)

    def on_mount(self) -> None:
        self.refresh_keys()

    async def complete(self) -> None:
        """Add the text area, which is hidden until a note is open."""
        await self.mount(NoteArea())
        self._show_parts()

    @property
    def area(self) -> NoteArea:
        return self.query_one(NoteArea)

    def open(self, path: str, text: str, line: int | None = None) -> None:
        """Show a note with the cursor in a 1-based line.

        Without a line, the cursor stays in its line if the note is already open.
        """
        index = 0
        if line is not None:
            index = line - 1
        elif path == self.path:
            index = self.area.note.line_at(self.area.cursor_location[0])
        self.path = path
        note = DisplayedNote.of(text)
        self.area.load(note)
        self.area.move_cursor((note.row_of(max(0, index)), 0), center=line is not None)
        self._show_parts()
        self.post_message(self.FocusChanged())

    def close(self) -> None:
        """Close the note."""
        self.path = None
        self.area.load(DisplayedNote.of(""))
        self._show_parts()
        self.post_message(self.FocusChanged())

    def selection(self) -> Selection | None:
        """Return the selected text with its position in the note, or None."""
        if self.path is None:
            return None
        return self.area.note.selection(*self.area.selection)

    def selected_lines(self) -> int:
        """Return the number of lines that are selected completely or partly."""
        start, end = sorted(self.area.selection)
        if start == end:
            return 0
        first, last = self.area.note.line_at(start[0]), self.area.note.line_at(end[0])
        ends_at_line_start = end == (self.area.note.row_of(last), 0)
        return max(1, last - first + (not ends_at_line_start))

    def cursor(self) -> EditorPosition | None:
        """Return the position of the cursor in the note, or None."""
        if self.path is None:
            return None
        return self.area.note.position(self.area.cursor_location)

    def on_note_area_outside(self) -> None:
        if (cursor := self.cursor()) is not None and self.path is not None:
            self.post_message(OutsideRequested(self.path, cursor.line + 1))

    def on_text_area_selection_changed(self) -> None:
        self.post_message(self.FocusChanged())

    def refresh_keys(self) -> None:
        """Update the text after a change of keys."""
        key = key_label(self, "main.open")
        text = (
            f"No note is open.\n\n{key} opens a note by part of its name.\n"
            "Text that you select in it is sent with your message."
        )
        self.query_one("#note-empty", Static).update(text)

    def _show_parts(self) -> None:
        is_open = self.path is not None
        self.query_one("#note-head").display = is_open
        self.query_one("#note-empty").display = not is_open
        self.area.display = is_open
        if self.path is not None:
            folder, _, name = self.path.rpartition("/")
            omitted = self.area.note.omitted_lines
            rest = f"  {omitted:,} more lines are not displayed" if omitted else ""
            self.query_one("#note-head", Static).update(
                Content.assemble(
                    (terminal_text.shortened(f"{folder}/" if folder else "", 200), "$quiet"),
                    (terminal_text.shortened(name, 200), "bold $foreground"),
                    (rest, "$warning"),
                )
            )


class DisplayedNote(Struct, frozen=True):
    """The lines of a note without line ends, and the rows that display them.

    LF, CRLF and CR end a line, as in Obsidian's editor.
    """

    source: tuple[str, ...]
    display_lines: tuple[DisplayLine, ...]
    """The rows, several for a line of more than `MAX_ROW` characters."""
    origins: tuple[tuple[int, int], ...]
    """For each row its line and the column where it starts."""
    omitted_lines: int = 0
    """Lines at the end of a very long note that are not displayed."""

    @classmethod
    def of(cls, text: str) -> DisplayedNote:
        """Split a text into lines and make them safe to display."""
        lines = _LINE_END.split(text[:MAX_CHARACTERS])
        rest = text[MAX_CHARACTERS:].count("\n") + max(len(lines) - MAX_LINES, 0)
        source = tuple(lines[:MAX_LINES])
        rows = [
            (number, start, row)
            for number, line in enumerate(source)
            for start, row in _split_line(line)
        ]
        return cls(
            source,
            display_lines=tuple(terminal_text.note_line(row) for _, _, row in rows),
            origins=tuple((number, start) for number, start, _ in rows),
            omitted_lines=rest,
        )

    @property
    def display_text(self) -> str:
        """The rows as one text."""
        return "\n".join(line.text for line in self.display_lines)

    @property
    def has_split_lines(self) -> bool:
        """True if a line has several rows."""
        return len(self.display_lines) > len(self.source)

    def line_at(self, row: int) -> int:
        """Return the 0-based line that a row displays."""
        return self.origins[min(row, len(self.origins) - 1)][0]

    def row_of(self, line: int) -> int:
        """Return the first row of a line, or of the last line if there are fewer."""
        return bisect_left(self.origins, (min(line, len(self.source) - 1), 0))

    def rows_of_line(self, row: int) -> tuple[int, int]:
        """Return the first and the last row of the line that a row displays."""
        line = self.line_at(row)
        return self.row_of(line), bisect_right(self.origins, (line + 1, -1)) - 1

    def position(self, location: Location) -> EditorPosition:
        """Convert a location on the screen to a position in the note."""
        from obsidian_agent.tools.core.tool import EditorPosition

        line, column = self._source_location(location)
        return EditorPosition(line, utf16_length(self.source[line][:column]))

    def _source_location(self, location: Location) -> tuple[int, int]:
        row = min(location[0], len(self.origins) - 1)
        line, start = self.origins[row]
        return line, start + self.display_lines[row].source_column(location[1])

    def selection(self, start: Location, end: Location) -> Selection | None:
        """Return the text between two locations on the screen, or None if it is empty.

        Lines are joined with LF, as by Obsidian's editor.
        """
        from obsidian_agent.tools.core.tool import Selection

        first, last = sorted((start, end))
        (top, left), (bottom, right) = self._source_location(first), self._source_location(last)
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
        if not text:
            return None
        return Selection(text, self.position(first), self.position(last))


def _split_line(line: str) -> Iterator[tuple[int, str]]:
    """Yield the rows of a line with their start columns, without splitting a visible character."""
    start = 0
    while len(line) - start > MAX_ROW:
        end = start + MAX_ROW
        shortest = start + max(MAX_ROW - _LONGEST_CLUSTER, 1)
        while end > shortest and _joined(line[end - 1], line[end]):
            end -= 1
        yield start, line[start:end]
        start = end
    yield start, line[start:]


def _joined(left: str, right: str) -> bool:
    """Return True if two code points belong to one visible character.

    The right one is a combining mark, a variation selector or a skin tone, or one is a joiner.
    """
    return (
        unicodedata.category(right)[0] == "M"
        or "\u200d" in (left, right)
        or "\U0001f3fb" <= right <= "\U0001f3ff"
    )


def utf16_length(text: str) -> int:
    """Return the length in UTF-16 code units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
