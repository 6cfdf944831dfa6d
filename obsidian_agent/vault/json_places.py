"""JSON with the place of every value, so that one string can be replaced and every other byte stays."""

from __future__ import annotations

import re
from json import JSONDecoder
from typing import Any, Final, NamedTuple

_BLANKS: Final = re.compile(r"[ \t\r\n]*")
_PLAIN: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null")
_DEEPEST: Final = 200
_DECODER: Final = JSONDecoder()


class Place(NamedTuple):
    """A value and its characters in the text, quotes included. `value` is a str, a dict or list of places, or None for all the rest."""

    value: Any
    start: int
    end: int


class NotJson(ValueError):
    """The text is no JSON document, or is nested too deeply."""


def parse(text: str) -> Place:
    """The document of a text. Raises NotJson."""
    start = _skip(text, 1 if text.startswith("\ufeff") else 0)
    place = _value(text, start, 0)
    if _skip(text, place.end) != len(text):
        raise NotJson("There is something behind the document.")
    return place


def _skip(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks else at


def _value(text: str, at: int, depth: int) -> Place:
    if depth > _DEEPEST:
        raise NotJson("It is nested too deeply.")
    opening = text[at : at + 1]
    if opening == '"':
        return _string(text, at)
    if opening == "{":
        return _object(text, at, depth)
    if opening == "[":
        return _array(text, at, depth)
    plain = _PLAIN.match(text, at)
    if plain is None:
        raise NotJson(f"There is no value at character {at}.")
    return Place(None, at, plain.end())


def _string(text: str, at: int) -> Place:
    if text[at : at + 1] != '"':
        raise NotJson(f"A string was expected at character {at}.")
    try:
        value, end = _DECODER.raw_decode(text, at)
    except ValueError as error:
        raise NotJson(str(error)) from error
    return Place(value, at, end)


def _object(text: str, start: int, depth: int) -> Place:
    members: dict[str, Place] = {}
    at = _skip(text, start + 1)
    if text.startswith("}", at):
        return Place(members, start, at + 1)
    while True:
        key = _string(text, at)
        at = _skip(text, key.end)
        if not text.startswith(":", at):
            raise NotJson(f"A colon was expected at character {at}.")
        member = _value(text, _skip(text, at + 1), depth + 1)
        members[key.value] = member
        at = _skip(text, member.end)
        if text.startswith("}", at):
            return Place(members, start, at + 1)
        at = _comma(text, at)


def _array(text: str, start: int, depth: int) -> Place:
    items: list[Place] = []
    at = _skip(text, start + 1)
    if text.startswith("]", at):
        return Place(items, start, at + 1)
    while True:
        item = _value(text, at, depth + 1)
        items.append(item)
        at = _skip(text, item.end)
        if text.startswith("]", at):
            return Place(items, start, at + 1)
        at = _comma(text, at)


def _comma(text: str, at: int) -> int:
    if not text.startswith(",", at):
        raise NotJson(f"A comma was expected at character {at}.")
    return _skip(text, at + 1)
