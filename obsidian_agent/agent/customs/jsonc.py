"""JSON with comments and trailing commas, as configuration files have it, within limits that no honest file reaches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from obsidian_agent.plan.decoder import COMMAS, COMMENTS, Refused, decode

MAX_DEPTH: Final = 20
MAX_NODES: Final = 10_000
MAX_TEXT: Final = 100_000
"""Characters of one string."""

_END: Final = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*\Z", re.DOTALL)


class BadJson(ValueError):
    """Text that is no such document; the message says why and where."""


def read_jsonc(data: bytes) -> Any:
    """The value in a file's bytes. Raises `BadJson`, nothing else."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadJson(f"is not UTF-8 text (byte {error.start})") from error
    try:
        decoded = decode(text)
    except Refused as error:
        raise BadJson(f"is not JSON: {error.message} (line {_line(text, error.position)})") from error
    if not decoded.repairs <= {COMMENTS, COMMAS}:
        raise BadJson(f"is not JSON: {', '.join(sorted(decoded.repairs - {COMMENTS, COMMAS}))}")
    if _END.match(text, decoded.end) is None:
        raise BadJson(f"goes on after its end (line {_line(text, decoded.end)})")
    _check(decoded.value)
    return decoded.value


def _check(document: Any) -> None:
    for nodes, (depth, value) in enumerate(_walk(document), start=1):
        if depth > MAX_DEPTH:
            raise BadJson(f"is nested more than {MAX_DEPTH} deep")
        if nodes > MAX_NODES:
            raise BadJson(f"holds more than {MAX_NODES:,} values")
        if isinstance(value, str) and len(value) > MAX_TEXT:
            raise BadJson(f"holds a text of more than {MAX_TEXT:,} characters")


def _walk(document: Any) -> Iterator[tuple[int, Any]]:
    waiting: list[tuple[int, Any]] = [(1, document)]
    while waiting:
        depth, value = waiting.pop()
        yield depth, value
        match value:
            case dict():
                waiting += [(depth + 1, each) for each in value.values()]
            case list():
                waiting += [(depth + 1, each) for each in value]
            case _:
                pass


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
