"""A JSON parser that records where each value is, so that one string can be changed in place."""

from __future__ import annotations

import json
from json import JSONDecoder
from typing import Any, Final, NamedTuple

from obsidian_agent.expression import expression

_BLANKS: Final = expression(r"[ \t\r\n]*")
_SCALAR: Final = expression(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null")
_MAX_DEPTH: Final = 200
_DECODER: Final = JSONDecoder()


class JsonValue(NamedTuple):
    """A value with its range of characters in the text, including quotes.

    `value` is a str, or a dict or list of JsonValue. It is None for numbers, booleans and null.
    """

    value: Any
    start: int
    end: int


class JsonDocumentError(ValueError):
    """The text is not a JSON document, or is nested too deeply."""


def parse(text: str) -> JsonValue:
    """Parse a JSON document. Raises JsonDocumentError."""
    start = _skip(text, 1 if text.startswith("\ufeff") else 0)
    document = _value(text, start, 0)
    if _skip(text, document.end) != len(text):
        raise JsonDocumentError("There is text after the document.")
    return document


def json_text(text: str) -> str:
    """Escape a text for use between the quotes of a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _skip(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks else at


def _value(text: str, at: int, depth: int) -> JsonValue:
    if depth > _MAX_DEPTH:
        raise JsonDocumentError("The document is nested too deeply.")
    opening = text[at : at + 1]
    if opening == '"':
        return _string(text, at)
    if opening == "{":
        return _object(text, at, depth)
    if opening == "[":
        return _array(text, at, depth)
    scalar = _SCALAR.match(text, at)
    if scalar is None:
        raise JsonDocumentError(f"There is no value at character {at}.")
    return JsonValue(None, at, scalar.end())


def _string(text: str, at: int) -> JsonValue:
    if text[at : at + 1] != '"':
        raise JsonDocumentError(f"A string was expected at character {at}.")
    try:
        value, end = _DECODER.raw_decode(text, at)
    except ValueError as error:
        raise JsonDocumentError(str(error)) from error
    return JsonValue(value, at, end)


def _object(text: str, start: int, depth: int) -> JsonValue:
    members: dict[str, JsonValue] = {}
    at = _skip(text, start + 1)
    if text.startswith("}", at):
        return JsonValue(members, start, at + 1)
    while True:
        key = _string(text, at)
        at = _skip(text, key.end)
        if not text.startswith(":", at):
            raise JsonDocumentError(f"A colon was expected at character {at}.")
        member = _value(text, _skip(text, at + 1), depth + 1)
        members[key.value] = member
        at = _skip(text, member.end)
        if text.startswith("}", at):
            return JsonValue(members, start, at + 1)
        at = _skip_comma(text, at)


def _array(text: str, start: int, depth: int) -> JsonValue:
    items: list[JsonValue] = []
    at = _skip(text, start + 1)
    if text.startswith("]", at):
        return JsonValue(items, start, at + 1)
    while True:
        item = _value(text, at, depth + 1)
        items.append(item)
        at = _skip(text, item.end)
        if text.startswith("]", at):
            return JsonValue(items, start, at + 1)
        at = _skip_comma(text, at)


def _skip_comma(text: str, at: int) -> int:
    if not text.startswith(",", at):
        raise JsonDocumentError(f"A comma was expected at character {at}.")
    return _skip(text, at + 1)
