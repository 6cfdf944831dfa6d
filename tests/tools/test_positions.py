from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.tools.core.tool import Position
from obsidian_agent.tools.editor import offset_of, position_of, shifted, utf16_length


@pytest.mark.parametrize(
    ("text", "line", "ch", "offset"),
    [
        ("abc", 0, 0, 0),
        ("abc", 0, 3, 3),
        ("abc", 0, 4, None),
        ("a\nb", 1, 1, 3),
        ("a\n", 1, 0, 2),
        ("a\n", 2, 0, None),
        ("a\r\nb", 0, 1, 1),
        ("a\r\nb", 0, 2, None),
        ("a\r\nb", 1, 0, 3),
        ("😀b", 0, 2, 1),
        ("😀b", 0, 1, None),
        ("é😀", 0, 3, 2),
        ("\ufeffab\nc", 0, 1, 2),
        ("\ufeffab\nc", 1, 1, 5),
        ("", 0, 0, 0),
        ("a", 0, -1, None),
        ("é", 0, -1, None),
    ],
)
def test_offset_of(text, line, ch, offset):
    assert offset_of(text, Position(line, ch)) == offset


@given(st.text("aé😀\n", max_size=30), st.data())
def test_positions_and_offsets_are_inverse(text, data):
    offset = data.draw(st.integers(0, len(text)))
    position = position_of(text, offset)
    assert offset_of(text, position) == offset


def test_utf16_length():
    assert (utf16_length("abc"), utf16_length("é"), utf16_length("a😀")) == (3, 1, 3)


NOTE = "# T\n\n- a\n- b\n\nend"


@pytest.mark.parametrize(
    "after",
    [
        NOTE,
        "---\nx: 1\n---\n" + NOTE,
        NOTE + "\nmore\n",
        NOTE.replace("# T", "# Title"),
        NOTE.replace("\n\nend", "\n- c\n\nthe end"),
        "- a\n- b\n" + NOTE.replace("# T\n", ""),
        NOTE.replace("\n", "\r\n"),
    ],
)
def test_what_was_not_edited_is_found_again(after):
    start = NOTE.index("b")
    found = shifted(NOTE, after, start, start + 1)
    assert found is not None
    assert after[slice(*found)] == "b"
    assert after[: found[0]].endswith("- a\n- ") or after[: found[0]].endswith("- a\r\n- ")


@pytest.mark.parametrize("after", ["# T\n\n- a\n- x\n\nend", "", "other", NOTE.replace("- b\n", "")])
def test_what_was_edited_is_not_found(after):
    start = NOTE.index("b")
    assert shifted(NOTE, after, start, start + 1) is None


def test_edits_beside_it_in_its_own_line():
    assert shifted("one two three", "one two 3", 4, 7) == (4, 7)
    assert shifted("one two three", "1 two three", 4, 7) == (2, 5)
    assert shifted("one two three", "1 two 3", 4, 7) is None


def test_a_range_over_lines_between_which_something_was_put_is_edited():
    assert shifted("a\nb\n", "a\nnew\nb\n", 0, 3) is None


@pytest.mark.parametrize(
    ("before", "place", "after", "expected"),
    [
        ("foo\n", 3, "foo\nbar\n", "foo|\nbar\n"),
        ("foo", 3, "foo\nbar", "foo|\nbar"),
        ("foo\n", 4, "foo\nbar\n", "foo\nbar\n|"),
        ("# T\n- b\n", 4, "# T\n- x\n- b\n", "# T\n- x\n|- b\n"),
        ("", 0, "all new", "|all new"),
        ("a b", 2, "a x b", "a |x b"),
    ],
)
def test_a_cursor_keeps_its_line(before, place, after, expected):
    found = shifted(before, after, place, place)
    assert found is not None
    assert f"{after[: found[0]]}|{after[found[0] :]}" == expected


def test_huge_changed_parts_are_not_compared_line_by_line():
    before = "start\n" + "\n" * 3000 + "x\n" + "\n" * 3000
    after = "begin\n" + "\n" * 3100 + "y\n" + "\n" * 2000 + "end"
    assert shifted(before, after, 0, 5) is None


@given(st.text("ab\n", max_size=20), st.text("ab\n", max_size=20), st.data())
def test_a_range_is_found_with_its_text_or_not_at_all(before, after, data):
    start = data.draw(st.integers(0, len(before)))
    end = data.draw(st.integers(start, len(before)))
    found = shifted(before, after, start, end)
    if found is not None:
        assert after[slice(*found)] == before[start:end]
