from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.providers.offline.tokens import tokenise


def kinds(text):
    return [(token.kind, token.text) for token in tokenise(text)]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("move [[A b|c]] now", [("word", "move"), ("link", "A b"), ("word", "now")]),
        ("![[A#h]]", [("link", "A")]),
        ("'Bob's note'.", [("quoted", "Bob's note"), ("mark", ".")]),
        ("don't", [("word", "don't")]),
        ("“a b” „c“ «d» `e` ‘f’", [("quoted", text) for text in ("a b", "c", "d", "e", "f")]),
        ("#a/b-c #12", [("tag", "a/b-c"), ("mark", "#"), ("word", "12")]),
        ("read: true", [("word", "read"), ("mark", ":"), ("word", "true")]),
        ("A/b c.md, ../x/y.md", [("word", "A/b"), ("word", "c.md"), ("mark", ","), ("word", "../x/y.md")]),
        (".obsidian/app.json", [("word", ".obsidian/app.json")]),
        ("ada@example.org to-do", [("word", "ada@example.org"), ("word", "to-do")]),
        ("https://x.org/a.", [("word", "https://x.org/a"), ("mark", ".")]),
        ("Ünï 日本", [("word", "Ünï"), ("word", "日本")]),
        ("", []),
    ],
)
def test_tokens(text, tokens):
    assert kinds(text) == tokens


def test_names_in_quotes_have_no_stem():
    assert [token.stem for token in tokenise("Rename 'rename' notes")] == ["rename", "", "note"]


@given(st.text(max_size=80))
def test_tokens_stand_in_the_text_in_order(text):
    tokens = tokenise(text)
    ends = [0, *(token.end for token in tokens)]
    for before, token in zip(ends, tokens, strict=False):
        assert before <= token.start < token.end <= len(text)
