from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent import terminal_text

HOSTILE = [
    "safe\x1b[8mDELETE ALL\x1b[0m",
    "\x1b]52;c;Y3VybCBldmlsLnRlc3R8c2g=\x07",
    "\x1b]0;Approved\x07",
    "\x9b2J \x9d0;x\x9c \x90q\x9c",
    "\x1b[6n\x1b[c\x1b]11;?\x07",
    "\x1b[?1049l\x1b[?1000h\x1b[?2004l\x1bc",
    "yes\x08\x08\x08no ",
    "\x07" * 5000,
    "invoice\u202egpj.md",
    "a\u200bb",
    "tag\U000e0041\U000e0042",
    "lone \ud800 surrogate",
]


def dangerous(char: str) -> bool:
    """Return the characters that control a terminal or are invisible."""
    return unicodedata.category(char) in ("Cc", "Cs", "Cf", "Zl", "Zp")


texts = st.text(st.characters(), max_size=60) | st.text(
    st.sampled_from("a \t\n\r\x1b\x9b\u202e\u200d\ufe0f\u0301👨é"), max_size=40
)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_character_that_a_terminal_obeys_gets_through(text: str) -> None:
    assert not any(dangerous(char) for char in terminal_text.line(text))
    terminal_text.line(text).encode("utf-8")


@given(texts)
def test_lines_hold_nothing_dangerous(text: str) -> None:
    assert not any(
        unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in terminal_text.line(text)
    )


@given(texts)
def test_blocks_hold_nothing_dangerous_but_newlines_and_tabs(text: str) -> None:
    assert not any(
        unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") and char not in "\n\t"
        for char in terminal_text.block(text)
    )


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126)))
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert terminal_text.line(text) == text
    assert terminal_text.block(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "Zażółć gęślą jaźń",
        "日本語のメモ",
        "Ελληνικά",
        "עברית",
        "العربية",
        "👍🏽 done",
        "naïve — “quoted”",
    ],
)
def test_the_languages_of_people_stay_readable(text: str) -> None:
    assert terminal_text.line(text) == text


def test_escape_and_newline_become_symbols() -> None:
    assert terminal_text.line("a\x1bb\nc\td") == "a␛b␊c␉d"
    assert terminal_text.block("a\x1bb\r\nc\td\re") == "a␛b\nc\td␍e"


def test_hidden_characters_become_codes() -> None:
    assert terminal_text.line("a\u202eb") == "a‹U+202E›b"
    assert terminal_text.line("a\ufeffb") == "a‹U+FEFF›b"


def test_floods_are_cut_and_counted() -> None:
    assert terminal_text.line("\x07" * 5000) == "␇" * 8 + "‹4,992 more hidden›"
    stack = terminal_text.line("a" + "\u0301" * 2000)
    assert stack.startswith("a\u0301\u0301")
    assert "1,996 more marks" in stack


def test_joined_emoji_come_apart_so_that_widths_agree() -> None:
    assert terminal_text.line("👨\u200d👩\u200d👧") == "👨👩👧"
    assert terminal_text.line("⚠\ufe0f") == "⚠"
    assert terminal_text.line("🏳\ufe0f\u200d🌈") == "🏳🌈"


@pytest.mark.parametrize("joiner", ["\u200d", "\u200c", "\ufe0f", "\ufe0f\u200d"])
@pytest.mark.parametrize("before", ["日", "の", "한", "𠀀", "﷽", "ᬅ", "漢字"])
def test_a_joiner_behind_what_is_no_emoji_is_shown(before: str, joiner: str) -> None:
    for show in (terminal_text.line, terminal_text.block):
        assert show(f"{before}{joiner}.md") != show(f"{before}.md")
        assert "‹U+" in show(f"{before}{joiner}.md")


def test_a_joiner_that_joins_nothing_is_shown() -> None:
    assert terminal_text.line("🙂\u200d.md") == "🙂‹U+200D›.md"


@given(texts)
def test_columns_map_back_to_the_note(text: str) -> None:
    text = text.replace("\n", " ")
    shown = terminal_text.note_line(text)
    columns = [shown.source_column(column) for column in range(len(shown.text) + 1)]
    assert columns == sorted(columns)
    assert all(0 <= column <= len(text) for column in columns)
    assert columns[-1] == len(text) if shown.text or not text else True
    for column, char in enumerate(shown.text):
        if char in text and char.isalpha() and char.isascii() and shown.starts is None:
            assert text[columns[column]] == char


def test_columns_behind_a_hidden_character_are_exact() -> None:
    shown = terminal_text.note_line("a\u202ebc")
    assert shown.text == "a‹U+202E›bc"
    assert shown.source_column(shown.text.index("b")) == 2
    assert shown.source_column(len(shown.text)) == 4
    assert shown.display_column(2) == shown.text.index("b")


def test_long_texts_are_shortened() -> None:
    assert terminal_text.shortened("x" * 30, 10) == "x" * 10 + "…"
    assert terminal_text.folded("a\n\n\n\nb\nc\nd", 2) == "a\nb\n… 2 more lines"


def test_padding_cannot_push_the_rest_away() -> None:
    assert (
        terminal_text.folded("Create A.md" + "\n" * 400 + "DELETE everything", 3)
        == "Create A.md\nDELETE everything"
    )


@pytest.mark.parametrize(
    ("name", "mixed"),
    [
        ("Todo.md", False),
        ("\u0422odo.md", True),
        ("Тодо.md", False),
        ("αβγ notes", False),
        ("pαy", True),
        ("日本 notes", False),
    ],
)
def test_names_that_mix_alphabets_are_noticed(name: str, mixed: bool) -> None:
    assert terminal_text.mixes_scripts(name) is mixed
