from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.providers.errors import redact


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer abcdefghij0123",
        "key sk-proj-abcdefgh12345678",
        "sk-ant-api03-abcdefgh12345678",
        "echo sk-abc1234*****************wxyz.",
        "GET /v1?key=abcdefghij0123&x=1",
        "{'x-api-key': 'abcdefghij0123'}",
        "AIzaSyabcdefghij0123abcdefghij0123",
        "https://me:abcdefghij0123@host/",
    ],
)
def test_what_looks_like_a_key_goes(text: str) -> None:
    assert "abcdefgh" not in redact(text)
    assert "wxyz" not in redact(text)
    assert "[key]" in redact(text)


def test_other_text_stays() -> None:
    text = "The task-list-of-things is at https://host/a?b=c; ask-me-anything-today"
    assert redact(text, ("", "abc")) == text


@given(st.text(), st.text(alphabet="abcdefghijklmnopqrstuvwxyz0123456789-_", min_size=8, max_size=60), st.text())
def test_a_known_secret_never_survives(before: str, secret: str, after: str) -> None:
    assert secret not in redact(f"{before}{secret}{after}", (secret,)).replace("[key]", " ")
