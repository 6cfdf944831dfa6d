"""What any JSON document must be before its fields are looked at: plain JSON values, not too deep, text that can be written as UTF-8."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

MAX_DEPTH: Final = 64
MAX_INTEGER: Final = 2**63 - 1

_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class Flaw:
    """Why a document is unusable, and where: `pointer` is a JSON pointer (RFC 6901).

    Codes: TOO_DEEP, ENCODING, CONTROL_CHARS, NUMBER, NOT_JSON.
    """

    code: str
    message: str
    pointer: str


def pointer(path: tuple[str | int, ...]) -> str:
    """A JSON pointer."""
    return "".join("/" + str(each).replace("~", "~0").replace("/", "~1") for each in path)


def flaw(document: object) -> Flaw | None:
    """The first flaw of a document, or None. Works for every Python value, however deep."""
    for path, value in _walk(document):
        if len(path) > MAX_DEPTH:
            return Flaw("TOO_DEEP", f"The document is nested deeper than {MAX_DEPTH} levels.", pointer(path[:4]) + "/…")
        if found := _value_flaw(value):
            return Flaw(found[0], found[1], pointer(path))
    return None


def control_characters(text: str) -> bool:
    """Whether text holds characters that can fool a screen: terminal controls and direction overrides, not tab and newline."""
    return _CONTROL.search(text) is not None


def _walk(document: object) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    open_values: list[tuple[tuple[str | int, ...], Any]] = [((), document)]
    while open_values:
        path, value = open_values.pop()
        yield path, value
        if isinstance(value, dict):
            open_values.extend(((*path, str(key)), below) for key, below in value.items())
            yield from (((*path, "(name)"), key) for key in value if not isinstance(key, str) or _text_flaw(key))
        elif isinstance(value, list):
            open_values.extend(((*path, index), below) for index, below in enumerate(value) if below is not None)


def _value_flaw(value: object) -> tuple[str, str] | None:
    match value:
        case str():
            return _text_flaw(value)
        case bool() | None | dict() | list():
            return None
        case int():
            return ("NUMBER", "A number is too large.") if abs(value) > MAX_INTEGER else None
        case float():
            return None if math.isfinite(value) else ("NUMBER", "NaN and infinite numbers are not JSON.")
        case _:
            return "NOT_JSON", f"{type(value).__name__} is not a JSON value."


def _text_flaw(text: str) -> tuple[str, str] | None:
    if "\x00" in text:
        return "CONTROL_CHARS", "Text holds a NUL character, which would make a note binary."
    if not text.isascii() and _SURROGATE.search(text):
        return "ENCODING", "Text holds half of a surrogate pair, which cannot be written as UTF-8."
    return None
