from __future__ import annotations

import math
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from obsidian_agent.vault.frontmatter.yaml_scalars import (
    is_date,
    is_plain,
    resolve,
    write_scalar,
    write_text,
)

LAW = settings(deadline=None)
TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.text(
    "0123456789-+.:_exXobTZ ~nulyestrfao<>=", max_size=12
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("Null", None),
        ("nULL", "nULL"),
        ("true", True),
        ("FALSE", False),
        ("yes", "yes"),
        ("12", 12),
        ("-012", -12),
        ("0o17", 15),
        ("0x1F", 31),
        ("0b1", "0b1"),
        ("1_000", "1_000"),
        ("1.", 1.0),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1e999", "1e999"),
        (".inf", ".inf"),
        ("12:30", "12:30"),
        ("2026-01-01", "2026-01-01"),
        ("9" * 301, "9" * 301),
        ("١٢", "١٢"),
    ],
)
def test_resolve_follows_yaml_1_2(text: str, value: Any) -> None:
    assert resolve(text) == value
    assert type(resolve(text)) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        "done",
        "two words",
        "a:b",
        "a#b",
        "http://x.y/z?q=1#f",
        "it's",
        'say "x"',
        "back\\slash",
        "1.2.3",
        "2026-W05",
        "12 apples",
        "é 😀",
        "a, [b]",
    ],
)
def test_what_is_harmless_stands_plain(text: str) -> None:
    assert write_text(text) == text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("", '""'),
        ("yes", '"yes"'),
        ("12:30", '"12:30"'),
        ("a: b", '"a: b"'),
        ("a #b", '"a #b"'),
        (" a", '" a"'),
        ("a:", '"a:"'),
        ("#a 'b'", "\"#a 'b'\""),
        ('"a"', "'\"a\"'"),
        ("@\\", "'@\\'"),
        ("'\"", '"\'\\""'),
        ("a\nb\t\\", '"a\\nb\\t\\\\"'),
        ("\u2028\x85\ufeff", '"\\u2028\\x85\\ufeff"'),
    ],
)
def test_what_is_not_gets_the_quotes_that_need_least_escapes(text: str, written: str) -> None:
    assert write_text(text) == written


def test_inside_brackets_more_is_quoted() -> None:
    assert [write_text(text, flow=True) for text in ("a", "a, b", "a]", "a:b", "it's")] == [
        "a",
        '"a, b"',
        '"a]"',
        '"a:b"',
        '"it\'s"',
    ]


def test_an_asked_for_quote_is_used_where_it_can_be() -> None:
    assert write_text("a'b", quote="'") == "'a''b'"
    assert write_text("a", quote='"') == '"a"'
    assert write_text("a\n", quote="'") == '"a\\n"'


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("2026-02-28", True),
        ("2026-02-30", False),
        ("2026-02-28T10:00", True),
        ("2026-02-28T10:00:61", False),
        ("2026-2-8", False),
    ],
)
def test_dates_of_the_calendar(text: str, date: bool) -> None:
    assert is_date(text) is date
    assert (write_text(text, dates=True) == text) or not date


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, "null"),
        (True, "true"),
        (12, "12"),
        (2.5, "2.5"),
        (1e20, "1.0e+20"),
        (1e-7, "1.0e-07"),
        (1.5e300, "1.5e+300"),
    ],
)
def test_numbers_and_words(value: Any, written: str) -> None:
    assert write_scalar(value) == written


def test_no_number_that_json_does_not_know() -> None:
    with pytest.raises(ValueError, match="inf"):
        write_scalar(math.inf)


@LAW
@given(text=TEXTS, flow=st.booleans(), quote=st.sampled_from(("", "'", '"')))
def test_law_a_text_reads_back_as_itself(text: str, flow: bool, quote: Any) -> None:
    written = write_text(text, flow=flow, quote=quote)
    assert "\n" not in written
    document = f"[{written}, {written}]" if flow else f"k: {written} # c\n"
    found = yaml.load(document, yaml.SafeLoader)
    assert found == ([text, text] if flow else {"k": text})
    if is_plain(text, flow=flow):
        assert resolve(text) == text


@LAW
@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_law_a_number_reads_back_as_itself(value: float) -> None:
    written = write_scalar(value)
    assert resolve(written) == yaml.safe_load(written) == value
    assert type(resolve(written)) is type(yaml.safe_load(written)) is type(value)
