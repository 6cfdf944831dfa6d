from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.tools.core.tool import Position
from obsidian_agent.tui.widgets.note import NoteText, utf16_length

texts = st.text(st.sampled_from("ab \t\n\r\x1b\u202e👍é"), max_size=50)


@given(texts, st.data())
def test_a_selection_is_the_text_between_its_positions(text: str, data: st.DataObject) -> None:
    note = NoteText.of(text)
    rows = st.integers(0, len(note.shown) - 1)

    def place() -> tuple[int, int]:
        row = data.draw(rows)
        return row, data.draw(st.integers(0, len(note.shown[row].text)))

    selection = note.selection(place(), place())
    if selection is None:
        return
    assert selection.start is not None
    assert selection.end is not None
    lines = re.split("\r\n|\r|\n", text)
    units = [line.encode("utf-16-le") for line in lines]
    start, end = selection.start, selection.end
    if start.line == end.line:
        expected = units[start.line][2 * start.ch : 2 * end.ch]
    else:
        newline = "\n".encode("utf-16-le")
        expected = newline.join([units[start.line][2 * start.ch :], *units[start.line + 1 : end.line], units[end.line][: 2 * end.ch]])
    assert selection.text == expected.decode("utf-16-le")


def test_columns_are_utf16_units() -> None:
    note = NoteText.of("a👍b\n")
    assert note.position((0, 2)) == Position(0, 3)
    assert utf16_length("👍") == 2


def test_backwards_selections_are_turned_around() -> None:
    note = NoteText.of("one\ntwo\n")
    assert note.selection((1, 2), (0, 1)) == note.selection((0, 1), (1, 2))


def test_the_screen_gets_safe_text_and_the_selection_real_text() -> None:
    note = NoteText.of("a\x1b[2Jb")
    assert note.screen == "a␛[2Jb"
    selection = note.selection((0, 0), (0, len(note.screen)))
    assert selection is not None
    assert selection.text == "a\x1b[2Jb"


def test_long_notes_are_cut_and_counted() -> None:
    note = NoteText.of("x\n" * 60_000)
    assert len(note.source) == 50_000
    assert note.left_out > 0
