"""Sanitizing of foreign text for the terminal.

Textual and Rich pass control characters through to the terminal, even with markup off, so every
text from a note, a model, a path or an error goes through this module before a widget gets it.
Control characters become symbols, direction overrides and invisible characters become visible
codes, and stacks of combining marks are truncated. The notes themselves are unchanged.
"""

from __future__ import annotations

import re
from bisect import bisect_left

from msgspec import Struct

from obsidian_agent.expression import expression

_HIDDEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_CONTROL = "\x00-\x1f\x7f-\x9f\ud800-\udfff"
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0e31"
    "\u0e34-\u0e3a\u0e47-\u0e4e"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
)
_MAX_STACK = 4
"""Combining marks on one character."""
_MAX_RUN = 8
"""Hidden characters in a row that are displayed one by one."""

_LINE_ODD = expression(f"[{_CONTROL}{_HIDDEN}]+|[{_MARKS}]{{{_MAX_STACK + 1},}}")
_BLOCK_ODD = expression(f"(?:(?![\\t\\n])[{_CONTROL}{_HIDDEN}])+|[{_MARKS}]{{{_MAX_STACK + 1},}}")
_MARK = expression(f"[{_MARKS}]")
LINE_END = expression("\r\n?")
"""Line ends other than a newline."""

_EMOJI = expression(
    "[\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2900-\u297f"
    "\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_SELECTORS = frozenset("\ufe0e\ufe0f")
_JOINERS = frozenset(("\u200d", "\ufe0f\u200d"))
_WORD = expression(r"[^\W\d_]+")
_LOOKALIKES = (
    re.compile("[A-Za-z\u00c0-\u024f]"),  # Latin
    re.compile("[\u0400-\u052f]"),  # Cyrillic
    re.compile("[\u0370-\u03ff]"),  # Greek
)


def line(text: str) -> str:
    """Sanitize text for a single line: newlines and tabs become symbols, too."""
    if text.isascii() and text.isprintable():
        return text
    return _LINE_ODD.sub(lambda match: _replacement(match.group(), _around(text, match)), text)


def block(text: str) -> str:
    """Sanitize text of several lines: newlines and tabs stay, CRLF becomes a newline."""
    text = text.replace("\r\n", "\n")
    return _BLOCK_ODD.sub(lambda match: _replacement(match.group(), _around(text, match)), text)


class DisplayLine(Struct, frozen=True):
    """A sanitized line of a note that maps its columns to those of the note, in code points."""

    text: str
    starts: tuple[int, ...] | None = None
    """The column in the note of each character of `text`, followed by the length of its line.

    None when the text is unchanged.
    """

    def source_column(self, display_column: int) -> int:
        """Return the column in the note of a column on the screen."""
        if self.starts is None:
            return display_column
        return self.starts[min(display_column, len(self.starts) - 1)]

    def display_column(self, source_column: int) -> int:
        """Return the first column on the screen of a column in the note."""
        if self.starts is None:
            return source_column
        return bisect_left(self.starts, source_column, hi=len(self.starts) - 1)


def note_line(text: str) -> DisplayLine:
    """Sanitize a line of a note, given without its line end. Tabs stay."""
    if text.isascii() and text.isprintable():
        return DisplayLine(text)
    parts: list[str] = []
    starts: list[int] = []
    at = 0
    for match in _BLOCK_ODD.finditer(text):
        parts.append(text[at : match.start()])
        starts.extend(range(at, match.start()))
        replacement = _replacement(match.group(), _around(text, match))
        if len(replacement) == len(match.group()):
            starts.extend(range(match.start(), match.end()))
        else:
            starts.extend([match.start()] * len(replacement))
        parts.append(replacement)
        at = match.end()
    if not parts:
        return DisplayLine(text)
    parts.append(text[at:])
    starts.extend(range(at, len(text) + 1))
    return DisplayLine("".join(parts), tuple(starts))


def shortened(text: str, limit: int) -> str:
    """Sanitize a line and truncate it to about `limit` characters."""
    return line(text) if len(text) <= limit else f"{line(text[:limit])}…"


def folded(text: str, lines: int) -> str:
    """Sanitize a block without blank lines, truncated to `lines` lines with a count of the rest."""
    rows = [row for row in block(text).strip().split("\n") if row.strip()]
    if len(rows) <= lines:
        return "\n".join(rows)
    return "\n".join([*rows[:lines], f"… {len(rows) - lines:,} more lines"])


def mixes_scripts(name: str) -> bool:
    """Return True if a word mixes Latin, Cyrillic and Greek, so that names may look alike."""
    if name.isascii():
        return False
    return any(
        sum(1 for pattern in _LOOKALIKES if pattern.search(word)) > 1
        for word in _WORD.findall(name)
    )


def _around(text: str, match: re.Match[str]) -> tuple[str, str]:
    before = text[match.start() - 1 : match.start()] if match.start() else ""
    return before, text[match.end() : match.end() + 1]


def _replacement(run: str, around: tuple[str, str]) -> str:
    if _MARK.match(run):
        return f"{run[:_MAX_STACK]}‹{len(run) - _MAX_STACK:,} more marks›"
    before, after = (_EMOJI.fullmatch(char) is not None for char in around)
    if before and (run in _SELECTORS or (after and run in _JOINERS)):
        return ""
    symbols = "".join(_symbol(char) for char in run[:_MAX_RUN])
    if len(run) <= _MAX_RUN:
        return symbols
    return f"{symbols}‹{len(run) - _MAX_RUN:,} more hidden›"


def _symbol(char: str) -> str:
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    return f"‹U+{code:04X}›"


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun in the right number; `plural` where it is not noun + s."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
