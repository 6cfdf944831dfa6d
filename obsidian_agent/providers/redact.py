"""Takes secrets out of text before it reaches a message, a log or an event."""

from __future__ import annotations

import re
from collections.abc import Iterable

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
"""What a key looks like; the group is kept."""


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` without the given secrets and without what looks like one: services echo keys, sometimes with a part starred out."""
    for secret in secrets:
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, MASK)
    for pattern in _PATTERNS:
        text = pattern.sub(rf"\g<1>{MASK}", text)
    return text
