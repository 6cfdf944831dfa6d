from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.vault.search_needle import folded_needle, folds_oddly
from obsidian_agent.vault.search_pattern import required_text


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"^\s*- \[ \] .*#task", b"- [ ] "),
        (r"meeting (is|of) \w+", b"meeting "),
        (r"(abc)+d", b"abc"),
        (r"foo\b bar", b"foo bar"),
        (r"x*abc{0,2}", b"ab"),
        (r"a|b", None),
        (r"(?i)abc", None),
        (r"\w+", None),
        (r"a\nb", None),
    ],
)
def test_what_an_expression_requires(pattern, text):
    needle = required_text(pattern, ignore_case=False)
    assert (None if needle is None else needle.data) == text


PIECES = st.sampled_from(["ab", "S", "\u00df", "k", "\\w", "(ab|cd)", "(?:x)?", "y+", "z{2,3}", ".", "[ab]", " ", "$", "^", "q*", "(e)+"])
LINES = st.text(st.sampled_from("abcdSsk\u212a\u00df\u1e9e\u017fxyyzze. q"), max_size=24)


@given(st.lists(PIECES, max_size=6).map("".join), LINES, st.booleans())
def test_every_matching_line_holds_what_is_required(pattern, line, ignore_case):
    needle = required_text(pattern, ignore_case=ignore_case)
    data = line.encode()
    if needle is None or not re.search(pattern, line, re.IGNORECASE if ignore_case else 0):
        return
    assert needle.data in (data.lower() if needle.lower else data) or (ignore_case and folds_oddly(data))


@given(st.text(max_size=6), st.text(max_size=6), st.text(max_size=6))
def test_every_text_that_holds_a_folded_query_holds_its_needle(query, before, behind):
    needle = folded_needle(query)
    for form in (query, query.upper(), query.lower(), query.casefold(), query.title()):
        text = before + form + behind
        if needle is None or query.casefold() not in text.casefold():
            continue
        data = text.encode()
        assert needle.data in (data.lower() if needle.lower else data) or folds_oddly(data)
