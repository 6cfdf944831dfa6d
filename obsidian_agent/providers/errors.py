"""Failures of model services as `ProviderError`, with a code, a message, a hint, and `retryable`.

These codes are permanent: API_KEY_MISSING, API_KEY_INVALID, API_FORBIDDEN, API_QUOTA,
API_MODEL_NOT_FOUND, API_BAD_REQUEST, API_TOOLS_UNSUPPORTED, API_CONTENT_BLOCKED, CONTEXT_TOO_LONG,
API_RESPONSE_TOO_LARGE and API_BAD_RESPONSE. These may be temporary: API_RATE_LIMIT, API_NETWORK,
API_TIMEOUT, API_SERVER and API_STREAM_CUT.

The cause is taken from the best evidence: the status and body of the answer, then the failure of
the transport, then the name of the exception. Exceptions are recognised by class name, so that
neither litellm nor httpx is imported here. No message contains a secret.
"""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from msgspec import Struct

from obsidian_agent.errors import ProviderError

MASK = "[key]"
_SHORTEST = 6

_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(bearer\s+)[^\s\"']{6,}",
        r"\b()(?:sk|pk|rk|gsk|xai|hf|sess)[-_][A-Za-z0-9_*.-]{8,}",
        r"\b()AIza[A-Za-z0-9_*-]{16,}",
        r"([?&]key=)[^&\s\"']+",
        r"(x-(?:goog-)?api-key[\"']?\s*[:=]\s*[\"']?)[^\s\"']{6,}",
        r"(://)[^/\s:@]+:[^/\s@]+(?=@)",
    )
)
"""Patterns of keys; the group before a key stays in the text."""

MAX_DETAIL = 300
"""Characters of a service's own message in an error; it may answer with a whole page."""
_ANOTHER = "Try again, or another model."

