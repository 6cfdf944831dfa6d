from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.tools.core.ranges import shift_range

TEXT = "# T\n\n- a\n- b\n\nend"


@pytest.mark.parametrize(
    "after",
    [
        TEXT,
        "---\nx: 1\n---\n" + TEXT,
        TEXT + "\nmore\n",
        TEXT.replace("# T", "# Title"),
        TEXT.replace("\n\nend", "\n- c\n\nthe end"),
        "- a\n- b\n" + TEXT.replace("# T\n", ""),
        TEXT.replace("\n", "\r\n"),
    ],
)
def test_what_was_not_edited_is_found_again(after):
    start = TEXT.index("b")
    found = shift_range(TEXT, after, start, start + 1)
    assert found is not None
    assert after[slice(*found)] == "b"
    assert after[: found[0]].endswith("- a\n- ") or after[: found[0]].endswith("- a\r\n- ")


@pytest.mark.parametrize(
    "after", ["# T\n\n- a\n- x\n\nend", "", "other", TEXT.replace("- b\n", "")]
)
def test_what_was_edited_is_not_found(after):
    start = TEXT.index("b")
    assert shift_range(TEXT, after, start, start + 1) is None


def test_edits_beside_it_in_its_own_line():
    assert shift_range("one two three", "one two 3", 4, 7) == (4, 7)
    assert shift_range("one two three", "1 two three", 4, 7) == (2, 5)
    assert shift_range("one two three", "1 two 3", 4, 7) is None


def test_a_range_over_lines_between_which_something_was_put_is_edited():
    assert shift_range("a\nb\n", "a\nnew\nb\n", 0, 3) is None


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
    found = shift_range(before, after, place, place)
    assert found is not None
    assert f"{after[: found[0]]}|{after[found[0] :]}" == expected


def test_huge_changed_parts_are_not_compared_line_by_line():
    before = "start\n" + "\n" * 3000 + "x\n" + "\n" * 3000
    after = "begin\n" + "\n" * 3100 + "y\n" + "\n" * 2000 + "end"
    assert shift_range(before, after, 0, 5) is None


@given(st.text("ab\n", max_size=20), st.text("ab\n", max_size=20), st.data())
def test_a_range_is_found_with_its_text_or_not_at_all(before, after, data):
    start = data.draw(st.integers(0, len(before)))
    end = data.draw(st.integers(start, len(before)))
    found = shift_range(before, after, start, end)
    if found is not None:
        assert after[slice(*found)] == before[start:end]
