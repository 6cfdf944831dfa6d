"""Regular expressions of plans: Python's `re` with MULTILINE, but with a time limit.

`re` cannot be interrupted, and a pattern such as `(a+)+$` can run practically forever. A pattern
must therefore be valid for `re`, and is run by the `regex` package, whose VERSION0 behaves as `re`
does. Syntax that `regex` reads differently (fuzzy matching `{e<=1}`, classes such as `[[:alpha:]]`)
is escaped before, so that it means the same as in `re`.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from obsidian_agent import budget
from obsidian_agent.errors import ToolError

if TYPE_CHECKING:
    import regex

TIME_LIMIT = 5.0
"""The seconds that all searches of one step may take."""

_TOKEN = re.compile(
    r"\[\^?\]?(?:\\.|[^\]\\])*\]|\\N\{[^}]*\}|\\.|\{(?:\d+(?:,\d*)?|,\d*)\}|\{", re.DOTALL
)
_CLASS = re.compile(r"\[(\^?)(\]?)(.*)\]", re.DOTALL)
_IN_CLASS = re.compile(r"\\.|\[", re.DOTALL)


_DOLLAR = re.compile(r"\$(\$|\d{1,2})")


class PatternMatch(Protocol):
    """The part of a match that callers need; group 0 is the whole match."""

    def start(self) -> int: ...

    def end(self) -> int: ...

    def group(self, group: int, /) -> str | None: ...


class TimedPattern(Struct):
    """A compiled pattern with its remaining time.

    Its methods raise ToolError ARGUMENT_INVALID when the time is used up.
    """

    source: str
    pattern: regex.Pattern[str]
    seconds_left: float = TIME_LIMIT

    @property
    def groups(self) -> int:
        """The number of capturing groups."""
        return int(self.pattern.groups)

    def search(self, text: str) -> PatternMatch | None:
        """Return the first match in `text`."""
        with self._timed() as seconds:
            match: PatternMatch | None = self.pattern.search(text, timeout=seconds, concurrent=True)
        return match

    def finditer(self, text: str) -> Iterator[PatternMatch]:
        """Return all matches from left to right, without overlaps."""
        with self._timed() as seconds:
            return iter(list(self.pattern.finditer(text, timeout=seconds, concurrent=True)))

    @contextmanager
    def _timed(self) -> Iterator[float]:
        """Yield the seconds that a call may take, then subtract the time that it took."""
        budget.check()
        started = time.monotonic()
        try:
            yield budget.seconds_left(self.seconds_left)
        except TimeoutError as error:
            budget.check()
            raise self._too_slow() from error
        finally:
            self.seconds_left = max(self.seconds_left - (time.monotonic() - started), 1e-6)

    def _too_slow(self) -> ToolError:
        return ToolError(
            f"The pattern {self.source!r} takes longer than {TIME_LIMIT:g} s.",
            hint="Avoid repetition inside repetition, or name a folder.",
        )


def compile_pattern(source: str, *, literal: bool, case_sensitive: bool) -> TimedPattern:
    """Compile a pattern, or a plain text if `literal`.

    Raise ToolError ARGUMENT_INVALID if `re` refuses the pattern.
    """
    import regex

    flags = regex.VERSION0 | regex.MULTILINE | (0 if case_sensitive else regex.IGNORECASE)
    if literal:
        return TimedPattern(source, regex.compile(re.escape(source), flags))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            re.compile(source, re.MULTILINE)
        return TimedPattern(source, regex.compile(_as_re_reads(source), flags))
    except (re.error, regex.error, OverflowError, RecursionError) as error:
        raise ToolError(f"{source!r} is not a Python regular expression: {error}.") from error


def _as_re_reads(source: str) -> str:
    """Escape everything that only `regex` gives a meaning to.

    That is braces that are not a repetition, and brackets inside classes.
    """
    return _TOKEN.sub(lambda token: _fixed(token[0]), source)


def _fixed(token: str) -> str:
    if token == "{":
        return r"\{"
    parts = _CLASS.fullmatch(token)
    if parts is None:
        return token
    body = _IN_CLASS.sub(lambda inner: r"\[" if inner[0] == "[" else inner[0], parts[3])
    first = r"\]" if parts[2] else ""
    return f"[{parts[1]}{first}{body}]"


def expand(template: str, match: PatternMatch, groups: int) -> str:
    """Return the replacement for a match.

    `$1` is a group (or ""), `$0` the whole match, `$$` a dollar sign; all else is literal.
    """

    def value(reference: re.Match[str]) -> str:
        digits = reference[1]
        if digits == "$":
            return "$"
        if int(digits) > groups and len(digits) == 2 and int(digits[0]) <= groups:
            return (match.group(int(digits[0])) or "") + digits[1]
        if int(digits) > groups:
            raise ToolError(
                f"The replacement names ${digits}, but the pattern has {groups} groups."
            )
        return match.group(int(digits)) or ""

    return _DOLLAR.sub(value, template)


def whole_words(text: str) -> regex.Pattern[str]:
    """Return a case-insensitive pattern for a text whose words are not parts of longer words."""
    import regex

    words = r"\s+".join(regex.escape(word) for word in text.split())
    before = r"(?<!\w)" if text.strip()[:1].isalnum() else ""
    after = r"(?!\w)" if text.strip()[-1:].isalnum() else ""
    return regex.compile(before + words + after, regex.IGNORECASE | regex.FULLCASE)
