"""Bytes of notes as text and back, exactly: nothing is normalised, stripped or guessed.

A line ends with ``\\n`` or ``\\r\\n``. A lone ``\\r`` and the other characters at which `str.splitlines` would cut are part of their line,
as they are for Obsidian. A byte order mark stays in the text as ``\\ufeff``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from operator import itemgetter
from typing import AnyStr, Generic, NamedTuple

from obsidian_agent.errors import ToolError, VaultError

BOM = "\ufeff"

_LINE_END = re.compile(r"\r?\n")


def decode(data: bytes, path: str) -> str:
    """The text of a file, strictly UTF-8. Raises `VaultError` NOT_TEXT that names the first wrong byte; NUL bytes are allowed."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise VaultError(
            f"“{path}” is not UTF-8 text: byte 0x{data[error.start]:02X} at offset {error.start}.",
            code="NOT_TEXT",
            path=path,
            hint="Save it as UTF-8 first; it is left as it is.",
        ) from error


def encode(text: str) -> bytes:
    """UTF-8 bytes of a text. Raises `ToolError` ARGUMENT_INVALID for half of a surrogate pair, which no file can hold."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        code = f"U+{ord(text[error.start]):04X}"
        raise ToolError(
            f"The text cannot be written: character {error.start} is half of a surrogate pair ({code})."
        ) from error


def newline_of(text: str) -> str:
    """The line end that most lines of the text have; of two equally frequent ones the first; ``\\n`` when there is none."""
    total = text.count("\n")
    crlf = text.count("\r\n")
    if crlf * 2 == total and crlf:
        first = text.index("\n")
        return "\r\n" if text[first - 1 : first] == "\r" else "\n"
    return "\r\n" if crlf * 2 > total else "\n"


def with_newlines(text: str, newline: str) -> str:
    """The text with every line end (``\\n``, ``\\r\\n``) replaced by `newline`."""
    if newline == "\n" and "\r\n" not in text:
        return text
    return _LINE_END.sub(lambda _: newline, text)


def split_lines(text: str) -> list[str]:
    """The lines with their line ends; joined they are the text."""
    parts = text.split("\n")
    last = parts.pop()
    lines = [part + "\n" for part in parts]
    if last:
        lines.append(last)
    return lines


class Edit(NamedTuple, Generic[AnyStr]):
    """What stands from `start` to `end` (characters of a text, or bytes of a file) becomes `new`."""

    start: int
    end: int
    new: AnyStr


def apply(text: AnyStr, edits: Iterable[Edit[AnyStr]]) -> AnyStr:
    """The text, or the bytes, with the edits made; those at one place keep their order. ValueError when two overlap."""
    pieces: list[AnyStr] = []
    position = 0
    for start, end, new in sorted(edits, key=itemgetter(0, 1)):
        if start < position:
            raise ValueError("edits overlap")
        pieces += (text[position:start], new)
        position = end
    pieces.append(text[position:])
    return text[:0].join(pieces)
