"""The note pane: a rendered note or its source, in which text is selected for the next message.

Both views share cursor and selection, which are those of the source. `DisplayedNote` maps the rows
of the source on the screen to positions in the note as Obsidian counts them.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from rich.style import Style
from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Static, TextArea
from textual.widgets.text_area import Selection as TextSelection

from obsidian_agent import terminal_text
from obsidian_agent.terminal_text import DisplayLine
from obsidian_agent.tui.bindings import BY_ID, bindings, key_label
from obsidian_agent.tui.markdown_lines import (
    MarkdownLine,
    canvas_lines,
    markdown_lines,
    note_lines,
)
from obsidian_agent.tui.widgets.prompt import LineEntry
from obsidian_agent.tui.widgets.reading import ReadingView

if TYPE_CHECKING:
    from obsidian_agent.services.reading import LinkFacts, ReadableNote
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
MAX_RENDERED = 200_000
"""Characters of a note beyond which only its source is displayed."""
RENDERED_AT_ONCE = 8_000
"""Characters of a note up to which it is rendered on the event loop, within some 20 ms."""

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


class LinkRequested(Message):
    """A link was chosen: its target as written, and the path of the note that contains it or ""."""

    def __init__(self, target: str, source: str = "", *, is_tag: bool = False) -> None:
        super().__init__()
        self.target = target
        self.source = source
        self.is_tag = is_tag


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
    BINDINGS = [BY_ID["note.all"].binding()]  # before the key of a text area

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
        self.selection = TextSelection((first, 0), (last, len(self.document.get_line(last))))

    def action_select_whole(self) -> None:
        self.select_all()


class Visit(Struct, frozen=True):
    """A note that was read, and the line (from 1) of its cursor."""

    path: str
    line: int


class NotePane(Vertical):
    """The pane with a note below its path."""

    DEFAULT_CSS = """
    NotePane { background: $surface; }
    NotePane #note-head {
        height: 1; padding: 0 2; color: $quiet; background: $surface; margin: 1 0;
    }
    NotePane #note-empty { height: 1fr; padding: 1 2; color: $quiet; }
    NotePane NoteArea { height: 1fr; }
    NotePane #note-find { display: none; height: 1; border: none; padding: 0 2; }
    """
    BINDING_GROUP_TITLE = "Note"
    BINDINGS = bindings("note", without=("note.all",))

    class FocusChanged(Message):
        """The note, the selection or the cursor has changed."""

    class Left(Message):
        """The user leaves the note for the message box."""

    class Revisited(Message):
        """An earlier or later note is requested again."""

        def __init__(self, visit: Visit) -> None:
            super().__init__()
            self.visit = visit

    class OverviewRequested(Message):
        """The outline of the note is requested, or the notes that link to it."""

        def __init__(self, what: Literal["outline", "backlinks"], path: str) -> None:
            super().__init__()
            self.what = what
            self.path = path

    class Closed(Message):
        """The user has closed the note."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.path: str | None = None
        self.is_source = False
        """True while the source is displayed."""
        self._note: ReadableNote | None = None
        self._link_facts: LinkFacts | None = None
        self._earlier: list[Visit] = []
        self._later: list[Visit] = []
        self._matches: list[int] = []
        """The 0-based lines that contain the searched text."""
        self._width = 0

    def compose(self) -> ComposeResult:
        yield Static("", id="note-head", markup=False)
        yield Static("", id="note-empty", markup=False)

    def on_mount(self) -> None:
        self.refresh_keys()

    async def complete(self) -> None:
        """Add the views, which are hidden until a note is open."""
        await self.mount(
            ReadingView(), NoteArea(), LineEntry(placeholder="Find in this note", id="note-find")
        )
        self._show_parts()

    @property
    def area(self) -> NoteArea:
        return self.query_one(NoteArea)

    @property
    def reading(self) -> ReadingView:
        return self.query_one(ReadingView)

    @property
    def view(self) -> Widget:
        """The displayed view, which takes the focus."""
        return self.area if self._shows_source else self.reading

    @property
    def _shows_source(self) -> bool:
        note = self._note
        is_canvas = note is not None and note.path.lower().endswith(".canvas")
        return (
            self.is_source
            or note is None
            or len(note.text) > MAX_RENDERED
            or (is_canvas and note.cards is None)
        )

    def open(
        self, note: ReadableNote, line: int | None = None, *, from_history: bool = False
    ) -> None:
        """Show a note with the cursor in a 1-based line.

        Without a line, the cursor stays in its line if the note is already open. The note that was
        open is added to the history, unless the request comes `from_history`.
        """
        index = 0
        if line is not None:
            index = line - 1
        elif note.path == self.path:
            index = self.area.note.line_at(self.area.cursor_location[0])
        if (
            not from_history
            and self.path is not None
            and (note.path != self.path or line is not None)
        ):
            self._earlier.append(self._here())
            self._later.clear()
        if note.path != self.path:
            self._link_facts = None
            self._set_find("")
        keeps_folds = note.path == self.path
        self.path = note.path
        self._note = note
        displayed = DisplayedNote.of(note.text)
        self.area.load(displayed)
        self._render_note(keeps_folds=keeps_folds)
        self._show_parts()
        self._go_to(max(0, index), center=line is not None)
        self.post_message(self.FocusChanged())

    def add_link_facts(self, path: str, facts: LinkFacts) -> None:
        """Show which links of the open note exist, and the notes that it embeds."""
        if path == self.path:
            self._link_facts = facts
            line = self.reading.line
            self._render_note(keeps_folds=True)
            self.reading.go_to(line)

    def _render_note(self, *, keeps_folds: bool) -> None:
        note = self._note
        self._width = self.reading.text_width
        if note is None or self._shows_source:
            self.reading.show(())
            return
        if len(note.text) > RENDERED_AT_ONCE:
            if not keeps_folds:
                self.reading.show(())
            self._render_in_thread(note, keeps_folds=keeps_folds)
            return
        try:
            lines = self._rendered_lines(note)
        except RecursionError:
            self.is_source = True
            return
        self.reading.show(lines, keeps_folds=keeps_folds)

    def _rendered_lines(self, note: ReadableNote) -> Sequence[MarkdownLine]:
        if note.cards is not None:
            return canvas_lines(note.cards, self._link_facts, self._width)
        text = "\n".join(self.area.note.source)
        return note_lines(text, note.properties, self._link_facts, self._width)

    @work(group="rendering", exclusive=True, exit_on_error=False)
    async def _render_in_thread(self, note: ReadableNote, *, keeps_folds: bool) -> None:
        """Render a long note while keys are handled, then show it at the line of the cursor."""
        try:
            lines = await asyncio.to_thread(self._rendered_lines, note)
        except RecursionError:
            self.is_source = True
            self._show_parts()
            return
        if note is self._note and not self._shows_source:
            self.reading.show(lines, keeps_folds=keeps_folds)
            line = self.area.note.line_at(self.area.cursor_location[0])
            self.reading.go_to(line, center=True)

    def on_resize(self) -> None:
        self.call_after_refresh(self._fit_tables)

    def _fit_tables(self) -> None:
        if self._note is not None and self.reading.text_width != self._width:
            line = self.reading.line
            self._render_note(keeps_folds=True)
            self.reading.go_to(line)

    def _go_to(self, line: int, *, center: bool = False) -> None:
        """Put the cursor of both views into a 0-based line of the note."""
        self.area.move_cursor((self.area.note.row_of(line), 0), center=center)
        self.reading.go_to(line, center=center)

    def _here(self) -> Visit:
        return Visit(self.path or "", self.area.note.line_at(self.area.cursor_location[0]) + 1)

    def visited(self) -> list[str]:
        """Return the paths of the notes that were opened before, the last one first."""
        visits = [visit.path for visit in reversed([*self._earlier, *self._later])]
        return [path for path in dict.fromkeys(visits) if path != self.path]

    def close(self) -> None:
        """Close the note."""
        self.path = self._note = self._link_facts = None
        self.area.load(DisplayedNote.of(""))
        self.reading.show(())
        self._set_find("")
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

    # --- keys -------------------------------------------------------------------------------------

    def on_text_area_selection_changed(self) -> None:
        start, end = sorted(self.area.selection)
        lines = range(0)
        if start != end:
            note = self.area.note
            last = note.line_at(end[0])
            lines = range(note.line_at(start[0]), last + (end != (note.row_of(last), 0)))
        self.reading.select(lines)
        self.post_message(self.FocusChanged())

    def on_reading_view_moved(self, message: ReadingView.Moved) -> None:
        self.area.move_cursor((self.area.note.row_of(message.line), 0))

    def on_reading_view_link_chosen(self, message: ReadingView.LinkChosen) -> None:
        link = message.link
        source = link.source or self.path or ""
        self.post_message(LinkRequested(link.target, source, is_tag=link.is_tag))

    def action_open_link(self) -> None:
        if not self._shows_source:
            self.reading.open_current()
            return
        row = self.area.document.get_line(self.area.cursor_location[0])
        for line in markdown_lines(row):
            for link in line.links[:1]:
                source = self.path or ""
                self.post_message(LinkRequested(link.target, source, is_tag=link.is_tag))

    def action_link(self, direction: int) -> None:
        if not self.reading.next_link(direction):
            self.screen.focus_next() if direction > 0 else self.screen.focus_previous()

    def action_extend(self, direction: int) -> None:
        """Select the line and go on to the next or previous one."""
        note, area = self.area.note, self.area
        start, end = area.selection
        if start == end:
            start = (note.rows_of_line(start[0])[0], 0)
        line = min(max(note.line_at(end[0]) + direction, 0), len(note.source) - 1)
        last = note.rows_of_line(note.row_of(line))[1]
        end = (last, len(area.document.get_line(last))) if direction > 0 else (note.row_of(line), 0)
        area.selection = TextSelection(start, end)
        self.reading.go_to(line)

    def action_select_line(self) -> None:
        self.area.action_select_line()
        self.reading.go_to(self.area.note.line_at(self.area.selection.end[0]))

    def action_select_whole(self) -> None:
        self.area.action_select_whole()

    def action_outside(self) -> None:
        if (cursor := self.cursor()) is not None and self.path is not None:
            self.post_message(OutsideRequested(self.path, cursor.line + 1))

    def action_leave(self) -> None:
        if self.query_one("#note-find").display:
            self._set_find("")
            self.view.focus()
        else:
            self.post_message(self.Left())

    def action_source(self) -> None:
        """Switch between the rendered note and its source."""
        line = self.area.note.line_at(self.area.cursor_location[0])
        self.is_source = not self.is_source
        self._render_note(keeps_folds=True)
        self._show_parts()
        self._go_to(line, center=True)
        self.view.focus()

    def action_back(self) -> None:
        self._travel(self._earlier, self._later)

    def action_forward(self) -> None:
        self._travel(self._later, self._earlier)

    def _travel(self, to: list[Visit], back: list[Visit]) -> None:
        if to:
            if self.path is not None:
                back.append(self._here())
            self.post_message(self.Revisited(to.pop()))

    def action_overview(self, what: Literal["outline", "backlinks"]) -> None:
        if self.path is not None:
            self.post_message(self.OverviewRequested(what, self.path))

    def action_close_note(self) -> None:
        if self.path is not None:
            self._earlier.append(self._here())
        self.close()
        self.post_message(self.Closed())

    # --- find -------------------------------------------------------------------------------------

    def action_find(self) -> None:
        if self.path is not None:
            entry = self.query_one("#note-find", LineEntry)
            entry.display = True
            entry.focus()

    def _set_find(self, text: str) -> None:
        entry = self.query_one("#note-find", LineEntry)
        entry.value = text
        entry.display = bool(text)
        self._find(text)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._find(event.value)
        here = self.area.note.line_at(self.area.cursor_location[0])
        self._go_to_match(here, 1)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.view.focus()

    def _find(self, text: str) -> None:
        query = text.casefold()
        source = self.area.note.source if query else ()
        self._matches = [number for number, line in enumerate(source) if query in line.casefold()]
        self.reading.find(text)
        self._show_head()

    def action_find_again(self, direction: int) -> None:
        here = self.area.note.line_at(self.area.cursor_location[0])
        self._go_to_match(here + direction, direction)

    def _go_to_match(self, start: int, direction: int) -> None:
        """Go to the first line with a match from `start` on, or around the end of the note."""
        if not self._matches:
            return
        if direction > 0:
            later = [line for line in self._matches if line >= start]
            line = later[0] if later else self._matches[0]
        else:
            earlier = [line for line in self._matches if line <= start]
            line = earlier[-1] if earlier else self._matches[-1]
        self._go_to(line, center=True)
        self._show_head()

    # --- parts ------------------------------------------------------------------------------------

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
        self.area.display = is_open and self._shows_source
        self.reading.display = is_open and not self._shows_source
        self._show_head()

    def _show_head(self) -> None:
        if self.path is None:
            return
        folder, _, name = self.path.rpartition("/")
        remarks: list[tuple[str, str]] = []
        if omitted := self.area.note.omitted_lines:
            remarks.append((f"  {omitted:,} more lines are not displayed", "$warning"))
        if self._shows_source:
            remarks.append(("  source", "$quiet"))
        if self.query_one("#note-find", LineEntry).value:
            remarks.append((f"  {self._match_count()}", "$warning"))
        self.query_one("#note-head", Static).update(
            Content.assemble(
                (terminal_text.shortened(f"{folder}/" if folder else "", 200), "$quiet"),
                (terminal_text.shortened(name, 200), "bold $foreground"),
                *remarks,
            )
        )

    def _match_count(self) -> str:
        here = self.area.note.line_at(self.area.cursor_location[0])
        if not self._matches:
            return "no match"
        if here in self._matches:
            return f"line {self._matches.index(here) + 1:,} of {len(self._matches):,} with a match"
        return f"{terminal_text.counted(len(self._matches), 'line')} with a match"


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
