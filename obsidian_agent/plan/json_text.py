"""Readers of JSON text: strict for files, tolerant for answers of models.

`decode` repairs what is unambiguous: trailing commas, comments, raw line breaks in strings, `True`,
`False`, `None`, and single-quoted strings with a certain end. It rejects truncated text, duplicate
keys, `...` in place of content, NaN and every other deviation.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final, Literal, NoReturn

from msgspec import Struct

from obsidian_agent.errors import PlanError
from obsidian_agent.plan.arguments import MAX_DEPTH, MAX_INTEGER

MAX_FILE_BYTES = 64 * 1024 * 1024
"""The maximum size of a plan file, equal to that of the largest note a plan may write."""


Code = Literal["TRUNCATED", "SYNTAX", "INCOMPLETE", "DUPLICATE_KEY", "NUMBER", "TOO_DEEP"]

COMMENTS: Final = "comments removed"
COMMAS: Final = "trailing commas removed"
QUOTES: Final = "single quotes read as double quotes"
LITERALS: Final = "True, False and None read as true, false and null"
RAW_TEXT: Final = "raw line breaks and tabs in strings escaped"

_BLANKS = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//[^\n]*|#[^\n]*|/\*.*?\*/", re.DOTALL)
_OMISSION = re.compile(r"\.\.\.|…")
_DOUBLE = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
_SINGLE = re.compile(r"'([^'\\\n]*(?:\\.[^'\\\n]*)*)'")
_SINGLE_ESCAPE = re.compile(r"""\\(?:["'\\bfnrt/]|u[0-9a-fA-F]{4})|\\|\"""")
_RAW = re.compile(r"[\t\n\r]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?(?![\w.])")
_WORD = re.compile(r"-?[A-Za-z]+(?!\w)")
_WORDS: Final[dict[str, Any]] = {"true": True, "false": False, "null": None}
_PYTHON_WORDS: Final[dict[str, Any]] = {"True": True, "False": False, "None": None}


def read_json(data: bytes, name: str) -> Any:
    """Return the JSON value of a file.

    Raise PlanError SCHEMA_INVALID with the file, the line and the reason, also for a duplicate key,
    NaN and invalid UTF-8.
    """
    if len(data) > MAX_FILE_BYTES:
        raise PlanError(
            f"{name} is larger than {MAX_FILE_BYTES // 2**20} MB.", code="SCHEMA_INVALID"
        )
    try:
        return json.loads(
            data.decode("utf-8-sig"), object_pairs_hook=_object, parse_constant=_constant
        )
    except json.JSONDecodeError as error:
        raise PlanError(
            f"{name} is not JSON: {error.msg} in line {error.lineno}.", code="SCHEMA_INVALID"
        ) from error
    except UnicodeDecodeError as error:
        raise PlanError(
            f"{name} is not UTF-8 text (byte {error.start}).", code="SCHEMA_INVALID"
        ) from error
    except RecursionError as error:
        raise PlanError(f"{name} is nested too deeply.", code="SCHEMA_INVALID") from error
    except ValueError as error:
        raise PlanError(f"{name}: {error}", code="SCHEMA_INVALID") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        doubled = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {doubled!r} occurs twice in one object.")
    return members


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number.")


class InvalidJson(Exception):
    """Text that is not JSON.

    `begun`: a named member was read before the error, so that the text was meant to be JSON.
    """

    def __init__(self, code: Code, message: str, position: int, begun: bool) -> None:
        super().__init__(message)
        self.code: Code = code
        self.message = message
        self.position = position
        self.begun = begun


class DecodedJson(Struct, frozen=True):
    """A JSON value, the position where it ends in the text, and the repairs."""

    value: Any
    end: int
    repairs: frozenset[str]


def decode(text: str, start: int = 0) -> DecodedJson:
    """Return the JSON value at `start`, after blanks and comments.

    Raise `InvalidJson` and nothing else.
    """
    decoder = _Decoder(text, start)
    value = decoder.value()
    return DecodedJson(value, decoder.position, frozenset(decoder.repairs))


class _Decoder:
    __slots__ = ("begun", "position", "repairs", "text")

    def __init__(self, text: str, start: int) -> None:
        self.text = text
        self.position = start
        self.repairs: set[str] = set()
        self.begun = False

    def value(self, depth: int = 0) -> Any:
        """Read the value at the current position."""
        char = self._peek()
        if char in "{[":
            if depth >= MAX_DEPTH:
                self._refuse("TOO_DEEP", f"it is nested deeper than {MAX_DEPTH} levels")
            self.position += 1
            return self._object(depth) if char == "{" else self._array(depth)
        if char in "\"'":
            return self._string()
        if char in "-0123456789" and (match := _NUMBER.match(self.text, self.position)):
            return self._number(match)
        return self._word()

    def _object(self, depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        is_closed = self._closes("}")
        while not is_closed:
            key = self._key(members)
            members[key] = self.value(depth + 1)
            is_closed = self._separates("}")
        return members

    def _array(self, depth: int) -> list[Any]:
        items: list[Any] = []
        is_closed = self._closes("]")
        while not is_closed:
            items.append(self.value(depth + 1))
            is_closed = self._separates("]")
        return items

    def _separates(self, closer: str) -> bool:
        """Pass the comma after a member, or the end of its container. Return True at the end."""
        if self._peek() != ",":
            if not self._closes(closer):
                self._refuse("SYNTAX", f"a comma or '{closer}' is missing")
            return True
        self.position += 1
        if not self._closes(closer):
            return False
        self.repairs.add(COMMAS)
        return True

    def _closes(self, closer: str) -> bool:
        """Pass the end of a container. Return False if it does not follow."""
        if self._peek() != closer:
            return False
        self.position += 1
        return True

    def _key(self, container: dict[str, Any]) -> str:
        if self._peek() not in "\"'":
            self._refuse("SYNTAX", "a name in double quotes is missing")
        key_start = self.position
        key = self._string()
        if self._peek() != ":":
            self._refuse("SYNTAX", "a colon is missing")
        self.begun = True
        if key in container:
            self.position = key_start
            self._refuse("DUPLICATE_KEY", f"the name {key[:60]!r} occurs twice in one object")
        self.position += 1
        return key

    def _number(self, match: re.Match[str]) -> int | float:
        text, fraction, exponent = match[0], match[1], match[2]
        if len(text) > 400:
            self._refuse("NUMBER", "a number has too many digits")
        number = int(text) if fraction is None and exponent is None else float(text)
        if abs(number) > MAX_INTEGER if isinstance(number, int) else not math.isfinite(number):
            self._refuse("NUMBER", "a number is too large")
        self.position = match.end()
        return number

    def _word(self) -> Any:
        match = _WORD.match(self.text, self.position)
        word = match[0] if match else ""
        if word.lstrip("-") in ("NaN", "Infinity"):
            self._refuse("NUMBER", f"{word} is not a JSON number")
        if word not in _WORDS and word not in _PYTHON_WORDS:
            self._refuse("SYNTAX", "a value is missing")
        self.position += len(word)
        if word in _WORDS:
            return _WORDS[word]
        self.repairs.add(LITERALS)
        return _PYTHON_WORDS[word]

    def _string(self) -> str:
        double = self.text[self.position] == '"'
        match = (_DOUBLE if double else _SINGLE).match(self.text, self.position)
        if match is None:
            closed = not double and "\n" in self.text[self.position :]
            self._refuse("SYNTAX" if closed else "TRUNCATED", "a string has no end")
        raw = match[1] if double else self._single(match[1])
        if control := _CONTROL.search(raw):
            self._refuse(
                "SYNTAX", f"a string holds a raw control character (U+{ord(control[0]):04X})"
            )
        if _RAW.search(raw):
            self.repairs.add(RAW_TEXT)
        if "\\" in raw:
            try:
                raw = json.loads(f'"{raw}"', strict=False)
            except ValueError:
                self._refuse("SYNTAX", "a string holds an unknown escape")
        self.position = match.end()
        return raw

    def _single(self, raw: str) -> str:
        """Convert the escapes of a single-quoted string to those of a double-quoted one."""
        self.repairs.add(QUOTES)

        def escaped(match: re.Match[str]) -> str:
            text = match[0]
            if text == "\\":
                self._refuse("SYNTAX", "a string holds an unknown escape")
            if text == "\\'":
                return "'"
            return '\\"' if text == '"' else text

        return _SINGLE_ESCAPE.sub(escaped, raw)

    def _peek(self) -> str:
        """Return the next character outside blanks and comments.

        Raise `InvalidJson` TRUNCATED at the end of the text.
        """
        while True:
            blanks = _BLANKS.match(self.text, self.position)
            self.position = blanks.end() if blanks else self.position
            char = self.text[self.position : self.position + 1]
            if not char:
                self._refuse("TRUNCATED", "the text ends in the middle")
            if char in "/#" and (comment := _COMMENT.match(self.text, self.position)):
                if _OMISSION.search(comment[0]):
                    self._refuse("INCOMPLETE", "a comment replaces content")
                self.repairs.add(COMMENTS)
                self.position = comment.end()
                continue
            if char in ".…" and _OMISSION.match(self.text, self.position):
                self._refuse("INCOMPLETE", "'...' replaces content")
            return char

    def _refuse(self, code: Code, reason: str) -> NoReturn:
        line = self.text.count("\n", 0, self.position) + 1
        column = self.position - (self.text.rfind("\n", 0, self.position) + 1) + 1
        raise InvalidJson(
            code, f"{reason} (line {line}, column {column})", self.position, self.begun
        )
