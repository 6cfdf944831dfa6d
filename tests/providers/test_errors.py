from __future__ import annotations

import ssl
from datetime import UTC, datetime

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.providers import errors
from obsidian_agent.providers.errors import (
    Service,
    from_error_event,
    from_exception,
    from_status,
    redact,
    retry_after,
)

KEY = "sk-abcdefghijklmnop"
SERVICE = Service(
    name="Acme",
    model="acme-1",
    address="https://acme.example",
    key_hint="Set ACME_KEY.",
    secrets=(KEY,),
)
LOCAL = Service(name="Ollama", model="qwen", address="http://localhost:11434", local=True)


@pytest.mark.parametrize(
    ("status", "body", "code", "retryable"),
    [
        (400, '{"error": {"message": "bad"}}', "API_BAD_REQUEST", False),
        (
            400,
            '{"error": {"message": "x", "code": "context_length_exceeded"}}',
            "CONTEXT_TOO_LONG",
            False,
        ),
        (
            400,
            '[{"error": {"code": 400, "message": "API key not valid. Please pass a valid API key."}}]',
            "API_KEY_INVALID",
            False,
        ),
        (400, '{"error": {"message": "Your credit balance is too low"}}', "API_QUOTA", False),
        (
            400,
            '{"error": {"message": "blocked", "code": "content_policy_violation"}}',
            "API_CONTENT_BLOCKED",
            False,
        ),
        (401, "", "API_KEY_INVALID", False),
        (402, "", "API_QUOTA", False),
        (403, "", "API_FORBIDDEN", False),
        (
            404,
            '{"error": "model \\"qwen\\" not found, try pulling it first"}',
            "API_MODEL_NOT_FOUND",
            False,
        ),
        (408, "", "API_TIMEOUT", True),
        (413, "", "CONTEXT_TOO_LONG", False),
        (422, '{"detail": "wrong"}', "API_BAD_REQUEST", False),
        (429, "", "API_RATE_LIMIT", True),
        (
            429,
            "context window exceeded? no: rate limit on input tokens, context length 10",
            "API_RATE_LIMIT",
            True,
        ),
        (429, '{"error": {"message": "quota", "code": "insufficient_quota"}}', "API_QUOTA", False),
        (500, "", "API_SERVER", True),
        (502, "<html><body>Bad Gateway</body></html>", "API_SERVER", True),
        (503, "", "API_SERVER", True),
        (504, "", "API_TIMEOUT", True),
        (529, "", "API_SERVER", True),
        (301, "", "API_BAD_RESPONSE", False),
    ],
)
def test_status(status: int, body: str, code: str, retryable: bool) -> None:
    error = from_status(SERVICE, status, {}, body)
    assert (error.code, error.retryable) == (code, retryable)
    assert error.message.startswith("Acme ")


@pytest.mark.parametrize(
    ("cause", "code", "retryable"),
    [
        (httpx.ReadTimeout("t"), "API_TIMEOUT", True),
        (TimeoutError(), "API_TIMEOUT", True),
        (httpx.ConnectError("All connection attempts failed"), "API_NETWORK", True),
        (ConnectionRefusedError(111, "refused"), "API_NETWORK", True),
        (httpx.ReadError("gone"), "API_STREAM_CUT", True),
        (
            httpx.RemoteProtocolError(
                "peer closed connection without sending complete message body"
            ),
            "API_STREAM_CUT",
            True,
        ),
        (ssl.SSLCertVerificationError("CERTIFICATE_VERIFY_FAILED"), "API_NETWORK", False),
        (ValueError("what?"), "API_BAD_RESPONSE", False),
    ],
)
def test_exception(cause: Exception, code: str, retryable: bool) -> None:
    error = from_exception(SERVICE, cause)
    assert (error.code, error.retryable) == (code, retryable)


def test_a_cause_below_other_exceptions_is_found() -> None:
    wrapped = RuntimeError("InternalServerError: Connection error.")
    wrapped.__cause__ = httpx.ConnectError("refused")
    assert from_exception(SERVICE, wrapped).code == "API_NETWORK"


def test_a_local_service_that_is_not_there_is_asked_after() -> None:
    problem = from_exception(LOCAL, httpx.ConnectError("refused")).problem()
    assert (
        problem.message
        == "Ollama cannot be reached at http://localhost:11434: refused. Is it running?"
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("litellm.InternalServerError: AnthropicException - Overloaded", "API_SERVER"),
        ("Rate limit reached for tokens", "API_RATE_LIMIT"),
        ("Expecting value: line 1", "API_BAD_RESPONSE"),
        ("prompt is too long", "CONTEXT_TOO_LONG"),
    ],
)
def test_error_event(text: str, code: str) -> None:
    error = from_error_event(SERVICE, RuntimeError(text))
    assert error.code == code
    assert "litellm" not in error.message
    assert "Exception" not in error.message


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "Sat, 14 Mar 2026 09:30:20 GMT"}, 20.0),
        ({"retry-after": "Sat, 14 Mar 2026 09:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after-ms": "x"}, None),
        ({"retry-after-ms": "nan"}, None),
        ({"retry-after": ""}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, datetime(2026, 3, 14, 9, 30, tzinfo=UTC)) == seconds


def test_control_characters_of_a_service_do_not_reach_a_message() -> None:
    error = from_status(
        SERVICE, 400, {}, '{"error": {"message": "a\\u001b]0;x\\u0007b\\n\\u202ec"}}'
    )
    assert error.message.isprintable()


@given(
    st.integers(min_value=300, max_value=599),
    st.text(max_size=400) | st.binary(max_size=400).map(lambda raw: raw.decode("latin-1")),
)
def test_any_answer_gives_one_short_clean_line(status: int, body: str) -> None:
    error = from_status(SERVICE, status, {}, f"{body} {KEY} {body}")
    assert KEY not in str(error.problem())
    assert len(error.message) < errors.MAX_DETAIL + 200
    assert "\n" not in error.message


def test_nested_bodies_are_read_without_trouble() -> None:
    assert from_status(SERVICE, 500, {}, "[" * 100_000).code == "API_SERVER"
    assert from_status(SERVICE, 500, {}, b"\xff\xfe\x00").code == "API_SERVER"


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


@given(
    st.text(),
    st.text(alphabet="abcdefghijklmnopqrstuvwxyz0123456789-_", min_size=8, max_size=60),
    st.text(),
)
def test_a_known_secret_never_survives(before: str, secret: str, after: str) -> None:
    assert secret not in redact(f"{before}{secret}{after}", (secret,)).replace("[key]", " ")
