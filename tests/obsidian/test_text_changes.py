from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.obsidian.editing import text_changes

LINES = st.lists(
    st.sampled_from(["a\n", "b\n", "\n", "- 日本\n", "😀x\n", "😀y\n", "\u2028", "long line of words\n", "e\u0301"]), max_size=12
)


def applied(old: str, changes: list[tuple[int, int, str]]) -> str:
    """As an editor does it, in UTF-16 units."""
    units, at, parts = old.encode("utf-16-le"), 0, []
    for start, end, text in changes:
        assert at <= start <= end
        parts += [units[2 * at : 2 * start], text.encode("utf-16-le")]
        at = end
    return b"".join([*parts, units[2 * at :]]).decode("utf-16-le")


@given(LINES, LINES)
def test_the_changes_lead_from_one_text_to_the_other(old: list[str], new: list[str]) -> None:
    assert applied("".join(old), text_changes("".join(old), "".join(new))) == "".join(new)


@given(st.text(), st.text())
def test_the_changes_fit_any_texts(old: str, new: str) -> None:
    changes = text_changes(old, new)
    assert applied(old, changes) == new
    assert bool(changes) == (old != new)


def test_changes_are_cut_to_what_differs() -> None:
    old = "# 😀\n- Alpha\nsame\n- Beta\n"
    new = old.replace("Alpha", "[[Alpha]]").replace("Beta", "[[Beta]]")
    assert text_changes(old, new) == [(7, 12, "[[Alpha]]"), (20, 24, "[[Beta]]")]
    assert text_changes("a😀b", "a😁b") == [(1, 3, "😁")]


def test_a_long_note_takes_no_time() -> None:
    old = "".join(f"- [[Old name]] is linked in line {number % 7}\n" for number in range(5000))
    started = time.perf_counter()
    for new in (old.replace("Old", "New"), "first\n" + old.replace("Old", "New"), old[::-1]):
        assert applied(old, text_changes(old, new)) == new
    assert time.perf_counter() - started < 5
