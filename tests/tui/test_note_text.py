from __future__ import annotations

import re
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.tools.core.tool import EditorPosition, Selection
from obsidian_agent.tui.widgets.note import MAX_ROW, DisplayedNote, utf16_length

texts = st.text(st.sampled_from("ab \t\n\r\x1b\u202e👍é\u0301"), max_size=50)


@pytest.mark.parametrize("piece", [2_000, 3])
@given(text=texts, data=st.data())
def test_a_selection_is_the_text_between_its_positions(
    text: str, data: st.DataObject, piece: int
) -> None:
    with patch("obsidian_agent.tui.widgets.note.MAX_ROW", piece):
        note = DisplayedNote.of(text)
    rows = st.integers(0, len(note.display_lines) - 1)

    def place() -> tuple[int, int]:
        row = data.draw(rows)
        return row, data.draw(st.integers(0, len(note.display_lines[row].text)))

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
        expected = newline.join(
            [
                units[start.line][2 * start.ch :],
                *units[start.line + 1 : end.line],
                units[end.line][: 2 * end.ch],
            ]
        )
    assert selection.text == expected.decode("utf-16-le")


def test_columns_are_utf16_units() -> None:
    note = DisplayedNote.of("a👍b\n")
    assert note.position((0, 2)) == EditorPosition(0, 3)
    assert utf16_length("👍") == 2


def test_backwards_selections_are_turned_around() -> None:
    note = DisplayedNote.of("one\ntwo\n")
    assert note.selection((1, 2), (0, 1)) == note.selection((0, 1), (1, 2))


def test_the_screen_gets_safe_text_and_the_selection_real_text() -> None:
    note = DisplayedNote.of("a\x1b[2Jb")
    assert note.display_text == "a␛[2Jb"
    selection = note.selection((0, 0), (0, len(note.display_text)))
    assert selection is not None
    assert selection.text == "a\x1b[2Jb"


def test_a_long_line_is_shown_in_rows_that_do_not_tear_characters_apart() -> None:
    note = DisplayedNote.of(
        "one\n" + "x" * (MAX_ROW - 1) + "e\u0301" * 2 + "👩\u200d💻" * MAX_ROW + "\nend"
    )
    assert max(len(line.text) for line in note.display_lines) <= MAX_ROW
    assert not any(
        note.source[1][start] in "\u0301\u200d💻" for line, start in note.origins if line == 1
    )
    assert [note.line_at(row) for row in (0, 1, 2, len(note.display_lines) - 1)] == [0, 1, 1, 2]
    assert (note.row_of(1), note.row_of(2), note.rows_of_line(2)) == (
        1,
        len(note.display_lines) - 1,
        (1, len(note.display_lines) - 2),
    )
    assert note.selection((1, 0), (len(note.display_lines) - 1, 0)) == Selection(
        note.source[1] + "\n", EditorPosition(1, 0), EditorPosition(2, 0)
    )


def test_a_row_of_combining_marks_alone_ends() -> None:
    line = "a" + "\u0301" * 20
    with patch("obsidian_agent.tui.widgets.note.MAX_ROW", 3):
        note = DisplayedNote.of(line)
    assert "".join(row.text for row in note.display_lines) == line


def test_long_notes_are_cut_and_counted() -> None:
    note = DisplayedNote.of("x\n" * 60_000)
    assert len(note.source) == 50_000
    assert note.omitted_lines > 0
