from __future__ import annotations

import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.vault.index.text_search import (
    ASCII_FOLDING,
    exact_needle,
    folded_needle,
    folds_to_ascii,
    lines_with,
    required_text,
)


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


PIECES = st.sampled_from(
    [
        "ab",
        "S",
        "\u00df",
        "k",
        "\\w",
        "(ab|cd)",
        "(?:x)?",
        "y+",
        "z{2,3}",
        ".",
        "[ab]",
        " ",
        "$",
        "^",
        "q*",
        "(e)+",
    ]
)
LINES = st.text(st.sampled_from("abcdSsk\u212a\u00df\u1e9e\u017fxyyzze. q"), max_size=24)


@given(st.lists(PIECES, max_size=6).map("".join), LINES, st.booleans())
def test_every_matching_line_holds_what_is_required(pattern, line, ignore_case):
    needle = required_text(pattern, ignore_case=ignore_case)
    data = line.encode()
    if needle is None or not re.search(pattern, line, re.IGNORECASE if ignore_case else 0):
        return
    assert needle.data in (data.lower() if needle.lower else data) or (
        ignore_case and folds_to_ascii(data)
    )


@given(st.text(max_size=6), st.text(max_size=6), st.text(max_size=6))
def test_every_text_that_holds_a_folded_query_holds_its_needle(query, before, behind):
    needle = folded_needle(query)
    for form in (query, query.upper(), query.lower(), query.casefold(), query.title()):
        text = before + form + behind
        if needle is None or query.casefold() not in text.casefold():
            continue
        data = text.encode()
        assert needle.data in (data.lower() if needle.lower else data) or folds_to_ascii(data)


TEXTS = st.text(st.sampled_from("aAbsS\u00df\u0130\u00e9 \r\n"), max_size=30)


@given(TEXTS, st.text(st.sampled_from("aAsS\u00df\u00e9"), min_size=1, max_size=3))
def test_lines_that_may_hold_a_text_are_all_that_do(text, query):
    every = list(lines_with(text, None))
    assert [line for _, line in every] == [
        line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")
    ][: len(every)]
    exact, folded = (
        dict(lines_with(text, exact_needle(query))),
        dict(lines_with(text, folded_needle(query))),
    )
    assert {number: line for number, line in every if query in line} == exact
    wanted = {number: line for number, line in every if query.casefold() in line.casefold()}
    assert wanted.items() <= folded.items() <= dict(every).items()


def test_the_odd_characters_are_all_there_are():
    every = (chr(code) for code in range(0x80, sys.maxunicode + 1))
    assert (
        "".join(
            each
            for each in every
            if any(map(str.isascii, each.casefold() + each.lower() + each.upper()))
        )
        == ASCII_FOLDING
    )
