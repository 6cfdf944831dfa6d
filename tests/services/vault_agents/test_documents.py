"""Configuration files: what is read, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from obsidian_agent.services.vault_agents.documents import (
    MAX_DEPTH,
    MAX_NODES,
    MAX_TEXT,
    BadJson,
    read_jsonc,
)


def test_comments_and_trailing_commas_are_read() -> None:
    data = b'\xef\xbb\xbf{ // one\n "a": [1, 2,], /* two\n */ "url": "https://x//y", }\n// end\n/* end */\n'
    assert read_jsonc(data) == {"a": [1, 2], "url": "https://x//y"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not JSON"),
        ('{"a": 1', "not JSON"),
        ('{"a": 1} {"b": 2}', "has text after its end"),
        ('{"a": 1} 0', "has text after its end"),
        ("{'a': 1}", "not JSON"),
        ('{"a": True}', "not JSON"),
        ('{"a": 1, "a": 2}', "twice"),
        ('{"a": NaN}', "not JSON"),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "deep"),
        ("[" * 100_000, "not JSON"),
        (json.dumps([0] * MAX_NODES), "values"),
        (json.dumps("x" * (MAX_TEXT + 1)), "characters"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_is_refused(text: str, reason: str) -> None:
    with pytest.raises(BadJson, match=reason):
        read_jsonc(text.encode())


@pytest.mark.parametrize(
    "document",
    [0, "x" * MAX_TEXT, [0] * (MAX_NODES - 1), json.loads("[" * MAX_DEPTH + "]" * MAX_DEPTH)],
    ids=[*"abcd"],
)
def test_the_limits_themselves_are_allowed(document: Any) -> None:
    assert read_jsonc(json.dumps(document).encode()) == document


def test_what_is_not_text_is_refused() -> None:
    with pytest.raises(BadJson, match="UTF-8"):
        read_jsonc(b'{"a": "\xff"}')