_CONTEXT = re.compile(
    r"context.{0,20}(?:length|window|size)|maximum context|"
    r"prompt is too long|too many tokens|input.{0,20}too long|"
    r"exceeds? the (?:available|maximum).{0,20}(?:context|tokens)|input token count.{0,40}exceed",
    re.IGNORECASE,
)
_QUOTA = re.compile(
    r"insufficient_quota|exceeded your current quota|credit balance|billing|payment required|"
    r"out of credits",
    re.IGNORECASE,
)
_BLOCKED = re.compile(
    r"content.?(?:policy|filter|management)|safety system|responsible ai", re.IGNORECASE
)
_KEY = re.compile(
    r"api.?key.{0,20}(?:not valid|invalid|expired)|(?:invalid|incorrect).{0,12}api.?key",
    re.IGNORECASE,
)
_MODEL = re.compile(
    r"model.{0,80}(?:not found|does not exist|not supported|no longer available)|try pulling it",
    re.IGNORECASE,
)
_TOOLS = re.compile(
    r"does(?: not|n't) (?:currently )?support (?:the use of )?(?:tools?|function)\b|"
    r"endpoints? found that support tool|"
    r"(?:tools?|tool[ _-](?:use|calls?|calling|choice)|functions?|function[ _-]call(?:s|ing)?)"
    r"\W{0,2} "
    r"(?:is|are) (?:not|un)[ -]?(?:currently )?(?:supported|available|enabled)|"
    r"enable-auto-tool-choice",
    re.IGNORECASE,
)
_OVERLOADED = re.compile(
    r"overloaded|server_error|internal server error|had an error while processing|unavailable",
    re.IGNORECASE,
)
_RATE = re.compile(r"rate.?limit|too many requests", re.IGNORECASE)
_SECONDS = re.compile(r"\s*\d{1,9}(?:\.\d{1,9})?\s*")
_TAG = re.compile(r"<(?:style|script)\b.*?</(?:style|script)>|<[^>]*>", re.IGNORECASE | re.DOTALL)
_UNPRINTABLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]+"
)


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Mask secrets and texts that look like keys: services echo keys, sometimes partly masked."""
    for secret in secrets:
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, MASK)
    for pattern in _PATTERNS:
        text = pattern.sub(rf"\g<1>{MASK}", text)
    return text


class Service(Struct, frozen=True, kw_only=True):
    """A model service, for messages, in which `secrets` never appear."""

    name: str
    model: str
    address: str = ""
    key_hint: str = ""
    local: bool = False
    secrets: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Service(name={self.name!r}, model={self.model!r}, address={self.address!r})"


def from_status(
    service: Service, status: int, headers: Mapping[str, str], body: str | bytes
) -> ProviderError:
    """Return the error for an answer with an error status. Header names are in lower case."""
    detail = _detail(body, service.secrets)
    if 300 <= status < 400:
        return _error(
            service,
            "API_BAD_RESPONSE",
            f"answers with a redirect ({status}), which is not followed",
            "",
            "Check the base URL.",
        )
    named = _named_by_text(service, detail)
    if (
        named is not None
        and 400 <= status < 500
        and not (status == 429 and named.code != "API_QUOTA")
    ):
        return named
    error = _status_error(service, status, detail, retry_after(headers))
    if error.retryable:
        error.retry_after = retry_after(headers)
    return error


def _status_error(service: Service, status: int, detail: str, wait: float | None) -> ProviderError:
    match status:
        case 401:
            return _error(
                service, "API_KEY_INVALID", "refused the API key (401)", detail, service.key_hint
            )
        case 402:
            return _error(
                service,
                "API_QUOTA",
                "requires payment (402)",
                detail,
                "Check the account's credit.",
            )
        case 403:
            return _error(
                service,
                "API_FORBIDDEN",
                "does not allow this (403)",
                detail,
                "Check key and model.",
            )
        case 404:
            return _error(
                service,
                "API_MODEL_NOT_FOUND",
                f"does not know {service.model} (404)",
                detail,
                "Check model and base URL.",
            )
        case 408 | 504:
            return _error(
                service,
                "API_TIMEOUT",
                f"timed out ({status})",
                detail,
                retryable=True,
            )
        case 413:
            return _error(
                service,
                "CONTEXT_TOO_LONG",
                "finds the request too large (413)",
                detail,
                "Ask with a smaller selection.",
            )
        case 429:
            return _error(
                service,
                "API_RATE_LIMIT",
                "receives too many requests (429)",
                detail,
                _wait_hint(wait),
                retryable=True,
            )
        case _ if status >= 500:
            return _error(
                service,
                "API_SERVER",
                f"failed ({status})",
                detail,
                "Try again later.",
                retryable=True,
            )
        case _:
            return _error(service, "API_BAD_REQUEST", f"refused the request ({status})", detail)


def from_exception(service: Service, error: BaseException) -> ProviderError:
    """Return the error for a failure of the transport or of a client library."""
    names = {cls.__name__ for cause in _causes(error) for cls in type(cause).__mro__}
    text = _clean(" ".join(str(cause) for cause in _causes(error)), service.secrets)
    if names & {"TimeoutException", "Timeout", "TimeoutError", "APITimeoutError"}:
        return _error(
            service,
            "API_TIMEOUT",
            "sent nothing for too long",
            "",
            "Try again, or raise the timeout.",
            retryable=True,
        )
    if "ResponseTooLarge" in names:
        return too_large(service)
    if "NotAModelService" in names:
        return _error(
            service,
            "API_BAD_RESPONSE",
            "does not answer like a model service",
            text,
            "Check the base URL.",
        )
    if (
        any(isinstance(cause, ssl.SSLError) for cause in _causes(error))
        or "CERTIFICATE_VERIFY_FAILED" in text
    ):
        return _error(
            service,
            "API_NETWORK",
            "cannot be reached safely (TLS)",
            text,
            "Check the base URL and the machine's certificates.",
        )
    if names & {"ConnectError", "ConnectionFailed", "ConnectionRefusedError", "gaierror"}:
        detail = _clean(str(list(_causes(error))[-1]), service.secrets)
        where = f" at {service.address}" if service.address else ""
        hint = "Is it running?" if service.local else "Check the network and the base URL."
        return _error(
            service, "API_NETWORK", f"cannot be reached{where}", detail, hint, retryable=True
        )
    if names & {"NetworkError", "ProtocolError", "TransportError", "OSError"}:
        return stream_cut(service, _last_text(error, service))
    named = _named_by_text(service, text)
    if named is not None:
        return named
    status = next(
        (
            code
            for cause in _causes(error)
            if isinstance(code := getattr(cause, "status_code", None), int)
        ),
        None,
    )
    if status is not None and status != 500 and status >= 400:
        return from_status(service, status, {}, text)
    return _error(
        service,
        "API_BAD_RESPONSE",
        "sent an answer that cannot be read",
        _last_text(error, service),
        _ANOTHER,
    )


def from_error_event(service: Service, error: BaseException) -> ProviderError:
    """Return the error for an error event in a stream, or for an unreadable stream."""
    text = _last_text(error, service)
    named = _named_by_text(service, text)
    if named is not None:
        return named
    if _RATE.search(text):
        return _error(service, "API_RATE_LIMIT", "receives too many requests", text, retryable=True)
    if _OVERLOADED.search(text):
        return _error(
            service, "API_SERVER", "failed in mid-answer", text, "Try again later.", retryable=True
        )
    return _error(service, "API_BAD_RESPONSE", "sent an answer that cannot be read", text, _ANOTHER)


def key_missing(service: Service) -> ProviderError:
    """Return the error for a missing key."""
    return _error(
        service, "API_KEY_MISSING", "needs an API key, and none is set", "", service.key_hint
    )


def hung_up(service: Service, detail: str = "") -> ProviderError:
    """Return the error for a connection that was closed before the answer."""
    return _error(
        service,
        "API_NETWORK",
        "closed the connection without an answer",
        detail,
        "Try again.",
        retryable=True,
    )


def stream_empty(service: Service) -> ProviderError:
    """Return the error for a stream that ended before the answer."""
    return _error(
        service,
        "API_STREAM_CUT",
        "ended its stream without an answer",
        "",
        "Try again.",
        retryable=True,
    )


def stream_cut(service: Service, detail: str = "") -> ProviderError:
    """Return the error for a stream that ended in the middle of the answer."""
    return _error(
        service,
        "API_STREAM_CUT",
        "broke off in mid-answer",
        detail,
        "The answer is incomplete. Try again.",
        retryable=True,
    )


def too_large(service: Service) -> ProviderError:
    """Return the error for an answer that exceeds the size limits."""
    return _error(
        service,
        "API_RESPONSE_TOO_LARGE",
        "sent an answer that is far too large for a plan",
        "",
        "Ask for less at a time.",
    )


def content_blocked(service: Service) -> ProviderError:
    """Return the error for an answer that the service's own filter stopped."""
    return _error(
        service,
        "API_CONTENT_BLOCKED",
        "stopped the answer by its content filter",
        "",
        "Rephrase the request.",
    )


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return the seconds of `retry-after-ms` or `retry-after`, or None if absent or unreadable.

    `retry-after` has seconds or a date (RFC 9110, 10.2.3).
    """
    milliseconds, seconds = headers.get("retry-after-ms"), headers.get("retry-after")
    if milliseconds is not None and _SECONDS.fullmatch(milliseconds):
        return float(milliseconds) / 1000
    if seconds is None:
        return None
    if _SECONDS.fullmatch(seconds):
        return float(seconds)
    try:
        when = parsedate_to_datetime(seconds)
        when = when if when.tzinfo else when.replace(tzinfo=UTC)
        return max(0.0, (when - (now or datetime.now(UTC))).total_seconds())
    except ValueError:
        return None


def _named_by_text(service: Service, text: str) -> ProviderError | None:
    """Return the error that a message names: many causes share a status. None if it is unknown."""
    if _CONTEXT.search(text):
        hint = (
            "Ask with a smaller selection or a shorter conversation, or choose a model with a "
            "larger context."
        )
        return _error(
            service, "CONTEXT_TOO_LONG", "finds the request too long for the model", text, hint
        )
    if _QUOTA.search(text):
        return _error(
            service,
            "API_QUOTA",
            "reports that the account's quota is used up",
            text,
            "Check plan and billing of the account.",
        )
    if _KEY.search(text):
        return _error(service, "API_KEY_INVALID", "refused the API key", text, service.key_hint)
    if _BLOCKED.search(text):
        return content_blocked(service)
    if _TOOLS.search(text):
        return _error(
            service,
            "API_TOOLS_UNSUPPORTED",
            f"offers no tool calling for {service.model}",
            text,
            "Choose another model.",
        )
    if _MODEL.search(text):
        return _error(
            service,
            "API_MODEL_NOT_FOUND",
            f"does not know the model {service.model}",
            text,
            "Check the model's name.",
        )
    return None


def _error(
    service: Service,
    code: str,
    event: str,
    detail: str,
    hint: str = "",
    *,
    retryable: bool = False,
) -> ProviderError:
    message = f"{service.name} {event}" + (f": {detail}" if detail else "")
    if not message.endswith((".", "!", "?")):
        message += "."
    message = redact(message, service.secrets)
    return ProviderError(message, code=code, hint=hint or None, retryable=retryable)


def _wait_hint(wait: float | None) -> str:
    return f"Wait {wait:.0f} s, as the service asks." if wait else "Wait a little."


def _detail(body: str | bytes, secrets: Iterable[str]) -> str:
    """Return the message in an error body, which may be JSON or a page with tags."""
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
    try:
        message = _message_of(json.loads(text))
    except (ValueError, RecursionError):
        message = _TAG.sub(" ", text)
    return _clean(message, secrets)


def _message_of(document: object) -> str:
    match document:
        case {"error": {"message": str(message), **rest}}:
            code = rest.get("code") or rest.get("type")
            return (
                f"{message} ({code})" if isinstance(code, str) and code not in message else message
            )
        case {"error": str(message)} | {"message": str(message)} | {"detail": str(message)}:
            return message
        case [first, *_]:
            return _message_of(first)
        case _:
            return json.dumps(document, ensure_ascii=False)


def _clean(text: str, secrets: Iterable[str]) -> str:
    """Return one short line without control characters, keys, and names of exceptions."""
    text = text.partition(" Original exception:")[0]  # litellm repeats the message
    text = re.sub(
        r"\b(?:litellm\.)?(?:\w+(?:Error|Exception|Timeout): ?)+(?:\w+(?:Exception|Error) - )?",
        "",
        text,
    )
    text = " ".join(redact(_UNPRINTABLE.sub(" ", text), secrets).split())
    return text if len(text) <= MAX_DETAIL else f"{text[:MAX_DETAIL]}…"


def _last_text(error: BaseException, service: Service) -> str:
    return _detail(str(next(iter(_causes(error)))), service.secrets)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, its causes and contexts, and the originals that litellm stores."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        current = waiting.pop(0)
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        original = getattr(current, "original_exception", None)
        waiting += [
            original if isinstance(original, BaseException) else None,
            current.__cause__,
            current.__context__,
        ]
