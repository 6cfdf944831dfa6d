"""Needles: bytes that every match of a search holds, and the lines in which matches can be.

Needles can be searched in very many notes at once. Case is ignored as by `str.casefold`. For ASCII
that is lower case. The few other characters that fold to ASCII letters (ß, the Kelvin sign,
ligatures) are known: notes with them are flagged when they are indexed, and always read.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import Struct

from obsidian_agent.vault.text import split_lines

ASCII_FOLDING: Final = (
    "\u00df\u0130\u0131\u0149\u017f\u01f0\u1e96\u1e97\u1e98\u1e99\u1e9a\u1e9e\u212a"
    "\ufb00\ufb01\ufb02\ufb03\ufb04\ufb05\ufb06"
)
"""The characters outside ASCII that have ASCII in one of their cases."""

_FOLDING_PATTERN: Final = re.compile("|".join(ASCII_FOLDING).encode())
_ASCII: Final = bytes(range(0x80))
_ASCII_RUN: Final = re.compile(r"[\x00-\x7f]+")
_MIN_LENGTH: Final = 2
"""Minimum length of the text that a regular expression requires, for a needle to pay."""


class Needle(Struct, frozen=True):
    """Bytes that are in every note with a match; with `lower`, in the note's ASCII lower case."""

    data: bytes
    lower: bool


def exact_needle(text: str) -> Needle | None:
    """Return the needle of a case-sensitive search, or None if every note must be read."""
    return Needle(text.encode("utf-8", "surrogatepass"), lower=False) if text else None


def folded_needle(text: str) -> Needle | None:
    """Return the needle of a search that ignores case, or None if every note must be read.

    It is the longest run of ASCII, or the whole text if that has no case.
    """
    folded = text.casefold()
    if not folded.isascii() and folded == text.upper() == text.lower() == text.upper().casefold():
        return Needle(text.encode("utf-8", "surrogatepass"), lower=False)
    run = max(_ASCII_RUN.findall(folded), key=len, default="")
    return Needle(run.encode(), lower=True) if run else None


def folds_to_ascii(data: bytes) -> bool:
    """Return whether the bytes hold characters that case folding turns into or from ASCII."""
    return not data.isascii() and _FOLDING_PATTERN.search(data.translate(None, _ASCII)) is not None


def required_text(pattern: str, *, ignore_case: bool) -> Needle | None:
    """Return the needle of a valid regular expression, or None if it requires no text."""
    if "(?" in pattern:
        # Inline flags, conditions and lookarounds: some require text, but it is not worth the code.
        return None
    try:
        # The parser is not a documented part of the standard library. Without it, every note is
        # read.
        from re import _parser  # type: ignore[attr-defined]

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            runs = _literal_runs(_parser.parse(pattern, re.MULTILINE))
    except (ImportError, AttributeError, re.error, TypeError, ValueError):
        return None
    longest = max(runs, key=len, default="")
    if len(longest) < _MIN_LENGTH or "\n" in longest:
        return None
    return folded_needle(longest) if ignore_case else exact_needle(longest)


def lines_with(text: str, needle: Needle | None) -> Iterator[tuple[int, str]]:
    """Yield the number (from 1) and text of each line that may hold a needle, without line ends.

    None yields every line.
    """
    haystack = None if needle is None else _haystack(text, needle)
    if haystack is None or needle is None:
        for number, line in enumerate(split_lines(text), start=1):
            yield number, line.removesuffix("\n").removesuffix("\r")
        return
    pattern = needle.data.decode("utf-8", "surrogatepass")
    number, counted = 1, 0
    at = haystack.find(pattern)
    while at >= 0:
        start = text.rfind("\n", 0, at) + 1
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        number += text.count("\n", counted, start)
        counted = start
        yield number, text[start:end].removesuffix("\r")
        at = haystack.find(pattern, end)


def _literal_runs(items: Iterable[Any]) -> list[str]:
    """Return the runs of plain text that are in every match of a parsed expression."""
    runs = [""]
    for kind, value in items:
        match str(kind):
            case "LITERAL":
                runs[-1] += chr(value)
                continue
            case "SUBPATTERN":
                runs += [*_literal_runs(value[-1]), ""]
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT" if value[0] >= 1:
                runs += [*_literal_runs(value[2]), ""]
            case "AT":
                continue
            case _:
                runs.append("")
    return runs


def _haystack(text: str, needle: Needle) -> str | None:
    """Return the text to search, with the same offsets as `text`, or None if there is none."""
    if not needle.lower:
        return text
    if not text.isascii() and folds_to_ascii(text.encode("utf-8", "surrogatepass")):
        return None
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else None
