from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faults import refused
from obsidian_agent.errors import VaultError
from obsidian_agent.vault.text import (
    Edit,
    apply,
    decode,
    encode,
    newline_of,
    split_lines,
    with_newlines,
)

LAW = settings(deadline=None)
TEXTS = st.text(st.sampled_from("ab\n\r\u2028\x85\x0b\ufeff\x00é😀"))


@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbfx", b"a\x00b", "é😀\r\n".encode()])
def test_decode_and_encode_keep_every_byte(data: bytes) -> None:
    assert encode(decode(data, "n.md")) == data


def test_decode_keeps_the_byte_order_mark() -> None:
    assert decode(b"\xef\xbb\xbfx", "n.md") == "\ufeffx"


@pytest.mark.parametrize(
    ("data", "offset", "byte"),
    [
        (b"caf\xe9", 3, "0xE9"),
        (b"\xff\xfex\x00", 0, "0xFF"),
        (b"ab\xed\xa0\x80", 2, "0xED"),
        (b"\xc3", 0, "0xC3"),
    ],
)
def test_decode_names_the_wrong_byte(data: bytes, offset: int, byte: str) -> None:
    with pytest.raises(VaultError, match=f"{byte} at offset {offset}") as caught:
        decode(data, "Notes/n.md")
    assert (caught.value.code, caught.value.path) == ("NOT_TEXT", "Notes/n.md")


def test_encode_refuses_half_a_surrogate_pair() -> None:
    with refused("ARGUMENT_INVALID", r"character 2 is an unpaired surrogate \(U\+D83D\)"):
        encode("ab\ud83d")


@pytest.mark.parametrize(
    ("text", "newline"),
    [
        ("", "\n"),
        ("one line", "\n"),
        ("a\nb\n", "\n"),
        ("a\r\nb\r\n", "\r\n"),
        ("a\r\nb\r\nc\n", "\r\n"),
        ("a\r\nb\nc\n", "\n"),
        ("a\r\nb\n", "\r\n"),
        ("a\nb\r\n", "\n"),
        ("\na\r\n", "\n"),
        ("old\rmac\r", "\n"),
    ],
)
def test_newline_of_is_the_dominant_one(text: str, newline: str) -> None:
    assert newline_of(text) == newline


def test_with_newlines_leaves_lone_carriage_returns() -> None:
    assert with_newlines("a\r\nb\nc\rd", "\n") == "a\nb\nc\rd"
    assert with_newlines("a\r\nb\nc\rd", "\r\n") == "a\r\nb\r\nc\rd"


def test_split_lines_knows_only_line_feeds() -> None:
    assert split_lines("a\r\nb\rc\u2028d\x0be\n\nf") == ["a\r\n", "b\rc\u2028d\x0be\n", "\n", "f"]
    assert split_lines("") == []
    assert split_lines("a\n") == ["a\n"]


@LAW
@given(TEXTS)
def test_law_lines_joined_are_the_text(text: str) -> None:
    lines = split_lines(text)
    assert "".join(lines) == text
    assert all(line.endswith("\n") for line in lines[:-1])
    assert all(line.count("\n") <= 1 and line for line in lines)


@LAW
@given(TEXTS.filter(lambda text: "\r\r" not in text), st.sampled_from(("\n", "\r\n")))
def test_law_with_newlines_changes_line_ends_alone(text: str, newline: str) -> None:
    changed = with_newlines(text, newline)
    assert [line.rstrip("\n").removesuffix("\r") for line in split_lines(changed)] == [
        line.rstrip("\n").removesuffix("\r") for line in split_lines(text)
    ]
    assert changed.count(newline) >= text.count("\n")
    assert with_newlines(changed, newline) == changed


def test_edits_are_made_at_their_places() -> None:
    assert (
        apply(b"0123456789", [Edit(5, 6, b"five"), Edit(0, 0, b"<"), Edit(9, 10, b"")])
        == b"<01234five678"
    )
    with pytest.raises(ValueError, match="overlap"):
        apply("0123", [Edit(0, 2, "x"), Edit(1, 3, "y")])
