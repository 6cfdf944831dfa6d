"""Exact conversion between the bytes of notes and text: nothing is normalized, stripped or guessed.

A line ends with ``\\n`` or ``\\r\\n``. A lone ``\\r`` and the other characters at which
`str.splitlines` splits are part of their line, as in Obsidian. A byte order mark stays in the text
as ``\\ufeff``.
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
    """Decode a file as strict UTF-8. NUL bytes are allowed.

    Raises `VaultError` NOT_TEXT, which names the first invalid byte.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise VaultError(
            f"“{path}” is not UTF-8 text: byte 0x{data[error.start]:02X} at offset {error.start}.",
            code="NOT_TEXT",
            path=path,
            hint="The file is unchanged. Save it as UTF-8 first.",
        ) from error


def encode(text: str) -> bytes:
    """Encode text as UTF-8. Raises `ToolError` ARGUMENT_INVALID for an unpaired surrogate."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        code = f"U+{ord(text[error.start]):04X}"
        raise ToolError(
            f"The text cannot be saved: character {error.start} is an unpaired surrogate ({code})."
        ) from error


def newline_of(text: str) -> str:
    """Return the most frequent line end of the text, the first one on a tie, or ``\\n``."""
    total = text.count("\n")
    crlf = text.count("\r\n")
    if crlf * 2 == total and crlf:
        first = text.index("\n")
        return "\r\n" if text[first - 1 : first] == "\r" else "\n"
    return "\r\n" if crlf * 2 > total else "\n"


def with_newlines(text: str, newline: str) -> str:
    """Replace every line end (``\\n``, ``\\r\\n``) by `newline`."""
    if newline == "\n" and "\r\n" not in text:
        return text
    return _LINE_END.sub(lambda _: newline, text)


def split_lines(text: str) -> list[str]:
    """Split text into lines that keep their line ends."""
    parts = text.split("\n")
    last = parts.pop()
    lines = [part + "\n" for part in parts]
    if last:
        lines.append(last)
    return lines


class Edit(NamedTuple, Generic[AnyStr]):
    """A range of a text or of bytes, and what replaces it.

    `start` and `end` count characters in a text, bytes in bytes.
    """

    start: int
    end: int
    new: AnyStr


def apply(text: AnyStr, edits: Iterable[Edit[AnyStr]]) -> AnyStr:
    """Apply edits to a text or to bytes. Insertions at one position keep their order.

    Raises ValueError if two edits overlap.
    """
    pieces: list[AnyStr] = []
    position = 0
    for start, end, new in sorted(edits, key=itemgetter(0, 1)):
        if start < position:
            raise ValueError("edits overlap")
        pieces += (text[position:start], new)
        position = end
    pieces.append(text[position:])
    return text[:0].join(pieces)
