"""Exact where it is JSON, mended only where nothing is guessed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.plan.json_text import (
    COMMAS,
    COMMENTS,
    LITERALS,
    QUOTES,
    RAW_TEXT,
    InvalidJson,
    decode,
)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda below: st.lists(below, max_size=5) | st.dictionaries(st.text(), below, max_size=5),
    max_leaves=30,
)


@given(JSON, st.booleans(), st.sampled_from([None, 0, 2, "\t"]))
def test_json_is_read_as_json(value: Any, ascii_only: bool, indent: Any) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    decoded = decode(text)
    assert decoded.value == value
    assert json.dumps(decoded.value) == json.dumps(value)
    assert decoded.end == len(text)
    assert decoded.repairs <= {RAW_TEXT}


@given(JSON)
def test_what_python_prints_is_read_or_refused_and_never_read_differently(value: Any) -> None:
    try:
        found = decode(repr(value)).value
    except InvalidJson:
        return
    assert found == value


@pytest.mark.parametrize(
    ("text", "value", "repairs"),
    [
        ('{"a": [1, 2,], }', {"a": [1, 2]}, {COMMAS}),
        (
            '{"a": 1, // why\n"b": "http://x/#y" /* z */ # end\n}',
            {"a": 1, "b": "http://x/#y"},
            {COMMENTS},
        ),
        ("{'a': 'say \"hi\"', 'b': 'it\\'s'}", {"a": 'say "hi"', "b": "it's"}, {QUOTES}),
        ("[True, False, None]", [True, False, None], {LITERALS}),
        ('{"a": "x\n\ty"}', {"a": "x\n\ty"}, {RAW_TEXT}),
        ('"\\ud83d\\ude00 \\/ \\n"', "\U0001f600 / \n", set()),
        ("[-0, 1.0, 1e3, -2.5E-1]", [0, 1.0, 1000.0, -0.25], set()),
    ],
)
def test_mended(text: str, value: Any, repairs: set[str]) -> None:
    decoded = decode(text)
    assert decoded.value == value
    assert decoded.repairs == repairs


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"a": ', "TRUNCATED"),
        ('{"a": "x', "TRUNCATED"),
        ('{"a": 1', "TRUNCATED"),
        ("", "TRUNCATED"),
        ('{"a": 1, ...}', "INCOMPLETE"),
        ("[1, …]", "INCOMPLETE"),
        ("[1, // ... more of the same\n2]", "INCOMPLETE"),
        ('{"a": 1, "a": 2}', "DUPLICATE_KEY"),
        ('{"a": 1, "\\u0061": 2}', "DUPLICATE_KEY"),
        ("[NaN]", "NUMBER"),
        ("[-Infinity]", "NUMBER"),
        ("[1e999]", "NUMBER"),
        ("[" + "9" * 5000 + "]", "NUMBER"),
        ("[9223372036854775808]", "NUMBER"),
        ("[" * 100_000, "TOO_DEEP"),
        ('{"a":' * 100_000, "TOO_DEEP"),
        ("{a: 1}", "SYNTAX"),
        ('{"a" 1}', "SYNTAX"),
        ('{"a": 1 "b": 2}', "SYNTAX"),
        ("[1,,2]", "SYNTAX"),
        ("[,]", "SYNTAX"),
        ("{,}", "SYNTAX"),
        ("[01]", "SYNTAX"),
        ("[1.]", "SYNTAX"),
        ("[.5]", "SYNTAX"),
        ("[+1]", "SYNTAX"),
        ("[0x1F]", "SYNTAX"),
        ("[truest]", "SYNTAX"),
        ("[undefined]", "SYNTAX"),
        ('["\\x41"]', "SYNTAX"),
        ("['it's']", "SYNTAX"),
        ("['\\x41']", "SYNTAX"),
        ("{\u201ca\u201d: 1}", "SYNTAX"),
        ('{\u00a0"a": 1}', "SYNTAX"),
        ("{1: 2}", "SYNTAX"),
    ],
)
def test_refused(text: str, code: str) -> None:
    with pytest.raises(InvalidJson) as raised:
        decode(text)
    assert raised.value.code == code


@given(st.text(alphabet="{}[]\"'\\,:.…/*#\n tnN1-eau", max_size=60))
def test_any_text_is_decoded_or_refused(text: str) -> None:
    try:
        decoded = decode(text)
    except InvalidJson:
        return
    json.dumps(decoded.value, allow_nan=False)


@given(JSON, st.integers(0, 400))
def test_a_cut_object_is_never_accepted(value: Any, cut: int) -> None:
    text = json.dumps({"a": value})
    with pytest.raises(InvalidJson) as raised:
        decode(text[: min(cut, len(text) - 1)])
    assert raised.value.code in ("TRUNCATED", "SYNTAX")


@pytest.mark.parametrize("sign", [chr(code) for code in range(0x20) if chr(code) not in "\t\n\r"])
def test_raw_control_characters_in_strings_are_refused_and_written_ones_are_not(sign: str) -> None:
    for quote in "\"'":
        with pytest.raises(InvalidJson, match="raw control character") as raised:
            decode(f"{{{quote}a{quote}: {quote}red{sign}[31m{quote}}}")
        assert raised.value.code == "SYNTAX"
    assert decode(f'["\\u{ord(sign):04x}"]').value == [sign]
