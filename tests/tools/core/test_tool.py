from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.tools.core.tool import EditorPosition, utf16_length


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
def test_the_offset_of_a_position(text, line, ch, offset):
    assert EditorPosition(line, ch).offset_in(text) == offset


@given(st.text("aé😀\n", max_size=30), st.data())
def test_positions_and_offsets_are_inverse(text, data):
    offset = data.draw(st.integers(0, len(text)))
    assert EditorPosition.at(text, offset).offset_in(text) == offset


def test_utf16_length():
    assert (utf16_length("abc"), utf16_length("é"), utf16_length("a😀")) == (3, 1, 3)
